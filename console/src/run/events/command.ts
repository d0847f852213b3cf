/** How frames are cut on the wire. */
export const framings = ["sse", "ndjson", "websocket"] as const;

/** One way to cut frames. */
export type Framing = (typeof framings)[number];

/** A stream that a command reads. */
export interface Asked {
  /** Where the server is: scheme, host, port. */
  origin: string;
  run: string;
  dialect: string;
  framing: Framing;
  /** The place to begin after; the start without it. */
  after?: string | undefined;
}

/** Writes the command that reads exactly this stream in a terminal. */
export function commandOf({ origin, run, dialect, framing, after }: Asked): string {
  if (framing === "websocket") {
    const ask = JSON.stringify(subscription({ run, dialect, after }));
    return `printf '%s\\n' ${quoted(ask)} | websocat -n ${quoted(`${origin.replace(/^http/, "ws")}/v1/ws`)}`;
  }
  const query = new URLSearchParams({ dialect });
  if (after !== undefined) query.set("after", after);
  const address = `${origin}/v1/runs/${encodeURIComponent(run)}/events?${query.toString()}`;
  const accept = framing === "ndjson" ? "application/x-ndjson" : "text/event-stream";
  return `curl -N -H ${quoted(`Accept: ${accept}`)} ${quoted(address)}`;
}

/** Writes the message that asks for a stream on a WebSocket. */
export function subscription({ run, dialect, after }: Pick<Asked, "run" | "dialect" | "after">): Record<string, string> {
  return { op: "subscribe", id: "1", run, dialect, ...(after !== undefined && { after }) };
}

/** Quotes a word for a POSIX shell. */
export function quoted(word: string): string {
  if (/^[A-Za-z0-9@%+=:,./_-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}
