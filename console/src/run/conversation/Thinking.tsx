import type { ThinkingPart } from "@runwire/client";
import { useId } from "react";
import { useText } from "../../text";
import { classes, Duration, Icon, Markdown } from "../../ui";
import { useFold } from "./context";
import { Fold } from "./Fold";
import { useGrowing } from "./useGrowing";
import style from "./Conversation.module.css";

/** A thought: open while it comes, then folded to its duration, unless a person chose otherwise. */
export function Thinking({ part }: { part: ThinkingPart }) {
  const { t, format } = useText();
  const id = useId();
  const isOver = part.endedAt !== undefined;
  const { open, toggle } = useFold(part.id, !isOver);
  if (isOver && part.text.trim() === "") return null;
  return (
    <section className={style["thinking"]}>
      <button type="button" className={style["foldHead"]} aria-expanded={open} aria-controls={id} onClick={toggle}>
        <Icon name="thought" className={classes(!isOver && style["breathing"])} />
        {part.endedAt === undefined ? (
          <>
            {t.run.parts.thinking} <Duration from={new Date(part.startedAt)} />
          </>
        ) : (
          t.run.parts.thought(format.duration(part.endedAt - part.startedAt))
        )}
        <Icon name="chevron" size={12} className={classes(style["chevron"], open && style["turned"])} />
      </button>
      <Fold open={open} id={id}>
        <ThoughtText text={part.text} isOver={isOver} />
      </Fold>
    </section>
  );
}

function ThoughtText({ text, isOver }: { text: string; isOver: boolean }) {
  return (
    <div className={style["thoughtText"]}>
      <Markdown text={useGrowing(text)} streaming={!isOver} />
    </div>
  );
}
