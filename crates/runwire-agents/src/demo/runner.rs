//! Runs the built-in demo agents: scripts of events, written at a pace that people can follow.
//!
//! A script is deterministic. So an orphaned run is resumed by replaying the script from its start with the stored
//! answers, and skipping the events that are already written.

use std::time::Duration;

use runwire_model::RunFailureCode;
use runwire_model::event::InteractionResolved;

use crate::agent_writer::{AgentWriteError, AgentWriter};
use crate::config::DemoAgent;
use crate::demo::{Script, ScriptStep};
use crate::job::{Job, OrphanState};
use crate::outcome::AgentOutcome;
use crate::signals::{RecordFollower, RunSignal};

/// Speed factor of a fast script.
const FAST_PACE: u32 = 100;

/// Runs the script until the run ends or the server stops.
pub(crate) async fn run(
    job: &Job,
    agent: &DemoAgent,
    mut writer: AgentWriter,
    follower: RecordFollower,
    orphan: Option<OrphanState>,
) {
    let message = job.input.message.as_deref().unwrap_or_default();
    let Some(script) = Script::new(&agent.script, message, &job.run.id) else {
        let message = format!("there is no demo called `{}`", agent.script);
        return job.end(&mut writer, AgentOutcome::failed(RunFailureCode::NotStarted, message)).await;
    };
    let orphan = orphan.unwrap_or_default();
    let skip = writer.written();
    let mut runner = ScriptRunner {
        job,
        script,
        writer,
        follower,
        answers: orphan.answers,
        skip,
        is_cancelled: false,
        pace: if agent.fast { FAST_PACE } else { 1 },
    };
    if orphan.is_cancelled {
        runner.skip_written();
        runner.cancel();
    }
    match runner.run_script().await {
        Ok(())
        | Err(
            ScriptHalt::Leave
            | ScriptHalt::AgentWriteError(AgentWriteError::Closed | AgentWriteError::Fenced),
        ) => {}
        Err(ScriptHalt::AgentWriteError(AgentWriteError::Refused)) => {
            job.end(&mut runner.writer, AgentOutcome::store_damaged()).await
        }
        Err(ScriptHalt::AgentWriteError(error)) => {
            tracing::warn!(run = &*job.run.id, agent = job.agent.name, %error, "a demo cannot be told");
        }
    }
}

/// Why a script stops early.
enum ScriptHalt {
    /// The run has ended, or the server stops and another one resumes the run.
    Leave,
    /// No more can be written.
    AgentWriteError(AgentWriteError),
}

impl From<AgentWriteError> for ScriptHalt {
    fn from(error: AgentWriteError) -> Self {
        Self::AgentWriteError(error)
    }
}

struct ScriptRunner<'a> {
    job: &'a Job,
    script: Script,
    writer: AgentWriter,
    follower: RecordFollower,
    /// Answers that the script has not received.
    answers: Vec<InteractionResolved>,
    /// Number of events that are already written.
    skip: u64,
    is_cancelled: bool,
    pace: u32,
}

impl ScriptRunner<'_> {
    async fn run_script(&mut self) -> Result<(), ScriptHalt> {
        let job = self.job;
        loop {
            let Some(permit) = job.acquire_run_permit(&mut self.writer, &mut self.follower).await else {
                return Err(ScriptHalt::Leave);
            };
            let interaction_id = job.with_heartbeat(self.run_to_interaction()).await?;
            // A run that waits for a person holds no permit.
            drop(permit);
            let Some(interaction_id) = interaction_id else { return Ok(()) };
            while !self.answer_script(&interaction_id) {
                self.wait_for_signals(None).await?;
            }
        }
    }

    /// Runs the script to an interaction without an answer, or to its end.
    async fn run_to_interaction(&mut self) -> Result<Option<String>, ScriptHalt> {
        loop {
            match self.script.next() {
                ScriptStep::Emit(_) if self.skip > 0 => self.skip -= 1,
                ScriptStep::Emit(event) => {
                    self.writer.write_event(&event).await?;
                    tokio::task::consume_budget().await;
                }
                ScriptStep::Pause(_) if self.skip > 0 => {}
                ScriptStep::Pause(time) => self.wait_for_signals(Some(time / self.pace)).await?,
                ScriptStep::Ask { interaction_id } if self.answer_script(&interaction_id) => {}
                ScriptStep::Ask { interaction_id } => return Ok(Some(interaction_id)),
                ScriptStep::End => return Ok(None),
            }
        }
    }

    /// Replays the events that are already written, without pauses.
    fn skip_written(&mut self) {
        while self.skip > 0 {
            match self.script.next() {
                ScriptStep::Emit(_) => self.skip -= 1,
                ScriptStep::Pause(_) => {}
                ScriptStep::Ask { interaction_id } if self.answer_script(&interaction_id) => {}
                ScriptStep::Ask { .. } | ScriptStep::End => return,
            }
        }
    }

    /// Passes the stored answer of an interaction to the script; returns false if there is none. A cancelled script needs
    /// no answer.
    fn answer_script(&mut self, interaction_id: &str) -> bool {
        if self.is_cancelled {
            return true;
        }
        let at = self.answers.iter().position(|answer| answer.interaction_id == interaction_id);
        at.is_some_and(|at| self.script.answer(&self.answers.remove(at)))
    }

    fn cancel(&mut self) {
        self.script.cancel();
        self.is_cancelled = true;
    }

    /// Waits for a time; without one, until an answer, a cancel request or the end.
    async fn wait_for_signals(&mut self, time: Option<Duration>) -> Result<(), ScriptHalt> {
        let until = time.map(|time| tokio::time::Instant::now() + time);
        loop {
            let signals = tokio::select! {
                signals = self.follower.signals() => signals,
                () = self.job.server_stops() => return Err(ScriptHalt::Leave),
                () = sleep_until(until) => return Ok(()),
            };
            let mut is_answered = false;
            for signal in signals {
                match signal {
                    RunSignal::Answered(resolved) => {
                        self.answers.push(resolved);
                        is_answered = true;
                    }
                    RunSignal::CancelRequested { .. } => {
                        self.cancel();
                        return Ok(());
                    }
                    RunSignal::Closed { .. } => return Err(ScriptHalt::Leave),
                    RunSignal::Suspended | RunSignal::Resumed { .. } => {}
                }
            }
            if is_answered && until.is_none() {
                return Ok(());
            }
        }
    }
}

async fn sleep_until(until: Option<tokio::time::Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
