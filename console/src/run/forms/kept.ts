import type { Draft } from "./draft";

/** A larger draft is not kept: storage is small, and shared by the whole page. */
const mostCharacters = 200_000;

/** Names the draft of a question. */
export function draftKey(run: string, interaction: string): string {
  return `runwire.draft.${run}.${interaction}`;
}

/** Gives what was typed before a reload; nothing where storage is forbidden. */
export function keptDraft(key: string): Draft | undefined {
  try {
    const text = sessionStorage.getItem(key);
    return text === null ? undefined : (JSON.parse(text) as Draft);
  } catch {
    return undefined;
  }
}

/** Keeps what is typed, so that a reload loses none of it; nothing forgets it. */
export function keepDraft(key: string, draft: Draft | undefined): void {
  try {
    const text = draft === undefined ? undefined : JSON.stringify(draft);
    if (text === undefined || text.length > mostCharacters) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  } catch {
    // A browser that forbids storage keeps the draft as long as the page, nothing else.
  }
}
