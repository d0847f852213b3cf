//! Why the log refuses.

use std::fmt;

use runwire_check::Finding;
use runwire_model::dialect::{Ambiguous, DecodeError, Dialect};
use runwire_model::event::Decision;
use runwire_model::run::Status;

use crate::interaction::Resolution;

/// Why the log did not do what it was asked. Nothing has changed, but for [`LogError::Uncertain`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No run has the id.
    #[error("there is no run `{0}`")]
    RunUnknown(String),
    /// No thread has the id.
    #[error("there is no thread `{0}`")]
    ThreadUnknown(String),
    /// The thread was deleted; its id, and those of its runs, stay used up.
    #[error("the thread `{0}` was deleted")]
    ThreadDeleted(String),
    /// The run was removed by retention.
    #[error("retention has removed the events of run `{run}`; the oldest in its thread is {oldest}")]
    RunTrimmed {
        /// The run.
        run: String,
        /// The first `seq` that is left in the thread.
        oldest: u64,
    },
    /// Another run of the thread is open.
    #[error("the thread `{thread}` is busy with run `{run}`")]
    ThreadBusy {
        /// The thread.
        thread: String,
        /// The run that is open.
        run: String,
    },
    /// The run exists and was created with other words.
    #[error("the run `{0}` exists and was created differently")]
    RunExists(String),
    /// The thread exists and was created with other words.
    #[error("the thread `{0}` exists and was created differently")]
    ThreadExists(String),
    /// A run of the thread is open, so it cannot be deleted.
    #[error("the run `{0}` of the thread is open")]
    RunOpen(String),
    /// The run has ended, so its questions take no answer.
    #[error("the run `{run}` is {}", .status.as_str())]
    RunClosed {
        /// The run.
        run: String,
        /// How it ended.
        status: Status,
        /// What became of the question that was to be answered, where it was asked at all.
        answer: Option<Box<Resolution>>,
    },
    /// The run never asked this question.
    #[error("the run `{run}` has not asked `{interaction}`")]
    InteractionUnknown {
        /// The run.
        run: String,
        /// The question.
        interaction: String,
    },
    /// The question has another answer.
    #[error("the question `{interaction}` {}", became(.answer))]
    InteractionClosed {
        /// The question.
        interaction: String,
        /// The answer that won.
        answer: Box<Resolution>,
    },
    /// Frames before these were never written.
    #[error("frame {expected} of the producer was expected next, not {got}")]
    ProducerGap {
        /// The index that must come next.
        expected: u64,
        /// The index that came.
        got: u64,
    },
    /// A newer incarnation of the producer has taken over.
    #[error("the producer is at epoch {epoch}, and this is an older one")]
    ProducerFenced {
        /// The newer epoch.
        epoch: u64,
    },
    /// The dialect of the first frames cannot be told.
    #[error(transparent)]
    DialectAmbiguous(#[from] Ambiguous),
    /// The producer speaks another dialect.
    #[error("the producer speaks {pinned} here, and cannot change to {named}")]
    DialectPinned {
        /// What it speaks.
        pinned: Dialect,
        /// What the request names.
        named: Dialect,
    },
    /// Frames of the dialect name neither a thread nor a run, so one must be named for them.
    #[error("frames of {0} do not name their session; write them to a run or a thread")]
    NeedsRun(Dialect),
    /// A frame names neither a thread nor a run.
    #[error("the frame names neither a session nor a run")]
    NoSession,
    /// The run or thread has too many producers.
    #[error("more than {0} producers")]
    TooManyProducers(usize),
    /// The thread has too many open runs.
    #[error("more than {0} open runs in one thread")]
    TooManyRuns(usize),
    /// What was asked for lies before what retention has kept.
    #[error("the events after {after} are gone; the oldest is {oldest}")]
    CursorTrimmed {
        /// What was asked for.
        after: u64,
        /// The first `seq` that is left.
        oldest: u64,
    },
    /// What was asked for lies beyond the end.
    #[error("{after} lies beyond the end of the thread, which is {head}")]
    CursorBeyondEnd {
        /// What was asked for.
        after: u64,
        /// The last `seq`.
        head: u64,
    },
    /// The store cannot be used.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The store failed while it committed: it is not known whether what was asked for is written.
    #[error("it is not known whether it was written: {0}")]
    Uncertain(String),
    /// The store holds what cannot be read, or refuses what it is given: trying again does not help.
    #[error("the store cannot do it: {0}")]
    Damaged(String),
}

/// Returns what became of a question that takes no answer any more.
fn became(answer: &Resolution) -> String {
    match answer.decision {
        Decision::Expired => format!("expired at {}, before anybody answered it", answer.at),
        decision => format!("is settled: {}", decision.as_str()),
    }
}

impl LogError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RunUnknown(_) => "run_unknown",
            Self::ThreadUnknown(_) => "thread_unknown",
            Self::ThreadDeleted(_) => "thread_deleted",
            Self::RunTrimmed { .. } => "run_trimmed",
            Self::ThreadBusy { .. } => "thread_busy",
            Self::RunExists(_) => "run_exists",
            Self::ThreadExists(_) => "thread_exists",
            Self::RunOpen(_) => "run_open",
            Self::RunClosed { .. } => "run_closed",
            Self::InteractionUnknown { .. } => "interaction_unknown",
            Self::InteractionClosed { .. } => "interaction_closed",
            Self::ProducerGap { .. } => "producer_gap",
            Self::ProducerFenced { .. } => "producer_fenced",
            Self::DialectAmbiguous(error) => error.code(),
            Self::DialectPinned { .. } => "dialect_pinned",
            Self::NeedsRun(_) => "needs_run",
            Self::NoSession => "no_session",
            Self::TooManyProducers(_) => "too_many_producers",
            Self::TooManyRuns(_) => "too_many_runs",
            Self::CursorTrimmed { .. } => "cursor_trimmed",
            Self::CursorBeyondEnd { .. } => "cursor_beyond_end",
            Self::Unavailable(_) | Self::Uncertain(_) => "store_unavailable",
            Self::Damaged(_) => "store_damaged",
        }
    }
}

/// Where and why an append stopped; the frames before it are written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct AppendFault {
    /// The frame in the append, from 0.
    pub index: usize,
    /// The line that the frame begins on.
    pub line: u64,
    /// What is wrong.
    pub problem: FrameProblem,
}

/// Why a frame was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameProblem {
    /// It cannot be read, or its run may not take it.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Its run cannot be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Its dialect's document does not allow it, and the append asked for what it allows only.
    #[error("{0}")]
    Document(Box<Breach>),
}

/// What a frame breaks of its dialect's document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// The dialect.
    pub dialect: Dialect,
    /// The first thing that is wrong.
    pub finding: Finding,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { field, section, message, .. } = &self.finding;
        if let Some(field) = field {
            write!(f, "field `{field}`: ")?;
        }
        write!(f, "{message} ({}", self.dialect)?;
        if let Some(section) = section {
            write!(f, " {section}")?;
        }
        f.write_str(")")
    }
}

impl FrameProblem {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Decode(error) => error.code(),
            Self::Log(error) => error.code(),
            Self::Document(_) => "breaks_document",
        }
    }
}
