import { useEffect, useRef, useState } from "react";
import { useText } from "../text";
import { IconButton } from "./Button";

interface CopyProps {
  /** What is copied, or how to get it when it is asked for. */
  text: string | (() => string);
  label?: string;
  className?: string | undefined;
}

/** Copies a text, and says so for a moment. */
export function Copy({ text, label, className }: CopyProps) {
  const { t } = useText();
  const [copied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    if (!(await copyText(typeof text === "string" ? text : text()))) return;
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), 1500);
  };
  return (
    <>
      <IconButton
        icon={copied ? "check" : "copy"}
        label={copied ? t.action.copied : (label ?? t.action.copy)}
        size="small"
        className={className}
        onClick={() => void copy()}
      />
      <span className="unseen" role="status">
        {copied ? t.action.copied : ""}
      </span>
    </>
  );
}

/** Puts a text on the clipboard; tells whether that was allowed. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyThroughSelection(text);
  }
}

/** Pages that are served over plain HTTP from another machine have no clipboard of their own. */
function copyThroughSelection(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
