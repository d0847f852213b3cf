//! What nodes that share one store need besides it: how the readers of every node learn of the commits of all.
//!
//! The store is the truth. A node follows each thread that is read on it once, however many its readers are, and keeps
//! its [`Tail`](crate::Tail) filled from three sides:
//!
//! - **Its own commits** are shown when they are committed.
//! - **What Redis tells** ([`redis`]): the commits of other nodes, with their records. Only speed.
//! - **What the store tells** (`eyes.rs`): now and then one query asks how far all threads are that are followed. So
//!   whatever Redis has not told is found, also where there is no Redis.
//!
//! They meet in the tail, which shows a record once and in order. What comes before something that it follows waits
//! some milliseconds for it; then the store is asked for what is missing. That is a *heal*: one read a thread, whoever
//! reads it. Nothing is announced that a read of the store, begun afterwards, would not find.

mod encoded_batch;
mod followed_threads;
mod head_poller;
pub mod redis;
mod stats;
mod store_probe;
mod subscriber;
mod tail_feeder;

use std::fmt;

pub(crate) use encoded_batch::EncodedBatch;
pub(crate) use followed_threads::{FollowGuard, FollowedThreads};
pub use stats::{ClusterStats, PollerStatus};
pub(crate) use store_probe::{HeadChange, ProbeOpener, RecordsAfter, StoreProbe, ThreadLocation};
pub(crate) use tail_feeder::TailFeeder;

/// Where the live tail is.
#[derive(Clone, PartialEq, Eq)]
pub struct TailOptions {
    /// The address of Redis: `redis://` or, with TLS, `rediss://`.
    pub url: String,
    /// PEM of the certificates that are trusted instead of the system's.
    pub trust: Option<Vec<u8>>,
}

/// The address may hold a password.
impl fmt::Debug for TailOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TailOptions").finish_non_exhaustive()
    }
}
