//! Statements that both stores share: lists, the outbox, counts, retention and the removal of rows.
//!
//! A statement is written once, with `?1` for its first parameter. [`Sql`] executes it, and has the few expressions
//! that SQLite and Postgres write differently.

mod lists;
mod outbox;
mod purge;
mod retention;
mod stats;

use std::fmt;

use runwire_model::Timestamp;

#[cfg(test)]
pub(crate) use lists::RunListing;
pub(crate) use lists::{checkpoint, inbox_rows, latest_run, runs, threads};
pub(crate) use outbox::{mark_delivered, undelivered};
pub(crate) use purge::purge_step;
pub(crate) use retention::{BytePage, TrimProgress, byte_page, plan_page};
pub(crate) use stats::count;

use crate::error::LogError;
use crate::txn::RunHead;
use crate::unreadable_rows::{UnreadableRows, UnreadableTable};

/// A parameter of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    /// A text that may hold any character: Postgres escapes it.
    AnyText(&'a str),
    /// An array: see [`Sql::among`].
    Ints(&'a [i64]),
}

impl<'a> Value<'a> {
    pub(crate) fn optional_text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::AnyText)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Int(to_i64(number))
    }
}

impl From<usize> for Value<'_> {
    fn from(number: usize) -> Self {
        Self::Int(to_i64(number as u64))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

/// Converts to a number that a store can hold; no `seq`, count or time comes near its maximum.
pub(crate) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("column {column} of a row cannot be read: {problem}")]
pub(crate) struct DamagedColumn {
    pub(crate) column: usize,
    pub(crate) problem: String,
}

impl DamagedColumn {
    pub(crate) fn new(column: usize, problem: impl fmt::Display) -> Self {
        Self { column, problem: problem.to_string() }
    }
}

/// A column of a row.
pub(crate) type Column<T> = Result<T, DamagedColumn>;

/// A row of a result.
pub(crate) trait SqlRow {
    fn optional_int(&self, column: usize) -> Column<Option<i64>>;

    fn optional_text(&self, column: usize) -> Column<Option<String>>;

    fn boolean(&self, column: usize) -> Column<bool>;

    /// Returns a text that was stored as [`Value::AnyText`].
    fn optional_any_text(&self, column: usize) -> Column<Option<String>>;

    fn int(&self, column: usize) -> Column<i64> {
        self.optional_int(column)?.ok_or_else(|| DamagedColumn::new(column, "it is null"))
    }

    /// Returns a number that is never negative.
    fn number(&self, column: usize) -> Column<u64> {
        Ok(self.int(column)? as u64)
    }

    fn time(&self, column: usize) -> Column<Timestamp> {
        Ok(Timestamp(self.number(column)?))
    }

    fn optional_time(&self, column: usize) -> Column<Option<Timestamp>> {
        Ok(self.optional_int(column)?.map(|millis| Timestamp(millis as u64)))
    }

    fn text(&self, column: usize) -> Column<String> {
        self.optional_text(column)?.ok_or_else(|| DamagedColumn::new(column, "it is null"))
    }

    fn any_text(&self, column: usize) -> Column<String> {
        self.optional_any_text(column)?.ok_or_else(|| DamagedColumn::new(column, "it is null"))
    }
}

/// A connection that executes statements.
pub(crate) trait Sql {
    /// A failure of the store.
    type Error: From<DamagedColumn> + Into<LogError>;

    /// Assignments that clear what only this store has in the row of a deleted run.
    const CLEAR_RUN: &'static str;

    /// Runs a statement, and returns the number of changed rows.
    fn change(&self, sql: &str, values: &[Value<'_>]) -> Result<u64, Self::Error>;

    /// Reads rows.
    fn rows<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn SqlRow) -> Column<T>,
    ) -> Result<Vec<T>, Self::Error>;

    /// Reads the first row, if there is one.
    fn row<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn SqlRow) -> Column<T>,
    ) -> Result<Option<T>, Self::Error> {
        Ok(self.rows(sql, values, read)?.into_iter().next())
    }

    /// Loads runs without their producers: those of `run … JOIN thread` that a filter selects. An index to use comes
    /// before it.
    fn run_heads(
        &self,
        index: &str,
        filter: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<LoadedRun<Self::Error>>, Self::Error>;

    /// Writes the condition that a column is in an array.
    fn among(column: &str, parameter: &str) -> String;

    /// Writes the condition that a text begins with another.
    fn starts_with(column: &str, parameter: &str) -> String;

    /// Writes which index of a table a query uses, where the store must be told.
    fn indexed_by(index: &str) -> String;

    /// Returns the number of a named row.
    fn row_id(&self, table: &str, tenant: &str, name: &str) -> Result<Option<i64>, Self::Error> {
        let sql = format!("SELECT id FROM {table} WHERE tenant = ?1 AND name = ?2");
        self.row(&sql, &[tenant.into(), name.into()], |row| row.int(0))
    }
}

/// Reads rows page by page until there are `limit` of them, or no more; those that cannot be read are reported and
/// passed over.
///
/// A page is read after a cursor. Each of its rows has its number, the cursor after it, and what it says.
pub(crate) fn readable_rows<T, C: Copy, F: fmt::Display, E>(
    unreadable: &UnreadableRows,
    table: UnreadableTable,
    limit: usize,
    mut after: C,
    mut page: impl FnMut(C) -> Result<Vec<(i64, C, Result<T, F>)>, E>,
) -> Result<Vec<T>, E> {
    let mut readable = Vec::new();
    loop {
        let rows = page(after)?;
        let is_last = rows.len() < limit;
        for (number, cursor, row) in rows {
            if readable.len() == limit {
                break;
            }
            after = cursor;
            match row {
                Ok(row) => readable.push(row),
                Err(failure) => unreadable.insert(table, number, &failure),
            }
        }
        if is_last || readable.len() == limit {
            return Ok(readable);
        }
    }
}

/// A run, or why its row cannot be read.
pub(crate) enum LoadedRun<E> {
    Head(Box<RunHead>),
    /// `stale` is what its own row says, if only its snapshot cannot be read.
    Damaged {
        id: i64,
        failure: E,
        stale: Option<Box<RunHead>>,
    },
}
