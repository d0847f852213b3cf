//! The verbs of threads and runs.

use async_trait::async_trait;

use crate::error::LogError;
use crate::info::{Created, NewRun, NewThread, RunInfo, ThreadInfo};
use crate::interaction::{Answer, Answered};
use crate::key::RunKey;

/// A request to cancel a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cancel {
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub by: Option<String>,
}

/// The result of a cancel request.
#[derive(Debug, Clone, PartialEq)]
pub struct Cancelled {
    /// The run, after it.
    pub run: RunInfo,
    /// Whether something was written; not if the run has ended, or a cancel was requested before.
    pub new: bool,
}

/// Creates threads and runs, and changes runs.
#[async_trait]
pub trait LogRuns: Send + Sync + 'static {
    /// Creates a thread; returns the existing one if the same request has created it.
    async fn create_thread(&self, thread: NewThread) -> Result<Created<ThreadInfo>, LogError>;

    /// Creates a run without records; returns the existing one if the same request has created it.
    async fn create_run(&self, run: NewRun) -> Result<Created<RunInfo>, LogError>;

    /// Cancels a run; returns a closed one as it is.
    async fn cancel(&self, run: &RunKey, cancel: Cancel) -> Result<Cancelled, LogError>;

    /// Answers an interaction; returns once the answer is durable.
    ///
    /// The first answer wins. The same answer again, by the same person, succeeds; another is refused with the one
    /// that won. The caller has validated it: an interaction never changes.
    async fn answer(&self, run: &RunKey, answer: Answer) -> Result<Answered, LogError> {
        let answered = self.answer_all(run, vec![answer]).await?.pop();
        answered.ok_or_else(|| LogError::Unavailable("the log does not say what came of an answer".into()))
    }

    /// Answers several interactions of a run in one record, each at most once. If one answer is refused, none is
    /// written.
    async fn answer_all(&self, run: &RunKey, answers: Vec<Answer>) -> Result<Vec<Answered>, LogError>;

    /// Renews a run's lease.
    async fn heartbeat(&self, run: &RunKey) -> Result<RunInfo, LogError> {
        let mut renewed = self.heartbeat_all(vec![run.clone()]).await?;
        let unanswered = || LogError::Unavailable("the log does not say what came of a heartbeat".into());
        renewed.pop().ok_or_else(unanswered)?
    }

    /// Renews the leases of several runs in one commit; returns what came of each.
    async fn heartbeat_all(&self, runs: Vec<RunKey>) -> Result<Vec<Result<RunInfo, LogError>>, LogError>;
}
