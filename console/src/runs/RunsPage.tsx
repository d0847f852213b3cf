import { useCallback, useEffect, useMemo, useRef, useState, type RefObject } from "react";
import type { Run } from "@runwire/client";
import { Link, useRouter } from "../router";
import { useText } from "../text";
import { Button, Empty, ErrorNote, Icon, Loading, Page } from "../ui";
import { RunFilters, useRunFilter } from "./RunFilters";
import { RunTable } from "./RunTable";
import { useRunList } from "./useRunList";
import style from "./RunsPage.module.css";

/** Every run, newest first, as it stands. */
export function RunsPage() {
  const { t, format } = useText();
  const { setQuery } = useRouter();
  const filter = useRunFilter();
  const list = useRunList(filter);
  const frame = useRef<HTMLDivElement>(null);
  const held = useHeldBack(list.items, frame, JSON.stringify(filter));
  const filtered = Object.values(filter).some((value) => value !== undefined);

  return (
    <Page
      title={t.runs.title}
      actions={
        <Link to={{ name: "agents" }} className={style["start"]}>
          <Icon name="plus" />
          {t.runs.start}
        </Link>
      }
    >
      <div ref={frame}>
        <RunFilters filter={filter} />
        {list.error !== undefined && list.items === undefined && <ErrorNote error={list.error} onRetry={list.refresh} />}
        {list.items === undefined && list.error === undefined && <Loading lines={8} />}
        {held.count > 0 && (
          <div className={style["newer"]}>
            <Button size="small" variant="primary" icon="arrowUp" onClick={held.show}>
              {t.runs.newer(held.count)}
            </Button>
          </div>
        )}
        {list.items !== undefined &&
          (list.items.length > 0 ? (
            <>
              <RunTable runs={held.runs} label={t.runs.list} onEnd={list.loadMore} />
              <p className={style["end"]} role="status">
                {list.hasMore ? t.loading : t.runs.loaded(format.number(held.runs.length))}
              </p>
            </>
          ) : filtered ? (
            <Empty icon="filter" title={t.runs.noneMatch} detail={t.runs.noneMatchDetail}>
              <Button onClick={() => setQuery({ status: null, agent: null, thread: null, find: null })}>{t.action.clearFilters}</Button>
            </Empty>
          ) : (
            <Empty icon="runs" title={t.runs.empty} detail={t.runs.emptyDetail} />
          ))}
      </div>
    </Page>
  );
}

/** How far from the top somebody is taken to be reading. */
const reading = 240;

/** Holds new runs back while a person reads further down, so that the rows under the eyes stay where they are. */
function useHeldBack(runs: readonly Run[] | undefined, frame: RefObject<HTMLElement | null>, of: string) {
  const [top, setTop] = useState<{ id: string; of: string } | null>(null);
  const scroller = useCallback(() => frame.current?.closest<HTMLElement>("[data-scroller]") ?? null, [frame]);
  const first = runs?.[0]?.run_id;

  useEffect(() => {
    const element = scroller();
    if (element === null) return;
    const look = () => {
      const down = element.scrollTop > reading;
      setTop((before) => (down ? (before?.of === of ? before : first === undefined ? null : { id: first, of }) : null));
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, [scroller, first, of]);

  const show = useCallback(() => {
    setTop(null);
    scroller()?.scrollTo({ top: 0 });
  }, [scroller]);

  const from = top === null || top.of !== of ? 0 : Math.max(0, runs?.findIndex((run) => run.run_id === top.id) ?? 0);
  const shown = useMemo(() => (from === 0 ? (runs ?? []) : (runs ?? []).slice(from)), [runs, from]);
  return { runs: shown, count: from, show };
}
