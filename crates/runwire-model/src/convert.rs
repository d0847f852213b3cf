//! A whole stream translated in memory: decode, guard and encode, exactly as a server does.
//!
//! The same input gives the same bytes, on any machine at any time: a record's time is its source's, else the
//! one before it, else the epoch; ids that the source lacks are `thread-1` and `run-<n>`.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::ErrorCode;
use crate::dialect::{
    AmbiguousDialect, DecodeError, Decoder, Dialect, Encoder, EncoderOptions, Envelope, Fidelity, Frames,
    OpenedFrame, RecordBuilder, SESSION_ID, Slots, detect,
};
use crate::event::{Body, Event, Foreign};
use crate::framing::is_end_mark;
use crate::json::{Json, Object, check_frame};
use crate::limits;
use crate::record::{EventOrigin, Record};
use crate::run::{Authority, EndOfInput, Refusal, RunState, Status, hash_of};
use crate::time::Timestamp;
use crate::window::Window;

/// Options of a conversion.
#[derive(Debug, Clone)]
pub struct Options {
    /// The dialect to read; detected if not set.
    pub from: Option<Dialect>,
    /// The dialect to write.
    pub to: Dialect,
    /// How much of the canonical events the frames carry.
    pub fidelity: Fidelity,
    /// Which extension frames are written.
    pub slots: Slots,
    /// Authority of the stream: a copied log may hold events of people and the server, a producer's may not.
    pub authority: Authority,
    /// The thread's id, in place of the source's.
    pub thread: Option<String>,
    /// The first run's id, in place of the source's.
    pub run: Option<String>,
}

impl Options {
    /// Returns the options of the encoders.
    pub fn encoder(&self) -> EncoderOptions {
        EncoderOptions { fidelity: self.fidelity, slots: self.slots }
    }

    /// Makes options to convert any readable dialect to this one.
    pub fn to(to: Dialect) -> Self {
        Self {
            from: None,
            to,
            fidelity: Fidelity::Native,
            slots: Slots::All,
            authority: Authority::Producer,
            thread: None,
            run: None,
        }
    }
}

/// Error of a frame that cannot be converted. The frames before it were converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ConvertError {
    /// The line that the frame begins on.
    pub line: u64,
    /// The problem.
    pub problem: ConvertProblem,
}

/// Problem of a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertProblem {
    /// It cannot be read, or its run refuses it.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Its dialect is ambiguous.
    #[error(transparent)]
    AmbiguousDialect(#[from] AmbiguousDialect),
    /// Too many runs are open side by side, or together they hold too much.
    #[error(
        "more than {} runs are open side by side, or they hold more than {} MiB together",
        limits::OPEN_RUNS,
        limits::STREAM_MEMORY_BYTES >> 20
    )]
    TooManyRuns,
    /// Runs are open side by side, and frames of the target dialect do not name theirs.
    #[error("runs lie side by side in this stream, and {0} cannot tell them apart")]
    NeedsRun(Dialect),
}

impl ConvertProblem {
    /// Returns the stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Decode(error) => error.code(),
            Self::AmbiguousDialect(error) => error.code(),
            Self::TooManyRuns => ErrorCode::TooManyRuns,
            Self::NeedsRun(_) => ErrorCode::NeedsRun,
        }
    }
}

/// A record and its frames.
#[derive(Debug)]
pub struct Converted<'a> {
    /// The thread's id.
    pub thread_id: &'a str,
    /// The run's id.
    pub run_id: &'a str,
    /// The record.
    pub record: &'a Record,
    /// Its frames; the k-th has the cursor `seq-k`, k from [`EncoderOptions::first_frame`] on.
    pub frames: &'a Frames,
}

