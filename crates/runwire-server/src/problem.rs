//! Every way to say no: one table of codes, and the one place that turns errors into answers (RFC 9457).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use runwire_check::Finding;
use runwire_log::{AppendFault, Breach, FrameProblem, LogError, Resolution};
use runwire_model::dialect::{DecodeError, Dialect};
use runwire_model::event::Decision;
use runwire_model::framing::FramingError;
use serde_json::{Map, Value};

mod codes;

pub use codes::{CODES, Code};

use crate::resources::interactions::AnswerView;

/// A refusal, as `application/problem+json`.
#[derive(Debug, Clone)]
pub struct Problem {
    code: &'static Code,
    status: u16,
    detail: String,
    members: Map<String, Value>,
}

impl Problem {
    /// Makes a problem of a code in the table; one that is missing there is an error of the server.
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        let known = CODES.iter().find(|known| known.code == code);
        debug_assert!(known.is_some(), "`{code}` is not in the table of codes");
        let code = known.unwrap_or(&codes::INTERNAL);
        Self { code, status: code.status, detail: detail.into(), members: Map::new() }
    }

    /// Makes the problem of frames that do not name their session, where nothing else does.
    pub(crate) fn needs_run(dialect: Dialect) -> Self {
        let sessions: Vec<_> = Dialect::READABLE
            .into_iter()
            .filter(|known| known.names_its_session())
            .map(Dialect::name)
            .collect();
        let detail = format!("frames of {dialect} do not name their session");
        let hint = "Write them to /v1/runs/{run}/events or /v1/threads/{thread}/events, or name the dialect if it is \
                    one that `expected` names.";
        let problem = Self::new("needs_run", detail).with("expected", sessions).with("hint", hint);
        Self { status: 400, ..problem }
    }

    /// Makes the problem of a query parameter.
    pub fn bad_query(parameter: &str, detail: impl Into<String>) -> Self {
        Self::new("bad_query", detail).with("parameter", parameter)
    }

    /// Makes the problem of a header.
    pub fn bad_header(header: &str, detail: impl Into<String>) -> Self {
        Self::new("bad_header", detail).with("header", header)
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    /// Adds a member, if there is a value.
    #[must_use]
    pub fn with_some(self, member: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(member, value),
            None => self,
        }
    }

    /// Tells the stable code.
    pub fn code(&self) -> &'static str {
        self.code.code
    }

    /// Tells whether the store is away.
    pub(crate) fn is_outage(&self) -> bool {
        self.code.code == "store_unavailable"
    }

    /// Tells the status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Tells everything as members of a JSON object, for wires that have an envelope of their own.
    pub fn into_members(self) -> Map<String, Value> {
        let mut object = Map::new();
        let code = self.code;
        object.insert("type".into(), code.page().into());
        object.insert("title".into(), code.title.into());
        object.insert("status".into(), self.status.into());
        object.insert("code".into(), code.code.into());
        object.insert("detail".into(), self.detail.into());
        object.insert("hint".into(), code.hint.into());
        object.extend(self.members);
        object
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = Value::Object(self.into_members()).to_string();
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        let mut response = (status, headers, body).into_response();
        hint_at_retry(&mut response);
        response
    }
}

/// Says when to try again, where the server could not do it just now.
pub(crate) fn hint_at_retry(response: &mut Response) {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
}

impl From<LogError> for Problem {
    fn from(error: LogError) -> Self {
        match &error {
            LogError::Unavailable(reason) => {
                tell_operator(reason);
                return Self::new(error.code(), "the store does not answer just now");
            }
            LogError::Uncertain(reason) => {
                tell_operator(reason);
                let detail = "the store went away while it wrote this; whether it is written is not known";
                let hint = "Repeat it in the same words: with `Producer-Id`, or an id of your own, nothing is there twice.";
                return Self::new(error.code(), detail).with("uncertain", true).with("hint", hint);
            }
            LogError::NeedsRun(dialect) => return Self::needs_run(*dialect),
            LogError::Damaged(reason) => {
                tell_operator(reason);
                return Self::new(error.code(), "the store refuses this; the server's log says why");
            }
            _ => {}
        }
        let problem = Self::new(error.code(), error.to_string());
        match error {
            LogError::RunUnknown(run) | LogError::RunExists(run) | LogError::RunOpen(run) => {
                problem.with("run_id", run)
            }
            LogError::ThreadUnknown(thread)
            | LogError::ThreadDeleted(thread)
            | LogError::ThreadExists(thread) => problem.with("thread_id", thread),
            LogError::RunTrimmed { run, oldest } => problem.with("run_id", run).with("oldest", oldest),
            LogError::ThreadBusy { thread, run } => problem.with("thread_id", thread).with("run_id", run),
            LogError::RunClosed { run, answer, .. } => {
                problem.with("run_id", run).with_some("answer", answer.map(|answer| told(*answer)))
            }
            LogError::InteractionUnknown { run, interaction } => {
                problem.with("run_id", run).with("interaction_id", interaction)
            }
            LogError::InteractionClosed { interaction, answer } => {
                let hint = (answer.decision == Decision::Expired)
                    .then_some("Nobody answered in time, and the run went on without; a new run asks again.");
                let problem = problem.with("interaction_id", interaction).with_some("hint", hint);
                problem.with("answer", told(*answer))
            }
            LogError::ProducerGap { expected, got } => problem.with("expected", expected).with("got", got),
            LogError::ProducerFenced { epoch } => problem.with("epoch", epoch),
            LogError::DialectPinned { pinned, .. } => problem.with("dialect", pinned.name()),
            LogError::TooManyProducers(limit) | LogError::TooManyRuns(limit) => problem.with("limit", limit),
            LogError::CursorTrimmed { oldest, .. } => {
                // What follows this cursor is all that is left.
                problem.with("oldest", oldest).with("after", (oldest - 1).to_string())
            }
            LogError::CursorBeyondEnd { head, .. } => problem.with("last_seq", head),
            LogError::DialectAmbiguous(_)
            | LogError::NeedsRun(_)
            | LogError::NoSession
            | LogError::Unavailable(_)
            | LogError::Uncertain(_)
            | LogError::Damaged(_) => problem,
        }
    }
}

