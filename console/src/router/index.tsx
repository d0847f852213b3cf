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

/** The current route and navigation. */
export interface Router {
  route: Route;
  query: URLSearchParams;
  /** Navigates to a page. `replace` replaces the history entry. */
  navigate(to: Route | string, options?: { replace?: boolean }): void;
  /** Changes query parameters; an empty value removes one. Replaces the history entry. */
  setQuery(changes: Readonly<Record<string, string | null>>): void;
  /** Whether a navigation has happened since the page was loaded, so that focus should move. */
  hasNavigated: boolean;
  /** Whether the page was reached with back or forward. */
  isHistoryNavigation: boolean;
}

const RouterContext = createContext<Router | null>(null);

interface HistoryEntry {
  path: string;
  search: string;
  hasNavigated: boolean;
  isHistoryNavigation: boolean;
}

/** Tracks the browser's history and provides the route. */
export function RouterProvider({ children }: { children: ReactNode }) {
  const [entry, setEntry] = useState<HistoryEntry>(() => ({ ...currentLocation(), hasNavigated: false, isHistoryNavigation: false }));
  useEffect(() => {
    const onPopState = () => setEntry({ ...currentLocation(), hasNavigated: true, isHistoryNavigation: true });
    window.addEventListener("popstate", onPopState);
    return () => window.removeEventListener("popstate", onPopState);
  }, []);

  const navigate = useCallback((to: Route | string, options?: { replace?: boolean }) => {
    const href = typeof to === "string" ? to : hrefOf(to);
    if (options?.replace === true) history.replaceState(null, "", href);
    else history.pushState(null, "", href);
    setEntry({ ...currentLocation(), hasNavigated: true, isHistoryNavigation: false });
  }, []);

  const setQuery = useCallback((changes: Readonly<Record<string, string | null>>) => {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === "") query.delete(name);
      else query.set(name, value);
    }
    const search = query.toString();
    history.replaceState(history.state, "", location.pathname + (search === "" ? "" : `?${search}`));
    setEntry((before) => ({ ...before, ...currentLocation() }));
  }, []);

  const route = useMemo(() => parseRoute(entry.path), [entry.path]);
  const query = useMemo(() => new URLSearchParams(entry.search), [entry.search]);
  const router = useMemo<Router>(
    () => ({ route, query, navigate, setQuery, hasNavigated: entry.hasNavigated, isHistoryNavigation: entry.isHistoryNavigation }),
    [route, query, navigate, setQuery, entry.hasNavigated, entry.isHistoryNavigation],
  );
  return <RouterContext value={router}>{children}</RouterContext>;
}

/** Returns the router. */
export function useRouter(): Router {
  const router = use(RouterContext);
  if (router === null) throw new Error("useRouter outside of RouterProvider");
  return router;
}

type LinkProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> & { to: Route | string };

/** Link to a page of the console without a reload. Modified clicks are left to the browser. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  const { navigate } = useRouter();
  const href = typeof to === "string" ? to : hrefOf(to);
  const onLinkClick = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const modified = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0;
    if (event.defaultPrevented || modified || rest.target === "_blank") return;
    event.preventDefault();
    navigate(href);
  };
  return <a {...rest} href={href} onClick={onLinkClick} />;
}

/** Focuses a page's heading after a navigation, as a page load would. */
export function useHeadingFocus<E extends HTMLElement>() {
  const heading = useRef<E>(null);
  const { route, hasNavigated } = useRouter();
  const page = route.name === "run" ? `run ${route.id}` : hrefOf(route);
  useEffect(() => {
    if (hasNavigated) heading.current?.focus({ preventScroll: true });
    // Another tab of a run, or a changed title, must not move the focus.
  }, [page]);
  return heading;
}

function currentLocation(): { path: string; search: string } {
  return { path: location.pathname, search: location.search };
}
