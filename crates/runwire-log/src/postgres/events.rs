//! Appends and reads records.

use std::sync::Arc;

use async_trait::async_trait;
use runwire_model::dialect::Encoder;
use runwire_model::window::Window;

use super::{PostgresLog, checkpoints};
use crate::append::{Append, Appended, Target};
use crate::error::LogError;
use crate::info::RunSpan;
use crate::key::{RunKey, ThreadKey};
use crate::log::{LogEvents, ReadFormat, RecordPage};
use crate::query;
use crate::sql;
use crate::store::StoreHandle;
use crate::tail::Tail;
use crate::txn::{LogCommand, Merge};
use crate::waiting_checkpoints::Checkpoint;

#[async_trait]
impl LogEvents for PostgresLog {
    async fn append(&self, mut append: Append) -> Result<Appended, LogError> {
        append.frames.share();
        match append.target {
            Target::Tenant(_) => self.submit(Merge::of(append), LogCommand::Merge).await,
            Target::Run(_) | Target::Thread(_) => self.submit(append, LogCommand::append).await,
        }
    }

    async fn read(&self, thread: &ThreadKey, after: u64) -> Result<RecordPage, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| Ok(query::page(reader, &thread, after)?.0)).await
    }

    async fn before(&self, thread: &ThreadKey, seq: u64) -> Result<Window, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| query::before(reader, &thread, seq)).await
    }

    async fn spans(&self, thread: &ThreadKey) -> Result<Vec<RunSpan>, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| query::spans(reader, &thread)).await
    }

    async fn checkpoint(
        &self,
        run: &RunKey,
        form: ReadFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError> {
        let run = run.clone();
        self.reading(move |reader| Ok(sql::checkpoint(&reader.connection, &run, form, seq)?)).await
    }

    fn keep_checkpoint(&self, run: &RunKey, form: ReadFormat, seq: u64, encoder: &Encoder) {
        if let Ok(state) = serde_json::to_string(encoder) {
            let checkpoint = Checkpoint { run: run.clone(), form, seq, state };
            checkpoints::keep(&self.checkpoints, &self.readers, checkpoint);
        }
    }

    fn tail(&self, thread: &ThreadKey) -> Arc<Tail> {
        let (tail, is_new) = self.tails.find(thread);
        if is_new {
            self.cluster.begin(thread, &tail);
        }
        tail
    }
}
