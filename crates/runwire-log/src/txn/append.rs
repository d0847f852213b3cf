//! The append command: skips duplicate frames, decodes the others, and makes records of them.

use std::sync::Arc;

use bytes::Bytes;
use runwire_model::Timestamp;
use runwire_model::dialect::{Decoder, Dialect, OpenedFrame, RecordBuilder, SESSION_ID};
use runwire_model::event::{Body, Event};
use runwire_model::record::{Entry, EventOrigin, Record};
use runwire_model::run::{Authority, EndOfInput, Refusal, Status};

use super::check::{Checking, ScannedFrame};
use super::heads::{ProducerHead, RunHead, RunOrigin, ThreadHead};
use super::lease::Lease;
use super::merge::Named;
use super::producer::{self, Undecided};
use super::{CommandError, CommandResult, StoreResult, Txn, TxnStore, mint};
use crate::append::{Append, Appended, CheckMode, FrameIn, Target};
use crate::error::{AppendFault, FrameProblem, LogError};
use crate::key::{RunKey, ThreadKey};
use crate::limits;
use crate::record::StoredRecord;
use crate::run_history::RunHistory;

/// The origin of a record: a frame, or nothing for the server's own events.
#[derive(Default)]
struct Origin {
    dialect: Option<Dialect>,
    time: Option<Timestamp>,
    name: Option<Box<str>>,
    frame: Option<Bytes>,
    /// Whether the frame names a session that tells parallel runs apart.
    names_session: bool,
}

impl<S: TxnStore> Txn<S> {
    pub(crate) fn append(&mut self, append: &Append) -> CommandResult<S, Appended> {
        match &append.target {
            Target::Run(key) => self.append_to_run(key, append),
            Target::Thread(key) => self.append_to_thread(key, append),
            Target::Tenant(tenant) => self.append_to_tenant(tenant, append),
        }
    }

    fn append_to_run(&mut self, key: &RunKey, append: &Append) -> CommandResult<S, Appended> {
        let (mut thread, mut run) = match self.heads.take_run(&self.store, key)? {
            Some(run) if append.thread.as_ref().is_some_and(|named| **named != *run.thread_key.id) => {
                let refused = LogError::RunExists(run.key.id.to_string());
                self.heads.put_run(run);
                return Err(Self::refuse(refused));
            }
            Some(run) => (self.thread_of(&run)?, run),
            None => self.run_for_frames(key, append.thread.as_deref())?,
        };
        let written = self.write_to_run(&mut thread, &mut run, append);
        let accepted = match &written {
            Ok(appended) => appended.accepted,
            Err(CommandError::Refused(_)) => 0,
            Err(CommandError::Store(_)) => return written,
        };
        if accepted == 0 && run.first_seq.is_none() && self.heads.is_fresh_run(&run) {
            // Nothing was written: drop the new run.
            thread.open.retain(|open| *open != run.id);
            if !self.heads.is_fresh_thread(&thread) {
                self.heads.put_thread(thread);
            }
            return written;
        }
        self.put(thread, run);
        written
    }

    /// Creates the run of an append, and its thread, if they do not exist.
    fn run_for_frames(
        &mut self,
        key: &RunKey,
        named: Option<&str>,
    ) -> CommandResult<S, (Box<ThreadHead>, Box<RunHead>)> {
        let now = self.now;
        let mut thread = match named {
            Some(name) => self.thread_to_join(&key.thread(name), now)?,
            None => self.thread_of_its_own(key, now)?,
        };
        let request = RunOrigin { thread_id: named.map(str::to_owned), ..RunOrigin::default() };
        let run = self.new_run(key.clone(), &thread, request, now)?;
        thread.open.push(run.id);
        Ok((thread, run))
    }

    /// Returns the thread that a new run joins, created if missing.
    pub(crate) fn thread_to_join(
        &mut self,
        key: &ThreadKey,
        now: Timestamp,
    ) -> CommandResult<S, Box<ThreadHead>> {
        let Some(thread) = self.heads.take_thread(&self.store, key)? else {
            return Ok(self.new_thread(key.clone(), false, now)?);
        };
        match self.refuse_another_run(&thread)? {
            None => Ok(thread),
            Some(refused) => {
                self.heads.put_thread(thread);
                Err(Self::refuse(refused))
            }
        }
    }

