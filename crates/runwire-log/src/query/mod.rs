//! Queries on a store's rows, the same for every store: pages, messages and state, the inbox, exports.

mod export;
mod inbox;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_model::Timestamp;
use runwire_model::record::Record;
use runwire_model::window::Window;

pub(crate) use export::export;
pub(crate) use inbox::{InboxRow, interaction, interactions};

use crate::error::LogError;
use crate::info::{RunInfo, RunSpan, ThreadInfo};
use crate::interaction::InteractionQuery;
use crate::key::{RunKey, ThreadKey};
use crate::record::StoredRecord;
use crate::txn::{BaseState, ProducerHead, RunHead};
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
        let unreadable = |error: serde_json::Error| LogError::Unavailable(error.to_string());
        Ok(base.map_err(unreadable)?.unwrap_or_default())
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
pub(crate) trait ReadStore {
    /// Returns the row of a thread that is not deleted.
    fn thread_row(&self, key: &ThreadKey) -> Result<ThreadRow, LogError>;

    /// Returns a thread.
    fn thread_info(&self, thread: i64) -> Result<ThreadInfo, LogError>;

    /// Returns a run whose thread is not deleted.
    fn run_info(&self, key: &RunKey) -> Result<RunInfo, LogError>;

    /// Returns the ranges of a thread's runs, in the order they began.
    fn spans_of(&self, thread: i64) -> Result<Vec<RunSpan>, LogError>;

    /// Calls `show` with the records of a thread after a `seq`, in order, until it breaks.
    fn visit(
        &mut self,
        thread: i64,
        after: u64,
        show: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError>;

    /// Returns runs of a thread in the order they began, those without a record first.
    fn runs_of(&self, thread: i64, which: RunSelector<'_>) -> Result<Vec<RunHead>, LogError>;

    /// Returns the run that began last before a `seq`.
    fn latest_before(&self, thread: i64, seq: u64) -> Result<Option<i64>, LogError>;

    /// Returns the greatest last `seq` of a thread's runs.
    fn last_run_seq(&self, thread: i64) -> Result<u64, LogError>;

    /// Returns the producers of a run or thread.
    fn producers_of(
        &self,
        scope: ProducerScope,
        owner: i64,
    ) -> Result<HashMap<String, ProducerHead>, LogError>;

    /// Returns the name of a run.
    fn run_name(&self, run: i64) -> Result<Option<String>, LogError>;

    /// Lists open interactions, newest first, one more than the page has.
    fn inbox_rows(&self, query: &InteractionQuery) -> Result<Vec<InboxRow>, LogError>;
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
    store.visit(row.id, after, &mut |stored| {
        bytes += stored.weight();
        records.push(Arc::new(stored));
        if bytes >= limits::PAGE_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok((RecordPage { records, head: row.head, oldest: row.oldest }, bytes >= limits::PAGE_BYTES))
}

/// Folds the thread's messages and state before a `seq`.
pub(crate) fn before(store: &mut impl ReadStore, key: &ThreadKey, seq: u64) -> Result<Window, LogError> {
    let row = store.thread_row(key)?;
    let mut window = row.base()?.window();
    let spans = store.spans_of(row.id)?;
    for span in spans.iter().filter(|span| span.first_seq < seq) {
        window.next_run(&span.run_id);
        // Parallel runs are folded one after the other.
        let end = seq.min(span.last_seq + 1);
        store.visit(row.id, span.first_seq - 1, &mut |stored| {
            if stored.record.seq >= end {
                return ControlFlow::Break(());
            }
            if *stored.run == *span.run_id {
                window.absorb(&stored.record);
            }
            ControlFlow::Continue(())
        })?;
    }
    // A patch that did not apply hides the state only at its own record.
    let (at, entries) = (Timestamp(0), Vec::new());
    window.absorb(&Record { seq, at, source_time: None, dialect: None, entries });
    Ok(window)
}
