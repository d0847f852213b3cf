//! Appends to a whole thread: routes each frame to the run that it belongs to.

use runwire_model::dialect::{Decoder, Dialect, Envelope, RecordBuilder};
use runwire_model::run::{Authority, EndOfInput, RunState, Status};
use runwire_model::window::Window;

use super::check::{Checking, ScannedFrame};
use super::heads::{ProducerHead, Route, RunHead, RunOrigin, ThreadHead};
use super::producer;
use super::{CommandError, CommandResult, MissingRow, StoreResult, Txn, TxnStore, mint};
use crate::append::{Append, Appended, FrameIn};
use crate::error::{FrameProblem, LogError};
use crate::key::{RunKey, ThreadKey, is_usable_id};

/// Maximum number of routes that a producer of a thread remembers.
pub(crate) const ROUTES: usize = 64;

/// How sessions that frames name map to threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sessions {
    /// Each has runs of its own in the thread.
    InOneThread,
    /// The thread is the session.
    AreThreads,
}

/// The run that a frame goes to.
enum Choice {
    /// To a run that the producer has written to before.
    Known { at: usize },
    /// To a new run; the producer leaves another one open.
    New { cuts: Option<usize> },
}

impl<S: TxnStore> Txn<S> {
    pub(crate) fn append_to_thread(
        &mut self,
        key: &ThreadKey,
        append: &Append,
    ) -> CommandResult<S, Appended> {
        let mut thread = match self.heads.take_thread(&self.store, key)? {
            Some(thread) => thread,
            None => self.new_thread(key.clone(), false, self.now)?,
        };
        let written = self.write_to_thread(&mut thread, append);
        let accepted = match &written {
            Ok(appended) => appended.accepted,
            Err(CommandError::Refused(_)) => 0,
            Err(CommandError::Store(_)) => return written,
        };
        if accepted == 0 && self.heads.is_fresh_thread(&thread) {
            // Nothing was written: drop the new thread.
            return written;
        }
        self.put_thread_if_changed(thread);
        written
    }

    fn write_to_thread(&mut self, thread: &mut ThreadHead, append: &Append) -> CommandResult<S, Appended> {
        if thread.deleted {
            return Err(Self::refuse(LogError::ThreadDeleted(thread.key.id.to_string())));
        }
        let name = producer::name_of(append);
        let mut producer = producer::head_of(&thread.producers, name).map_err(Self::refuse)?;
        let checking = Checking::of(append);
        let mut appended =
            self.write_new_frames(&mut producer, append, |txn, producer, decoder, frame| {
                txn.route_frame(thread, producer, decoder, frame, Sessions::InOneThread, checking)
            })?;
        if append.end && appended.fault.is_none() {
            for route in &producer.state.routes {
                if thread.open.contains(&route.to) {
                    self.with_run(route.to, |txn, run| txn.end_of_input(thread, run, EndOfInput::Complete))?;
                }
            }
        }
        producer::keep(&mut thread.producers, name, producer);
        appended.last_seq = thread.seq;
        Ok(appended)
    }

    /// Writes a frame to the run of the thread that it belongs to.
    pub(super) fn route_frame(
        &mut self,
        thread: &mut ThreadHead,
        producer: &mut ProducerHead,
        decoder: &mut Decoder,
        frame: FrameIn<'_>,
        sessions: Sessions,
        checking: Checking,
    ) -> CommandResult<S, (), FrameProblem> {
        let (opened, scanned) = ScannedFrame::open(decoder, frame, checking).map_err(Self::refuse)?;
        let mut envelope = opened.envelope.clone();
        if sessions == Sessions::AreThreads {
            envelope.thread = None;
        }
        let routes = &mut producer.state.routes;
        let (mut run, known) = match self.choose(routes, &envelope, decoder.dialect())? {
            Choice::Known { at } => {
                let run = self.heads.take_run_by_id(&self.store, routes[at].to)?;
                (run.ok_or_else(|| S::Error::from(MissingRow("the run of a route")))?, Some(at))
            }
            Choice::New { cuts } => {
                try_elsewhere(decoder, frame).map_err(Self::refuse)?;
                let dialect = decoder.dialect_with(&opened);
                self.refuse_to_begin(thread, checking, dialect, &scanned)?;
                // Where each frame names its run, one that names another does not say that the first is over.
                let names_another = sessions == Sessions::AreThreads && envelope.run.is_some();
                let goes_on = |cut: &usize| {
                    decoder.dialect().names_run_in_every_frame()
                        && routes[*cut].run.is_some()
                        && (thread.parallel || names_another)
                };
                if let Some(cut) = cuts.filter(|cut| !goes_on(cut)) {
                    let to = routes[cut].to;
                    self.with_run(to, |txn, run| txn.end_of_input(thread, run, EndOfInput::Cut))?;
                }
                if let Some(refused) = self.refuse_another_run(thread)? {
                    return Err(Self::refuse(refused.into()));
                }
                (self.run_of_source(thread, envelope.run.as_deref())?, None)
            }
        };
        let written = self.decode(thread, &mut run, decoder, opened, &scanned, checking);
        match &written {
            Ok(()) => follow(routes, known, envelope, run.id),
            Err(CommandError::Store(_)) => return written,
            Err(CommandError::Refused(_)) if known.is_none() => {
                thread.open.retain(|open| *open != run.id);
                return written;
            }
            Err(CommandError::Refused(_)) => {}
        }
        self.put_run(run);
        written
    }

