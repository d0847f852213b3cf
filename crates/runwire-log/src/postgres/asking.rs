//! Asking a writer: whoever asks waits for a place in its queue, for room for what it brings, and for its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::Postgres;
use super::commit::Request;
use super::lanes::{PATIENCE, refused};
use super::writer::Order;
use crate::error::LogError;
use crate::limits;
use crate::txn::{Command, Pending};

impl Postgres {
    /// Has one of the log's verbs performed.
    pub(super) async fn ask<C, T: Send + 'static>(
        &self,
        request: C,
        command: impl FnOnce(Pending<C, T>) -> Command,
    ) -> Result<T, LogError> {
        let (since, (reply, mut answer)) = (Instant::now(), oneshot::channel());
        let command = command(Pending::new(request, reply));
        let bytes = u32::try_from(command.bytes().min(limits::WRITER_QUEUE_BYTES)).unwrap_or(u32::MAX);
        let until = tokio::time::Instant::from_std(since + PATIENCE);
        let room = timeout_at(until, self.room.clone().acquire_many_owned(bytes)).await;
        let room = room.map_err(|_| refused("too many bytes wait for the store"))?;
        let room = room.map_err(|_| refused("the store was closed"))?;
        let turn = Turn::default();
        let request = |command, place| Box::new(Request::new(command, since, turn.clone(), (room, place)));
        self.lanes.send(command, |command, place| Order::Command(request(command, place)), until).await?;
        // The writer may be busy with finding out what became of others'.
        let answered = match timeout_at(until, &mut answer).await {
            Err(_) if turn.take() => return Err(refused("the store does not answer")),
            Err(_) => answer.await,
            Ok(answered) => answered,
        };
        answered.map_err(|_| LogError::Uncertain("the writer has ended".into()))?
    }
}

/// The turn of a request: its writer takes it, or whoever has asked and waits no longer.
#[derive(Clone, Default)]
pub(super) struct Turn(Arc<AtomicBool>);

impl Turn {
    /// Takes it, unless the other has.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}
