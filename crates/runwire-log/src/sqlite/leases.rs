//! Until when each open run may be silent.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use runwire_model::Timestamp;
use runwire_model::run::Status;

use super::heads::RunHead;

/// Until when a run may go on as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Lease {
    /// Its producer must show a sign of life before.
    Alive(Instant),
    /// It was asked to stop, and is stopped then.
    Stopping(Instant),
    /// Its first open question expires then, in milliseconds since the epoch.
    Asking(u64),
}

/// The leases of all open runs. They live in memory: after a restart every run gets a full term.
#[derive(Debug, Default)]
pub(super) struct Leases(HashMap<i64, Lease>);

impl Leases {
    /// Begins a new term.
    pub(super) fn renew(&mut self, run: &RunHead, term: Duration) {
        let next = match run.head.state.status {
            Status::Suspended => Lease::Asking(run.deadline.unwrap_or(u64::MAX)),
            _ => Lease::Alive(Instant::now() + term),
        };
        let lease = self.0.entry(run.id).or_insert(next);
        // Neither writing on nor asking a question puts off the end of a run that was asked to stop.
        if !matches!(lease, Lease::Stopping(_)) {
            *lease = next;
        }
    }

    /// Gives a run that was asked to stop the time to do so.
    pub(super) fn stop(&mut self, run: i64, grace: Duration) {
        self.0.insert(run, Lease::Stopping(Instant::now() + grace));
    }

    pub(super) fn set(&mut self, run: i64, lease: Lease) {
        self.0.insert(run, lease);
    }

    pub(super) fn remove(&mut self, run: i64) {
        self.0.remove(&run);
    }

    /// Lists the runs whose lease ran out.
    pub(super) fn due(&self, now: Timestamp) -> Vec<(i64, Lease)> {
        let clock = Instant::now();
        let is_due = |lease: &Lease| match lease {
            Lease::Alive(until) | Lease::Stopping(until) => *until <= clock,
            Lease::Asking(until) => *until <= now.0,
        };
        self.0.iter().filter(|(_, lease)| is_due(lease)).map(|(run, lease)| (*run, *lease)).collect()
    }
}
