//! The command that imports a thread from another log.
//!
//! Each record goes through the guard as if it were written now, with its own time: that rebuilds the states of the
//! runs, and refuses what no log could hold. Items that exist already are compared and skipped.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_model::Timestamp;
use runwire_model::event::{Body, Event};
use runwire_model::run::Status;

use super::append::interaction_deadline;
use super::heads::{ImportedBase, RunHead, RunOrigin, ThreadHead};
use super::lease::Lease;
use super::{BaseState, CommandError, CommandResult, StoreResult, Txn, TxnStore};
use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::limits;
use crate::record::{StoredRecord, Wanted};
use crate::run_history::RecordSource;
use crate::transfer::{
    ImportFault, ImportProblem, Imported, NumberedItem, TransferItem, TransferRun, TransferThread, TrimmedRun,
};

/// Upper bound for any `seq`, index or time; stores can hold it.
pub(crate) const MAX_NUMBER: u64 = 1 << 53;

pub(crate) type ImportResult<S> = CommandResult<S, (), ImportProblem>;

impl<S: TxnStore> Txn<S> {
    pub(crate) fn import(&mut self, key: &ThreadKey, items: &[NumberedItem]) -> CommandResult<S, Imported> {
        let mut items = items.iter().peekable();
        let Some(mut thread) = self.heads.take_thread(&self.store, key)? else {
            return match items.next() {
                Some((line, TransferItem::Thread(facts))) => self.import_new(key, *line, facts, items),
                _ => Err(Self::refuse(LogError::ThreadUnknown(key.id.to_string()))),
            };
        };
        if thread.deleted {
            self.heads.put_thread(thread);
            return Err(Self::refuse(LogError::ThreadDeleted(key.id.to_string())));
        }
        let mut imported = Imported::default();
        if let Some((line, TransferItem::Thread(facts))) =
            items.next_if(|(_, item)| matches!(item, TransferItem::Thread(_)))
        {
            let same = self.is_same_thread(&thread, facts);
            imported.fault = fault_of::<S>(*line, same)?;
        }
        self.import_items(&mut thread, items, &mut imported)?;
        self.put_thread(thread);
        Ok(imported)
    }

