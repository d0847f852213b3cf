// The checklists: what each document demands, and which test plays it. `docs/conformance.md` is written from them.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const FOLDER = path.dirname(fileURLToPath(import.meta.url));
export const ROOT = path.join(FOLDER, "../..");
export const CONFORMANCE = path.join(ROOT, "docs/conformance.md");

/** The documents, in the order of the page, with the letters that their requirements begin with. */
export const DOCUMENTS = [
  { name: "loom", prefix: "L", title: "Loom" },
  { name: "streaming-engine", prefix: "S", title: "StreamingEngine" },
  { name: "agio", prefix: "A", title: "Agio" },
  { name: "social-app", prefix: "P", title: "social-app" },
  { name: "easyflow-chat", prefix: "E", title: "EasyFlow" },
];

const LATER = "not yet: the Python SDK";

/** The only requirements that may have no test: those on Python classes, which the Python SDK will bring. */
export const NOT_YET = [
  ...["2.1.1", "2.1.5", "2.2.1", "2.2.2", "2.2.3", "2.2.4", "2.2.5", "2.2.6", "2.2.7", "2.2.8", "2.2.9"].map((at) => `S-${at}`),
  ...["2.1", "2.2", "4.1", "6.1", "7.1", "9.1"].map((at) => `A-${at}`),
];

/** Reads a checklist: its introduction, its sections with their requirements, its deviations. */
export function readChecklist(document) {
  const text = readFileSync(path.join(FOLDER, `${document.name}.md`), "utf8");
  const [head, ...parts] = text.split(/^## /m);
  const sections = parts.map((part) => {
    const [title, ...lines] = part.trimEnd().split("\n");
    const rows = lines.filter((line) => line.startsWith("|")).slice(2).map(cells);
    return { title, lines: lines.join("\n").trim(), rows };
  });
  const isDeviations = ({ title }) => title === "Deviations";
  const requirements = sections.filter((section) => !isDeviations(section)).flatMap(({ rows }) => rows.map(requirementOf));
  return { document, intro: head.split("\n").slice(1).join("\n").trim(), sections: sections.filter((section) => !isDeviations(section)), deviations: sections.find(isDeviations), requirements };
}

function cells(line) {
  return line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim());
}

function requirementOf([id, sentence, bound]) {
  const elsewhere = /^`([^`]+\/[^`]+)`: (.+)$/.exec(bound ?? "");
  if (elsewhere) return { id, sentence, elsewhere: { file: elsewhere[1], name: elsewhere[2] } };
  const test = /^`([A-Za-z0-9_]+)`$/.exec(bound ?? "")?.[1];
  return { id, sentence, test, isLater: bound === LATER };
}

/** Tells what is wrong with a checklist, whose tests have these names. */
export function mistakesOf({ document, requirements }, names) {
  const mistakes = [];
  const seen = new Set();
  for (const { id, sentence, test, elsewhere, isLater } of requirements) {
    if (!new RegExp(`^${document.prefix}-\\d+(\\.\\d+)*$`).test(id)) mistakes.push(`${id}: a requirement is called ${document.prefix}-<section>.<number>`);
    if (seen.has(id)) mistakes.push(`${id} stands twice in the checklist`);
    seen.add(id);
    if (!sentence) mistakes.push(`${id} says nothing`);
    if (elsewhere) {
      const file = path.join(ROOT, elsewhere.file);
      const isThere = existsSync(file) && readFileSync(file, "utf8").includes(`"${elsewhere.name}"`);
      if (!isThere) mistakes.push(`${id} is bound to "${elsewhere.name}", which is not in ${elsewhere.file}`);
    } else if (isLater) {
      if (!NOT_YET.includes(id)) mistakes.push(`${id} has no test, and is not in NOT_YET of checklist.mjs`);
    } else if (test === undefined) {
      mistakes.push(`${id} has no test`);
    } else if (!names.includes(test)) {
      mistakes.push(`${id} is bound to the test \`${test}\`, which does not exist`);
    }
  }
  const bound = new Set(requirements.map(({ test }) => test));
  for (const name of names) if (!bound.has(name)) mistakes.push(`the test \`${name}\` belongs to no requirement`);
  const own = NOT_YET.filter((id) => id.startsWith(`${document.prefix}-`));
  for (const id of own) if (!requirements.some((each) => each.id === id && each.isLater)) mistakes.push(`${id} is in NOT_YET of checklist.mjs, and not in the checklist`);
  return mistakes;
}

/** Writes the page for readers. */
export function conformancePage(checklists) {
  const count = (checklist, wanted) => checklist.requirements.filter(wanted).length;
  const summary = checklists.map((checklist) => {
    const { document, requirements } = checklist;
    const later = count(checklist, ({ isLater }) => isLater);
    return `| [${document.title}](#${document.title.toLowerCase()}) | [\`${document.name}\`](dialects/${document.name}.md) | ${requirements.length} | ${requirements.length - later} | ${later} |`;
  });
  const parts = checklists.map(({ document, intro, sections, deviations }) => {
    const shown = sections.map(({ title, lines }) => `### ${title}\n\n${lines}`);
    const differs = deviations ? [`### Where Runwire differs from ${document.title}'s document\n\n${deviations.lines}`] : [];
    return [`## ${document.title}`, intro, ...shown, ...differs].join("\n\n");
  });
  return `<!-- Generated from the checklists in oracles/documents by \`npm run write\` there. Do not edit. -->

# Conformance

Runwire exists for five protocols. This page lists what their documents demand, sentence by sentence, and the test that
plays each requirement: with a client or a back end written from the document alone, against a real server.
\`cargo xtask test\` runs all of them, and fails for a requirement without a test, a test without a requirement, and a
test that fails.

| document | dialect | requirements | tested | not yet |
|---|---|---|---|---|
${summary.join("\n")}

A requirement is numbered with the section of its document. The tests are in
[\`oracles/documents/tests\`](../oracles/documents/tests), a file for each document, those in Python beside those in
JavaScript. Where a requirement is about the console, the test is one of the console's own. "Not yet: the Python SDK"
marks the Python classes that two of the documents describe.

${parts.join("\n\n")}
`;
}
