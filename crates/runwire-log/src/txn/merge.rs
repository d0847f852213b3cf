//! Appends to a whole tenant: each frame goes to the thread and the run that it names.
//!
//! The position of a producer is kept in one row of the tenant ([`ThreadKey::of_tenant`]); the runs that its frames
//! go to, in the row of each thread. An append is one commit, so that a retry finds all of it written, or none.

use std::collections::HashSet;
use std::sync::Arc;

use runwire_model::dialect::{DecodeError, Decoder, Dialect, Envelope, detect};
use runwire_model::json::{FieldError, Object};

use super::check::Checking;
use super::heads::{Route, ThreadHead};
use super::route::{Sessions, remember};
use super::{CommandError, CommandResult, StoreResult, Txn, TxnStore, producer};
use crate::append::{Append, Appended, FrameIn, Target};
use crate::error::{FrameProblem, LogError};
use crate::key::{RunKey, ThreadKey, is_usable_id};
use crate::limits;

/// An append whose frames name their threads, with what they name.
pub(crate) struct Merge {
    pub(crate) append: Append,
    /// The row of the tenant first.
    pub(crate) threads: Vec<ThreadKey>,
    pub(crate) runs: Vec<RunKey>,
}

impl Merge {
    /// Collects the threads and runs that the frames name, as far as that is known before they are executed.
    pub(crate) fn of(append: Append) -> Self {
        let Target::Tenant(tenant) = append.target.clone() else {
            return Self { append, threads: Vec::new(), runs: Vec::new() };
        };
        let (mut threads, mut runs) = (HashSet::new(), HashSet::new());
        let mut dialect = append.dialect;
        for frame in append.frames.iter() {
            dialect = dialect.or_else(|| detect(&Object::parse(frame.data).ok()?).ok());
            let Some(dialect) = dialect else { continue };
            let Ok(opened) = Decoder::new(dialect).open(frame.name, frame.data) else { continue };
            let named = Named::in_envelope(&opened.envelope, dialect);
            threads.extend(named.thread.filter(|id| is_usable_id(id)).map(str::to_owned));
            runs.extend(named.run.map(str::to_owned));
        }
        let of_tenant = std::iter::once(ThreadKey::of_tenant(tenant.clone()));
        let threads = of_tenant.chain(threads.into_iter().map(|id| ThreadKey::new(tenant.clone(), id)));
        let runs = runs.into_iter().map(|id| RunKey::new(tenant.clone(), id));
        Self { append, threads: threads.collect(), runs: runs.collect() }
    }
}

/// What a frame names.
pub(super) struct Named<'a> {
    pub(super) thread: Option<&'a str>,
    /// Only one that can be the id of a run.
    run: Option<&'a str>,
}

impl<'a> Named<'a> {
    pub(super) fn in_envelope(envelope: &'a Envelope, dialect: Dialect) -> Self {
        let run = envelope.run.as_deref().filter(|id| is_usable_id(id));
        let thread = envelope.thread.as_deref();
        // Where the run's id stands for the thread's, the run's own thread wins.
        let thread = thread.filter(|id| !dialect.run_stands_for_thread() || Some(*id) != run);
        Self { thread, run }
    }
}

/// The producer of a tenant that writes.
struct Writer<'a> {
    tenant: &'a Arc<str>,
    /// The name under which a thread keeps the routes of this producer: no producer of the thread itself can have it.
    routed_as: &'a str,
    dialect: Dialect,
    checking: Checking,
    /// Whether threads that it creates may have several runs at once.
    parallel: bool,
}

/// Where a refused frame belongs.
#[derive(Default)]
struct Belongs {
    thread: Option<Arc<str>>,
    run: Option<Arc<str>>,
}

impl<S: TxnStore> Txn<S> {
    pub(crate) fn append_to_tenant(
        &mut self,
        tenant: &Arc<str>,
        append: &Append,
    ) -> CommandResult<S, Appended> {
        let key = ThreadKey::of_tenant(tenant.clone());
        let mut row = match self.heads.take_thread(&self.store, &key)? {
            Some(row) => row,
            None => self.new_thread(key, false, self.now)?,
        };
        let written = self.write_to_tenant(&mut row, append);
        let accepted = match &written {
            Ok(appended) => appended.accepted,
            Err(CommandError::Refused(_)) => 0,
            Err(CommandError::Store(_)) => return written,
        };
        if accepted == 0 && self.heads.is_fresh_thread(&row) {
            // Nothing was written: drop the new thread.
            return written;
        }
        self.put_thread_if_changed(row);
        written
    }

