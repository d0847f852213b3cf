//! Queries on a store's rows, the same for every store: pages, messages and state, the inbox, exports.

mod before;
mod export;
mod inbox;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_model::Timestamp;

pub(crate) use before::before;
pub(crate) use export::export;
pub(crate) use inbox::{InboxRow, interaction, interactions};

use crate::error::LogError;
use crate::info::{ProducerInfo, RunInfo, RunSpan, ThreadInfo};
use crate::key::{RunKey, ThreadKey};
use crate::record::{StoredRecord, Wanted};
use crate::sql::{LoadedRun, Sql, Value};
use crate::txn::{BaseState, ProducerHead, RunHead};
use crate::unreadable_rows::UnreadableRows;
use crate::{RecordPage, limits};

/// The row of a thread.
pub(crate) struct ThreadRow {
    pub(crate) id: i64,
    pub(crate) oldest: u64,
    pub(crate) head: u64,
    /// The time of the last record. Only valid if there is none: else the record has it.
    pub(crate) head_at: Timestamp,
    /// Messages and state before the oldest record, as JSON.
    pub(crate) base: Option<String>,
}

impl ThreadRow {
    /// Refuses a cursor outside of the kept records.
    fn check_cursor(&self, after: u64) -> Result<(), LogError> {
        if after < self.oldest - 1 {
            return Err(LogError::CursorTrimmed { after, oldest: self.oldest });
        }
        if after > self.head {
            return Err(LogError::CursorBeyondEnd { after, head: self.head });
        }
        Ok(())
    }

    fn base(&self) -> Result<BaseState, LogError> {
        let base = self.base.as_deref().map(serde_json::from_str).transpose();
        let damaged = |error: serde_json::Error| LogError::Damaged(error.to_string());
        Ok(base.map_err(damaged)?.unwrap_or_default())
    }
}

/// Selects runs of a thread.
pub(crate) enum RunSelector<'a> {
    Named(&'a str),
    Numbered(i64),
    /// Runs whose first `seq` is in this range.
    Begun {
        from: u64,
        to: u64,
    },
    /// Runs whose events retention has removed.
    Trimmed,
    Open,
}

/// The owner of producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProducerScope {
    Run,
    Thread,
}

impl ProducerScope {
    /// Returns its name in rows.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Thread => "thread",
        }
    }
}

/// What queries need of a store. All lookups see one snapshot.
pub(crate) trait ReadStore: ReadRows + ReadRecords {}

impl<S: ReadRows + ReadRecords> ReadStore for S {}

/// The records of threads, and where they are.
pub(crate) trait ReadRecords {
    /// Returns the ranges of a thread's runs, in the order they began.
    fn spans_of(&self, thread: i64) -> Result<Vec<RunSpan>, LogError>;

    /// Calls `show` with the wanted records of a thread after a `seq`, in order, until it breaks.
    fn visit(
        &mut self,
        thread: i64,
        after: u64,
        wanted: Wanted<'_>,
        show: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError>;

    /// Returns the greatest last `seq` of a thread's runs.
    fn last_run_seq(&self, thread: i64) -> Result<u64, LogError>;
}

/// The rows of threads, runs and producers.
pub(crate) trait ReadRows {
    /// Its connection.
    type Sql: Sql;

    /// Returns the connection, for statements that all stores share.
    fn sql(&self) -> &Self::Sql;

    /// Returns the rows that could not be read.
    fn unreadable(&self) -> &UnreadableRows;

    /// Returns the row of a thread that is not deleted.
    fn thread_row(&self, key: &ThreadKey) -> Result<ThreadRow, LogError>;

    /// Returns a thread.
    fn thread_info(&self, thread: i64) -> Result<ThreadInfo, LogError>;

    /// Returns a run whose thread is not deleted.
    fn run_info(&self, key: &RunKey) -> Result<RunInfo, LogError>;

