//! Decides when a reader that fails tries again, and when it gives up.

use std::time::{Duration, Instant};

use runwire_producer::Backoff;

use crate::client::Client;
use crate::error::Error;

/// The failed attempts of a reader. Before the first connection their number is limited, afterwards their time.
#[derive(Debug)]
pub(crate) struct Attempts {
    connect_attempts: u32,
    give_up_after: Option<Duration>,
    backoff: Backoff,
    /// Failed attempts before the first connection.
    failed: u32,
    was_connected: bool,
    /// When the connection was lost; `None` after progress.
    failing_since: Option<Instant>,
}

impl Attempts {
    pub(crate) fn new(client: &Client) -> Self {
        Self {
            connect_attempts: client.retry.connect_attempts,
            give_up_after: client.retry.give_up_after,
            backoff: client.backoff(),
            failed: 0,
            was_connected: false,
            failing_since: None,
        }
    }

    /// Records that there was a connection.
    pub(crate) fn connected(&mut self) {
        self.was_connected = true;
    }

    /// Records that something new was received.
    pub(crate) fn progressed(&mut self) {
        self.backoff.reset();
        self.failing_since = None;
    }

    /// Counts a failure, and returns the delay before the next attempt; `None` if the reader gives up.
    ///
    /// `asked` is the delay that the server asked for before it failed.
    pub(crate) fn next_delay(&mut self, error: &Error, asked: Option<Duration>) -> Option<Duration> {
        let is_over = if self.was_connected {
            let since = *self.failing_since.get_or_insert_with(Instant::now);
            self.give_up_after.is_some_and(|limit| since.elapsed() >= limit)
        } else {
            self.failed += 1;
            self.failed >= self.connect_attempts
        };
        let may_retry = !is_over && error.is_temporary();
        may_retry.then(|| self.backoff.next_delay_or(asked.or(error.retry_after())))
    }
}
