//! The outbox table, and the counts of what the store holds.

use std::time::Duration;

use runwire_model::{Json, Timestamp};
use tokio_postgres::Row;

use super::error::{PgError, PgResult};
use super::reader::PgReader;
use super::rows::{number, time, to_i64};
use super::txn_store::now;
use crate::error::LogError;
use crate::key::RunKey;
use crate::outbox::{DeliveryOutcome, OutboxKind, OutboxMessage};
use crate::stats::{LogStats, SubscriberBacklog};

impl PgReader {
    /// Lists undelivered messages of a subscriber, in the order they are due.
    pub(super) fn outbox(&self, subscriber: &str, limit: usize) -> Result<Vec<OutboxMessage>, LogError> {
        let sql = "SELECT outbox.id, outbox.name, outbox.kind, run.tenant, run.name, thread.name, run.agent, \
                   outbox.seq, outbox.at, outbox.event, outbox.attempts, outbox.due \
                   FROM outbox JOIN run ON run.id = outbox.run JOIN thread ON thread.id = run.thread \
                   WHERE outbox.subscriber = $1 AND outbox.kind = ANY($3) ORDER BY outbox.due, outbox.id LIMIT $2";
        let now = now(&self.connection)?;
        // Other kinds are delivered by nodes of a newer version.
        let kinds: Vec<&str> = OutboxKind::ALL.iter().map(|kind| kind.name()).collect();
        let rows = self.connection.query(sql, &[&subscriber, &to_i64(limit as u64), &kinds])?;
        rows.iter().map(|row| Ok(message_of_row(row, now)?)).collect()
    }

    pub(super) fn mark_delivered(&self, number: u64, outcome: DeliveryOutcome) -> Result<(), LogError> {
        match outcome {
            DeliveryOutcome::Done => {
                self.connection.execute("DELETE FROM outbox WHERE id = $1", &[&to_i64(number)])?;
            }
            DeliveryOutcome::Retry(wait) => {
                let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let due = to_i64(now(&self.connection)?.0.saturating_add(wait));
                let sql = "UPDATE outbox SET attempts = attempts + 1, due = $2 WHERE id = $1";
                self.connection.execute(sql, &[&to_i64(number), &due])?;
            }
        }
        Ok(())
    }

    /// Counts open runs, open interactions and the outbox.
    pub(super) fn stats(&self) -> Result<LogStats, LogError> {
        let sql = "SELECT count(*) FILTER (WHERE status = 'pending'), \
                   count(*) FILTER (WHERE status = 'running'), \
                   count(*) FILTER (WHERE status = 'suspended'), \
                   (SELECT count(*) FROM interaction), pg_database_size(current_database()) \
                   FROM run WHERE status IN ('pending', 'running', 'suspended')";
        let row = self.connection.one(sql, &[])?;
        let sql = "SELECT subscriber, count(*), count(*) FILTER (WHERE attempts > 0) FROM outbox \
                   GROUP BY subscriber ORDER BY subscriber";
        let waiting = self.connection.query(sql, &[])?;
        let waiting_of = |row: &Row| SubscriberBacklog {
            subscriber: row.get(0),
            messages: number(row, 1),
            retried: number(row, 2),
        };
        Ok(LogStats {
            pending: number(&row, 0),
            running: number(&row, 1),
            suspended: number(&row, 2),
            interactions: number(&row, 3),
            store_bytes: number(&row, 4),
            backlog: waiting.iter().map(waiting_of).collect(),
            ..LogStats::default()
        })
    }
}

fn message_of_row(row: &Row, now: Timestamp) -> PgResult<OutboxMessage> {
    let unreadable = |what: &str| PgError::Damaged(format!("a message has {what}"));
    Ok(OutboxMessage {
        number: number(row, 0),
        id: row.get(1),
        kind: OutboxKind::from_name(row.get(2)).ok_or_else(|| unreadable("no kind"))?,
        run: RunKey::new(row.get::<_, &str>(3), row.get::<_, &str>(4)),
        thread_id: row.get(5),
        agent: row.get(6),
        seq: number(row, 7),
        at: time(row, 8),
        event: Json::parse(row.get(9)).map_err(|_| unreadable("no JSON"))?,
        attempts: u32::try_from(number(row, 10)).unwrap_or(u32::MAX),
        wait: Duration::from_millis(number(row, 11).saturating_sub(now.0)),
    })
}