/// Converts a stream, frame by frame.
///
/// ```
/// use runwire_model::convert::{Converter, Options};
/// use runwire_model::dialect::Dialect;
///
/// let mut converter = Converter::new(Options::to(Dialect::Text));
/// let mut text = String::new();
/// for (line, frame) in [
///     r#"{"type":"message_chunk","content":"你","id":"think"}"#,
///     r#"{"type":"message_chunk","content":"好","id":"think"}"#,
///     r#"{"reply":"你好"}"#,
/// ].iter().enumerate() {
///     converter.push(line as u64 + 1, None, frame.as_bytes(), &mut |converted| {
///         for (_, data) in converted.frames.iter() {
///             text.push_str(std::str::from_utf8(data).unwrap());
///         }
///     }).unwrap();
/// }
/// assert_eq!(text, "你好");
/// ```
#[derive(Debug)]
pub struct Converter {
    options: Options,
    decoder: Option<Decoder>,
    /// Frames that came before the dialect was known.
    waiting: Vec<Waiting>,
    /// The threads, the most recently written one last; one entry for each run of a thread that is open side by side
    /// with others.
    threads: Vec<Thread>,
    /// Positions in threads that were dropped from memory.
    left: HashMap<u64, (u64, Timestamp)>,
    /// Hashes of the runs' ids, which detect an id that is used twice.
    run_ids: HashSet<u64>,
    run_order: VecDeque<u64>,
    runs: u64,
    frames: Frames,
}

#[derive(Debug)]
struct Waiting {
    line: u64,
    name: Option<String>,
    data: Vec<u8>,
}

#[derive(Debug)]
struct Thread {
    id: String,
    /// Its id in the source.
    source: Option<String>,
    seq: u64,
    at: Timestamp,
    window: Window,
    run: Option<Run>,
    /// Whether a run of another thread ended its run, because readers could not tell the two apart.
    is_cut_off: bool,
}

#[derive(Debug)]
struct Run {
    state: RunState,
    source: Option<String>,
    encoder: Encoder,
    /// Whether another run of its thread was open when it began.
    is_beside: bool,
}

/// Limits the frames before the dialect is known.
const WAITING: usize = 16;
/// Limits the threads and runs whose ids are remembered.
const REMEMBERED: usize = 65_536;

/// Receives the records of a conversion.
pub type FrameSink<'s> = dyn FnMut(Converted<'_>) + 's;

impl Converter {
    /// Makes a converter.
    pub fn new(options: Options) -> Self {
        let decoder = options.from.map(Decoder::new);
        Self {
            options,
            decoder,
            waiting: Vec::new(),
            threads: Vec::new(),
            left: HashMap::new(),
            run_ids: HashSet::new(),
            run_order: VecDeque::new(),
            runs: 0,
            frames: Frames::default(),
        }
    }

    /// Returns the dialect that is read, once it is known.
    pub fn dialect(&self) -> Option<Dialect> {
        self.decoder.as_ref().map(Decoder::dialect)
    }

    /// Converts a frame.
    pub fn push(
        &mut self,
        line: u64,
        name: Option<&str>,
        data: &[u8],
        sink: &mut FrameSink<'_>,
    ) -> Result<(), ConvertError> {
        if is_end_mark(data) {
            return Ok(());
        }
        if self.decoder.is_some() {
            return self.convert(name, data, sink).map_err(|problem| ConvertError { line, problem });
        }
        let found = Object::parse(data).map_err(DecodeError::Frame);
        let found = found.map_err(|error| ConvertError { line, problem: error.into() })?;
        match detect(&found) {
            Ok(dialect) => {
                self.decoder = Some(Decoder::new(dialect));
                self.convert_waiting(sink)?;
                self.convert(name, data, sink).map_err(|problem| ConvertError { line, problem })
            }
            Err(_) if self.waiting.len() < WAITING => {
                self.waiting.push(Waiting { line, name: name.map(str::to_owned), data: data.to_owned() });
                Ok(())
            }
            Err(ambiguous) => Err(self.ambiguous(line, ambiguous)),
        }
    }

