//! Accepts connections, and bounds what each may take: time, memory, headers, streams.
//!
//! HTTP/1.1 and HTTP/2 without TLS share the port; the first bytes of a connection tell which it is. hyper
//! answers a head that is malformed or too large by itself (400, 431) and closes the connection. A connection that
//! begins with a request for a stream is served without hyper (`read/raw_http.rs`), and so is one that begins by
//! writing to a run, for as long as it does nothing else (`write/raw_http.rs`).

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tower_service::Service;

use crate::metrics::RouteClass;
use crate::prefixed::Prefixed;
use crate::read::raw_http;
use crate::{AppState, hosts, limits, origin, router, write};

/// Takes an address.
pub(crate) fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // On Windows this would let two servers share a port instead of letting one restart.
    #[cfg(not(windows))]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(limits::BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Serves connections until `shutdown` is done, then says so through `stop` and waits for them to finish.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    state: &Arc<AppState>,
    shutdown: impl Future<Output = ()>,
    stop: watch::Sender<bool>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let most = state.config.connections.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
    let room = Arc::new(Semaphore::new(most));
    let (cut_off, cut) = watch::channel(false);
    let builder = Arc::new(builder(state.config.header_time));
    let router = router::router(state.clone());

    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            // Whoever finds no room waits in the kernel's queue, where it costs next to nothing.
            let place = room.clone().acquire_owned().await.ok();
            (listener.accept().await, Place(Arc::new(place)))
        };
        let (accepted, place) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                prepare(&stream);
                let begun = Arc::new(AtomicBool::new(false));
                let entry = Entry { state: state.clone(), router: router.clone(), begun, place };
                let (builder, cut) = (builder.clone(), cut.clone());
                tokio::spawn(connection(stream, entry, builder, cut));
            }
            Err(error) => pause_after(&error).await,
        }
    }
    drop(listener);
    stop.send_replace(true);
    let everyone = room.acquire_many(u32::try_from(most).unwrap_or(u32::MAX));
    if tokio::time::timeout(state.config.grace, everyone).await.is_err() {
        let left = most - room.available_permits();
        tracing::warn!(left, "cutting off connections that did not finish in time");
        cut_off.send_replace(true);
        let everyone = room.acquire_many(u32::try_from(most).unwrap_or(u32::MAX));
        // Nothing is left to wait for but the tasks' next wake-up.
        let _ = tokio::time::timeout(Duration::from_secs(1), everyone).await;
    }
    Ok(())
}

fn builder(header_time: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_headers(limits::HEADERS)
        .max_buf_size(limits::HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(limits::HEADER_LIST_BYTES)
        .max_concurrent_streams(limits::STREAMS_OF_CONNECTION)
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(limits::PROBE_TIME)
        .keep_alive_timeout(limits::HEADER_TIME);
    builder
}

/// Sets what a connection of small, hurried messages needs. A socket that refuses is already gone.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let probes = TcpKeepalive::new().with_time(limits::PROBE_TIME).with_interval(limits::HEADER_TIME);
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_keepalive(&probes);
    // A reader that stands still shall wait in the log, not with megabytes in the kernel.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = socket.set_tcp_notsent_lowat(limits::UNSENT_BYTES);
}

/// Waits a little where the next accept would fail for the same reason, such as too many open files.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "cannot accept a connection");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Serves a connection; its first bytes decide how. All but a raw stream is boxed, so that a reader who stays for
/// hours takes no more memory than that one needs.
async fn connection(
    mut stream: TcpStream,
    entry: Entry,
    builder: Arc<Builder<TokioExecutor>>,
    mut cut: watch::Receiver<bool>,
) {
    let opened = Instant::now();
    let Some(peeked) = Box::pin(first_bytes(&stream, &entry.state)).await else { return };
    if write::raw_http::accepts(&peeked) {
        drop(peeked);
        let left = tokio::select! {
            left = Box::pin(write::raw_http::serve(&entry.state, &mut stream)) => left,
            _ = cut.wait_for(|cut| *cut) => return,
        };
        return match left {
            Ok(Some(read)) => {
                Box::pin(ordinary(Prefixed::new(read, stream), entry, &builder, cut, Instant::now())).await
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "a writer's connection broke off"),
        };
    }
    let raw_stream = tokio::select! {
        raw_stream = Box::pin(raw_http::open(&entry.state, &stream, peeked)) => raw_stream,
        _ = cut.wait_for(|cut| *cut) => return,
    };
    let ended = match raw_stream {
        Ok(Some(raw_stream)) => {
            let _place = entry.place.clone();
            drop((entry, builder));
            tokio::select! {
                ended = raw_stream.run(stream) => ended,
                _ = cut.wait_for(|cut| *cut) => return,
            }
        }
        Ok(None) => {
            let stream = Prefixed::new(Vec::new(), stream);
            return Box::pin(ordinary(stream, entry, &builder, cut, opened)).await;
        }
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a reader's connection broke off");
    }
}

