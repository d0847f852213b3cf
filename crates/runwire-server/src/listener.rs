//! Accepts connections and limits each of them: time, memory, headers, streams.
//!
//! HTTP/1.1 and HTTP/2 without TLS share the port; the first bytes of a connection decide. hyper rejects a malformed
//! or too large head (400, 431) and closes the connection. A connection whose first request is a stream bypasses hyper
//! (`read/raw_http.rs`), and so does one whose first request writes to a run, while it does nothing else (`socket_loop`).

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tower_service::Service;

use crate::metrics::RouteClass;
use crate::read::raw_http::{self, RawStream, StreamOutcome};
use crate::rewind::RewindStream;
use crate::socket_loop::{self, ReturnedStream, SocketLoops};
use crate::stalled_streams::{self, StreamExecutor};
use crate::{AppState, Config, hosts, limits, origin, routes, write};

/// The first bytes of every HTTP/2 connection.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

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

/// Serves connections until `shutdown` completes or a socket loop fails, then signals `stop` and waits for them to finish.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    state: &Arc<AppState>,
    shutdown: impl Future<Output = ()>,
    stop: watch::Sender<bool>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let limit = state.config.connections.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
    let permits = Arc::new(Semaphore::new(limit));
    let (cut_off, cut) = watch::channel(false);
    let connections = Arc::new(Connections {
        state: state.clone(),
        runtime: Handle::current(),
        loops: SocketLoops::prepare()?,
        opening: Arc::new(Semaphore::new(limits::OPENING_STREAMS)),
        router: routes::router(state.clone()),
        builder: builder(&state.config),
        http1_builder: http1_builder(state.config.header_time),
        cut,
        loop_failed: Notify::new(),
    });
    // The threads of the loops end with this future, also where it is dropped.
    let loops = RunningLoops(connections.clone());
    connections.loops.start(&connections)?;

    let mut shutdown = pin!(shutdown);
    let outcome = loop {
        let accepted = async {
            // Further connections wait in the kernel's accept queue, where they cost almost nothing.
            let permit = permits.clone().acquire_owned().await.ok();
            (listener.accept().await, ConnectionPermit(Arc::new(permit)))
        };
        let (accepted, permit) = tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            // Its share of the connections would be dropped from now on.
            () = connections.loop_failed.notified() => {
                break Err(io::Error::other("a socket loop has failed; its message says why"));
            }
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                prepare(&stream, state.config.stalled_time);
                tokio::spawn(connection(connections.clone(), stream, permit));
            }
            Err(error) => pause_after(&error).await,
        }
    };
    drop(listener);
    stop.send_replace(true);
    connections.loops.stop();
    let all_closed = permits.acquire_many(u32::try_from(limit).unwrap_or(u32::MAX));
    if tokio::time::timeout(state.config.grace, all_closed).await.is_err() {
        let open = limit - permits.available_permits();
        tracing::warn!(open, "cutting off connections that did not finish in time");
        cut_off.send_replace(true);
        connections.loops.reset_all();
        let all_closed = permits.acquire_many(u32::try_from(limit).unwrap_or(u32::MAX));
        // The tasks end at their next wake-up.
        let _ = tokio::time::timeout(Duration::from_secs(1), all_closed).await;
    }
    loops.close().await;
    outcome
}

/// Closes the socket loops when it is dropped.
struct RunningLoops(Arc<Connections>);

impl RunningLoops {
    /// Closes the loops, and waits for their threads.
    async fn close(self) {
        let threads = self.0.loops.close();
        // A thread that panicked has said so.
        let joined =
            tokio::task::spawn_blocking(|| threads.into_iter().for_each(|thread| drop(thread.join())));
        drop(joined.await);
    }
}

impl Drop for RunningLoops {
    fn drop(&mut self) {
        drop(self.0.loops.close());
    }
}