    /// Returns why a thread refuses another run, if it does.
    pub(crate) fn refuse_another_run(&mut self, thread: &ThreadHead) -> StoreResult<S, Option<LogError>> {
        if thread.deleted {
            return Ok(Some(LogError::ThreadDeleted(thread.key.id.to_string())));
        }
        if thread.parallel {
            let full = thread.open.len() >= limits::OPEN_RUNS_OF_THREAD;
            return Ok(full.then_some(LogError::TooManyRuns(limits::OPEN_RUNS_OF_THREAD)));
        }
        let Some(open) = thread.open.first() else { return Ok(None) };
        let Some(open) = self.heads.take_run_by_id(&self.store, *open)? else { return Ok(None) };
        let busy = LogError::ThreadBusy { thread: thread.key.id.to_string(), run: open.key.id.to_string() };
        self.heads.put_run(open);
        Ok(Some(busy))
    }

    /// Creates a thread for a run that names none: under the run's id, unless that is taken.
    pub(crate) fn thread_of_its_own(
        &mut self,
        run: &RunKey,
        now: Timestamp,
    ) -> StoreResult<S, Box<ThreadHead>> {
        let key = run.thread(run.id.clone());
        let key = match self.heads.take_thread(&self.store, &key)? {
            None => key,
            Some(taken) => {
                self.heads.put_thread(taken);
                run.thread(mint())
            }
        };
        self.new_thread(key, false, now)
    }

    fn write_to_run(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        append: &Append,
    ) -> CommandResult<S, Appended> {
        if thread.deleted {
            return Err(Self::refuse(LogError::ThreadDeleted(thread.key.id.to_string())));
        }
        let name = producer::name_of(append);
        let mut producer = producer::head_of(&run.producers, name).map_err(Self::refuse)?;
        let appended = self.write_frames(thread, run, &mut producer, append)?;
        producer::keep(&mut run.producers, name, producer);
        Ok(appended)
    }

    fn write_frames(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        producer: &mut ProducerHead,
        append: &Append,
    ) -> CommandResult<S, Appended> {
        let checking = Checking::of(append);
        let mut appended = self.write_new_frames(producer, append, |txn, producer, decoder, frame| {
            let (opened, scanned) = ScannedFrame::open(decoder, frame, checking).map_err(Self::refuse)?;
            let session = Named::in_envelope(&opened.envelope, decoder.dialect()).thread;
            let session = producer::session_of(producer, run, session, checking);
            let session = session.map_err(|refused| Self::refuse(FrameProblem::from(refused)))?;
            txn.decode(thread, run, decoder, opened, &scanned, checking)?;
            if let Some(session) = session {
                producer.state.session = Some(session);
            }
            Ok(())
        })?;
        if append.end && appended.fault.is_none() {
            self.end_of_input(thread, run, EndOfInput::Complete)?;
        }
        if !run.head.state.status.is_closed() {
            run.renew_lease();
        }
        appended.last_seq = run.last_seq;
        Ok(appended)
    }

    /// Decodes a frame into a run, and adds its record. On an error nothing has changed.
    pub(crate) fn decode(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        decoder: &mut Decoder,
        opened: OpenedFrame<'_>,
        scanned: &ScannedFrame<'_>,
        checking: Checking,
    ) -> CommandResult<S, (), FrameProblem> {
        self.begin(thread, run)?;
        let dialect = decoder.dialect_with(&opened);
        let mut checked = (None, Vec::new());
        // A run that has ended takes nothing, whatever its document says.
        if checking.mode == CheckMode::Refuse && !run.head.state.status.is_closed() {
            let (state, findings) = checking.refuse(run, dialect, scanned).map_err(Self::refuse)?;
            checked = (Some(Box::new(state)), findings);
        }
        let time = opened.envelope.time;
        let names_session = decoder.dialect().has_run_sessions() && opened.envelope.thread.is_some();
        let decoded = self.with_state(thread, run, |state, look, seq, entries| {
            let builder =
                RecordBuilder::new(state, look, Authority::Producer, decoder.dialect(), seq, entries);
            let mut builder = builder.with_whole(checking.whole);
            decoder.decode(opened, &mut builder).map_err(FrameProblem::from)
        });
        let ((), entries) = decoded?;
        match checking.mode {
            CheckMode::Off => {}
            CheckMode::Warn => checking.warn(run, dialect, scanned, thread.seq + 1),
            CheckMode::Refuse => {
                let (state, findings) = checked;
                run.head.check = state;
                run.head.summary.warnings.add(thread.seq + 1, dialect, findings);
            }
        }
        let (name, bytes) = (scanned.frame.name.map(Into::into), Some(scanned.frame.to_bytes()));
        let origin = Origin { dialect: Some(dialect), time, name, frame: bytes, names_session };
        self.push(thread, run, entries, origin);
        Ok(())
    }

