// The types of the model, from the JSON Schema of the Rust crate.
import { readFileSync } from "node:fs";
import path from "node:path";
import { comment, literal, nameIn, TypeWriter } from "./type-writer.mjs";

/** What all events have, and stands in one place. */
const ENVELOPE = ["seq", "at", "thread_id", "run_id", "step_id", "subagent_run_id", "extra"];

/** Written by hand, because types can say more than a schema, or because nobody needs them here. */
const LEFT_OUT = new Set(["Event", "KnownEvent", "UnknownEvent", "Problem", "FramePage", "Id", "Ok", "Imported"]);

/** Definitions whose names are taken by something else. */
const RENAMED = { Id: "string", Status: "RunStatus" };

/** Fields of which the schema says less than is known. */
const KNOWN = { "Interaction.status": '"open" | Decision' };

/** Writes src/generated.ts. */
export function modelTypes(root) {
  const { $defs: definitions } = JSON.parse(readFileSync(path.join(root, "crates/runwire-model/schema/runwire.schema.json"), "utf8"));
  const events = definitions.KnownEvent.oneOf.map(nameIn);
  const isEvent = new Set(events);
  const called = (name) => (isEvent.has(name) ? `${name}Event` : (RENAMED[name] ?? name));
  const writer = new TypeWriter(called, KNOWN);

  function envelope() {
    const [first] = events;
    const { properties, required } = definitions[first];
    const shared = { properties: Object.fromEntries(ENVELOPE.map((key) => [key, properties[key]])), required };
    return `/** What every event has around it. */\nexport interface Envelope {\n${writer.membersOf(shared, "  ")}}\n`;
  }

  function definition(name) {
    const schema = definitions[name];
    const head = comment(schema.description ?? described(name));
    if (isEvent.has(name)) {
      // Where an event cannot do without a part of the envelope, it says so.
      const required = new Set(schema.required);
      const repeated = ["step_id", "subagent_run_id"].filter((key) => required.has(key));
      const leftOut = ENVELOPE.filter((key) => !repeated.includes(key));
      return `${head}export interface ${called(name)} extends Envelope {\n${writer.membersOf(schema, "  ", name, leftOut)}}\n`;
    }
    if (schema.type === "object") return `${head}export interface ${called(name)} {\n${writer.membersOf(schema, "  ", name)}}\n`;
    return `${head}export type ${called(name)} = ${writer.typeOf(schema)};\n`;
  }

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

/** Finds words for a definition that has none of its own. */
function described(name) {
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return `The server's ${words}.`;
}