    fn write_to_tenant(&mut self, row: &mut ThreadHead, append: &Append) -> CommandResult<S, Appended> {
        let (tenant, name) = (row.key.tenant.clone(), producer::name_of(append));
        let silent = producer::silent_for_longest(&row.producers, name, self.now);
        let limit = limits::TENANT_PRODUCERS + usize::from(silent.is_some());
        let producer = producer::head_among(&row.producers, name, limit);
        let too_many = || LogError::TooManyProducers(limits::TENANT_PRODUCERS);
        let mut producer = producer.map_err(|_| Self::refuse(too_many()))?;
        let routed_as = format!(" {name}");
        let checking = Checking::of(append);
        let (mut threads, mut last_seq) = (Vec::new(), 0);
        let mut refused = Belongs::default();
        let mut appended =
            self.write_new_frames(&mut producer, append, |txn, producer, decoder, frame| {
                let dialect = decoder.dialect();
                if !dialect.names_its_session() {
                    return Err(Self::refuse(LogError::NeedsRun(dialect).into()));
                }
                let parallel = append.parallel;
                let writer = Writer { tenant: &tenant, routed_as: &routed_as, dialect, checking, parallel };
                let aliases = &mut producer.state.routes;
                let (thread, seq) = txn.merge_frame(&writer, aliases, frame, &mut refused)?;
                last_seq = seq;
                if !threads.contains(&thread) {
                    threads.push(thread);
                }
                Ok(())
            })?;
        if appended.accepted > 0 {
            producer.state.written_at = Some(self.now.0);
        }
        producer::keep(&mut row.producers, name, producer);
        if let Some(silent) = silent.filter(|_| row.producers.len() > limits::TENANT_PRODUCERS) {
            row.producers.remove(&silent);
            row.forgotten.push(silent);
        }
        if let Some(fault) = &mut appended.fault {
            (fault.thread, fault.run) = (refused.thread, refused.run);
        }
        Ok(Appended { threads, last_seq, ..appended })
    }

    /// Writes a frame to the thread and the run that it names; returns that thread and its last `seq`.
    ///
    /// `aliases` are the runs that have another id here than the source gives them.
    fn merge_frame(
        &mut self,
        writer: &Writer<'_>,
        aliases: &mut Vec<Route>,
        frame: FrameIn<'_>,
        refused: &mut Belongs,
    ) -> CommandResult<S, (Arc<str>, u64), FrameProblem> {
        let decoder = Decoder::new(writer.dialect);
        let opened = decoder.open(frame.name, frame.data);
        let opened = opened.map_err(|error| Self::refuse(FrameProblem::from(error)))?;
        let named = Named::in_envelope(&opened.envelope, writer.dialect);
        let mut thread = match (named.thread, named.run) {
            (Some(id), _) if !is_usable_id(id) => return Err(Self::refuse(unusable(writer.dialect).into())),
            (Some(id), _) => self.thread_named(writer, id)?,
            (None, Some(run)) => self.thread_of_run_named(writer, run, aliases)?,
            (None, None) => return Err(Self::refuse(LogError::NoSession.into())),
        };
        let written = self.merge_into(&mut thread, writer, &named, aliases, frame);
        if let Err(CommandError::Refused(problem)) = written {
            *refused = Belongs {
                run: self.run_of_frame(&thread, writer, &named)?,
                thread: Some(thread.key.id.clone()),
            };
            if !self.heads.is_fresh_thread(&thread) {
                self.put_thread_if_changed(thread);
            }
            return Err(Self::refuse(problem));
        }
        written?;
        let position = (thread.key.id.clone(), thread.seq);
        self.put_thread(thread);
        Ok(position)
    }

    fn merge_into(
        &mut self,
        thread: &mut ThreadHead,
        writer: &Writer<'_>,
        named: &Named<'_>,
        aliases: &mut Vec<Route>,
        frame: FrameIn<'_>,
    ) -> CommandResult<S, (), FrameProblem> {
        if thread.deleted {
            return Err(Self::refuse(LogError::ThreadDeleted(thread.key.id.to_string()).into()));
        }
        let routed = producer::head_of(&thread.producers, writer.routed_as);
        let mut routed = routed.map_err(|refused| Self::refuse(FrameProblem::from(refused)))?;
        if let Some(run) = named.run
            && routed.state.routes.iter().all(|route| route.run.as_deref() != Some(run))
        {
            let route = self.route_to_run(thread, run)?;
            route.into_iter().for_each(|route| remember(&mut routed.state.routes, route));
        }
        // What a decoder remembers between two frames belongs to one session.
        let own = routed.state.decoder.take().filter(|decoder| decoder.dialect() == writer.dialect);
        let mut decoder = own.unwrap_or_else(|| Decoder::new(writer.dialect));
        let sessions = Sessions::AreThreads;
        self.route_frame(thread, &mut routed, &mut decoder, frame, sessions, writer.checking)?;
        routed.state.decoder = Some(decoder);
        if let (Some(run), Some(route)) = (named.run, routed.state.routes.last()) {
            self.note_alias(thread, run, route.to, aliases)?;
        }
        producer::keep(&mut thread.producers, writer.routed_as, routed);
        Ok(())
    }