    fn import_new<'a>(
        &mut self,
        key: &ThreadKey,
        line: u64,
        facts: &TransferThread,
        items: impl Iterator<Item = &'a NumberedItem>,
    ) -> CommandResult<S, Imported> {
        let mut imported = Imported::default();
        if let Err(problem) = check_thread(key, facts) {
            imported.fault = Some(ImportFault { line, problem });
            return Ok(imported);
        }
        let mut thread = self.new_thread(key.clone(), facts.parallel, facts.created_at)?;
        if facts.oldest > 1 {
            begin_trimmed(&mut thread, facts);
        }
        self.import_items(&mut thread, items, &mut imported)?;
        self.put_thread(thread);
        Ok(imported)
    }

    /// Initialises the first run of a thread that was imported without its beginning.
    pub(crate) fn begin_after_import(
        &mut self,
        thread: &ThreadHead,
        run: &mut RunHead,
    ) -> StoreResult<S, ()> {
        if thread.seq == 0 {
            return Ok(());
        }
        let guard = match &thread.imported_base {
            Some(beginning) => beginning.base.guard.clone(),
            None => self.store.base(thread.id)?.and_then(|base| base.guard),
        };
        if let Some(guard) = guard {
            run.head.state = guard.next(&*run.key.id);
        }
        Ok(())
    }

    /// Checks that an existing thread is the imported one.
    fn is_same_thread(&self, thread: &ThreadHead, facts: &TransferThread) -> ImportResult<S> {
        // Records that retention has removed since cannot be compared; that they existed can be seen.
        let reaches = thread.oldest == facts.oldest
            || (thread.oldest > facts.oldest
                && self.heads.has_run_from(&self.store, thread.id, facts.oldest)?);
        let same = thread.parallel == facts.parallel
            && thread.created_at == facts.created_at
            && *thread.key.id == *facts.thread_id
            && reaches;
        let conflict = || ImportProblem::Conflict(format!("the thread `{}`", thread.key.id));
        same.then_some(()).ok_or_else(|| Self::refuse(conflict()))
    }

    fn import_items<'a>(
        &mut self,
        thread: &mut ThreadHead,
        items: impl Iterator<Item = &'a NumberedItem>,
        imported: &mut Imported,
    ) -> StoreResult<S, ()> {
        let mut known = VecDeque::new();
        let before = thread.seq;
        for (line, item) in items {
            if imported.fault.is_some() {
                break;
            }
            let taken = match item {
                TransferItem::Thread(_) => {
                    Err(Self::refuse(ImportProblem::Bad("a thread is told once, at the beginning".into())))
                }
                TransferItem::Run(facts) => self.import_run(thread, facts),
                TransferItem::Record(stored) if stored.record.seq <= before => {
                    imported.skipped += 1;
                    self.is_same_record(thread, &mut known, stored)
                }
                TransferItem::Record(stored) => {
                    let taken = self.import_record(thread, stored);
                    imported.imported += u64::from(taken.is_ok());
                    taken
                }
                TransferItem::State(state) => self.import_state(thread, state),
                TransferItem::End { head } => self.end_import(thread, *head),
            };
            imported.fault = fault_of::<S>(*line, taken)?;
        }
        imported.head = thread.seq;
        Ok(())
    }

    fn import_run(&mut self, thread: &mut ThreadHead, facts: &TransferRun) -> ImportResult<S> {
        if !is_id(&facts.run_id) || facts.created_at.0 >= MAX_NUMBER {
            let problem = "the run has no id or one that no run can have, or a time beyond all times";
            return Err(Self::refuse(ImportProblem::Bad(problem.into())));
        }
        let key = RunKey::new(thread.key.tenant.clone(), facts.run_id.as_str());
        let request = request_of(facts);
        if let Some(run) = self.heads.take_run(&self.store, &key)? {
            let same = run.thread == thread.id
                && run.created_at == facts.created_at
                && run.request.is_same(&request);
            let problem = match run.thread == thread.id {
                true => ImportProblem::Conflict(format!("the run `{}`", key.id)),
                false => LogError::RunExists(key.id.to_string()).into(),
            };
            self.heads.put_run(run);
            return same.then_some(()).ok_or_else(|| Self::refuse(problem));
        }
        if let Some(trimmed) = &facts.trimmed {
            return self.import_trimmed(thread, key, request, facts.created_at, trimmed);
        }
        if let Some(refused) = self.refuse_another_run(thread)? {
            return Err(Self::refuse(refused.into()));
        }
        let mut run = self.new_run(key, thread, request, facts.created_at)?;
        thread.open.push(run.id);
        self.extend_lease(&mut run);
        self.put_run(run);
        Ok(())
    }

    /// Creates the row of a run whose events are gone: its id stays used, and its outcome known.
    fn import_trimmed(
        &mut self,
        thread: &mut ThreadHead,
        key: RunKey,
        request: RunOrigin,
        created_at: Timestamp,
        trimmed: &TrimmedRun,
    ) -> ImportResult<S> {
        let numbers = [trimmed.started_at.0, trimmed.ended_at.0, trimmed.last_seq];
        let guard = trimmed.guard.as_ref();
        if !trimmed.status.is_closed()
            || numbers.iter().any(|number| *number >= MAX_NUMBER)
            || !(1..=trimmed.last_seq).contains(&trimmed.first_seq)
            || trimmed.last_seq > thread.seq
            || guard.is_some_and(|guard| !guard.is_within_limits())
        {
            let problem = "the run cannot have been removed by retention like that";
            return Err(Self::refuse(ImportProblem::Bad(problem.into())));
        }
        let mut run = self.new_run(key, thread, request, created_at)?;
        if let Some(guard) = guard {
            run.head.state.clone_from(guard);
        }
        // A closed run has no open interactions.
        run.head.state.interactions.clear();
        let (thread_id, run_id) = (thread.key.id.to_string(), run.key.id.to_string());
        (run.head.state.thread_id, run.head.state.run_id) = (thread_id, run_id);
        run.head.state.status = trimmed.status;
        run.head.summary = trimmed.summary.clone();
        (run.started_at, run.ended_at) = (Some(trimmed.started_at), Some(trimmed.ended_at));
        (run.first_seq, run.last_seq, run.trimmed) = (Some(trimmed.first_seq), trimmed.last_seq, true);
        thread.latest = Some(run.id);
        self.put_run(run);
        Ok(())
    }

    /// Compares a record with the existing one; `known` caches records that were read ahead.
    fn is_same_record(
        &self,
        thread: &ThreadHead,
        known: &mut VecDeque<StoredRecord>,
        stored: &StoredRecord,
    ) -> ImportResult<S> {
        let seq = stored.record.seq;
        while known.front().is_some_and(|known| known.record.seq < seq) {
            known.pop_front();
        }
        if known.front().is_none_or(|known| known.record.seq != seq) {
            known.clear();
            let source = self.source(thread);
            source.visit(seq.saturating_sub(1), Wanted::default(), &mut |there| {
                known.push_back(there.clone());
                if known.len() < READ_AHEAD { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            source.check()?;
        }
        let same = match known.front() {
            // Retention has removed it since.
            Some(there) if there.record.seq > seq => true,
            None => true,
            Some(there) => there == stored,
        };
        same.then_some(()).ok_or_else(|| Self::refuse(ImportProblem::Conflict(format!("record {seq}"))))
    }

    fn import_record(&mut self, thread: &mut ThreadHead, stored: &Arc<StoredRecord>) -> ImportResult<S> {
        let record = &stored.record;
        if record.seq != thread.seq + 1 {
            return Err(Self::refuse(ImportProblem::Gap { expected: thread.seq + 1, got: record.seq }));
        }
        let latest =
            [record.at, record.source_time.unwrap_or_default()].into_iter().max().unwrap_or_default();
        if record.at < thread.at || latest.0 >= MAX_NUMBER {
            let problem = "its time is before that of the record before it, or beyond all times";
            return Err(Self::refuse(ImportProblem::Bad(problem.into())));
        }
        if record.entries.iter().any(|entry| has_long_interaction_id(&entry.event)) {
            return Err(Self::refuse(ImportProblem::Bad("the id of its question is too long".into())));
        }
        let key = RunKey { tenant: thread.key.tenant.clone(), id: stored.run.clone() };
        let unknown = || ImportProblem::Bad(format!("no line before it tells of its run `{}`", key.id));
        if !is_id(&key.id) {
            return Err(Self::refuse(unknown()));
        }
        let Some(mut run) = self.heads.take_run(&self.store, &key)? else {
            return Err(Self::refuse(unknown()));
        };
        if run.thread != thread.id {
            self.heads.put_run(run);
            return Err(Self::refuse(unknown()));
        }
        self.begin(thread, &mut run)?;
        let replayed = self.with_state(thread, &mut run, |state, look, _, _| {
            state.replay(record, look).map_err(ImportProblem::from)
        });
        match &replayed {
            Ok(_) => {
                self.add_record(thread, &mut run, stored.clone());
                self.extend_lease(&mut run);
            }
            Err(CommandError::Refused(_)) => {}
            Err(CommandError::Store(_)) => return replayed.map(drop),
        }
        self.put_run(run);
        replayed.map(drop)
    }

    /// Extends the lease of an open run for the duration of the import.
    fn extend_lease(&self, run: &mut RunHead) {
        if !run.head.state.status.is_closed() {
            let deadline = self.now.0 + limits::IMPORT_MILLIS;
            run.deadline = Some(deadline);
            run.set_lease(Lease::AwaitingAnswer(deadline));
        }
    }

    /// Restores the normal leases of the thread's open runs.
    fn end_import(&mut self, thread: &mut ThreadHead, head: u64) -> ImportResult<S> {
        if head > thread.seq {
            let (expected, got) = (thread.seq + 1, head.saturating_add(1));
            return Err(Self::refuse(ImportProblem::Gap { expected, got }));
        }
        for open in thread.open.clone() {
            let at = thread.at;
            self.with_run(open, |_, run| {
                let suspended = run.head.state.status == Status::Suspended;
                run.deadline = suspended.then(|| interaction_deadline(run, at));
                (run.dirty, run.snapshot_dirty) = (true, true);
                run.lease = Lease::None;
                run.renew_lease();
                if run.head.summary.cancel_requested && !suspended {
                    run.set_lease(Lease::Stopping);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Returns the fault of a line whose item is refused.
fn fault_of<S: TxnStore>(line: u64, taken: ImportResult<S>) -> StoreResult<S, Option<ImportFault>> {
    match taken {
        Ok(()) => Ok(None),
        Err(CommandError::Refused(problem)) => Ok(Some(ImportFault { line, problem })),
        Err(CommandError::Store(failure)) => Err(failure),
    }
}

/// Bytes of the id of a run or a producer.
const ID_BYTES: usize = 256;
/// Bytes of the id of an interaction: stores index it.
const INTERACTION_ID_BYTES: usize = 1024;

/// Returns whether an id of a run or a producer is valid.
pub(crate) fn is_id(id: &str) -> bool {
    (1..=ID_BYTES).contains(&id.len()) && !id.contains(char::is_control)
}

fn has_long_interaction_id(event: &Event) -> bool {
    matches!(&event.body, Body::InteractionRequested(asked) if asked.interaction_id.len() > INTERACTION_ID_BYTES)
}

/// Records that are read ahead for the comparison.
const READ_AHEAD: usize = 256;

/// Initialises a thread whose beginning is gone.
fn begin_trimmed(thread: &mut ThreadHead, facts: &TransferThread) {
    let state = facts.state.as_ref().map(|state| state.text().to_owned());
    let base = BaseState { messages: facts.messages.clone(), state, guard: facts.guard.clone() };
    (thread.oldest, thread.seq, thread.stored_seq) = (facts.oldest, facts.oldest - 1, facts.oldest - 1);
    thread.at = facts.head_at.unwrap_or_default();
    thread.imported_base = Some(Box::new(ImportedBase { base, at: thread.at }));
}

fn check_thread(key: &ThreadKey, facts: &TransferThread) -> Result<(), ImportProblem> {
    let times = [facts.created_at, facts.head_at.unwrap_or_default()];
    let sound = *key.id == *facts.thread_id
        && (1..MAX_NUMBER).contains(&facts.oldest)
        && times.iter().all(|time| time.0 < MAX_NUMBER)
        && facts
            .guard
            .as_ref()
            .is_none_or(|guard| guard.is_within_limits() && guard.thread_id == facts.thread_id);
    let problem = "the thread is of another id, or has numbers beyond all numbers";
    sound.then_some(()).ok_or_else(|| ImportProblem::Bad(problem.into()))
}

fn request_of(facts: &TransferRun) -> RunOrigin {
    RunOrigin {
        thread_id: facts.thread_id.clone(),
        agent: facts.agent.clone(),
        message: facts.message.clone(),
        message_id: facts.message_id.clone(),
        input: facts.input.as_ref().map(|input| input.text().to_owned()),
        asked: facts.asked,
        started: false,
        attempt: None,
    }
}
