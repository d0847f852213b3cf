import type { UseRunResult } from "@runwire/client/react";

/** Props of every tab of a run's page. */
export interface RunTabProps {
  /** The run's id. */
  id: string;
  /** Result of `useRun`, shared by all tabs. */
  run: UseRunResult;
}
