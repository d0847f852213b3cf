// Written by scripts/types.mjs from vectors/loom/schema.json: `npm run types`. Do not edit.

/** What every frame has. */
export interface Envelope {
  /** The session; the same in all its frames. */
  session_id?: string;
  /** The node run; may repeat. */
  node_id?: string;
  /** The frame's number, growing within the stream. */
  event_id?: number;
  runwire?: Residue;
}

/** Opens a run, before its first node_enter. (§4.2) */
export interface RunStartFrame extends Envelope {
  type: "run_start";
  run_id?: string;
  /** The user's message. */
  message?: string;
  /** Kind of agent, such as react, tot or got. */
  agent?: string;
}

/** Opens a node run; every line up to its node_exit shares the envelope's node_id. (§4.2) */
export interface NodeEnterFrame extends Envelope {
  type: "node_enter";
  /** Name of the node (not the envelope's node_id). */
  id: string;
}

/** Closes a node run with "Ok" or with {"Err": message}. (§4.2) */
export interface NodeExitFrame extends Envelope {
  type: "node_exit";
  /** Name of the node (not the envelope's node_id). */
  id: string;
  /** "Ok", or an object whose Err says what went wrong. */
  result: "Ok" | {
    Err: string;
  };
}

/** A piece of the model's answer, and the node that it comes from. (§4.2) */
export interface MessageChunkFrame extends Envelope {
  type: "message_chunk";
  content: string;
  /** Name of the node (not the envelope's node_id). */
  id: string;
}

/** A piece of the model's thinking; a type added as the document's extension rule allows. (§8) */
export interface ThoughtChunkFrame extends Envelope {
  type: "thought_chunk";
  content: string;
  /** Name of the node (not the envelope's node_id). */
  id: string;
}

/** Tokens of one model call. (§4.2) */
export interface UsageFrame extends Envelope {
  type: "usage";
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

/** The whole state of the graph, of any shape. (§4.2) */
export interface ValuesFrame extends Envelope {
  type: "values";
  /** Any JSON. */
  state: unknown;
}

/** The state after a node's result was merged into it. (§4.2) */
export interface UpdatesFrame extends Envelope {
  type: "updates";
  /** Name of the node (not the envelope's node_id). */
  id: string;
  /** Any JSON. */
  state: unknown;
}

/** Any JSON of the agent's own; {"runwire": event} is the extension slot for what has no type here. (§4.2) */
export interface CustomFrame extends Envelope {
  type: "custom";
  /** Any JSON, null included. */
  value: unknown;
}

/** A checkpoint of the graph's state. (§4.2) */
export interface CheckpointFrame extends Envelope {
  type: "checkpoint";
  checkpoint_id: string;
  timestamp: string | number;
  step: number;
  /** Any JSON. */
  state: unknown;
  thread_id: string | null;
  checkpoint_ns: string | null;
}

/** Tree of thoughts: the candidates of the next step. (§4.2) */
export interface TotExpandFrame extends Envelope {
  type: "tot_expand";
  candidates: string[];
}

/** Tree of thoughts: the scores of the candidates and the index of the chosen one. (§4.2) */
export interface TotEvaluateFrame extends Envelope {
  type: "tot_evaluate";
  chosen: number;
  scores: number[];
}

/** Tree of thoughts: the search goes back to a smaller depth. (§4.2) */
export interface TotBacktrackFrame extends Envelope {
  type: "tot_backtrack";
  reason: string;
  to_depth: number;
}

/** Graph of thoughts: the planned tasks and how many edges join them. (§4.2) */
export interface GotPlanFrame extends Envelope {
  type: "got_plan";
  node_count: number;
  edge_count: number;
  node_ids: string[];
}

/** Graph of thoughts: a task begins; it opens no node run. (§4.2) */
export interface GotNodeStartFrame extends Envelope {
  type: "got_node_start";
  /** Id of the task in the thought graph. */
  id: string;
}

/** Graph of thoughts: a task is done. (§4.2) */
export interface GotNodeCompleteFrame extends Envelope {
  type: "got_node_complete";
  /** Id of the task in the thought graph. */
  id: string;
  result_summary: string;
}

/** Graph of thoughts: a task failed. (§4.2) */
export interface GotNodeFailedFrame extends Envelope {
  type: "got_node_failed";
  /** Id of the task in the thought graph. */
  id: string;
  error: string;
}

/** Adaptive graph of thoughts: a task was expanded; node_id is the task's here and takes the envelope's place. (§4.2) */
export interface GotExpandFrame extends Envelope {
  type: "got_expand";
  /** Id of the expanded task, not of the node run. */
  node_id: string;
  nodes_added: number;
  edges_added: number;
}

/** A piece of a call's arguments while the model writes them. (§4.2) */
export interface ToolCallChunkFrame extends Envelope {
  type: "tool_call_chunk";
  /** Id of the call; left out, never null, where there is none. */
  call_id?: string;
  name?: string;
  arguments_delta: string;
}

/** A complete call: the tool's name and all arguments. (§4.2) */
export interface ToolCallFrame extends Envelope {
  type: "tool_call";
  /** Id of the call; left out, never null, where there is none. */
  call_id?: string;
  name: string;
  arguments: Record<string, unknown>;
}

/** The tool begins to run. (§4.2) */
export interface ToolStartFrame extends Envelope {
  type: "tool_start";
  /** Id of the call; left out, never null, where there is none. */
  call_id?: string;
  name: string;
}

/** Something that the tool printed; any number per call. (§4.2) */
export interface ToolOutputFrame extends Envelope {
  type: "tool_output";
  /** Id of the call; left out, never null, where there is none. */
  call_id?: string;
  name: string;
  content: string;
}

/** The tool has ended; is_error tells success from failure. (§4.2) */
export interface ToolEndFrame extends Envelope {
  type: "tool_end";
  /** Id of the call; left out, never null, where there is none. */
  call_id?: string;
  name: string;
  result: string;
  is_error: boolean;
}

/** A call that waits for a person's consent. (§4.2) */
export interface ToolApprovalFrame extends Envelope {
  type: "tool_approval";
  /** Id of the call; left out, never null, where there is none. */
  call_id?: string;
  name: string;
  arguments: Record<string, unknown>;
}

/** The whole reply of the run: its last line, told by the key reply and the absence of type. (§5) */
export interface ReplyFrame extends Envelope {
  type?: undefined;
  /** The whole reply of the run. */
  reply: string;
  /** Why the run ended. */
  stop_reason?: string;
  /** What went wrong: a message, or an object with one. */
  error?: string | {
    message: string;
  };
  /** The run's thinking, which later versions add. */
  reasoning_content?: string;
}

/** Written with fidelity=full only: what the native frame cannot say, as an array of objects. */
export type Residue = Record<string, unknown>[];

/** A frame of a type that the dialect defines. Others are allowed, and handed out as they came. */
export type Frame =
  | RunStartFrame
  | NodeEnterFrame
  | NodeExitFrame
  | MessageChunkFrame
  | ThoughtChunkFrame
  | UsageFrame
  | ValuesFrame
  | UpdatesFrame
  | CustomFrame
  | CheckpointFrame
  | TotExpandFrame
  | TotEvaluateFrame
  | TotBacktrackFrame
  | GotPlanFrame
  | GotNodeStartFrame
  | GotNodeCompleteFrame
  | GotNodeFailedFrame
  | GotExpandFrame
  | ToolCallChunkFrame
  | ToolCallFrame
  | ToolStartFrame
  | ToolOutputFrame
  | ToolEndFrame
  | ToolApprovalFrame
  | ReplyFrame;