/// Logs why the store did not do what it was asked, at most once a second: in an outage every request would say the same.
///
/// The reason may name files and addresses, which are the operator's business alone.
pub(crate) fn tell_operator(reason: &str) {
    static TOLD_AT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if TOLD_AT.swap(now, Ordering::Relaxed) != now {
        tracing::error!(reason, "the store has failed");
    }
}

/// Tells the answer that a question has.
fn told(answer: Resolution) -> Value {
    serde_json::to_value(AnswerView::from(answer)).unwrap_or_default()
}

impl From<DecodeError> for Problem {
    fn from(error: DecodeError) -> Self {
        Self::new(error.code(), error.to_string()).with_some("field", error.field())
    }
}

impl From<Breach> for Problem {
    fn from(breach: Breach) -> Self {
        let problem = Self::new("breaks_document", breach.to_string());
        let Finding { code, field, pointer, section, hint, .. } = breach.finding;
        problem
            .with_some("field", field)
            .with_some("pointer", pointer)
            .with("rule", code)
            .with("dialect", breach.dialect.name())
            .with_some("section", section)
            .with_some("hint", hint)
    }
}

impl From<AppendFault> for Problem {
    fn from(fault: AppendFault) -> Self {
        let problem: Self = match fault.problem {
            FrameProblem::Decode(error) => error.into(),
            FrameProblem::Log(error) => error.into(),
            FrameProblem::Document(breach) => (*breach).into(),
        };
        problem.with("line", fault.line)
    }
}

impl From<FramingError> for Problem {
    fn from(error: FramingError) -> Self {
        Self::new(error.code(), error.to_string()).with("line", error.line())
    }
}

#[cfg(test)]
mod tests {
    use runwire_model::json::{FieldError, FrameFault, Object};
    use runwire_model::run::{Refusal, Status};

    use super::*;

    #[test]
    fn every_error_of_the_log_and_the_model_has_its_code_in_the_table() {
        let name = || "x".to_owned();
        let answer = || Resolution {
            decision: Decision::Approved,
            values: None,
            reason: None,
            by: None,
            at: runwire_model::Timestamp(0),
        };
        let ambiguous =
            Object::parse(b"{}").ok().and_then(|frame| runwire_model::dialect::detect(&frame).err());
        let log = [
            LogError::RunUnknown(name()),
            LogError::ThreadUnknown(name()),
            LogError::ThreadDeleted(name()),
            LogError::RunTrimmed { run: name(), oldest: 1 },
            LogError::ThreadBusy { thread: name(), run: name() },
            LogError::RunExists(name()),
            LogError::ThreadExists(name()),
            LogError::RunOpen(name()),
            LogError::RunClosed { run: name(), status: Status::Failed, answer: None },
            LogError::InteractionUnknown { run: name(), interaction: name() },
            LogError::InteractionClosed { interaction: name(), answer: Box::new(answer()) },
            LogError::ProducerGap { expected: 1, got: 2 },
            LogError::ProducerFenced { epoch: 1 },
            LogError::DialectAmbiguous(ambiguous.unwrap()),
            LogError::DialectPinned { pinned: Dialect::Loom, named: Dialect::Agio },
            LogError::NeedsRun(Dialect::AgUi),
            LogError::NoSession,
            LogError::TooManyProducers(1),
            LogError::TooManyRuns(1),
            LogError::CursorTrimmed { after: 1, oldest: 2 },
            LogError::CursorBeyondEnd { after: 2, head: 1 },
            LogError::Unavailable(name()),
            LogError::Uncertain(name()),
            LogError::Damaged(name()),
        ];
        for error in log {
            let code = error.code();
            assert_eq!(Problem::from(error).code(), code);
        }
        let model = [
            DecodeError::Field(FieldError::new("a", "b")),
            DecodeError::Refused(Refusal::RunClosed(Status::Failed)),
            DecodeError::Refused(Refusal::TooLarge { what: "x", limit: 1 }),
            DecodeError::Refused(Refusal::TooMany { what: "x", limit: 1 }),
            DecodeError::Frame(FrameFault::TooLong { bytes: 1 }),
        ];
        for error in model {
            let code = error.code();
            assert_eq!(Problem::from(error).code(), code);
        }
        for bytes in [&b"{"[..], b"[]", b"\"\xff\"", b"\"\\ud83d\"", &[b'['; 200]] {
            let fault = Object::parse(bytes).err().map(DecodeError::from);
            let fault = fault.unwrap();
            let code = fault.code();
            assert_eq!(Problem::from(fault).code(), code);
        }
    }

    #[test]
    fn what_the_store_says_of_itself_stays_with_the_operator() {
        let reason = || "/srv/secret/runwire.db".to_owned();
        let errors = [
            (LogError::Unavailable(reason()), true),
            (LogError::Uncertain(reason()), true),
            (LogError::Damaged(reason()), false),
        ];
        for (error, passes) in errors {
            assert_eq!(crate::outage::is_outage(&error), passes);
            let problem = Problem::from(error);
            assert_eq!(problem.is_outage(), passes);
            assert!(!Value::Object(problem.into_members()).to_string().contains("secret"));
        }
    }
}
