//! Looking up threads, runs, producers and interactions.

use async_trait::async_trait;

use crate::error::LogError;
use crate::info::{ProducerInfo, RunInfo, RunQuery, ThreadInfo};
use crate::interaction::{Interaction, InteractionPage, InteractionQuery};
use crate::key::{RunKey, ThreadKey};

/// Finds and lists what is stored. Nothing here writes.
#[async_trait]
pub trait LogLookups: Send + Sync + 'static {
    /// Returns a run.
    async fn run(&self, run: &RunKey) -> Result<RunInfo, LogError>;

    /// Lists runs, newest first.
    async fn runs(&self, query: RunQuery) -> Result<Vec<RunInfo>, LogError>;

    /// Returns a thread.
    async fn thread(&self, thread: &ThreadKey) -> Result<ThreadInfo, LogError>;

    /// Lists up to `limit` threads created before `before`, newest first.
    async fn threads(
        &self,
        tenant: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ThreadInfo>, LogError>;

    /// Returns the position of a producer of a run.
    async fn producer(&self, run: &RunKey, producer: &str) -> Result<Option<ProducerInfo>, LogError>;

    /// Returns the position of a producer of a whole thread.
    async fn thread_producer(
        &self,
        thread: &ThreadKey,
        producer: &str,
    ) -> Result<Option<ProducerInfo>, LogError>;

    /// Returns an interaction, open or resolved.
    async fn interaction(&self, run: &RunKey, interaction_id: &str) -> Result<Interaction, LogError>;

    /// Lists open interactions, newest first.
    async fn interactions(&self, query: InteractionQuery) -> Result<InteractionPage, LogError>;
}
