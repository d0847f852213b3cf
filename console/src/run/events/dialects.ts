import type { Dialect } from "@runwire/client";

/** The dialects that a run can be read in. */
export const dialects: readonly Dialect[] = [
  "runwire",
  "ag-ui",
  "agio",
  "streaming-engine",
  "loom",
  "loom-export",
  "easyflow-chat",
  "social-app",
  "text",
];

/** Returns the dialect of a name; undefined if there is none. */
export function parseDialect(name: string | null): Dialect | undefined {
  return dialects.find((dialect) => dialect === name);
}
