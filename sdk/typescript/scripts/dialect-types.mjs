// Generates the types of each dialect's frames from the JSON Schemas in vectors/.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { comment, literal, merge, nameIn, TypeWriter, variants } from "./type-writer.mjs";

/** The dialect whose frames are the events of the model. */
const MODEL_DIALECT = "runwire";

/** Returns the contents of the files of src/dialects by name. */
export function dialectTypes(root) {
  const vectors = path.join(root, "vectors");
  const names = readdirSync(vectors).filter((name) => name !== MODEL_DIALECT && existsSync(path.join(vectors, name, "schema.json")));
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
    `/** The names of these dialects. */\nexport const FRAME_DIALECTS: readonly (keyof DialectFrames)[] = [${names.map(literal).join(", ")}];\n`,
  ];
  return parts.join("\n");
}

/** Converts `session_start`, `RUN_STARTED` and `llm.message` to PascalCase, and `tool.tool_call` to `ToolCall`. */
function pascal(name) {
  const words = name.split(/[^A-Za-z0-9]+/).filter((word, at, all) => word !== all[at - 1]);
  return words.map((word) => word[0].toUpperCase() + (word === word.toUpperCase() ? word.slice(1).toLowerCase() : word.slice(1))).join("");
}

function module(dialect, schema) {
  const frames = schema.allOf.map((condition) => frame(schema, condition));
  const isFrame = new Set(frames.map(({ name }) => name));
  const typeName = (name) => (isFrame.has(name) ? `${pascal(name)}Frame` : pascal(name));
  const writer = new TypeWriter(typeName);

  // Fields shared by most frames go into `Envelope`; a frame that refines one repeats it.
  const own = (each, field) => schema.$defs[each.name].properties?.[field] !== undefined;
  const shared = Object.keys(schema.properties ?? {}).filter(
    (field) => schema.properties[field] !== false && frames.every((each) => !each.discriminators.includes(field)) && !frames.every((each) => own(each, field)),
  );
  const envelope = { properties: Object.fromEntries(shared.map((field) => [field, schema.properties[field]])), required: schema.required };

  function interfaceOf(each) {
    const omitted = shared.filter((field) => !own(each, field));
    const extendsClause = shared.length === 0 ? "" : " extends Envelope";
    return `${docComment(each.schema)}export interface ${typeName(each.name)}${extendsClause} {\n${writer.membersOf(each.schema, "  ", "", omitted)}}\n`;
  }

  function definition([name, each]) {
    const isPlain = each.type === "object" && each.properties !== undefined && variants(each).length === 1;
    const text = isPlain ? `interface ${typeName(name)} {\n${writer.membersOf(each, "  ")}${writer.othersOf(each, "  ")}}\n` : `type ${typeName(name)} = ${writer.typeOf(each)};\n`;
    return `${docComment(each)}export ${text}`;
  }

  const others = Object.entries(schema.$defs).filter(([name]) => !isFrame.has(name));
  const parts = [
    head(`vectors/${dialect}/schema.json`),
    ...(shared.length === 0 ? [] : [`/** What every frame has. */\nexport interface Envelope {\n${writer.membersOf(envelope, "  ")}}\n`]),
    ...frames.map(interfaceOf),
    ...others.map(definition),
    `/** A frame of a type that the dialect defines. Others are allowed, and handed out as they came. */\nexport type Frame =\n${frames.map(({ name }) => `  | ${typeName(name)}`).join("\n")};\n`,
  ];
  return parts.join("\n");
}

/** Returns the schema of a frame type and its discriminating fields. */
function frame(schema, condition) {
  const name = nameIn(condition.then);
  const constants = condition.if.properties ?? {};
  const absent = condition.if.not?.required ?? [];
  const discriminators = {
    properties: { ...constants, ...Object.fromEntries(absent.map((field) => [field, { type: "undefined" }])) },
    required: Object.keys(constants),
  };
  const merged = merge(merge(schema, schema.$defs[name]), discriminators);
  // Of alternative fields, a frame has only its required one; of forbidden ones, none.
  const alternatives = (schema.anyOf ?? []).flatMap(({ required }) => required);
  const isOmitted = (field) => merged.properties[field] === false || (alternatives.includes(field) && !merged.required.includes(field) && !absent.includes(field));
  const properties = Object.fromEntries(Object.entries(merged.properties).filter(([field]) => !isOmitted(field)));
  return { name, discriminators: [...Object.keys(discriminators.properties), ...alternatives], schema: { ...merged, properties, description: schema.$defs[name].description, "x-section": schema.$defs[name]["x-section"] } };
}

/** Returns the doc comment of a definition with the section of the dialect's document. */
function docComment({ description, "x-section": section }) {
  return comment(section === undefined || description === undefined ? description : `${description} (${section})`);
}
