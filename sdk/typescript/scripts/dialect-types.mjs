// The types of each dialect's frames, from the JSON Schemas that judge what the server writes.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { comment, literal, merge, nameIn, TypeWriter, variants } from "./type-writer.mjs";

/** Its frames are the model's events. */
const OF_THE_MODEL = "runwire";

/** Writes the files of src/dialects: by name, their contents. */
export function dialectTypes(root) {
  const vectors = path.join(root, "vectors");
  const names = readdirSync(vectors).filter((name) => name !== OF_THE_MODEL && existsSync(path.join(vectors, name, "schema.json")));
  const modules = names.map((name) => [`${name}.ts`, module(name, JSON.parse(readFileSync(path.join(vectors, name, "schema.json"), "utf8")))]);
  return Object.fromEntries([...modules, ["index.ts", index(names)]]);
}

function head(source) {
  return `// Written by scripts/types.mjs from ${source}: \`npm run types\`. Do not edit.\n`;
}

function index(names) {
  const parts = [
    head("vectors/*/schema.json"),
    names.map((name) => `import type * as ${pascal(name)} from "./${name}.js";\n`).join(""),
    `export type { ${names.map(pascal).join(", ")} };\n`,
    `/** The frames of each dialect, by its name. */\nexport interface DialectFrames {\n${names.map((name) => `  ${literal(name)}: ${pascal(name)}.Frame;\n`).join("")}}\n`,
  ];
  return parts.join("\n");
}

/** Writes `session_start`, `RUN_STARTED` and `llm.message` as types are written, and `tool.tool_call` as `ToolCall`. */
function pascal(name) {
  const words = name.split(/[^A-Za-z0-9]+/).filter((word, at, all) => word !== all[at - 1]);
  return words.map((word) => word[0].toUpperCase() + (word === word.toUpperCase() ? word.slice(1).toLowerCase() : word.slice(1))).join("");
}

function module(dialect, schema) {
  const frames = schema.allOf.map((condition) => frame(schema, condition));
  const isFrame = new Set(frames.map(({ name }) => name));
  const called = (name) => (isFrame.has(name) ? `${pascal(name)}Frame` : pascal(name));
  const writer = new TypeWriter(called);

  // What most frames have in common stands in one place; a frame that says more of it repeats it.
  const own = (each, field) => schema.$defs[each.name].properties?.[field] !== undefined;
  const shared = Object.keys(schema.properties ?? {}).filter(
    (field) => schema.properties[field] !== false && frames.every((each) => !each.telling.includes(field)) && !frames.every((each) => own(each, field)),
  );
  const envelope = { properties: Object.fromEntries(shared.map((field) => [field, schema.properties[field]])), required: schema.required };

  function interfaceOf(each) {
    const leftOut = shared.filter((field) => !own(each, field));
    const extending = shared.length === 0 ? "" : " extends Envelope";
    return `${described(each.schema)}export interface ${called(each.name)}${extending} {\n${writer.membersOf(each.schema, "  ", "", leftOut)}}\n`;
  }

  function definition([name, each]) {
    const isPlain = each.type === "object" && each.properties !== undefined && variants(each).length === 1;
    const text = isPlain ? `interface ${called(name)} {\n${writer.membersOf(each, "  ")}${writer.othersOf(each, "  ")}}\n` : `type ${called(name)} = ${writer.typeOf(each)};\n`;
    return `${described(each)}export ${text}`;
  }

  const others = Object.entries(schema.$defs).filter(([name]) => !isFrame.has(name));
  const parts = [
    head(`vectors/${dialect}/schema.json`),
    ...(shared.length === 0 ? [] : [`/** What every frame has. */\nexport interface Envelope {\n${writer.membersOf(envelope, "  ")}}\n`]),
    ...frames.map(interfaceOf),
    ...others.map(definition),
    `/** A frame of a type that the dialect defines. Others are allowed, and handed out as they came. */\nexport type Frame =\n${frames.map(({ name }) => `  | ${called(name)}`).join("\n")};\n`,
  ];
  return parts.join("\n");
}

/** Describes one kind of frame: its definition, and which fields tell it from the others. */
function frame(schema, condition) {
  const name = nameIn(condition.then);
  const constants = condition.if.properties ?? {};
  const absent = condition.if.not?.required ?? [];
  const telling = {
    properties: { ...constants, ...Object.fromEntries(absent.map((field) => [field, { type: "undefined" }])) },
    required: Object.keys(constants),
  };
  const merged = merge(merge(schema, schema.$defs[name]), telling);
  // Of fields that stand for each other, a frame has only the one that it must have; of forbidden ones, none.
  const alternatives = (schema.anyOf ?? []).flatMap(({ required }) => required);
  const isLeftOut = (field) => merged.properties[field] === false || (alternatives.includes(field) && !merged.required.includes(field) && !absent.includes(field));
  const properties = Object.fromEntries(Object.entries(merged.properties).filter(([field]) => !isLeftOut(field)));
  return { name, telling: [...Object.keys(telling.properties), ...alternatives], schema: { ...merged, properties, description: schema.$defs[name].description, "x-section": schema.$defs[name]["x-section"] } };
}

/** Writes a definition's words, and where the dialect's document has it. */
function described({ description, "x-section": section }) {
  return comment(section === undefined || description === undefined ? description : `${description} (${section})`);
}
