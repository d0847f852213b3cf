import { useCallback, useEffect, useMemo, useRef, useState, type RefObject } from "react";
import type { Run } from "@runwire/client";
import { Link, useRouter } from "../router";
import { useText } from "../text";
import { Button, Empty, ErrorAlert, Icon, Loading, Page } from "../ui";
import { RunFilters, useRunFilter } from "./RunFilters";
import { RunTable } from "./RunTable";
import { useRunList } from "./useRunList";
import style from "./RunsPage.module.css";

/** List of the runs, newest first. */
export function RunsPage() {
  const { t, format } = useText();
  const { setQuery } = useRouter();
  const filter = useRunFilter();
  const list = useRunList(filter);
  const container = useRef<HTMLDivElement>(null);
  const stable = useStableRows(list.items, container, JSON.stringify(filter));
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
      <div ref={container}>
        <RunFilters filter={filter} />
        {list.error !== undefined && list.items === undefined && <ErrorAlert error={list.error} onRetry={list.refresh} />}
        {list.items === undefined && list.error === undefined && <Loading lines={8} />}
        {stable.count > 0 && (
          <div className={style["newer"]}>
            <Button size="small" variant="primary" icon="arrowUp" onClick={stable.show}>
              {t.runs.newer(stable.count)}
            </Button>
          </div>
        )}
        {list.items !== undefined &&
          (list.items.length > 0 ? (
            <>
              <RunTable runs={stable.runs} label={t.runs.list} onEnd={list.loadMore} />
              <p className={style["end"]} role="status">
                {list.hasMore ? t.loading : t.runs.loaded(format.number(stable.runs.length))}
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

/** Scroll position in pixels from which new runs are held back. */
const holdBackFrom = 240;

/** Holds back new runs while the list is scrolled down, so that visible rows do not move. */
function useStableRows(runs: readonly Run[] | undefined, container: RefObject<HTMLElement | null>, filterKey: string) {
  const [top, setTop] = useState<{ id: string; filterKey: string } | null>(null);
  const scroller = useCallback(() => container.current?.closest<HTMLElement>("[data-scroller]") ?? null, [container]);
  const first = runs?.[0]?.run_id;

  useEffect(() => {
    const element = scroller();
    if (element === null) return;
    const onScroll = () => {
      const isScrolledDown = element.scrollTop > holdBackFrom;
      setTop((before) => (isScrolledDown ? (before?.filterKey === filterKey ? before : first === undefined ? null : { id: first, filterKey }) : null));
    };
    onScroll();
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => element.removeEventListener("scroll", onScroll);
  }, [scroller, first, filterKey]);

  const show = useCallback(() => {
    setTop(null);
    scroller()?.scrollTo({ top: 0 });
  }, [scroller]);

  const from = top === null || top.filterKey !== filterKey ? 0 : Math.max(0, runs?.findIndex((run) => run.run_id === top.id) ?? 0);
  const shown = useMemo(() => (from === 0 ? (runs ?? []) : (runs ?? []).slice(from)), [runs, from]);
  return { runs: shown, count: from, show };
}
