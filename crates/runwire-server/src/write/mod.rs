//! Write requests: turns a producer's request body into appends to the log (§6 of the design).
//!
//! All complete frames that have arrived form one append (group commit). The bytes that arrive before it is durable
//! form the next one, so a slow disk makes larger appends and not longer queues. A body may stay open for as long as
//! its run does.

mod body_events;
mod body_unframer;
mod body_writer;
mod drain;
mod single_append;

use std::fmt::Display;
use std::sync::Arc;

use axum::extract::{Request, State};
use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use http_body::Body;
use runwire_log::{CheckMode, RunKey, Stamp, Target};
use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;
use runwire_model::framing::Framing;
use runwire_model::run::WholePolicy;

use crate::auth::tenant_of;
use crate::ids::{self, RunParam, ThreadParam};
use crate::openapi::params::{
    EndQuery, ParallelThread, ParallelThreads, ProducerHeaders, ThreadOfRun, WriteQuery,
};
use crate::openapi::schemas::{JsonFrames, NdjsonFrames, SseFrames};
use crate::problem::Problem;
use crate::query::Query;
use crate::{AppState, content_type, limits};
use body_events::is_small;
use body_writer::BodyWriter;
pub(crate) use body_writer::WriteSummary;
pub(crate) use drain::drain_and_close;
pub(crate) use single_append::{FailedAppend, SentAppend, SingleAppend, write_whole_body};

/// A body of bytes, boxed or not.
pub(crate) trait ByteBody: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static {}

impl<B: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static> ByteBody for B {}

/// Parameters of a write, parsed from target, query and headers.
pub(crate) struct WriteParams {
    target: Target,
    /// The thread to create the run in, if it does not exist yet.
    thread: Option<String>,
    framing: Option<Framing>,
    dialect: Option<Dialect>,
    stamp: Option<Stamp>,
    end: bool,
    /// Whether a new thread is created parallel: several runs at once.
    parallel: bool,
    check: CheckMode,
    whole: WholePolicy,
}

/// Writes a body that hyper is receiving, up to its end or its first error.
async fn write_body<B: ByteBody>(
    state: &Arc<AppState>,
    params: WriteParams,
    body: B,
) -> Result<WriteSummary, Problem> {
    if is_small(&body) {
        return write_incoming(state, params, body).await;
    }
    let state = state.clone();
    // hyper drops a handler when its client disconnects. In a task of its own, the frames that arrived are still
    // written.
    let written = tokio::spawn(async move { write_incoming(&state, params, body).await });
    written.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a body was not written to its end");
        Err(Problem::new(ErrorCode::Internal, "the body was not written to its end"))
    })
}

async fn write_incoming<B: ByteBody>(
    state: &AppState,
    params: WriteParams,
    mut body: B,
) -> Result<WriteSummary, Problem> {
    let written = BodyWriter::new(state, params).write_body(&mut body).await;
    if written.is_err() {
        drain_and_close(body);
    }
    written
}

/// Writes frames to a run, which is created if it does not exist.
///
/// The body may stay open: frames are durable and visible as they arrive. Without a Content-Type, and with
/// `application/x-www-form-urlencoded`, which `curl -d` sends, the first bytes tell the framing. A bad frame stops there;
/// the problem tells its `line` and what was written before it.
#[utoipa::path(
    post, path = "/v1/runs/{run}/events", operation_id = "writeRun", tag = "writing",
    params(RunParam, ThreadOfRun, WriteQuery, EndQuery, ProducerHeaders),
    request_body(content(
        (inline(NdjsonFrames) = "application/x-ndjson"),
        (inline(SseFrames) = "text/event-stream"),
        (inline(JsonFrames) = "application/json"),
    )),
    responses((status = 200, description = "Everything is durable.", body = WriteSummary)),
)]
pub(crate) async fn run(
    state: &Arc<AppState>,
    run: &str,
    request: &Parts,
    body: impl ByteBody,
) -> Result<WriteSummary, Problem> {
    write(state, target_of(run, request), request, body).await
}

/// Returns the run that a request writes to.
fn target_of(run: &str, request: &Parts) -> Result<Target, Problem> {
    let id = ids::from_path_segment("run", run)?;
    Ok(Target::Run(RunKey { tenant: tenant_of(&request.headers), id }))
}

/// Writes frames to the runs of a thread that they name.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/events", operation_id = "writeThread", tag = "writing",
    params(ThreadParam, ParallelThread, WriteQuery, EndQuery, ProducerHeaders),
    request_body(content(
        (inline(NdjsonFrames) = "application/x-ndjson"),
        (inline(SseFrames) = "text/event-stream"),
        (inline(JsonFrames) = "application/json"),
    )),
    responses((status = 200, description = "Everything is durable.", body = WriteSummary)),
)]
pub(crate) async fn thread(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    request: Request,
) -> Result<WriteSummary, Problem> {
    let (request, body) = request.into_parts();
    write(&state, Ok(Target::Thread(thread)), &request, body).await
}

/// Writes frames of several sessions to the threads and runs that they name.
///
/// In dialects whose frames name their session; 400 `needs_run` in others, with those that do. A frame that names neither a
/// session nor a run is 422 `no_session` with its line. A frame that its thread or run does not take stops the stream there,
/// with `line`, `thread_id` and `run_id`. `Producer-Seq` counts over the whole stream.
#[utoipa::path(
    post, path = "/v1/events", operation_id = "writeSessions", tag = "writing",
    params(ParallelThreads, WriteQuery, ProducerHeaders),
    request_body(content(
        (inline(NdjsonFrames) = "application/x-ndjson"),
        (inline(SseFrames) = "text/event-stream"),
        (inline(JsonFrames) = "application/json"),
    )),
    responses((status = 200, description = "Everything is durable.", body = WriteSummary)),
)]
pub(crate) async fn tenant(
    State(state): State<Arc<AppState>>,
    request: Request,
) -> Result<WriteSummary, Problem> {
    let (request, body) = request.into_parts();
    let tenant = tenant_of(&request.headers);
    write(&state, Ok(Target::Tenant(tenant)), &request, body).await
}

