//! A command in the queue of a writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use crate::limits;
use crate::postgres::writer_pool::Assignment;
use crate::txn::LogCommand;
use crate::writer_queue::refused;

/// A command in the queue of a writer.
pub(in crate::postgres) struct QueuedCommand {
    pub(in crate::postgres) command: LogCommand,
    since: Instant,
    /// Why it was not committed so far.
    pub(super) retry_reason: Option<String>,
    /// Threads to lock first on the next attempt: it has met them while it was executed.
    pub(super) wanted: Vec<i64>,
    /// Whether it was deferred once.
    pub(super) was_deferred: bool,
    ticket: Ticket,
    /// Its share of the byte semaphore, and the assignment of its run, until it is answered.
    _held: (OwnedSemaphorePermit, Option<Assignment>),
}

impl QueuedCommand {
    pub(in crate::postgres) fn new(
        command: LogCommand,
        since: Instant,
        ticket: Ticket,
        held: (OwnedSemaphorePermit, Option<Assignment>),
    ) -> Self {
        Self {
            command,
            since,
            retry_reason: None,
            wanted: Vec::new(),
            was_deferred: false,
            ticket,
            _held: held,
        }
    }

    /// Starts the command; returns `false` if its caller has given up.
    pub(in crate::postgres) fn begin(&self) -> bool {
        self.ticket.take()
    }

    pub(super) fn is_expired(&self) -> bool {
        self.since.elapsed() >= Duration::from_millis(limits::STORE_REQUEST_MILLIS)
    }

    /// Refuses it: nothing was written.
    pub(super) fn refuse(self, why: &str) {
        self.command.refuse(refused(why));
    }
}

/// The right to decide a command: the writer takes it to execute the command, or the caller to give up.
#[derive(Clone, Default)]
pub(in crate::postgres) struct Ticket(Arc<AtomicBool>);

impl Ticket {
    /// Takes the ticket; returns whether it was free.
    pub(in crate::postgres) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}
