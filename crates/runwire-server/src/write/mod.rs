//! A producer's body becomes appends to the log (§6 of the design).
//!
//! The body is read as it comes. All whole frames that have arrived are one append, and nothing more is read
//! until it is durable: what arrives meanwhile is the next one, so a slow disk makes larger appends and not
//! longer queues. A body may stay open for as long as its run does.

mod arrival;
mod intake;
pub(crate) mod lean;
mod linger;
mod session;

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
use crate::ids::{self, RunAt, ThreadAt};
use crate::problem::Problem;
use crate::query::Query;
use crate::{Wire, limits, media};
use arrival::is_small;
pub(crate) use linger::drop_slowly;
use session::Session;

/// A body of bytes, boxed or not.
pub(crate) trait ByteBody: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static {}

impl<B: Body<Data = Bytes, Error: Display> + Send + Unpin + 'static> ByteBody for B {}

/// What a request says about its body.
struct Writing {
    target: Target,
    /// The thread of a run that does not exist yet.
    thread: Option<String>,
    framing: Option<Framing>,
    dialect: Option<Dialect>,
    stamp: Option<Stamp>,
    end: bool,
    /// Whether a thread that does not exist yet takes several runs at once.
    parallel: bool,
    check: CheckMode,
    whole: WholePolicy,
}

/// Writes to a run.
pub(crate) async fn run(State(wire): State<Arc<Wire>>, RunAt(run): RunAt, request: Request) -> Response {
    write(wire, Target::Run(run), request).await
}

/// Writes to the runs of a thread that the frames name.
pub(crate) async fn thread(
    State(wire): State<Arc<Wire>>,
    ThreadAt(thread): ThreadAt,
    request: Request,
) -> Response {
    write(wire, Target::Thread(thread), request).await
}

/// Writes to the threads and runs that the frames name.
pub(crate) async fn tenant(State(wire): State<Arc<Wire>>, request: Request) -> Response {
    let tenant = tenant_of(request.headers());
    write(wire, Target::Tenant(tenant), request).await
}

/// Finds the run, as the path spells it, if the request writes to one.
pub(crate) fn hot_run<'a>(method: &Method, uri: &'a Uri) -> Option<&'a str> {
    if *method != Method::POST {
        return None;
    }
    let run = uri.path().strip_prefix("/v1/runs/")?.strip_suffix("/events")?;
    (!run.is_empty() && !run.contains('/')).then_some(run)
}

/// Writes to the run that [`hot_run`] found.
pub(crate) async fn to_run<B: ByteBody>(
    wire: Arc<Wire>,
    segment: &str,
    request: http::Request<B>,
) -> Response {
    match ids::from_segment("run", segment) {
        Ok(id) => {
            let run = RunKey { tenant: tenant_of(request.headers()), id };
            write(wire, Target::Run(run), request).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn write<B: ByteBody>(wire: Arc<Wire>, target: Target, request: http::Request<B>) -> Response {
    let writing = match Writing::of(target, request.uri().query(), request.headers()) {
        Ok(writing) => writing,
        Err(problem) => {
            drop_slowly(request.into_body());
            return problem.into_response();
        }
    };
    let body = request.into_body();
    if is_small(&body) {
        return take_in(wire, writing, body).await;
    }
    // hyper drops what answers a request when the client goes away. What has arrived is written all the same.
    match tokio::spawn(take_in(wire, writing, body)).await {
        Ok(response) => response,
        Err(error) => {
            tracing::error!(%error, "a body was not written to its end");
            Problem::new("internal", "the body was not written to its end").into_response()
        }
    }
}

async fn take_in<B: ByteBody>(wire: Arc<Wire>, writing: Writing, mut body: B) -> Response {
    match Session::new(&wire, writing).take_in(&mut body).await {
        Ok(written) => written.into_response(),
        Err(problem) => {
            drop_slowly(body);
            problem.into_response()
        }
    }
}

impl Writing {
    fn of(target: Target, query: Option<&str>, headers: &HeaderMap) -> Result<Self, Problem> {
        let mut query = Query::parse(query);
        let dialect = query.dialect("dialect", &Dialect::READABLE)?;
        let (mut thread, mut parallel, mut end) = (None, false, false);
        match &target {
            Target::Run(_) => thread = query.id("thread")?,
            Target::Thread(_) => parallel = query.flag("parallel")?.unwrap_or(false),
            // The end of such a stream is the end of none of its runs.
            Target::Tenant(_) => {}
        }
        if !matches!(target, Target::Tenant(_)) {
            end = query.flag("end")?.unwrap_or(false);
        } else if let Some(dialect) = dialect.filter(|dialect| !dialect.names_its_session()) {
            return Err(Problem::needs_run(dialect));
        }
        let check = check_of(query.flag("strict")?.unwrap_or(false));
        let whole = match query.take("whole")? {
            None => WholePolicy::default(),
            Some(name) => WholePolicy::from_name(&name)
                .ok_or_else(|| Problem::bad_query("whole", "`whole` is `add`, `ignore` or `replace`"))?,
        };
        query.finish()?;
        let framing = media::framing_of(headers)?;
        Ok(Self { target, thread, framing, dialect, stamp: stamp_of(headers)?, end, parallel, check, whole })
    }
}

/// Tells how strictly frames are held against their dialect's document.
pub(crate) fn check_of(strict: bool) -> CheckMode {
    if strict { CheckMode::Refuse } else { CheckMode::Warn }
}

const PRODUCER_ID: &str = "Producer-Id";
const PRODUCER_EPOCH: &str = "Producer-Epoch";
const PRODUCER_SEQ: &str = "Producer-Seq";

/// Reads who writes; nothing is said by the anonymous producer.
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
    fn a_producer_says_who_it_is_or_nothing() {
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
    fn the_hot_route_is_a_write_to_a_run_and_nothing_else() {
        let hot = |method, uri: &'static str| hot_run(&method, &Uri::from_static(uri)).map(str::to_owned);
        assert_eq!(hot(Method::POST, "/v1/runs/a%2Fb/events?end=true").as_deref(), Some("a%2Fb"));
        assert_eq!(hot(Method::GET, "/v1/runs/a/events"), None);
        assert_eq!(hot(Method::POST, "/v1/runs//events"), None);
        assert_eq!(hot(Method::POST, "/v1/runs/a/b/events"), None);
        assert_eq!(hot(Method::POST, "/v1/threads/a/events"), None);
    }
}