fn http1_builder(header_time: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_headers(limits::HEADERS)
        .max_buf_size(limits::HEAD_BYTES);
    builder
}

fn builder(config: &Config) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(StreamExecutor::new(config.stalled_time));
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_time)
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
fn prepare(stream: &TcpStream, stalled_time: Duration) {
    let _ = stream.set_nodelay(true);
    let probes = TcpKeepalive::new().with_time(limits::PROBE_TIME).with_interval(limits::HEADER_TIME);
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_keepalive(&probes);
    // A stalled reader must not hold megabytes in the kernel's send buffer.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = socket.set_tcp_notsent_lowat(limits::UNSENT_BYTES);
    // Counts from when the peer's window is full, although it acknowledges probes; then the connection is reset.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = socket.set_tcp_user_timeout(Some(stalled_time));
}

/// Pauses after an accept error that would repeat at once, such as too many open files.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "cannot accept a connection");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Serves a connection; its first bytes decide how.
async fn connection(connections: Arc<Connections>, stream: TcpStream, permit: ConnectionPermit) {
    let opened = Instant::now();
    let state = &connections.state;
    let Some(mut peeked) = first_bytes(&stream, state).await else { return };
    if socket_loop::accepts_writer(&peeked) {
        return match stream.into_std() {
            Ok(socket) => connections.loops.serve_writer(socket, permit),
            Err(error) => tracing::debug!(%error, "a writer's connection broke off"),
        };
    }
    let mut cut = connections.cut.clone();
    let mut place = None;
    if raw_http::is_stream_request(&peeked) {
        // What many readers need at once, the allocator would keep. The request stays in the kernel meanwhile.
        drop(peeked);
        tokio::select! {
            granted = turn_to_open(&connections.opening) => place = granted,
            _ = cut.wait_for(|cut| *cut) => return,
        }
        let Ok(again) = raw_http::peek(&stream).await else { return };
        peeked = again;
    }
    // Boxed, so that a connection that waits costs only what waiting needs.
    Box::pin(open_connection(connections, stream, permit, opened, peeked, place)).await;
}

/// Waits for a turn to open a stream, for a limited time: while the store is away, turns are not given back soon.
async fn turn_to_open(opening: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    let turn = tokio::time::timeout(limits::OPENING_TIME, opening.clone().acquire_owned());
    turn.await.ok()?.ok()
}

