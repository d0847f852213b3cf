import { isClosed, type Run } from "@runwire/client";

/** Returns the first line of a text; null if it is empty. */
export function firstLine(text: string | null): string | null {
  const line = text?.trim().split("\n", 1)[0]?.trim() ?? "";
  return line === "" ? null : line;
}

/** Shortens a UUID to its end, which differs in time-ordered ids; other ids stay. */
export function shortId(id: string): string {
  return /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(id) ? `…${id.slice(-8)}` : id;
}

/** Returns true if a run may still change. */
export function isOpen(run: Pick<Run, "status">): boolean {
  return !isClosed(run.status);
}
