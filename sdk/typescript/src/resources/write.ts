import type { Written } from "../generated.js";
import type { Http } from "../http.js";
import type { WriteOptions } from "./types.js";

/** Writes frames as NDJSON; they are durable when the promise resolves. */
export function write(http: Http, path: readonly string[], frames: Iterable<unknown>, options: WriteOptions): Promise<Written> {
  const headers: Record<string, string> = { "content-type": "application/x-ndjson" };
  if (options.producer !== undefined) {
    headers["producer-id"] = options.producer;
    headers["producer-epoch"] = String(options.epoch ?? 0);
    headers["producer-seq"] = String(options.seq ?? 0);
  }
  let body = "";
  for (const frame of frames) body += `${typeof frame === "string" ? frame : JSON.stringify(frame)}\n`;
  const query = { dialect: options.dialect, end: options.end, thread: options.thread };
  return http.json<Written>({ method: "POST", path, query, headers, body, signal: options.signal });
}
