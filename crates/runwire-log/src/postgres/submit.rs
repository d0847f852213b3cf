//! Submits commands to a writer: waits for the byte semaphore, for a slot in its queue, and for its reply.

use std::time::Instant;

use runwire_model::Timestamp;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::PostgresLog;
use super::commit::{QueuedCommand, Ticket};
use super::reader::PgReader;
use super::txn_store::now;
use super::writer::PgWriterMessage;
use crate::error::LogError;
use crate::info::RunInfo;
use crate::store::{ReadScope, StoreHandle, TrimCommand};
use crate::txn::{LogCommand, Pending};
use crate::unreadable_rows::UnreadableRows;
use crate::writer_queue::{QUEUE_TIMEOUT, refused};

impl StoreHandle for PostgresLog {
    type Reader = PgReader;

    async fn submit<C: Send, T: Send + 'static>(
        &self,
        request: C,
        command: impl FnOnce(Pending<C, T>) -> LogCommand + Send,
    ) -> Result<T, LogError> {
        let (since, (reply, mut answer)) = (Instant::now(), oneshot::channel());
        let command = command(Pending::new(request, reply));
        let until = tokio::time::Instant::from_std(since + QUEUE_TIMEOUT);
        let queue_bytes = self.queue_bytes.acquire(command.bytes(), until).await?;
        let ticket = Ticket::default();
        let request = |command, assignment| {
            Box::new(QueuedCommand::new(command, since, ticket.clone(), (queue_bytes, assignment)))
        };
        self.writers
            .send(
                command,
                |command, assignment| PgWriterMessage::Command(request(command, assignment)),
                until,
            )
            .await?;
        // The writer may be busy with the outcome of an earlier commit.
        let answered = match timeout_at(until, &mut answer).await {
            Err(_) if ticket.take() => return Err(refused("the store does not answer")),
            Err(_) => answer.await,
            Ok(answered) => answered,
        };
        answered.map_err(|_| LogError::Uncertain("the writer has ended".into()))?
    }

    /// Every commit is in the tables, so any snapshot has it.
    async fn read_in<T: Send + 'static>(
        &self,
        _scope: ReadScope,
        read: impl Fn(&mut PgReader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        self.reading(read).await
    }

    fn unreadable(&self) -> &UnreadableRows {
        &self.nodes.unreadable
    }

    fn assign_run(&self, tenant: &str, run: &RunInfo) {
        self.writers.assign_like_thread(tenant, run);
    }

    async fn now(&self) -> Result<Timestamp, LogError> {
        self.using(|reader| Ok(now(&reader.connection)?)).await
    }

    async fn trim_thread(&self, trim: TrimCommand) -> Result<usize, LogError> {
        self.using(move |reader| Ok(reader.trim(&trim)?)).await
    }
}
