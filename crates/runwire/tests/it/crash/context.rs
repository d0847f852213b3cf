//! State shared by the threads of a test: servers, phase, failure.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::command::TIMEOUT;

/// Where threads begin their turns, so that not all of them ask the same node first.
static TURNS: AtomicUsize = AtomicUsize::new(0);

/// Where the server is, or its nodes, and how far the test is.
pub(crate) struct TestContext {
    nodes: Vec<SocketAddr>,
    /// Writers finish what they have begun.
    written: AtomicBool,
    /// Every run has ended: readers read to the end.
    ended: AtomicBool,
    /// The test has failed: nobody waits for anything any more.
    given_up: AtomicBool,
}

impl TestContext {
    pub(crate) fn new(server: SocketAddr) -> Self {
        Self::of(vec![server])
    }

    /// A world of several nodes on one store.
    pub(crate) fn of(nodes: Vec<SocketAddr>) -> Self {
        Self {
            nodes,
            written: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
        }
    }

    /// Returns the next node of this thread, round robin.
    pub(crate) fn server(&self) -> SocketAddr {
        thread_local!(static TURN: Cell<usize> = Cell::new(TURNS.fetch_add(1, Ordering::Relaxed)));
        TURN.set(TURN.get().wrapping_add(1));
        self.nodes[TURN.get() % self.nodes.len()]
    }

    /// Returns true if there is only one server.
    pub(crate) fn is_one_server(&self) -> bool {
        self.nodes.len() == 1
    }

    pub(crate) fn finish_writers(&self) {
        self.written.store(true, Ordering::SeqCst);
    }

    pub(crate) fn are_writers_finishing(&self) -> bool {
        self.written.load(Ordering::SeqCst)
    }

    pub(crate) fn finish_readers(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    pub(crate) fn are_readers_finishing(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Returns a guard that aborts the test's threads if the caller panics.
    pub(crate) fn watch(&self) -> AbortOnPanic<'_> {
        AbortOnPanic(self)
    }

    /// Waits a little before the server is asked again; the whole of it may take a while.
    pub(crate) fn pause(&self, since: Instant) {
        self.check();
        assert!(since.elapsed() < TIMEOUT, "the server does not come back");
        std::thread::sleep(Duration::from_millis(3));
    }

    /// Ends a thread of a test that has failed elsewhere.
    pub(crate) fn check(&self) {
        assert!(!self.given_up.load(Ordering::SeqCst), "the test failed elsewhere");
    }
}

pub(crate) struct AbortOnPanic<'a>(&'a TestContext);

impl Drop for AbortOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.given_up.store(true, Ordering::SeqCst);
        }
    }
}
