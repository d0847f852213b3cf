import { setVisible } from "./dom.js";
import { act, cleanup, render, renderHook, waitFor } from "@testing-library/react";
import { type ReactNode, StrictMode } from "react";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { ProblemError, Runwire } from "../src/index.js";
import { RunwireProvider, useInteractions, useInteraction, useRun, useRuns, useThread, type UseRunResult } from "../src/react/index.js";
import { Server } from "./server.js";

const WAIT = { timeout: 30_000 };

let server: Server;
let client: Runwire;
let requests: string[] = [];
let signals: AbortSignal[] = [];

beforeAll(async () => {
  server = await Server.start();
  const counting: typeof fetch = (input, init) => {
    requests.push(String(input));
    if (init?.signal) signals.push(init.signal);
    return fetch(input, init);
  };
  client = new Runwire({ url: server.url, fetch: counting, retry: { initialDelay: 5, maxDelay: 20 } });
});

afterEach(() => {
  cleanup();
  setVisible(true);
  requests = [];
  signals = [];
});

afterAll(async () => {
  await server.remove();
});

function wrapper({ children }: { children: ReactNode }): ReactNode {
  return (
    <StrictMode>
      <RunwireProvider client={client}>{children}</RunwireProvider>
    </StrictMode>
  );
}

test("useRun follows a run through a form and an approval to its end", async () => {
  const run = await client.runs.create({ agent: "demo", message: "天气怎么样" });
  const { result } = renderHook(() => useRun(run.run_id), { wrapper });
  expect(result.current).toMatchObject({ status: "pending", connection: "connecting" });
  await waitFor(() => expect(result.current.view.operation.kind).toBe("waiting"), WAIT);
  const form = result.current.view.parts.findLast((part) => part.kind === "interaction");
  expect(form).toMatchObject({ interactionKind: "form", status: "open" });
  const id = form?.kind === "interaction" ? form.interactionId : "";
  const refused = await act(() => result.current.answer(id, { decision: "submitted", values: {} }).catch((error: unknown) => error));
  expect(refused).toBeInstanceOf(ProblemError);
  expect((refused as ProblemError).problem.errors?.map((each) => each.pointer).length).toBeGreaterThan(0);
  await act(() => result.current.answer(id, { decision: "submitted", values: { name: "李雷", email: "li@example.com" } }));
  await waitFor(() => expect(result.current.view.parts.findLast((part) => part.kind === "interaction")).toMatchObject({ interactionKind: "approval", status: "open" }), WAIT);
  const approval = result.current.view.parts.findLast((part) => part.kind === "interaction");
  await act(() => result.current.answer(approval?.kind === "interaction" ? approval.interactionId : "", { decision: "approved" }));
  await waitFor(() => expect(result.current).toMatchObject({ status: "completed", connection: "ended", isCaughtUp: true }), WAIT);
  expect(result.current.message).toEqual(await client.runs.message(run.run_id));
  expect(result.current.events).toHaveLength(result.current.view.counts.events);
  // One connection, although StrictMode mounts twice.
  expect(requests.filter((each) => each.includes("/events"))).toHaveLength(1);
  const retried = await act(() => result.current.retry());
  expect(retried).toMatchObject({ agent: "demo", thread_id: run.thread_id });
  await client.runs.cancel(retried.run_id);
});

test("cancel ends a run", async () => {
  const run = await client.runs.create({ agent: "endless", message: "x" });
  const { result } = renderHook(() => useRun(run.run_id), { wrapper });
  await waitFor(() => expect(result.current.connection).toBe("live"), WAIT);
  await act(() => result.current.cancel("enough"));
  await waitFor(() => expect(result.current.status).toBe("cancelled"), WAIT);
  expect(result.current.view.cancel).toMatchObject({ reason: "enough" });
});

test("many events at once cause few renders", async () => {
  const frames = Array.from({ length: 5000 }, (_, at) => ({ type: "text.delta", message_id: "m", content: `${at} ` }));
  await client.runs.write("long", [{ type: "text.started", message_id: "m" }, ...frames], { dialect: "runwire", end: true });
  let renders = 0;
  const Reader = (): ReactNode => {
    renders++;
    const { status, events } = useRun("long");
    return <p>{`${status} ${events.length}`}</p>;
  };
  const page = render(<Reader />, { wrapper });
  await waitFor(() => expect(page.container.textContent).toBe("completed 5004"), WAIT);
  expect(renders).toBeLessThan(1000);
});

