//! The interface of a log, in small traits by who uses them.
//!
//! | trait | used by |
//! |---|---|
//! | [`LogEvents`] | writers, streams, feeds |
//! | [`LogRuns`] | requests that create, cancel or answer |
//! | [`LogLookups`] | requests that show a run, a thread or a list |
//! | [`LogUpkeep`] | transfers, deletions, the sweeper and retention |
//! | [`LogOutbox`] | webhooks |
//! | [`LogNode`] | the server's own start, health and metrics |
//!
//! [`Log`] is all of them, for the owner of a store.

mod events;
mod lookups;
mod node;
mod outbox;
mod runs;
mod submit;
mod upkeep;

pub use events::{LogEvents, ReadFormat, RecordPage};
pub use lookups::LogLookups;
pub use node::LogNode;
pub use outbox::LogOutbox;
pub use runs::{Cancel, Cancelled, LogRuns};
pub use submit::{AppendReply, QueuedAppend, ReplySink};
pub use upkeep::{LogUpkeep, RetentionLimits};

/// A durable, ordered log of threads.
pub trait Log: LogEvents + LogRuns + LogLookups + LogUpkeep + LogOutbox + LogNode {}

impl<L: LogEvents + LogRuns + LogLookups + LogUpkeep + LogOutbox + LogNode + ?Sized> Log for L {}
