import type { GotNode, TotNode } from "@runwire/client";
import type { RunStatus, Tone } from "../../ui";

/** A node's state, drawn as the state of a run is. */
export const shapeOf: Record<GotNode["status"], RunStatus> = { planned: "pending", running: "running", completed: "completed", failed: "failed" };

/** What became of a thought, as a colour beside its word. */
export const toneOfThought: Record<TotNode["status"], Tone> = { candidate: "quiet", chosen: "live", abandoned: "warn" };
