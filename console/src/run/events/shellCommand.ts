/** Framings of a stream. */
export const framings = ["sse", "ndjson", "websocket"] as const;

/** A framing of a stream. */
export type Framing = (typeof framings)[number];

/** A stream to read with a shell command. */
export interface StreamRequest {
  /** Origin of the server. */
  origin: string;
  run: string;
  dialect: string;
  framing: Framing;
  /** Cursor to start after. Default: the beginning. */
  after?: string | undefined;
}

/** Returns the shell command that reads a stream. */
export function shellCommand({ origin, run, dialect, framing, after }: StreamRequest): string {
  if (framing === "websocket") {
    const message = JSON.stringify(subscribeMessage({ run, dialect, after }));
    return `printf '%s\\n' ${shellQuote(message)} | websocat -n ${shellQuote(`${origin.replace(/^http/, "ws")}/v1/ws`)}`;
  }
  const query = new URLSearchParams({ dialect });
  if (after !== undefined) query.set("after", after);
  const url = `${origin}/v1/runs/${encodeURIComponent(run)}/events?${query.toString()}`;
  const accept = framing === "ndjson" ? "application/x-ndjson" : "text/event-stream";
  return `curl -N -H ${shellQuote(`Accept: ${accept}`)} ${shellQuote(url)}`;
}

/** Returns the WebSocket message that subscribes to a stream. */
export function subscribeMessage({ run, dialect, after }: Pick<StreamRequest, "run" | "dialect" | "after">): Record<string, string> {
  return { op: "subscribe", id: "1", run, dialect, ...(after !== undefined && { after }) };
}

/** Quotes an argument for a POSIX shell. */
export function shellQuote(argument: string): string {
  if (/^[A-Za-z0-9@%+=:,./_-]+$/.test(argument)) return argument;
  return `'${argument.replaceAll("'", "'\\''")}'`;
}
