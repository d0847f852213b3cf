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
use super::{CommandResult, StoreResult, Txn, TxnStore, producer};
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
struct Named<'a> {
    thread: Option<&'a str>,
    /// Only one that can be the id of a run.
    run: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn in_envelope(envelope: &'a Envelope, dialect: Dialect) -> Self {
        let run = envelope.run.as_deref().filter(|id| is_usable_id(id));
        let thread = envelope.thread.as_deref();
        // An Agio frame without a thread has its run's id in its place; the run's own thread wins.
        let thread = thread.filter(|id| dialect != Dialect::Agio || Some(*id) != run);
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
        let written = self.write_to_tenant(&mut row, append)?;
        let accepted = written.as_ref().map_or(0, |appended| appended.accepted);
        if accepted == 0 && self.heads.is_fresh_thread(&row) {
            // Nothing was written: drop the new thread.
            return Ok(written);
        }
        self.put_thread(row);
        Ok(written)
    }

    fn write_to_tenant(&mut self, row: &mut ThreadHead, append: &Append) -> CommandResult<S, Appended> {
        let (tenant, name) = (row.key.tenant.clone(), producer::name_of(append));
        let mut producer = match producer::head_among(&row.producers, name, limits::TENANT_PRODUCERS) {
            Ok(producer) => producer,
            Err(refused) => return Ok(Err(refused)),
        };
        let routed_as = format!(" {name}");
        let checking = Checking::of(append);
        let (mut threads, mut last_seq) = (Vec::new(), 0);
        let written = self.write_new_frames(&mut producer, append, |txn, producer, decoder, frame| {
            let dialect = decoder.dialect();
            if !dialect.names_its_session() {
                return Ok(Err(LogError::NeedsRun(dialect).into()));
            }
            let writer = Writer { tenant: &tenant, routed_as: &routed_as, dialect, checking };
            Ok(txn.merge_frame(&writer, &mut producer.state.routes, frame)?.map(|(thread, seq)| {
                last_seq = seq;
                if !threads.contains(&thread) {
                    threads.push(thread);
                }
            }))
        })?;
        Ok(written.map(|appended| {
            producer::keep(&mut row.producers, name, producer);
            Appended { threads, last_seq, ..appended }
        }))
    }

    /// Writes a frame to the thread and the run that it names; returns that thread and its last `seq`.
    ///
    /// `aliases` are the runs that have another id here than the source gives them.
    fn merge_frame(
        &mut self,
        writer: &Writer<'_>,
        aliases: &mut Vec<Route>,
        frame: FrameIn<'_>,
    ) -> StoreResult<S, Result<(Arc<str>, u64), FrameProblem>> {
        let opened = match Decoder::new(writer.dialect).open(frame.name, frame.data) {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error.into())),
        };
        let named = Named::in_envelope(&opened.envelope, writer.dialect);
        let mut thread = match (named.thread, named.run) {
            (Some(id), _) if !is_usable_id(id) => return Ok(Err(unusable(writer.dialect).into())),
            (Some(id), _) => self.thread_named(writer.tenant, id)?,
            (None, Some(run)) => self.thread_of_run_named(writer.tenant, run, aliases)?,
            (None, None) => return Ok(Err(LogError::NoSession.into())),
        };
        let written = self.merge_into(&mut thread, writer, &named, aliases, frame)?;
        if written.is_err() && self.heads.is_fresh_thread(&thread) {
            return Ok(written.map(|()| (thread.key.id.clone(), 0)));
        }
        let position = (thread.key.id.clone(), thread.seq);
        self.put_thread(thread);
        Ok(written.map(|()| position))
    }

    fn merge_into(
        &mut self,
        thread: &mut ThreadHead,
        writer: &Writer<'_>,
        named: &Named<'_>,
        aliases: &mut Vec<Route>,
        frame: FrameIn<'_>,
    ) -> StoreResult<S, Result<(), FrameProblem>> {
        if thread.deleted {
            return Ok(Err(LogError::ThreadDeleted(thread.key.id.to_string()).into()));
        }
        let mut routed = match producer::head_of(&thread.producers, writer.routed_as) {
            Ok(routed) => routed,
            Err(refused) => return Ok(Err(refused.into())),
        };
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
        let written =
            self.route_frame(thread, &mut routed, &mut decoder, frame, sessions, writer.checking)?;
        if written.is_err() {
            return Ok(written);
        }
        routed.state.decoder = Some(decoder);
        if let (Some(run), Some(route)) = (named.run, routed.state.routes.last()) {
            self.note_alias(thread, run, route.to, aliases)?;
        }
        producer::keep(&mut thread.producers, writer.routed_as, routed);
        Ok(Ok(()))
    }

    /// Returns the thread that a frame names, created if missing.
    fn thread_named(&mut self, tenant: &Arc<str>, id: &str) -> StoreResult<S, Box<ThreadHead>> {
        let key = ThreadKey::new(tenant.clone(), id);
        match self.heads.take_thread(&self.store, &key)? {
            Some(thread) => Ok(thread),
            None => self.new_thread(key, false, self.now),
        }
    }

    /// Returns the thread of a run that a frame names, created if missing.
    fn thread_of_run_named(
        &mut self,
        tenant: &Arc<str>,
        run: &str,
        aliases: &[Route],
    ) -> StoreResult<S, Box<ThreadHead>> {
        let alias = aliases.iter().rfind(|alias| alias.run.as_deref() == Some(run));
        if let Some(thread) = alias.and_then(|alias| alias.thread.as_deref()) {
            return self.thread_named(tenant, thread);
        }
        let key = RunKey::new(tenant.clone(), run);
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
    let field = match dialect {
        Dialect::Agio => "metadata.thread_id",
        Dialect::StreamingEngine => "data.session_id",
        Dialect::SocialApp => "threadId",
        Dialect::EasyflowChat => "conversation_id",
        Dialect::Runwire => "thread_id",
        _ => "session_id",
    };
    let problem =
        format!("must be 1 to {} bytes without control characters, to be a thread's id", limits::ID_BYTES);
    FieldError::new(field, problem).into()
}
