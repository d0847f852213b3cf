//! Errors of the log: of a command, of a frame, and of an append.

use std::fmt;
use std::sync::Arc;

use runwire_check::Finding;
use runwire_model::ErrorCode;
use runwire_model::dialect::{AmbiguousDialect, DecodeError, Dialect};
use runwire_model::event::Decision;
use runwire_model::run::Status;

use crate::interaction::Resolution;

/// Why a command failed. It has changed nothing, except perhaps for [`LogError::Uncertain`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No run has the id.
    #[error("there is no run `{0}`")]
    RunUnknown(String),
    /// No thread has the id.
    #[error("there is no thread `{0}`")]
    ThreadUnknown(String),
    /// The thread was deleted; its id and the ids of its runs cannot be used again.
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
    /// The run exists and was created by a different request.
    #[error("the run `{0}` exists and was created differently")]
    RunExists(String),
    /// The thread exists and was created by a different request.
    #[error("the thread `{0}` exists and was created differently")]
    ThreadExists(String),
    /// A run of the thread is open, so it cannot be deleted.
    #[error("the run `{0}` of the thread is open")]
    RunOpen(String),
    /// The run has ended, so its interactions take no answer.
    #[error("the run `{run}` is {}", .status.as_str())]
    RunClosed {
        /// The run.
        run: String,
        /// How it ended.
        status: Status,
        /// The answer of the interaction, if the run has requested it and it has one.
        answer: Option<Box<Resolution>>,
    },
    /// The run has not requested this interaction.
    #[error("the run `{run}` has not asked `{interaction}`")]
    InteractionUnknown {
        /// The run.
        run: String,
        /// The interaction.
        interaction: String,
    },
    /// The interaction has another answer.
    #[error("the question `{interaction}` {}", resolution_text(.answer))]
    InteractionClosed {
        /// The interaction.
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
    /// The dialect of the first frames is ambiguous.
    #[error(transparent)]
    DialectAmbiguous(#[from] AmbiguousDialect),
    /// The producer speaks another dialect.
    #[error("the producer speaks {pinned} here, and cannot change to {named}")]
    DialectPinned {
        /// The pinned dialect.
        pinned: Dialect,
        /// The dialect that the request names.
        named: Dialect,
    },
    /// Frames of the dialect name neither a thread nor a run, so the request must.
    #[error("frames of {0} do not name their session; write them to a run or a thread")]
    NeedsRun(Dialect),
    /// A frame names neither a thread nor a run.
    #[error("the frame names neither a session nor a run")]
    NoSession,
    /// A frame names another session than those before it that its producer has written to the run.
    #[error("the frame is of session `{got}`, and those before it are of `{session}`")]
    OtherSession {
        /// The session of the frames before it.
        session: String,
        /// The session that the frame names.
        got: String,
    },
    /// The run or thread has too many producers.
    #[error("more than {0} producers")]
    TooManyProducers(usize),
    /// The thread has too many open runs.
    #[error("more than {0} open runs in one thread")]
    TooManyRuns(usize),
    /// The cursor lies before the oldest kept record.
    #[error("the events after {after} are gone; the oldest is {oldest}")]
    CursorTrimmed {
        /// The cursor.
        after: u64,
        /// The first `seq` that is left.
        oldest: u64,
    },
    /// The cursor lies beyond the end.
    #[error("{after} lies beyond the end of the thread, which is {head}")]
    CursorBeyondEnd {
        /// The cursor.
        after: u64,
        /// The last `seq`.
        head: u64,
    },
    /// The store is unavailable; a retry may succeed.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The outcome of the commit is unknown: the store failed during it.
    #[error("it is not known whether it was written: {0}")]
    Uncertain(String),
    /// The store holds unreadable data, or refuses the data it was given: a retry cannot succeed.
    #[error("the store cannot do it: {0}")]
    Damaged(String),
}

/// Describes how an interaction was resolved.
fn resolution_text(answer: &Resolution) -> String {
    match answer.decision {
        Decision::Expired => format!("expired at {}, before anybody answered it", answer.at),
        decision => format!("is settled: {}", decision.as_str()),
    }
}

impl LogError {
    /// Returns the stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::RunUnknown(_) => ErrorCode::RunUnknown,
            Self::ThreadUnknown(_) => ErrorCode::ThreadUnknown,
            Self::ThreadDeleted(_) => ErrorCode::ThreadDeleted,
            Self::RunTrimmed { .. } => ErrorCode::RunTrimmed,
            Self::ThreadBusy { .. } => ErrorCode::ThreadBusy,
            Self::RunExists(_) => ErrorCode::RunExists,
            Self::ThreadExists(_) => ErrorCode::ThreadExists,
            Self::RunOpen(_) => ErrorCode::RunOpen,
            Self::RunClosed { .. } => ErrorCode::RunClosed,
            Self::InteractionUnknown { .. } => ErrorCode::InteractionUnknown,
            Self::InteractionClosed { .. } => ErrorCode::InteractionClosed,
            Self::ProducerGap { .. } => ErrorCode::ProducerGap,
            Self::ProducerFenced { .. } => ErrorCode::ProducerFenced,
            Self::DialectAmbiguous(error) => error.code(),
            Self::DialectPinned { .. } => ErrorCode::DialectPinned,
            Self::NeedsRun(_) => ErrorCode::NeedsRun,
            Self::NoSession => ErrorCode::NoSession,
            Self::OtherSession { .. } => ErrorCode::OtherSession,
            Self::TooManyProducers(_) => ErrorCode::TooManyProducers,
            Self::TooManyRuns(_) => ErrorCode::TooManyRuns,
            Self::CursorTrimmed { .. } => ErrorCode::CursorTrimmed,
            Self::CursorBeyondEnd { .. } => ErrorCode::CursorBeyondEnd,
            Self::Unavailable(_) | Self::Uncertain(_) => ErrorCode::StoreUnavailable,
            Self::Damaged(_) => ErrorCode::StoreDamaged,
        }
    }
}

/// The frame at which an append stopped, and why; the frames before it are written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct AppendFault {
    /// Index of the frame in the append, from 0.
    pub index: usize,
    /// The line that the frame begins on.
    pub line: u64,
    /// The thread that the frame belongs to, where the frames name theirs.
    pub thread: Option<Arc<str>>,
    /// The run that the frame belongs to, where the frames name theirs.
    pub run: Option<Arc<str>>,
    /// What is wrong.
    pub problem: FrameProblem,
}

impl AppendFault {
    /// Creates the fault of a frame.
    pub(crate) fn new(index: usize, line: u64, problem: FrameProblem) -> Self {
        Self { index, line, thread: None, run: None, problem }
    }
}

/// Why a frame was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameProblem {
    /// It cannot be decoded, or its run may not take it.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Its run cannot be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Its dialect's document does not allow it, and the append is strict.
    #[error("{0}")]
    Document(Box<Breach>),
}

/// A violation of a dialect's document by a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// The dialect.
    pub dialect: Dialect,
    /// The first violation.
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
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Decode(error) => error.code(),
            Self::Log(error) => error.code(),
            Self::Document(_) => ErrorCode::BreaksDocument,
        }
    }
}