test("a component that remounts resumes where it stopped", async () => {
  await client.runs.write("again", [{ type: "text.started", message_id: "m" }], { dialect: "runwire" });
  const first = renderHook(() => useRun("again"), { wrapper });
  await waitFor(() => expect(first.result.current.isCaughtUp).toBe(true), WAIT);
  first.unmount();
  await waitFor(() => expect(signals.every((signal) => signal.aborted)).toBe(true), WAIT);
  await client.runs.write("again", [{ type: "text.delta", message_id: "m", content: "later" }], { dialect: "runwire", end: true });
  const second = renderHook(() => useRun("again"), { wrapper });
  await waitFor(() => expect(second.result.current.status).toBe("completed"), WAIT);
  expect(second.result.current.events.map((event) => event.type)).toEqual(["run.started", "text.started", "text.delta", "text.finished", "run.completed"]);
  expect(requests.filter((each) => each.includes("after="))).toHaveLength(1);
});

test("an unknown run is an error", async () => {
  const { result } = renderHook(() => useRun("nobody"), { wrapper });
  await waitFor(() => expect(result.current.error).toMatchObject({ code: "run_unknown" }), WAIT);
});

test("a server restart is reported as an interruption, not as an error", async () => {
  const restarting = await Server.start();
  const reconnecting = new Runwire({ url: restarting.url, retry: { initialDelay: 5, maxDelay: 20 } });
  await reconnecting.runs.write("r", [{ type: "run.started", message: "hi" }], { dialect: "runwire" });
  const seen = new Set<UseRunResult["connection"]>();
  const { result } = renderHook(
    () => {
      const run = useRun("r");
      seen.add(run.connection);
      return run;
    },
    { wrapper: ({ children }: { children: ReactNode }) => <RunwireProvider client={reconnecting}>{children}</RunwireProvider> },
  );
  await waitFor(() => expect(result.current.connection).toBe("live"), WAIT);
  await restarting.kill();
  await waitFor(() => expect(result.current.interruption).toBeDefined(), WAIT);
  await restarting.restart();
  await reconnecting.runs.write("r", [], { dialect: "runwire", end: true });
  await waitFor(() => expect(result.current.status).toBe("completed"), WAIT);
  expect(result.current.interruption).toBeUndefined();
  expect(result.current.error).toBeUndefined();
  expect(seen).toContain("waiting");
  await restarting.remove();
});

test("useThread returns the runs of a thread as they start", async () => {
  const { result } = renderHook(() => useThread("talk"), { wrapper: ({ children }) => wrapper({ children }) });
  await waitFor(() => expect(result.current.error).toMatchObject({ code: "thread_unknown" }), WAIT);
  await client.threads.create({ thread_id: "talk-2" });
  const known = renderHook(() => useThread("talk-2"), { wrapper });
  const run = await act(() => known.result.current.start({ agent: "thought-tree", message: "24" }));
  await waitFor(() => expect(known.result.current.runs.map((each) => [each.runId, each.status])).toEqual([[run.run_id, "completed"]]), WAIT);
  expect(known.result.current.runs[0]?.thoughts.tot?.path.length).toBeGreaterThan(1);
  expect(known.result.current.openRun).toBeUndefined();
});

test("a missing thread and a missing run are followed once they exist", async () => {
  const { result } = renderHook(() => ({ thread: useThread("new-talk"), run: useRun("new-run") }), { wrapper });
  await waitFor(() => expect([result.current.thread.error, result.current.run.error]).toMatchObject([{ code: "thread_unknown" }, { code: "run_unknown" }]), WAIT);
  await act(() => result.current.thread.start({ run_id: "new-run", agent: "thought-tree", message: "24" }));
  act(() => result.current.run.refresh());
  await waitFor(() => expect(result.current.thread.runs.map((each) => [each.runId, each.status])).toEqual([["new-run", "completed"]]), WAIT);
  await waitFor(() => expect(result.current.run).toMatchObject({ status: "completed", error: undefined }), WAIT);
});

