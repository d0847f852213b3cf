//! Counts runs, interactions and outbox messages in the store.

use std::path::Path;

use rusqlite::Row;

use super::reader::SqliteReader;
use crate::error::LogError;
use crate::stats::{LogStats, SubscriberBacklog};

impl SqliteReader {
    /// Counts open runs, open interactions and the outbox. A run's row is updated as soon as its status changes.
    pub(super) fn stats(&self, path: &Path) -> Result<LogStats, LogError> {
        let mut stats = LogStats { store_bytes: size_of_store(path), ..LogStats::default() };
        let sql = "SELECT status, count(*) FROM run WHERE status IN ('pending', 'running', 'suspended') \
                   GROUP BY status";
        let mut statement = self.connection.prepare_cached(sql)?;
        let open = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?)))?;
        for open in open {
            let (status, count) = open?;
            match status.as_str() {
                "pending" => stats.pending = count,
                "running" => stats.running = count,
                _ => stats.suspended = count,
            }
        }
        let sql = "SELECT count(*) FROM interaction";
        stats.interactions = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        let sql = "SELECT subscriber, count(*), sum(attempts > 0) FROM outbox GROUP BY subscriber";
        let mut statement = self.connection.prepare_cached(sql)?;
        stats.backlog = statement.query_map([], waiting)?.collect::<Result<_, _>>()?;
        Ok(stats)
    }
}

fn waiting(row: &Row<'_>) -> rusqlite::Result<SubscriberBacklog> {
    Ok(SubscriberBacklog { subscriber: row.get(0)?, messages: row.get(1)?, retried: row.get(2)? })
}

/// Returns the size of the file and its write-ahead log.
fn size_of_store(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    size(path) + size(Path::new(&log))
}
