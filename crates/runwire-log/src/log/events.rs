//! Writing and reading the records of a thread.

use std::sync::Arc;

use async_trait::async_trait;
use runwire_model::dialect::{Dialect, Encoder, EncoderOptions, Fidelity, Slots};
use runwire_model::window::Window;

use crate::append::{Append, Appended};
use crate::error::LogError;
use crate::info::RunSpan;
use crate::key::{RunKey, ThreadKey};
use crate::log::{QueuedAppend, ReplySink};
use crate::record::StoredRecord;
use crate::tail::Tail;

/// A page of records of a thread, in order.
#[derive(Debug, Clone, Default)]
pub struct RecordPage {
    /// The records; empty at the end of the thread.
    pub records: Vec<Arc<StoredRecord>>,
    /// The thread's last `seq`, as the read saw it.
    pub head: u64,
    /// The first `seq` that is kept.
    pub oldest: u64,
}

/// The format in which a run is read: a dialect and its options. It is part of the key of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReadFormat {
    /// The dialect.
    pub dialect: Dialect,
    /// How much of the events it carries.
    pub fidelity: Fidelity,
    /// Which extension frames it has.
    pub slots: Slots,
}

impl ReadFormat {
    /// Makes the format of a dialect with default options.
    pub const fn new(dialect: Dialect) -> Self {
        Self { dialect, fidelity: Fidelity::Native, slots: Slots::All }
    }

    /// Makes the format of a dialect and options, without those that have no effect in it.
    pub fn with(dialect: Dialect, options: EncoderOptions) -> Self {
        let EncoderOptions { fidelity, slots } = options.of(dialect);
        Self { dialect, fidelity, slots }
    }

    /// Returns the options of its encoders.
    pub fn options(self) -> EncoderOptions {
        EncoderOptions { fidelity: self.fidelity, slots: self.slots }
    }

    /// Returns the number of a record's first frame in cursors.
    pub fn first_frame(self) -> u32 {
        self.options().first_frame(self.dialect)
    }

    /// Returns the key under which checkpoints are stored.
    pub(crate) fn name(self) -> String {
        let Self { dialect, fidelity, slots } = self;
        format!("{dialect}/{}/{}", fidelity.name(), slots.name())
    }
}

/// Appends and reads records: what writers, streams and feeds use.
#[async_trait]
pub trait LogEvents: Send + Sync + 'static {
    /// Writes frames; returns once they are durable.
    async fn append(&self, append: Append) -> Result<Appended, LogError>;

    /// Queues appends whose replies go to a sink, in one message to the writer; never blocks.
    ///
    /// Returns those that it has not queued, because there is no space or the log takes none this way: they have not
    /// been written, and [`append`](Self::append) waits for space.
    fn submit_appends(&self, appends: Vec<QueuedAppend>, sink: &Arc<dyn ReplySink>) -> Vec<QueuedAppend> {
        let _ = sink;
        appends
    }

    /// Reads a page of the records after `after`.
    async fn read(&self, thread: &ThreadKey, after: u64) -> Result<RecordPage, LogError>;

    /// Returns the thread's messages and state before a `seq`, as far as they are kept.
    async fn before(&self, thread: &ThreadKey, seq: u64) -> Result<Window, LogError>;

    /// Returns the ranges of a thread's runs, in the order they began; without those that retention removed.
    async fn spans(&self, thread: &ThreadKey) -> Result<Vec<RunSpan>, LogError>;

    /// Returns the newest checkpoint of a run up to `seq`.
    async fn checkpoint(
        &self,
        run: &RunKey,
        form: ReadFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError>;

    /// Stores the state of an encoder after a record when the store has time, if nothing newer of its run and format
    /// has come until then. It may be lost.
    fn keep_checkpoint(&self, run: &RunKey, form: ReadFormat, seq: u64, encoder: &Encoder);

    /// Returns the tail of a thread.
    ///
    /// Take the tail before reading the store, to miss nothing.
    fn tail(&self, thread: &ThreadKey) -> Arc<Tail>;

    /// Returns a number that changes with every commit, before its caller learns of it; `None` if the log does not
    /// see every commit.
    ///
    /// A cache of what was read after it was taken is valid until it changes.
    fn version(&self) -> Option<u64> {
        None
    }
}
