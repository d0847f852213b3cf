import { createContext, use } from "react";
import type { Draft } from "./draft";

/** State of a form that its fields share. */
export interface Form {
  /** Returns the error text of a field, if it should be shown. */
  errorAt(pointer: string): string | undefined;
  /** Replaces the draft of a field. */
  change(path: readonly (string | number)[], pointer: string, draft: Draft): void;
  /** Marks a field as touched when it loses focus. */
  markTouched(pointer: string): void;
  /** Returns the id of a field's element. */
  idOf(pointer: string): string;
  disabled: boolean;
}

export const FormContext = createContext<Form | null>(null);

/** Returns the form that a field belongs to. */
export function useForm(): Form {
  const form = use(FormContext);
  if (form === null) throw new Error("useForm outside of a form");
  return form;
}
