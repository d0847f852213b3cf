//! Removes deleted threads, and runs that retention does not keep.
//!
//! Both are only marked at first. Their rows are removed later, some with each commit, so that no writer waits for
//! long; a restart continues.

use runwire_model::Timestamp;
use rusqlite::params;

use super::reader::SqliteReader;
use super::rows::json_error;
use super::writer::{SqliteResult, SqliteWriter};
use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::query::before;
use crate::txn::{BaseState, Candidate, ThreadTrim, Txn, plan_trims};
use crate::{RetentionLimits, limits};

/// Stands for all rows of a thread.
const EVERYTHING: u64 = i64::MAX as u64;

/// The runs that retention removes from a thread, and the base state of what remains.
pub(super) struct TrimCommand {
    thread_trim: ThreadTrim,
    base: String,
}

impl SqliteWriter {
    /// Finds removals that a restart has interrupted.
    pub(super) fn find_purges(&mut self) -> SqliteResult<()> {
        let sql = "SELECT id, CASE WHEN deleted_at IS NULL THEN oldest - 1 ELSE ?1 END FROM thread \
                   WHERE (deleted_at IS NOT NULL AND purged = 0) OR (deleted_at IS NULL AND oldest > 1 AND \
                   EXISTS (SELECT 1 FROM chunk WHERE thread = thread.id AND last < oldest))";
        let mut statement = self.txn.store.connection.begin().prepare(sql)?;
        let rows = statement.query_map([EVERYTHING], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.purges = rows.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Marks threads as deleted, and drops their heads; the rows of their runs are written.
    pub(super) fn mark_deleted(&mut self) -> SqliteResult<()> {
        for (id, _) in &self.txn.batch.deleted {
            let sql = "UPDATE thread SET deleted_at = ?2, base = NULL WHERE id = ?1";
            let values = params![id, self.txn.now.0];
            self.txn.store.connection.begin().prepare_cached(sql)?.execute(values)?;
            self.clear_outbox(*id)?;
            self.txn.heads.forget_thread(*id);
            self.txn.store.pending_commits.threads.remove(id);
            self.purges.push_back((*id, EVERYTHING));
        }
        Ok(())
    }

    pub(super) fn trim(&mut self, trim: &TrimCommand) -> SqliteResult<usize> {
        let Txn { heads, store, .. } = &mut self.txn;
        let TrimCommand { thread_trim, base } = trim;
        let Some(mut thread) = heads.take_thread_by_id(store, thread_trim.thread)? else { return Ok(0) };
        // From now on the row has the head of the thread, so nothing may be pending.
        self.flush_now.insert(thread_trim.thread);
        let takes = !thread.deleted && thread.oldest < thread_trim.oldest;
        if takes {
            thread.oldest = thread_trim.oldest;
            let sql = "UPDATE thread SET oldest = ?2, base = ?3, head = ?4, head_at = ?5 WHERE id = ?1";
            let values = params![thread_trim.thread, thread_trim.oldest, base, thread.seq, thread.at.0];
            store.connection.begin().prepare_cached(sql)?.execute(values)?;
        }
        heads.put_thread(thread);
        if !takes {
            return Ok(0);
        }
        for name in &thread_trim.runs {
            let run = RunKey::new(thread_trim.key.tenant.clone(), name.as_str());
            if let Some(mut run) = heads.take_run(store, &run)? {
                run.trimmed = true;
                store.connection.begin().execute("UPDATE run SET trimmed = 1 WHERE id = ?1", [run.id])?;
                store.connection.begin().execute("DELETE FROM checkpoint WHERE run = ?1", [run.id])?;
                heads.put_run(run);
            }
        }
        self.purges.push_back((thread_trim.thread, thread_trim.oldest - 1));
        Ok(thread_trim.runs.len())
    }

    /// Removes some rows of what was deleted or trimmed.
    ///
    /// A row that holds records on both sides of the oldest one stays; what is too old in it is passed over.
    pub(super) fn purge(&mut self) -> SqliteResult<()> {
        let Some((thread, upto)) = self.purges.front().copied() else { return Ok(()) };
        let sql = "DELETE FROM chunk WHERE id IN \
                   (SELECT id FROM chunk WHERE thread = ?1 AND last <= ?2 ORDER BY last LIMIT ?3)";
        let removed = self.txn.store.connection.begin().prepare_cached(sql)?.execute(params![
            thread,
            upto,
            limits::PURGE_ROWS
        ])?;
        if removed == limits::PURGE_ROWS {
            return Ok(());
        }
        self.purges.pop_front();
        if upto == EVERYTHING {
            self.empty_thread(thread)?;
        }
        Ok(())
    }

    /// Removes everything of a deleted thread but the ids, which stay used.
    fn empty_thread(&self, thread: i64) -> SqliteResult<()> {
        let runs = "SELECT id FROM run WHERE thread = ?1";
        for sql in [
            format!("DELETE FROM checkpoint WHERE run IN ({runs})"),
            format!("DELETE FROM producer WHERE scope = 'run' AND owner IN ({runs})"),
            "DELETE FROM producer WHERE scope = 'thread' AND owner = ?1".to_owned(),
            "UPDATE run SET head = NULL, request = '{}', agent = NULL, trimmed = 1 WHERE thread = ?1"
                .to_owned(),
            "UPDATE thread SET purged = 1 WHERE id = ?1".to_owned(),
        ] {
            self.txn.store.connection.begin().execute(&sql, [thread])?;
        }
        Ok(())
    }
}

/// Plans what retention removes.
pub(super) fn plan(
    reader: &mut SqliteReader,
    retention: RetentionLimits,
) -> Result<Vec<TrimCommand>, LogError> {
    let runs = candidates(reader)?;
    let thread_trims = plan_trims(
        &runs,
        retention,
        || kept_bytes(reader),
        |thread, after, upto| bytes_between(reader, thread, after, upto),
    )?;
    let mut trims = Vec::with_capacity(thread_trims.len());
    for thread_trim in thread_trims {
        let window = before(reader, &thread_trim.key, thread_trim.oldest)?;
        let base = serde_json::to_string(&BaseState::of(&window)).map_err(json_error)?;
        trims.push(TrimCommand { thread_trim, base });
    }
    Ok(trims)
}

/// Lists kept runs by thread, in the order they began.
fn candidates(reader: &SqliteReader) -> Result<Vec<Candidate>, LogError> {
    let sql = "SELECT thread.id, thread.tenant, thread.name, run.name, run.first_seq, run.last_seq, run.ended_at \
               FROM thread JOIN run ON run.thread = thread.id \
               WHERE thread.deleted_at IS NULL AND run.trimmed = 0 AND run.first_seq IS NOT NULL \
               ORDER BY thread.id, run.first_seq";
    let mut statement = reader.connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(Candidate {
            thread: row.get(0)?,
            key: ThreadKey::new(row.get::<_, String>(1)?, row.get::<_, String>(2)?),
            run: row.get(3)?,
            first_seq: row.get(4)?,
            last_seq: row.get(5)?,
            ended_at: row.get::<_, Option<u64>>(6)?.map(Timestamp),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Counts the bytes of all records, without those that wait to be removed.
fn kept_bytes(reader: &SqliteReader) -> Result<u64, LogError> {
    let sql = "SELECT coalesce(sum(length(body)), 0) FROM chunk JOIN thread ON thread.id = chunk.thread \
               WHERE thread.deleted_at IS NULL AND chunk.last >= thread.oldest";
    Ok(reader.connection.query_row(sql, [], |row| row.get(0))?)
}

/// Counts the bytes of a thread's rows that end after one `seq` and up to another.
fn bytes_between(reader: &SqliteReader, thread: i64, after: u64, upto: u64) -> Result<u64, LogError> {
    let sql = "SELECT coalesce(sum(length(body)), 0) FROM chunk JOIN thread ON thread.id = chunk.thread \
               WHERE chunk.thread = ?1 AND last > ?2 AND last <= ?3 AND last >= oldest";
    Ok(reader.connection.prepare_cached(sql)?.query_row(params![thread, after, upto], |row| row.get(0))?)
}
