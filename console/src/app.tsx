import { lazy, Suspense } from "react";
import { RunwireProvider } from "@runwire/client/react";
import { AgentPage } from "./agents/AgentPage";
import { AgentsPage } from "./agents/AgentsPage";
import { client, OpenInteractionsProvider } from "./client";
import { InboxPage } from "./inbox/InboxPage";
import { hrefOf, RouterProvider, useRouter, type Route } from "./router";
import { RunsPage } from "./runs/RunsPage";
import { NotFoundPage } from "./shell/NotFoundPage";
import { Shell } from "./shell/Shell";
import { TextProvider } from "./text";
import { ThreadPage } from "./threads/ThreadPage";
import { ThreadsPage } from "./threads/ThreadsPage";
import { ErrorBoundary, Loading } from "./ui";

const RunPage = lazy(async () => ({ default: (await import("./run")).RunPage }));

/** The console. */
export function App() {
  return (
    <TextProvider>
      <RunwireProvider client={client}>
        <OpenInteractionsProvider>
          <RouterProvider>
            <Shell>
              <CurrentPage />
            </Shell>
          </RouterProvider>
        </OpenInteractionsProvider>
      </RunwireProvider>
    </TextProvider>
  );
}

function CurrentPage() {
  const { route } = useRouter();
  return (
    <ErrorBoundary resetKey={hrefOf(route)}>
      <Suspense fallback={<Loading />}>{pageOf(route)}</Suspense>
    </ErrorBoundary>
  );
}

/** Returns the page of a route. The keys reset its state when the id changes. */
function pageOf(route: Route) {
  switch (route.name) {
    case "runs":
      return <RunsPage />;
    case "run":
      return <RunPage key={route.id} id={route.id} tab={route.tab} />;
    case "threads":
      return <ThreadsPage />;
    case "thread":
      return <ThreadPage key={route.id} id={route.id} />;
    case "inbox":
      return <InboxPage />;
    case "agents":
      return <AgentsPage />;
    case "agent":
      return <AgentPage key={route.id} name={route.id} />;
    case "not-found":
      return <NotFoundPage />;
  }
}
