import type { Summary, UsageEvent } from "../generated.js";

/** The tokens of one model call. */
export interface UsageCall {
  /** Time of the event in milliseconds since the epoch. */
  at: number;
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
  /** Prompt tokens read from a cache, if reported. */
  cachedTokens?: number;
  /** Id of the enclosing step. */
  stepId?: string;
  /** Name of the enclosing step. */
  step?: string;
  /** Name of the running tool, if exactly one ran. */
  tool?: string;
}

/** The tokens of a run. */
export interface RunViewUsage {
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
  /** Prompt tokens read from a cache, if reported. */
  cachedTokens?: number;
  /** The model calls that reported their tokens. */
  calls: readonly UsageCall[];
}

interface Tokens {
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  total_tokens?: number | undefined;
}

/** Sums the tokens of a run. */
export class UsageFold {
  #calls: UsageCall[] = [];
  #totals: Omit<RunViewUsage, "calls"> | undefined;
  #cached: RunViewUsage | undefined;

  add(event: UsageEvent, at: number, step: string | undefined, tool: string | undefined): void {
    this.#calls.push({
      at,
      ...this.#count(event, cachedOf(event.extra)),
      ...(event.step_id !== undefined && { stepId: event.step_id }),
      ...(step !== undefined && { step }),
      ...(tool !== undefined && { tool }),
    });
  }

  /** Uses the totals of the summary if no model call reported its tokens. */
  end(summary: Summary | undefined): void {
    if (!summary || this.#calls.length > 0) return;
    if ([summary.prompt_tokens, summary.completion_tokens, summary.total_tokens].some((tokens) => (tokens ?? 0) > 0)) this.#count(summary);
  }

  snapshot(): RunViewUsage | undefined {
    if (this.#totals !== undefined) this.#cached ??= { ...this.#totals, calls: [...this.#calls] };
    return this.#cached;
  }

  #count(tokens: Tokens, cached?: number): Omit<RunViewUsage, "calls"> {
    const [promptTokens, completionTokens] = [tokens.prompt_tokens ?? 0, tokens.completion_tokens ?? 0];
    const totalTokens = tokens.total_tokens ?? promptTokens + completionTokens;
    this.#cached = undefined;
    const before = this.#totals ?? { promptTokens: 0, completionTokens: 0, totalTokens: 0 };
    this.#totals = {
      promptTokens: before.promptTokens + promptTokens,
      completionTokens: before.completionTokens + completionTokens,
      totalTokens: before.totalTokens + totalTokens,
      ...((before.cachedTokens ?? cached) !== undefined && { cachedTokens: (before.cachedTokens ?? 0) + (cached ?? 0) }),
    };
    return { promptTokens, completionTokens, totalTokens, ...(cached !== undefined && { cachedTokens: cached }) };
  }
}

/** Names that providers use for the number of cached prompt tokens; the event model has none. */
const CACHED_TOKENS_FIELDS = ["cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens", "cache_read_tokens"];

function cachedOf(extra: Record<string, unknown> | undefined): number | undefined {
  if (!extra) return undefined;
  const details = extra["prompt_tokens_details"] ?? extra["input_tokens_details"];
  const sources = [extra, typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {}];
  for (const source of sources) {
    for (const name of CACHED_TOKENS_FIELDS) {
      const tokens = source[name];
      if (typeof tokens === "number" && tokens >= 0) return tokens;
    }
  }
  return undefined;
}
