//! Keeps the readers of every node up to date with the commits of all nodes that share a store.
//!
//! The store is the truth. A node follows each thread that is read on it once, however many readers it has, and fills
//! its [`Tail`](crate::Tail) from three sources:
//!
//! - **Its own commits**, shown when they are committed.
//! - **Redis** ([`redis`]): the commits of other nodes, with their records. It adds only speed.
//! - **The store** (`head_poller.rs`): one query from time to time compares the heads of all followed threads.
//!   It finds what Redis has not delivered, also where there is no Redis.
//!
//! The tail merges them, and shows each record once and in order. Records that arrive before their predecessors wait
//! some milliseconds for them; then the missing ones are read from the store. That is a *heal*: one read for a
//! thread, however many readers it has. Nothing is announced that a read of the store, begun afterwards, would not
//! find.

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

/// How to reach Redis, which carries the live tail.
#[derive(Clone, PartialEq, Eq)]
pub struct TailOptions {
    /// The address of Redis: `redis://` or, with TLS, `rediss://`.
    pub url: String,
    /// PEM of the certificates that are trusted instead of the system's.
    pub trust: Option<Vec<u8>>,
}

/// Prints nothing: the address may hold a password.
impl fmt::Debug for TailOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TailOptions").finish_non_exhaustive()
    }
}
