//! What servers have left that are gone: each open run of their agents is taken up again, or ends.
//!
//! | agent | waits for a person, or was not told the answer yet | nothing was written yet | anything else |
//! |---|---|---|---|
//! | `http` | goes on | starts, once more at most | `producer_lost`: its stream went with the server |
//! | `exec` | `producer_lost`: so did its program | starts, once more at most | `producer_lost` |
//! | `demo` | goes on | starts, once more at most | goes on |
//!
//! The log gives each run to one server. What the one before may still write is refused by its epoch.

use std::sync::Arc;

use runwire_log::{LogError, OrphanedRun, RunInfo, RunKey};
use runwire_model::event::{Body, RunStarted};
use runwire_model::run::Status;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use super::config::{Agent, AgentKind};
use super::delivery::{self, Delivery};
use super::ending::Ending;
use super::job::{Begin, Left};
use super::signals::{Signal, signals_in};
use super::{Agents, Input};
use crate::{limits, outage};

/// What becomes of a run that was left.
enum Fate {
    /// It is none of ours: somebody else writes it, under the same name.
    Others,
    /// Its agent works on it.
    Goes(Input, Begin),
    /// It ends.
    Ends,
}

impl Agents {
    /// Takes up the runs of agents whose server is gone, before anyone is served, as far as that is done soon.
    pub(crate) async fn recover_first(&self) {
        let all = async {
            for run in self.recover().await {
                // What it could not do was logged.
                let _ = run.await;
            }
        };
        if tokio::time::timeout(limits::RECOVERY_TIME, all).await.is_err() {
            tracing::info!("serving, while runs whose server is gone are still looked at");
        }
    }

