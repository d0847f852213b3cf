import { isClosed, type Run } from "@runwire/client";

/** Gives the first line of a text, if there is anything in it. */
export function firstLine(text: string | null): string | null {
  const line = text?.trim().split("\n", 1)[0]?.trim() ?? "";
  return line === "" ? null : line;
}

/** Shortens an id that nobody reads. The end of a time-ordered one tells it apart, not its beginning; a name stays. */
export function shortId(id: string): string {
  return /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(id) ? `…${id.slice(-8)}` : id;
}

/** Tells whether a run may still change. */
export function isOpen(run: Pick<Run, "status">): boolean {
  return !isClosed(run.status);
}
