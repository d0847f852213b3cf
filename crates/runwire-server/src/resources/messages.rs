//! Runs folded into messages, as a front end shows them.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use runwire_log::{LogError, RunSpan, Stored, ThreadKey};
use runwire_model::event::Body;
use runwire_model::fold::MessageState;
use serde::Serialize;

use crate::ids::{RunAt, ThreadAt};
use crate::problem::Problem;
use crate::query::Query;
use crate::{Wire, limits};

/// Folds a run.
pub(crate) async fn of_run(
    State(wire): State<Arc<Wire>>,
    RunAt(run): RunAt,
    RawQuery(query): RawQuery,
) -> Result<Json<MessageState>, Problem> {
    Query::parse(query.as_deref()).finish()?;
    let info = wire.log.run(&run).await?;
    let thread = run.thread(info.thread_id);
    if info.trimmed {
        let oldest = wire.log.thread(&thread).await?.oldest;
        return Err(LogError::RunTrimmed { run: info.run_id, oldest }.into());
    }
    let message = MessageState::new(info.run_id.clone());
    let Some(first_seq) = info.first_seq else { return Ok(Json(message)) };
    let open = !info.status.is_closed();
    let span = RunSpan { run_id: info.run_id, first_seq, last_seq: info.last_seq, open };
    let mut messages = fold(&wire, &thread, &[span]).await?;
    Ok(Json(messages.pop().unwrap_or(message)))
}

/// A page of a thread's messages, in the order their runs began.
#[derive(Debug, Serialize)]
pub(crate) struct MessageList {
    messages: Vec<MessageState>,
    /// The run to go on from, as `before`, where older ones are left.
    next: Option<String>,
}

/// Folds the newest runs of a thread.
pub(crate) async fn of_thread(
    State(wire): State<Arc<Wire>>,
    ThreadAt(thread): ThreadAt,
    RawQuery(query): RawQuery,
) -> Result<Json<MessageList>, Problem> {
    let mut query = Query::parse(query.as_deref());
    let limit = query.number("limit", 1..=limits::FOLDED_RUNS)?.unwrap_or(limits::FOLDED_RUNS);
    let before = query.id("before")?;
    query.finish()?;
    let mut spans = wire.log.spans(&thread).await?;
    if let Some(before) = before {
        let at = spans.iter().position(|span| span.run_id == before);
        spans.truncate(at.ok_or(LogError::RunUnknown(before))?);
    }
    let older = spans.len().saturating_sub(limit);
    let newest = &spans[older..];
    let next = newest.first().filter(|_| older > 0).map(|span| span.run_id.clone());
    let messages = fold(&wire, &thread, newest).await?;
    Ok(Json(MessageList { messages, next }))
}

/// Folds runs in one pass over the part of the thread that they lie in.
async fn fold(wire: &Wire, thread: &ThreadKey, spans: &[RunSpan]) -> Result<Vec<MessageState>, Problem> {
    let mut messages: Vec<_> = spans.iter().map(|span| MessageState::new(span.run_id.clone())).collect();
    let places: HashMap<&str, usize> =
        spans.iter().enumerate().map(|(place, span)| (span.run_id.as_str(), place)).collect();
    let first = spans.iter().map(|span| span.first_seq).min().unwrap_or(1);
    let last = spans.iter().map(|span| span.last_seq).max().unwrap_or(0);
    let (mut after, mut bytes) = (first.saturating_sub(1), 0);
    while after < last {
        let page = wire.log.read(thread, after).await?;
        let Some(newest) = page.records.last() else { break };
        for stored in &page.records {
            if stored.record.seq > last {
                break;
            }
            if let Some(place) = places.get(&*stored.run) {
                bytes += gathered_by(stored);
                messages[*place].apply_record(&stored.record);
            }
        }
        if bytes > limits::FOLDED_BYTES {
            let detail = format!("the messages would have more than {} bytes", limits::FOLDED_BYTES);
            return Err(Problem::new("message_too_large", detail).with("limit", limits::FOLDED_BYTES));
        }
        after = newest.record.seq;
    }
    Ok(messages)
}

/// Tells about how much a record adds to a message, beside its texts, which have a limit of their own.
fn gathered_by(stored: &Stored) -> usize {
    let is_piece = |body: &Body| matches!(body, Body::TextDelta(_) | Body::ThinkingDelta(_));
    let pieces = stored.record.entries.iter().all(|entry| is_piece(&entry.event.body));
    if pieces { 0 } else { stored.frame.as_ref().map_or(0, bytes::Bytes::len) }
}