    /// Chooses the run that a frame belongs to, among those that its producer has written to.
    fn choose(&mut self, routes: &[Route], envelope: &Envelope, dialect: Dialect) -> StoreResult<S, Choice> {
        let same_session = |route: &Route| {
            envelope.thread.is_none() || route.thread.is_none() || route.thread == envelope.thread
        };
        let named = envelope.run.is_some();
        let by_run =
            routes.iter().rposition(|route| named && route.run == envelope.run && same_session(route));
        let last = routes.iter().rposition(same_session);
        let Some(at) = by_run.or(last) else { return Ok(Choice::New { cuts: None }) };
        let Some(run) = self.heads.take_run_by_id(&self.store, routes[at].to)? else {
            return Ok(Choice::New { cuts: None });
        };
        let status = run.head.state.status;
        let another = named && routes[at].run.is_some() && routes[at].run != envelope.run;
        let takes = if another {
            // An answered interrupt goes on under a new run id, and is the same run.
            dialect.resumes_as_new_run() && status == Status::Suspended
        } else {
            let begins = envelope.begins && !named && status == Status::Running;
            // A run that has ended takes no more frames, and only one that says so begins it anew.
            let begins_anew = if by_run.is_some() { envelope.begins } else { envelope.starts };
            !(begins || (status.is_closed() && begins_anew))
        };
        self.heads.put_run(run);
        if takes {
            return Ok(Choice::Known { at });
        }
        Ok(Choice::New { cuts: (!status.is_closed()).then_some(at) })
    }

    /// Makes a run of a thread under the source's id, unless that is taken.
    fn run_of_source(
        &mut self,
        thread: &mut ThreadHead,
        source: Option<&str>,
    ) -> StoreResult<S, Box<RunHead>> {
        let tenant = &thread.key.tenant;
        let wanted = source.filter(|id| is_usable_id(id)).map(|id| RunKey::new(tenant.clone(), id));
        let key = match wanted {
            Some(key) if !self.heads.has_run(&self.store, &key)? => key,
            _ => RunKey::new(tenant.clone(), mint()),
        };
        let run = self.new_run(key, thread, RunOrigin::default(), self.now)?;
        thread.open.push(run.id);
        Ok(run)
    }
}

/// Decodes a frame into a scratch state: only a valid frame may end a run and open another.
fn try_elsewhere(decoder: &Decoder, frame: FrameIn<'_>) -> Result<(), FrameProblem> {
    let (mut state, window, mut entries) = (RunState::new("", ""), Window::default(), Vec::new());
    let mut builder =
        RecordBuilder::new(&mut state, &window, Authority::Producer, decoder.dialect(), 1, &mut entries);
    let opened = decoder.open(frame.name, frame.data)?;
    Ok(decoder.clone().decode(opened, &mut builder)?)
}

/// Updates the route of a frame, so that the next ones of its session and run follow it.
fn follow(routes: &mut Vec<Route>, known: Option<usize>, envelope: Envelope, to: i64) {
    let route = match known {
        Some(at) => {
            let mut route = routes.remove(at);
            // The source may name its run later, or rename it after an interrupt.
            route.run = envelope.run.or(route.run);
            route.thread = route.thread.or(envelope.thread);
            route
        }
        None => Route { thread: envelope.thread, run: envelope.run, to },
    };
    remember(routes, route);
}

/// Adds a route, and drops the least recently used one if there are too many.
pub(super) fn remember(routes: &mut Vec<Route>, route: Route) {
    if routes.len() == ROUTES {
        routes.remove(0);
    }
    routes.push(route);
}
