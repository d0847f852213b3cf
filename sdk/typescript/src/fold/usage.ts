import type { Summary, UsageEvent } from "../generated.js";

/** The tokens of one model call. */
export interface UsageCall {
  /** When it was told, in milliseconds since the epoch. */
  at: number;
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
  /** How many of the prompt came from a cache, where the source says so. */
  cachedTokens?: number;
  /** The step it was made in. */
  stepId?: string;
  /** That step's name. */
  step?: string;
  /** The tool that was at work, where it was the only one. */
  tool?: string;
}

/** The tokens of a run. */
export interface RunViewUsage {
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
  /** How many of the prompts came from a cache, where the source says so. */
  cachedTokens?: number;
  /** Each model call that told its tokens. */
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
  #shown: RunViewUsage | undefined;

  add(event: UsageEvent, at: number, step: string | undefined, tool: string | undefined): void {
    this.#calls.push({
      at,
      ...this.#count(event, cachedOf(event.extra)),
      ...(event.step_id !== undefined && { stepId: event.step_id }),
      ...(step !== undefined && { step }),
      ...(tool !== undefined && { tool }),
    });
  }

  /** Takes the figures of the whole run; they count only where no model call told its tokens. */
  end(summary: Summary | undefined): void {
    if (!summary || this.#calls.length > 0) return;
    if ([summary.prompt_tokens, summary.completion_tokens, summary.total_tokens].some((tokens) => (tokens ?? 0) > 0)) this.#count(summary);
  }

  snapshot(): RunViewUsage | undefined {
    if (this.#totals !== undefined) this.#shown ??= { ...this.#totals, calls: [...this.#calls] };
    return this.#shown;
  }

  #count(tokens: Tokens, cached?: number): Omit<RunViewUsage, "calls"> {
    const [promptTokens, completionTokens] = [tokens.prompt_tokens ?? 0, tokens.completion_tokens ?? 0];
    const totalTokens = tokens.total_tokens ?? promptTokens + completionTokens;
    this.#shown = undefined;
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

/** The names under which providers tell how much of a prompt was cached; the model has no name for it. */
const CACHED = ["cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens", "cache_read_tokens"];

function cachedOf(extra: Record<string, unknown> | undefined): number | undefined {
  if (!extra) return undefined;
  const details = extra["prompt_tokens_details"] ?? extra["input_tokens_details"];
  const places = [extra, typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {}];
  for (const place of places) {
    for (const name of CACHED) {
      const tokens = place[name];
      if (typeof tokens === "number" && tokens >= 0) return tokens;
    }
  }
  return undefined;
}
