//! What is asked of the log when a producer writes, and what it answers.

use std::sync::Arc;

use runwire_model::dialect::Dialect;
use runwire_model::run::WholePolicy;

use crate::error::AppendFault;
use crate::key::{RunKey, ThreadKey};

/// Where frames are written to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// All of them to one run, whatever run they name.
    Run(RunKey),
    /// To the runs of one thread that they name.
    Thread(ThreadKey),
    /// To the threads and runs of one tenant that they name.
    Tenant(Arc<str>),
}

/// RunFilter producer writes, so that a retry writes nothing twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The producer.
    pub producer: Arc<str>,
    /// Its incarnation.
    pub epoch: u64,
    /// The index of the first frame in what the producer has sent to this run (or thread, or tenant).
    pub index: u64,
}

/// Frames, one after the other in one buffer.
#[derive(Debug, Clone, Default)]
pub struct FrameBatch {
    bytes: Vec<u8>,
    frames: Vec<Span>,
}

#[derive(Debug, Clone)]
struct Span {
    line: u64,
    name: Option<Box<str>>,
    end: usize,
}

/// A frame as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameIn<'a> {
    /// The line that it begins on.
    pub line: u64,
    /// The name that SSE carried.
    pub name: Option<&'a str>,
    /// Its bytes.
    pub data: &'a [u8],
}

impl FrameBatch {
    /// Adds a frame.
    pub fn push(&mut self, line: u64, name: Option<&str>, data: &[u8]) {
        self.bytes.extend_from_slice(data);
        self.frames.push(Span { line, name: name.map(Into::into), end: self.bytes.len() });
    }

    /// Counts the frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Counts the bytes of all frames.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Lists the frames.
    pub fn iter(&self) -> impl Iterator<Item = FrameIn<'_>> {
        let mut from = 0;
        self.frames.iter().map(move |span| {
            let data = &self.bytes[from..span.end];
            from = span.end;
            FrameIn { line: span.line, name: span.name.as_deref(), data }
        })
    }
}

/// A piece of what a producer writes.
#[derive(Debug, Clone)]
pub struct Append {
    /// Where to.
    pub target: Target,
    /// The thread of a run that does not exist yet; without one it gets a thread of its own.
    pub thread: Option<String>,
    /// The dialect that the request names; without one it is the producer's pinned one, or detected.
    pub dialect: Option<Dialect>,
    /// Who writes; without it the run's one anonymous producer.
    pub stamp: Option<Stamp>,
    /// What is written.
    pub frames: FrameBatch,
    /// Whether the run ends here, if no frame has ended it.
    pub end: bool,
    /// How strictly frames are held against their dialect's document.
    pub check: CheckMode,
    /// What becomes of a whole text that differs from what its run has told.
    pub whole: WholePolicy,
}

/// How strictly frames are held against their dialect's document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckMode {
    /// Not at all: the server's own frames.
    Off,
    /// What breaks the document is written and counted as a warning of its run.
    #[default]
    Warn,
    /// What breaks the document is refused.
    Refuse,
}

/// What became of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Frames that are written now.
    pub accepted: u64,
    /// Frames that were written before.
    pub duplicates: u64,
    /// The last `seq` of the run, or of the thread that was written to last; 0 where there is none.
    pub last_seq: u64,
    /// The threads that were written to, each once, where the frames name them.
    pub threads: Vec<Arc<str>>,
    /// Where it stopped, if it did.
    pub fault: Option<AppendFault>,
}