    /// Applies a change to the state of a run, with access to the stored records; returns the added entries.
    pub(crate) fn with_state<T, E>(
        &self,
        thread: &ThreadHead,
        run: &mut RunHead,
        work: impl FnOnce(
            &mut runwire_model::run::RunState,
            &RunHistory<'_>,
            u64,
            &mut Vec<Entry>,
        ) -> Result<T, E>,
    ) -> CommandResult<S, (T, Vec<Entry>), E> {
        let seq = thread.seq + 1;
        // Most frames are one event; more would be room for four.
        let mut entries = Vec::with_capacity(1);
        let source = self.source(thread);
        let RunHead { key, first_seq, head, lookups, .. } = run;
        let (first_seq, upto) = (first_seq.unwrap_or(seq), thread.seq);
        let history =
            RunHistory { source: &source, run: &key.id, first_seq, upto, current: None, cache: lookups };
        let worked = work(&mut head.state, &history, seq, &mut entries);
        source.check()?;
        worked.map(|result| (result, entries)).map_err(Self::refuse)
    }

    /// Initialises the state of a run without records from the thread's previous run.
    pub(crate) fn begin(&mut self, thread: &ThreadHead, run: &mut RunHead) -> StoreResult<S, ()> {
        if run.first_seq.is_some() || run.head.state.status != Status::Pending {
            return Ok(());
        }
        let Some(latest) = thread.latest.filter(|latest| *latest != run.id) else {
            return self.begin_after_import(thread, run);
        };
        if let Some(latest) = self.heads.take_run_by_id(&self.store, latest)? {
            run.head.state = latest.head.state.next(&*run.key.id);
            run.head.check = latest.head.check.as_ref().map(|check| Box::new(check.next()));
            self.heads.put_run(latest);
        }
        Ok(())
    }

    /// Ends a run whose input has ended.
    pub(crate) fn end_of_input(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        end: EndOfInput,
    ) -> StoreResult<S, ()> {
        self.begin(thread, run)?;
        let ended = self.with_state(thread, run, |state, look, seq, entries| {
            state.end_of_input(end, seq, look, entries);
            Ok::<_, Refusal>(())
        });
        match ended {
            Ok(((), entries)) if !entries.is_empty() => self.push(thread, run, entries, Origin::default()),
            Ok(_) | Err(CommandError::Refused(_)) => {}
            Err(CommandError::Store(failure)) => return Err(failure),
        }
        Ok(())
    }

    /// Writes the server's own events as one record, all or none; a closed run refuses them.
    pub(crate) fn append_server_events(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        events: Vec<Event>,
    ) -> CommandResult<S, (), Refusal> {
        self.begin(thread, run)?;
        let before = run.head.state.clone();
        let acted = self.with_state(thread, run, |state, look, seq, entries| {
            let mut events = events.into_iter();
            events.try_for_each(|event| {
                state.apply(event, EventOrigin::Server, Authority::Server, seq, look, entries)
            })
        });
        match acted {
            Ok(((), entries)) => {
                self.push(thread, run, entries, Origin::default());
                Ok(())
            }
            Err(error) => {
                run.head.state = before;
                Err(error)
            }
        }
    }

