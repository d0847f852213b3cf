/** The parts of a run's page. */
export const runTabs = ["conversation", "events", "thoughts", "state", "usage"] as const;

/** One part of a run's page. */
export type RunTab = (typeof runTabs)[number];

/** Every page of the console. */
export type Route =
  | { name: "runs" }
  | { name: "run"; id: string; tab: RunTab }
  | { name: "threads" }
  | { name: "thread"; id: string }
  | { name: "inbox" }
  | { name: "agents" }
  | { name: "agent"; id: string }
  | { name: "nowhere"; path: string };

/** Reads a path. Whatever is no page of the console is `nowhere`. */
export function parseRoute(path: string): Route {
  const nowhere: Route = { name: "nowhere", path };
  const parts = path.split("/").filter((part) => part !== "");
  const [first, second, third] = parts;
  if (first === undefined) return { name: "runs" };
  if (parts.length > 3 || (parts.length === 3 && first !== "runs")) return nowhere;
  if (second === undefined) {
    return first === "runs" || first === "threads" || first === "inbox" || first === "agents" ? { name: first } : nowhere;
  }
  const id = decoded(second);
  if (id === null) return nowhere;
  if (first === "threads") return { name: "thread", id };
  if (first === "agents") return { name: "agent", id };
  if (first !== "runs") return nowhere;
  if (third === undefined) return { name: "run", id, tab: "conversation" };
  const tab = runTabs.find((tab) => tab === third && tab !== "conversation");
  return tab === undefined ? nowhere : { name: "run", id, tab };
}

/** Writes the path of a page. */
export function hrefOf(route: Route): string {
  switch (route.name) {
    case "run": {
      const path = `/runs/${encodeURIComponent(route.id)}`;
      return route.tab === "conversation" ? path : `${path}/${route.tab}`;
    }
    case "thread":
      return `/threads/${encodeURIComponent(route.id)}`;
    case "agent":
      return `/agents/${encodeURIComponent(route.id)}`;
    case "nowhere":
      return route.path;
    default:
      return `/${route.name}`;
  }
}

function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
