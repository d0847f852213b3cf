//! Exports everything that is stored of a thread, page by page.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{ProducerScope, ReadStore, RunSelector, ThreadRow, before};
use crate::error::LogError;
use crate::info::RunSpan;
use crate::key::ThreadKey;
use crate::limits;
use crate::record::{StoredRecord, Wanted};
use crate::transfer::{
    ExportPage, ExportRequest, TransferItem, TransferProducer, TransferRoute, TransferRun, TransferState,
    TransferThread, TrimmedRun,
};
use crate::txn::{BaseState, ProducerState, RunHead};

/// The range of records to export, and whether it is the whole thread.
#[derive(Clone, Copy)]
struct Range {
    from: u64,
    to: u64,
    whole: bool,
}

/// Returns a page of the export of a thread.
pub(crate) fn export(
    store: &mut impl ReadStore,
    key: &ThreadKey,
    part: &ExportRequest,
) -> Result<ExportPage, LogError> {
    let row = store.thread_row(key)?;
    let range = range(store, &row, part.run.as_deref())?;
    let after = part.after.unwrap_or(range.from - 1);
    row.check_cursor(after)?;
    let mut items = Vec::new();
    if part.after.is_none() {
        items.push(TransferItem::Thread(Box::new(transfer_thread(store, key, &row, range)?)));
        if range.whole {
            trimmed_runs(store, &row, &mut items)?;
        }
    }
    let (records, full) = records(store, row.id, after, range.to)?;
    let last = records.last().map_or(after, |stored| stored.record.seq);
    let begun = store.runs_of(row.id, RunSelector::Begun { from: after + 1, to: last })?;
    let latest = store.latest_before(row.id, range.to + 1)?;
    for stored in records {
        let seq = stored.record.seq;
        let begins = begun.iter().find(|run| run.first_seq == Some(seq));
        items.extend(begins.map(|run| TransferItem::Run(Box::new(transfer_run(run)))));
        let ends = stored.is_terminal().then(|| stored.run.clone());
        items.push(TransferItem::Record(stored));
        if let Some(run) = ends {
            for run in store.runs_of(row.id, RunSelector::Named(&run))? {
                items.extend(state_of(store, &run, latest == Some(run.id))?);
            }
        }
    }
    // A run's row may be newer than the records that can be read: then the next page has them.
    let behind = range.to == row.head && store.last_run_seq(row.id)? > row.head;
    if full || behind {
        return Ok(ExportPage { items, next: Some(last) });
    }
    open_ends(store, &row, range, latest, &mut items)?;
    items.push(TransferItem::End { head: last });
    Ok(ExportPage { items, next: None })
}

fn range(store: &impl ReadStore, row: &ThreadRow, run: Option<&str>) -> Result<Range, LogError> {
    let Some(run) = run else { return Ok(Range { from: row.oldest, to: row.head, whole: true }) };
    let spans = store.spans_of(row.id)?;
    let at = spans.iter().position(|span| span.run_id == run);
    let at = at.ok_or_else(|| LogError::RunUnknown(run.to_owned()))?;
    // Parallel runs share a range, and are exported together.
    let (mut from, mut to) = (spans[at].first_seq, end_of(&spans[at], row.head));
    loop {
        let touching = |span: &&RunSpan| span.first_seq <= to && end_of(span, row.head) >= from;
        let first = spans.iter().filter(touching).map(|span| span.first_seq).min().unwrap_or(from);
        let last = spans.iter().filter(touching).map(|span| end_of(span, row.head)).max().unwrap_or(to);
        if (first, last) == (from, to) {
            return Ok(Range { from, to, whole: false });
        }
        (from, to) = (first, last);
    }
}

fn transfer_thread(
    store: &mut impl ReadStore,
    key: &ThreadKey,
    row: &ThreadRow,
    range: Range,
) -> Result<TransferThread, LogError> {
    let info = store.thread_info(row.id)?;
    let mut base = match range.from == row.oldest {
        true => row.base()?,
        false => BaseState::of(&before(store, key, range.from)?),
    };
    if !range.whole
        && let Some(latest) = store.latest_before(row.id, range.from)?
    {
        let run = store.runs_of(row.id, RunSelector::Numbered(latest))?.pop();
        base.guard = run.map(|run| run.head.state).or(base.guard);
    }
    // Otherwise the last record has the time.
    let all_removed = row.oldest > row.head && row.head > 0;
    Ok(TransferThread {
        thread_id: info.thread_id,
        parallel: info.parallel,
        created_at: info.created_at,
        oldest: range.from,
        head_at: all_removed.then_some(row.head_at),
        messages: base.messages,
        state: base.state.and_then(|state| runwire_model::Json::parse(&state).ok()),
        guard: base.guard,
    })
}

