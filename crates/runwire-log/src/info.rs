//! Threads, runs and producers as the log returns them, and the requests that create and list them.

use runwire_check::Finding;
use runwire_model::Timestamp;
use runwire_model::dialect::Dialect;
use runwire_model::event::{Body, ErrorInfo, Event, InteractionKind, Summary};
use runwire_model::json::Json;
use runwire_model::run::Status;
use serde::{Deserialize, Serialize};

use crate::limits;

/// A request to create a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewThread {
    /// The tenant.
    pub tenant: String,
    /// Its id; without one it is minted.
    pub thread_id: Option<String>,
    /// Whether several runs may be open at once.
    pub parallel: bool,
}

/// A request to create a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewRun {
    /// The tenant.
    pub tenant: String,
    /// Its id; without one it is minted.
    pub run_id: Option<String>,
    /// Its thread; without one it gets a thread of its own.
    pub thread_id: Option<String>,
    /// The agent that runs.
    pub agent: Option<String>,
    /// The user message.
    pub message: Option<String>,
    /// The id of that message, if the client has given it one.
    pub message_id: Option<String>,
    /// What the agent was given.
    pub input: Option<Json>,
    /// Whether the creating server starts the agent, so that another server claims the run if that one is gone.
    pub is_started_here: bool,
    /// Identifies this attempt: a retry of it reports the run that it has created as new.
    pub attempt: Option<String>,
}

/// An open run whose server has started its agent and is gone.
#[derive(Debug, Clone, PartialEq)]
pub struct OrphanedRun {
    /// The tenant.
    pub tenant: String,
    /// The run.
    pub run: RunInfo,
    /// The request that created it.
    pub asked: NewRun,
}

/// A created or existing thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Created<T> {
    /// The thing.
    pub value: T,
    /// Whether this request has created it.
    pub new: bool,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its id.
    pub thread_id: String,
    /// Whether several runs may be open at once.
    pub parallel: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// The last `seq`; 0 where nothing was written.
    pub head: u64,
    /// The first `seq` that is kept.
    pub oldest: u64,
    /// Its runs that are open, oldest first.
    pub open_runs: Vec<String>,
    /// How many runs it has had.
    pub runs: u64,
    /// The first user message, truncated.
    pub title: Option<String>,
    /// The run that began last.
    pub latest: Option<LatestRun>,
}

/// The run of a thread that began last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatestRun {
    /// Its id.
    pub run_id: String,
    /// The agent that runs.
    pub agent: Option<String>,
    /// Its status.
    pub status: Status,
    /// When it began, or ended.
    pub at: Timestamp,
}

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInfo {
    /// Its id.
    pub run_id: String,
    /// Its thread.
    pub thread_id: String,
    /// The agent that runs.
    pub agent: Option<String>,
    /// Its status.
    pub status: Status,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its first record was written.
    pub started_at: Option<Timestamp>,
    /// When it was closed.
    pub ended_at: Option<Timestamp>,
    /// Its first `seq`; nothing where nothing was written.
    pub first_seq: Option<u64>,
    /// Its last `seq`; 0 where nothing was written.
    pub last_seq: u64,
    /// Whether retention has removed its events.
    pub trimmed: bool,
    /// Its counters.
    pub summary: RunSummary,
}

/// The range of a run in its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSpan {
    /// The run.
    pub run_id: String,
    /// Its first `seq`.
    pub first_seq: u64,
    /// Its last `seq` so far.
    pub last_seq: u64,
    /// Whether more may come.
    pub open: bool,
}

/// The position of a producer in its stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProducerInfo {
    /// Its newest incarnation.
    pub epoch: u64,
    /// The index of the frame that it must send next.
    pub next: u64,
    /// The dialect that it speaks, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
}

impl ProducerInfo {
    pub(crate) fn of(producer: &crate::txn::ProducerHead) -> Self {
        let dialect = producer.state.decoder.as_ref().map(runwire_model::dialect::Decoder::dialect);
        Self { epoch: producer.epoch, next: producer.next, dialect }
    }
}

/// Filters and page of a list of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// The tenant.
    pub tenant: String,
    /// In one of these states; in any where none is named.
    pub statuses: Vec<Status>,
    /// Of which agent.
    pub agent: Option<String>,
    /// Of which thread.
    pub thread: Option<String>,
    /// Whose id, thread or agent begins so.
    pub prefix: Option<String>,
    /// Those created at this moment or later.
    pub since: Option<Timestamp>,
    /// Those created earlier than this moment.
    pub until: Option<Timestamp>,
    /// Those created before this run.
    pub before: Option<String>,
    /// How many at most.
    pub limit: usize,
}

/// Counters of a run, updated as it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Records.
    pub records: u64,
    /// Events.
    pub events: u64,
    /// Texts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// Calls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_calls: u64,
    /// Steps.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps: u64,
    /// Tokens of prompts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prompt_tokens: u64,
    /// Tokens of completions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub completion_tokens: u64,
    /// Tokens in all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub total_tokens: u64,
    /// Whether single model calls were counted; then the totals at the end are ignored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    /// The user message, truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether a cancel was requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// The interactions, in the order they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<InteractionInfo>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Violations of the dialect's document by its frames.
    #[serde(default, skip_serializing_if = "Warnings::is_empty")]
    pub warnings: Warnings,
}

/// Violations of the dialect's document by frames of a run that were written all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warnings {
    /// Their number.
    pub count: u64,
    /// The first ones, each different one once.
    pub first: Vec<Warning>,
}

