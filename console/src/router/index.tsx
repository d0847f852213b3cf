import {
  createContext,
  use,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
  type AnchorHTMLAttributes,
  type MouseEvent,
  type ReactNode,
} from "react";
import { hrefOf, parseRoute, type Route } from "./route";

export { hrefOf, parseRoute, runTabs } from "./route";
export type { Route, RunTab } from "./route";

/** Where the console is, and how to go elsewhere. */
export interface Router {
  route: Route;
  query: URLSearchParams;
  /** Goes to a page. `replace` leaves no entry in the history. */
  go(to: Route | string, options?: { replace?: boolean }): void;
  /** Changes filters in the address; an empty value removes one. Leaves no entry in the history. */
  setQuery(changes: Readonly<Record<string, string | null>>): void;
  /** Tells whether a person has moved since the page was loaded, so that focus should follow. */
  moved: boolean;
  /** Tells whether the page was reached through the history, back or forward. */
  returned: boolean;
}

const RouterContext = createContext<Router | null>(null);

interface Place {
  path: string;
  search: string;
  moved: boolean;
  returned: boolean;
}

/** Follows the browser's history, and gives the route to everything inside it. */
export function RouterProvider({ children }: { children: ReactNode }) {
  const [place, setPlace] = useState<Place>(() => ({ ...here(), moved: false, returned: false }));
  useEffect(() => {
    const follow = () => setPlace({ ...here(), moved: true, returned: true });
    window.addEventListener("popstate", follow);
    return () => window.removeEventListener("popstate", follow);
  }, []);

  const go = useCallback((to: Route | string, options?: { replace?: boolean }) => {
    const href = typeof to === "string" ? to : hrefOf(to);
    if (options?.replace === true) history.replaceState(null, "", href);
    else history.pushState(null, "", href);
    setPlace({ ...here(), moved: true, returned: false });
  }, []);

  const setQuery = useCallback((changes: Readonly<Record<string, string | null>>) => {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === "") query.delete(name);
      else query.set(name, value);
    }
    const search = query.toString();
    history.replaceState(history.state, "", location.pathname + (search === "" ? "" : `?${search}`));
    setPlace((before) => ({ ...before, ...here() }));
  }, []);

  const route = useMemo(() => parseRoute(place.path), [place.path]);
  const query = useMemo(() => new URLSearchParams(place.search), [place.search]);
  const router = useMemo<Router>(
    () => ({ route, query, go, setQuery, moved: place.moved, returned: place.returned }),
    [route, query, go, setQuery, place.moved, place.returned],
  );
  return <RouterContext value={router}>{children}</RouterContext>;
}

/** Gives the router. */
export function useRouter(): Router {
  const router = use(RouterContext);
  if (router === null) throw new Error("useRouter outside of RouterProvider");
  return router;
}

type LinkProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> & { to: Route | string };

/** Links to a page of the console without loading it anew. Modified clicks stay the browser's. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  const { go } = useRouter();
  const href = typeof to === "string" ? to : hrefOf(to);
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const modified = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0;
    if (event.defaultPrevented || modified || rest.target === "_blank") return;
    event.preventDefault();
    go(href);
  };
  return <a {...rest} href={href} onClick={follow} />;
}

/** Moves focus to a page's heading when a person came from another page, as a page load would. */
export function useFocusOnArrival<E extends HTMLElement>() {
  const heading = useRef<E>(null);
  const { route, moved } = useRouter();
  const page = route.name === "run" ? `run ${route.id}` : hrefOf(route);
  useEffect(() => {
    if (moved) heading.current?.focus({ preventScroll: true });
    // Only another page is an arrival: another tab of a run, or a title that became known, takes no focus away.
  }, [page]);
  return heading;
}

function here(): { path: string; search: string } {
  return { path: location.pathname, search: location.search };
}
