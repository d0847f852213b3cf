// Reads one ag-ui.ndjson and cuts it the way a client would receive it.
import { EventSchemas } from "@ag-ui/core/schemas";
import { verifyEvents } from "@ag-ui/client";
import { Subject } from "rxjs";

/** Parses every line with the official event schema. */
export function parseLines(bytes) {
  const problems = [];
  const lines = [];
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { lines, problems: ["not valid UTF-8"] };
  }
  const raws = text.split("\n");
  if (raws.at(-1) === "") raws.pop();
  raws.forEach((raw, index) => {
    const number = index + 1;
    if (raw.endsWith("\r")) return problems.push(`line ${number}: ends in CRLF, which the client does not split`);
    let event;
    try {
      event = JSON.parse(raw);
    } catch (error) {
      return problems.push(`line ${number}: not JSON: ${error.message}`);
    }
    const parsed = EventSchemas.safeParse(event);
    if (!parsed.success) {
      const issues = parsed.error.issues.map((issue) => `${issue.path.join(".") || "(event)"}: ${issue.message}`);
      return problems.push(`line ${number}: ${event?.type ?? "no type"}: ${issues.join(", ")}`);
    }
    lines.push({ number, raw, event });
  });
  if (lines.length === 0 && problems.length === 0) problems.push("no events");
  return { lines, problems };
}

/**
 * Feeds the uncut stream to the client's verifier, as a reader of a whole
 * thread would, so that a refusal can be named by its line.
 */
export function verifyWhole(lines) {
  const source = new Subject();
  let refusal;
  source.pipe(verifyEvents()).subscribe({ error: (error) => (refusal = error) });
  for (const { number, event } of lines) {
    source.next(event);
    if (refusal) return [`line ${number}: verifyEvents: ${refusal.message}`];
  }
  return [];
}

const isTerminal = (event) => event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
const isInterrupt = (event) => event.type === "RUN_FINISHED" && event.outcome?.type === "interrupt";

/**
 * Cuts the stream into runs, and each run into responses. A response ends at
 * every terminal event; a run goes on over the responses that follow an
 * interrupt in its thread.
 */
export function cutIntoRuns(lines) {
  const runs = [];
  const problems = [];
  let response;
  let interruptedThread;
  for (const line of lines) {
    const { event, number } = line;
    if (!response) {
      response = { lines: [], threadId: event.threadId ?? runs.at(-1)?.threadId ?? "" };
      if (event.type === "RUN_ERROR" && runs.length > 0) {
        // verifyEvents lets this pass after RUN_FINISHED, but the response
        // that would carry it has ended by then.
        problems.push(`line ${number}: RUN_ERROR after the run's terminal event, where no reader is left`);
      }
      if (interruptedThread === undefined || interruptedThread !== response.threadId) {
        runs.push({ runId: event.runId, threadId: response.threadId, responses: [] });
      }
      runs.at(-1).responses.push(response);
    }
    response.lines.push(line);
    const { event: opening } = response.lines[0];
    if (event.type === "RUN_FINISHED" && (event.runId !== opening.runId || event.threadId !== opening.threadId)) {
      // The client does not look, but a reader that matches runs by id would.
      problems.push(`line ${number}: RUN_FINISHED names another run or thread than its RUN_STARTED`);
    }
    if (isTerminal(event)) {
      interruptedThread = isInterrupt(event) ? response.threadId : undefined;
      response = undefined;
    }
  }
  if (response) problems.push(`line ${lines.at(-1).number}: the stream ends without RUN_FINISHED or RUN_ERROR`);
  return { runs, problems };
}
