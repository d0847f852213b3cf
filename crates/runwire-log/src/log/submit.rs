//! Appends in batches: submitted without waiting, answered all at once.
//!
//! A caller that serves many producers from one thread submits what has arrived in one call, and a store gives it all
//! replies of a commit in one call. Nothing is woken up for a single append.

use crate::append::{Append, Appended};
use crate::error::LogError;

/// An append whose reply goes to a [`ReplySink`].
#[derive(Debug)]
pub struct QueuedAppend {
    /// The append.
    pub append: Append,
    /// Identifies it in its reply.
    pub ticket: u64,
}

/// The reply to a [`QueuedAppend`]: once it is durable, or refused.
#[derive(Debug)]
pub struct AppendReply {
    /// The ticket of the append.
    pub ticket: u64,
    /// The result.
    pub result: Result<Appended, LogError>,
}

/// Takes the replies to submitted appends.
pub trait ReplySink: Send + Sync + 'static {
    /// Takes replies, most often all of one commit; each append gets exactly one. Must not block: a store's thread
    /// calls it.
    fn deliver(&self, replies: Vec<AppendReply>);
}
