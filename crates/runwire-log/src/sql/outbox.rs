//! Undelivered outbox messages: one row for each, written with its event.

use std::time::Duration;

use runwire_model::{Json, Timestamp};

use super::{Column, DamagedColumn, Sql, SqlRow, readable_rows};
use crate::key::RunKey;
use crate::outbox::{DeliveryOutcome, OutboxKind, OutboxMessage};
use crate::query::ReadRows;
use crate::unreadable_rows::UnreadableTable;

/// Lists undelivered messages of a subscriber, in the order they are due. Unreadable ones are reported and passed over.
pub(crate) fn undelivered<R: ReadRows>(
    reader: &R,
    subscriber: &str,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<OutboxMessage>, <R::Sql as Sql>::Error> {
    // Other kinds are delivered by nodes of a newer version.
    let kinds =
        OutboxKind::ALL.iter().map(|kind| format!("'{}'", kind.name())).collect::<Vec<_>>().join(", ");
    let statement = format!(
        "SELECT outbox.id, outbox.name, outbox.kind, run.tenant, run.name, thread.name, run.agent, outbox.seq, \
         outbox.at, outbox.event, outbox.attempts, outbox.due \
         FROM outbox JOIN run ON run.id = outbox.run JOIN thread ON thread.id = run.thread \
         WHERE outbox.subscriber = ?1 AND outbox.kind IN ({kinds}) AND (outbox.due, outbox.id) > (?3, ?4) \
         ORDER BY outbox.due, outbox.id LIMIT ?2"
    );
    let first = (i64::MIN, i64::MIN);
    readable_rows(reader.unreadable(), UnreadableTable::Outbox, limit, first, |(due, number)| {
        let values = [subscriber.into(), limit.into(), due.into(), number.into()];
        reader.sql().rows(&statement, &values, |row| {
            let number = row.int(0)?;
            Ok((number, (row.int(11)?, number), message(row, now)))
        })
    })
}

fn message(row: &dyn SqlRow, now: Timestamp) -> Column<OutboxMessage> {
    let (kind, event) = (row.text(2)?, row.text(9)?);
    Ok(OutboxMessage {
        number: row.number(0)?,
        id: row.text(1)?,
        kind: OutboxKind::from_name(&kind).ok_or_else(|| DamagedColumn::new(2, "it is no kind"))?,
        run: RunKey::new(row.text(3)?, row.text(4)?),
        thread_id: row.text(5)?,
        agent: row.optional_any_text(6)?,
        seq: row.number(7)?,
        at: row.time(8)?,
        event: Json::parse(&event).map_err(|_| DamagedColumn::new(9, "it is no JSON"))?,
        attempts: u32::try_from(row.number(10)?).unwrap_or(u32::MAX),
        wait: Duration::from_millis(row.number(11)?.saturating_sub(now.0)),
    })
}

/// Records the outcome of a delivery; a message that is gone is ignored.
pub(crate) fn mark_delivered<S: Sql>(
    sql: &S,
    number: u64,
    outcome: DeliveryOutcome,
    now: Timestamp,
) -> Result<(), S::Error> {
    match outcome {
        DeliveryOutcome::Done => sql.change("DELETE FROM outbox WHERE id = ?1", &[number.into()])?,
        DeliveryOutcome::Retry(wait) => {
            let due = now.0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            let statement = "UPDATE outbox SET attempts = attempts + 1, due = ?2 WHERE id = ?1";
            sql.change(statement, &[number.into(), due.into()])?
        }
    };
    Ok(())
}
