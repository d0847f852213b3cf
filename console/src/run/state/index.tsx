import type { StateChange } from "@runwire/client";
import { useMemo, useRef, useState } from "react";
import { useKeys } from "../../shell/useKeys";
import { useText } from "../../text";
import { Badge, CopyButton, Empty, JsonTree, Loading, VirtualList, classNames, type VirtualListHandle } from "../../ui";
import type { RunTabProps } from "../tabProps";
import { useFullHeight } from "../useFullHeight";
import { countByKind, differences } from "./diff";
import { Differences } from "./Differences";
import style from "./State.module.css";

/** Tab of the thread's state: its changes, the differences between two of them, and the state itself. */
export function StateTab({ run }: RunTabProps) {
  const { t } = useText();
  const { states, startedAt = 0 } = run.view;
  if (states.length === 0) {
    return run.isCaughtUp ? <Empty icon="table" title={t.inspect.noState} detail={t.inspect.noStateDetail} /> : <Loading lines={6} />;
  }
  return <States states={states} startedAt={startedAt} />;
}

function States({ states, startedAt }: { states: readonly StateChange[]; startedAt: number }) {
  const { t, format } = useText();
  // Without a selection, the latest state is shown.
  const [chosen, setChosen] = useState<number>();
  const [base, setBase] = useState<number>();
  const list = useRef<VirtualListHandle>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const panes = useFullHeight<HTMLDivElement>();
  const current = Math.min(chosen ?? states.length - 1, states.length - 1);
  const baseIndex = base ?? current - 1;
  const selected = states[current];
  const changes = useMemo(() => differences(states[baseIndex]?.state, selected?.state), [states[baseIndex]?.state, selected?.state]);

  const select = (index: number) => {
    const next = Math.max(0, Math.min(index, states.length - 1));
    setChosen(next === states.length - 1 ? undefined : next);
    list.current?.reveal(states.length - 1 - next);
  };
  useKeys({ j: () => select(current - 1), k: () => select(current + 1) });

  return (
    <section ref={panes} className={style["panes"]}>
      <div className={style["side"]}>
        <h2 className={style["title"]}>{t.inspect.changes}</h2>
        <div ref={scroller} className={style["list"]}>
          <VirtualList
            role="list"
            aria-label={t.inspect.changes}
            handle={list}
            scroller={scroller}
            count={states.length}
            estimate={56}
            keyOf={(row) => states.length - 1 - row}
            rowProps={() => ({ role: "listitem" })}
            row={(row) => {
              const index = states.length - 1 - row;
              const state = states[index];
              if (state === undefined) return null;
              return (
                <button type="button" className={classNames(style["change"], index === current && style["current"])} aria-current={index === current ? "true" : undefined} onClick={() => select(index)}>
                  <span className={style["changeHead"]}>
                    <span className={classNames(style["seq"], "tabular-nums")}>{state.seq}</span>
                    <span>{t.inspect.cause[state.cause]}</span>
                    {index === states.length - 1 && <Badge tone="live">{t.inspect.latest}</Badge>}
                    <span className={classNames(style["when"], "tabular-nums")}>{format.duration(state.at - startedAt)}</span>
                  </span>
                  <ChangeSummary before={states[index - 1]?.state} state={state} />
                </button>
              );
            }}
          />
        </div>
      </div>
      <div className={style["main"]} tabIndex={0} role="group" aria-label={t.inspect.differences}>
        <div className={style["head"]}>
          <h2 className={style["title"]}>{t.inspect.differences}</h2>
          <label className={style["compare"]}>
            <span>{t.inspect.compareWith}</span>
            <select className="field" value={base ?? ""} onChange={(change) => setBase(change.target.value === "" ? undefined : Number(change.target.value))}>
              <option value="">{t.inspect.previousState}</option>
              <option value="-1">{t.inspect.emptyState}</option>
              {selectableStates(states, base).map((index) => (
                <option key={index} value={index}>
                  {t.inspect.stateAt(states[index]?.seq ?? 0)}
                </option>
              ))}
            </select>
          </label>
        </div>
        <Differences differences={changes} />
        <div className={style["head"]}>
          <h2 className={style["title"]}>{current === states.length - 1 ? t.inspect.currentState : t.inspect.stateAt(selected?.seq ?? 0)}</h2>
          <CopyButton text={() => JSON.stringify(selected?.state, null, 2)} />
        </div>
        <div className={style["tree"]}>
          <JsonTree key={current} value={selected?.state} depth={2} label={t.inspect.currentState} />
        </div>
      </div>
    </section>
  );
}

/** Counts of a change's differences, computed only for visible rows. */
function ChangeSummary({ before, state }: { before: unknown; state: StateChange }) {
  const { t } = useText();
  const counts = useMemo(() => countByKind(differences(before, state.state, 100)), [before, state.state]);
  return (
    <span className={style["changeNote"]}>
      {state.step !== undefined && <>{t.inspect.byStep(state.step)} · </>}
      {t.inspect.changeCounts(counts.added, counts.changed, counts.removed)}
    </span>
  );
}

/** Maximum number of options of the select: the newest states, plus the first and the selected one. */
const maxOptions = 200;

function selectableStates(states: readonly StateChange[], chosen: number | undefined): number[] {
  const all = states.map((_, index) => index);
  if (all.length <= maxOptions) return all;
  return all.filter((index) => index === 0 || index === chosen || index >= all.length - maxOptions);
}