    /// Makes a record of entries, and adds it to the batch.
    fn push(&mut self, thread: &mut ThreadHead, run: &mut RunHead, mut entries: Vec<Entry>, origin: Origin) {
        let at = self.now.max(thread.at);
        for entry in &mut entries {
            if let Body::RunStarted(started) = &mut entry.event.body {
                // Parallel runs are distinguished by their sessions.
                if thread.parallel && !origin.names_session {
                    entry.event.extra.set(SESSION_ID, runwire_model::Json::string(&run.key.id));
                }
                // The request wins over the producer, except for the agent.
                let request = &run.request;
                started.agent = started.agent.take().or_else(|| request.agent.clone());
                prefer(&mut started.message, request.message.as_ref());
                prefer(&mut started.message_id, request.message_id.as_ref());
                let input = request.input.as_deref().and_then(|input| runwire_model::Json::parse(input).ok());
                prefer(&mut started.input, input.as_ref());
            }
        }
        let Origin { dialect, time: source_time, name, frame, .. } = origin;
        let record = Record { seq: thread.seq + 1, at, source_time, dialect, entries };
        self.queue_outbox(run, &record);
        self.add_record(thread, run, Arc::new(StoredRecord { run: run.key.id.clone(), record, name, frame }));
    }

    /// Adds a record to the batch, and updates its run and thread.
    pub(crate) fn add_record(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        stored: Arc<StoredRecord>,
    ) {
        let Record { seq, at, .. } = stored.record;
        for entry in &stored.record.entries {
            run.head.summary.absorb(&entry.event, seq, at);
            if let (None, Body::RunStarted(started)) = (&run.agent, &entry.event.body) {
                run.agent.clone_from(&started.agent);
            }
        }
        run.head.summary.records += 1;
        if run.first_seq.is_none() {
            run.first_seq = Some(seq);
            run.started_at = Some(at);
            thread.latest = Some(run.id);
        }
        run.last_seq = seq;
        (run.dirty, run.snapshot_dirty) = (true, true);
        let status = run.head.state.status;
        run.deadline = (status == Status::Suspended).then(|| interaction_deadline(run, at));
        if !status.is_closed() {
            run.renew_lease();
        } else if run.ended_at.is_none() {
            run.ended_at = Some(at);
            thread.open.retain(|open| *open != run.id);
            run.set_lease(Lease::None);
            run.lookups.clear();
        }
        self.batch.push(thread, run.id, stored);
    }

    /// Writes the new frames of an append, one by one, and counts them.
    pub(crate) fn write_new_frames(
        &mut self,
        producer: &mut ProducerHead,
        append: &Append,
        mut write: impl FnMut(
            &mut Self,
            &mut ProducerHead,
            &mut Decoder,
            FrameIn<'_>,
        ) -> CommandResult<S, (), FrameProblem>,
    ) -> CommandResult<S, Appended> {
        let skip = producer::check_stamp(producer, append.stamp.as_ref(), append.frames.len());
        let skip = skip.map_err(Self::refuse)?;
        let threads = Vec::new();
        let mut appended =
            Appended { accepted: 0, duplicates: skip as u64, last_seq: 0, threads, fault: None };
        if skip == append.frames.len() {
            return Ok(appended);
        }
        let mut decoder = match producer::decoder_for(producer, append, skip) {
            Ok(decoder) => decoder,
            Err(Undecided::Refused(refused)) => return Err(Self::refuse(refused)),
            Err(Undecided::Fault(fault)) => {
                appended.fault = Some(fault);
                return Ok(appended);
            }
        };
        for (index, frame) in append.frames.iter().enumerate().skip(skip) {
            let written = decoder.as_mut().map_or(Ok(()), |decoder| write(self, producer, decoder, frame));
            match written {
                Ok(()) => appended.accepted += 1,
                Err(CommandError::Refused(problem)) => {
                    appended.fault = Some(AppendFault::new(index, frame.line, problem));
                    break;
                }
                Err(CommandError::Store(failure)) => return Err(failure.into()),
            }
        }
        if appended.accepted > 0 {
            producer.state.decoder = decoder;
        }
        if append.stamp.is_some() {
            producer.next += appended.accepted;
        }
        Ok(appended)
    }
}

fn prefer<T: Clone>(said: &mut Option<T>, asked: Option<&T>) {
    if let Some(asked) = asked {
        *said = Some(asked.clone());
    }
}

/// Returns when the first open interaction of a run expires; a run that waits without one gets a week, too.
pub(crate) fn interaction_deadline(run: &RunHead, at: Timestamp) -> u64 {
    let open = run.head.summary.interactions.iter().filter(|asked| asked.is_open());
    open.filter_map(|asked| asked.expires_at).min().unwrap_or(at.0 + limits::INTERACTION_MILLIS)
}