async fn write(
    state: &Arc<AppState>,
    target: Result<Target, Problem>,
    request: &Parts,
    body: impl ByteBody,
) -> Result<WriteSummary, Problem> {
    match target.and_then(|target| WriteParams::of(target, request.uri.query(), &request.headers)) {
        Ok(params) => write_body(state, params, body).await,
        Err(problem) => {
            drain_and_close(body);
            Err(problem)
        }
    }
}

impl WriteParams {
    /// Parses a request that writes to a run.
    pub(crate) fn of_run(run: &str, request: &Parts) -> Result<Self, Problem> {
        Self::of(target_of(run, request)?, request.uri.query(), &request.headers)
    }

    fn of(target: Target, query: Option<&str>, headers: &HeaderMap) -> Result<Self, Problem> {
        let mut query = Query::parse(query);
        let dialect = query.dialect("dialect", &Dialect::READABLE)?;
        let (mut thread, mut parallel, mut end) = (None, false, false);
        match &target {
            Target::Run(_) => thread = query.id("thread")?,
            Target::Thread(_) | Target::Tenant(_) => parallel = query.flag("parallel")?.unwrap_or(false),
        }
        // The end of a stream of several sessions is the end of none of its runs.
        if !matches!(target, Target::Tenant(_)) {
            end = query.flag("end")?.unwrap_or(false);
        } else if let Some(dialect) = dialect.filter(|dialect| !dialect.names_its_session()) {
            return Err(Problem::needs_run(dialect));
        }
        let check = check_mode(query.flag("strict")?.unwrap_or(false));
        let whole = match query.take("whole")? {
            None => WholePolicy::default(),
            Some(name) => WholePolicy::from_name(&name)
                .ok_or_else(|| Problem::bad_query("whole", "`whole` is `add`, `ignore` or `replace`"))?,
        };
        query.finish()?;
        let framing = content_type::framing_of(headers)?;
        Ok(Self { target, thread, framing, dialect, stamp: stamp_of(headers)?, end, parallel, check, whole })
    }
}

/// Returns how frames are validated against their dialect's document.
pub(crate) fn check_mode(strict: bool) -> CheckMode {
    if strict { CheckMode::Refuse } else { CheckMode::Warn }
}

const PRODUCER_ID: &str = "Producer-Id";
const PRODUCER_EPOCH: &str = "Producer-Epoch";
const PRODUCER_SEQ: &str = "Producer-Seq";

/// Parses the producer headers; none for an anonymous producer.
fn stamp_of(headers: &HeaderMap) -> Result<Option<Stamp>, Problem> {
    let Some(producer) = headers.get(PRODUCER_ID) else {
        return match [PRODUCER_EPOCH, PRODUCER_SEQ].into_iter().find(|name| headers.contains_key(*name)) {
            Some(name) => {
                let detail = format!("`{name}` means nothing without `{PRODUCER_ID}`");
                Err(Problem::bad_header(PRODUCER_ID, detail))
            }
            None => Ok(None),
        };
    };
    let producer = producer.as_bytes();
    if !(1..=limits::PRODUCER_BYTES).contains(&producer.len()) || !producer.iter().all(u8::is_ascii_graphic) {
        let detail = format!("`{PRODUCER_ID}` is 1 to {} visible ASCII characters", limits::PRODUCER_BYTES);
        return Err(Problem::bad_header(PRODUCER_ID, detail));
    }
    let producer = String::from_utf8_lossy(producer).into();
    let epoch = number_of(headers, PRODUCER_EPOCH)?.unwrap_or(0);
    let index = number_of(headers, PRODUCER_SEQ)?.ok_or_else(|| {
        let detail = format!("`{PRODUCER_SEQ}` is missing: the index of the body's first frame");
        Problem::bad_header(PRODUCER_SEQ, detail)
    })?;
    Ok(Some(Stamp { producer, epoch, index }))
}

fn number_of(headers: &HeaderMap, name: &str) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(Problem::bad_header(name, format!("`{name}` is a whole number from 0 on"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_producer_is_named_completely_or_anonymous() {
        assert_eq!(stamp_of(&HeaderMap::new()).unwrap(), None);
        let stamp = stamp_of(&headers(&[("producer-id", "p"), ("producer-seq", "7")])).unwrap();
        assert_eq!(stamp, Some(Stamp { producer: "p".into(), epoch: 0, index: 7 }));
        for (pairs, at_fault) in [
            (&[("producer-id", "p")][..], "Producer-Seq"),
            (&[("producer-seq", "1")], "Producer-Id"),
            (&[("producer-id", "a b"), ("producer-seq", "1")], "Producer-Id"),
            (&[("producer-id", "p"), ("producer-seq", "+1")], "Producer-Seq"),
            (&[("producer-id", "p"), ("producer-seq", "1"), ("producer-epoch", "x")], "Producer-Epoch"),
        ] {
            assert_eq!(stamp_of(&headers(pairs)).unwrap_err().into_members()["header"], at_fault);
        }
    }
}
