import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it, vi } from "vitest";
import { useConnection, trackedFetch } from "../src/client/connection";

function Probe() {
  return useConnection();
}

it("the connection state is lost, then back, then fine", async () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.useFakeTimers();
  const frame = document.createElement("div");
  const root = createRoot(frame);
  const answers: (() => Promise<Response>)[] = [
    () => Promise.resolve(new Response("{}")),
    () => Promise.reject(new DOMException("stopped", "AbortError")),
    () => Promise.reject(new TypeError("Failed to fetch")),
    () => Promise.resolve(new Response("{}", { status: 404 })),
  ];
  vi.stubGlobal("fetch", () => answers.shift()?.());
  const ask = () => act(async () => void (await trackedFetch("/v1/runs").catch(() => {})));

  await act(async () => root.render(<Probe />));
  await ask();
  expect(frame.textContent).toBe("fine");
  await ask();
  expect(frame.textContent, "leaving is not a failure").toBe("fine");
  await ask();
  expect(frame.textContent).toBe("lost");
  await ask();
  expect(frame.textContent).toBe("back");
  await act(async () => vi.advanceTimersByTime(5000));
  expect(frame.textContent).toBe("fine");

  await act(async () => root.unmount());
  vi.unstubAllGlobals();
  vi.useRealTimers();
});
