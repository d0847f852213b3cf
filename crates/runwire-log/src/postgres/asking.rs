//! Asking a writer: whoever asks waits for a place in its queue, and for room for what it brings.

use std::time::Instant;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Postgres;
use super::commit::Request;
use super::lanes::{PATIENCE, refused};
use super::writer::Order;
use crate::error::LogError;
use crate::limits;
use crate::work::{Asked, Op};

impl Postgres {
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
        self.lanes.send(op, |op, place| Order::Op(Box::new(Request::new(op, since, (room, place))))).await?;
        answer.await.map_err(|_| LogError::Uncertain("the writer has ended".into()))?
    }
}
