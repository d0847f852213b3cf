//! Handlers of messages: folds the runs of a thread into chat messages.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use runwire_log::{LogError, RunQuery, RunSpan, StoredRecord, ThreadKey};
use runwire_model::event::{Body as EventBody, RunStarted};
use runwire_model::fold::{Extent, MessageState};
use runwire_model::record::Record;
use runwire_model::run::Status;
use runwire_model::window::user_message_id;
use runwire_model::{ErrorCode, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::{Array, Ref};

use crate::ids::{RunParam, ThreadParam};
use crate::memory_budget::{self, MemoryShare, Wait};
use crate::openapi::params::{Before, MessageLimit};
use crate::problem::Problem;
use crate::query::Query;
use crate::{AppState, limits};

/// Shows a run folded into one message.
#[utoipa::path(
    get, path = "/v1/runs/{run}/message", operation_id = "getMessage", tag = "messages",
    params(RunParam),
    responses((status = 200, description = "The message.", body = ref("#/components/schemas/MessageState"))),
)]
pub(crate) async fn of_run(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let info = state.log.run(&run).await?;
    let thread = run.thread(info.thread_id);
    if info.trimmed {
        let oldest = state.log.thread(&thread).await?.oldest;
        return Err(LogError::RunTrimmed { run: info.run_id, oldest }.into());
    }
    let message = MessageState::new(info.run_id.clone());
    let Some(first_seq) = info.first_seq else { return Ok(Json(message).into_response()) };
    let open = !info.status.is_closed();
    let span = RunSpan { run_id: info.run_id, first_seq, last_seq: info.last_seq, open };
    let mut share = state.memory.answer();
    let run = fold(&state, &thread, &[span], &mut share, Wait::InTime).await?.pop();
    let message = serde_json::to_vec(&run.map_or(message, |run| run.assistant)).map_err(internal)?;
    share.shrink_to(message.len());
    let body = Body::from(memory_budget::hold(message, Arc::new(share)));
    Ok((JSON, body).into_response())
}

/// The header of a body of JSON.
const JSON: [(HeaderName, HeaderValue); 1] = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];

fn internal(error: impl std::fmt::Display) -> Problem {
    Problem::new(ErrorCode::Internal, error.to_string())
}

/// A page of a thread's messages, in the order their runs began: what people said, and each run as one message, or as
/// several where people spoke in between.
// It is sent run by run, so that the server holds no more than one of them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageList {
    #[schema(schema_with = message_states)]
    messages: Vec<MessageState>,
    /// The run to go on from, as `before`, where older ones are left.
    #[schema(required)]
    next: Option<String>,
}

fn message_states() -> Array {
    Array::new(Ref::from_schema_name("MessageState"))
}

/// Shows the newest runs of a thread as messages, in order, with what people said.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/messages", operation_id = "getMessages", tag = "messages",
    params(ThreadParam, Before, MessageLimit),
    responses((status = 200, description = "A page of messages.", body = MessageList)),
)]
pub(crate) async fn of_thread(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
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
    let mut page =
        MessagePage { groups: groups(newest), state, thread, waiting, next, sent: 0, begun: false };
    // A problem with the first run can still be told.
    let first = page.next().await?;
    let rest = stream::try_unfold(page, async |mut page| {
        let chunk = page.next().await.map_err(|problem| std::io::Error::other(format!("{problem:?}")))?;
        Ok::<_, std::io::Error>(chunk.map(|chunk| (chunk, page)))
    });
    let body = stream::iter(first.map(Ok)).chain(rest);
    Ok((JSON, Body::from_stream(body)).into_response())
}

/// Divides runs into groups that share no range of records: only parallel runs are folded together.
fn groups(spans: &[RunSpan]) -> VecDeque<Vec<RunSpan>> {
    let mut groups: VecDeque<Vec<RunSpan>> = VecDeque::new();
    let mut last = 0;
    for span in spans {
        match groups.back_mut().filter(|_| span.first_seq <= last) {
            Some(group) => group.push(span.clone()),
            None => groups.push_back(vec![span.clone()]),
        }
        last = last.max(span.last_seq);
    }
    groups
}

/// What is left to send of a page of messages.
struct MessagePage {
    state: Arc<AppState>,
    thread: ThreadKey,
    groups: VecDeque<Vec<RunSpan>>,
    waiting: Vec<MessageState>,
    next: Option<String>,
    sent: usize,
    /// Whether runs were folded.
    begun: bool,
}

