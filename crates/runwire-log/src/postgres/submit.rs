//! Submits commands to a writer: waits for the byte semaphore, for a slot in its queue, and for its reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::PostgresLog;
use super::commit::QueuedCommand;
use super::writer::PgWriterMessage;
use super::writer_pool::{QUEUE_TIMEOUT, refused};
use crate::error::LogError;
use crate::limits;
use crate::txn::{LogCommand, Pending};

impl PostgresLog {
    /// Submits a command, and waits for its reply.
    pub(super) async fn submit<C, T: Send + 'static>(
        &self,
        request: C,
        command: impl FnOnce(Pending<C, T>) -> LogCommand,
    ) -> Result<T, LogError> {
        let (since, (reply, mut answer)) = (Instant::now(), oneshot::channel());
        let command = command(Pending::new(request, reply));
        let bytes = u32::try_from(command.bytes().min(limits::WRITER_QUEUE_BYTES)).unwrap_or(u32::MAX);
        let until = tokio::time::Instant::from_std(since + QUEUE_TIMEOUT);
        let queue_bytes = timeout_at(until, self.queue_bytes.clone().acquire_many_owned(bytes)).await;
        let queue_bytes = queue_bytes.map_err(|_| refused("too many bytes wait for the store"))?;
        let queue_bytes = queue_bytes.map_err(|_| refused("the store was closed"))?;
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
}

/// The right to decide a command: the writer takes it to execute the command, or the caller to give up.
#[derive(Clone, Default)]
pub(super) struct Ticket(Arc<AtomicBool>);

impl Ticket {
    /// Takes the ticket; returns whether it was free.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}
