//! Handlers of messages: folds the runs of a thread into chat messages.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use runwire_log::{LogError, RunQuery, RunSpan, StoredRecord, ThreadKey};
use runwire_model::Timestamp;
use runwire_model::event::{Body, RunStarted};
use runwire_model::fold::{Extent, MessageState};
use runwire_model::record::Record;
use runwire_model::run::Status;
use runwire_model::window::user_message_id;
use serde::Serialize;

use crate::ids::{RunParam, ThreadParam};
use crate::problem::Problem;
use crate::query::Query;
use crate::{AppState, limits};

/// Folds a run.
pub(crate) async fn of_run(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    RawQuery(query): RawQuery,
) -> Result<Json<MessageState>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let info = state.log.run(&run).await?;
    let thread = run.thread(info.thread_id);
    if info.trimmed {
        let oldest = state.log.thread(&thread).await?.oldest;
        return Err(LogError::RunTrimmed { run: info.run_id, oldest }.into());
    }
    let message = MessageState::new(info.run_id.clone());
    let Some(first_seq) = info.first_seq else { return Ok(Json(message)) };
    let open = !info.status.is_closed();
    let span = RunSpan { run_id: info.run_id, first_seq, last_seq: info.last_seq, open };
    let run = fold(&state, &thread, &[span]).await?.pop();
    Ok(Json(run.map_or(message, |run| run.assistant)))
}

/// A page of a thread's messages, in the order their runs began: what people said, and each run as one message, or as
/// several where people spoke in between.
#[derive(Debug, Serialize)]
pub(crate) struct MessageList {
    messages: Vec<MessageState>,
    /// The run to go on from, as `before`, where older ones are left.
    next: Option<String>,
}

/// Folds the newest runs of a thread.
pub(crate) async fn of_thread(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    RawQuery(query): RawQuery,
) -> Result<Json<MessageList>, Problem> {
    let mut query = Query::parse(query.as_deref());
    let limit = query.number("limit", 1..=limits::FOLDED_RUNS)?.unwrap_or(limits::FOLDED_RUNS);
    let before = query.id("before")?;
    query.finish()?;
    let mut spans = state.log.spans(&thread).await?;
    let waiting = match before {
        Some(_) => Vec::new(),
        None => waiting(&state, &thread).await?,
    };
    if let Some(before) = before {
        let at = spans.iter().position(|span| span.run_id == before);
        spans.truncate(at.ok_or(LogError::RunUnknown(before))?);
    }
    let older = spans.len().saturating_sub(limit);
    let newest = &spans[older..];
    let next = newest.first().filter(|_| older > 0).map(|span| span.run_id.clone());
    let runs = fold(&state, &thread, newest).await?;
    let messages = runs.into_iter().flat_map(RunMessages::in_order).chain(waiting).collect();
    Ok(Json(MessageList { messages, next }))
}

/// Lists what people said to runs that nothing was written to yet, oldest first; of a very long text the beginning.
async fn waiting(state: &AppState, thread: &ThreadKey) -> Result<Vec<MessageState>, Problem> {
    let query = RunQuery {
        tenant: thread.tenant.to_string(),
        statuses: vec![Status::Pending],
        thread: Some(thread.id.to_string()),
        limit: limits::FOLDED_RUNS,
        ..RunQuery::default()
    };
    let pending = state.log.runs(query).await?.into_iter().rev();
    let said = pending.filter_map(|run| {
        let message = run.summary.message.as_ref()?;
        let id = user_message_id(&run.run_id);
        Some(MessageState::of_user(id, run.run_id.clone(), message, run.created_at))
    });
    Ok(said.collect())
}

/// Folds runs in one pass over the part of the thread that they lie in.
async fn fold(state: &AppState, thread: &ThreadKey, spans: &[RunSpan]) -> Result<Vec<RunMessages>, Problem> {
    let mut runs: Vec<_> = spans.iter().map(|span| RunMessages::new(&span.run_id)).collect();
    let places: HashMap<&str, usize> =
        spans.iter().enumerate().map(|(place, span)| (span.run_id.as_str(), place)).collect();
    let first = spans.iter().map(|span| span.first_seq).min().unwrap_or(1);
    let last = spans.iter().map(|span| span.last_seq).max().unwrap_or(0);
    let (mut after, mut bytes) = (first.saturating_sub(1), 0);
    while after < last {
        let page = state.log.read(thread, after).await?;
        let Some(newest) = page.records.last() else { break };
        for stored in &page.records {
            if stored.record.seq > last {
                break;
            }
            if let Some(place) = places.get(&*stored.run) {
                bytes += gathered_by(stored);
                runs[*place].apply(&stored.record);
            }
        }
        if bytes > limits::FOLDED_BYTES {
            let detail = format!("the messages would have more than {} bytes", limits::FOLDED_BYTES);
            return Err(Problem::new("message_too_large", detail).with("limit", limits::FOLDED_BYTES));
        }
        after = newest.record.seq;
    }
    Ok(runs)
}