/// Opens a connection that is no writer's: as a stream without hyper, or with hyper.
async fn open_connection(
    connections: Arc<Connections>,
    stream: TcpStream,
    permit: ConnectionPermit,
    opened: Instant,
    peeked: Vec<u8>,
    place: Option<OwnedSemaphorePermit>,
) {
    let state = &connections.state;
    let known = peeked.len().min(HTTP2_PREFACE.len());
    let may_be_http2 = peeked[..known] == HTTP2_PREFACE[..known];
    let mut cut = connections.cut.clone();
    let raw_stream = tokio::select! {
        raw_stream = raw_http::open(state, &stream, peeked) => raw_stream,
        _ = cut.wait_for(|cut| *cut) => return,
    };
    match raw_stream {
        Ok(Some(raw_stream)) => connections.run_stream(raw_stream, stream, permit, place).await,
        Ok(None) => {
            let stream = RewindStream::new(Vec::new(), stream);
            if may_be_http2 {
                Box::pin(connections.run_http(stream, permit, opened)).await;
            } else {
                Box::pin(connections.run_http1(stream, permit, opened)).await;
            }
        }
        Err(error) => tracing::debug!(%error, "a reader's connection broke off"),
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

/// What all connections share.
pub(crate) struct Connections {
    pub(crate) state: Arc<AppState>,
    /// Where tasks run.
    pub(crate) runtime: Handle,
    loops: SocketLoops,
    /// Limits the streams that are being opened.
    opening: Arc<Semaphore>,
    router: Router,
    builder: auto::Builder<StreamExecutor>,
    /// For connections that are known to be HTTP/1: a version that is read separately hides faults in the rest of a head
    /// that never ends.
    http1_builder: http1::Builder,
    /// Becomes true when connections are cut off.
    cut: watch::Receiver<bool>,
    /// Told when a socket loop has ended that nobody has closed.
    loop_failed: Notify,
}

impl Connections {
    /// Continues a connection with hyper, in a task; some bytes were read and not answered.
    pub(crate) fn serve_with_hyper(
        self: &Arc<Self>,
        socket: std::net::TcpStream,
        unanswered: Vec<u8>,
        permit: ConnectionPermit,
    ) {
        let connections = self.clone();
        self.runtime.spawn(async move {
            match TcpStream::from_std(socket) {
                Ok(socket) => {
                    let stream = RewindStream::new(unanswered, socket);
                    connections.run_http1(stream, permit, Instant::now()).await;
                }
                Err(error) => tracing::debug!(%error, "a connection broke off"),
            }
        });
    }

    /// Closes a connection after its last answer, in a task: what the client has sent meanwhile is read and dropped, because a
    /// socket that is closed before resets the connection, and the answer is lost.
    pub(crate) fn close_answered(self: &Arc<Self>, socket: std::net::TcpStream, permit: ConnectionPermit) {
        let mut cut = self.cut.clone();
        self.runtime.spawn(async move {
            let drained = tokio::select! {
                drained = tokio::time::timeout(limits::DRAIN_TIME, drain(socket)) => drained.unwrap_or(Ok(())),
                _ = cut.wait_for(|cut| *cut) => Ok(()),
            };
            if let Err(error) = drained {
                tracing::debug!(%error, "a writer's connection broke off");
            }
            drop(permit);
        });
    }

    /// Notes that a socket loop has ended by itself.
    pub(crate) fn loop_has_failed(&self) {
        self.loop_failed.notify_one();
    }

    /// Continues a stream that a socket loop has given up, in a task.
    pub(crate) fn continue_stream(
        self: &Arc<Self>,
        socket: std::net::TcpStream,
        permit: ConnectionPermit,
        returned: ReturnedStream,
    ) {
        let connections = self.clone();
        self.runtime.spawn(async move {
            let raw_stream = RawStream::resume(&connections.state, returned);
            match TcpStream::from_std(socket) {
                Ok(socket) => connections.run_stream(raw_stream, socket, permit, None).await,
                Err(error) => tracing::debug!(%error, "a reader's connection broke off"),
            }
        });
    }

    /// Runs a stream until it ends, or a socket loop continues.
    async fn run_stream(
        &self,
        raw_stream: RawStream,
        stream: TcpStream,
        permit: ConnectionPermit,
        place: Option<OwnedSemaphorePermit>,
    ) {
        let mut cut = self.cut.clone();
        let outcome = tokio::select! {
            outcome = raw_stream.run(stream, place) => outcome,
            _ = cut.wait_for(|cut| *cut) => return,
        };
        let passed_on = outcome.and_then(|outcome| match outcome {
            StreamOutcome::Over => Ok(()),
            StreamOutcome::CaughtUp(stream, caught_up) => {
                self.loops.serve_reader(stream.into_std()?, permit, caught_up);
                Ok(())
            }
        });
        if let Err(error) = passed_on {
            tracing::debug!(%error, "a reader's connection broke off");
        }
    }

    /// Runs a connection of either HTTP version with hyper.
    async fn run_http(&self, stream: RewindStream, permit: ConnectionPermit, opened: Instant) {
        let service = self.service(&stream, permit);
        let begun = service.begun.clone();
        let connection = self.builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        self.run_connection(connection, &begun, opened).await;
    }

    /// Runs a connection of HTTP/1 with hyper.
    async fn run_http1(&self, stream: RewindStream, permit: ConnectionPermit, opened: Instant) {
        let service = self.service(&stream, permit);
        let begun = service.begun.clone();
        let connection = self.http1_builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        self.run_connection(connection, &begun, opened).await;
    }

    fn service(&self, stream: &RewindStream, permit: ConnectionPermit) -> RequestService {
        let (state, router, begun) = (self.state.clone(), self.router.clone(), Arc::default());
        RequestService { state, router, begun, permit, local: stream.local_ip() }
    }

    /// Runs a connection until it ends, or is cut off.
    async fn run_connection<C, E>(&self, connection: C, begun: &AtomicBool, opened: Instant)
    where
        C: ShutDown + Future<Output = Result<(), E>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut stopping, mut cut) = (self.state.shutdown.clone(), self.cut.clone());
        // hyper's own timer starts only when it knows the HTTP version.
        let opening_ends = opened + self.state.config.header_time;
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            // Polled first: requests that have arrived are answered even during a shutdown.
            biased;
            ended = connection.as_mut() => Some(ended),
            () = no_request_begins(begun, opening_ends) => return,
            _ = stopping.wait_for(|stopping| *stopping) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().shut_down();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    _ = cut.wait_for(|cut| *cut) => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = error.into(), "a connection broke off");
        }
    }
}

