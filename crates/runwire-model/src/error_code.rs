//! The stable error codes: one table with the HTTP status, the title and the hint of each.
//!
//! Every code has a page in `docs/errors`. The log, the server, the client and the command line share the enum, so that no
//! logic compares texts.

use std::fmt;
use std::str::FromStr;

macro_rules! error_codes {
    ($($name:ident $text:literal $status:literal: $title:literal, $hint:literal;)*) => {
        /// A stable error code. Titles and hints may change, codes do not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $title] $name,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the docs.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the code as it is sent.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns the HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// Returns what happened, in one line.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// Returns what to do.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }
        }

        impl FromStr for ErrorCode {
            type Err = UnknownErrorCode;

            fn from_str(text: &str) -> Result<Self, UnknownErrorCode> {
                match text {
                    $($text => Ok(Self::$name),)*
                    _ => Err(UnknownErrorCode),
                }
            }
        }
    };
}

error_codes! {
    // Requests
    NotFound "not_found" 404: "Nothing answers here",
        "Look the path up in /openapi.json.";
    MethodNotAllowed "method_not_allowed" 405: "The path does not answer this method",
        "Use a method of the `Allow` header.";
    BadId "bad_id" 400: "An id is malformed",
        "Use 1 to 256 bytes of UTF-8 without control characters.";
    BadQuery "bad_query" 400: "A query parameter is wrong",
        "Correct the parameter that `parameter` names.";
    BadHeader "bad_header" 400: "A header is wrong",
        "Correct the header that `header` names.";
    BadBody "bad_body" 400: "The JSON body has a wrong field",
        "Correct the field that `detail` names.";
    BodyTooLarge "body_too_large" 413: "The body is too large",
        "Send less; large runs are written as events.";
    BodyBroken "body_broken" 400: "The body broke off",
        "Send what was not acknowledged again.";
    BodyIdle "body_idle" 408: "An open body was silent and its run is not open",
        "Open a body when there is something to write; send blank lines to keep it alive.";
    UnsupportedMediaType "unsupported_media_type" 415: "The body is of an unknown kind",
        "Send what `expected` names.";
    NotAcceptable "not_acceptable" 406: "Nothing that is accepted can be sent",
        "Accept one of the types in `expected`.";

    // Frames
    NotJson "not_json" 400: "This is not JSON",
        "Correct the JSON; frames that stand before it in the same body are written.";
    NotAnObject "not_an_object" 400: "A frame is no JSON object",
        "Send one JSON object a frame.";
    NotUtf8 "not_utf8" 400: "A frame is not UTF-8",
        "Send UTF-8.";
    LoneSurrogate "lone_surrogate" 400: "A frame has half of a surrogate pair",
        "Cut texts between characters, never inside one.";
    TooDeep "too_deep" 422: "A frame is nested too deeply",
        "Flatten the frame; 128 levels are allowed.";
    FrameTooLong "frame_too_long" 413: "A frame is too long",
        "Send large texts and arguments in pieces.";
    BadField "bad_field" 422: "A field of a frame is missing or wrong",
        "Correct the field that `field` names.";
    BreaksDocument "breaks_document" 422: "A frame breaks its dialect's document",
        "Correct the frame as `rule` and `section` say, or write without `strict`.";
    TooLarge "too_large" 422: "The run would gather too much",
        "Start another run, or send less.";
    TooManyOpen "too_many_open" 422: "The run would have too much open",
        "Finish what is open first.";
    DialectAmbiguous "dialect_ambiguous" 422: "The dialect cannot be told from the first frames",
        "Name it with `?dialect=`.";
    DialectPinned "dialect_pinned" 409: "The producer speaks another dialect here",
        "Go on in the dialect that `dialect` names, or write as another producer.";
    NoSession "no_session" 422: "A frame names neither a session nor a run",
        "Name the session in each frame, or write to /v1/runs/{run}/events or /v1/threads/{thread}/events.";
    OtherSession "other_session" 422: "A frame is of another session than those before it",
        "Send a stream of several sessions to POST /v1/events; or write each session to a run of its own.";

    // Producers
    ProducerGap "producer_gap" 409: "Frames before these were never written",
        "Send again from the frame that `expected` names.";
    ProducerFenced "producer_fenced" 403: "A newer incarnation of the producer has taken over",
        "Stop; or take over again with an epoch above `epoch`.";
    TooManyProducers "too_many_producers" 409: "The run has too many producers",
        "Write under fewer names.";

    // Runs and threads
    RunUnknown "run_unknown" 404: "There is no such run",
        "Check the id; writing to a run creates it.";
    ThreadUnknown "thread_unknown" 404: "There is no such thread",
        "Check the id; writing to a thread creates it.";
    ThreadDeleted "thread_deleted" 410: "The thread was deleted",
        "Use another id; that of a deleted thread stays used up.";
    RunClosed "run_closed" 409: "The run has ended",
        "Start a new run.";
    ThreadBusy "thread_busy" 409: "Another run of the thread is open",
        "Wait for the run that `run_id` names, cancel it, or create the thread with `parallel: true`.";
    TooManyRuns "too_many_runs" 409: "The thread has too many open runs",
        "End runs before starting more.";
    RunExists "run_exists" 409: "The run was created differently",
        "Use another `run_id`, or repeat the same words.";
    ThreadExists "thread_exists" 409: "The thread was created differently",
        "Use another `thread_id`, or repeat the same words.";
    InteractionUnknown "interaction_unknown" 404: "The run has not asked this question",
        "Look the run's questions up in its `interactions`; the inbox is /v1/interactions.";
    InteractionClosed "interaction_closed" 409: "The question is settled already",
        "Go on with the answer in `answer`, which won.";
    InvalidAnswer "invalid_answer" 422: "The answer does not fit the question",
        "Correct what `errors` or `field` names, and answer again; nothing has changed.";
    SchemaUnusable "schema_unusable" 422: "The question's schema cannot be used",
        "Answer with `decision: cancelled`, and have the agent ask with another schema.";
    RunOpen "run_open" 409: "A run is open",
        "Wait for its end, or cancel it; to delete its thread all the same, say `force=true`.";

    // Agents
    AgentUnknown "agent_unknown" 404: "The server has no such agent",
        "Use one that `agents` names, or add it to the configuration.";
    AgentNeeded "agent_needed" 422: "The request does not say which agent to start",
        "Name one of `agents`: as `?agent=`, or in the field that the façade has for it; or set `default_agent`.";
    NoAgent "no_agent" 422: "The run had no agent of the server",
        "Start a new run that names an agent.";
    TooManyAgents "too_many_agents" 503: "Too many runs of agents are open",
        "Try again later, or end runs that wait for an answer.";

    // Moving
    BadRecord "bad_record" 422: "A line of an import says nothing that a log could hold",
        "Export the thread again.";
    ImportGap "import_gap" 409: "Records of the import are missing",
        "Send the record that `expected` names; the import can be repeated from its beginning.";
    ImportConflict "import_conflict" 409: "There is something else under the same name",
        "Delete what is there, or import into another store.";

    // Reading
    RunTrimmed "run_trimmed" 410: "Retention has removed the run's events",
        "Read its thread without `after`, which begins at `oldest`.";
    CursorTrimmed "cursor_trimmed" 410: "Retention has removed what follows the cursor",
        "Go on with the cursor in `after`, or read without one: both begin at `oldest`.";
    CursorBeyondEnd "cursor_beyond_end" 400: "The cursor lies beyond the end",
        "Use a cursor that a stream of the same run or thread gave.";
    BadCursor "bad_cursor" 400: "This is no cursor",
        "Use `seq-k` or `seq`, as a stream gave it; `0` is the start.";
    NeedsRun "needs_run" 409: "Runs lie side by side, and this dialect cannot tell them apart",
        "Read a single run, or use a dialect whose frames name their run; `expected` lists them.";
    AttachNotOffered "attach_not_offered" 400: "This dialect has no snapshot to attach with",
        "Attach in a dialect that `expected` lists, or replay.";
    MessageTooLarge "message_too_large" 422: "The messages are too large to be folded",
        "Ask for fewer runs with `limit`, or read the events.";

    // WebSocket
    BadMessage "bad_message" 400: "A WebSocket message is wrong",
        "Correct what `detail` names; the socket stays open.";
    NotAWebsocket "not_a_websocket" 426: "The request is no WebSocket handshake",
        "Open the address with a WebSocket client.";
    HostRefused "host_refused" 403: "The request names a host that this server is not",
        "Name the host in `allowed_hosts`, or ask by a host that is allowed.";
    OriginRefused "origin_refused" 403: "The page is of another site",
        "Serve the page from the same host.";
    TooManySubscriptions "too_many_subscriptions" 409: "The socket has too many subscriptions",
        "Unsubscribe from some, or open another socket.";

    // The server
    StoreUnavailable "store_unavailable" 503: "The store is not available",
        "Try again; what was not acknowledged is not written.";
    StoreDamaged "store_damaged" 500: "The store cannot hold or read this",
        "Do not repeat it: the server's log says what is wrong, and its operator has to repair it.";
    ShuttingDown "shutting_down" 503: "The server is stopping",
        "Connect again and send what was not acknowledged.";
    Internal "internal" 500: "The server made an error",
        "Try again; if it stays, report it with the server's log.";
}

impl ErrorCode {
    /// Returns the path of the code's page in the repository.
    pub fn page(self) -> String {
        format!("docs/errors/{self}.md")
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is no known code: perhaps one of a newer server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no error code of this version")]
pub struct UnknownErrorCode;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_back_from_its_text_and_says_what_to_do() {
        for &code in ErrorCode::ALL {
            assert_eq!(code.as_str().parse(), Ok(code));
            assert!((400..600).contains(&code.status()) && !code.hint().is_empty(), "{code}");
        }
        assert_eq!("of_a_newer_server".parse::<ErrorCode>(), Err(UnknownErrorCode));
    }
}
