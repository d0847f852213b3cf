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
import { type Reading, ReadingContext } from "./context";
import { keptPlace, useEnd, type Place } from "./useEnd";
import style from "./Conversation.module.css";

interface ConversationProps {
  id: string;
  run: UseRunResult;
  known: Run | undefined;
  isRetrying: boolean;
  onRetry: () => void;
}

/** A run as people read it, from the question to the answer, and on to the next question. */
export function Conversation({ id, run, known, isRetrying, onRetry }: ConversationProps) {
  // What is far behind is shown at once when it is whole, not played back.
  if (!run.isCaughtUp) return <Column><Loading lines={6} /></Column>;
  return <Parts id={id} run={run} known={known} isRetrying={isRetrying} onRetry={onRetry} />;
}

function Parts({ id, run, known, isRetrying, onRetry }: ConversationProps) {
  const { t } = useText();
  const { go } = useRouter();
  const { view } = run;
  const content = useRef<HTMLDivElement>(null);
  const [chunker] = useState(() => new Chunker());
  const chunks = chunker.cut(view.parts);
  const key = `runwire.place.${id}`;
  // A run that goes on is watched at its end; one that is over is read from its start.
  const [first] = useState<Place | undefined>(() => keptPlace(key) ?? (isClosed(view.status) ? undefined : { end: true }));
  const { isAtEnd, toEnd } = useEnd(content, true, first, key);
  const [heights] = useState(() => new Map<number, number>());
  const [memory] = useState(() => ({
    choices: new Map<string, boolean>(),
    seen: new Set<string>(view.parts.flatMap((part) => [part.id, `row ${part.id}`])),
  }));
  const steps = useMemo(() => new Map(view.steps.map((step) => [step.stepId, step])), [view.steps]);
  const threadId = view.threadId ?? known?.thread_id ?? "";
  const agent = view.agent ?? known?.agent ?? null;
  const reading = useMemo<Reading>(
    () => ({ runId: id, threadId, agent, ...memory, steps, isRetrying, onRetry: agent === null ? undefined : onRetry }),
    // `onRetry` is made anew each time and always does the same.
    [id, threadId, agent, memory, steps, isRetrying],
  );
  const pinnedPart = first?.end === false ? first.part : undefined;
  const isOver = isClosed(view.status);
  return (
    <Column>
      <div ref={content} className={style["parts"]}>
        {view.parts.length === 0 && <Empty icon="threads" title={view.status === "pending" ? t.run.operation.pending : t.run.parts.none} detail={isOver ? t.run.parts.noneEver : t.run.parts.noneYet} />}
        <ReadingContext value={reading}>
          {chunks.map((chunk, index) => (
            <ChunkView
              key={chunk.start}
              chunk={chunk}
              heights={heights}
              pinned={index === chunks.length - 1 || chunk.parts.some((part) => part.id === pinnedPart)}
            />
          ))}
        </ReadingContext>
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
          <Button size="small" className={style["pill"]} onClick={toEnd}>
            <Icon name="arrowDown" size={14} />
            {t.run.latest}
          </Button>
        )}
        {threadId !== "" && (
          <Composer
            agent={agent}
            threadId={threadId}
            busy={isOver ? undefined : view.status === "suspended" ? t.run.composer.answerFirst : t.run.composer.stillGoing}
            onStarted={(next) => go({ name: "run", id: next.run_id, tab: "conversation" })}
          />
        )}
      </div>
    </Column>
  );
}
