import type { UseRunResult } from "@runwire/client/react";

/** What every tab of a run's page is given. */
export interface RunTabProps {
  /** The run's id. */
  id: string;
  /** What `useRun` gives, read once for all tabs. */
  run: UseRunResult;
}
