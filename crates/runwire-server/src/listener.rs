//! Accepts connections and limits each of them: time, memory, headers, streams.
//!
//! HTTP/1.1 and HTTP/2 without TLS share the port; the first bytes of a connection decide. hyper rejects a malformed
//! or too large head (400, 431) and closes the connection. A connection whose first request is a stream bypasses hyper
//! (`read/raw_http.rs`), and so does one whose first request writes to a run, while it does nothing else
//! (`write/raw_http.rs`).

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
use crate::read::raw_http;
use crate::rewind::RewindStream;
use crate::{AppState, hosts, limits, origin, router, write};

/// Binds and listens on an address.
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

/// Serves connections until `shutdown` completes, then signals `stop` and waits for them to finish.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    state: &Arc<AppState>,
    shutdown: impl Future<Output = ()>,
    stop: watch::Sender<bool>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let limit = state.config.connections.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
    let connections = Arc::new(Semaphore::new(limit));
    let (cut_off, cut) = watch::channel(false);
    let builder = Arc::new(builder(state.config.header_time));
    let router = router::router(state.clone());

    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            // Further connections wait in the kernel's accept queue, where they cost almost nothing.
            let permit = connections.clone().acquire_owned().await.ok();
            (listener.accept().await, ConnectionPermit(Arc::new(permit)))
        };
        let (accepted, permit) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                prepare(&stream);
                let begun = Arc::new(AtomicBool::new(false));
                let context =
                    ConnectionContext { state: state.clone(), router: router.clone(), begun, permit };
                let (builder, cut) = (builder.clone(), cut.clone());
                tokio::spawn(connection(stream, context, builder, cut));
            }
            Err(error) => pause_after(&error).await,
        }
    }
    drop(listener);
    stop.send_replace(true);
    let all_closed = connections.acquire_many(u32::try_from(limit).unwrap_or(u32::MAX));
    if tokio::time::timeout(state.config.grace, all_closed).await.is_err() {
        let open = limit - connections.available_permits();
        tracing::warn!(open, "cutting off connections that did not finish in time");
        cut_off.send_replace(true);
        let all_closed = connections.acquire_many(u32::try_from(limit).unwrap_or(u32::MAX));
        // The tasks end at their next wake-up.
        let _ = tokio::time::timeout(Duration::from_secs(1), all_closed).await;
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
        .max_concurrent_streams(limits::CONNECTION_STREAMS)
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(limits::PROBE_TIME)
        .keep_alive_timeout(limits::HEADER_TIME);
    builder
}

/// Sets socket options for small, latency-sensitive messages. Errors mean that the socket is already closed.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let probes = TcpKeepalive::new().with_time(limits::PROBE_TIME).with_interval(limits::HEADER_TIME);
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_keepalive(&probes);
    // A stalled reader must not hold megabytes in the kernel's send buffer.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = socket.set_tcp_notsent_lowat(limits::UNSENT_BYTES);
}

/// Pauses after an accept error that would repeat at once, such as too many open files.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "cannot accept a connection");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Serves a connection; its first bytes decide how. Every future but the raw stream is boxed, so that an idle reader
/// takes no more memory than its stream needs.
async fn connection(
    mut stream: TcpStream,
    context: ConnectionContext,
    builder: Arc<Builder<TokioExecutor>>,
    mut cut: watch::Receiver<bool>,
) {
    let opened = Instant::now();
    let Some(peeked) = Box::pin(first_bytes(&stream, &context.state)).await else { return };
    if write::raw_http::accepts(&peeked) {
        drop(peeked);
        let unanswered = tokio::select! {
            unanswered = Box::pin(write::raw_http::serve(&context.state, &mut stream)) => unanswered,
            _ = cut.wait_for(|cut| *cut) => return,
        };
        return match unanswered {
            Ok(Some(read)) => {
                Box::pin(serve_with_hyper(
                    RewindStream::new(read, stream),
                    context,
                    &builder,
                    cut,
                    Instant::now(),
                ))
                .await
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "a writer's connection broke off"),
        };
    }
    let raw_stream = tokio::select! {
        raw_stream = Box::pin(raw_http::open(&context.state, &stream, peeked)) => raw_stream,
        _ = cut.wait_for(|cut| *cut) => return,
    };
    let ended = match raw_stream {
        Ok(Some(raw_stream)) => {
            let _permit = context.permit.clone();
            drop((context, builder));
            tokio::select! {
                ended = raw_stream.run(stream) => ended,
                _ = cut.wait_for(|cut| *cut) => return,
            }
        }
        Ok(None) => {
            let stream = RewindStream::new(Vec::new(), stream);
            return Box::pin(serve_with_hyper(stream, context, &builder, cut, opened)).await;
        }
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a reader's connection broke off");
    }
}

/// Waits for the first bytes of a connection; none on a timeout or shutdown.
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
async fn serve_with_hyper(
    stream: RewindStream,
    context: ConnectionContext,
    builder: &Builder<TokioExecutor>,
    mut cut: watch::Receiver<bool>,
    opened: Instant,
) {
    let mut stopping = context.state.shutdown.clone();
    let begun = context.begun.clone();
    // hyper's own timer starts only when it knows the HTTP version.
    let opening_ends = opened + context.state.config.header_time;
    let service = RequestService { local: stream.local_ip(), context };
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let ended = tokio::select! {
        // Polled first: requests that have arrived are answered even during a shutdown.
        biased;
        ended = connection.as_mut() => Some(ended),
        () = no_request_begins(&begun, opening_ends) => return,
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

/// Completes if no request has begun by the given time.
async fn no_request_begins(begun: &AtomicBool, time: Instant) {
    tokio::time::sleep_until(time).await;
    if begun.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

/// The permit of an open connection; a WebSocket keeps it after the upgrade.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionPermit(
    #[expect(dead_code, reason = "held, so that it is counted; never looked at")]
    Arc<Option<OwnedSemaphorePermit>>,
);

/// What the requests of one connection share.
#[derive(Clone)]
struct ConnectionContext {
    state: Arc<AppState>,
    router: Router,
    begun: Arc<AtomicBool>,
    permit: ConnectionPermit,
}

/// Handles the requests of a connection that hyper serves.
struct RequestService {
    context: ConnectionContext,
    /// The local address of the connection.
    local: Option<IpAddr>,
}

impl hyper::service::Service<Request<Incoming>> for RequestService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let ConnectionContext { state, router, begun, permit } = &self.context;
        begun.store(true, Ordering::Relaxed);
        let class = RouteClass::of(request.method(), request.uri().path());
        let metrics = state.metrics.clone();
        let named = (request.version(), request.uri(), request.headers());
        let checked = hosts::check(&state.config.allowed_hosts, self.local, named);
        if let Err(problem) = checked.and_then(|()| origin::check_request(&request)) {
            metrics.count_request(class, problem.status());
            return Box::pin(std::future::ready(Ok(problem.into_response())));
        }
        // Fast path for the most frequent request: no router, no boxed body.
        if let Some(run) = write::fast_path_run(request.method(), request.uri()) {
            let (state, run) = (state.clone(), run.to_owned());
            return Box::pin(async move {
                let response = write::write_fast_path(state, &run, request).await;
                metrics.count_request(class, response.status());
                Ok(response)
            });
        }
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(permit.clone());
        let answer = router.clone().call(request);
        Box::pin(async move {
            let response = answer.await?;
            metrics.count_request(class, response.status());
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
