//! Lists runs, and finds the title and latest run of a thread.

use runwire_model::Timestamp;
use runwire_model::run::Status;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params_from_iter};

use super::reader::{SqliteReader, to_i64};
use super::rows::{RUN_COLUMNS, run_of_row};
use crate::error::LogError;
use crate::info::{LatestRun, RunInfo, RunQuery};

/// Conditions of a query, with their values.
#[derive(Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition; `?` in it is the value.
    fn add(&mut self, condition: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        self.sql.push(condition.replace('?', &format!("?{}", self.values.len())));
    }
}

/// Chooses the index of a list. Each returns the newest run first, so that the query ends when the page is full; only
/// the runs of one thread, and open runs, are few enough to be sorted.
fn index_for(query: &RunQuery) -> &'static str {
    let open = query.statuses.iter().all(|status| !status.is_closed());
    match &query.statuses[..] {
        _ if query.thread.is_some() => "run_of_thread",
        [_] => "run_by_status",
        [_, ..] if open => "run_by_status",
        _ if query.agent.is_some() => "run_by_agent",
        _ => "run_newest",
    }
}

impl SqliteReader {
    /// Lists runs, newest first.
    pub(super) fn runs(&self, query: &RunQuery) -> Result<Vec<RunInfo>, LogError> {
        let Some((sql, values)) = self.runs_statement(query)? else { return Ok(Vec::new()) };
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values), |row| Ok(run_of_row(row)?.info()))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Makes the statement of a list with the given filters; returns `None` if no run can match.
    fn runs_statement(&self, query: &RunQuery) -> Result<Option<(String, Vec<Value>)>, LogError> {
        let mut conditions = Conditions::default();
        conditions.add("run.tenant = ?", query.tenant.clone());
        if let Some(before) = &query.before {
            let id = self.row_id("run", &query.tenant, before)?;
            conditions.add("run.id < ?", id.ok_or_else(|| LogError::RunUnknown(before.clone()))?);
        }
        if let Some(thread) = &query.thread {
            let Some(thread) = self.row_id("thread", &query.tenant, thread)? else { return Ok(None) };
            conditions.add("run.thread = ?", thread);
        }
        if let Some(agent) = &query.agent {
            conditions.add("run.agent = ?", agent.clone());
        }
        if let Some(since) = query.since {
            conditions.add("run.created_at >= ?", to_i64(since.0));
        }
        if let Some(until) = query.until {
            conditions.add("run.created_at < ?", to_i64(until.0));
        }
        if let Some(prefix) = &query.prefix {
            let begins = |column: &str| format!("substr({column}, 1, length(?)) = ?");
            let any = ["run.name", "run.agent", "thread.name"].map(begins).join(" OR ");
            conditions.add(&format!("({any})"), prefix.clone());
        }
        if !query.statuses.is_empty() {
            let names: Vec<String> =
                query.statuses.iter().map(|status| format!("'{}'", status.as_str())).collect();
            conditions.sql.push(format!("run.status IN ({})", names.join(", ")));
        }
        let filter = conditions.sql.join(" AND ");
        conditions.values.push(to_i64(query.limit as u64).into());
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run INDEXED BY {} JOIN thread ON thread.id = run.thread \
             WHERE {filter} AND thread.deleted_at IS NULL ORDER BY run.id DESC LIMIT ?{}",
            index_for(query),
            conditions.values.len()
        );
        Ok(Some((sql, conditions.values)))
    }

    /// Returns the first user message of a thread.
    pub(super) fn title_of(&self, thread: i64) -> Result<Option<String>, LogError> {
        let sql = "SELECT head ->> '$.summary.message' FROM run \
                   WHERE thread = ?1 AND first_seq IS NOT NULL ORDER BY first_seq LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([thread], |row| row.get(0)).optional()?.flatten())
    }

    /// Returns the latest run of a thread.
    pub(super) fn latest_run_of(&self, thread: i64) -> Result<Option<LatestRun>, LogError> {
        let sql = "SELECT name, agent, status, coalesce(ended_at, started_at, created_at) FROM run \
                   WHERE thread = ?1 AND first_seq IS NOT NULL ORDER BY first_seq DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let latest = statement.query_row([thread], |row| {
            let status: String = row.get(2)?;
            Ok(LatestRun {
                run_id: row.get(0)?,
                agent: row.get(1)?,
                status: Status::from_word(&status).unwrap_or_default(),
                at: Timestamp(row.get(3)?),
            })
        });
        Ok(latest.optional()?)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::schema;

    /// Returns the query plan of a list.
    fn plan(query: &RunQuery) -> String {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let reader = SqliteReader::new(connection);
        let (sql, values) = reader.runs_statement(query).unwrap().unwrap();
        let mut explain = reader.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = explain.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        steps.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    #[test]
    fn a_list_reads_an_index_newest_first_and_stops_when_it_is_full() {
        let all = || RunQuery { tenant: "t".into(), limit: 50, ..RunQuery::default() };
        let agent = Some("a".to_owned());
        for (query, index) in [
            (all(), "run_newest"),
            (RunQuery { prefix: Some("x".into()), since: Some(Timestamp(1)), ..all() }, "run_newest"),
            (RunQuery { statuses: vec![Status::Failed], ..all() }, "run_by_status"),
            (RunQuery { statuses: vec![Status::Failed], agent: agent.clone(), ..all() }, "run_by_status"),
            (RunQuery { statuses: vec![Status::Failed, Status::Completed], ..all() }, "run_newest"),
            (RunQuery { agent, ..all() }, "run_by_agent"),
        ] {
            let plan = plan(&query);
            assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{query:?}: {plan}");
        }
        let open = plan(&RunQuery { statuses: vec![Status::Running, Status::Suspended], ..all() });
        assert!(open.contains("run_by_status"), "{open}");
    }
}
