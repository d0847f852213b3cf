//! The append command: frames of a producer, where they go, and the result.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use runwire_model::dialect::Dialect;
use runwire_model::framing::is_end_mark;
use runwire_model::run::WholePolicy;
pub use runwire_producer::Stamp;

use crate::error::AppendFault;
use crate::key::{RunKey, ThreadKey};
use crate::limits;

/// Where an append writes its frames.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// All to one run, whatever run they name.
    Run(RunKey),
    /// To the runs of one thread that the frames name.
    Thread(ThreadKey),
    /// To the threads and runs of one tenant that the frames name.
    Tenant(Arc<str>),
}

/// A batch of frames in one buffer.
#[derive(Debug, Clone, Default)]
pub struct FrameBatch {
    bytes: Buffer,
    frames: Vec<Span>,
}

/// The bytes of a batch: shared once all of them are there, so that its records need no copy.
#[derive(Debug, Clone)]
enum Buffer {
    Filling(Vec<u8>),
    Shared(Bytes),
}

impl Default for Buffer {
    fn default() -> Self {
        Self::Filling(Vec::new())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Filling(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

#[derive(Debug, Clone)]
struct Span {
    line: u64,
    name: Option<Box<str>>,
    end: usize,
}

/// A frame as it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameIn<'a> {
    /// The line that it begins on.
    pub line: u64,
    /// Its SSE event name.
    pub name: Option<&'a str>,
    /// Its bytes.
    pub data: &'a [u8],
    /// The bytes of its batch, if they are shared.
    batch: Option<&'a Bytes>,
}

impl FrameIn<'_> {
    /// Returns its bytes to be kept: a part of its batch, or a copy where that would keep much more in memory.
    pub(crate) fn to_bytes(self) -> Bytes {
        match self.batch.filter(|batch| batch.len() <= limits::SHARED_BATCH_BYTES) {
            Some(batch) => batch.slice_ref(self.data),
            None => Bytes::copy_from_slice(self.data),
        }
    }
}

impl FrameBatch {
    /// Adds a frame. An end mark is none: it takes no index, and is in no count.
    pub fn push(&mut self, line: u64, name: Option<&str>, data: &[u8]) {
        if is_end_mark(data) {
            return;
        }
        if let Buffer::Shared(bytes) = &self.bytes {
            self.bytes = Buffer::Filling(bytes.to_vec());
        }
        if let Buffer::Filling(bytes) = &mut self.bytes {
            bytes.extend_from_slice(data);
        }
        self.frames.push(Span { line, name: name.map(Into::into), end: self.bytes.len() });
    }

    /// Shares the bytes with the records that are made of them.
    pub(crate) fn share(&mut self) {
        if let Buffer::Filling(bytes) = &mut self.bytes {
            self.bytes = Buffer::Shared(std::mem::take(bytes).into());
        }
    }

    /// Counts the frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Counts the bytes of all frames.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Lists the frames.
    pub fn iter(&self) -> impl Iterator<Item = FrameIn<'_>> {
        let batch = match &self.bytes {
            Buffer::Shared(bytes) => Some(bytes),
            Buffer::Filling(_) => None,
        };
        let mut from = 0;
        self.frames.iter().map(move |span| {
            let data = &self.bytes[from..span.end];
            from = span.end;
            FrameIn { line: span.line, name: span.name.as_deref(), data, batch }
        })
    }
}

/// An append of frames by a producer.
#[derive(Debug, Clone)]
pub struct Append {
    /// The target.
    pub target: Target,
    /// The thread of a run that does not exist yet; without one it gets a thread of its own.
    pub thread: Option<String>,
    /// The dialect that the request names; without one it is the one pinned by the producer, or detected.
    pub dialect: Option<Dialect>,
    /// The producer; without one it is the run's anonymous producer.
    pub stamp: Option<Stamp>,
    /// The frames.
    pub frames: FrameBatch,
    /// Whether the run ends with this append, if no frame has ended it.
    pub end: bool,
    /// How strictly frames are checked against their dialect's document.
    pub check: CheckMode,
    /// What to do with a whole text that differs from the text that the run has streamed.
    pub whole: WholePolicy,
    /// Whether the threads that it creates may have several runs at once, where its frames name them.
    pub parallel: bool,
}

/// How strictly frames are checked against their dialect's document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckMode {
    /// Not checked: the server's own frames.
    Off,
    /// Violations are written, and counted as warnings of the run.
    #[default]
    Warn,
    /// Violations are refused.
    Refuse,
}

/// The result of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Frames that this append has written.
    pub accepted: u64,
    /// Frames that were written by an earlier attempt.
    pub duplicates: u64,
    /// The last `seq` of the run, or of the thread that was written to last; 0 where there is none.
    pub last_seq: u64,
    /// The threads that were written to, each once, where the frames name them.
    pub threads: Vec<Arc<str>>,
    /// The frame at which it stopped, if it did.
    pub fault: Option<AppendFault>,
}
