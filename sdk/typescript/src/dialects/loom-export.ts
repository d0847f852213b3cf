// Written by scripts/types.mjs from vectors/loom-export/schema.json: `npm run types`. Do not edit.

/** Opens a run, before its first node_enter. (§6) */
export interface RunStartFrame {
  RunStart: {
    run_id?: string;
    /** The user's message. */
    message?: string;
    /** Kind of agent, such as react, tot or got. */
    agent?: string;
    [field: string]: unknown;
  };
}

/** Opens a node run; every line up to its node_exit shares the envelope's node_id. (§6) */
export interface TaskStartFrame {
  TaskStart: {
    /** Name of the node: the typed form's id. */
    node_id: string;
  };
}

/** Closes a node run with "Ok" or with {"Err": message}. (§6) */
export interface TaskEndFrame {
  TaskEnd: {
    /** Name of the node: the typed form's id. */
    node_id: string;
    /** "Ok", or an object whose Err says what went wrong. */
    result: "Ok" | {
      Err: string;
    };
  };
}

/** A piece of the model's answer, and the node that it comes from. (§6) */
export interface MessagesFrame {
  Messages: {
    chunk: {
      content: string;
    };
    metadata: {
      /** Name of the node: the typed form's id. */
      loom_node: string;
    };
  };
}

/** A piece of the model's thinking; a type added as the document's extension rule allows. (§8) */
export interface ThoughtChunkFrame {
  ThoughtChunk: {
    content: string;
    /** Name of the node (not the envelope's node_id). */
    id: string;
  };
}

/** Tokens of one model call. (§6) */
export interface UsageFrame {
  Usage: {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
  };
}

/** The whole state of the graph, of any shape. (§6) */
export interface ValuesFrame {
  /** Bare: any JSON, with no object around it. */
  Values: unknown;
}

/** The state after a node's result was merged into it. (§6) */
export interface UpdatesFrame {
  Updates: {
    /** Name of the node: the typed form's id. */
    node_id: string;
    /** Any JSON. */
    state: unknown;
  };
}

/** Any JSON of the agent's own; {"Custom": {"runwire": event}} is the extension slot for what has no type here. (§6) */
export interface CustomFrame {
  /** Bare: any JSON, with no object around it. */
  Custom: unknown;
}

/** A checkpoint of the graph's state. (§6) */
export interface CheckpointFrame {
  Checkpoint: {
    checkpoint_id: string;
    timestamp: string | number;
    step: number;
    /** Any JSON. */
    state: unknown;
    thread_id: string | null;
    checkpoint_ns: string | null;
  };
}

/** Tree of thoughts: the candidates of the next step. (§6) */
export interface TotExpandFrame {
  TotExpand: {
    candidates: string[];
  };
}

/** Tree of thoughts: the scores of the candidates and the index of the chosen one. (§6) */
export interface TotEvaluateFrame {
  TotEvaluate: {
    chosen: number;
    scores: number[];
  };
}

/** Tree of thoughts: the search goes back to a smaller depth. (§6) */
export interface TotBacktrackFrame {
  TotBacktrack: {
    reason: string;
    to_depth: number;
  };
}

/** Graph of thoughts: the planned tasks and how many edges join them. (§6) */
export interface GotPlanFrame {
  GotPlan: {
    node_count: number;
    edge_count: number;
    node_ids: string[];
  };
}

/** Graph of thoughts: a task begins; it opens no node run. (§6) */
export interface GotNodeStartFrame {
  GotNodeStart: {
    /** Id of the task: the typed form's id. */
    node_id: string;
  };
}

/** Graph of thoughts: a task is done. (§6) */
export interface GotNodeCompleteFrame {
  GotNodeComplete: {
    /** Id of the task: the typed form's id. */
    node_id: string;
    result_summary: string;
  };
}

/** Graph of thoughts: a task failed. (§6) */
export interface GotNodeFailedFrame {
  GotNodeFailed: {
    /** Id of the task: the typed form's id. */
    node_id: string;
    error: string;
  };
}

/** Adaptive graph of thoughts: a task was expanded. (§6) */
export interface GotExpandFrame {
  GotExpand: {
    /** Id of the expanded task, not of the node run. */
    node_id: string;
    nodes_added: number;
    edges_added: number;
  };
}

/** A piece of a call's arguments while the model writes them. (§6) */
export interface ToolCallChunkFrame {
  ToolCallChunk: {
    /** Id of the call; left out, never null, where there is none. */
    call_id?: string;
    name?: string;
    arguments_delta: string;
  };
}

/** A complete call: the tool's name and all arguments. (§6) */
export interface ToolCallFrame {
  ToolCall: {
    /** Id of the call; left out, never null, where there is none. */
    call_id?: string;
    name: string;
    arguments: Record<string, unknown>;
  };
}

/** The tool begins to run. (§6) */
export interface ToolStartFrame {
  ToolStart: {
    /** Id of the call; left out, never null, where there is none. */
    call_id?: string;
    name: string;
  };
}

/** Something that the tool printed; any number per call. (§6) */
export interface ToolOutputFrame {
  ToolOutput: {
    /** Id of the call; left out, never null, where there is none. */
    call_id?: string;
    name: string;
    content: string;
  };
}

/** The tool has ended; is_error tells success from failure. (§6) */
export interface ToolEndFrame {
  ToolEnd: {
    /** Id of the call; left out, never null, where there is none. */
    call_id?: string;
    name: string;
    result: string;
    is_error: boolean;
  };
}

/** A call that waits for a person's consent. (§6) */
export interface ToolApprovalFrame {
  ToolApproval: {
    /** Id of the call; left out, never null, where there is none. */
    call_id?: string;
    name: string;
    arguments: Record<string, unknown>;
  };
}

/** The whole reply of the run in the single-key form: its last frame. (§5) */
export interface ReplyFrame {
  Reply: {
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
  };
}

/** A frame of a type that the dialect defines. Others are allowed, and handed out as they came. */
export type Frame =
  | RunStartFrame
  | TaskStartFrame
  | TaskEndFrame
  | MessagesFrame
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
