/** An older event, flat or with its fields in `data`, without metadata. */
type Older<Type extends string, Fields> = ({ type: Type } & Fields) | { type: Type; data: Fields };

/** The events that StreamingEngine sent before it had metadata (§6 of its document). */
export type LegacyFrame =
  | Older<"token", { content: string }>
  | Older<"final_answer", { content: string }>
  | Older<"thinking", { content: string }>
  | Older<"tool_call", { tool_id: string; tool_name: string; tool_args?: string | Record<string, unknown> }>
  | Older<"tool_result", { tool_id: string; status: "completed" | "failed"; result?: unknown }>
  | Older<"dataframe_data", { dataframe_name?: string; columns: unknown[]; data: unknown[] }>
  | Older<"error", { message: string }>
  | Older<"done", object>;
