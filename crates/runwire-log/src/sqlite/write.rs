//! Appending: which frames are new, what they mean, and which records they become.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use runwire_model::Timestamp;
use runwire_model::dialect::{DecodeError, Decoder, Dialect, Envelope, Opened, Weave, detect};
use runwire_model::event::{Body, Event};
use runwire_model::json::Object;
use runwire_model::record::{By, Entry, Record};
use runwire_model::run::{Authority, EndOfInput, Refusal, RunState, Status};
use runwire_model::window::Window;

use super::heads::{ProducerHead, Request, Route, RunHead, ThreadHead};
use super::writer::{Db, Writer};
use crate::append::{Append, Appended, FrameIn, Stamp, Target};
use crate::earlier::{KnownState, Lookup};
use crate::error::{Fault, FrameProblem, LogError};
use crate::key::{RunKey, ThreadKey};
use crate::limits;
use crate::record::Stored;

/// Frames that are looked at to find out the dialect.
const DETECTED_FROM: usize = 16;
/// Sessions and runs of a source that a thread's producer remembers.
const ROUTES: usize = 64;

/// What comes out of an act on the log: a fault of the store, a refusal, or a result.
pub(super) type Done<T> = Db<Result<T, LogError>>;

impl Writer {
    pub(super) fn append(&mut self, append: &Append) -> Done<Appended> {
        match &append.target {
            Target::Run(key) => self.append_to_run(key, append),
            Target::Thread(key) => self.append_to_thread(key, append),
        }
    }

    fn append_to_run(&mut self, key: &RunKey, append: &Append) -> Done<Appended> {
        let (mut thread, mut run) = match self.heads.take_run(&self.connection, key)? {
            Some(run) => {
                let thread = self.thread_of(&run)?;
                (thread, run)
            }
            None => match self.run_for_frames(key, append.thread.as_deref())? {
                Ok(made) => made,
                Err(refused) => return Ok(Err(refused)),
            },
        };
        let written = self.write_to_run(&mut thread, &mut run, append)?;
        if run.new && run.first_seq.is_none() && thread.new && thread.seq == 0 {
            // Nothing came of it: as if it had not been asked.
            self.unmake(&run);
            return Ok(written);
        }
        if run.new && run.first_seq.is_none() {
            thread.open.retain(|open| *open != run.id);
            self.unmake(&run);
        } else {
            self.touched_runs.insert(run.id);
            self.heads.put_run(run);
        }
        self.touched_threads.insert(thread.id);
        self.heads.put_thread(thread);
        Ok(written)
    }

    /// Makes the run that frames are written to before it exists, and its thread where that does not.
    fn run_for_frames(&mut self, key: &RunKey, named: Option<&str>) -> Done<(ThreadHead, RunHead)> {
        let now = self.now();
        let thread = match named {
            Some(name) => self.thread_to_join(&key.thread(name), now)?,
            None => Ok(self.thread_of_its_own(key, now)?),
        };
        Ok(thread.map(|mut thread| {
            let request = Request { thread_id: named.map(str::to_owned), ..Request::default() };
            let run = self.heads.new_run(key.clone(), &thread, request, now);
            thread.open.push(run.id);
            (thread, run)
        }))
    }

    /// Finds or makes the thread that a run is to join.
    pub(super) fn thread_to_join(&mut self, key: &ThreadKey, now: Timestamp) -> Done<ThreadHead> {
        let Some(thread) = self.heads.take_thread(&self.connection, key)? else {
            return Ok(Ok(self.heads.new_thread(key.clone(), false, now)));
        };
        let refused = self.refuse_another_run(&thread)?;
        match refused {
            None => Ok(Ok(thread)),
            Some(refused) => {
                self.heads.put_thread(thread);
                Ok(Err(refused))
            }
        }
    }

    fn refuse_another_run(&mut self, thread: &ThreadHead) -> Db<Option<LogError>> {
        if thread.deleted {
            return Ok(Some(LogError::ThreadDeleted(thread.key.id.to_string())));
        }
        if thread.parallel {
            let full = thread.open.len() >= limits::OPEN_RUNS_OF_THREAD;
            return Ok(full.then_some(LogError::TooManyRuns(limits::OPEN_RUNS_OF_THREAD)));
        }
        let Some(open) = thread.open.first() else { return Ok(None) };
        let Some(open) = self.heads.take_run_by_id(&self.connection, *open)? else { return Ok(None) };
        let busy = LogError::ThreadBusy { thread: thread.key.id.to_string(), run: open.key.id.to_string() };
        self.heads.put_run(open);
        Ok(Some(busy))
    }

