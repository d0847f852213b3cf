//! Converts errors to problem details (RFC 9457). The codes are those of [`ErrorCode`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use runwire_agents::{Agents, CreateError};
use runwire_check::Finding;
use runwire_log::{AppendFault, Breach, FrameProblem, ImportFault, ImportProblem, LogError};
use runwire_model::ErrorCode;
use runwire_model::dialect::{DecodeError, Dialect};
use runwire_model::event::Decision;
use runwire_model::framing::FramingError;
use runwire_model::json::{Json, ObjectWriter};
use serde_json::Value;

use crate::resources::interactions::AnswerView;

/// An error response, as `application/problem+json`.
#[derive(Debug, Clone)]
pub struct Problem {
    code: ErrorCode,
    status: u16,
    detail: String,
    members: Vec<(String, Json)>,
}

impl Problem {
    /// Creates a problem with the status of its code.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self { code, status: code.status(), detail: detail.into(), members: Vec::new() }
    }

    /// Creates the problem of a dialect whose frames do not name their session, written to a tenant.
    pub(crate) fn needs_run(dialect: Dialect) -> Self {
        let sessions: Vec<_> = Dialect::READABLE
            .into_iter()
            .filter(|known| known.names_its_session())
            .map(Dialect::name)
            .collect();
        let detail = format!("frames of {dialect} do not name their session");
        let hint = "Write them to /v1/runs/{run}/events or /v1/threads/{thread}/events, or name the dialect if it is \
                    one that `expected` names.";
        let problem = Self::new(ErrorCode::NeedsRun, detail).with("expected", sessions).with("hint", hint);
        Self { status: 400, ..problem }
    }

    /// Creates the problem of a query parameter.
    pub fn bad_query(parameter: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadQuery, detail).with("parameter", parameter)
    }

    /// Creates the problem of a header.
    pub fn bad_header(header: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadHeader, detail).with("header", header)
    }

    /// Adds a member.
    #[must_use]
    pub fn with(self, member: &str, value: impl Into<Value>) -> Self {
        self.with_json(member, Json::from_value(&value.into()))
    }

    /// Adds a member whose text is kept as it is.
    #[must_use]
    pub fn with_json(mut self, member: &str, value: Json) -> Self {
        self.members.retain(|(known, _)| known != member);
        self.members.push((member.to_owned(), value));
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

    /// Returns the stable code.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Returns true if the store is unavailable.
    pub(crate) fn is_outage(&self) -> bool {
        self.code == ErrorCode::StoreUnavailable
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns what is wrong, for people.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Looks up a member.
    pub fn member(&self, name: &str) -> Option<&Json> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Writes everything as members of a JSON object, for wires that have an envelope of their own.
    pub fn write(&self, object: &mut ObjectWriter<'_>) {
        object.str("type", &self.code.page());
        object.str("title", self.code.title());
        object.u64("status", self.status.into());
        object.str("code", self.code.as_str());
        object.str("detail", &self.detail);
        if self.member("hint").is_none() {
            object.str("hint", self.code.hint());
        }
        for (name, value) in &self.members {
            object.json(name, value);
        }
    }

    /// Returns the JSON text of an object with all members.
    pub fn to_text(&self) -> String {
        text_of(|object| self.write(object))
    }

    /// Returns all members as trees.
    #[cfg(test)]
    pub(crate) fn into_members(self) -> serde_json::Map<String, Value> {
        serde_json::from_str(&self.to_text()).expect("a problem is a JSON object")
    }
}

/// Writes one JSON object as text.
pub(crate) fn text_of(write: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    write(&mut object);
    object.end();
    String::from_utf8_lossy(&out).into_owned()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = self.to_text();
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        let mut response = (status, headers, body).into_response();
        set_retry_after(&mut response);
        response
    }
}

/// Adds `Retry-After` to a 503.
pub(crate) fn set_retry_after(response: &mut Response) {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
}

