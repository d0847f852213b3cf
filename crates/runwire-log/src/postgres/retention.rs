//! Removes runs that retention does not keep: they are only marked, and `sql/purge.rs` removes their rows.

use super::commit::version;
use super::error::PgResult;
use super::reader::PgReader;
use crate::sql::to_i64;
use crate::store::TrimCommand;
use crate::txn::ThreadTrim;

impl PgReader {
    /// Removes planned runs, and returns their number.
    pub(super) fn trim(&self, trim: &TrimCommand) -> PgResult<usize> {
        self.connection.run("BEGIN")?;
        let done = self.trim_thread(&trim.thread_trim, &trim.base).and_then(|runs| {
            self.connection.run("COMMIT")?;
            Ok(runs)
        });
        if done.is_err() {
            let _ = self.connection.run("ROLLBACK");
        }
        done
    }

    fn trim_thread(&self, thread_trim: &ThreadTrim, base: &str) -> PgResult<usize> {
        // A writer of the thread holds its row, so no cached head is older than this.
        let oldest = to_i64(thread_trim.oldest);
        let sql = "UPDATE thread SET oldest = $2, base = $3, version = $4, unpurged = true \
                   WHERE id = $1 AND deleted_at IS NULL AND oldest < $2";
        if self.connection.execute(sql, &[&thread_trim.thread, &oldest, &base, &version::draw()])? == 0 {
            return Ok(0);
        }
        let sql = "UPDATE run SET trimmed = true WHERE thread = $1 AND name = ANY($2)";
        self.connection.execute(sql, &[&thread_trim.thread, &thread_trim.runs])?;
        let sql = "DELETE FROM checkpoint WHERE run IN \
                   (SELECT id FROM run WHERE thread = $1 AND name = ANY($2))";
        self.connection.execute(sql, &[&thread_trim.thread, &thread_trim.runs])?;
        Ok(thread_trim.runs.len())
    }
}