    /// Makes a thread for a run that names none: it has the run's id, unless that is taken.
    pub(super) fn thread_of_its_own(&mut self, run: &RunKey, now: Timestamp) -> Db<ThreadHead> {
        let key = run.thread(run.id.clone());
        let key = match self.heads.take_thread(&self.connection, &key)? {
            None => key,
            Some(taken) => {
                self.heads.put_thread(taken);
                run.thread(mint())
            }
        };
        Ok(self.heads.new_thread(key, false, now))
    }

    fn write_to_run(&mut self, thread: &mut ThreadHead, run: &mut RunHead, append: &Append) -> Done<Appended> {
        if thread.deleted {
            return Ok(Err(LogError::ThreadDeleted(thread.key.id.to_string())));
        }
        let name = append.stamp.as_ref().map_or("", |stamp| &*stamp.producer).to_owned();
        let mut producer = match take_producer(&mut run.producers, &name) {
            Ok(producer) => producer,
            Err(refused) => return Ok(Err(refused)),
        };
        let before = (producer.epoch, producer.next, producer.speech.clone());
        let written = self.write_frames(thread, run, &mut producer, append)?;
        producer.dirty |= match &written {
            Ok(_) => {
                let moved = append.stamp.is_some() && (before.0, before.1) != (producer.epoch, producer.next);
                moved || before.2 != producer.speech
            }
            Err(_) => false,
        };
        if written.is_err() {
            (producer.epoch, producer.next, producer.speech) = before;
        }
        if producer.dirty || producer.speech.decoder.is_some() || producer.next > 0 {
            run.producers.insert(name, producer);
        }
        Ok(written)
    }

    fn write_frames(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        producer: &mut ProducerHead,
        append: &Append,
    ) -> Done<Appended> {
        let skip = match check_stamp(producer, append.stamp.as_ref(), append.frames.len()) {
            Ok(skip) => skip,
            Err(refused) => return Ok(Err(refused)),
        };
        let mut appended = Appended { accepted: 0, duplicates: skip as u64, last_seq: 0, fault: None };
        if skip < append.frames.len() {
            let mut decoder = match decoder_for(producer, append, skip) {
                Ok(decoder) => decoder,
                Err(Undecided::Refused(refused)) => return Ok(Err(refused)),
                Err(Undecided::Fault(fault)) => {
                    appended.fault = Some(fault);
                    appended.last_seq = run.last_seq;
                    return Ok(Ok(appended));
                }
            };
            for (index, frame) in append.frames.iter().enumerate().skip(skip) {
                if frame.data != b"[DONE]" {
                    match self.write_frame(thread, run, &mut decoder, frame)? {
                        Ok(()) => {}
                        Err(problem) => {
                            appended.fault = Some(Fault { index, line: frame.line, problem: problem.into() });
                            break;
                        }
                    }
                }
                appended.accepted += 1;
            }
            if appended.accepted > 0 {
                producer.speech.decoder = Some(decoder);
                producer.next += appended.accepted;
            }
        }
        if append.end && appended.fault.is_none() {
            self.end_of_input(thread, run, EndOfInput::Complete)?;
        }
        if !run.head.state.status.is_closed() {
            self.leases.renew(run, self.options.lease);
        }
        appended.last_seq = run.last_seq;
        Ok(Ok(appended))
    }

