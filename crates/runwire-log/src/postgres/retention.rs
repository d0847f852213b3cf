//! Removing the runs that retention does not keep.

use runwire_model::Timestamp;

use super::failure::{Db, Failure};
use super::read::Reader;
use super::rows::{maybe_number, number, whole_number};
use crate::Retention;
use crate::error::LogError;
use crate::key::ThreadKey;
use crate::reading::before;
use crate::work::{Base, Candidate, Cut, choose_cuts};

/// What retention removes from a thread, and the messages and the state before what is left of it.
pub(super) struct Trim {
    cut: Cut,
    base: String,
}

impl Reader {
    /// Finds out what retention removes.
    pub(super) fn plan(&mut self, retention: Retention) -> Result<Vec<Trim>, LogError> {
        let runs = self.candidates()?;
        let cuts = choose_cuts(
            &runs,
            retention,
            || self.kept_bytes(),
            |thread, after, upto| self.bytes_between(thread, after, upto),
        )?;
        let mut trims = Vec::with_capacity(cuts.len());
        for cut in cuts {
            let window = before(self, &cut.key, cut.oldest)?;
            let base = serde_json::to_string(&Base::of(&window)).map_err(Failure::from)?;
            trims.push(Trim { cut, base });
        }
        Ok(trims)
    }

    /// Removes what was planned, and tells how many runs.
    pub(super) fn trim(&self, trim: &Trim) -> Result<usize, LogError> {
        self.connection.run("BEGIN")?;
        let done = self.trim_thread(trim).and_then(|runs| {
            self.connection.run("COMMIT")?;
            Ok(runs)
        });
        if done.is_err() {
            let _ = self.connection.run("ROLLBACK");
        }
        Ok(done?)
    }

    fn trim_thread(&self, Trim { cut, base }: &Trim) -> Db<usize> {
        // Whoever writes to the thread holds its row, so nobody has a head of it that is older than this.
        let oldest = whole_number(cut.oldest);
        let sql = "UPDATE thread SET oldest = $2, base = $3 \
                   WHERE id = $1 AND deleted_at IS NULL AND oldest < $2";
        if self.connection.execute(sql, &[&cut.thread, &oldest, base])? == 0 {
            return Ok(0);
        }
        let sql = "UPDATE run SET trimmed = true WHERE thread = $1 AND name = ANY($2)";
        self.connection.execute(sql, &[&cut.thread, &cut.runs])?;
        let sql = "DELETE FROM checkpoint WHERE run IN \
                   (SELECT id FROM run WHERE thread = $1 AND name = ANY($2))";
        self.connection.execute(sql, &[&cut.thread, &cut.runs])?;
        // A row that holds records on both sides of the oldest one stays; what is too old in it is passed over.
        let sql = "DELETE FROM chunk WHERE thread = $1 AND last < $2";
        self.connection.execute(sql, &[&cut.thread, &oldest])?;
        Ok(cut.runs.len())
    }

    /// Lists the runs that are kept, thread by thread in the order they began.
    fn candidates(&self) -> Db<Vec<Candidate>> {
        let sql = "SELECT thread.id, thread.tenant, thread.name, run.name, run.first_seq, run.last_seq, \
                   run.ended_at FROM thread JOIN run ON run.thread = thread.id \
                   WHERE thread.deleted_at IS NULL AND NOT run.trimmed AND run.first_seq IS NOT NULL \
                   ORDER BY thread.id, run.first_seq";
        let rows = self.connection.query(sql, &[])?;
        let candidate = |row: &tokio_postgres::Row| Candidate {
            thread: row.get(0),
            key: ThreadKey::new(row.get::<_, &str>(1), row.get::<_, &str>(2)),
            run: row.get(3),
            first_seq: number(row, 4),
            last_seq: number(row, 5),
            ended_at: maybe_number(row, 6).map(Timestamp),
        };
        Ok(rows.iter().map(candidate).collect())
    }

    fn kept_bytes(&self) -> Db<u64> {
        let sql = "SELECT coalesce(sum(length(body)), 0)::bigint FROM chunk \
                   JOIN thread ON thread.id = chunk.thread \
                   WHERE thread.deleted_at IS NULL AND chunk.last >= thread.oldest";
        Ok(number(&self.connection.one(sql, &[])?, 0))
    }

    /// Counts the bytes of the rows of a thread that end after one `seq` and not after another.
    fn bytes_between(&self, thread: i64, after: u64, upto: u64) -> Db<u64> {
        let sql = "SELECT coalesce(sum(length(body)), 0)::bigint FROM chunk \
                   JOIN thread ON thread.id = chunk.thread \
                   WHERE chunk.thread = $1 AND last > $2 AND last <= $3 AND last >= oldest";
        let by: super::connection::By<'_> = &[&thread, &whole_number(after), &whole_number(upto)];
        Ok(number(&self.connection.one(sql, by)?, 0))
    }
}