impl MessagePage {
    /// Folds the next runs, and returns their part of the JSON; at last the rest of it, then nothing.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let mut out = Vec::new();
        let Some(group) = self.groups.pop_front() else {
            return self.end(out).map(|end| end.map(Bytes::from));
        };
        let mut share = self.state.memory.answer();
        // Later ones wait for their share without a limit, as streams do: the head is sent.
        let wait = if std::mem::replace(&mut self.begun, true) { Wait::Unlimited } else { Wait::InTime };
        for run in fold(&self.state, &self.thread, &group, &mut share, wait).await? {
            for message in run.in_order() {
                self.write(&message, &mut out)?;
            }
        }
        share.shrink_to(out.len());
        Ok(Some(memory_budget::hold(out, Arc::new(share))))
    }

    fn write(&mut self, message: &MessageState, out: &mut Vec<u8>) -> Result<(), Problem> {
        out.extend_from_slice(if self.sent == 0 { br#"{"messages":["# } else { b"," });
        self.sent += 1;
        serde_json::to_writer(out, message).map_err(internal)
    }

    fn end(&mut self, mut out: Vec<u8>) -> Result<Option<Vec<u8>>, Problem> {
        if self.sent == usize::MAX {
            return Ok(None);
        }
        for message in std::mem::take(&mut self.waiting) {
            self.write(&message, &mut out)?;
        }
        out.extend_from_slice(if self.sent == 0 { br#"{"messages":[],"next":"# } else { br#"],"next":"# });
        serde_json::to_writer(&mut out, &self.next).map_err(internal)?;
        out.push(b'}');
        self.sent = usize::MAX;
        Ok(Some(out))
    }
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

/// Folds runs in one pass over the part of the thread that they lie in. The share grows with what is gathered, which is
/// held twice when it is written.
async fn fold(
    state: &AppState,
    thread: &ThreadKey,
    spans: &[RunSpan],
    share: &mut MemoryShare,
    wait: Wait,
) -> Result<Vec<RunMessages>, Problem> {
    let mut runs: Vec<_> = spans.iter().map(|span| RunMessages::new(&span.run_id)).collect();
    let places: HashMap<&str, usize> =
        spans.iter().enumerate().map(|(place, span)| (span.run_id.as_str(), place)).collect();
    let first = spans.iter().map(|span| span.first_seq).min().unwrap_or(1);
    let last = spans.iter().map(|span| span.last_seq).max().unwrap_or(0);
    let (mut after, mut bytes, mut held) = (first.saturating_sub(1), 0, limits::CATCH_UP_BYTES);
    while after < last {
        share.grow(held, wait).await?;
        let page = state.log.read(thread, after).await?;
        let Some(newest) = page.records.last() else { break };
        for stored in &page.records {
            if stored.record.seq > last {
                break;
            }
            if let Some(place) = places.get(&*stored.run) {
                bytes += gathered_by(stored);
                held += 2 * stored.frame.as_ref().map_or(0, Bytes::len);
                runs[*place].apply(&stored.record);
            }
        }
        if bytes > limits::FOLDED_BYTES {
            let detail = format!("the messages would have more than {} bytes", limits::FOLDED_BYTES);
            return Err(Problem::new(ErrorCode::MessageTooLarge, detail).with("limit", limits::FOLDED_BYTES));
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
    fn note_person(&mut self, body: &EventBody, at: Timestamp) {
        let run = &self.assistant.metadata.request_id;
        match body {
            EventBody::RunStarted(RunStarted { message: Some(message), message_id, .. }) => {
                let id = message_id.clone().unwrap_or_else(|| user_message_id(run));
                let message = MessageState::of_user(id, run.clone(), message, at);
                self.people.push((message, self.assistant.extent()));
            }
            EventBody::TextStarted(started) if started.role.as_deref() == Some("user") => {
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
            EventBody::TextDelta(delta) => {
                if let Some(at) = self.open.get(&delta.message_id) {
                    self.people[*at].0.main_content.push_str(&delta.content);
                }
            }
            EventBody::TextFinished(finished) => {
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
    /// the run's id, the others `<run>#2` and so on, without the ids that messages of people have.
    fn in_order(self) -> impl Iterator<Item = MessageState> {
        let taken: HashSet<String> =
            self.people.iter().map(|(person, _)| person.message_id.clone()).collect();
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
                let run = std::mem::take(&mut message.message_id);
                while message.message_id.is_empty() || taken.contains(&message.message_id) {
                    parts += 1;
                    message.message_id = if parts == 1 { run.clone() } else { format!("{run}#{parts}") };
                }
            }
            message
        })
    }
}

/// Estimates the bytes that a record adds to a message; texts are not counted, they have a limit of their own.
fn gathered_by(stored: &StoredRecord) -> usize {
    let is_piece = |body: &EventBody| matches!(body, EventBody::TextDelta(_) | EventBody::ThinkingDelta(_));
    let pieces = stored.record.entries.iter().all(|entry| is_piece(&entry.event.body));
    let asked = stored.record.entries.iter().map(|entry| match &entry.event.body {
        // It may have come with the request that created the run, and not with the frame.
        EventBody::RunStarted(started) => started.message.as_ref().map_or(0, String::len),
        _ => 0,
    });
    let asked: usize = asked.sum();
    if pieces { 0 } else { asked + stored.frame.as_ref().map_or(0, Bytes::len) }
}
