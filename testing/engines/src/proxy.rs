//! A proxy between a node and an engine that can spoil the way.

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

/// Bytes that are passed on at once.
const PIECE: usize = 16 << 10;
/// Pieces of one direction that may be under way.
const UNDER_WAY: usize = 1024;

/// What the proxy does with what it is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Passes everything on.
    #[default]
    Pass,
    /// Passes nothing on: connections are open and silent, new ones too.
    Stall,
    /// Passes on what clients say, and nothing back to one that has said these words: what it asked for is done, and it
    /// does not learn of it. The words are not found where they come in two pieces.
    MuteAfter(&'static str),
    /// Passes everything on, but spoils the last letter of these words where clients say them in one piece.
    Misspell(&'static str),
    /// Resets new connections; those that are open go on.
    Refuse,
    /// Passes everything on after a while, in both directions.
    Delay(Duration),
}

/// A proxy to one address; it ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    /// Held by every connection.
    open: Arc<()>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    mode: Mode,
    cuts: u64,
}

impl Proxy {
    /// Starts a proxy that passes everything on.
    pub async fn start(target: SocketAddr) -> Result<Self, EngineError> {
        let failed = || EngineError::system("listen for a proxy");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed())?;
        let address = listener.local_addr().map_err(failed())?;
        let state = watch::Sender::new(State::default());
        let open = Arc::new(());
        tokio::spawn(accept(listener, target, state.subscribe(), Arc::clone(&open)));
        Ok(Self { address, state, open })
    }

    /// Tells the address that the proxy listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what it does from now on, also with connections that are open.
    pub fn set(&self, mode: Mode) {
        self.state.send_modify(|state| state.mode = mode);
    }

    /// Cuts all connections that are open.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Cuts all connections that are open, with all that was held back, and does something else from now on.
    pub fn cut_and(&self, mode: Mode) {
        self.state.send_modify(|state| *state = State { mode, cuts: state.cuts + 1 });
    }

    /// Tells how many connections are open.
    pub fn connections(&self) -> usize {
        // The proxy and whoever accepts hold one each.
        Arc::strong_count(&self.open).saturating_sub(2)
    }
}

/// Finds a port that nobody listens on.
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
        if state.borrow().mode == Mode::Refuse {
            reset(&client);
            continue;
        }
        let (state, held) = (state.clone(), Arc::clone(&open));
        tokio::spawn(async move {
            carry(client, target, state).await;
            drop(held);
        });
    }
}

/// Waits until the proxy is dropped.
async fn dropped(state: &mut watch::Receiver<State>) {
    while state.changed().await.is_ok() {}
}

/// Waits until all connections are cut, or the proxy is dropped.
async fn cut(mut state: watch::Receiver<State>) {
    let before = state.borrow().cuts;
    let _ = state.wait_for(|state| state.cuts != before).await;
}

async fn carry(mut client: TcpStream, target: SocketAddr, state: watch::Receiver<State>) {
    let Ok(mut server) = TcpStream::connect(target).await else {
        reset(&client);
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let said = AtomicBool::new(false);
        let there = pass(from_client, to_server, state.clone(), Way::There(&said));
        let back = pass(from_server, to_client, state.clone(), Way::Back(&said));
        tokio::select! {
            // What was held back until now is lost with the connection, whatever the proxy does from now on.
            biased;
            () = cut(state) => {}
            _ = async { tokio::join!(there, back) } => return,
        }
    }
    reset(&client);
    reset(&server);
}

/// A direction, and whether the client has said what it gets no answer to.
#[derive(Debug, Clone, Copy)]
enum Way<'a> {
    There(&'a AtomicBool),
    Back(&'a AtomicBool),
}

impl Way<'_> {
    /// Listens to what the client says, before the other side hears it.
    fn note(self, mode: Mode, piece: &[u8]) {
        let Self::There(said) = self else { return };
        match mode {
            Mode::MuteAfter(words) => {
                let is_said = piece.windows(words.len()).any(|window| window == words.as_bytes());
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

/// Passes one direction on, until its end.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
    way: Way<'_>,
) {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let mut reading = state.clone();
    let read = async move {
        let mut piece = vec![0; PIECE];
        loop {
            moving(&mut reading, way).await;
            let Ok(length @ 1..) = from.read(&mut piece).await else { return };
            let mode = reading.borrow().mode;
            way.note(mode, &piece[..length]);
            if let (Way::There(_), Mode::Misspell(words)) = (way, mode) {
                misspell(words.as_bytes(), &mut piece[..length]);
            }
            let due = Instant::now() + if let Mode::Delay(time) = mode { time } else { Duration::ZERO };
            if sender.send((due, piece[..length].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((due, piece)) = pieces.recv().await {
            sleep_until(due).await;
            moving(&mut state, way).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    };
    both(read, write).await;
}

fn misspell(words: &[u8], piece: &mut [u8]) {
    for at in 0..piece.len() {
        if piece[at..].starts_with(words) {
            piece[at + words.len() - 1] = b'?';
        }
    }
}

/// Runs two sides until the writing one has ended: it ends after the reading one, or because nobody takes anything.
async fn both(read: impl Future<Output = ()>, write: impl Future<Output = ()>) {
    tokio::pin!(write);
    tokio::select! {
        () = &mut write => return,
        () = read => {}
    }
    write.await;
}

/// Waits while nothing is passed on.
async fn moving(state: &mut watch::Receiver<State>, way: Way<'_>) {
    let _ = state.wait_for(|state| !way.is_silent(state.mode)).await;
}

/// Lets the other side see a reset instead of an end.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}
