import { createContext, use } from "react";
import type { Draft } from "./draft";

/** What the fields of a form need of it. */
export interface Form {
  /** Tells what is wrong at a place, once it may be said. */
  errorAt(pointer: string): string | undefined;
  /** Takes what a person typed. */
  change(path: readonly (string | number)[], pointer: string, draft: Draft): void;
  /** Notes that a person has left a field. */
  leave(pointer: string): void;
  /** Names a field's element. */
  idOf(pointer: string): string;
  disabled: boolean;
}

export const FormContext = createContext<Form | null>(null);

/** Gives the form that a field is in. */
export function useForm(): Form {
  const form = use(FormContext);
  if (form === null) throw new Error("useForm outside of a form");
  return form;
}