/// A violation of the dialect's document by frames of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The first record with it.
    pub seq: u64,
    /// Its number of occurrences.
    pub times: u64,
    /// The dialect.
    pub dialect: Dialect,
    /// The rule that is broken: a stable code.
    pub code: String,
    /// The field at fault, with dots between the levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The field at fault as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The section of the dialect's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// What is wrong, and what is expected.
    pub message: String,
    /// What probably helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Warnings {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Counts the violations of a frame, and keeps the first of each kind.
    pub(crate) fn add(&mut self, seq: u64, dialect: Dialect, findings: Vec<Finding>) {
        for finding in findings {
            self.count += 1;
            let clipped = |text: String| clip(&text, limits::WARNING_BYTES).to_owned();
            let Finding { rule, field, pointer, section, message, hint, .. } = finding;
            let code = rule.as_str();
            let field = field.map(clipped);
            let known = self.first.iter_mut().find(|known| known.code == code && known.field == field);
            if let Some(known) = known {
                known.times += 1;
            } else if self.first.len() < limits::WARNINGS {
                let (pointer, hint) = (pointer.map(clipped), hint.map(clipped));
                let (code, message) = (code.to_owned(), clipped(message));
                self.first.push(Warning {
                    seq,
                    times: 1,
                    dialect,
                    code,
                    field,
                    pointer,
                    section,
                    message,
                    hint,
                });
            }
        }
    }
}

/// Skips zeros: the summary is stored with every commit.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An interaction of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InteractionInfo {
    /// Its id.
    pub interaction_id: String,
    /// A form or an approval.
    pub kind: InteractionKind,
    /// `open`, or what became of it.
    pub status: String,
    /// Its title, the beginning of a very long one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it expires, in milliseconds since the epoch: when it says, or after a week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// When it was requested, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<u64>,
    /// The record that requests it; older stores do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_seq: Option<u64>,
    /// The record that resolves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_seq: Option<u64>,
}

impl InteractionInfo {
    /// Returns whether it has no answer yet.
    pub fn is_open(&self) -> bool {
        self.status == OPEN
    }
}

/// The status of an interaction without an answer.
const OPEN: &str = "open";

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunError {
    /// The code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The message for people.
    pub message: String,
    /// Details, such as an exit code; very long ones are in the record only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
}

impl RunError {
    fn of(error: &ErrorInfo) -> Self {
        let is_short = |details: &&Json| details.text().len() <= limits::ERROR_DETAILS_BYTES;
        let details = error.details.as_ref().filter(is_short).cloned();
        Self { code: error.code.clone(), message: error.message.clone(), details }
    }
}

impl RunSummary {
    /// Returns an interaction by its id.
    pub fn interaction(&self, id: &str) -> Option<&InteractionInfo> {
        self.interactions.iter().rfind(|asked| asked.interaction_id == id)
    }

    /// Counts an event of the run that is written in this record at this time.
    pub(crate) fn absorb(&mut self, event: &Event, seq: u64, at: Timestamp) {
        self.events += 1;
        match &event.body {
            Body::RunStarted(started) => {
                self.message = started.message.as_deref().map(|message| truncate_title(message).to_owned());
            }
            Body::TextStarted(_) => self.messages += 1,
            Body::ToolCalled(_) => self.tool_calls += 1,
            Body::StepStarted(_) => self.steps += 1,
            Body::Usage(usage) => {
                self.counted = true;
                self.count(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens);
            }
            Body::RunCancelRequested(_) => self.cancel_requested = true,
            Body::InteractionRequested(asked) => {
                let expiry = asked.expires_at.as_deref().and_then(Timestamp::parse);
                let expires_at = expiry.map_or(at.0 + limits::INTERACTION_MILLIS, |expiry| expiry.0);
                self.interactions.push(InteractionInfo {
                    interaction_id: asked.interaction_id.clone(),
                    kind: asked.kind,
                    status: OPEN.to_owned(),
                    title: asked.title.as_deref().map(|title| truncate_title(title).to_owned()),
                    expires_at: Some(expires_at),
                    asked_at: Some(at.0),
                    asked_seq: Some(seq),
                    settled_seq: None,
                });
            }
            Body::InteractionResolved(resolved) => {
                let id = &resolved.interaction_id;
                if let Some(asked) = self.interactions.iter_mut().rfind(|asked| asked.interaction_id == *id) {
                    resolved.decision.as_str().clone_into(&mut asked.status);
                    asked.settled_seq = Some(seq);
                }
            }
            Body::RunCompleted(completed) => self.end(completed.summary.as_ref()),
            Body::RunCancelled(cancelled) => self.end(cancelled.summary.as_ref()),
            Body::RunFailed(failed) => {
                self.error = Some(RunError::of(&failed.error));
                self.end(failed.summary.as_ref());
            }
            _ => {}
        }
    }

    fn count(&mut self, prompt: Option<u64>, completion: Option<u64>, total: Option<u64>) {
        let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
        self.prompt_tokens = self.prompt_tokens.saturating_add(prompt);
        self.completion_tokens = self.completion_tokens.saturating_add(completion);
        let total = total.unwrap_or_else(|| prompt.saturating_add(completion));
        self.total_tokens = self.total_tokens.saturating_add(total);
    }

    fn end(&mut self, summary: Option<&Summary>) {
        if let Some(summary) = summary.filter(|_| !self.counted) {
            self.count(summary.prompt_tokens, summary.completion_tokens, summary.total_tokens);
        }
    }
}

/// Truncates a text for lists; the record has all of it.
pub(crate) fn truncate_title(title: &str) -> &str {
    clip(title, limits::TITLE_BYTES)
}

fn clip(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
