import type { Runwire } from "@runwire/client";

/** Messages in both languages: the demo agents answer in the language of the message. */
const messages = {
  en: { trip: "What can I do in Hangzhou on Saturday?", tree: "Make 24 out of 4, 7, 8 and 8", graph: "Compare Chengdu with another city", report: "Export the report" },
  "zh-CN": { trip: "周六在杭州可以做什么？", tree: "用 4、7、8、8 算 24 点", graph: "把成都和另一座城市比一比", report: "导出报表" },
} as const;

/** Starts runs of every demo agent; returns the paths of all pages with content. */
export async function createFixtures(client: Runwire, language: keyof typeof messages): Promise<string[]> {
  const texts = messages[language];
  const id = (name: string) => `${name}-${language}`;
  await client.runs.create({ run_id: id("trip"), thread_id: id("saturday"), agent: "demo", message: texts.trip });
  await waitForStatus(client, id("trip"), "suspended");
  await client.interactions.answer(id("trip"), "trip", { decision: "submitted", values: { name: "Lin", email: "lin@example.com", interests: ["food", "nature"] } });
  await waitForStatus(client, id("trip"), "suspended", "booking");
  await client.interactions.answer(id("trip"), "booking", { decision: "approved" });
  await waitForStatus(client, id("trip"), "completed");
  await client.runs.create({ run_id: id("tree"), agent: "thought-tree", message: texts.tree });
  await client.runs.create({ run_id: id("graph"), agent: "thought-graph", message: texts.graph });
  await client.runs.create({ run_id: id("report"), agent: "failing", message: texts.report });
  await client.runs.create({ run_id: id("asking"), agent: "demo", message: texts.trip });
  await waitForStatus(client, id("tree"), "completed");
  await waitForStatus(client, id("graph"), "completed");
  await waitForStatus(client, id("report"), "failed");
  await waitForStatus(client, id("asking"), "suspended");
  const run = (name: string) => `/runs/${id(name)}`;
  return [
    "/runs",
    "/runs?find=nothing-begins-so",
    "/inbox",
    "/threads",
    `/threads/${id("saturday")}`,
    "/agents",
    "/agents/demo",
    "/runs/no/such/page",
    run("trip"),
    run("asking"),
    run("report"),
    "/runs/unknown",
    `${run("trip")}/events`,
    `${run("trip")}/events?view=wire&dialect=ag-ui&beside=loom`,
    `${run("tree")}/thoughts`,
    `${run("tree")}/thoughts?as=list`,
    `${run("graph")}/thoughts`,
    `${run("graph")}/thoughts?as=list`,
    `${run("report")}/thoughts`,
    `${run("trip")}/state`,
    `${run("trip")}/usage`,
    `${run("report")}/state`,
  ];
}

/** Reads a run until it has a status; with an interaction id, until that one is requested. */
async function waitForStatus(client: Runwire, run: string, status: string, interaction?: string): Promise<void> {
  for await (const event of client.runs.stream(run)) {
    if (event.type === "interaction.requested" && status === "suspended" && (interaction ?? event.interaction_id) === event.interaction_id) return;
  }
  const actual = (await client.runs.get(run)).status;
  if (actual !== status) throw new Error(`${run} is ${actual}, not ${status}`);
}
