import { client } from "../../client";
import { ndjsonCutter } from "./wire/cut";

/** A frame that a record becomes. */
export interface RecordFrame {
  cursor: string;
  /** Exactly as the server sends it. */
  text: string;
  /** What it says; nothing if it is no object. */
  value: unknown;
}

/** More frames than any dialect makes of one record. */
const most = 64;

/** Asks what a record of a run is in a dialect, or as it was stored. */
export async function framesOf(run: string, seq: number, form: { dialect?: string; raw?: boolean }, signal: AbortSignal): Promise<RecordFrame[]> {
  const response = await client.runs.open(run, { ...form, framing: "ndjson", cursors: true, follow: false, after: String(seq - 1), limit: most, signal });
  const frames: RecordFrame[] = [];
  for (const { cursor, text } of ndjsonCutter()(await response.text())) {
    if (cursor === undefined || Number.parseInt(cursor, 10) !== seq) break;
    frames.push({ cursor, text: text.trimEnd(), value: valueOf(text) });
  }
  return frames;
}

function valueOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
