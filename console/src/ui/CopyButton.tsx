import { useEffect, useRef, useState } from "react";
import { useText } from "../text";
import { IconButton } from "./Button";

interface CopyButtonProps {
  /** Text to copy, or a function that returns it. */
  text: string | (() => string);
  label?: string;
  className?: string | undefined;
}

/** Button that copies a text. */
export function CopyButton({ text, label, className }: CopyButtonProps) {
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
      <span className="visually-hidden" role="status">
        {copied ? t.action.copied : ""}
      </span>
    </>
  );
}

/** Copies a text to the clipboard; returns whether it succeeded. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyThroughSelection(text);
  }
}

/** Fallback for pages over plain HTTP, which have no clipboard API. */
function copyThroughSelection(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