    /// Converts bytes that are no frame of the dialect to `foreign`, so that the stream can continue.
    ///
    /// Returns false before the dialect is known and after the end of a run: there is no run to add them to.
    pub fn push_foreign(&mut self, data: &[u8], sink: &mut FrameSink<'_>) -> bool {
        let Some(dialect) = self.dialect() else { return false };
        let Ok(place) = self.place(&Envelope::default(), Some(dialect), sink) else { return false };
        let thread = &mut self.threads[place];
        let Some(run) = thread.run.as_mut() else { return false };
        // What no reader would take as JSON, too deep or with half a character, goes on as its text.
        let readable = check_frame(data).ok().and_then(|text| Json::parse(text.trim()).ok());
        let frame = readable.unwrap_or_else(|| Json::string(&String::from_utf8_lossy(data)));
        let event = Event::new(Foreign { dialect: dialect.name().to_owned(), frame, name: None });
        let (seq, mut entries) = (thread.seq + 1, Vec::new());
        let written = run.state.apply(
            event,
            EventOrigin::Producer,
            Authority::Producer,
            seq,
            &thread.window,
            &mut entries,
        );
        if written.is_err() {
            return false;
        }
        let record = Record { seq, at: thread.at, source_time: None, dialect: None, entries };
        write(thread, &record, &mut self.frames, sink);
        true
    }

    /// Ends the stream: a run that has not ended has failed.
    pub fn finish(&mut self, sink: &mut FrameSink<'_>) -> Result<(), ConvertError> {
        if let (None, Some(first)) = (&self.decoder, self.waiting.first()) {
            let line = first.line;
            let found = Object::parse(&first.data)
                .map_err(|fault| ConvertError { line, problem: DecodeError::Frame(fault).into() })?;
            if let Err(ambiguous) = detect(&found) {
                return Err(ConvertError { line, problem: ambiguous.into() });
            }
        }
        for at in 0..self.threads.len() {
            self.cut(at, sink);
        }
        Ok(())
    }

    fn ambiguous(&self, line: u64, ambiguous: AmbiguousDialect) -> ConvertError {
        let line = self.waiting.first().map_or(line, |first| first.line);
        ConvertError { line, problem: ambiguous.into() }
    }

    fn convert_waiting(&mut self, sink: &mut FrameSink<'_>) -> Result<(), ConvertError> {
        for waiting in std::mem::take(&mut self.waiting) {
            self.convert(waiting.name.as_deref(), &waiting.data, sink)
                .map_err(|problem| ConvertError { line: waiting.line, problem })?;
        }
        Ok(())
    }

    fn convert(
        &mut self,
        name: Option<&str>,
        data: &[u8],
        sink: &mut FrameSink<'_>,
    ) -> Result<(), ConvertProblem> {
        let Some(mut decoder) = self.decoder.take() else { return Ok(()) };
        let result = match decoder.open(name, data) {
            Ok(opened) => self
                .try_elsewhere(&decoder, &opened.envelope, name, data)
                .and_then(|()| self.decode(&mut decoder, opened, sink)),
            Err(error) => Err(error.into()),
        };
        self.decoder = Some(decoder);
        result
    }

    /// Decodes a frame of another run without storing it: only a readable one may end the open run.
    fn try_elsewhere(
        &self,
        decoder: &Decoder,
        envelope: &Envelope,
        name: Option<&str>,
        data: &[u8],
    ) -> Result<(), ConvertProblem> {
        let Some(run) = self.threads.last().and_then(|thread| thread.run.as_ref()) else { return Ok(()) };
        let is_known = |thread: &Thread| thread.run.as_ref().is_some_and(|run| run.source == envelope.run);
        if envelope.run.is_none() || self.threads.iter().any(is_known) || run.state.status.is_closed() {
            return Ok(());
        }
        let (mut state, window, mut entries) = (RunState::new("", ""), Window::default(), Vec::new());
        let mut builder = RecordBuilder::new(
            &mut state,
            &window,
            self.options.authority,
            decoder.dialect(),
            1,
            &mut entries,
        );
        Ok(decoder.clone().decode(decoder.open(name, data)?, &mut builder)?)
    }