test("a thread that is created while its 404 is in flight is followed", async () => {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const late: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (response.status === 404) await released;
    return response;
  };
  const slow = new Runwire({ url: server.url, fetch: late });
  const { result } = renderHook(() => useThread("late-talk"), { wrapper: ({ children }: { children: ReactNode }) => <RunwireProvider client={slow}>{children}</RunwireProvider> });
  const run = await act(() => result.current.start({ agent: "thought-tree", message: "24" }));
  expect(result.current.error).toBeUndefined();
  release();
  await waitFor(() => expect(result.current.runs.map((each) => [each.runId, each.status])).toEqual([[run.run_id, "completed"]]), WAIT);
});

test("useThread answers, cancels and retries runs", async () => {
  const { result } = renderHook(() => useThread("long-talk"), { wrapper });
  const { run_id } = await act(() => result.current.start({ agent: "demo", message: "hello" }));
  await waitFor(() => expect(result.current.openRun?.parts.at(-1)).toMatchObject({ kind: "interaction", status: "open" }), WAIT);
  await act(() => result.current.answer(run_id, "trip", { decision: "cancelled" }));
  await waitFor(() => expect(result.current).toMatchObject({ openRun: undefined, runs: [{ status: "completed" }] }), WAIT);
  const again = await act(() => result.current.retry(run_id));
  await waitFor(() => expect(result.current.openRun?.runId).toBe(again.run_id), WAIT);
  await act(() => result.current.cancel(again.run_id, "enough"));
  await waitFor(() => expect(result.current.runs.map((run) => run.status)).toEqual(["completed", "cancelled"]), WAIT);
});

test("useInteractions lists open interactions, and an answer removes one", async () => {
  const run = await client.runs.create({ agent: "demo", message: "hello" });
  const { result } = renderHook(() => ({ list: useInteractions({ run: run.run_id }, { interval: 20 }), trip: useInteraction(run.run_id, "trip", { interval: 20 }) }), { wrapper });
  await waitFor(() => expect(result.current.list.interactions).toHaveLength(1), WAIT);
  await waitFor(() => expect(result.current.trip.interaction).toMatchObject({ status: "open", kind: "form" }), WAIT);
  const before = result.current.list.interactions;
  await act(() => result.current.list.refresh());
  expect(result.current.list.interactions).toBe(before);
  await act(() => result.current.list.answer(run.run_id, "trip", { decision: "cancelled" }));
  await waitFor(() => expect(result.current.list.interactions.map((each) => each.interaction_id)).not.toContain("trip"), WAIT);
  await waitFor(() => expect(result.current.trip.interaction?.answer).toMatchObject({ decision: "cancelled" }), WAIT);
});

test("useRuns keeps its pages up to date, and pauses while the page is hidden", async () => {
  for (let count = 0; count < 5; count++) await client.runs.write(`listed-${count}`, [{ type: "run.completed" }], { dialect: "runwire", thread: `listed-${count}` });
  const filter = { prefix: "listed-", limit: 2 };
  const { result } = renderHook(() => useRuns(filter, { interval: 20 }), { wrapper });
  const ids = (): string[] => result.current.runs.map((run) => run.run_id);
  await waitFor(() => expect(ids()).toEqual(["listed-4", "listed-3"]), WAIT);
  await act(() => result.current.loadMore());
  await act(() => result.current.loadMore());
  expect(ids()).toEqual(["listed-4", "listed-3", "listed-2", "listed-1", "listed-0"]);
  expect(result.current.hasMore).toBe(false);
  await client.runs.write("listed-5", [{ type: "run.completed" }], { dialect: "runwire", thread: "listed-5" });
  await waitFor(() => expect(ids()[0]).toBe("listed-5"), WAIT);
  expect(ids()).toHaveLength(6);
  act(() => setVisible(false));
  await waitFor(async () => {
    const before = requests.length;
    // Enough time for another poll, measured by requests of another client.
    const other = new Runwire({ url: server.url });
    for (let count = 0; count < 50; count++) await other.health();
    expect(requests.length).toBe(before);
  }, WAIT);
  await client.runs.write("listed-6", [{ type: "run.completed" }], { dialect: "runwire", thread: "listed-6" });
  act(() => setVisible(true));
  await waitFor(() => expect(ids()[0]).toBe("listed-6"), WAIT);
});
