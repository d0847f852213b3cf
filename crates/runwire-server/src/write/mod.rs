//! Write requests: turns a producer's request body into appends to the log (§6 of the design).
//!
//! All complete frames that have arrived form one append (group commit). The bytes that arrive before it is durable
//! form the next one, so a slow disk makes larger appends and not longer queues. A body may stay open for as long as
//! its run does.

mod body_events;
mod body_unframer;
mod body_writer;
mod drain;
pub(crate) mod raw_http;

use std::fmt::Display;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use http_body::Body;
use runwire_log::{CheckMode, RunKey, Stamp, Target};
use runwire_model::dialect::Dialect;
use runwire_model::framing::Framing;
use runwire_model::run::WholePolicy;

use crate::auth::tenant_of;
use crate::ids::{self, RunParam, ThreadParam};
use crate::problem::Problem;
use crate::query::Query;
use crate::{AppState, content_type, limits};
use body_events::is_small;
use body_writer::BodyWriter;
pub(crate) use drain::drain_and_close;

/// A body of bytes, boxed or not.
pub(crate) trait ByteBody: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static {}

impl<B: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static> ByteBody for B {}

/// Parameters of a write, parsed from target, query and headers.
struct WriteParams {
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

/// Writes to a run.
pub(crate) async fn run(
    State(state): State<Arc<AppState>>,
    RunParam(run): RunParam,
    request: Request,
) -> Response {
    write(state, Target::Run(run), request).await
}

/// Writes to the runs of a thread that the frames name.
pub(crate) async fn thread(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    request: Request,
) -> Response {
    write(state, Target::Thread(thread), request).await
}

/// Writes to the threads and runs that the frames name.
pub(crate) async fn tenant(State(state): State<Arc<AppState>>, request: Request) -> Response {
    let tenant = tenant_of(request.headers());
    write(state, Target::Tenant(tenant), request).await
}

/// Returns the run's path segment, if the request writes to a run.
pub(crate) fn fast_path_run<'a>(method: &Method, uri: &'a Uri) -> Option<&'a str> {
    if *method != Method::POST {
        return None;
    }
    let run = uri.path().strip_prefix("/v1/runs/")?.strip_suffix("/events")?;
    (!run.is_empty() && !run.contains('/')).then_some(run)
}

/// Writes to the run of [`fast_path_run`].
pub(crate) async fn write_fast_path<B: ByteBody>(
    state: Arc<AppState>,
    segment: &str,
    request: http::Request<B>,
) -> Response {
    match ids::from_path_segment("run", segment) {
        Ok(id) => {
            let run = RunKey { tenant: tenant_of(request.headers()), id };
            write(state, Target::Run(run), request).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn write<B: ByteBody>(state: Arc<AppState>, target: Target, request: http::Request<B>) -> Response {
    let params = match WriteParams::of(target, request.uri().query(), request.headers()) {
        Ok(params) => params,
        Err(problem) => {
            drain_and_close(request.into_body());
            return problem.into_response();
        }
    };
    let body = request.into_body();
    if is_small(&body) {
        return write_request_body(state, params, body).await;
    }
    // hyper drops a handler when its client disconnects. In a task of its own, the frames that arrived are still written.
    match tokio::spawn(write_request_body(state, params, body)).await {
        Ok(response) => response,
        Err(error) => {
            tracing::error!(%error, "a body was not written to its end");
            Problem::new("internal", "the body was not written to its end").into_response()
        }
    }
}

async fn write_request_body<B: ByteBody>(state: Arc<AppState>, params: WriteParams, mut body: B) -> Response {
    match BodyWriter::new(&state, params).write_body(&mut body).await {
        Ok(written) => written.into_response(),
        Err(problem) => {
            drain_and_close(body);
            problem.into_response()
        }
    }
}

impl WriteParams {
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

    #[test]
    fn the_fast_path_is_a_write_to_a_run_and_nothing_else() {
        let hot =
            |method, uri: &'static str| fast_path_run(&method, &Uri::from_static(uri)).map(str::to_owned);
        assert_eq!(hot(Method::POST, "/v1/runs/a%2Fb/events?end=true").as_deref(), Some("a%2Fb"));
        assert_eq!(hot(Method::GET, "/v1/runs/a/events"), None);
        assert_eq!(hot(Method::POST, "/v1/runs//events"), None);
        assert_eq!(hot(Method::POST, "/v1/runs/a/b/events"), None);
        assert_eq!(hot(Method::POST, "/v1/threads/a/events"), None);
    }
}
