import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hrefOf, Link, parseRoute, RouterProvider, useRouter, type Route, type Router } from "../src/router";

const routes: [string, Route][] = [
  ["/runs", { name: "runs" }],
  ["/runs/r1", { name: "run", id: "r1", tab: "conversation" }],
  ["/runs/r1/events", { name: "run", id: "r1", tab: "events" }],
  ["/runs/r1/thoughts", { name: "run", id: "r1", tab: "thoughts" }],
  ["/runs/r1/state", { name: "run", id: "r1", tab: "state" }],
  ["/runs/r1/usage", { name: "run", id: "r1", tab: "usage" }],
  ["/runs/a%2Fb%20%E4%B8%AD", { name: "run", id: "a/b 中", tab: "conversation" }],
  ["/threads", { name: "threads" }],
  ["/threads/t%3A1", { name: "thread", id: "t:1" }],
  ["/inbox", { name: "inbox" }],
  ["/agents", { name: "agents" }],
  ["/agents/demo", { name: "agent", id: "demo" }],
];

describe("paths", () => {
  it.each(routes)("%s is a page, and the page has that path", (path, route) => {
    expect(parseRoute(path)).toEqual(route);
    expect(hrefOf(route)).toBe(path);
  });

  it("the root shows the runs", () => {
    expect(parseRoute("/")).toEqual({ name: "runs" });
  });

  it.each(["/nothing", "/runs/r1/conversation", "/runs/r1/nothing", "/runs/r1/events/x", "/inbox/x", "/threads/t/x", "/runs/%zz"])(
    "%s is not found",
    (path) => expect(parseRoute(path)).toEqual({ name: "not-found", path }),
  );
});

describe("the router", () => {
  let router: Router;
  let frame: HTMLElement;
  let root: ReturnType<typeof createRoot>;

  function Probe() {
    router = useRouter();
    return <Link to={{ name: "run", id: "r1", tab: "events" }}>{router.route.name}</Link>;
  }

  beforeEach(async () => {
    (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
    history.replaceState(null, "", "/runs?status=failed");
    frame = document.body.appendChild(document.createElement("div"));
    root = createRoot(frame);
    await act(async () =>
      root.render(
        <RouterProvider>
          <Probe />
        </RouterProvider>,
      ),
    );
  });

  afterEach(async () => {
    await act(async () => root.unmount());
    frame.remove();
  });

  it("stores filters in the query without adding history entries", async () => {
    const entries = history.length;
    await act(async () => router.setQuery({ agent: "demo" }));
    expect(location.search).toBe("?status=failed&agent=demo");
    await act(async () => router.setQuery({ status: null, agent: "" }));
    expect(location.search).toBe("");
    expect(history.length).toBe(entries);
  });

  it("navigates without a reload, and back", async () => {
    await act(async () => frame.querySelector("a")?.click());
    expect(location.pathname).toBe("/runs/r1/events");
    expect(router.route).toEqual({ name: "run", id: "r1", tab: "events" });
    const isHistoryNavigation = new Promise((resolve) => window.addEventListener("popstate", resolve, { once: true }));
    await act(async () => {
      history.back();
      await isHistoryNavigation;
    });
    expect(router.route).toEqual({ name: "runs" });
    expect(router.query.get("status")).toBe("failed");
  });

  it("leaves clicks with a modifier to the browser", async () => {
    const click = new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey: true });
    // A test loads no page: it is enough that the click was not handled.
    frame.addEventListener("click", (event) => event.preventDefault(), { once: true });
    await act(async () => void frame.querySelector("a")?.dispatchEvent(click));
    expect(router.route).toEqual({ name: "runs" });
  });
});
