//! Lists runs and open interactions.

use runwire_model::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error::{PgError, PgResult};
use super::reader::PgReader;
use super::rows::{
    RUN_COLUMNS, number, optional_number, run_of_row, run_of_row_alone, storable, text, time, to_i64,
};
use crate::error::LogError;
use crate::info::{RunInfo, RunQuery};
use crate::interaction::{InboxCursor, InteractionQuery};
use crate::query::InboxRow;

/// Conditions of a query, with their values.
#[derive(Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Box<dyn ToSql + Sync>>,
}

impl Conditions {
    /// Adds a condition; `?` in it is the value.
    fn add(&mut self, condition: &str, value: impl ToSql + Sync + 'static) {
        self.values.push(Box::new(value));
        self.sql.push(condition.replace('?', &format!("${}", self.values.len())));
    }
}

impl PgReader {
    /// Lists runs, newest first. The statement has only the given filters.
    pub(super) fn runs(&self, query: &RunQuery) -> Result<Vec<RunInfo>, LogError> {
        let mut conditions = Conditions::default();
        conditions.add("run.tenant = ?", query.tenant.clone());
        if let Some(before) = &query.before {
            let id = self.row_id("run", &query.tenant, before)?;
            conditions.add("run.id < ?", id.ok_or_else(|| LogError::RunUnknown(before.clone()))?);
        }
        if let Some(thread) = &query.thread {
            let Some(thread) = self.row_id("thread", &query.tenant, thread)? else { return Ok(Vec::new()) };
            conditions.add("run.thread = ?", thread);
        }
        if let Some(agent) = &query.agent {
            conditions.add("run.agent = ?", storable(agent));
        }
        if let Some(since) = query.since {
            conditions.add("run.created_at >= ?", to_i64(since.0));
        }
        if let Some(until) = query.until {
            conditions.add("run.created_at < ?", to_i64(until.0));
        }
        if let Some(prefix) = &query.prefix {
            let begins = |column: &str| format!("starts_with({column}, ?)");
            let any = ["run.name", "run.agent", "thread.name"].map(begins).join(" OR ");
            conditions.add(&format!("({any})"), storable(prefix));
        }
        if !query.statuses.is_empty() {
            let names: Vec<&'static str> = query.statuses.iter().map(|status| status.as_str()).collect();
            conditions.add("run.status = ANY(?)", names);
        }
        let filter = conditions.sql.join(" AND ");
        conditions.values.push(Box::new(to_i64(query.limit as u64)));
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread \
             WHERE {filter} AND thread.deleted_at IS NULL ORDER BY run.id DESC LIMIT ${}",
            conditions.values.len()
        );
        let values: Vec<&(dyn ToSql + Sync)> = conditions.values.iter().map(|value| &**value).collect();
        let rows = self.connection.query(&sql, &values)?;
        let read = |row: &Row| match run_of_row(row) {
            Err(failure @ PgError::Damaged(_)) => {
                // List the others, and this one as far as its own row says. A query for it alone returns the error.
                tracing::warn!(run = row.get::<_, &str>(2), %failure, "the snapshot of a run cannot be read");
                run_of_row_alone(row)
            }
            read => read,
        };
        rows.iter().map(|row| Ok(read(row)?.info())).collect()
    }
}

impl PgReader {
    /// Lists open interactions, one more than the page has, to know whether there is a next one.
    pub(super) fn open_interactions(&self, query: &InteractionQuery) -> PgResult<Vec<InboxRow>> {
        let end = InboxCursor { asked_at: Timestamp(u64::MAX), number: u64::MAX };
        let before = query.before.unwrap_or(end);
        let sql = "SELECT interaction.id, run.name, run.thread, thread.name, run.agent, interaction.name, interaction.seq, \
                   interaction.asked_at, interaction.expires_at, interaction.bytes FROM interaction \
                   JOIN run ON run.id = interaction.run JOIN thread ON thread.id = run.thread \
                   WHERE interaction.tenant = $1 AND (interaction.asked_at, interaction.id) < ($2, $3) \
                   AND ($4::text IS NULL OR run.name = $4) AND ($5::text IS NULL OR run.agent = $5) \
                   AND ($6::text IS NULL OR thread.name = $6) \
                   ORDER BY interaction.asked_at DESC, interaction.id DESC LIMIT $7";
        let rows = self.connection.query(
            sql,
            &[
                &query.tenant,
                &to_i64(before.asked_at.0),
                &to_i64(before.number),
                &query.run,
                &query.agent,
                &query.thread,
                &to_i64(query.limit as u64 + 1),
            ],
        )?;
        let inbox_row = |row: &Row| InboxRow {
            number: number(row, 0),
            run: row.get(1),
            thread: row.get(2),
            thread_name: row.get(3),
            agent: row.get(4),
            name: text(row, 5),
            seq: number(row, 6),
            asked_at: time(row, 7),
            expires_at: optional_number(row, 8).map(Timestamp),
            bytes: number(row, 9) as usize,
        };
        Ok(rows.iter().map(inbox_row).collect())
    }
}
