import { type UseRunResult, useRun } from "@runwire/client/react";
import { Activity, lazy, Suspense, useEffect, useState } from "react";
import { client, connectionLost, connectionWorks, useLive } from "../client";
import { type RunTab, useRouter } from "../router";
import { useText } from "../text";
import { Boundary, ErrorNote, Loading, Page, Tabs } from "../ui";
import { Conversation } from "./conversation";
import { Head } from "./Head";
import { OperationLine } from "./OperationLine";
import style from "./Run.module.css";
import { Warnings } from "./Warnings";

const EventsTab = lazy(async () => ({ default: (await import("./events")).EventsTab }));
const ThoughtsTab = lazy(async () => ({ default: (await import("./thoughts")).ThoughtsTab }));
const StateTab = lazy(async () => ({ default: (await import("./state")).StateTab }));
const UsageTab = lazy(async () => ({ default: (await import("./usage")).UsageTab }));

/** A run, as people read it. */
export function RunPage({ id, tab }: { id: string; tab: RunTab }) {
  const [attempt, setAttempt] = useState(0);
  return <WatchedPage key={attempt} id={id} tab={tab} onAgain={() => setAttempt((times) => times + 1)} />;
}

function WatchedPage({ id, tab, onAgain }: { id: string; tab: RunTab; onAgain: () => void }) {
  const { t } = useText();
  const { go } = useRouter();
  const run = useRun(id);
  const { data: known, refresh } = useLive(`run ${id}`, () => client.runs.get(id), { every: 0 });
  const { data: agents } = useLive("agents", (signal) => client.agents.list(signal), { every: 0 });
  const retry = useAct(async () => {
    const next = await run.retry();
    go({ name: "run", id: next.run_id, tab: "conversation" });
  });
  const stop = useAct(async () => void (await run.stop()));

  useEffect(() => {
    if (run.connection === "waiting") connectionLost();
    else if (run.connection === "live" || run.connection === "ended") connectionWorks();
  }, [run.connection]);

  // The warnings are complete when the run is over.
  const isOver = run.view.endedAt !== undefined;
  useEffect(() => {
    if (isOver) refresh();
  }, [isOver, refresh]);

  if (run.error !== undefined && run.events.length === 0) {
    return (
      <Page title={t.run.title(id)}>
        <ErrorNote error={run.error} onRetry={onAgain} />
      </Page>
    );
  }
  const name = run.view.agent ?? known?.agent ?? undefined;
  const agent = agents?.agents.find((each) => each.name === name);
  const isStopping = stop.isBusy || (run.view.cancel?.requestedAt !== undefined && run.view.endedAt === undefined);
  return (
    <Head id={id} run={run} known={known} agent={agent} isRetrying={retry.isBusy} onRetry={retry.start}>
      {(retry.error ?? stop.error) !== undefined && <ErrorNote error={retry.error ?? stop.error} wanted className={style["error"]} />}
      {run.error !== undefined && <ErrorNote error={run.error} onRetry={onAgain} className={style["error"]} />}
      <Warnings warnings={known?.warnings} />
      <div className={style["bar"]} data-run-bar="">
        <RunTabs id={id} tab={tab} run={run} />
        <OperationLine run={run} isStopping={isStopping} onStop={stop.start} />
      </div>
      <Activity mode={tab === "conversation" ? "visible" : "hidden"}>
        <Conversation id={id} run={run} known={known} isRetrying={retry.isBusy} onRetry={retry.start} />
      </Activity>
      {tab !== "conversation" && (
        <Boundary of={tab}>
          <Suspense fallback={<Loading />}>
            {tab === "events" && <EventsTab id={id} run={run} />}
            {tab === "thoughts" && <ThoughtsTab id={id} run={run} />}
            {tab === "state" && <StateTab id={id} run={run} />}
            {tab === "usage" && <UsageTab id={id} run={run} />}
          </Suspense>
        </Boundary>
      )}
    </Head>
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

/** Does something that takes a while, once at a time, and keeps why it failed. */
function useAct(act: () => Promise<void>): { isBusy: boolean; error: unknown; start: () => void } {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const start = () => {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    act()
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return { isBusy, error, start };
}
