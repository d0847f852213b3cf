//! What the store holds, counted where it lies.

use std::path::Path;

use rusqlite::Row;

use super::reader::SqliteReader;
use crate::error::LogError;
use crate::figures::{Figures, Waiting};

impl SqliteReader {
    /// Counts what is open and what waits. A run's row tells its status as soon as that changes.
    pub(super) fn figures(&self, path: &Path) -> Result<Figures, LogError> {
        let mut figures = Figures { store_bytes: size_of_store(path), ..Figures::default() };
        let sql = "SELECT status, count(*) FROM run WHERE status IN ('pending', 'running', 'suspended') \
                   GROUP BY status";
        let mut statement = self.connection.prepare_cached(sql)?;
        let open = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?)))?;
        for open in open {
            let (status, count) = open?;
            match status.as_str() {
                "pending" => figures.pending = count,
                "running" => figures.running = count,
                _ => figures.suspended = count,
            }
        }
        let sql = "SELECT count(*) FROM question";
        figures.questions = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        let sql = "SELECT subscriber, count(*), sum(attempts > 0) FROM notice GROUP BY subscriber";
        let mut statement = self.connection.prepare_cached(sql)?;
        figures.waiting = statement.query_map([], waiting)?.collect::<Result<_, _>>()?;
        Ok(figures)
    }
}

fn waiting(row: &Row<'_>) -> rusqlite::Result<Waiting> {
    Ok(Waiting { subscriber: row.get(0)?, notices: row.get(1)?, tried: row.get(2)? })
}

/// Adds up the file and its write-ahead log.
fn size_of_store(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    size(path) + size(Path::new(&log))
}
