import { type UseRunResult, useRun } from "@runwire/client/react";
import { Activity, lazy, Suspense, useEffect, useState } from "react";
import { client, connectionLost, connectionRestored, usePolled } from "../client";
import { type RunTab, useRouter } from "../router";
import { useText } from "../text";
import { ErrorBoundary, ErrorAlert, Loading, Page, Tabs } from "../ui";
import { Conversation } from "./conversation";
import { RunHeader } from "./RunHeader";
import { OperationLine } from "./OperationLine";
import style from "./Run.module.css";
import { Warnings } from "./Warnings";

const EventsTab = lazy(async () => ({ default: (await import("./events")).EventsTab }));
const ThoughtsTab = lazy(async () => ({ default: (await import("./thoughts")).ThoughtsTab }));
const StateTab = lazy(async () => ({ default: (await import("./state")).StateTab }));
const UsageTab = lazy(async () => ({ default: (await import("./usage")).UsageTab }));

/** Page of a run. */
export function RunPage({ id, tab }: { id: string; tab: RunTab }) {
  const [attempt, setAttempt] = useState(0);
  return <LoadedRunPage key={attempt} id={id} tab={tab} onReload={() => setAttempt((times) => times + 1)} />;
}

function LoadedRunPage({ id, tab, onReload }: { id: string; tab: RunTab; onReload: () => void }) {
  const { t } = useText();
  const { navigate } = useRouter();
  const run = useRun(id);
  const { data: summary, refresh } = usePolled(`run ${id}`, () => client.runs.get(id), { interval: 0 });
  const { data: agents } = usePolled("agents", (signal) => client.agents.list(signal), { interval: 0 });
  const retry = useAsyncAction(async () => {
    const next = await run.retry();
    navigate({ name: "run", id: next.run_id, tab: "conversation" });
  });
  const stop = useAsyncAction(async () => void (await run.cancel()));

  useEffect(() => {
    if (run.connection === "waiting") connectionLost();
    else if (run.connection === "live" || run.connection === "ended") connectionRestored();
  }, [run.connection]);

  // The warnings are complete when the run has ended.
  const isOver = run.view.endedAt !== undefined;
  useEffect(() => {
    if (isOver) refresh();
  }, [isOver, refresh]);

  if (run.error !== undefined && run.events.length === 0) {
    return (
      <Page title={t.run.title(id)}>
        <ErrorAlert error={run.error} onRetry={onReload} />
      </Page>
    );
  }
  const name = run.view.agent ?? summary?.agent ?? undefined;
  const agent = agents?.agents.find((each) => each.name === name);
  const isStopping = stop.isBusy || (run.view.cancel?.requestedAt !== undefined && run.view.endedAt === undefined);
  return (
    <RunHeader id={id} run={run} summary={summary} agent={agent} isRetrying={retry.isBusy} onRetry={retry.start}>
      {(retry.error ?? stop.error) !== undefined && <ErrorAlert error={retry.error ?? stop.error} isUserAction className={style["error"]} />}
      {run.error !== undefined && <ErrorAlert error={run.error} onRetry={onReload} className={style["error"]} />}
      <Warnings warnings={summary?.warnings} />
      <div className={style["bar"]} data-run-bar="">
        <RunTabs id={id} tab={tab} run={run} />
        <OperationLine run={run} isStopping={isStopping} onStop={stop.start} />
      </div>
      <Activity mode={tab === "conversation" ? "visible" : "hidden"}>
        <Conversation id={id} run={run} summary={summary} isRetrying={retry.isBusy} onRetry={retry.start} />
      </Activity>
      {tab !== "conversation" && (
        <ErrorBoundary resetKey={tab}>
          <Suspense fallback={<Loading />}>
            {tab === "events" && <EventsTab id={id} run={run} />}
            {tab === "thoughts" && <ThoughtsTab id={id} run={run} />}
            {tab === "state" && <StateTab id={id} run={run} />}
            {tab === "usage" && <UsageTab id={id} run={run} />}
          </Suspense>
        </ErrorBoundary>
      )}
    </RunHeader>
  );
}

function RunTabs({ id, tab, run }: { id: string; tab: RunTab; run: UseRunResult }) {
  const { t, format } = useText();
  const { thoughts, counts } = run.view;
  const hasThoughts = thoughts.tot !== undefined || thoughts.got !== undefined || tab === "thoughts";
  const tabs: RunTab[] = ["conversation", "events", ...(hasThoughts ? (["thoughts"] as const) : []), "state", "usage"];
  return (
    <Tabs
      label={t.run.tabs.label}
      current={tab}
      tabs={tabs.map((each) => ({
        id: each,
        name: t.run.tabs[each],
        to: { name: "run", id, tab: each },
        ...(each === "events" && run.isCaughtUp && { count: format.short(counts.events) }),
      }))}
    />
  );
}

/** Runs an async action, one at a time; returns its state and error. */
function useAsyncAction(action: () => Promise<void>): { isBusy: boolean; error: unknown; start: () => void } {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const start = () => {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    action()
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return { isBusy, error, start };
}