impl From<LogError> for Problem {
    fn from(error: LogError) -> Self {
        match &error {
            LogError::Unavailable(reason) => {
                log_store_failure(reason);
                return Self::new(error.code(), "the store does not answer just now");
            }
            LogError::Uncertain(reason) => {
                log_store_failure(reason);
                let detail = "the store went away while it wrote this; whether it is written is not known";
                let hint = "Repeat it in the same words: with `Producer-Id`, or an id of your own, nothing is there twice.";
                return Self::new(error.code(), detail).with("uncertain", true).with("hint", hint);
            }
            LogError::NeedsRun(dialect) => return Self::needs_run(*dialect),
            LogError::Damaged(reason) => {
                log_store_failure(reason);
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
                let problem = problem.with("run_id", run);
                match answer {
                    Some(answer) => problem.with_json("answer", AnswerView::from(*answer).to_json()),
                    None => problem,
                }
            }
            LogError::InteractionUnknown { run, interaction } => {
                problem.with("run_id", run).with("interaction_id", interaction)
            }
            LogError::InteractionClosed { interaction, answer } => {
                let hint = (answer.decision == Decision::Expired)
                    .then_some("Nobody answered in time, and the run went on without; a new run asks again.");
                let problem = problem.with("interaction_id", interaction).with_some("hint", hint);
                problem.with_json("answer", AnswerView::from(*answer).to_json())
            }
            LogError::ProducerGap { expected, got } => problem.with("expected", expected).with("got", got),
            LogError::ProducerFenced { epoch } => problem.with("epoch", epoch),
            LogError::DialectPinned { pinned, .. } => problem.with("dialect", pinned.name()),
            LogError::OtherSession { session, .. } => problem.with("session", session),
            LogError::TooManyProducers(limit) | LogError::TooManyRuns(limit) => problem.with("limit", limit),
            LogError::CursorTrimmed { oldest, .. } => {
                // The cursor before the oldest record.
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

/// Logs an error of the store, at most once per second: in an outage every request has the same.
///
/// The reason may contain files and addresses: it is for the server's log only.
pub(crate) fn log_store_failure(reason: &str) {
    static LOGGED_AT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if LOGGED_AT.swap(now, Ordering::Relaxed) != now {
        tracing::error!(reason, "the store has failed");
    }
}

impl From<DecodeError> for Problem {
    fn from(error: DecodeError) -> Self {
        Self::new(error.code(), error.to_string()).with_some("field", error.field())
    }
}

impl From<Breach> for Problem {
    fn from(breach: Breach) -> Self {
        let problem = Self::new(ErrorCode::BreaksDocument, breach.to_string());
        let Finding { rule, field, pointer, section, hint, .. } = breach.finding;
        problem
            .with_some("field", field)
            .with_some("pointer", pointer)
            .with("rule", rule.as_str())
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
        // What the problem itself names is told before where its frame belongs.
        let known = |member: &str| problem.members.iter().any(|(name, _)| name == member);
        let thread = fault.thread.filter(|_| !known("thread_id"));
        let run = fault.run.filter(|_| !known("run_id"));
        let problem = problem.with_some("thread_id", thread.map(|id| id.to_string()));
        problem.with_some("run_id", run.map(|id| id.to_string())).with("line", fault.line)
    }
}

impl From<ImportFault> for Problem {
    fn from(fault: ImportFault) -> Self {
        let code = fault.problem.code();
        let detail = fault.problem.to_string();
        let problem = match fault.problem {
            ImportProblem::Gap { expected, got } => {
                Self::new(code, detail).with("expected", expected).with("got", got)
            }
            ImportProblem::Conflict(_) | ImportProblem::Bad(_) => Self::new(code, detail),
            ImportProblem::Log(error) => error.into(),
        };
        problem.with("line", fault.line)
    }
}

impl From<FramingError> for Problem {
    fn from(error: FramingError) -> Self {
        Self::new(error.code(), error.to_string()).with("line", error.line())
    }
}

impl Problem {
    /// Creates the problem of an unknown agent.
    pub(crate) fn unknown_agent(agents: &Agents, name: &str) -> Self {
        let names: Vec<_> = agents.list().map(|agent| agent.name.as_str()).collect();
        let known_agents = if names.is_empty() { "there are none".into() } else { names.join(", ") };
        let detail = format!("no agent of this server is called `{name}`: {known_agents}");
        Self::new(ErrorCode::AgentUnknown, detail).with("agent", name).with("agents", names)
    }
}

impl From<CreateError> for Problem {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::TooManyAgents { limit } => {
                Self::new(ErrorCode::TooManyAgents, error.to_string()).with("limit", limit)
            }
            CreateError::Log(error) => error.into(),
            CreateError::Aborted => Self::new(ErrorCode::Internal, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use runwire_log::Resolution;
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
            LogError::OtherSession { session: name(), got: name() },
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
    fn an_answer_in_a_problem_keeps_its_bytes() {
        let values = r#"{"price": 1.10,"far":1e999,"id":12345678901234567890123}"#;
        let answer = || {
            Box::new(Resolution {
                decision: Decision::Submitted,
                values: Json::parse(values).ok(),
                reason: None,
                by: None,
                at: runwire_model::Timestamp(0),
            })
        };
        for error in [
            LogError::InteractionClosed { interaction: "q".into(), answer: answer() },
            LogError::RunClosed { run: "r".into(), status: Status::Completed, answer: Some(answer()) },
        ] {
            let text = Problem::from(error).to_text();
            assert!(
                text.contains(&format!(r#""answer":{{"decision":"submitted","values":{values},"#)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_member_stands_once_and_a_hint_of_its_own_takes_the_place_of_the_codes() {
        let problem =
            Problem::bad_query("limit", "x").with("limit", 1).with("limit", 2).with("hint", "do it");
        let text = problem.to_text();
        assert!(text.ends_with(r#""detail":"x","parameter":"limit","limit":2,"hint":"do it"}"#), "{text}");
    }

    #[test]
    fn errors_of_the_store_are_not_sent_to_clients() {
        let reason = || "/srv/secret/runwire.db".to_owned();
        let errors = [
            (LogError::Unavailable(reason()), true),
            (LogError::Uncertain(reason()), true),
            (LogError::Damaged(reason()), false),
        ];
        for (error, passes) in errors {
            assert_eq!(runwire_log::outage::is_outage(&error), passes);
            let problem = Problem::from(error);
            assert_eq!(problem.is_outage(), passes);
            assert!(!problem.to_text().contains("secret"));
        }
    }
}
