import { isClosed, type Run } from "@runwire/client";
import type { UseRunResult } from "@runwire/client/react";
import { useMemo, useRef, useState } from "react";
import { useRouter } from "../../router";
import { useText } from "../../text";
import { Button, Empty, Icon, JsonTree, Loading } from "../../ui";
import { Composer } from "../composer";
import { ChunkView } from "./ChunkView";
import { Chunker } from "./chunks";
import { Column } from "./Column";
import { type ConversationState, ConversationContext } from "./conversationContext";
import { loadScrollPosition, useStickToEnd, type ScrollPosition } from "./useStickToEnd";
import style from "./Conversation.module.css";

interface ConversationProps {
  id: string;
  run: UseRunResult;
  summary: Run | undefined;
  isRetrying: boolean;
  onRetry: () => void;
}

/** Conversation of a run with the composer for the next message. */
export function Conversation({ id, run, summary, isRetrying, onRetry }: ConversationProps) {
  // The stored events are shown at once, not replayed.
  if (!run.isCaughtUp) return <Column><Loading lines={6} /></Column>;
  return <Parts id={id} run={run} summary={summary} isRetrying={isRetrying} onRetry={onRetry} />;
}

function Parts({ id, run, summary, isRetrying, onRetry }: ConversationProps) {
  const { t } = useText();
  const { navigate } = useRouter();
  const { view } = run;
  const content = useRef<HTMLDivElement>(null);
  const [chunker] = useState(() => new Chunker());
  const chunks = chunker.chunksOf(view.parts);
  const key = `runwire.scroll.${id}`;
  // An open run is shown at its end, an ended one from its start.
  const [initial] = useState<ScrollPosition | undefined>(() => loadScrollPosition(key) ?? (isClosed(view.status) ? undefined : { end: true }));
  const { isAtEnd, scrollToEnd } = useStickToEnd(content, true, initial, key);
  const [heights] = useState(() => new Map<number, number>());
  const [viewState] = useState(() => ({
    choices: new Map<string, boolean>(),
    seen: new Set<string>(view.parts.flatMap((part) => [part.id, `row ${part.id}`])),
  }));
  const steps = useMemo(() => new Map(view.steps.map((step) => [step.stepId, step])), [view.steps]);
  const threadId = view.threadId ?? summary?.thread_id ?? "";
  const agent = view.agent ?? summary?.agent ?? null;
  const conversation = useMemo<ConversationState>(
    () => ({ runId: id, threadId, agent, ...viewState, steps, isRetrying, onRetry: agent === null ? undefined : onRetry }),
    // `onRetry` is a new function on each render, but always does the same.
    [id, threadId, agent, viewState, steps, isRetrying],
  );
  const anchoredPart = initial?.end === false ? initial.part : undefined;
  const isOver = isClosed(view.status);
  return (
    <Column>
      <div ref={content} className={style["parts"]}>
        {view.parts.length === 0 && <Empty icon="threads" title={view.status === "pending" ? t.run.operation.pending : t.run.parts.none} detail={isOver ? t.run.parts.endedWithoutOutput : t.run.parts.noneYet} />}
        <ConversationContext value={conversation}>
          {chunks.map((chunk, index) => (
            <ChunkView
              key={chunk.start}
              chunk={chunk}
              heights={heights}
              isPinned={index === chunks.length - 1 || chunk.parts.some((part) => part.id === anchoredPart)}
            />
          ))}
        </ConversationContext>
        {isOver && view.result !== undefined && view.result !== null && (
          <details className={style["result"]}>
            <summary>{t.run.parts.result}</summary>
            <JsonTree value={view.result} depth={1} label={t.run.parts.result} />
          </details>
        )}
        {view.status === "cancelled" && (
          <p className={style["end"]}>
            {view.cancel?.by === undefined ? t.run.parts.cancelled : t.run.parts.cancelledBy(view.cancel.by)}
            {view.cancel?.reason !== undefined && ` ${view.cancel.reason}`}
          </p>
        )}
      </div>
      <div className={style["dock"]}>
        {!isAtEnd && (
          <Button size="small" className={style["toEnd"]} onClick={scrollToEnd}>
            <Icon name="arrowDown" size={14} />
            {t.run.latest}
          </Button>
        )}
        {threadId !== "" && (
          <Composer
            agent={agent}
            threadId={threadId}
            blockedReason={isOver ? undefined : view.status === "suspended" ? t.run.composer.answerFirst : t.run.composer.runNotEnded}
            onStarted={(next) => navigate({ name: "run", id: next.run_id, tab: "conversation" })}
          />
        )}
      </div>
    </Column>
  );
}