/// Ends the sending half, and drops what arrives until the client has ended its own.
async fn drain(socket: std::net::TcpStream) -> io::Result<()> {
    let mut socket = TcpStream::from_std(socket)?;
    SockRef::from(&socket).shutdown(Shutdown::Write)?;
    let (mut buffer, mut dropped) = (vec![0; limits::PEEKED_BYTES], 0);
    while dropped <= limits::DRAIN_BYTES {
        match tokio::time::timeout(limits::DRAIN_IDLE_TIME, socket.read(&mut buffer)).await {
            Ok(Ok(0)) | Err(_) => break,
            Ok(count) => dropped += count?,
        }
    }
    Ok(())
}

/// A connection that hyper serves.
trait ShutDown {
    /// Has it end after the requests that it is at.
    fn shut_down(self: Pin<&mut Self>);
}

impl ShutDown for auto::UpgradeableConnection<'_, TokioIo<RewindStream>, RequestService, StreamExecutor> {
    fn shut_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl ShutDown for http1::UpgradeableConnection<TokioIo<RewindStream>, RequestService> {
    fn shut_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
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

/// Handles the requests of a connection that hyper serves.
struct RequestService {
    state: Arc<AppState>,
    router: Router,
    /// Whether a request has begun.
    begun: Arc<AtomicBool>,
    permit: ConnectionPermit,
    /// The local address of the connection.
    local: Option<IpAddr>,
}

impl hyper::service::Service<Request<Incoming>> for RequestService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let Self { state, router, begun, permit, .. } = self;
        begun.store(true, Ordering::Relaxed);
        let route = routes::find(request.method(), request.uri().path());
        let class = route.map_or(RouteClass::Other, |route| route.class);
        let metrics = state.metrics.clone();
        let named = (request.version(), request.uri(), request.headers());
        let checked = hosts::check(&state.config.allowed_hosts, self.local, named);
        if let Err(problem) = checked.and_then(|()| origin::check_request(&request)) {
            metrics.count_request(class, problem.status());
            return Box::pin(std::future::ready(Ok(problem.into_response())));
        }
        if let Some(route) = route.filter(|route| route.is_write_to_run()) {
            let state = state.clone();
            return Box::pin(async move {
                let (request, body) = request.into_parts();
                let run = route.parameter(request.uri.path());
                let written = write::run(&state, run, &request, body).await;
                let response = written.into_response();
                metrics.count_request(class, response.status());
                Ok(stalled_streams::watch(response))
            });
        }
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(permit.clone());
        let answer = router.clone().call(request);
        Box::pin(async move {
            let response = answer.await?;
            metrics.count_request(class, response.status());
            Ok(stalled_streams::watch(response))
        })
    }
}
