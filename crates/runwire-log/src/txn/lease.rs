//! Until when an open run may be silent.
//!
//! A lease is part of a run's head. How long a term is, and by which clock, is the store's: the verbs only say that
//! a new one begins.

use runwire_model::Timestamp;
use runwire_model::run::Status;

use super::heads::RunHead;

/// Until when a run may go on as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lease {
    /// It has none: it is closed, or nothing has begun one yet.
    #[default]
    None,
    /// Its producer must show a sign of life within a term.
    Alive,
    /// It was asked to stop, and is stopped after a term.
    Stopping,
    /// Its first open question expires then, in milliseconds since the epoch.
    Asking(u64),
}

impl RunHead {
    /// Begins a new term.
    pub(crate) fn renew_lease(&mut self) {
        // Neither writing on nor asking a question puts off the end of a run that was asked to stop.
        if self.lease != Lease::Stopping {
            self.set_lease(match self.head.state.status {
                Status::Suspended => Lease::Asking(self.deadline.unwrap_or(u64::MAX)),
                _ => Lease::Alive,
            });
        }
    }

    /// Begins a lease of another kind.
    pub(crate) fn set_lease(&mut self, lease: Lease) {
        self.lease = lease;
        self.leased = true;
    }

    /// Returns whether the lease, which had run out when the batch began, still has.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        match self.lease {
            Lease::None => false,
            Lease::Alive | Lease::Stopping => !self.leased,
            Lease::Asking(until) => until <= now.0,
        }
    }
}