    fn decode(
        &mut self,
        decoder: &mut Decoder,
        opened: OpenedFrame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Result<(), ConvertProblem> {
        let place = self.place(&opened.envelope, Some(decoder.dialect()), sink)?;
        let thread = &mut self.threads[place];
        let source_time = opened.envelope.time;
        let at = source_time.unwrap_or(thread.at).max(thread.at);
        let Some(run) = thread.run.as_mut() else { return Ok(()) };
        let seq = thread.seq + 1;
        let mut entries = Vec::new();
        let mut builder = RecordBuilder::new(
            &mut run.state,
            &thread.window,
            self.options.authority,
            decoder.dialect(),
            seq,
            &mut entries,
        );
        decoder.decode(opened, &mut builder)?;
        let (from, to) = (decoder.dialect(), self.options.to);
        if run.is_beside && to.has_run_sessions() && from != to {
            for entry in entries.iter_mut().filter(|entry| matches!(entry.event.body, Body::RunStarted(_))) {
                entry.event.extra.set(SESSION_ID, Json::string(&run.state.run_id));
            }
        }
        let record = Record { seq, at, source_time, dialect: Some(decoder.dialect()), entries };
        write(thread, &record, &mut self.frames, sink);
        Ok(())
    }

    /// Returns the index of a frame's thread, with a run that accepts it.
    fn place(
        &mut self,
        envelope: &Envelope,
        dialect: Option<Dialect>,
        sink: &mut FrameSink<'_>,
    ) -> Result<usize, ConvertProblem> {
        let at = self.thread(envelope)?;
        let thread = &mut self.threads[at];
        // The runs were not told one after the other, as it had seemed.
        if thread.is_cut_off && !envelope.begins {
            return Err(ConvertProblem::NeedsRun(self.options.to));
        }
        let continues = thread.run.as_mut().is_some_and(|run| run.takes(envelope, dialect));
        if continues {
            self.catch_up(at);
            return Ok(at);
        }
        // A run that has ended takes no more frames, also when its thread has moved on.
        let ended = envelope.run.as_ref().is_some_and(|run| self.run_ids.contains(&hash_of(run)));
        if ended && !envelope.begins {
            return Err(DecodeError::Refused(Refusal::RunClosed(Status::Failed)).into());
        }
        let goes_on = thread.run.as_ref().is_some_and(|run| run.may_go_on_beside(envelope, dialect));
        let at = if goes_on {
            let (id, source) = (thread.id.clone(), thread.source.clone());
            self.add(id, source)?
        } else {
            self.cut(at, sink);
            at
        };
        if !self.options.to.names_its_run() {
            // Where the reader could not tell the runs apart, a new one ends what is open.
            for other in (0..self.threads.len()).filter(|other| *other != at) {
                let was_cut = self.cut(other, sink);
                self.threads[other].is_cut_off |= was_cut;
            }
        }
        self.catch_up(at);
        let id = self.run_id(envelope);
        let of_thread = |thread: &&Thread| thread.id == self.threads[at].id;
        let mut runs = self.threads.iter().rev().filter(of_thread).filter_map(|thread| thread.run.as_ref());
        let is_beside = runs.clone().any(|run| !run.state.status.is_closed());
        let state = match runs.next() {
            Some(before) => before.state.next(&id),
            None => RunState::new(&self.threads[at].id, &id),
        };
        let thread = &mut self.threads[at];
        thread.is_cut_off = false;
        thread.window.next_run(&id);
        let encoder = Encoder::new(self.options.to, &thread.id, &id, self.options.encoder()).in_thread(true);
        thread.run = Some(Run { state, source: envelope.run.clone(), encoder, is_beside });
        Ok(at)
    }

    /// Returns the index of a frame's thread: the one that it names, the one of its run, or the last.
    fn thread(&mut self, envelope: &Envelope) -> Result<usize, ConvertProblem> {
        while self.threads.len() > 2 && self.weight() > limits::STREAM_MEMORY_BYTES {
            if !self.forget_thread() {
                return Err(ConvertProblem::TooManyRuns);
            }
        }
        let runs_it = |thread: &Thread| {
            let source = thread.run.as_ref().and_then(|run| run.source.as_ref());
            envelope.run.is_some() && source == envelope.run.as_ref()
        };
        let named = |thread: &Thread| envelope.thread.is_some() && thread.source == envelope.thread;
        // Where a frame names no thread, its run's id may stand for one.
        let names_run_alone = envelope.thread.is_none() || envelope.thread == envelope.run;
        let find = |is_it: &dyn Fn(&Thread) -> bool| self.threads.iter().rposition(is_it);
        let known = find(&|thread| named(thread) && runs_it(thread)).or_else(|| find(&named));
        let known = known.or_else(|| find(&|thread| names_run_alone && runs_it(thread)));
        let last = self.threads.len().checked_sub(1);
        let at = match (known, last, &envelope.thread) {
            (Some(at), ..) | (None, Some(at), None) => at,
            // A thread that has not said its id yet is the one, and so is one whose id is set by the caller, unless a
            // run of another session is open in it.
            (None, Some(last), Some(session)) if self.takes_session(last) => {
                self.threads[last].source = Some(session.clone());
                last
            }
            (None, _, session) => {
                let id = self.options.thread.clone().or_else(|| session.clone());
                return self.add(id.unwrap_or_else(|| "thread-1".to_owned()), session.clone());
            }
        };
        let thread = self.threads.remove(at);
        self.threads.push(thread);
        Ok(self.threads.len() - 1)
    }

    /// Returns true if a session that was not seen before may be that of a thread.
    fn takes_session(&self, at: usize) -> bool {
        let thread = &self.threads[at];
        thread.source.is_none() || (self.options.thread.is_some() && !thread.has_open_run())
    }

    /// Adds a thread, or an entry for another run of a known one.
    fn add(&mut self, id: String, source: Option<String>) -> Result<usize, ConvertProblem> {
        if self.threads.len() == limits::OPEN_RUNS && !self.forget_thread() {
            return Err(ConvertProblem::TooManyRuns);
        }
        let (seq, at) = self.left.remove(&hash_of(&id)).unwrap_or_default();
        let same = self.threads.iter().rfind(|thread| thread.id == id);
        let window = same.map(|thread| thread.window.clone()).unwrap_or_default();
        self.threads.push(Thread { id, source, seq, at, window, run: None, is_cut_off: false });
        Ok(self.threads.len() - 1)
    }

    /// Updates a run's entry with what other runs of its thread have written.
    fn catch_up(&mut self, at: usize) {
        let thread = &self.threads[at];
        let newer = |other: &&Thread| other.seq > thread.seq && other.id == thread.id;
        let Some(newest) = self.threads.iter().filter(newer).max_by_key(|other| other.seq) else { return };
        let (seq, time, state) = (newest.seq, newest.at, newest.window.kept_state().cloned());
        let thread = &mut self.threads[at];
        (thread.seq, thread.at) = (seq, time);
        thread.window.set_state(state);
    }

    /// Ends the run of a stream that broke off; returns false if none was open.
    fn cut(&mut self, at: usize, sink: &mut FrameSink<'_>) -> bool {
        self.catch_up(at);
        cut(&mut self.threads[at], &mut self.frames, sink)
    }

    /// Estimates the bytes that all threads hold.
    fn weight(&self) -> usize {
        self.threads.iter().map(Thread::weight).sum()
    }

    /// Drops the oldest thread without an open run, except its position; returns false if there is none.
    fn forget_thread(&mut self) -> bool {
        let Some(oldest) = self.threads.iter().position(|thread| !thread.has_open_run()) else {
            return false;
        };
        let thread = self.threads.remove(oldest);
        if self.left.len() < REMEMBERED {
            self.left.insert(hash_of(&thread.id), (thread.seq, thread.at));
        }
        true
    }

    /// Returns the id of a new run: the caller's for the first, else the source's, else a minted one.
    fn run_id(&mut self, envelope: &Envelope) -> String {
        self.runs += 1;
        let set = self.options.run.clone().filter(|_| self.runs == 1);
        let wanted = set.or_else(|| envelope.run.clone()).filter(|id| !self.run_ids.contains(&hash_of(id)));
        let id = wanted.unwrap_or_else(|| {
            let minted = |n: u64| match &self.options.run {
                Some(run) => format!("{run}-{n}"),
                None => format!("run-{n}"),
            };
            (self.runs..).map(minted).find(|id| !self.run_ids.contains(&hash_of(id))).unwrap_or_default()
        });
        if self.run_order.len() == REMEMBERED
            && let Some(oldest) = self.run_order.pop_front()
        {
            self.run_ids.remove(&oldest);
        }
        self.run_ids.insert(hash_of(&id));
        self.run_order.push_back(hash_of(&id));
        id
    }
}

impl Thread {
    fn has_open_run(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.state.status.is_closed())
    }

