// Generates the types of the event model and of HTTP from the JSON Schemas of the Rust crates.
import { readFileSync } from "node:fs";
import path from "node:path";
import { comment, literal, nameIn, TypeWriter } from "./type-writer.mjs";

/** Fields of all events; they go into `Envelope`. */
const ENVELOPE = ["seq", "at", "thread_id", "run_id", "step_id", "subagent_run_id", "extra"];

/** Definitions without a generated type: written by hand, or not used by the client. */
const OMITTED = new Set(["Event", "KnownEvent", "UnknownEvent", "Problem", "FramePage", "Id", "Ok", "Imported"]);

/** Definitions with another name in TypeScript. */
const RENAMED = { Id: "string", Status: "RunStatus" };

/** Fields with a more precise type than the schema has. */
const REFINED_FIELDS = { "Interaction.status": '"open" | Decision' };

/** Returns the contents of src/generated.ts. */
export function modelTypes(root) {
  const read = (file) => JSON.parse(readFileSync(path.join(root, "crates", file), "utf8")).$defs;
  const definitions = { ...read("runwire-model/schema/runwire.schema.json"), ...read("runwire-server/schema/http.schema.json") };
  const events = definitions.KnownEvent.oneOf.map(nameIn);
  const isEvent = new Set(events);
  const typeName = (name) => (isEvent.has(name) ? `${name}Event` : (RENAMED[name] ?? name));
  const writer = new TypeWriter(typeName, REFINED_FIELDS);

  function envelope() {
    const [first] = events;
    const { properties, required } = definitions[first];
    const shared = { properties: Object.fromEntries(ENVELOPE.map((key) => [key, properties[key]])), required };
    return `/** What every event has around it. */\nexport interface Envelope {\n${writer.membersOf(shared, "  ")}}\n`;
  }

  function definition(name) {
    const schema = definitions[name];
    const head = comment(schema.description ?? defaultDescription(name));
    if (isEvent.has(name)) {
      // An event repeats the envelope fields that it requires.
      const required = new Set(schema.required);
      const repeated = ["step_id", "subagent_run_id"].filter((key) => required.has(key));
      const omitted = ENVELOPE.filter((key) => !repeated.includes(key));
      return `${head}export interface ${typeName(name)} extends Envelope {\n${writer.membersOf(schema, "  ", name, omitted)}}\n`;
    }
    if (schema.type === "object") return `${head}export interface ${typeName(name)} {\n${writer.membersOf(schema, "  ", name)}}\n`;
    return `${head}export type ${typeName(name)} = ${writer.typeOf(schema)};\n`;
  }

  const others = Object.keys(definitions).filter((name) => !OMITTED.has(name));
  const parts = [
    "// Written by scripts/types.mjs from crates/*/schema/*.schema.json: `npm run types`. Do not edit.\n",
    envelope(),
    ...others.map(definition),
    `/** An event of this version's vocabulary. */\nexport type KnownEvent =\n${events.map((name) => `  | ${typeName(name)}`).join("\n")};\n`,
    `/** Every type of the vocabulary. */\nexport const EVENT_TYPES: readonly KnownEvent["type"][] = [\n${events
      .map((name) => `  ${literal(definitions[name].properties.type.const)},`)
      .join("\n")}\n];\n`,
  ];
  return parts.join("\n");
}

/** Returns a description for a definition without one. */
function defaultDescription(name) {
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return `The server's ${words}.`;
}
