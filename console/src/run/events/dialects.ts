import type { Dialect } from "@runwire/client";

/** Every dialect that a run can be read in. */
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

/** Reads a dialect's name; nothing if it is none. */
export function dialectNamed(name: string | null): Dialect | undefined {
  return dialects.find((dialect) => dialect === name);
}