/// Waits for what a connection says first; none if it says nothing in time, or before the server stops.
async fn first_bytes(stream: &TcpStream, state: &AppState) -> Option<Vec<u8>> {
    let mut stopping = state.shutdown.clone();
    let peeked = tokio::select! {
        biased;
        peeked = raw_http::peek(stream) => peeked.ok(),
        () = tokio::time::sleep(state.config.header_time) => None,
        _ = stopping.wait_for(|stopping| *stopping) => None,
    };
    peeked.filter(|peeked| !peeked.is_empty())
}

/// Serves a connection with hyper.
async fn ordinary(
    stream: Prefixed,
    entry: Entry,
    builder: &Builder<TokioExecutor>,
    mut cut: watch::Receiver<bool>,
    opened: Instant,
) {
    let mut stopping = entry.state.shutdown.clone();
    let begun = entry.begun.clone();
    // hyper's own timer begins once it knows the version, for which a client may take its time.
    let opening_ends = opened + entry.state.config.header_time;
    let answering = Answering { local: stream.local_ip(), entry };
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), answering));
    let ended = tokio::select! {
        // First what has come already: also a server that stops answers it.
        biased;
        ended = connection.as_mut() => Some(ended),
        () = nothing_begins(&begun, opening_ends) => return,
        _ = stopping.wait_for(|stopping| *stopping) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                _ = cut.wait_for(|cut| *cut) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "a connection broke off");
    }
}

/// Comes back if no request has begun by the given time.
async fn nothing_begins(begun: &AtomicBool, time: Instant) {
    tokio::time::sleep_until(time).await;
    if begun.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

/// A connection's place among those that may be open; whoever outlives its HTTP, as a WebSocket does, keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Place(
    #[expect(dead_code, reason = "held, so that it is counted; never looked at")]
    Arc<Option<OwnedSemaphorePermit>>,
);

/// Where requests of one connection come in.
#[derive(Clone)]
struct Entry {
    state: Arc<AppState>,
    router: Router,
    begun: Arc<AtomicBool>,
    place: Place,
}

/// Answers the requests of a connection that hyper reads.
struct Answering {
    entry: Entry,
    /// The address that the connection came to.
    local: Option<IpAddr>,
}

impl hyper::service::Service<Request<Incoming>> for Answering {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let Entry { state, router, begun, place } = &self.entry;
        begun.store(true, Ordering::Relaxed);
        let class = RouteClass::of(request.method(), request.uri().path());
        let metrics = state.metrics.clone();
        let named = (request.version(), request.uri(), request.headers());
        let checked = hosts::check(&state.config.allowed_hosts, self.local, named);
        if let Err(problem) = checked.and_then(|()| origin::check_request(&request)) {
            metrics.answered(class, problem.status());
            return Box::pin(std::future::ready(Ok(problem.into_response())));
        }
        // The hottest request of all does without the router, and its body without a box.
        if let Some(run) = write::fast_path_run(request.method(), request.uri()) {
            let (state, run) = (state.clone(), run.to_owned());
            return Box::pin(async move {
                let response = write::write_fast_path(state, &run, request).await;
                metrics.answered(class, response.status());
                Ok(response)
            });
        }
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(place.clone());
        let answer = router.clone().call(request);
        Box::pin(async move {
            let response = answer.await?;
            metrics.answered(class, response.status());
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<A, B, C, D, F: Future>(_: fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_task_of_a_reader_is_small() {
        let size = size_of_future(connection);
        assert!(size <= 2048, "{size} bytes for each idle reader");
    }
}
