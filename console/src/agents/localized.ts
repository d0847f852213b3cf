import type { Agent } from "@runwire/client";
import type { Language } from "../text";

/** The texts of an agent in one language. */
export interface LocalizedAgent {
  title: string;
  description: string | null;
  examples: readonly string[];
}

/** Returns the texts of an agent; the title defaults to its name. */
export function localizedAgent(agent: Agent, language: Language): LocalizedAgent {
  return {
    title: agent.title?.[language] ?? agent.name,
    description: agent.description?.[language] ?? null,
    examples: agent.examples.map((example) => example[language]),
  };
}
