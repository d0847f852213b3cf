/** A legacy frame without metadata: flat, or with its fields in `data`. */
type Legacy<Type extends string, Fields> = ({ type: Type } & Fields) | { type: Type; data: Fields };

/** The frames that StreamingEngine sent before it had metadata (§6 of its document). */
export type LegacyFrame =
  | Legacy<"token", { content: string }>
  | Legacy<"final_answer", { content: string }>
  | Legacy<"thinking", { content: string }>
  | Legacy<"tool_call", { tool_id: string; tool_name: string; tool_args?: string | Record<string, unknown> }>
  | Legacy<"tool_result", { tool_id: string; status: "completed" | "failed"; result?: unknown }>
  | Legacy<"dataframe_data", { dataframe_name?: string; columns: unknown[]; data: unknown[] }>
  | Legacy<"error", { message: string }>
  | Legacy<"done", object>;