    fn write_frame(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        decoder: &mut Decoder,
        frame: FrameIn<'_>,
    ) -> Db<Result<(), DecodeError>> {
        let opened = match decoder.open(frame.name, frame.data) {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        self.weave(thread, run, decoder, opened, frame)
    }

    fn weave(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        decoder: &mut Decoder,
        opened: Opened<'_>,
        frame: FrameIn<'_>,
    ) -> Db<Result<(), DecodeError>> {
        self.begin(thread, run)?;
        let source_time = opened.envelope.time;
        let mut entries = Vec::new();
        {
            let source = self.source(thread);
            let known = KnownState::default();
            let mut state = std::mem::take(&mut run.head.state);
            let look = lookup(&source, run, &known);
            let (authority, seq) = (Authority::Producer, thread.seq + 1);
            let mut weave =
                Weave::new(&mut state, &look, authority, decoder.dialect(), seq, &mut entries);
            let decoded = decoder.decode(opened, &mut weave);
            run.head.state = state;
            if let Err(error) = decoded {
                return Ok(Err(error));
            }
        }
        let name = frame.name.map(Into::into);
        let data = Some(Bytes::copy_from_slice(frame.data));
        self.push(thread, run, entries, Some(decoder.dialect()), source_time, name, data);
        Ok(Ok(()))
    }

    /// Gives a run that nothing was written to the state that follows from the thread's run before it.
    fn begin(&mut self, thread: &ThreadHead, run: &mut RunHead) -> Db<()> {
        if run.first_seq.is_some() || run.head.state.status != Status::Pending {
            return Ok(());
        }
        let Some(latest) = thread.latest.filter(|latest| *latest != run.id) else { return Ok(()) };
        if let Some(latest) = self.heads.take_run_by_id(&self.connection, latest)? {
            run.head.state = latest.head.state.next(&*run.key.id);
            self.heads.put_run(latest);
        }
        Ok(())
    }

    /// Ends a run whose input has ended.
    pub(super) fn end_of_input(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        end: EndOfInput,
    ) -> Db<()> {
        self.begin(thread, run)?;
        let mut entries = Vec::new();
        {
            let source = self.source(thread);
            let known = KnownState::default();
            let seq = thread.seq + 1;
            let mut state = std::mem::take(&mut run.head.state);
            state.end_of_input(end, seq, &lookup(&source, run, &known), &mut entries);
            run.head.state = state;
        }
        if !entries.is_empty() {
            self.push(thread, run, entries, None, None, None, None);
        }
        Ok(())
    }

    /// Writes events of the server's own as one record; a closed run takes none.
    pub(super) fn act(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        events: Vec<Event>,
    ) -> Db<Result<(), Refusal>> {
        self.begin(thread, run)?;
        let mut entries = Vec::new();
        {
            let source = self.source(thread);
            let known = KnownState::default();
            let seq = thread.seq + 1;
            let before = run.head.state.clone();
            let mut state = std::mem::take(&mut run.head.state);
            let look = lookup(&source, run, &known);
            let mut refused = None;
            for event in events {
                let applied = state.apply(event, By::Server, Authority::Server, seq, &look, &mut entries);
                if let Err(refusal) = applied {
                    refused = Some(refusal);
                    break;
                }
            }
            run.head.state = if refused.is_some() { before } else { state };
            if let Some(refusal) = refused {
                return Ok(Err(refusal));
            }
        }
        self.push(thread, run, entries, None, None, None, None);
        Ok(Ok(()))
    }

    /// Adds a record to what the next commit holds.
    #[expect(clippy::too_many_arguments, reason = "a record has that many parts, and this is where they meet")]
    fn push(
        &mut self,
        thread: &mut ThreadHead,
        run: &mut RunHead,
        mut entries: Vec<Entry>,
        dialect: Option<Dialect>,
        source_time: Option<Timestamp>,
        name: Option<Box<str>>,
        frame: Option<Bytes>,
    ) {
        let at = self.now().max(thread.at);
        thread.seq += 1;
        thread.at = at;
        for entry in &mut entries {
            if let Body::RunStarted(started) = &mut entry.event.body {
                let request = &run.request;
                prefer(&mut started.agent, request.agent.as_ref());
                prefer(&mut started.message, request.message.as_ref());
                let input = request.input.as_ref().map(runwire_model::Json::from_value);
                prefer(&mut started.input, input.as_ref());
            }
            run.head.summary.absorb(&entry.event);
        }
        run.head.summary.records += 1;
        if run.first_seq.is_none() {
            run.first_seq = Some(thread.seq);
            run.started_at = Some(at);
            thread.latest = Some(run.id);
        }
        run.last_seq = thread.seq;
        run.dirty = true;
        let status = run.head.state.status;
        run.deadline = (status == Status::Suspended).then(|| question_deadline(run, at));
        if status.is_closed() && run.ended_at.is_none() {
            run.ended_at = Some(at);
            thread.open.retain(|open| *open != run.id);
            self.leases.remove(run.id);
        } else if !status.is_closed() {
            self.leases.renew(run, self.options.lease);
        }
        let record = Record { seq: thread.seq, at, source_time, dialect, entries };
        let stored = Arc::new(Stored { run: run.key.id.clone(), record, name, frame });
        self.pending_of(thread).push((run.id, stored));
    }

    fn append_to_thread(&mut self, key: &ThreadKey, append: &Append) -> Done<Appended> {
        let now = self.now();
        let thread = self.heads.take_thread(&self.connection, key)?;
        let mut thread = thread.unwrap_or_else(|| self.heads.new_thread(key.clone(), false, now));
        let written = self.write_to_thread(&mut thread, append)?;
        if !(thread.new && thread.seq == 0) {
            self.touched_threads.insert(thread.id);
            self.heads.put_thread(thread);
        }
        Ok(written)
    }

    fn write_to_thread(&mut self, thread: &mut ThreadHead, append: &Append) -> Done<Appended> {
        if thread.deleted {
            return Ok(Err(LogError::ThreadDeleted(thread.key.id.to_string())));
        }
        let name = append.stamp.as_ref().map_or("", |stamp| &*stamp.producer).to_owned();
        let mut producer = match take_producer(&mut thread.producers, &name) {
            Ok(producer) => producer,
            Err(refused) => return Ok(Err(refused)),
        };
        let before = (producer.epoch, producer.next, producer.speech.clone());
        let written = self.write_frames_to_thread(thread, &mut producer, append)?;
        if written.is_err() {
            (producer.epoch, producer.next, producer.speech) = before.clone();
        }
        producer.dirty |= before != (producer.epoch, producer.next, producer.speech.clone());
        if producer.dirty || producer.speech.decoder.is_some() {
            thread.producers.insert(name, producer);
        }
        Ok(written)
    }

    fn write_frames_to_thread(
        &mut self,
        thread: &mut ThreadHead,
        producer: &mut ProducerHead,
        append: &Append,
    ) -> Done<Appended> {
        let skip = match check_stamp(producer, append.stamp.as_ref(), append.frames.len()) {
            Ok(skip) => skip,
            Err(refused) => return Ok(Err(refused)),
        };
        let mut appended = Appended { accepted: 0, duplicates: skip as u64, last_seq: thread.seq, fault: None };
        if skip < append.frames.len() {
            let mut decoder = match decoder_for(producer, append, skip) {
                Ok(decoder) => decoder,
                Err(Undecided::Refused(refused)) => return Ok(Err(refused)),
                Err(Undecided::Fault(fault)) => {
                    appended.fault = Some(fault);
                    return Ok(Ok(appended));
                }
            };
            for (index, frame) in append.frames.iter().enumerate().skip(skip) {
                if frame.data != b"[DONE]" {
                    let written = self.route_frame(thread, producer, &mut decoder, frame)?;
                    if let Err(problem) = written {
                        appended.fault = Some(Fault { index, line: frame.line, problem });
                        break;
                    }
                }
                appended.accepted += 1;
            }
            if appended.accepted > 0 {
                producer.speech.decoder = Some(decoder);
                producer.next += appended.accepted;
            }
        }
        if append.end && appended.fault.is_none() {
            for route in producer.speech.routes.clone() {
                self.with_run(route.to, |writer, run| writer.end_of_input(thread, run, EndOfInput::Complete))?;
            }
        }
        appended.last_seq = thread.seq;
        Ok(Ok(appended))
    }

    /// Writes a frame to the run of the thread that it belongs to.
    fn route_frame(
        &mut self,
        thread: &mut ThreadHead,
        producer: &mut ProducerHead,
        decoder: &mut Decoder,
        frame: FrameIn<'_>,
    ) -> Db<Result<(), FrameProblem>> {
        let opened = match decoder.open(frame.name, frame.data) {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error.into())),
        };
        let choice = match self.choose(&producer.speech.routes, &opened.envelope, decoder.dialect())? {
            Ok(choice) => choice,
            Err(error) => return Ok(Err(error.into())),
        };
        let mut run = match choice {
            Choice::Known { at, run } => {
                let route = &mut producer.speech.routes[at];
                // What the source calls its run may be told later, or anew after an interrupt.
                if opened.envelope.run.is_some() {
                    route.run.clone_from(&opened.envelope.run);
                }
                if route.thread.is_none() {
                    route.thread.clone_from(&opened.envelope.thread);
                }
                run
            }
            Choice::New { cuts } => {
                // Only a frame that can be read may end a run and open another.
                let (mut state, window, mut entries) = (RunState::new("", ""), Window::default(), Vec::new());
                let mut weave =
                    Weave::new(&mut state, &window, Authority::Producer, decoder.dialect(), 1, &mut entries);
                let trial = decoder.open(frame.name, frame.data);
                if let Err(error) = trial.and_then(|trial| decoder.clone().decode(trial, &mut weave)) {
                    return Ok(Err(error.into()));
                }
                if let Some(cut) = cuts.filter(|cut| !thread.parallel || producer.speech.routes[*cut].run.is_none()) {
                    let to = producer.speech.routes[cut].to;
                    self.with_run(to, |writer, run| writer.end_of_input(thread, run, EndOfInput::Cut))?;
                }
                if let Some(refused) = self.refuse_another_run(thread)? {
                    return Ok(Err(refused.into()));
                }
                let run = self.run_of_source(thread, opened.envelope.run.as_deref())?;
                let routes = &mut producer.speech.routes;
                if routes.len() == ROUTES {
                    routes.remove(0);
                }
                let envelope = &opened.envelope;
                routes.push(Route { thread: envelope.thread.clone(), run: envelope.run.clone(), to: run.id });
                run
            }
        };
        let written = self.weave(thread, &mut run, decoder, opened, frame)?;
        if run.new && run.first_seq.is_none() {
            thread.open.retain(|open| *open != run.id);
            producer.speech.routes.retain(|route| route.to != run.id);
            self.unmake(&run);
        } else {
            self.touched_runs.insert(run.id);
            self.heads.put_run(run);
        }
        Ok(written.map_err(Into::into))
    }

    /// Finds the run that a frame belongs to among those that its producer has written to.
    fn choose(
        &mut self,
        routes: &[Route],
        envelope: &Envelope,
        dialect: Dialect,
    ) -> Db<Result<Choice, DecodeError>> {
        let same_session = |route: &Route| {
            envelope.thread.is_none() || route.thread.is_none() || route.thread == envelope.thread
        };
        let named = envelope.run.is_some();
        let by_run = routes.iter().rposition(|route| named && route.run == envelope.run && same_session(route));
        let last = routes.iter().rposition(same_session);
        let Some(at) = by_run.or(last) else { return Ok(Ok(Choice::New { cuts: None })) };
        let Some(run) = self.heads.take_run_by_id(&self.connection, routes[at].to)? else {
            return Ok(Ok(Choice::New { cuts: None }));
        };
        let status = run.head.state.status;
        let another = named && routes[at].run.is_some() && routes[at].run != envelope.run;
        let takes = if another {
            // An answered interrupt goes on under a new run id, and is the same run.
            matches!(dialect, Dialect::AgUi | Dialect::SocialApp) && status == Status::Suspended
        } else {
            let begins = envelope.begins && !named && status == Status::Running;
            !(begins || (status.is_closed() && envelope.starts))
        };
        if takes {
            return Ok(Ok(Choice::Known { at, run }));
        }
        let cuts = (!status.is_closed()).then_some(at);
        self.heads.put_run(run);
        Ok(Ok(Choice::New { cuts }))
    }

    /// Makes a run of a thread under the source's id, unless that is taken.
    fn run_of_source(&mut self, thread: &mut ThreadHead, source: Option<&str>) -> Db<RunHead> {
        let usable = |id: &&str| !id.is_empty() && id.len() <= 256 && !id.chars().any(char::is_control);
        let tenant = &thread.key.tenant;
        let wanted = source.filter(usable).map(|id| RunKey::new(tenant.clone(), id));
        let key = match wanted {
            Some(key) if !self.heads.has_run(&self.connection, &key)? => key,
            _ => RunKey::new(tenant.clone(), mint()),
        };
        let run = self.heads.new_run(key, thread, Request::default(), self.now());
        thread.open.push(run.id);
        Ok(run)
    }

    /// Drops a run that was made for frames of which none was accepted.
    fn unmake(&mut self, run: &RunHead) {
        self.heads.unmake_run(run);
        self.leases.remove(run.id);
    }

    /// Works on a run by its number, and notes that it was touched.
    pub(super) fn with_run<T>(
        &mut self,
        id: i64,
        work: impl FnOnce(&mut Self, &mut RunHead) -> Db<T>,
    ) -> Db<Option<T>> {
        let Some(mut run) = self.heads.take_run_by_id(&self.connection, id)? else { return Ok(None) };
        let result = work(self, &mut run)?;
        self.touched_runs.insert(run.id);
        self.heads.put_run(run);
        Ok(Some(result))
    }
}

