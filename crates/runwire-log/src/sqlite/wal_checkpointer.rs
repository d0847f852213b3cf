//! Checkpoints the write-ahead log while commits go on.
//!
//! A commit that finds the log long would checkpoint it itself, and all callers would wait. So a thread does it as
//! the log grows, over a connection of its own, which takes nothing from the one that writes. It never quite catches
//! up with a busy writer, and only a completely checkpointed log restarts. The last part is therefore left to the
//! commit, once the log is very long; by then little remains.
//!
//! An fsync that fails may have lost what was checkpointed before it, and SQLite would not write that again while the
//! process lives. So the process ends, and the next one checkpoints everything again.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};

use super::connection_slot::FatalHandler;
use super::error::SqliteResult;
use super::schema;

/// Pages by which the log grows between two checkpoints.
const CHECKPOINT_PAGES: i32 = 1000;
/// Pages of the log at which the commit itself does the checkpoint.
const MAX_WAL_PAGES: i32 = 8000;
/// Pause after a failed checkpoint.
const PAUSE: Duration = Duration::from_secs(1);

/// The checkpoint thread. It ends when the write connection is gone, and dropping this waits for it.
pub(super) struct WalCheckpointer(Option<JoinHandle<()>>);

impl WalCheckpointer {
    /// Starts to checkpoint whenever this connection's commits make it worthwhile.
    pub(super) fn watch(
        path: &Path,
        writing: &mut Connection,
        fatal: &Arc<FatalHandler>,
    ) -> SqliteResult<Self> {
        let connection = Connection::open(path)?;
        schema::prepare(&connection)?;
        let (signal, signals) = sync_channel(1);
        writing.wal_hook(Some(hook(signal, fatal.clone())))?;
        let fatal = fatal.clone();
        let thread = std::thread::Builder::new().name("log-checkpoint".into());
        let thread = thread.spawn(move || run(&connection, &signals, &fatal));
        Ok(Self(Some(thread?)))
    }
}

impl Drop for WalCheckpointer {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// Makes the hook that checks the length of the log after each commit.
fn hook(
    signal: SyncSender<()>,
    fatal: Arc<FatalHandler>,
) -> impl FnMut(&mut Wal, i32) -> rusqlite::Result<()> + Send + 'static {
    let mut checkpointed = 0;
    move |log, pages| {
        if pages < checkpointed {
            // The log has restarted.
            checkpointed = 0;
        }
        if pages - checkpointed >= CHECKPOINT_PAGES {
            checkpointed = pages;
            // A running checkpoint includes these pages, or the next one does.
            let _ = signal.try_send(());
        }
        if pages >= MAX_WAL_PAGES
            && let Err(error) = log.checkpoint()
        {
            report(&error, &fatal);
        }
        Ok(())
    }
}

fn run(connection: &Connection, signal: &Receiver<()>, fatal: &FatalHandler) {
    while signal.recv().is_ok() {
        if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            report(&error, fatal);
            std::thread::sleep(PAUSE);
        }
    }
}

/// Reports a failed checkpoint: a full disk may pass, and a concurrent checkpoint does.
fn report(error: &rusqlite::Error, fatal: &FatalHandler) {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {}
        Some(ErrorCode::DiskFull) => {
            tracing::warn!(%error, "the write-ahead log grows, because it cannot be checkpointed");
        }
        _ => fatal.call(&error.to_string()),
    }
}
