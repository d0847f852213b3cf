//! What the server does of its own accord or when it is asked: making threads and runs, stopping them, and
//! ending those that nobody writes any more.

use std::time::Instant;

use runwire_model::Timestamp;
use runwire_model::event::{
    Decision, ErrorInfo, Event, InteractionResolved, RunCancelRequested, RunCancelled, RunFailed,
};
use runwire_model::run::Status;

use super::heads::{Request, RunHead, ThreadHead};
use super::leases::Lease;
use super::writer::{Db, Done, Writer, mint};
use crate::error::LogError;
use crate::info::{Created, InteractionInfo, NewRun, NewThread, RunInfo, ThreadInfo};
use crate::key::{RunKey, ThreadKey};
use crate::{Cancel, Cancelled};

impl Writer {
    /// Gives every open run a full term.
    pub(super) fn begin_leases(&mut self) -> Db<()> {
        let sql = "SELECT id, status, deadline, json_extract(head, '$.summary.cancel_requested') FROM run \
                   INDEXED BY run_open WHERE status IN ('pending', 'running', 'suspended')";
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            let status: String = row.get(1)?;
            let stopping: Option<bool> = row.get(3)?;
            Ok((row.get::<_, i64>(0)?, status, row.get::<_, Option<u64>>(2)?, stopping == Some(true)))
        })?;
        let start = Instant::now();
        for row in rows {
            let (run, status, deadline, stopping) = row?;
            let lease = match (status.as_str(), deadline) {
                ("suspended", _) | (_, None) if stopping => {
                    Lease::Stopping(start + self.options.cancel_grace)
                }
                // Also a run that was being imported has a deadline, which is long.
                (_, Some(deadline)) => Lease::Asking(deadline),
                _ => Lease::Alive(start + self.options.lease),
            };
            self.leases.set(run, lease);
        }
        Ok(())
    }

    pub(super) fn create_thread(&mut self, new: &NewThread) -> Done<Created<ThreadInfo>> {
        let id = new.thread_id.clone().unwrap_or_else(mint);
        let key = ThreadKey::new(new.tenant.as_str(), id.as_str());
        let known = self.heads.take_thread(&self.connection, &key)?;
        let is_new = known.is_none();
        let now = self.now();
        let thread = known.unwrap_or_else(|| self.heads.new_thread(key, new.parallel, now));
        let result = if thread.deleted {
            Err(LogError::ThreadDeleted(id))
        } else if thread.parallel != new.parallel {
            Err(LogError::ThreadExists(id))
        } else {
            let info = ThreadInfo {
                thread_id: id,
                parallel: thread.parallel,
                created_at: thread.created_at,
                head: thread.seq,
                oldest: 1,
                open_runs: Vec::new(),
                runs: 0,
                title: None,
                latest: None,
            };
            Ok(Created { value: info, new: is_new })
        };
        self.touched_threads.insert(thread.id);
        self.heads.put_thread(thread);
        Ok(result)
    }

    pub(super) fn create_run(&mut self, new: &NewRun) -> Done<Created<RunInfo>> {
        let key = RunKey::new(new.tenant.as_str(), new.run_id.clone().unwrap_or_else(mint));
        let request = Request::of(new);
        if let Some(run) = self.heads.take_run(&self.connection, &key)? {
            let thread = self.thread_of(&run)?;
            let result = if thread.deleted {
                Err(LogError::ThreadDeleted(thread.key.id.to_string()))
            } else if run.request.is_same(&request) {
                Ok(Created { value: run.info(), new: false })
            } else {
                Err(LogError::RunExists(key.id.to_string()))
            };
            self.heads.put_thread(thread);
            self.heads.put_run(run);
            return Ok(result);
        }
        let thread = match &new.thread_id {
            Some(thread) => self.thread_to_join(&key.thread(thread.as_str()), self.now())?,
            None => Ok(self.thread_of_its_own(&key, self.now())?),
        };
        let mut thread = match thread {
            Ok(thread) => thread,
            Err(refused) => return Ok(Err(refused)),
        };
        let run = self.heads.new_run(key, &thread, request, self.now());
        thread.open.push(run.id);
        self.leases.renew(&run, self.options.lease);
        let info = run.info();
        self.put(thread, run);
        Ok(Ok(Created { value: info, new: true }))
    }

    pub(super) fn cancel(&mut self, key: &RunKey, cancel: Cancel) -> Done<Cancelled> {
        self.on_run(key, |writer, thread, run| {
            let new = match run.head.state.status {
                Status::Pending | Status::Suspended => {
                    let event = Event::new(RunCancelled { reason: cancel.reason, ..Default::default() });
                    writer.act(thread, run, vec![event])?.is_ok()
                }
                Status::Running if !run.head.summary.cancel_requested => {
                    let event = Event::new(RunCancelRequested { reason: cancel.reason, by: cancel.by });
                    let asked = writer.act(thread, run, vec![event])?.is_ok();
                    if asked {
                        writer.leases.stop(run.id, writer.options.cancel_grace);
                    }
                    asked
                }
                _ => false,
            };
            Ok(Cancelled { run: run.info(), new })
        })
    }

    pub(super) fn heartbeat(&mut self, key: &RunKey) -> Done<RunInfo> {
        self.on_run(key, |writer, _, run| {
            if !run.head.state.status.is_closed() {
                writer.leases.renew(run, writer.options.lease);
            }
            Ok(run.info())
        })
    }

    /// Works on a run and its thread, unless that is gone.
    pub(super) fn on_run<T>(
        &mut self,
        key: &RunKey,
        work: impl FnOnce(&mut Self, &mut ThreadHead, &mut RunHead) -> Db<T>,
    ) -> Done<T> {
        let Some(mut run) = self.heads.take_run(&self.connection, key)? else {
            return Ok(Err(LogError::RunUnknown(key.id.to_string())));
        };
        let mut thread = self.thread_of(&run)?;
        let result = if thread.deleted {
            Err(LogError::ThreadDeleted(thread.key.id.to_string()))
        } else {
            Ok(work(self, &mut thread, &mut run)?)
        };
        self.put(thread, run);
        Ok(result)
    }

    /// Closes the runs whose lease ran out.
    pub(super) fn sweep(&mut self) -> Db<usize> {
        let mut closed = 0;
        for (id, lease) in self.leases.due(self.now()) {
            let Some(mut run) = self.heads.take_run_by_id(&self.connection, id)? else {
                self.leases.remove(id);
                continue;
            };
            let mut thread = self.thread_of(&run)?;
            let events = match lease {
                Lease::Alive(_) => vec![producer_lost(&run)],
                Lease::Stopping(_) => vec![Event::new(RunCancelled::default())],
                Lease::Asking(_) => expired(&run, self.now()),
            };
            // Only a closed run refuses, and that has no lease.
            if self.act(&mut thread, &mut run, events)?.is_err() {
                self.leases.remove(id);
            }
            closed += usize::from(run.head.state.status.is_closed());
            self.put(thread, run);
        }
        Ok(closed)
    }
}

