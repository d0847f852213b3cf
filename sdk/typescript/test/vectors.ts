import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { VECTORS } from "./server.js";

/** A golden vector. */
export interface Vector {
  name: string;
  folder: string;
}

function folders(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

/** Returns the vectors of all dialects, or of one. */
export function vectors(only?: string): Vector[] {
  const dialects = folders(VECTORS).filter((dialect) => only === undefined || dialect === only);
  return dialects.flatMap((dialect) => folders(path.join(VECTORS, dialect)).map((name) => ({ name: `${dialect}/${name}`, folder: path.join(VECTORS, dialect, name) })));
}

/** Parses an NDJSON file. */
export function lines<T>(file: string): T[] {
  return readFileSync(file, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as T);
}
