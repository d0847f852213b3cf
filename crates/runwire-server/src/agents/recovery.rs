//! What an earlier server has left: each of its open runs is taken up again, or ends.
//!
//! | agent | waits for a person, or was not told the answer yet | anything else |
//! |---|---|---|
//! | `http` | goes on | `producer_lost`: its stream went with the server |
//! | `exec` | `producer_lost`: so did its program | `producer_lost` |
//! | `demo` | goes on | goes on |
//!
//! A run that nothing was written to is left to its lease.

use std::sync::Arc;

use runwire_log::{LogError, RunInfo, RunKey, RunQuery};
use runwire_model::event::{Body, RunStarted};
use runwire_model::run::Status;

use super::config::{Agent, AgentKind};
use super::delivery::{self, Delivery};
use super::ending::Ending;
use super::job::{Begin, Left};
use super::signals::{Signal, signals_in};
use super::{Agents, Input};
use crate::limits;

impl Agents {
    /// Takes up the runs of agents that are open. Nobody may start any meanwhile.
    pub(crate) async fn recover(&self) {
        if self.agents.is_empty() {
            return;
        }
        if let Err(error) = self.recover_all().await {
            tracing::warn!(%error, "cannot look for runs whose agents went with an earlier server");
        }
    }

    async fn recover_all(&self) -> Result<(), LogError> {
        for tenant in self.log.tenants_with_open_runs().await? {
            let tenant = tenant.into();
            for status in [Status::Running, Status::Suspended] {
                self.recover_those(&tenant, status).await?;
            }
        }
        Ok(())
    }

    async fn recover_those(&self, tenant: &Arc<str>, status: Status) -> Result<(), LogError> {
        let mut before = None;
        loop {
            let query = RunQuery {
                tenant: tenant.to_string(),
                statuses: vec![status],
                before,
                limit: limits::LIST_ITEMS,
                ..RunQuery::default()
            };
            let runs = self.log.runs(query).await?;
            for run in &runs {
                let agent = run.agent.as_deref().and_then(|name| self.find(name));
                let Some(agent) = agent else { continue };
                let key = RunKey::new(tenant.clone(), run.run_id.as_str());
                // One that cannot be taken up is left to its lease, and keeps no other from it.
                if let Err(error) = self.recover_run(agent, run, key).await {
                    tracing::warn!(run = run.run_id, %error, "cannot take up a run");
                }
            }
            before = runs.last().map(|run| run.run_id.clone());
            if runs.len() < limits::LIST_ITEMS {
                return Ok(());
            }
        }
    }

    async fn recover_run(&self, agent: &Arc<Agent>, run: &RunInfo, key: RunKey) -> Result<(), LogError> {
        if !delivery::has_written(&*self.log, &key).await? {
            // Somebody else writes it, under the same name.
            return Ok(());
        }
        let (input, left) = match agent.kind {
            AgentKind::Exec(_) => (Input::default(), None),
            AgentKind::Http(_) => {
                let (input, left) = self.look_at(run, &key).await?;
                // Whoever wanted it to stop does not want it to be asked again.
                let goes_on = !left.is_cancelled && (left.is_suspended || left.resumed.is_some());
                (input, goes_on.then_some(left))
            }
            AgentKind::Demo(_) => {
                let (input, left) = self.look_at(run, &key).await?;
                (input, Some(left))
            }
        };
        match (left, self.place()) {
            (Some(left), Ok(place)) => {
                tracing::info!(run = run.run_id, agent = agent.name, "taking up a run");
                self.begin(place, agent.clone(), run, key, input, Begin::Left(left));
            }
            _ => {
                tracing::info!(run = run.run_id, agent = agent.name, "ending a run whose agent is gone");
                let ending = match run.summary.cancel_requested {
                    true => Ending::Cancelled { reason: None },
                    false => Ending::producer_lost(),
                };
                let mut delivery = Delivery::take_up(self.log.clone(), &key, agent.kind.dialect()).await?;
                delivery.end(ending).await;
            }
        }
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
