//! Leases of open runs: how long a run may go on without a sign of life.
//!
//! A lease is part of a run's head. Its duration and clock belong to the store: commands only say that a new one
//! begins.

use runwire_model::Timestamp;
use runwire_model::run::Status;

use super::heads::RunHead;

/// What has to happen before a run's lease expires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lease {
    /// None: the run is closed, or no lease has begun.
    #[default]
    None,
    /// The producer must write or send a heartbeat within a term.
    Active,
    /// A cancel was requested; the run is closed after a term.
    Stopping,
    /// The first open interaction expires then, in milliseconds since the epoch.
    AwaitingAnswer(u64),
}

impl RunHead {
    /// Renews the lease.
    pub(crate) fn renew_lease(&mut self) {
        // Neither writes nor interactions extend the lease of a run that was cancelled.
        if self.lease != Lease::Stopping {
            self.set_lease(match self.head.state.status {
                Status::Suspended => Lease::AwaitingAnswer(self.deadline.unwrap_or(u64::MAX)),
                _ => Lease::Active,
            });
        }
    }

    /// Starts a lease of another kind.
    pub(crate) fn set_lease(&mut self, lease: Lease) {
        self.lease = lease;
        self.leased = true;
    }

    /// Returns whether the lease, which had expired when the batch began, is still expired.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        match self.lease {
            Lease::None => false,
            Lease::Active | Lease::Stopping => !self.leased,
            Lease::AwaitingAnswer(until) => until <= now.0,
        }
    }
}
