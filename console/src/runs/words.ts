import { isClosed, type Run } from "@runwire/client";

/** Gives the first line of a text, if there is anything in it. */
export function firstLine(text: string | null): string | null {
  const line = text?.trim().split("\n", 1)[0]?.trim() ?? "";
  return line === "" ? null : line;
}

/** Shortens an id that is too long to read. The end of a time-ordered id tells it apart, not its beginning. */
export function shortId(id: string): string {
  return id.length <= 14 ? id : `…${id.slice(-8)}`;
}

/** Tells whether a run may still change. */
export function isOpen(run: Pick<Run, "status">): boolean {
  return !isClosed(run.status);
}
