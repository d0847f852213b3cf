import type { ThinkingPart } from "@runwire/client";
import { useId } from "react";
import { useText } from "../../text";
import { classNames, Duration, Icon, Markdown } from "../../ui";
import { useCollapsible } from "./conversationContext";
import { Collapsible } from "./Collapsible";
import { useIncrementalText } from "./useIncrementalText";
import style from "./Conversation.module.css";

/** A thinking text: expanded while it is streamed, then collapsed to its duration, unless a person toggled it. */
export function Thinking({ part }: { part: ThinkingPart }) {
  const { t, format } = useText();
  const id = useId();
  const isOver = part.endedAt !== undefined;
  const { open, toggle } = useCollapsible(part.id, !isOver);
  if (isOver && part.text.trim() === "") return null;
  return (
    <section className={style["thinking"]}>
      <button type="button" className={style["toggle"]} aria-expanded={open} aria-controls={id} onClick={toggle}>
        <Icon name="thought" className={classNames(!isOver && style["pulsing"])} />
        {part.endedAt === undefined ? (
          <>
            {t.run.parts.thinking} <Duration from={new Date(part.startedAt)} />
          </>
        ) : (
          t.run.parts.thought(format.duration(part.endedAt - part.startedAt))
        )}
        <Icon name="chevron" size={12} className={classNames(style["chevron"], open && style["rotated"])} />
      </button>
      <Collapsible open={open} id={id}>
        <ThinkingText text={part.text} isOver={isOver} />
      </Collapsible>
    </section>
  );
}

function ThinkingText({ text, isOver }: { text: string; isOver: boolean }) {
  return (
    <div className={style["thinkingText"]}>
      <Markdown text={useIncrementalText(text)} streaming={!isOver} />
    </div>
  );
}
