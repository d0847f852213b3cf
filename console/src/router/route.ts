/** The tabs of a run's page. */
export const runTabs = ["conversation", "events", "thoughts", "state", "usage"] as const;

/** A tab of a run's page. */
export type RunTab = (typeof runTabs)[number];

/** The pages of the console. */
export type Route =
  | { name: "runs" }
  | { name: "run"; id: string; tab: RunTab }
  | { name: "threads" }
  | { name: "thread"; id: string }
  | { name: "inbox" }
  | { name: "agents" }
  | { name: "agent"; id: string }
  | { name: "not-found"; path: string };

/** Parses a path; an unknown one is `not-found`. */
export function parseRoute(path: string): Route {
  const notFound: Route = { name: "not-found", path };
  const parts = path.split("/").filter((part) => part !== "");
  const [first, second, third] = parts;
  if (first === undefined) return { name: "runs" };
  if (parts.length > 3 || (parts.length === 3 && first !== "runs")) return notFound;
  if (second === undefined) {
    return first === "runs" || first === "threads" || first === "inbox" || first === "agents" ? { name: first } : notFound;
  }
  const id = decoded(second);
  if (id === null) return notFound;
  if (first === "threads") return { name: "thread", id };
  if (first === "agents") return { name: "agent", id };
  if (first !== "runs") return notFound;
  if (third === undefined) return { name: "run", id, tab: "conversation" };
  const tab = runTabs.find((tab) => tab === third && tab !== "conversation");
  return tab === undefined ? notFound : { name: "run", id, tab };
}

/** Returns the path of a page. */
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
    case "not-found":
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
