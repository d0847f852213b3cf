//! Exactly-once writing: the frames of one producer, in order, each written once, however often a batch is sent.
//!
//! | module | what it does |
//! |---|---|
//! | `producer` | identity and position of a producer: the stamp of its next frame, the epoch that takes over |
//! | `batch_write` | the state machine of one batch: what each reply means for position and retries; no I/O |
//! | `destination` | where batches go: over HTTP (SDK and command line) or into a log of this process (agents) |
//! | `backoff` | delays between attempts |
//!
//! [`Producer::write`] drives the state machine over a [`WriteDestination`].

mod backoff;
mod batch_write;
mod destination;
pub mod limits;
mod producer;

pub use backoff::Backoff;
pub use batch_write::{RetryPolicy, WriteError};
pub use destination::{Ack, AppendError, WriteDestination};
pub use producer::{Producer, Stamp, next_epoch};