    /// Takes up the runs of agents whose server is gone, as far as there is room for them; each is looked at on its
    /// own, so that none keeps another waiting.
    pub(crate) async fn recover(&self) -> Vec<JoinHandle<()>> {
        let names: Vec<_> = self.list().map(|agent| agent.name.as_str()).collect();
        let room = self.places.available_permits().min(limits::TAKE_UP_RUNS);
        if names.is_empty() || room == 0 || *self.shutdown.borrow() {
            return Vec::new();
        }
        let left = self.log.claim_orphans(&names, room).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot look for runs whose agents went with their server");
            Vec::new()
        });
        let look_at = |run| {
            let agents = self.clone();
            tokio::spawn(async move { agents.recover_run(run).await })
        };
        left.into_iter().map(look_at).collect()
    }

    async fn recover_run(&self, left: OrphanedRun) {
        let Some(agent) = left.run.agent.as_deref().and_then(|name| self.find(name)) else { return };
        let key = RunKey::new(left.tenant.as_str(), left.run.run_id.as_str());
        let run = left.run.run_id.as_str();
        let fate = outage::outlast(&self.shutdown, || self.fate_of(agent, &left, &key)).await;
        let done = match fate {
            Err(error) => Err(error),
            Ok(Fate::Others) => Ok(()),
            Ok(Fate::Goes(input, begin)) => {
                tracing::info!(run, agent = agent.name, "taking up a run");
                if let Some(place) = self.place_in_time(&key).await {
                    self.begin(place, agent.clone(), &left.run, key, input, begin);
                }
                Ok(())
            }
            Ok(Fate::Ends) => {
                tracing::info!(run, agent = agent.name, "ending a run whose agent is gone");
                self.end_left(agent, &left.run, &key).await
            }
        };
        if let Err(error) = done {
            // It is left to its lease.
            tracing::warn!(run, %error, "cannot take up a run");
        }
    }

    async fn fate_of(&self, agent: &Arc<Agent>, left: &OrphanedRun, key: &RunKey) -> Result<Fate, LogError> {
        let run = &left.run;
        let has_written = delivery::has_written(&*self.log, key).await?;
        if !has_written && !left.asked.is_started_here {
            return Ok(Fate::Others);
        }
        if run.status == Status::Pending {
            // Whoever takes it up leaves a trace: an agent that takes its servers down with it is not started for ever.
            return Ok(if has_written { Fate::Ends } else { Fate::Goes(asked(left), Begin::Anew) });
        }
        if matches!(agent.kind, AgentKind::Exec(_)) {
            return Ok(Fate::Ends);
        }
        let (input, left) = self.look_at(run, key).await?;
        // Whoever wanted it to stop does not want it to be asked again.
        let is_ready = !left.is_cancelled && (left.is_suspended || left.resumed.is_some());
        let goes_on = is_ready || matches!(agent.kind, AgentKind::Demo(_));
        Ok(if goes_on { Fate::Goes(input, Begin::Left(left)) } else { Fate::Ends })
    }

    /// Waits for a place, and keeps the run's lease meanwhile; gives none where the server stops first.
    async fn place_in_time(&self, run: &RunKey) -> Option<OwnedSemaphorePermit> {
        loop {
            tokio::select! {
                place = self.places.clone().acquire_owned() => return place.ok(),
                () = tokio::time::sleep(self.beat) => {
                    let _ = self.log.heartbeat(run).await;
                }
                () = outage::stopped(&self.shutdown) => return None,
            }
        }
    }

    async fn end_left(&self, agent: &Agent, run: &RunInfo, key: &RunKey) -> Result<(), LogError> {
        let ending = match run.summary.cancel_requested {
            true => Ending::Cancelled { reason: None },
            false => Ending::producer_lost(),
        };
        let dialect = agent.kind.dialect();
        let take_up = || Delivery::take_up(self.log.clone(), key, dialect);
        let delivery = outage::outlast(&self.shutdown, take_up).await?;
        delivery.until(self.shutdown.clone()).end(ending).await;
        Ok(())
    }

    /// Reads what a run was given, and how it was left.
    async fn look_at(&self, run: &RunInfo, key: &RunKey) -> Result<(Input, Left), LogError> {
        let thread = key.thread(run.thread_id.as_str());
        let mut left = Left { seq: run.first_seq.unwrap_or(1).saturating_sub(1), ..Left::default() };
        let mut input = Input::default();
        while left.seq < run.last_seq {
            let page = self.log.read(&thread, left.seq).await?;
            let Some(last) = page.records.last() else { break };
            let end = last.record.seq.min(run.last_seq);
            let records = page.records.iter().filter(|stored| *stored.run == *run.run_id);
            for stored in records.filter(|stored| stored.record.seq <= run.last_seq) {
                if let Some(started) = start_in(stored.record.entries.iter().map(|entry| &entry.event.body)) {
                    let RunStarted { message, message_id, input: given, .. } = started.clone();
                    input = Input { message, message_id, input: given };
                }
                if stored.record.dialect.is_some() && left.resumed.take().is_some() {
                    // The agent has said something since, so it was told.
                    left.untold.clear();
                }
                signals_in(stored).into_iter().for_each(|signal| left.note(signal));
            }
            left.seq = end;
        }
        Ok((input, left))
    }
}

/// Tells what a run was given that nothing was written to.
fn asked(left: &OrphanedRun) -> Input {
    let asked = left.asked.clone();
    Input { message: asked.message, message_id: asked.message_id, input: asked.input }
}

impl Left {
    fn note(&mut self, signal: Signal) {
        match signal {
            Signal::Suspended => self.is_suspended = true,
            Signal::Answered(resolved) => {
                self.answers.push(resolved.clone());
                self.untold.push(resolved);
            }
            Signal::Resumed { seq } => (self.is_suspended, self.resumed) = (false, Some(seq)),
            Signal::CancelRequested { .. } => self.is_cancelled = true,
            Signal::Closed { .. } => {}
        }
    }
}

/// Finds a run's start among events.
pub(crate) fn start_in<'a>(bodies: impl IntoIterator<Item = &'a Body>) -> Option<&'a RunStarted> {
    bodies.into_iter().find_map(|body| match body {
        Body::RunStarted(started) => Some(started),
        _ => None,
    })
}
