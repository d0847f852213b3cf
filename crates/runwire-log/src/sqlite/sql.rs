//! Executes the statements that both stores share in SQLite.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter, types};

use super::error::{SqliteError, SqliteResult};
use super::rows::{RUN_COLUMNS, run_of_row};
use crate::sql::{Column, DamagedColumn, LoadedRun, Sql, SqlRow, Value};

impl Sql for Connection {
    type Error = SqliteError;

    const CLEAR_RUN: &'static str = "";

    fn change(&self, sql: &str, values: &[Value<'_>]) -> SqliteResult<u64> {
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(values))? as u64)
    }

    fn rows<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn SqlRow) -> Column<T>,
    ) -> SqliteResult<Vec<T>> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut read_rows = Vec::new();
        while let Some(row) = rows.next()? {
            read_rows.push(read(row)?);
        }
        Ok(read_rows)
    }

    fn run_heads(
        &self,
        index: &str,
        filter: &str,
        values: &[Value<'_>],
    ) -> SqliteResult<Vec<LoadedRun<SqliteError>>> {
        let indexed = if index.is_empty() { String::new() } else { Self::indexed_by(index) };
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run {indexed} JOIN thread ON thread.id = run.thread WHERE {filter}"
        );
        let mut statement = self.prepare_cached(&sql)?;
        let runs = statement.query_and_then(params_from_iter(values), |row| match run_of_row(row) {
            Ok(run) => Ok(LoadedRun::Head(Box::new(run))),
            Err(failure) if failure.is_damage() => {
                Ok(LoadedRun::Damaged { id: row.get(0)?, failure, stale: None })
            }
            Err(failure) => Err(failure),
        })?;
        runs.collect()
    }

    fn among(column: &str, parameter: &str) -> String {
        format!("{column} IN (SELECT value FROM json_each({parameter}))")
    }

    fn starts_with(column: &str, parameter: &str) -> String {
        format!("substr({column}, 1, length({parameter})) = {parameter}")
    }

    /// The planner may sort a whole table otherwise.
    fn indexed_by(index: &str) -> String {
        format!("INDEXED BY {index}")
    }
}

/// An array is JSON text.
impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(types::Value::Null),
            Self::Int(number) => ToSqlOutput::Owned((*number).into()),
            Self::Text(text) | Self::AnyText(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Ints(numbers) => {
                let array = serde_json::to_string(numbers);
                let array = array.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
                ToSqlOutput::Owned(array.into())
            }
        })
    }
}

impl SqlRow for Row<'_> {
    fn optional_int(&self, column: usize) -> Column<Option<i64>> {
        self.get(column).map_err(|error| DamagedColumn::new(column, error))
    }

    fn optional_text(&self, column: usize) -> Column<Option<String>> {
        self.get(column).map_err(|error| DamagedColumn::new(column, error))
    }

    fn optional_any_text(&self, column: usize) -> Column<Option<String>> {
        self.optional_text(column)
    }

    fn boolean(&self, column: usize) -> Column<bool> {
        self.get(column).map_err(|error| DamagedColumn::new(column, error))
    }
}

#[cfg(test)]
mod tests {
    use runwire_model::Timestamp;
    use runwire_model::run::Status;
    use rusqlite::params_from_iter;

    use super::*;
    use crate::info::RunQuery;
    use crate::sql::{RunListing, Sql};
    use crate::sqlite::schema;

    /// Returns the query plan of a list.
    fn plan(query: &RunQuery) -> String {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let RunListing { index, filter, values } = RunListing::of(&connection, query).unwrap().unwrap();
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT {RUN_COLUMNS} FROM run {} JOIN thread ON thread.id = run.thread WHERE {filter}",
            Connection::indexed_by(index)
        );
        let mut explain = connection.prepare(&sql).unwrap();
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
