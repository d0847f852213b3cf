import type { Draft } from "./draft";

/** Larger drafts are not stored: session storage is small and shared. */
const maxDraftLength = 200_000;

/** Returns the storage key of an interaction's draft. */
export function draftKey(run: string, interaction: string): string {
  return `runwire.draft.${run}.${interaction}`;
}

/** Returns the draft before a reload; undefined without session storage. */
export function loadDraft(key: string): Draft | undefined {
  try {
    const text = sessionStorage.getItem(key);
    return text === null ? undefined : (JSON.parse(text) as Draft);
  } catch {
    return undefined;
  }
}

/** Stores a draft, so that it survives a reload; undefined removes it. */
export function storeDraft(key: string, draft: Draft | undefined): void {
  try {
    const text = draft === undefined ? undefined : JSON.stringify(draft);
    if (text === undefined || text.length > maxDraftLength) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  } catch {
    // Without session storage, the draft is lost on reload.
  }
}
