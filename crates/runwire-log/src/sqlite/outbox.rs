//! The outbox table: one row for each undelivered message, written with its event.

use std::time::Duration;

use runwire_model::{Json, Timestamp};
use rusqlite::{Row, params};

use super::reader::{SqliteReader, to_i64};
use super::writer::{SqliteResult, SqliteWriter};
use crate::error::LogError;
use crate::key::RunKey;
use crate::outbox::{DeliveryOutcome, OutboxKind, OutboxMessage, Subscriber};
use crate::txn::mint;

impl SqliteWriter {
    /// Sets the subscribers, and removes messages of others.
    pub(super) fn subscribe(&mut self, subscribers: Vec<Subscriber>) -> SqliteResult<()> {
        let names: Vec<String> = {
            let mut names =
                self.txn.store.connection.begin().prepare("SELECT DISTINCT subscriber FROM outbox")?;
            names.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?
        };
        for gone in names.iter().filter(|name| subscribers.iter().all(|known| known.name != **name)) {
            self.txn.store.connection.begin().execute("DELETE FROM outbox WHERE subscriber = ?1", [gone])?;
        }
        self.txn.subscribers = subscribers;
        Ok(())
    }

    /// Writes the outbox messages of this commit, once the rows of their runs exist.
    pub(super) fn save_outbox(&mut self) -> SqliteResult<()> {
        let now = self.txn.now;
        for message in self.txn.batch.outbox.drain(..) {
            let sql = "INSERT INTO outbox (subscriber, name, run, kind, seq, at, event, due) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            self.txn.store.connection.begin().prepare_cached(sql)?.execute(params![
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

    pub(super) fn mark_delivered(&mut self, number: u64, outcome: DeliveryOutcome) -> SqliteResult<()> {
        match outcome {
            DeliveryOutcome::Done => {
                let sql = "DELETE FROM outbox WHERE id = ?1";
                self.txn.store.connection.begin().prepare_cached(sql)?.execute([to_i64(number)])?;
            }
            DeliveryOutcome::Retry(wait) => {
                let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let due = to_i64(self.txn.now.0.saturating_add(wait));
                let sql = "UPDATE outbox SET attempts = attempts + 1, due = ?2 WHERE id = ?1";
                self.txn
                    .store
                    .connection
                    .begin()
                    .prepare_cached(sql)?
                    .execute(params![to_i64(number), due])?;
            }
        }
        Ok(())
    }

    /// Removes the messages of a deleted thread; those that this commit adds are delivered all the same.
    pub(super) fn clear_outbox(&self, thread: i64) -> SqliteResult<()> {
        let sql = "DELETE FROM outbox WHERE run IN (SELECT id FROM run WHERE thread = ?1)";
        self.txn.store.connection.begin().prepare_cached(sql)?.execute([thread])?;
        Ok(())
    }
}

impl SqliteReader {
    /// Lists undelivered messages of a subscriber, in the order they are due.
    pub(super) fn outbox(
        &self,
        subscriber: &str,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<OutboxMessage>, LogError> {
        let sql = "SELECT outbox.id, outbox.name, outbox.kind, run.tenant, run.name, thread.name, run.agent, \
                   outbox.seq, outbox.at, outbox.event, outbox.attempts, outbox.due \
                   FROM outbox JOIN run ON run.id = outbox.run JOIN thread ON thread.id = run.thread \
                   WHERE outbox.subscriber = ?1 ORDER BY outbox.due, outbox.id LIMIT ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows =
            statement.query_map(params![subscriber, to_i64(limit as u64)], |row| message_of_row(row, now))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn message_of_row(row: &Row<'_>, now: Timestamp) -> rusqlite::Result<OutboxMessage> {
    let unreadable = |column: usize, what: &str| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, what.into())
    };
    let (kind, event): (String, String) = (row.get(2)?, row.get(9)?);
    Ok(OutboxMessage {
        number: row.get(0)?,
        id: row.get(1)?,
        kind: OutboxKind::from_name(&kind).ok_or_else(|| unreadable(2, "no kind of message"))?,
        run: RunKey::new(row.get::<_, String>(3)?, row.get::<_, String>(4)?),
        thread_id: row.get(5)?,
        agent: row.get(6)?,
        seq: row.get(7)?,
        at: Timestamp(row.get(8)?),
        event: Json::parse(&event).map_err(|_| unreadable(9, "no JSON"))?,
        attempts: row.get(10)?,
        wait: Duration::from_millis(row.get::<_, u64>(11)?.saturating_sub(now.0)),
    })
}
