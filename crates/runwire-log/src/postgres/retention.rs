//! Removes runs that retention does not keep.
//!
//! Runs are visited in the order they ended, in pages, so that a large store costs no memory. Trimmed runs are only
//! marked; `purge.rs` removes their rows.

use std::collections::BTreeSet;

use runwire_model::Timestamp;

use super::error::{PgError, PgResult};
use super::reader::PgReader;
use super::rows::{number, optional_number, to_i64};
use super::txn_store::now;
use crate::error::LogError;
use crate::key::ThreadKey;
use crate::query::before;
use crate::txn::{BaseState, Candidate, ThreadTrim, plan_trims};
use crate::{RetentionLimits, limits};

/// Rows whose bytes one statement counts.
const COUNTED: i64 = 20_000;

/// A page of ended runs.
struct Ended {
    /// When the last of them ended, and its number.
    upto: (i64, i64),
    threads: BTreeSet<i64>,
}

impl PgReader {
    /// Removes runs by retention, and returns their number.
    pub(super) fn trim_all(&mut self, retention: RetentionLimits) -> Result<usize, LogError> {
        let retention = retention.at(now(&self.connection)?);
        let (mut removed, mut from) = (0, (0, 0));
        let mut excess = match retention.max_bytes {
            Some(most) => self.kept_bytes()?.saturating_sub(most),
            None => 0,
        };
        while let Some(ended) = self.ended_after(from)? {
            let is_old = |moment: Timestamp| from.0 < to_i64(moment.0);
            if excess == 0 && !retention.ended_before.is_some_and(is_old) {
                break;
            }
            for thread_trim in self.plan(&ended, retention, excess)? {
                excess = excess.saturating_sub(self.bytes_between(
                    thread_trim.thread,
                    0,
                    thread_trim.oldest - 1,
                )?);
                removed += self.trim(&thread_trim)?;
            }
            from = ended.upto;
        }
        Ok(removed)
    }

    /// Returns the next page of ended, kept runs.
    fn ended_after(&self, from: (i64, i64)) -> PgResult<Option<Ended>> {
        let sql = "SELECT ended_at, id, thread FROM run WHERE NOT trimmed AND first_seq IS NOT NULL \
                   AND ended_at IS NOT NULL AND (ended_at, id) > ($1, $2) ORDER BY ended_at, id LIMIT $3";
        let rows = self.connection.query(sql, &[&from.0, &from.1, &(limits::TRIM_RUNS as i64)])?;
        let threads = rows.iter().map(|row| row.get(2)).collect();
        Ok(rows.last().map(|last| Ended { upto: (last.get(0), last.get(1)), threads }))
    }

    /// Plans which runs are removed from these threads.
    fn plan(
        &mut self,
        ended: &Ended,
        retention: RetentionLimits,
        excess: u64,
    ) -> Result<Vec<ThreadTrim>, LogError> {
        self.in_snapshot(|reader| {
            let runs = reader.candidates(ended)?;
            Ok(plan_trims(
                &runs,
                retention,
                || Ok(retention.max_bytes.unwrap_or(0).saturating_add(excess)),
                |thread, after, upto| reader.bytes_between(thread, after, upto),
            )?)
        })?
    }

    /// Removes planned runs, and returns their number.
    fn trim(&mut self, thread_trim: &ThreadTrim) -> Result<usize, LogError> {
        let window = match self.in_snapshot(|reader| before(reader, &thread_trim.key, thread_trim.oldest))? {
            // It was deleted meanwhile.
            Err(LogError::ThreadDeleted(_)) => return Ok(0),
            window => window?,
        };
        let base = serde_json::to_string(&BaseState::of(&window)).map_err(PgError::from)?;
        self.connection.run("BEGIN")?;
        let done = self.trim_thread(thread_trim, &base).and_then(|runs| {
            self.connection.run("COMMIT")?;
            Ok(runs)
        });
        if done.is_err() {
            let _ = self.connection.run("ROLLBACK");
        }
        Ok(done?)
    }

