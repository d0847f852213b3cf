//! The outbox table: one row for each undelivered message, written with its event.

use async_trait::async_trait;
use rusqlite::params;
use tokio::sync::watch;

use super::SqliteLog;
use super::error::SqliteResult;
use super::reader::SqliteReader;
use super::writer::{SqliteWriter, SqliteWriterMessage};
use crate::error::LogError;
use crate::log::LogOutbox;
use crate::outbox::{DeliveryOutcome, OutboxMessage, Subscriber};
use crate::sql::{self, to_i64};
use crate::store::ReadScope;
use crate::txn::mint;

#[async_trait]
impl LogOutbox for SqliteLog {
    async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), LogError> {
        self.send(|reply| SqliteWriterMessage::Subscribe(subscribers, reply)).await
    }

    async fn outbox(&self, subscriber: &str, limit: usize) -> Result<Vec<OutboxMessage>, LogError> {
        let (subscriber, now) = (subscriber.to_owned(), (self.clock)());
        let read = move |reader: &mut SqliteReader| Ok(sql::undelivered(reader, &subscriber, limit, now)?);
        self.reading(ReadScope::Tables, read).await
    }

    async fn mark_delivered(&self, message: u64, outcome: DeliveryOutcome) -> Result<(), LogError> {
        self.send(|reply| SqliteWriterMessage::MarkDelivered(message, outcome, reply)).await
    }

    fn outbox_changed(&self) -> watch::Receiver<()> {
        self.outbox_changed.subscribe()
    }
}

impl SqliteWriter {
    /// Sets the subscribers, and removes messages of others.
    pub(super) fn subscribe(&mut self, subscribers: Vec<Subscriber>) -> SqliteResult<()> {
        let names: Vec<&str> = subscribers.iter().map(|known| known.name.as_str()).collect();
        let sql = "DELETE FROM outbox WHERE subscriber NOT IN (SELECT value FROM json_each(?1))";
        self.txn.store.connection.begin()?.execute(sql, [serde_json::to_string(&names)?])?;
        self.txn.subscribers = subscribers;
        Ok(())
    }

    /// Writes the outbox messages of this commit, once the rows of their runs exist.
    pub(super) fn save_outbox(&mut self) -> SqliteResult<()> {
        let now = self.txn.now;
        for message in self.txn.batch.outbox.drain(..) {
            let sql = "INSERT INTO outbox (subscriber, name, run, kind, seq, at, event, due) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            self.txn.store.connection.begin()?.prepare_cached(sql)?.execute(params![
                message.subscriber,
                mint(),
                message.run,
                message.kind.name(),
                to_i64(message.seq),
                to_i64(message.at.0),
                message.event.text(),
                to_i64(now.0),
            ])?;
            self.outbox_changed = true;
        }
        Ok(())
    }

    /// Removes the messages of a deleted thread; those that this commit adds are delivered all the same.
    pub(super) fn clear_outbox(&self, thread: i64) -> SqliteResult<()> {
        let sql = "DELETE FROM outbox WHERE run IN (SELECT id FROM run WHERE thread = ?1)";
        self.txn.store.connection.begin()?.prepare_cached(sql)?.execute([thread])?;
        Ok(())
    }
}