/// Reads a page of records up to `to`, and returns whether there may be more.
fn records(
    store: &mut impl ReadStore,
    thread: i64,
    after: u64,
    to: u64,
) -> Result<(Vec<Arc<StoredRecord>>, bool), LogError> {
    let (mut records, mut bytes, mut full) = (Vec::new(), 0, false);
    store.visit(thread, after, Wanted::default(), &mut |stored| {
        if stored.record.seq > to {
            return ControlFlow::Break(());
        }
        bytes += stored.weight();
        full = bytes >= limits::PAGE_BYTES && stored.record.seq < to;
        records.push(Arc::new(stored));
        if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok((records, full))
}

/// Exports the runs whose events retention has removed.
fn trimmed_runs(
    store: &impl ReadStore,
    row: &ThreadRow,
    items: &mut Vec<TransferItem>,
) -> Result<(), LogError> {
    let runs = store.runs_of(row.id, RunSelector::Trimmed)?;
    let last = runs.len().saturating_sub(1);
    for (at, run) in runs.iter().enumerate() {
        let (Some(started_at), Some(ended_at), Some(first_seq)) =
            (run.started_at, run.ended_at, run.first_seq)
        else {
            continue;
        };
        let mut facts = transfer_run(run);
        facts.trimmed = Some(TrimmedRun {
            status: run.head.state.status,
            started_at,
            ended_at,
            first_seq,
            last_seq: run.last_seq,
            summary: run.head.summary.clone(),
            guard: (at == last).then(|| run.head.state.clone()),
        });
        items.push(TransferItem::Run(Box::new(facts)));
    }
    Ok(())
}

/// Exports the open runs and the producers at the end of the range.
fn open_ends(
    store: &impl ReadStore,
    row: &ThreadRow,
    range: Range,
    latest: Option<i64>,
    items: &mut Vec<TransferItem>,
) -> Result<(), LogError> {
    for run in store.runs_of(row.id, RunSelector::Open)? {
        match run.first_seq {
            Some(first) if !(range.from..=range.to).contains(&first) => continue,
            None if !range.whole => continue,
            None => items.push(TransferItem::Run(Box::new(transfer_run(&run)))),
            Some(_) => {}
        }
        items.extend(state_of(store, &run, latest == Some(run.id))?);
    }
    if range.whole {
        let producers = producers_of(store, ProducerScope::Thread, row.id, false)?;
        let state = TransferState { last_seq: row.head, producers, ..TransferState::default() };
        items.extend((!state.producers.is_empty()).then(|| TransferItem::State(Box::new(state))));
    }
    Ok(())
}

/// Exports the guard's state and the producers of a run, if there are any that matter.
fn state_of(store: &impl ReadStore, run: &RunHead, latest: bool) -> Result<Option<TransferItem>, LogError> {
    let open = run.ended_at.is_none();
    let producers = producers_of(store, ProducerScope::Run, run.id, !open)?;
    let guard = ((open && run.first_seq.is_some()) || latest).then(|| run.head.state.clone());
    if guard.is_none() && producers.is_empty() {
        return Ok(None);
    }
    let state =
        TransferState { run_id: Some(run.key.id.to_string()), last_seq: run.last_seq, guard, producers };
    Ok(Some(TransferItem::State(Box::new(state))))
}

/// Exports producers; `named` skips the anonymous one, which matters only while its run is open.
fn producers_of(
    store: &impl ReadStore,
    scope: ProducerScope,
    owner: i64,
    named: bool,
) -> Result<Vec<TransferProducer>, LogError> {
    let mut producers: Vec<_> = store.producers_of(scope, owner)?.into_iter().collect();
    producers.sort_unstable_by(|(one, _), (another, _)| one.cmp(another));
    let mut notes = Vec::new();
    for (name, producer) in producers {
        if named && name.is_empty() {
            continue;
        }
        let ProducerState { decoder, routes, .. } = producer.state;
        let mut transfer_routes = Vec::new();
        for route in routes {
            if let Some(to) = store.run_name(route.to)? {
                transfer_routes.push(TransferRoute { thread: route.thread, run: route.run, to });
            }
        }
        notes.push(TransferProducer {
            name,
            epoch: producer.epoch,
            next: producer.next,
            decoder,
            routes: transfer_routes,
        });
    }
    Ok(notes)
}

/// Returns the end of a run's range; an open run extends to the end of the thread.
fn end_of(span: &RunSpan, head: u64) -> u64 {
    if span.open { head } else { span.last_seq }
}

fn transfer_run(run: &RunHead) -> TransferRun {
    let request = &run.request;
    TransferRun {
        run_id: run.key.id.to_string(),
        created_at: run.created_at,
        thread_id: request.thread_id.clone(),
        agent: request.agent.clone(),
        message: request.message.clone(),
        message_id: request.message_id.clone(),
        input: request.input.as_deref().and_then(|input| runwire_model::Json::parse(input).ok()),
        asked: request.asked,
        trimmed: None,
    }
}