    fn trim_thread(&self, thread_trim: &ThreadTrim, base: &str) -> PgResult<usize> {
        // A writer of the thread holds its row, so no cached head is older than this.
        let oldest = to_i64(thread_trim.oldest);
        let sql = "UPDATE thread SET oldest = $2, base = $3, version = version + 1, unpurged = true \
                   WHERE id = $1 AND deleted_at IS NULL AND oldest < $2";
        if self.connection.execute(sql, &[&thread_trim.thread, &oldest, &base])? == 0 {
            return Ok(0);
        }
        let sql = "UPDATE run SET trimmed = true WHERE thread = $1 AND name = ANY($2)";
        self.connection.execute(sql, &[&thread_trim.thread, &thread_trim.runs])?;
        let sql = "DELETE FROM checkpoint WHERE run IN \
                   (SELECT id FROM run WHERE thread = $1 AND name = ANY($2))";
        self.connection.execute(sql, &[&thread_trim.thread, &thread_trim.runs])?;
        Ok(thread_trim.runs.len())
    }

    /// Lists the first runs of threads, by thread, in the order they began.
    fn candidates(&self, ended: &Ended) -> PgResult<Vec<Candidate>> {
        let sql = "SELECT thread.id, thread.tenant, thread.name, run.name, run.first_seq, run.last_seq, \
                   run.ended_at, run.id FROM thread CROSS JOIN LATERAL (SELECT * FROM run WHERE thread = thread.id \
                   AND NOT trimmed AND first_seq IS NOT NULL ORDER BY first_seq LIMIT $2) AS run \
                   WHERE thread.id = ANY($1) AND thread.deleted_at IS NULL ORDER BY thread.id, run.first_seq";
        let threads: Vec<i64> = ended.threads.iter().copied().collect();
        // One more than are removed at once: a run that overlaps the next one stays.
        let most = limits::TRIM_RUNS + 1;
        let rows = self.connection.query(sql, &[&threads, &(most as i64)])?;
        let mut runs: Vec<Candidate> = Vec::with_capacity(rows.len());
        let mut of_thread = 0;
        for row in &rows {
            let thread = row.get(0);
            let is_same = runs.last().is_some_and(|last| last.thread == thread);
            of_thread = if is_same { of_thread + 1 } else { 1 };
            // It is removed later, after those that ended before it.
            let is_later =
                row.get::<_, Option<i64>>(6).is_some_and(|at| (at, row.get::<_, i64>(7)) > ended.upto);
            let ended_at = optional_number(row, 6).filter(|_| of_thread < most && !is_later);
            runs.push(Candidate {
                thread,
                key: ThreadKey::new(row.get::<_, &str>(1), row.get::<_, &str>(2)),
                run: row.get(3),
                first_seq: number(row, 4),
                last_seq: number(row, 5),
                ended_at: ended_at.map(Timestamp),
            });
        }
        Ok(runs)
    }

    /// Counts the bytes of all kept records, in pages: no statement takes long.
    fn kept_bytes(&self) -> PgResult<u64> {
        let sql = "WITH page AS (SELECT thread, last, length(body) AS bytes FROM chunk \
                   WHERE (thread, last) > ($1, $2) ORDER BY thread, last LIMIT $3), \
                   upto AS (SELECT thread, last FROM page ORDER BY thread DESC, last DESC LIMIT 1) \
                   SELECT upto.thread, upto.last, (SELECT coalesce(sum(bytes), 0)::bigint FROM page \
                   JOIN thread ON thread.id = page.thread AND deleted_at IS NULL AND page.last >= oldest) FROM upto";
        let (mut bytes, mut from) = (0, (0_i64, 0_i64));
        while let Some(row) = self.connection.first(sql, &[&from.0, &from.1, &COUNTED])? {
            from = (row.get(0), row.get(1));
            bytes += number(&row, 2);
        }
        Ok(bytes)
    }

    /// Counts the bytes of a thread's rows that end after one `seq` and up to another.
    fn bytes_between(&self, thread: i64, after: u64, upto: u64) -> PgResult<u64> {
        let sql = "SELECT coalesce(sum(length(body)), 0)::bigint FROM chunk \
                   JOIN thread ON thread.id = chunk.thread \
                   WHERE chunk.thread = $1 AND last > $2 AND last <= $3 AND last >= oldest";
        let params: super::connection::Params<'_> = &[&thread, &to_i64(after), &to_i64(upto)];
        Ok(number(&self.connection.one(sql, params)?, 0))
    }
}
