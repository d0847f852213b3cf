// Drives the real HttpAgent: only fetch is ours, and it answers with SSE bytes.
import { HttpAgent } from "@ag-ui/client";

// The client's warnings are how it says that it dropped or could not apply
// something; they must not be silenced by the environment.
delete process.env.SUPPRESS_TRANSFORMATION_WARNINGS;

/** One client per thread, which keeps messages and state from run to run. */
export class ThreadClients {
  #agents = new Map();

  #agent(threadId) {
    if (!this.#agents.has(threadId)) {
      this.#agents.set(threadId, new HttpAgent({ url: "http://runwire.invalid/", threadId }));
    }
    return this.#agents.get(threadId);
  }

  messages(threadId) {
    return structuredClone(this.#agent(threadId).messages);
  }

  state(threadId) {
    return structuredClone(this.#agent(threadId).state);
  }

  /**
   * Receives one response. Returns what the client complained about; messages
   * and state are kept also where it rejects.
   */
  async receive({ threadId, lines }) {
    const agent = this.#agent(threadId);
    const first = lines[0].event;
    const terminal = lines.at(-1).event;
    const body = lines.map(({ raw }) => `data: ${raw}\n\n`).join("");
    agent.fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });

    const problems = [];
    const { warn, error } = console;
    console.warn = (...words) => problems.push(`client warned: ${sentence(words)}`);
    console.error = () => {}; // the rejection below says the same
    let seen = 0;
    try {
      await agent.runAgent(
        { runId: first.runId, resume: answersTo(agent.pendingInterrupts) },
        { onEvent: () => void seen++ },
      );
    } catch (failure) {
      const isTheRunsOwnError = terminal.type === "RUN_ERROR" && failure.message === terminal.message;
      if (!isTheRunsOwnError) problems.push(`client rejected: ${sentence([failure.message])}`);
    } finally {
      Object.assign(console, { warn, error });
    }
    if (problems.length === 0 && seen < lines.length) {
      problems.push(`client applied ${seen} of ${lines.length} events`);
    }
    return problems.map((problem) => `lines ${lines[0].number}-${lines.at(-1).number}: ${problem}`);
  }
}

/** The client refuses to go on unless all that is pending is answered, or cancelled once it has expired. */
function answersTo(interrupts) {
  if (interrupts.length === 0) return undefined;
  return interrupts.map(({ id, expiresAt }) =>
    expiresAt !== undefined && new Date(expiresAt) <= new Date()
      ? { interruptId: id, status: "cancelled" }
      : { interruptId: id, status: "resolved", payload: {} },
  );
}

const sentence = (words) => words.map(String).join(" ").replace(/\s+/g, " ").slice(0, 400);
