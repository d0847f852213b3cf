import type { TextPart } from "@runwire/client";
import { useText } from "../../text";
import { Badge, CopyButton, Markdown } from "../../ui";
import { Values } from "../forms/Values";
import { useIncrementalText } from "./useIncrementalText";
import style from "./Conversation.module.css";

/** A text of the agent, rendered while it is streamed. */
export function TextMessage({ part, agent }: { part: TextPart; agent: string | null }) {
  const { t } = useText();
  const texts = t.run.parts;
  const isOver = part.endedAt !== undefined;
  const text = useIncrementalText(part.text);
  const isPlain = part.format === "text" || part.format === "plain" || part.format === "html";
  if (isOver && part.text === "" && part.keyPoints === undefined && part.error === undefined) return null;
  return (
    <article className={style["text"]} aria-label={part.role ?? agent ?? texts.agent}>
      {part.role !== undefined && <p className={style["role"]}>{part.role}</p>}
      {isPlain ? <p className={style["plain"]}>{text}</p> : <Markdown text={text} streaming={!isOver} />}
      <Points points={part.keyPoints} title={texts.keyPoints} />
      <Points points={part.suggestedActions} title={texts.suggested} />
      {part.error !== undefined && part.error !== null && <Values value={part.error} label={texts.failed} />}
      {isOver && part.text !== "" && (
        <div className={style["textActions"]}>
          {part.status !== undefined && part.status !== "success" && <Badge tone="warn">{texts.ending[part.status] ?? part.status}</Badge>}
          <CopyButton text={part.text} label={texts.copyText} />
        </div>
      )}
    </article>
  );
}

/** List of key points or suggested actions; values that are not strings are shown as data. */
function Points({ points, title }: { points: unknown; title: string }) {
  if (!Array.isArray(points) || points.length === 0) return null;
  return (
    <div className={style["points"]}>
      <p className={style["pointsTitle"]}>{title}</p>
      <ul>
        {points.map((point, index) => (
          <li key={index}>{typeof point === "string" ? point : <Values value={point} label={title} />}</li>
        ))}
      </ul>
    </div>
  );
}
