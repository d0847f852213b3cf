//! A store in a folder of its own.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use runwire_log::Log;
use runwire_log::conformance::{Bed, Timing};
use runwire_log::sqlite::{SqliteLog, SqliteOptions};

pub(crate) struct SqliteBed {
    folder: tempfile::TempDir,
}

impl SqliteBed {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("log.db")
    }
}

#[async_trait]
impl Bed for SqliteBed {
    async fn open(&self, timing: Timing) -> Arc<dyn Log> {
        let options = SqliteOptions {
            lease: timing.lease,
            cancel_grace: timing.cancel_grace,
            ..SqliteOptions::default()
        };
        Arc::new(SqliteLog::open(&self.path(), options).unwrap())
    }

    async fn reopen(&self, log: Arc<dyn Log>, timing: Timing) -> Arc<dyn Log> {
        log.close().await;
        drop(log);
        self.open(timing).await
    }
}

/// Whatever a test did, the file it leaves behind is sound.
impl Drop for SqliteBed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if let Ok(connection) = rusqlite::Connection::open(self.path()) {
            let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(check, "ok");
        }
    }
}
