//! Asking the writer: whoever asks waits for a place in its queue, and for room for what it brings.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Postgres;
use super::writer::Order;
use crate::error::LogError;
use crate::limits;
use crate::work::{Asked, Op};

/// How long a request waits to be taken.
const PATIENCE: Duration = Duration::from_millis(limits::STORE_PATIENCE_MILLIS);

fn refused(why: &str) -> LogError {
    LogError::Unavailable(format!("{why}; nothing was written"))
}

impl Postgres {
    /// Has the writer do something, and waits for what came of it.
    pub(super) async fn order<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<T, LogError>>) -> Order,
    ) -> Result<T, LogError> {
        let (reply, answer) = oneshot::channel();
        self.send(order(reply)).await?;
        answer.await.map_err(|_| LogError::Uncertain("the writer has ended".into()))?
    }

    async fn send(&self, order: Order) -> Result<(), LogError> {
        self.requests.send_timeout(order, PATIENCE).await.map_err(|error| match error {
            SendTimeoutError::Timeout(_) => refused("too many requests wait for the store"),
            SendTimeoutError::Closed(_) => refused("the store was closed"),
        })
    }

    /// Has one of the log's verbs performed.
    pub(super) async fn ask<Q, T: Send + 'static>(
        &self,
        request: Q,
        op: impl FnOnce(Asked<Q, T>) -> Op,
    ) -> Result<T, LogError> {
        let (since, (reply, answer)) = (Instant::now(), oneshot::channel());
        let op = op(Asked::new(request, reply));
        let bytes = u32::try_from(op.bytes().min(limits::WRITER_QUEUE_BYTES)).unwrap_or(u32::MAX);
        let room = timeout(PATIENCE, self.room.clone().acquire_many_owned(bytes)).await;
        let room = room.map_err(|_| refused("too many bytes wait for the store"))?;
        let room = room.map_err(|_| refused("the store was closed"))?;
        self.send(Order::Op(op, since, room)).await?;
        answer.await.map_err(|_| LogError::Uncertain("the writer has ended".into()))?
    }
}
