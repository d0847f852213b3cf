import { client } from "../../client";
import { ndjsonSplitter } from "./wire/splitFrames";

/** A frame of a record. */
export interface RecordFrame {
  cursor: string;
  /** Text as the server sends it. */
  text: string;
  /** Parsed frame; undefined if it is not an object. */
  value: unknown;
}

/** Upper bound of the frames that a dialect encodes a record to. */
const maxFrames = 64;

/** Loads the frames of a record in a dialect, or as it was stored. */
export async function loadRecordFrames(run: string, seq: number, format: { dialect?: string; raw?: boolean }, signal: AbortSignal): Promise<RecordFrame[]> {
  const response = await client.runs.open(run, { ...format, framing: "ndjson", cursors: true, follow: false, after: String(seq - 1), limit: maxFrames, signal });
  const frames: RecordFrame[] = [];
  for (const { cursor, text } of ndjsonSplitter()(await response.text())) {
    if (cursor === undefined || Number.parseInt(cursor, 10) !== seq) break;
    frames.push({ cursor, text: text.trimEnd(), value: parseObject(text) });
  }
  return frames;
}

function parseObject(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
