//! A TCP proxy between a node and an engine that injects network faults.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::error::EngineError;

/// Size of a chunk.
const CHUNK_BYTES: usize = 16 << 10;
/// Limits the queued chunks of one direction.
const MAX_QUEUED_CHUNKS: usize = 1024;

/// What the proxy does with traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Forwards everything.
    #[default]
    Pass,
    /// Forwards nothing: open and new connections are idle.
    Stall,
    /// Forwards requests, and drops responses to a client that has sent these words: the request is executed with an unknown
    /// outcome. Words that are split over two chunks are not found.
    MuteAfter(&'static str),
    /// Forwards everything, but corrupts the last letter of these words if a client sends them in one chunk.
    Misspell(&'static str),
    /// Resets new connections; open ones continue.
    Refuse,
    /// Forwards everything with a delay in both directions.
    Delay(Duration),
}

/// A proxy to one address; it ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    /// Counts open connections by its references.
    open: Arc<()>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    mode: Mode,
    cuts: u64,
}

impl Proxy {
    /// Starts a proxy that forwards everything.
    pub async fn start(target: SocketAddr) -> Result<Self, EngineError> {
        let failed = || EngineError::system("listen for a proxy");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed())?;
        let address = listener.local_addr().map_err(failed())?;
        let state = watch::Sender::new(State::default());
        let open = Arc::new(());
        tokio::spawn(accept(listener, target, state.subscribe(), Arc::clone(&open)));
        Ok(Self { address, state, open })
    }

    /// Returns the address that the proxy listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the mode, also of open connections.
    pub fn set(&self, mode: Mode) {
        self.state.send_modify(|state| state.mode = mode);
    }

    /// Cuts all open connections.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Cuts all open connections with their queued chunks, and sets the mode.
    pub fn cut_and(&self, mode: Mode) {
        self.state.send_modify(|state| *state = State { mode, cuts: state.cuts + 1 });
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        // The proxy and the accept loop hold one reference each.
        Arc::strong_count(&self.open).saturating_sub(2)
    }
}

/// Finds a free port.
pub(crate) fn free_port() -> Result<u16, EngineError> {
    let found = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(found.map_err(EngineError::system("find a free port"))?.port())
}

async fn accept(listener: TcpListener, target: SocketAddr, mut state: watch::Receiver<State>, open: Arc<()>) {
    loop {
        let client = tokio::select! {
            accepted = listener.accept() => accepted,
            () = dropped(&mut state) => return,
        };
        let Ok((client, _)) = client else { continue };
        let State { mode, cuts } = *state.borrow();
        if mode == Mode::Refuse {
            reset(&client);
            continue;
        }
        let (state, held) = (state.clone(), Arc::clone(&open));
        tokio::spawn(async move {
            serve_connection(client, target, state, cuts).await;
            drop(held);
        });
    }
}

/// Waits until the proxy is dropped.
async fn dropped(state: &mut watch::Receiver<State>) {
    while state.changed().await.is_ok() {}
}

/// Waits until a connection that was opened after so many cuts is cut, or the proxy is dropped.
async fn cut(mut state: watch::Receiver<State>, cuts: u64) {
    let _ = state.wait_for(|state| state.cuts != cuts).await;
}

async fn serve_connection(
    mut client: TcpStream,
    target: SocketAddr,
    state: watch::Receiver<State>,
    cuts: u64,
) {
    let Ok(mut server) = TcpStream::connect(target).await else {
        reset(&client);
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let said = AtomicBool::new(false);
        let there = forward(from_client, to_server, state.clone(), cuts, Direction::There(&said));
        let back = forward(from_server, to_client, state.clone(), cuts, Direction::Back(&said));
        tokio::select! {
            // Queued chunks are lost with the connection, whatever the new mode is.
            biased;
            () = cut(state, cuts) => {}
            _ = async { tokio::join!(there, back) } => return,
        }
    }
    reset(&client);
    reset(&server);
}

/// A direction, with the flag that drops responses.
#[derive(Debug, Clone, Copy)]
enum Direction<'a> {
    There(&'a AtomicBool),
    Back(&'a AtomicBool),
}

impl Direction<'_> {
    /// Looks for the mode's words in a chunk of the client.
    fn note(self, mode: Mode, chunk: &[u8]) {
        let Self::There(said) = self else { return };
        match mode {
            Mode::MuteAfter(words) => {
                let is_said = chunk.windows(words.len()).any(|window| window == words.as_bytes());
                said.fetch_or(is_said, Ordering::SeqCst);
            }
            _ => said.store(false, Ordering::SeqCst),
        }
    }

    fn is_silent(self, mode: Mode) -> bool {
        match (self, mode) {
            (_, Mode::Stall) => true,
            (Self::Back(said), Mode::MuteAfter(_)) => said.load(Ordering::SeqCst),
            _ => false,
        }
    }
}

/// Forwards one direction until its end.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
    cuts: u64,
    direction: Direction<'_>,
) {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(MAX_QUEUED_CHUNKS);
    let mut reading = state.clone();
    let read = async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            wait_while_stalled(&mut reading, direction).await;
            let Ok(length @ 1..) = from.read(&mut chunk).await else { return };
            let mode = reading.borrow().mode;
            direction.note(mode, &chunk[..length]);
            if let (Direction::There(_), Mode::Misspell(words)) = (direction, mode) {
                corrupt(words.as_bytes(), &mut chunk[..length]);
            }
            let due = Instant::now() + if let Mode::Delay(time) = mode { time } else { Duration::ZERO };
            if sender.send((due, chunk[..length].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((due, chunk)) = pieces.recv().await {
            sleep_until(due).await;
            wait_while_stalled(&mut state, direction).await;
            // The receivers of a change learn of it one after the other: this one may know of the cut first.
            if state.borrow().cuts != cuts {
                return;
            }
            if to.write_all(&chunk).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    };
    run_both(read, write).await;
}

fn corrupt(words: &[u8], chunk: &mut [u8]) {
    for at in 0..chunk.len() {
        if chunk[at..].starts_with(words) {
            chunk[at + words.len() - 1] = b'?';
        }
    }
}

/// Runs the reading and the writing side until the writing one has ended.
async fn run_both(read: impl Future<Output = ()>, write: impl Future<Output = ()>) {
    tokio::pin!(write);
    tokio::select! {
        () = &mut write => return,
        () = read => {}
    }
    write.await;
}

/// Waits while the direction is stalled.
async fn wait_while_stalled(state: &mut watch::Receiver<State>, direction: Direction<'_>) {
    let _ = state.wait_for(|state| !direction.is_silent(state.mode)).await;
}

/// Closes with a TCP reset.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}
