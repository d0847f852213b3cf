//! The table of error codes. Each has a page in `docs/errors/`.

/// An error code. The code is stable; title and hint may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The stable code.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What happened, in one line.
    pub title: &'static str,
    /// What to do.
    pub hint: &'static str,
}

impl Code {
    /// Returns the path of the code's page in the repository.
    pub fn page(&self) -> String {
        format!("docs/errors/{}.md", self.code)
    }
}

const fn code(code: &'static str, status: u16, title: &'static str, hint: &'static str) -> Code {
    Code { code, status, title, hint }
}

/// The code of a bug in the server.
pub(super) const INTERNAL: Code = code(
    "internal",
    500,
    "The server made an error",
    "Try again; if it stays, report it with the server's log.",
);

/// Every code, in the order of the docs: requests, frames, producers, runs and threads, agents, moving, reading, WebSocket, the server.
pub const CODES: &[Code] = &[
    code("not_found", 404, "Nothing answers here", "Look the path up in /openapi.json."),
    code(
        "method_not_allowed",
        405,
        "The path does not answer this method",
        "Use a method of the `Allow` header.",
    ),
    code("bad_id", 400, "An id is malformed", "Use 1 to 256 bytes of UTF-8 without control characters."),
    code("bad_query", 400, "A query parameter is wrong", "Correct the parameter that `parameter` names."),
    code("bad_header", 400, "A header is wrong", "Correct the header that `header` names."),
    code("bad_body", 400, "The JSON body has a wrong field", "Correct the field that `detail` names."),
    code("body_too_large", 413, "The body is too large", "Send less; large runs are written as events."),
    code("body_broken", 400, "The body broke off", "Send what was not acknowledged again."),
    code(
        "body_idle",
        408,
        "An open body was silent and its run is not open",
        "Open a body when there is something to write; send blank lines to keep it alive.",
    ),
    code("unsupported_media_type", 415, "The body is of an unknown kind", "Send what `expected` names."),
    code(
        "not_acceptable",
        406,
        "Nothing that is accepted can be sent",
        "Accept one of the types in `expected`.",
    ),
    // Frames
    code(
        "not_json",
        400,
        "This is not JSON",
        "Correct the JSON; frames that stand before it in the same body are written.",
    ),
    code("not_an_object", 400, "A frame is no JSON object", "Send one JSON object a frame."),
    code("not_utf8", 400, "A frame is not UTF-8", "Send UTF-8."),
    code(
        "lone_surrogate",
        400,
        "A frame has half of a surrogate pair",
        "Cut texts between characters, never inside one.",
    ),
    code("too_deep", 422, "A frame is nested too deeply", "Flatten the frame; 128 levels are allowed."),
    code("frame_too_long", 413, "A frame is too long", "Send large texts and arguments in pieces."),
    code("bad_field", 422, "A field of a frame is missing or wrong", "Correct the field that `field` names."),
    code(
        "breaks_document",
        422,
        "A frame breaks its dialect's document",
        "Correct the frame as `rule` and `section` say, or write without `strict`.",
    ),
    code("too_large", 422, "The run would gather too much", "Start another run, or send less."),
    code("too_many_open", 422, "The run would have too much open", "Finish what is open first."),
    code(
        "dialect_ambiguous",
        422,
        "The dialect cannot be told from the first frames",
        "Name it with `?dialect=`.",
    ),
    code(
        "dialect_pinned",
        409,
        "The producer speaks another dialect here",
        "Go on in the dialect that `dialect` names, or write as another producer.",
    ),
    code(
        "no_session",
        422,
        "A frame names neither a session nor a run",
        "Name the session in each frame, or write to /v1/runs/{run}/events or /v1/threads/{thread}/events.",
    ),
    code(
        "other_session",
        422,
        "A frame is of another session than those before it",
        "Send a stream of several sessions to POST /v1/events; or write each session to a run of its own.",
    ),
    // Producers
    code(
        "producer_gap",
        409,
        "Frames before these were never written",
        "Send again from the frame that `expected` names.",
    ),
    code(
        "producer_fenced",
        403,
        "A newer incarnation of the producer has taken over",
        "Stop; or take over again with an epoch above `epoch`.",
    ),
    code("too_many_producers", 409, "The run has too many producers", "Write under fewer names."),
    // Runs and threads
    code("run_unknown", 404, "There is no such run", "Check the id; writing to a run creates it."),
    code("thread_unknown", 404, "There is no such thread", "Check the id; writing to a thread creates it."),
    code(
        "thread_deleted",
        410,
        "The thread was deleted",
        "Use another id; that of a deleted thread stays used up.",
    ),
    code("run_closed", 409, "The run has ended", "Start a new run."),
    code(
        "thread_busy",
        409,
        "Another run of the thread is open",
        "Wait for the run that `run_id` names, cancel it, or create the thread with `parallel: true`.",
    ),
    code("too_many_runs", 409, "The thread has too many open runs", "End runs before starting more."),
    code(
        "run_exists",
        409,
        "The run was created differently",
        "Use another `run_id`, or repeat the same words.",
    ),
    code(
        "thread_exists",
        409,
        "The thread was created differently",
        "Use another `thread_id`, or repeat the same words.",
    ),
    code(
        "interaction_unknown",
        404,
        "The run has not asked this question",
        "Look the run's questions up in its `interactions`; the inbox is /v1/interactions.",
    ),
    code(
        "interaction_closed",
        409,
        "The question is settled already",
        "Go on with the answer in `answer`, which won.",
    ),
    code(
        "invalid_answer",
        422,
        "The answer does not fit the question",
        "Correct what `errors` or `field` names, and answer again; nothing has changed.",
    ),
    code(
        "schema_unusable",
        422,
        "The question's schema cannot be used",
        "Answer with `decision: cancelled`, and have the agent ask with another schema.",
    ),
    code(
        "run_open",
        409,
        "A run is open",
        "Wait for its end, or cancel it; to delete its thread all the same, say `force=true`.",
    ),
    // Agents
    code(
        "agent_unknown",
        404,
        "The server has no such agent",
        "Use one that `agents` names, or add it to the configuration.",
    ),
    code(
        "agent_needed",
        422,
        "The request does not say which agent to start",
        "Name one of `agents`: as `?agent=`, or in the field that the façade has for it; or set `default_agent`.",
    ),
    code("no_agent", 422, "The run had no agent of the server", "Start a new run that names an agent."),
    code(
        "too_many_agents",
        503,
        "Too many runs of agents are open",
        "Try again later, or end runs that wait for an answer.",
    ),
    // Moving
    code(
        "bad_record",
        422,
        "A line of an import says nothing that a log could hold",
        "Export the thread again.",
    ),
    code(
        "import_gap",
        409,
        "Records of the import are missing",
        "Send the record that `expected` names; the import can be repeated from its beginning.",
    ),
    code(
        "import_conflict",
        409,
        "There is something else under the same name",
        "Delete what is there, or import into another store.",
    ),
    // Reading
    code(
        "run_trimmed",
        410,
        "Retention has removed the run's events",
        "Read its thread without `after`, which begins at `oldest`.",
    ),
    code(
        "cursor_trimmed",
        410,
        "Retention has removed what follows the cursor",
        "Go on with the cursor in `after`, or read without one: both begin at `oldest`.",
    ),
    code(
        "cursor_beyond_end",
        400,
        "The cursor lies beyond the end",
        "Use a cursor that a stream of the same run or thread gave.",
    ),
    code(
        "bad_cursor",
        400,
        "This is no cursor",
        "Use `seq-k` or `seq`, as a stream gave it; `0` is the start.",
    ),
    code(
        "needs_run",
        409,
        "Runs lie side by side, and this dialect cannot tell them apart",
        "Read a single run, or use a dialect whose frames name their run; `expected` lists them.",
    ),
    code(
        "attach_not_offered",
        400,
        "This dialect has no snapshot to attach with",
        "Attach in a dialect that `expected` lists, or replay.",
    ),
    code(
        "message_too_large",
        422,
        "The messages are too large to be folded",
        "Ask for fewer runs with `limit`, or read the events.",
    ),
    // WebSocket
    code(
        "bad_message",
        400,
        "A WebSocket message is wrong",
        "Correct what `detail` names; the socket stays open.",
    ),
    code(
        "not_a_websocket",
        426,
        "The request is no WebSocket handshake",
        "Open the address with a WebSocket client.",
    ),
    code(
        "host_refused",
        403,
        "The request names a host that this server is not",
        "Name the host in `allowed_hosts`, or ask by a host that is allowed.",
    ),
    code("origin_refused", 403, "The page is of another site", "Serve the page from the same host."),
    code(
        "too_many_subscriptions",
        409,
        "The socket has too many subscriptions",
        "Unsubscribe from some, or open another socket.",
    ),
    // The server
    code(
        "store_unavailable",
        503,
        "The store is not available",
        "Try again; what was not acknowledged is not written.",
    ),
    code(
        "store_damaged",
        500,
        "The store cannot hold or read this",
        "Do not repeat it: the server's log says what is wrong, and whoever runs the server has to mend it.",
    ),
    code("shutting_down", 503, "The server is stopping", "Connect again and send what was not acknowledged."),
    INTERNAL,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_stands_in_the_table_once() {
        let mut codes: Vec<_> = CODES.iter().map(|code| code.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), CODES.len());
        assert!(CODES.iter().all(|code| (400..600).contains(&code.status) && !code.hint.is_empty()));
    }
}