    /// Returns runs of a thread in the order they began, those without a record first.
    fn runs_of(&self, thread: i64, which: RunSelector<'_>) -> Result<Vec<RunHead>, LogError> {
        let (filter, values): (&str, Vec<Value<'_>>) = match which {
            RunSelector::Named(name) => ("run.name = ?2", vec![thread.into(), name.into()]),
            RunSelector::Numbered(id) => ("run.id = ?2", vec![thread.into(), id.into()]),
            RunSelector::Begun { from, to } => {
                ("run.first_seq BETWEEN ?2 AND ?3", vec![thread.into(), from.into(), to.into()])
            }
            RunSelector::Trimmed => ("run.trimmed", vec![thread.into()]),
            RunSelector::Open => ("run.status IN ('pending', 'running', 'suspended')", vec![thread.into()]),
        };
        let filter = format!("run.thread = ?1 AND {filter} ORDER BY run.first_seq NULLS FIRST, run.id");
        let runs = self.sql().run_heads("", &filter, &values).map_err(Into::into)?;
        let head = |run: LoadedRun<<Self::Sql as Sql>::Error>| match run {
            LoadedRun::Head(mut run) => {
                self.update_run(&mut run)?;
                Ok(*run)
            }
            LoadedRun::Damaged { failure, .. } => Err(failure.into()),
        };
        runs.into_iter().map(head).collect()
    }

    /// Applies what is committed of a run and not in its row, where a store has that.
    fn update_run(&self, _run: &mut RunHead) -> Result<(), LogError> {
        Ok(())
    }

    /// Returns the run that began last before a `seq`.
    fn latest_before(&self, thread: i64, seq: u64) -> Result<Option<i64>, LogError> {
        let sql = "SELECT id FROM run WHERE thread = ?1 AND first_seq < ?2 ORDER BY first_seq DESC LIMIT 1";
        self.sql().row(sql, &[thread.into(), seq.into()], |row| row.int(0)).map_err(Into::into)
    }

    /// Returns the producers of a run or thread.
    fn producers_of(
        &self,
        scope: ProducerScope,
        owner: i64,
    ) -> Result<HashMap<String, ProducerHead>, LogError>;

    /// Returns the name of a run.
    fn run_name(&self, run: i64) -> Result<Option<String>, LogError> {
        let sql = "SELECT name FROM run WHERE id = ?1";
        self.sql().row(sql, &[run.into()], |row| row.text(0)).map_err(Into::into)
    }
}

/// Returns the position of a producer of a run.
pub(crate) fn producer(
    store: &impl ReadStore,
    run: &RunKey,
    name: &str,
) -> Result<Option<ProducerInfo>, LogError> {
    store.run_info(run)?;
    let Some(owner) = store.sql().row_id("run", &run.tenant, &run.id).map_err(Into::into)? else {
        return Ok(None);
    };
    Ok(store.producers_of(ProducerScope::Run, owner)?.get(name).map(ProducerInfo::of))
}

/// Returns the position of a producer of a thread.
pub(crate) fn thread_producer(
    store: &impl ReadStore,
    thread: &ThreadKey,
    name: &str,
) -> Result<Option<ProducerInfo>, LogError> {
    let owner = store.thread_row(thread)?.id;
    Ok(store.producers_of(ProducerScope::Thread, owner)?.get(name).map(ProducerInfo::of))
}

/// Returns the ranges of a thread's runs, in the order they began.
pub(crate) fn spans(store: &impl ReadStore, key: &ThreadKey) -> Result<Vec<RunSpan>, LogError> {
    store.spans_of(store.thread_row(key)?.id)
}

/// Reads a page of the records after a `seq`, and returns whether there may be more.
pub(crate) fn page(
    store: &mut impl ReadStore,
    key: &ThreadKey,
    after: u64,
) -> Result<(RecordPage, bool), LogError> {
    let row = store.thread_row(key)?;
    row.check_cursor(after)?;
    let mut records = Vec::new();
    let mut bytes = 0;
    let mut next = row.oldest.max(after.saturating_add(1));
    let mut missing = None;
    store.visit(row.id, after, Wanted::default(), &mut |stored| {
        let seq = stored.record.seq;
        if seq > next {
            missing = Some(next);
            return ControlFlow::Break(());
        }
        next = seq + 1;
        bytes += stored.weight();
        records.push(Arc::new(stored));
        if bytes >= limits::PAGE_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if let Some(missing) = missing {
        return Err(LogError::Damaged(format!("record {missing} of thread {} is missing", key.id)));
    }
    Ok((RecordPage { records, head: row.head, oldest: row.oldest }, bytes >= limits::PAGE_BYTES))
}
