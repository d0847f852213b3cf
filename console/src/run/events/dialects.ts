import { DIALECTS, type Dialect } from "@runwire/client";

/** Returns the dialect of a name; undefined if there is none. */
export function parseDialect(name: string | null): Dialect | undefined {
  return DIALECTS.find((dialect) => dialect === name);
}
