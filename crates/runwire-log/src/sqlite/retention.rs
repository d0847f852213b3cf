//! Removes deleted threads, and runs that retention does not keep.
//!
//! Both are only marked at first. Their rows are removed later, some with each commit, so that no writer waits for
//! long; a restart continues.

use rusqlite::params;

use super::error::SqliteResult;
use super::writer::SqliteWriter;
use crate::key::RunKey;
use crate::sql;
use crate::store::TrimCommand;
use crate::txn::Txn;

impl SqliteWriter {
    /// Marks threads as deleted, and drops their heads; the rows of their runs are written.
    pub(super) fn mark_deleted(&mut self) -> SqliteResult<()> {
        for (id, _) in &self.txn.batch.deleted {
            let sql = "UPDATE thread SET deleted_at = ?2, base = NULL, unpurged = 1 WHERE id = ?1";
            let values = params![id, self.txn.now.0];
            self.txn.store.connection.begin()?.prepare_cached(sql)?.execute(values)?;
            self.clear_outbox(*id)?;
            self.txn.heads.forget_thread(*id);
            self.txn.store.pending_commits.remove(*id);
            self.purging = true;
        }
        Ok(())
    }

    /// Removes planned runs, and returns their number. Their heads are not needed, so one that cannot be read is removed
    /// like any other. If the thread cannot be read, nothing has changed.
    pub(super) fn trim(&mut self, trim: &TrimCommand) -> SqliteResult<usize> {
        let Txn { heads, store, .. } = &mut self.txn;
        let TrimCommand { thread_trim, base } = trim;
        let Some(mut thread) = heads.take_thread_by_id(store, thread_trim.thread)? else { return Ok(0) };
        // From now on the row has the head of the thread, so nothing may be pending.
        self.flush_now.insert(thread_trim.thread);
        let takes = !thread.deleted && thread.oldest < thread_trim.oldest;
        if takes {
            thread.oldest = thread_trim.oldest;
            let sql = "UPDATE thread SET oldest = ?2, base = ?3, head = ?4, head_at = ?5, unpurged = 1 WHERE id = ?1";
            let values = params![thread_trim.thread, thread_trim.oldest, base, thread.seq, thread.at.0];
            store.connection.begin()?.prepare_cached(sql)?.execute(values)?;
        }
        heads.put_thread(thread);
        if !takes {
            return Ok(0);
        }
        for name in &thread_trim.runs {
            let run = RunKey::new(thread_trim.key.tenant.clone(), name.as_str());
            let connection = store.connection.begin()?;
            let sql = "UPDATE run SET trimmed = 1 WHERE tenant = ?1 AND name = ?2";
            connection.prepare_cached(sql)?.execute(params![&*run.tenant, &*run.id])?;
            let sql =
                "DELETE FROM checkpoint WHERE run = (SELECT id FROM run WHERE tenant = ?1 AND name = ?2)";
            connection.prepare_cached(sql)?.execute(params![&*run.tenant, &*run.id])?;
            if let Some(run) = heads.cached_run_mut(&run) {
                run.trimmed = true;
            }
        }
        self.purging = true;
        Ok(thread_trim.runs.len())
    }

    /// Removes some rows of what was deleted or trimmed.
    pub(super) fn purge(&mut self) -> SqliteResult<()> {
        if self.purging {
            self.purging = sql::purge_step(self.txn.store.connection.begin()?)?;
        }
        Ok(())
    }
}
