import type { Part } from "@runwire/client";
import { memo, useEffect, useRef, useState, type ReactNode } from "react";
import { useText } from "../../text";
import { Boundary, classes } from "../../ui";
import { DataBlock } from "../data";
import { rowsOf, type Chunk } from "./chunks";
import { useFresh, useReading } from "./context";
import { ActivityRow, CustomRow, Failure, Notice, Subagent } from "./Notes";
import { Question } from "./Question";
import { TextMessage } from "./Said";
import { Thinking } from "./Thinking";
import { ToolCalls } from "./ToolCard";
import { UserMessage } from "./UserMessage";
import style from "./Conversation.module.css";

/** How far outside of what is seen parts are drawn. */
const margin = "1500px 0px";
const guessedHeight = 72;

interface ChunkViewProps {
  chunk: Chunk;
  /** Whether it is drawn wherever it is: the end, the place to come back to. */
  pinned: boolean;
  /** The height of each chunk when it was last seen. */
  heights: Map<number, number>;
}

/** Some parts of the conversation; out of sight they are only as much room as they took. */
export const ChunkView = memo(function ChunkView({ chunk, pinned, heights }: ChunkViewProps) {
  const frame = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(pinned);
  const { start } = chunk;
  useEffect(() => {
    const element = frame.current;
    const scroller = element?.closest("[data-scroller]");
    if (!element || !scroller) return;
    const observer = new IntersectionObserver(
      (entries) => {
        const entry = entries.at(-1);
        if (entry === undefined || entry.boundingClientRect.height === 0) return;
        heights.set(start, entry.boundingClientRect.height);
        setNear(entry.isIntersecting);
      },
      { root: scroller, rootMargin: margin },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [start, heights]);
  const isDrawn = near || pinned || chunk.parts.some(isOpenQuestion);
  if (!isDrawn) {
    return <div ref={frame} aria-hidden="true" style={{ height: heights.get(start) ?? chunk.parts.length * guessedHeight }} />;
  }
  return (
    <div ref={frame} className={style["chunk"]}>
      <Rows chunk={chunk} />
    </div>
  );
});

function isOpenQuestion(part: Part): boolean {
  return part.kind === "interaction" && part.status === "open";
}

function Rows({ chunk }: { chunk: Chunk }) {
  let step = chunk.stepBefore;
  return rowsOf(chunk.parts).map((row) => {
    const first = row.kind === "part" ? row.part : row.calls[0];
    if (first === undefined) return null;
    const begins = first.stepId !== undefined && first.stepId !== step;
    step = first.stepId ?? step;
    return (
      <RowFrame key={first.id} id={first.id} isCalls={row.kind === "calls"} step={begins ? first.stepId : undefined}>
        {row.kind === "part" ? <PartView part={row.part} /> : <ToolCalls calls={row.calls} />}
      </RowFrame>
    );
  });
}

function RowFrame({ id, isCalls, step, children }: { id: string; isCalls: boolean; step: string | undefined; children: ReactNode }) {
  const isFresh = useFresh(isCalls ? `row ${id}` : id);
  return (
    <>
      {step !== undefined && <StepMark id={step} />}
      <div className={classes(style["row"], isFresh && style["fresh"])} {...(!isCalls && { "data-part": id })}>
        <Boundary of={id}>{children}</Boundary>
      </div>
    </>
  );
}

/** Names the step that begins here, where the run has several. */
function StepMark({ id }: { id: string }) {
  const { t, format } = useText();
  const { steps } = useReading();
  const step = steps.get(id);
  if (step === undefined || steps.size < 2) return null;
  return (
    <p className={classes(style["stepMark"], step.status === "failed" && style["stepFailed"])}>
      <span className="unseen">{t.run.parts.step} </span>
      {step.name}
      {step.endedAt !== undefined && <span className="figures">{format.duration(step.endedAt - step.startedAt)}</span>}
    </p>
  );
}

const PartView = memo(function PartView({ part }: { part: Part }) {
  const { agent } = useReading();
  switch (part.kind) {
    case "user":
      return <UserMessage part={part} />;
    case "text":
      return <TextMessage part={part} agent={agent} />;
    case "thinking":
      return <Thinking part={part} />;
    case "tool":
      return <ToolCalls calls={[part]} />;
    case "data":
      return <DataBlock part={part} />;
    case "interaction":
      return <Question part={part} />;
    case "notice":
      return <Notice part={part} />;
    case "error":
      return <Failure part={part} />;
    case "subagent":
      return <Subagent part={part} />;
    case "activity":
      return <ActivityRow part={part} />;
    case "custom":
      return <CustomRow part={part} />;
  }
});
