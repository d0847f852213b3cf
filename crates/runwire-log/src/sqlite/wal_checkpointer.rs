//! Folds the write-ahead log into the file while commits go on.
//!
//! A commit that finds the log long would fold it in its own time, and everyone would wait for it. So a thread of
//! its own folds as the log grows, with a connection of its own, which takes nothing from the one that writes. It
//! never quite catches up with a busy writer, and only a log that is checkpointed to its end begins anew. The last piece
//! is therefore the commit's own, once the log is so long that this must be; by then little is left of it.
//!
//! A flush that fails may have lost what was checkpointed before it, and SQLite would not fold that again while the process
//! lives. So it ends, and the next one folds everything anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};

use super::connection_slot::FatalHandler;
use super::schema;

/// Pages by which the log grows before it is checkpointed.
const CHECKPOINT_PAGES: i32 = 1000;
/// Pages of the log with which the commit folds what is left.
const MAX_WAL_PAGES: i32 = 8000;
/// Time without another attempt after one that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// The thread that folds. It ends when the connection that writes is gone, and is waited for.
pub(super) struct WalCheckpointer(Option<JoinHandle<()>>);

impl WalCheckpointer {
    /// Begins to fold whenever what this connection commits makes it worth while.
    pub(super) fn watch(
        path: &Path,
        writing: &mut Connection,
        fatal: &Arc<FatalHandler>,
    ) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        schema::prepare(&connection)?;
        let (signal, signals) = sync_channel(1);
        writing.wal_hook(Some(hook(signal, fatal.clone())))?;
        let fatal = fatal.clone();
        let thread = std::thread::Builder::new().name("log-checkpoint".into());
        let thread = thread.spawn(move || run(&connection, &signals, &fatal));
        thread.map(|thread| Self(Some(thread))).map_err(|error| {
            rusqlite::Error::ToSqlConversionFailure(format!("cannot start a thread: {error}").into())
        })
    }
}

impl Drop for WalCheckpointer {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// Looks at the length of the log after each commit.
fn hook(
    signal: SyncSender<()>,
    fatal: Arc<FatalHandler>,
) -> impl FnMut(&mut Wal, i32) -> rusqlite::Result<()> + Send + 'static {
    let mut checkpointed = 0;
    move |log, pages| {
        if pages < checkpointed {
            // It began anew.
            checkpointed = 0;
        }
        if pages - checkpointed >= CHECKPOINT_PAGES {
            checkpointed = pages;
            // One that is still at work finds these pages too, or the next will.
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

/// Returns a log that could not be checkpointed: that the disk is full may pass, and that another is connection does.
fn report(error: &rusqlite::Error, fatal: &FatalHandler) {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {}
        Some(ErrorCode::DiskFull) => {
            tracing::warn!(%error, "the write-ahead log grows, because it cannot be checkpointed into the store");
        }
        _ => fatal.call(&error.to_string()),
    }
}