/// Where a frame goes.
enum Choice {
    /// To a run that the producer has written to before.
    Known { at: usize, run: RunHead },
    /// To a new run; the producer leaves another one open.
    New { cuts: Option<usize> },
}

/// Makes an id that is new.
pub(super) fn mint() -> String {
    uuid::Uuid::now_v7().to_string()
}

fn lookup<'a>(source: &'a super::writer::Source<'a>, run: &'a RunHead, known: &'a KnownState) -> Lookup<'a> {
    let first_seq = run.first_seq.unwrap_or(1);
    Lookup { source, run: &run.key.id, first_seq, current: None, state: known }
}

fn prefer<T: Clone>(said: &mut Option<T>, asked: Option<&T>) {
    if let Some(asked) = asked {
        *said = Some(asked.clone());
    }
}

/// Tells when the first of a run's open questions expires.
fn question_deadline(run: &RunHead, at: Timestamp) -> u64 {
    let week = limits::QUESTION_DAYS * 86_400_000;
    let open = run.head.summary.interactions.iter().filter(|asked| asked.status == "open");
    let default = run.deadline.unwrap_or(at.0 + week);
    open.map(|asked| asked.expires_at.unwrap_or(default)).min().unwrap_or(default)
}

fn take_producer(
    producers: &mut HashMap<String, ProducerHead>,
    name: &str,
) -> Result<ProducerHead, LogError> {
    match producers.remove(name) {
        Some(producer) => Ok(producer),
        None if producers.len() >= limits::PRODUCERS => Err(LogError::TooManyProducers(limits::PRODUCERS)),
        None => Ok(ProducerHead::default()),
    }
}

