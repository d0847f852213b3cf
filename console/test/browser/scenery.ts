import type { Runwire } from "@runwire/client";

/** The messages in both languages: the demo agents answer in the language they are asked in. */
const words = {
  en: { trip: "What can I do in Hangzhou on Saturday?", tree: "Make 24 out of 4, 7, 8 and 8", graph: "Compare Chengdu with another city", report: "Export the report" },
  "zh-CN": { trip: "周六在杭州可以做什么？", tree: "用 4、7、8、8 算 24 点", graph: "把成都和另一座城市比一比", report: "导出报表" },
} as const;

/** Starts runs with every demo agent, and gives every page of the console, each with something on it worth looking at. */
export async function setScenery(client: Runwire, language: keyof typeof words): Promise<string[]> {
  const say = words[language];
  const id = (name: string) => `${name}-${language}`;
  await client.runs.create({ run_id: id("trip"), thread_id: id("saturday"), agent: "demo", message: say.trip });
  await stands(client, id("trip"), "suspended");
  await client.interactions.answer(id("trip"), "trip", { decision: "submitted", values: { name: "Lin", email: "lin@example.com", interests: ["food", "nature"] } });
  await stands(client, id("trip"), "suspended", "booking");
  await client.interactions.answer(id("trip"), "booking", { decision: "approved" });
  await stands(client, id("trip"), "completed");
  await client.runs.create({ run_id: id("tree"), agent: "thought-tree", message: say.tree });
  await client.runs.create({ run_id: id("graph"), agent: "thought-graph", message: say.graph });
  await client.runs.create({ run_id: id("report"), agent: "failing", message: say.report });
  await client.runs.create({ run_id: id("asking"), agent: "demo", message: say.trip });
  await stands(client, id("tree"), "completed");
  await stands(client, id("graph"), "completed");
  await stands(client, id("report"), "failed");
  await stands(client, id("asking"), "suspended");
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

/** Reads the run until it has come to this; a question by its name, since a run can wait for several in turn. */
async function stands(client: Runwire, run: string, status: string, question?: string): Promise<void> {
  for await (const event of client.runs.stream(run)) {
    if (event.type === "interaction.requested" && status === "suspended" && (question ?? event.interaction_id) === event.interaction_id) return;
  }
  const found = (await client.runs.get(run)).status;
  if (found !== status) throw new Error(`${run} is ${found}, not ${status}`);
}
