//! Socket loops: serve the two most frequent requests without hyper, and without a task for each connection.
//!
//! A loop is a thread with a poller of its own. It owns sockets of two kinds, and whatever is buffered for them:
//!
//! - **Writers** (`writer.rs`) send small appends to runs, one request after the other. What has arrived on all sockets
//!   in one turn of the loop is submitted to the log as one batch, and the log gives all replies of a commit back at once.
//! - **Readers** (`pump.rs`) are SSE streams at the end of their feed. A new segment is encoded and framed once; the loop
//!   writes the same bytes to each socket.
//!
//! A loop never blocks, and never waits for the store. What cannot be done at once is left to the tokio runtime
//! (`handover.rs`): an unusual request to hyper, a reader that needs the store to a task of its own, an append for which
//! there is no space in the writer's queue to a task that waits.
//!
//! A turn of the loop (`event_loop.rs`): take what the kernel and other threads report, answer, submit appends, then write
//! to a few readers. So writers do not wait until all readers are served.

mod event_loop;
mod handover;
mod inbox;
mod pump;
mod reader;
mod socket;
mod writer;

use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;

use crate::feed::FeedPosition;
use crate::limits;
use crate::listener::{ConnectionPermit, Connections};
use crate::metrics::OpenReader;
use event_loop::EventLoop;
use inbox::{Inbox, NewSocket};
pub(crate) use writer::accepts as accepts_writer;

/// A stream at the end of its feed, between a task and a loop.
pub(crate) struct CaughtUpStream {
    pub(crate) position: FeedPosition,
    /// The `seq` of the last cursor that the client was sent.
    pub(crate) sent: u64,
    /// The tenant that it belongs to.
    pub(crate) owner: Arc<str>,
    /// Keeps the reader counted in the metrics.
    pub(crate) open: OpenReader,
}

/// The loops of a server. Dropping them closes their sockets and ends their threads.
pub(crate) struct SocketLoops {
    inboxes: Vec<Arc<Inbox>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Loops that are not started yet.
    prepared: Mutex<Vec<mio::Poll>>,
}

impl SocketLoops {
    /// Prepares a loop for each core, up to the limit.
    pub(crate) fn prepare() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (mut inboxes, mut prepared) = (Vec::new(), Vec::new());
        for _ in 0..cores.min(limits::SOCKET_LOOPS) {
            let poll = mio::Poll::new()?;
            inboxes.push(Arc::new(Inbox::new(&poll)?));
            prepared.push(poll);
        }
        Ok(Self { inboxes, threads: Mutex::default(), prepared: Mutex::new(prepared) })
    }

    /// Starts the threads.
    pub(crate) fn start(&self, connections: &Arc<Connections>) -> io::Result<()> {
        let prepared = std::mem::take(&mut *lock(&self.prepared));
        for (poll, inbox) in prepared.into_iter().zip(&self.inboxes) {
            let event_loop = EventLoop::new(poll, inbox.clone(), connections.clone());
            let thread = std::thread::Builder::new().name("socket-loop".into()).spawn(|| event_loop.run())?;
            lock(&self.threads).push(thread);
        }
        Ok(())
    }

    /// Serves a connection whose first request writes to a run.
    pub(crate) fn serve_writer(&self, socket: TcpStream, permit: ConnectionPermit) {
        self.assign(NewSocket::Writer(socket, permit));
    }

    /// Serves a stream that has reached the end of its feed.
    pub(crate) fn serve_reader(&self, socket: TcpStream, permit: ConnectionPermit, stream: CaughtUpStream) {
        self.assign(NewSocket::Reader(socket, permit, Box::new(stream)));
    }

    /// Assigns a socket to the loop that has the fewest.
    fn assign(&self, socket: NewSocket) {
        if let Some(inbox) = self.inboxes.iter().min_by_key(|inbox| inbox.sockets()) {
            inbox.assign(socket);
        }
    }

    /// Has writers answered for the last time, and gives readers back to tasks, which end their streams.
    pub(crate) fn stop(&self) {
        self.inboxes.iter().for_each(|inbox| inbox.stop());
    }

    /// Resets all sockets.
    pub(crate) fn reset_all(&self) {
        self.inboxes.iter().for_each(|inbox| inbox.reset_all());
    }

    /// Ends the threads, and returns them.
    pub(crate) fn close(&self) -> Vec<JoinHandle<()>> {
        self.inboxes.iter().for_each(|inbox| inbox.close());
        std::mem::take(&mut lock(&self.threads))
    }
}

/// What a task needs to continue a stream that a loop gave up.
pub(crate) struct ReturnedStream {
    pub(crate) stream: CaughtUpStream,
    /// The rest of a chunk of which the client got the beginning.
    pub(crate) unsent: Bytes,
}

/// Ignores poisoning: nothing is done while these are locked that could panic halfway.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
