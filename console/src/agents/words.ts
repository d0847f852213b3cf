import type { Agent } from "@runwire/client";
import type { Language } from "../text";

/** What is shown of an agent in one language. */
export interface AgentWords {
  title: string;
  description: string | null;
  examples: readonly string[];
}

/** Gives an agent's words; its name stands in for a title. */
export function wordsOf(agent: Agent, language: Language): AgentWords {
  return {
    title: agent.title?.[language] ?? agent.name,
    description: agent.description?.[language] ?? null,
    examples: agent.examples.map((example) => example[language]),
  };
}
