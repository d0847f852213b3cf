//! Executes the statements that both stores share in Postgres.

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::connection::PgConnection;
use super::error::{PgError, PgResult};
use super::rows::{RUN_COLUMNS, restored, run_of_row, run_of_row_alone, storable};
use crate::sql::{Column, DamagedColumn, LoadedRun, Sql, SqlRow, Value};

impl Sql for PgConnection {
    type Error = PgError;

    const CLEAR_RUN: &'static str = ", message = NULL, owner = NULL";

    fn change(&self, sql: &str, values: &[Value<'_>]) -> PgResult<u64> {
        self.execute(&numbered(sql), &params(values))
    }

    fn rows<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn SqlRow) -> Column<T>,
    ) -> PgResult<Vec<T>> {
        let rows = self.query(&numbered(sql), &params(values))?;
        rows.iter().map(|row| Ok(read(row)?)).collect()
    }

    fn run_heads(
        &self,
        _index: &str,
        filter: &str,
        values: &[Value<'_>],
    ) -> PgResult<Vec<LoadedRun<PgError>>> {
        let sql =
            format!("SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread WHERE {filter}");
        let rows = self.query(&numbered(&sql), &params(values))?;
        let read = |row: &Row| match run_of_row(row) {
            Ok(run) => LoadedRun::Head(Box::new(run)),
            Err(failure) => LoadedRun::Damaged {
                id: row.get(0),
                failure,
                stale: run_of_row_alone(row).ok().map(Box::new),
            },
        };
        Ok(rows.iter().map(read).collect())
    }

    fn among(column: &str, parameter: &str) -> String {
        format!("{column} = ANY({parameter})")
    }

    fn starts_with(column: &str, parameter: &str) -> String {
        format!("starts_with({column}, {parameter})")
    }

    /// Its planner chooses well.
    fn indexed_by(_index: &str) -> String {
        String::new()
    }
}

/// Writes parameters as Postgres does: `$1` for `?1`.
fn numbered(sql: &str) -> String {
    sql.replace('?', "$")
}

fn params<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::AnyText(text) => storable(text).to_sql(kind, out),
            Self::Ints(numbers) => numbers.to_sql(kind, out),
        }
    }

    /// The statements are ours: their columns are `bigint`, `text` and arrays of those.
    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::INT8_ARRAY].contains(kind)
    }

    to_sql_checked!();
}

impl SqlRow for Row {
    fn optional_int(&self, column: usize) -> Column<Option<i64>> {
        self.try_get(column).map_err(|error| DamagedColumn::new(column, error))
    }

    fn optional_text(&self, column: usize) -> Column<Option<String>> {
        self.try_get(column).map_err(|error| DamagedColumn::new(column, error))
    }

    fn optional_any_text(&self, column: usize) -> Column<Option<String>> {
        let text: Option<&str> = self.try_get(column).map_err(|error| DamagedColumn::new(column, error))?;
        Ok(text.map(restored))
    }

    fn boolean(&self, column: usize) -> Column<bool> {
        self.try_get(column).map_err(|error| DamagedColumn::new(column, error))
    }
}
