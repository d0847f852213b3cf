//! What the threads of a test share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::command::PATIENCE;

/// The server's address, and how far the test is.
pub(super) struct World {
    pub(super) server: SocketAddr,
    /// Writers finish what they have begun.
    written: AtomicBool,
    /// Every run has ended: readers read to the end.
    ended: AtomicBool,
    /// The test has failed: nobody waits for anything any more.
    given_up: AtomicBool,
}

impl World {
    pub(super) fn new(server: SocketAddr) -> Self {
        Self {
            server,
            written: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
        }
    }

    pub(super) fn enough_is_written(&self) {
        self.written.store(true, Ordering::SeqCst);
    }

    pub(super) fn writers_finish(&self) -> bool {
        self.written.load(Ordering::SeqCst)
    }

    pub(super) fn all_has_ended(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    pub(super) fn readers_finish(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Gives up if the caller panics: otherwise the test would wait forever for its threads.
    pub(super) fn watch(&self) -> GivesUp<'_> {
        GivesUp(self)
    }

    /// Waits a little before the server is asked again; the whole of it may take a while.
    pub(super) fn pause(&self, since: Instant) {
        self.check();
        assert!(since.elapsed() < PATIENCE, "the server does not come back");
        std::thread::sleep(Duration::from_millis(3));
    }

    /// Ends a thread of a test that has failed elsewhere.
    pub(super) fn check(&self) {
        assert!(!self.given_up.load(Ordering::SeqCst), "the test failed elsewhere");
    }
}

pub(super) struct GivesUp<'a>(&'a World);

impl Drop for GivesUp<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.given_up.store(true, Ordering::SeqCst);
        }
    }
}