fn producer_lost(run: &RunHead) -> Event {
    let error = ErrorInfo::coded("producer_lost", lost_because(run));
    Event::new(RunFailed { error, ..Default::default() })
}

/// Tells why a run has lost its producer; one that nobody ever wrote may wait for an agent that is none.
fn lost_because(run: &RunHead) -> String {
    if run.head.state.status != Status::Pending {
        return "the producer was silent for longer than its lease".to_owned();
    }
    let message = "nothing was written to the run before its lease ran out";
    match &run.request.agent {
        Some(agent) => format!(
            "{message}; a server starts only its own agents (GET /v1/agents lists them), and `{agent}` may be none"
        ),
        None => message.to_owned(),
    }
}

/// Tells what becomes of a run whose time to wait for an answer is over: the questions that have expired are
/// resolved, and a run that waits without a question has lost its producer.
pub(super) fn expired(run: &RunHead, now: Timestamp) -> Vec<Event> {
    let is_due = |asked: &&InteractionInfo| asked.expires_at.is_none_or(|at| at <= now.0);
    let open = run.head.summary.interactions.iter().filter(|asked| asked.is_open());
    let resolved = open.filter(is_due).map(|asked| {
        Event::new(InteractionResolved {
            interaction_id: asked.interaction_id.clone(),
            decision: Decision::Expired,
            ..Default::default()
        })
    });
    let resolved: Vec<_> = resolved.collect();
    if resolved.is_empty() { vec![producer_lost(run)] } else { resolved }
}
