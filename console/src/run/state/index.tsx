import type { StateChange } from "@runwire/client";
import { useMemo, useRef, useState } from "react";
import { useKeys } from "../../shell/keys";
import { useText } from "../../text";
import { Badge, Copy, Empty, JsonTree, Loading, VirtualList, classes, type VirtualListHandle } from "../../ui";
import type { RunTabProps } from "../tabProps";
import { useFullHeight } from "../useFullHeight";
import { countsOf, differences } from "./diff";
import { Differences } from "./Differences";
import style from "./State.module.css";

/** The state of a run's thread: every change of it, what differs between any two, and how it stands. */
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
  // Without a choice the latest is shown, whichever that is by now.
  const [chosen, setChosen] = useState<number>();
  const [base, setBase] = useState<number>();
  const list = useRef<VirtualListHandle>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const panes = useFullHeight<HTMLDivElement>();
  const here = Math.min(chosen ?? states.length - 1, states.length - 1);
  const against = base ?? here - 1;
  const shown = states[here];
  const found = useMemo(() => differences(states[against]?.state, shown?.state), [states[against]?.state, shown?.state]);

  const go = (index: number) => {
    const next = Math.max(0, Math.min(index, states.length - 1));
    setChosen(next === states.length - 1 ? undefined : next);
    list.current?.reveal(states.length - 1 - next);
  };
  useKeys({ j: () => go(here - 1), k: () => go(here + 1) });

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
                <button type="button" className={classes(style["change"], index === here && style["current"])} aria-current={index === here ? "true" : undefined} onClick={() => go(index)}>
                  <span className={style["changeHead"]}>
                    <span className={classes(style["seq"], "figures")}>{state.seq}</span>
                    <span>{t.inspect.cause[state.cause]}</span>
                    {index === states.length - 1 && <Badge tone="live">{t.inspect.latest}</Badge>}
                    <span className={classes(style["when"], "figures")}>{format.duration(state.at - startedAt)}</span>
                  </span>
                  <ChangeNote before={states[index - 1]?.state} state={state} />
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
              <option value="">{t.inspect.theOneBefore}</option>
              <option value="-1">{t.inspect.nothingYet}</option>
              {optionsNear(states, base).map((index) => (
                <option key={index} value={index}>
                  {t.inspect.stateAt(states[index]?.seq ?? 0)}
                </option>
              ))}
            </select>
          </label>
        </div>
        <Differences found={found} />
        <div className={style["head"]}>
          <h2 className={style["title"]}>{here === states.length - 1 ? t.inspect.currentState : t.inspect.stateAt(shown?.seq ?? 0)}</h2>
          <Copy text={() => JSON.stringify(shown?.state, null, 2)} />
        </div>
        <div className={style["tree"]}>
          <JsonTree key={here} value={shown?.state} depth={2} label={t.inspect.currentState} />
        </div>
      </div>
    </section>
  );
}

/** Says how much a change changed; counted only for rows that are seen. */
function ChangeNote({ before, state }: { before: unknown; state: StateChange }) {
  const { t } = useText();
  const counts = useMemo(() => countsOf(differences(before, state.state, 100)), [before, state.state]);
  return (
    <span className={style["changeNote"]}>
      {state.step !== undefined && <>{t.inspect.byStep(state.step)} · </>}
      {t.inspect.changeCounts(counts.added, counts.changed, counts.removed)}
    </span>
  );
}

/** A select of ten thousand entries helps nobody: the first, the newest, and the one that is chosen. */
const longest = 200;

function optionsNear(states: readonly StateChange[], chosen: number | undefined): number[] {
  const all = states.map((_, index) => index);
  if (all.length <= longest) return all;
  return all.filter((index) => index === 0 || index === chosen || index >= all.length - longest);
}