/// Tells how many of the frames were written before.
fn check_stamp(producer: &mut ProducerHead, stamp: Option<&Stamp>, frames: usize) -> Result<usize, LogError> {
    let Some(stamp) = stamp else { return Ok(0) };
    if stamp.epoch < producer.epoch {
        return Err(LogError::ProducerFenced { epoch: producer.epoch });
    }
    if stamp.index > producer.next {
        return Err(LogError::ProducerGap { expected: producer.next, got: stamp.index });
    }
    producer.epoch = stamp.epoch;
    let written = usize::try_from(producer.next - stamp.index).unwrap_or(usize::MAX);
    Ok(written.min(frames))
}

enum Undecided {
    Refused(LogError),
    Fault(Fault),
}

/// Finds the decoder of a producer's frames: its own, the named dialect's, or the one they show.
fn decoder_for(producer: &ProducerHead, append: &Append, skip: usize) -> Result<Decoder, Undecided> {
    match (&producer.speech.decoder, append.dialect) {
        (Some(decoder), None) => Ok(decoder.clone()),
        (Some(decoder), Some(named)) => {
            let pinned = decoder.dialect();
            let became = pinned == Dialect::SocialApp && named == Dialect::AgUi;
            if pinned == named || became {
                return Ok(decoder.clone());
            }
            Err(Undecided::Refused(LogError::DialectPinned { pinned, named }))
        }
        (None, Some(named)) => Ok(Decoder::new(named)),
        (None, None) => {
            let mut undecided = None;
            let frames = append.frames.iter().enumerate().skip(skip);
            for (index, frame) in frames.filter(|(_, frame)| frame.data != b"[DONE]").take(DETECTED_FROM) {
                match Object::parse(frame.data) {
                    Ok(object) => match detect(&object) {
                        Ok(dialect) => return Ok(Decoder::new(dialect)),
                        Err(ambiguous) => undecided = undecided.or(Some(ambiguous)),
                    },
                    Err(fault) if undecided.is_none() => {
                        let problem = FrameProblem::Decode(DecodeError::Frame(fault));
                        return Err(Undecided::Fault(Fault { index, line: frame.line, problem }));
                    }
                    Err(_) => break,
                }
            }
            match undecided {
                Some(ambiguous) => Err(Undecided::Refused(ambiguous.into())),
                // Nothing but end marks: any decoder will do.
                None => Ok(Decoder::new(Dialect::Runwire)),
            }
        }
    }
}
