//! The health and the counters of the store, and the runs that an earlier server left open.

use std::path::Path;
use std::sync::PoisonError;

use async_trait::async_trait;

use super::writer::SqliteWriterMessage;
use super::{READERS, SqliteLog};
use crate::error::LogError;
use crate::health::{Dependency, Health};
use crate::info::OrphanedRun;
use crate::log::LogNode;
use crate::sql;
use crate::stats::LogStats;
use crate::store::ReadScope;

#[async_trait]
impl LogNode for SqliteLog {
    async fn claim_orphans(&self, agents: &[&str], limit: usize) -> Result<Vec<OrphanedRun>, LogError> {
        // Concurrent calls wait, so that each orphan is returned once.
        let mut orphans = self.orphans.clone().lock_owned().await;
        if orphans.is_done() || agents.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let agents: Vec<String> = agents.iter().map(|agent| (*agent).to_owned()).collect();
        self.reading(ReadScope::Everything, move |reader| orphans.claim(reader, &agents, limit)).await
    }

    async fn stats(&self) -> Result<LogStats, LogError> {
        let stats = self.reading(ReadScope::Tables, |reader| Ok(sql::count(&reader.connection)?)).await?;
        Ok(LogStats {
            written: self.write_counters.written(),
            store_bytes: size_of_store(&self.path),
            unreadable: self.unreadable.count(),
            ..stats
        })
    }

    async fn ready(&self) -> Result<(), LogError> {
        self.send(SqliteWriterMessage::Ping).await
    }

    async fn health(&self) -> Health {
        Health { store: Dependency::from_probe("sqlite", self.ready().await), tail: None }
    }

    async fn close(&self) {
        // Readers are closed first: then the writer leaves one file that nobody has open.
        let reads = self.readers.acquire_many(READERS as u32).await;
        self.readers.close();
        drop(reads);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        // The writer drops its queue last.
        let _ = self.requests.send(SqliteWriterMessage::Close).await;
        self.requests.closed().await;
    }
}

/// Returns the size of the file and its write-ahead log.
fn size_of_store(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    size(path) + size(Path::new(&log))
}
