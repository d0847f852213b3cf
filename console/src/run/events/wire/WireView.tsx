import { isClosed } from "@runwire/client";
import { useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useRouter } from "../../../router";
import { useKeys } from "../../../shell/keys";
import { useText } from "../../../text";
import { Button, Empty, ErrorNote, Loading, Segments, classes } from "../../../ui";
import type { RunTabProps } from "../../tabProps";
import { framings, type Framing } from "../command";
import { dialectNamed, dialects } from "../dialects";
import { Download } from "../Download";
import { RowList, type RowListHandle } from "../RowList";
import { useFullHeight } from "../../useFullHeight";
import { useWire } from "./useWire";
import { WireDetails } from "./WireDetails";
import { WireRow } from "./WireRow";
import events from "../Events.module.css";
import style from "./Wire.module.css";

/** Shows a run exactly as the server sends it, in any dialect and framing, one or two of them beside each other. */
export function WireView({ id, run, choice }: RunTabProps & { choice: ReactNode }) {
  const { t, format } = useText();
  const { query, setQuery } = useRouter();
  const dialect = dialectNamed(query.get("dialect")) ?? "runwire";
  const beside = dialectNamed(query.get("beside"));
  const framing = framings.find((framing) => framing === query.get("framing")) ?? "sse";
  const isLive = !isClosed(run.status);
  // What is only being caught up with would rush by, and a run that is long over would leave its reader at the end.
  const isFollowed = isLive && run.isCaughtUp;
  const [attempt, setAttempt] = useState(0);
  const { aligned, sides } = useWire(id, dialect, beside, framing, !isLive, attempt);
  const [follow, setFollow] = useState(true);
  const [selected, setSelected] = useState<number>();
  const list = useRef<RowListHandle>(null);
  const panes = useFullHeight<HTMLDivElement>();
  const shown = beside === undefined ? ([dialect] as const) : ([dialect, beside] as const);

  const place = selected === undefined ? -1 : aligned.rows.findIndex((row) => row.seq === selected);
  const select = (row: number) => {
    const next = aligned.rows[Math.max(0, Math.min(row, aligned.rows.length - 1))];
    if (next === undefined) return;
    setSelected(next.seq);
    setFollow(false);
    list.current?.reveal(aligned.rows.indexOf(next));
  };
  const close = () => {
    setSelected(undefined);
    list.current?.focus();
  };
  useKeys({
    j: () => select(place + 1),
    k: () => select(place === -1 ? aligned.rows.length - 1 : place - 1),
    f: () => setFollow(isLive && !follow),
    Escape: () => selected !== undefined && close(),
  });
  const pressed = (event: KeyboardEvent) => {
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + 10, PageUp: place - 10, Home: 0, End: aligned.rows.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to);
  };

  const failed = sides.find((side) => side.error !== undefined);
  const isCut = sides.some((side) => side.isCut);
  const row = place === -1 ? undefined : aligned.rows[place];
  const isDone = sides[0].isOver && (beside === undefined || sides[1].isOver);
  return (
    <>
      <div className={events["bar"]}>
        {choice}
        <Segments<Framing>
          label={t.inspect.framing}
          value={framing}
          options={framings.map((value) => ({ value, name: t.inspect.framings[value] }))}
          onChange={(value) => setQuery({ framing: value === "sse" ? null : value })}
        />
        <span className={events["spring"]} />
        {isLive && (
          <Button size="small" variant="quiet" icon={follow ? "pause" : "arrowDown"} aria-pressed={follow} onClick={() => setFollow(!follow)}>
            {follow ? t.inspect.pause : t.inspect.follow}
          </Button>
        )}
        <Download run={id} dialect={dialect} framing={framing} after={selected === undefined ? undefined : String(selected - 1)} />
      </div>
      <div className={events["bar"]}>
        <Segments
          label={t.inspect.dialect}
          value={dialect}
          className={style["dialects"]}
          options={dialects.map((value) => ({ value, name: value }))}
          onChange={(value) => setQuery({ dialect: value === "runwire" ? null : value })}
        />
        <select className={classes("field", style["beside"])} aria-label={t.inspect.beside} value={beside ?? ""} onChange={(change) => setQuery({ beside: change.target.value })}>
          <option value="">{t.inspect.nothingBeside}</option>
          {dialects.map((value) => (
            <option key={value} value={value}>
              {t.inspect.besideIt(value)}
            </option>
          ))}
        </select>
      </div>
      {failed && (
        <ErrorNote
          error={failed.error}
          onRetry={() => setAttempt(attempt + 1)}
        />
      )}
      <div ref={panes} className={classes(events["panes"], row && events["split"])}>
        <div className={classes(events["list"], style["wire"])}>
          <div className={style["heads"]}>
            {shown.map((name, side) => (
              <div key={name + String(side)} className={style["head"]}>
                <h2 className={style["name"]}>{name}</h2>
                <span className={classes(style["figures"], "figures")}>
                  {t.inspect.frames(aligned.frames[side as 0 | 1], format.number(aligned.frames[side as 0 | 1]))}
                  {" · "}
                  {t.json.characters(format.short(aligned.characters[side as 0 | 1]))}
                </span>
              </div>
            ))}
          </div>
          {isCut && <p className={style["cut"]}>{t.inspect.cut}</p>}
          {aligned.rows.length === 0 ? (
            <div className={events["nothing"]}>{isDone ? <Empty icon="runs" title={t.inspect.noFrames} /> : failed === undefined && <Loading lines={8} />}</div>
          ) : (
            <RowList
              role="listbox"
              aria-label={t.inspect.wireOf(shown.join(", "))}
              aria-activedescendant={selected === undefined ? undefined : `record-${selected}`}
              className={style["rows"]}
              handle={list}
              count={aligned.rows.length}
              tops={aligned.tops}
              keyOf={(index) => aligned.rows[index]?.seq ?? index}
              follow={follow && isFollowed}
              onFollow={(next) => isFollowed && setFollow(next)}
              onKeyDown={pressed}
              row={(index) => {
                const here = aligned.rows[index];
                if (here === undefined) return null;
                return <WireRow row={here} isDouble={beside !== undefined} framing={framing} isSelected={here.seq === selected} onSelect={() => (setSelected(here.seq), setFollow(false))} />;
              }}
            />
          )}
        </div>
        {row && <WireDetails row={row} names={shown} onClose={close} />}
      </div>
    </>
  );
}