    /// Finds the id of the run that a refused frame belongs to: here, else in its source.
    fn run_of_frame(
        &mut self,
        thread: &ThreadHead,
        writer: &Writer<'_>,
        named: &Named<'_>,
    ) -> StoreResult<S, Option<Arc<str>>> {
        let routes = thread.producers.get(writer.routed_as).map(|routed| &*routed.state.routes);
        let goes_there = |route: &&Route| named.run.is_none() || route.run.as_deref() == named.run;
        let route = routes.unwrap_or_default().iter().rfind(goes_there).map(|route| route.to);
        if let Some(to) = route
            && let Some(run) = self.heads.take_run_by_id(&self.store, to)?
        {
            let id = run.key.id.clone();
            self.heads.put_run(run);
            return Ok(Some(id));
        }
        Ok(named.run.map(Into::into))
    }

    /// Finds the thread that a frame names, or makes it.
    fn thread_named(&mut self, writer: &Writer<'_>, id: &str) -> StoreResult<S, Box<ThreadHead>> {
        let key = ThreadKey::new(writer.tenant.clone(), id);
        match self.heads.take_thread(&self.store, &key)? {
            Some(thread) => Ok(thread),
            None => self.new_thread(key, writer.parallel, self.now),
        }
    }

    /// Returns the thread of a run that a frame names, created if missing.
    fn thread_of_run_named(
        &mut self,
        writer: &Writer<'_>,
        run: &str,
        aliases: &[Route],
    ) -> StoreResult<S, Box<ThreadHead>> {
        let alias = aliases.iter().rfind(|alias| alias.run.as_deref() == Some(run));
        if let Some(thread) = alias.and_then(|alias| alias.thread.as_deref()) {
            return self.thread_named(writer, thread);
        }
        let key = RunKey::new(writer.tenant.clone(), run);
        match self.heads.take_run(&self.store, &key)? {
            Some(run) => {
                let thread = self.thread_of(&run);
                self.heads.put_run(run);
                thread
            }
            None => self.thread_of_its_own(&key, self.now),
        }
    }

    /// Returns the route to a run of a thread by its id.
    fn route_to_run(&mut self, thread: &ThreadHead, run: &str) -> StoreResult<S, Option<Route>> {
        let key = RunKey::new(thread.key.tenant.clone(), run);
        let Some(head) = self.heads.take_run(&self.store, &key)? else { return Ok(None) };
        let is_of_thread = head.thread == thread.id;
        let route = Route { thread: None, run: Some(run.to_owned()), to: head.id };
        self.heads.put_run(head);
        Ok(is_of_thread.then_some(route))
    }

    /// Remembers the run whose id was taken, so that frames that name only that id find it.
    fn note_alias(
        &mut self,
        thread: &ThreadHead,
        run: &str,
        to: i64,
        aliases: &mut Vec<Route>,
    ) -> StoreResult<S, ()> {
        let Some(head) = self.heads.take_run_by_id(&self.store, to)? else { return Ok(()) };
        let is_taken = *head.key.id != *run;
        self.heads.put_run(head);
        let is_known =
            aliases.last().is_some_and(|alias| alias.to == to && alias.run.as_deref() == Some(run));
        if is_known && is_taken {
            return Ok(());
        }
        aliases.retain(|alias| alias.run.as_deref() != Some(run));
        if is_taken {
            let (thread, run) = (Some(thread.key.id.to_string()), Some(run.to_owned()));
            remember(aliases, Route { thread, run, to });
        }
        Ok(())
    }
}

/// Makes the error for a session that cannot be the id of a thread.
fn unusable(dialect: Dialect) -> DecodeError {
    let field = dialect.thread_field();
    let problem =
        format!("must be 1 to {} bytes without control characters, to be a thread's id", limits::ID_BYTES);
    FieldError::new(field, problem).into()
}