    fn weight(&self) -> usize {
        let held = self.run.as_ref().map_or(0, |run| run.state.held_bytes());
        self.window.weight().saturating_add(usize::try_from(held).unwrap_or(usize::MAX))
    }
}

impl Run {
    /// Returns true if the run stays open beside one that a frame begins: where every frame names its run, another run
    /// does not end this one.
    fn may_go_on_beside(&self, envelope: &Envelope, dialect: Option<Dialect>) -> bool {
        let is_named = envelope.run.is_some() && self.source.is_some();
        is_named && !self.state.status.is_closed() && dialect.is_some_and(Dialect::names_run_in_every_frame)
    }

    /// Returns true if a frame belongs to this run rather than to the next.
    fn takes(&mut self, envelope: &Envelope, dialect: Option<Dialect>) -> bool {
        let status = self.state.status;
        match (&envelope.run, &self.source) {
            (Some(named), Some(own)) if named != own => {
                // An answered interrupt goes on under a new run id, and is the same run.
                let resumes = dialect.is_some_and(Dialect::resumes_as_new_run) && status == Status::Suspended;
                if resumes {
                    self.source.clone_from(&envelope.run);
                }
                resumes
            }
            (named, own) => {
                let begins = envelope.begins && named.is_none() && status == Status::Running;
                if begins || (status.is_closed() && envelope.starts) {
                    return false;
                }
                if own.is_none() {
                    self.source.clone_from(named);
                }
                true
            }
        }
    }
}

/// Ends the run of a stream that broke off; returns false if none was open.
fn cut(thread: &mut Thread, frames: &mut Frames, sink: &mut FrameSink<'_>) -> bool {
    let Some(run) = thread.run.as_mut() else { return false };
    if run.state.status.is_closed() || run.state.status == Status::Pending {
        return false;
    }
    let mut entries = Vec::new();
    let seq = thread.seq + 1;
    run.state.end_of_input(EndOfInput::Cut, seq, &thread.window, &mut entries);
    let record = Record { seq, at: thread.at, source_time: None, dialect: None, entries };
    write(thread, &record, frames, sink);
    true
}

fn write(thread: &mut Thread, record: &Record, frames: &mut Frames, sink: &mut FrameSink<'_>) {
    thread.seq = record.seq;
    thread.at = record.at;
    thread.window.absorb(record);
    let Some(run) = thread.run.as_mut() else { return };
    frames.clear();
    run.encoder.step(record, &thread.window, frames);
    sink(Converted { thread_id: &thread.id, run_id: &run.state.run_id, record, frames });
}
