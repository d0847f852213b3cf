//! Counts of open runs, open interactions and undelivered messages.

use super::Sql;
use crate::stats::{LogStats, SubscriberBacklog};

/// Counts what the store holds. The row of a run is written as soon as its status changes.
pub(crate) fn count<S: Sql>(sql: &S) -> Result<LogStats, S::Error> {
    let mut stats = LogStats::default();
    let statement = "SELECT status, count(*) FROM run WHERE status IN ('pending', 'running', 'suspended') \
                     GROUP BY status";
    for (status, count) in sql.rows(statement, &[], |row| Ok((row.text(0)?, row.number(1)?)))? {
        match status.as_str() {
            "pending" => stats.pending = count,
            "running" => stats.running = count,
            _ => stats.suspended = count,
        }
    }
    let interactions = sql.row("SELECT count(*) FROM interaction", &[], |row| row.number(0))?;
    stats.interactions = interactions.unwrap_or(0);
    let statement = "SELECT subscriber, count(*), count(*) FILTER (WHERE attempts > 0) FROM outbox \
                     GROUP BY subscriber ORDER BY subscriber";
    stats.backlog = sql.rows(statement, &[], |row| {
        Ok(SubscriberBacklog { subscriber: row.text(0)?, messages: row.number(1)?, retried: row.number(2)? })
    })?;
    Ok(stats)
}
