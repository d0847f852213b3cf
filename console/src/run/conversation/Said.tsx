import type { TextPart } from "@runwire/client";
import { useText } from "../../text";
import { Badge, Copy, Markdown } from "../../ui";
import { Values } from "../forms/Values";
import { useGrowing } from "./useGrowing";
import style from "./Conversation.module.css";

/** What the agent says, as it comes. */
export function TextMessage({ part, agent }: { part: TextPart; agent: string | null }) {
  const { t } = useText();
  const words = t.run.parts;
  const isOver = part.endedAt !== undefined;
  const text = useGrowing(part.text);
  const isPlain = part.format === "text" || part.format === "plain" || part.format === "html";
  if (isOver && part.text === "" && part.keyPoints === undefined && part.error === undefined) return null;
  return (
    <article className={style["text"]} aria-label={part.role ?? agent ?? words.agent}>
      {part.role !== undefined && <p className={style["role"]}>{part.role}</p>}
      {isPlain ? <p className={style["plain"]}>{text}</p> : <Markdown text={text} streaming={!isOver} />}
      <Points points={part.keyPoints} title={words.keyPoints} />
      <Points points={part.suggestedActions} title={words.suggested} />
      {part.error !== undefined && part.error !== null && <Values value={part.error} label={words.failed} />}
      {isOver && part.text !== "" && (
        <div className={style["textActs"]}>
          {part.status !== undefined && part.status !== "success" && <Badge tone="warn">{words.ending[part.status] ?? part.status}</Badge>}
          <Copy text={part.text} label={words.copyText} />
        </div>
      )}
    </article>
  );
}

/** Lists what an agent points out; words as words, anything else as it is. */
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
