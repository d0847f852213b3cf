//! Appends and reads records.

use std::sync::Arc;

use async_trait::async_trait;
use runwire_model::dialect::Encoder;
use runwire_model::window::Window;
use tokio::sync::mpsc::error::TrySendError;

use super::reader::SqliteReader;
use super::writer::SqliteWriterMessage;
use super::{SqliteLog, stopped};
use crate::append::{Append, Appended};
use crate::error::LogError;
use crate::info::RunSpan;
use crate::key::{RunKey, ThreadKey};
use crate::log::{LogEvents, QueuedAppend, ReadFormat, RecordPage, ReplySink};
use crate::query;
use crate::sql;
use crate::store::{ReadScope, StoreHandle};
use crate::tail::Tail;
use crate::txn::{LogCommand, SinkTicket};
use crate::waiting_checkpoints::Checkpoint;

#[async_trait]
impl LogEvents for SqliteLog {
    async fn append(&self, mut append: Append) -> Result<Appended, LogError> {
        append.frames.share();
        self.submit(append, LogCommand::append).await
    }

    fn submit_appends(&self, appends: Vec<QueuedAppend>, sink: &Arc<dyn ReplySink>) -> Vec<QueuedAppend> {
        let bytes = appends.iter().map(|queued| queued.append.frames.bytes()).sum();
        let Some(queue_bytes) = self.queue_bytes.try_acquire(bytes) else { return appends };
        let commands = appends.into_iter().map(|QueuedAppend { mut append, ticket }| {
            append.frames.share();
            LogCommand::submitted(append, SinkTicket::new(sink.clone(), ticket, stopped))
        });
        match self.requests.try_send(SqliteWriterMessage::Appends(commands.collect(), queue_bytes)) {
            Err(TrySendError::Full(SqliteWriterMessage::Appends(commands, _))) => {
                commands.into_iter().filter_map(LogCommand::into_submitted).collect()
            }
            // A writer that has ended drops them, which replies to each.
            Ok(()) | Err(_) => Vec::new(),
        }
    }

    async fn read(&self, thread: &ThreadKey, after: u64) -> Result<RecordPage, LogError> {
        let key = thread.clone();
        let read = move |reader: &mut SqliteReader| query::page(reader, &key, after);
        Ok(self.reading(ReadScope::Thread(thread.clone()), read).await?.0)
    }

    async fn before(&self, thread: &ThreadKey, seq: u64) -> Result<Window, LogError> {
        let key = thread.clone();
        self.read_in(ReadScope::Thread(thread.clone()), move |reader| query::before(reader, &key, seq)).await
    }

    async fn spans(&self, thread: &ThreadKey) -> Result<Vec<RunSpan>, LogError> {
        let key = thread.clone();
        self.read_in(ReadScope::Thread(thread.clone()), move |reader| query::spans(reader, &key)).await
    }

    async fn checkpoint(
        &self,
        run: &RunKey,
        form: ReadFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError> {
        let run = run.clone();
        let read = move |reader: &mut SqliteReader| Ok(sql::checkpoint(&reader.connection, &run, form, seq)?);
        self.reading(ReadScope::Tables, read).await
    }

    fn keep_checkpoint(&self, run: &RunKey, form: ReadFormat, seq: u64, encoder: &Encoder) {
        let Ok(state) = serde_json::to_string(encoder) else { return };
        if self.checkpoints.keep(Checkpoint { run: run.clone(), form, seq, state }) {
            // If its queue is full, the writer sees it later.
            let _ = self.requests.try_send(SqliteWriterMessage::CheckpointWaits);
        }
    }

    fn tail(&self, thread: &ThreadKey) -> Arc<Tail> {
        self.tails.of(thread)
    }

    fn version(&self) -> Option<u64> {
        Some(self.write_counters.written().commits)
    }
}
