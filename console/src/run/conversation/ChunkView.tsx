import type { Part } from "@runwire/client";
import { memo, useEffect, useRef, useState, type ReactNode } from "react";
import { useText } from "../../text";
import { ErrorBoundary, classNames } from "../../ui";
import { DataBlock } from "../data";
import { rowsOf, type Chunk } from "./chunks";
import { useIsNew, useConversation } from "./conversationContext";
import { ActivityRow, CustomRow, Failure, Notice, Subagent } from "./NoticeRows";
import { InteractionView } from "./InteractionView";
import { TextMessage } from "./TextMessage";
import { Thinking } from "./Thinking";
import { ToolCalls } from "./ToolCalls";
import { UserMessage } from "./UserMessage";
import style from "./Conversation.module.css";

/** Distance outside of the viewport within which chunks are rendered. */
const renderMargin = "1500px 0px";
const estimatedRowHeight = 72;

interface ChunkViewProps {
  chunk: Chunk;
  /** Whether it is always rendered: the last chunk, and the one to restore the scroll position at. */
  isPinned: boolean;
  /** Last measured height of each chunk. */
  heights: Map<number, number>;
}

/** A chunk of the conversation; outside of the viewport it is a placeholder of the same height. */
export const ChunkView = memo(function ChunkView({ chunk, isPinned, heights }: ChunkViewProps) {
  const container = useRef<HTMLDivElement>(null);
  const [isNear, setIsNear] = useState(isPinned);
  const { start } = chunk;
  useEffect(() => {
    const element = container.current;
    const scroller = element?.closest("[data-scroller]");
    if (!element || !scroller) return;
    const observer = new IntersectionObserver(
      (entries) => {
        const entry = entries.at(-1);
        if (entry === undefined || entry.boundingClientRect.height === 0) return;
        heights.set(start, entry.boundingClientRect.height);
        setIsNear(entry.isIntersecting);
      },
      { root: scroller, rootMargin: renderMargin },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [start, heights]);
  const isRendered = isNear || isPinned || chunk.parts.some(isOpenInteraction);
  if (!isRendered) {
    return <div ref={container} aria-hidden="true" style={{ height: heights.get(start) ?? chunk.parts.length * estimatedRowHeight }} />;
  }
  return (
    <div ref={container} className={style["chunk"]}>
      <Rows chunk={chunk} />
    </div>
  );
});

function isOpenInteraction(part: Part): boolean {
  return part.kind === "interaction" && part.status === "open";
}

function Rows({ chunk }: { chunk: Chunk }) {
  let step = chunk.stepBefore;
  return rowsOf(chunk.parts).map((row) => {
    const first = row.kind === "part" ? row.part : row.calls[0];
    if (first === undefined) return null;
    const startsStep = first.stepId !== undefined && first.stepId !== step;
    step = first.stepId ?? step;
    return (
      <RowContainer key={first.id} id={first.id} isCalls={row.kind === "calls"} step={startsStep ? first.stepId : undefined}>
        {row.kind === "part" ? <PartView part={row.part} /> : <ToolCalls calls={row.calls} />}
      </RowContainer>
    );
  });
}

function RowContainer({ id, isCalls, step, children }: { id: string; isCalls: boolean; step: string | undefined; children: ReactNode }) {
  const isNew = useIsNew(isCalls ? `row ${id}` : id);
  return (
    <>
      {step !== undefined && <StepHeading id={step} />}
      <div className={classNames(style["row"], isNew && style["new"])} {...(!isCalls && { "data-part": id })}>
        <ErrorBoundary resetKey={id}>{children}</ErrorBoundary>
      </div>
    </>
  );
}

/** Heading of a step, if the run has several. */
function StepHeading({ id }: { id: string }) {
  const { t, format } = useText();
  const { steps } = useConversation();
  const step = steps.get(id);
  if (step === undefined || steps.size < 2) return null;
  return (
    <p className={classNames(style["stepHeading"], step.status === "failed" && style["stepFailed"])}>
      <span className="visually-hidden">{t.run.parts.step} </span>
      {step.name}
      {step.endedAt !== undefined && <span className="tabular-nums">{format.duration(step.endedAt - step.startedAt)}</span>}
    </p>
  );
}

const PartView = memo(function PartView({ part }: { part: Part }) {
  const { agent } = useConversation();
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
      return <InteractionView part={part} />;
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
