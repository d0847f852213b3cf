// Writes src/generated.ts from the JSON Schema of the Rust model; with `--check`, only tells whether it is fresh.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const SCHEMA = path.join(HERE, "../../../crates/runwire-model/schema/runwire.schema.json");
const TARGET = path.join(HERE, "../src/generated.ts");

/** What all events have, and stands in one place. */
const ENVELOPE = ["seq", "at", "thread_id", "run_id", "step_id", "subagent_run_id", "extra"];

/** Written by hand, because types can say more than a schema, or because nobody needs them here. */
const LEFT_OUT = new Set(["Event", "KnownEvent", "UnknownEvent", "Problem", "FramePage", "Id", "Ok", "Imported"]);

/** Definitions whose names are taken by something else. */
const RENAMED = { Status: "RunStatus" };

/** Fields of which the schema says less than is known. */
const KNOWN = { "Interaction.status": '"open" | Decision' };

const { $defs: definitions } = JSON.parse(readFileSync(SCHEMA, "utf8"));
const events = definitions.KnownEvent.oneOf.map(nameIn);
const isEvent = new Set(events);

function nameIn({ $ref }) {
  return $ref.slice("#/$defs/".length);
}

/** Tells what a definition is called in TypeScript. */
function called(name) {
  if (isEvent.has(name)) return `${name}Event`;
  return RENAMED[name] ?? name;
}

function comment(description, indent = "") {
  return description === undefined ? "" : `${indent}/** ${description.replaceAll("\n", " ").replaceAll("*/", "* /")} */\n`;
}

function literal(value) {
  return JSON.stringify(value);
}

/** Writes the type that a schema describes. */
function typeOf(schema, indent) {
  if (schema.$ref !== undefined) return nameIn(schema) === "Id" ? "string" : called(nameIn(schema));
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum !== undefined) return schema.enum.map(literal).join(" | ");
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices !== undefined) return choices.map((choice) => typeOf(choice, indent)).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(" | ");
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array": {
      const item = typeOf(schema.items ?? {}, indent);
      return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      if (schema.properties === undefined) return "Record<string, unknown>";
      return `{\n${membersOf(schema, `${indent}  `)}${indent}}`;
    default:
      return "unknown";
  }
}

function membersOf(schema, indent, name = "", leftOut = []) {
  const required = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties).filter(([key]) => !leftOut.includes(key));
  return members
    .map(([key, member]) => {
      const type = KNOWN[`${name}.${key}`] ?? typeOf(member, indent);
      // What is handed to the server may be handed over as undefined.
      const absent = required.has(key) ? "" : name.startsWith("New") ? " | undefined" : "";
      return `${comment(member.description, indent)}${indent}${key}${required.has(key) ? "" : "?"}: ${type}${type === "unknown" ? "" : absent};\n`;
    })
    .join("");
}

function envelope() {
  const [first] = events;
  const { properties, required } = definitions[first];
  const shared = { properties: Object.fromEntries(ENVELOPE.map((key) => [key, properties[key]])), required };
  return `/** What every event has around it. */\nexport interface Envelope {\n${membersOf(shared, "  ")}}\n`;
}

function definition(name) {
  const schema = definitions[name];
  const head = comment(schema.description ?? described(name));
  if (isEvent.has(name)) {
    // Where an event cannot do without a part of the envelope, it says so.
    const required = new Set(schema.required);
    const repeated = ["step_id", "subagent_run_id"].filter((key) => required.has(key));
    return `${head}export interface ${called(name)} extends Envelope {\n${membersOf(schema, "  ", name, ENVELOPE.filter((key) => !repeated.includes(key)))}}\n`;
  }
  if (schema.type === "object") return `${head}export interface ${called(name)} {\n${membersOf(schema, "  ", name)}}\n`;
  return `${head}export type ${called(name)} = ${typeOf(schema, "")};\n`;
}

/** Finds words for a definition that has none of its own. */
function described(name) {
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return `The server's ${words}.`;
}

function whole() {
  const others = Object.keys(definitions).filter((name) => !LEFT_OUT.has(name));
  const parts = [
    "// Written by scripts/types.mjs from crates/runwire-model/schema/runwire.schema.json: `npm run types`. Do not edit.\n",
    envelope(),
    ...others.map(definition),
    `/** An event of this version's vocabulary. */\nexport type KnownEvent =\n${events.map((name) => `  | ${called(name)}`).join("\n")};\n`,
    `/** Every type of the vocabulary. */\nexport const EVENT_TYPES: readonly KnownEvent["type"][] = [\n${events
      .map((name) => `  ${literal(definitions[name].properties.type.const)},`)
      .join("\n")}\n];\n`,
  ];
  return parts.join("\n");
}

const wanted = whole();
if (!process.argv.includes("--check")) writeFileSync(TARGET, wanted);
else if (readFileSync(TARGET, "utf8") !== wanted) {
  console.error("src/generated.ts is not what the schema says: run `npm run types` and look at the difference");
  process.exit(1);
}