/// The messages of a run: the assistant's, and those of people.
struct RunMessages {
    assistant: MessageState,
    /// Each with how far the assistant's had come when it began.
    people: Vec<(MessageState, Extent)>,
    /// Where the messages of people stand that are not whole yet.
    open: HashMap<String, usize>,
}

impl RunMessages {
    fn new(run: &str) -> Self {
        Self { assistant: MessageState::new(run), people: Vec::new(), open: HashMap::new() }
    }

    fn apply(&mut self, record: &Record) {
        for entry in &record.entries {
            self.assistant.apply(&entry.event, record.at);
            self.note_person(&entry.event.body, record.at);
        }
    }

    /// Takes what a person says: the message that the run was started with, and texts of role user inside it.
    fn note_person(&mut self, body: &Body, at: Timestamp) {
        let run = &self.assistant.metadata.request_id;
        match body {
            Body::RunStarted(RunStarted { message: Some(message), message_id, .. }) => {
                let id = message_id.clone().unwrap_or_else(|| user_message_id(run));
                let message = MessageState::of_user(id, run.clone(), message, at);
                self.people.push((message, self.assistant.extent()));
            }
            Body::TextStarted(started) if started.role.as_deref() == Some("user") => {
                // An agent may repeat the message that it was started with.
                if self.people.first().is_some_and(|(first, _)| first.message_id == started.message_id) {
                    return;
                }
                let mut message = MessageState::of_user(&started.message_id, run.clone(), "", at);
                (message.is_streaming, message.status) = (true, Status::Running);
                message.metadata.end_time = None;
                self.open.insert(started.message_id.clone(), self.people.len());
                self.people.push((message, self.assistant.extent()));
            }
            Body::TextDelta(delta) => {
                if let Some(at) = self.open.get(&delta.message_id) {
                    self.people[*at].0.main_content.push_str(&delta.content);
                }
            }
            Body::TextFinished(finished) => {
                let Some(place) = self.open.remove(&finished.message_id) else { return };
                let (message, _) = &mut self.people[place];
                if let Some(content) = &finished.content {
                    message.main_content.clone_from(content);
                }
                (message.is_streaming, message.status) = (false, Status::Completed);
                message.metadata.end_time = Some(at.0);
            }
            _ => {}
        }
    }

    /// Lists the messages in the order they began. The assistant's is divided where people spoke: its first part has
    /// the run's id, the others `<run>#2` and so on.
    fn in_order(self) -> impl Iterator<Item = MessageState> {
        let mut newest_first = Vec::with_capacity(self.people.len() + 1);
        let mut assistant = Some(self.assistant);
        for (person, extent) in self.people.into_iter().rev() {
            let time = Timestamp(person.metadata.start_time);
            let (before, after) = match assistant {
                Some(message) => message.divide(&extent, time),
                None => (None, None),
            };
            newest_first.extend(after);
            newest_first.push(person);
            assistant = before;
        }
        newest_first.extend(assistant);
        let mut parts = 0;
        newest_first.into_iter().rev().map(move |mut message| {
            if message.role == "assistant" {
                parts += 1;
                if parts > 1 {
                    message.message_id = format!("{}#{parts}", message.message_id);
                }
            }
            message
        })
    }
}

/// Estimates the bytes that a record adds to a message; texts are not counted, they have a limit of their own.
fn gathered_by(stored: &StoredRecord) -> usize {
    let is_piece = |body: &Body| matches!(body, Body::TextDelta(_) | Body::ThinkingDelta(_));
    let pieces = stored.record.entries.iter().all(|entry| is_piece(&entry.event.body));
    let asked = stored.record.entries.iter().map(|entry| match &entry.event.body {
        // It may have come with the request that created the run, and not with the frame.
        Body::RunStarted(started) => started.message.as_ref().map_or(0, String::len),
        _ => 0,
    });
    let asked: usize = asked.sum();
    if pieces { 0 } else { asked + stored.frame.as_ref().map_or(0, bytes::Bytes::len) }
}
