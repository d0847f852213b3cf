//! Folds the write-ahead log into the file while commits go on.
//!
//! A commit that finds the log long would fold it in its own time, and everyone would wait for it. So a thread of
//! its own folds as the log grows, with a connection of its own, which takes nothing from the one that writes. It
//! never quite catches up with a busy writer, and only a log that is folded to its end begins anew. The last piece
//! is therefore the commit's own, once the log is so long that this must be; by then little is left of it.
//!
//! A flush that fails may have lost what was folded before it, and SQLite would not fold that again while the process
//! lives. So it ends, and the next one folds everything anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};

use super::desk::Fatal;
use super::schema;

/// Pages by which the log grows before it is folded.
const FOLD_PAGES: i32 = 1000;
/// Pages of the log with which the commit folds what is left.
const MOST_PAGES: i32 = 8000;
/// Time without another attempt after one that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// The thread that folds. It ends when the connection that writes is gone, and is waited for.
pub(super) struct Folder(Option<JoinHandle<()>>);

impl Folder {
    /// Begins to fold whenever what this connection commits makes it worth while.
    pub(super) fn watch(path: &Path, writing: &mut Connection, fatal: &Arc<Fatal>) -> rusqlite::Result<Self> {
        let folding = Connection::open(path)?;
        schema::prepare(&folding)?;
        let (grown, inbox) = sync_channel(1);
        writing.wal_hook(Some(hook(grown, fatal.clone())))?;
        let fatal = fatal.clone();
        let thread = std::thread::Builder::new().name("log-folder".into());
        let thread = thread.spawn(move || fold_when_told(&folding, &inbox, &fatal));
        thread.map(|thread| Self(Some(thread))).map_err(|error| {
            rusqlite::Error::ToSqlConversionFailure(format!("cannot start a thread: {error}").into())
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// Looks at the length of the log after each commit.
fn hook(
    grown: SyncSender<()>,
    fatal: Arc<Fatal>,
) -> impl FnMut(&mut Wal, i32) -> rusqlite::Result<()> + Send + 'static {
    let mut folded = 0;
    move |log, pages| {
        if pages < folded {
            // It began anew.
            folded = 0;
        }
        if pages - folded >= FOLD_PAGES {
            folded = pages;
            // One that is still at work finds these pages too, or the next will.
            let _ = grown.try_send(());
        }
        if pages >= MOST_PAGES
            && let Err(error) = log.checkpoint()
        {
            tell(&error, &fatal);
        }
        Ok(())
    }
}

fn fold_when_told(connection: &Connection, grown: &Receiver<()>, fatal: &Fatal) {
    while grown.recv().is_ok() {
        if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tell(&error, fatal);
            std::thread::sleep(PAUSE);
        }
    }
}

/// Tells of a log that could not be folded: that the disk is full may pass, and that another is folding does.
fn tell(error: &rusqlite::Error, fatal: &Fatal) {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {}
        Some(ErrorCode::DiskFull) => {
            tracing::warn!(%error, "the write-ahead log grows, because it cannot be folded into the store");
        }
        _ => fatal.call(&error.to_string()),
    }
}
