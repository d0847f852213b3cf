import type { GotNode, TotNode } from "@runwire/client";
import type { RunStatus, Tone } from "../../ui";

/** Status dot of a graph node. */
export const dotStatusOf: Record<GotNode["status"], RunStatus> = { planned: "pending", running: "running", completed: "completed", failed: "failed" };

/** Badge tone of a thought. */
export const toneOf: Record<TotNode["status"], Tone> = { candidate: "quiet", chosen: "live", abandoned: "warn" };
