//! The built-in agents: scripts, told at a pace that people can follow.
//!
//! A script is the same whenever it is told. So a run that an earlier server has left is taken up by telling the
//! script from its beginning, with the answers that the log holds, and passing over what is written.

use std::time::Duration;

use runwire_model::event::InteractionResolved;

use super::agent_writer::{AgentWriteError, AgentWriter};
use super::config::DemoAgent;
use super::job::{Job, OrphanState};
use super::outcome::AgentOutcome;
use super::signals::{RecordFollower, RunSignal};
use crate::demo::{Script, Step};

/// How much faster than for people a fast script is.
const FAST_PACE: u32 = 100;

/// Tells the script, to the end of its run or of the server.
pub(super) async fn run(
    job: &Job,
    agent: &DemoAgent,
    mut writer: AgentWriter,
    follower: RecordFollower,
    orphan: Option<OrphanState>,
) {
    let message = job.input.message.as_deref().unwrap_or_default();
    let Some(script) = Script::new(&agent.script, message, &job.run.id) else {
        let message = format!("there is no demo called `{}`", agent.script);
        return job.end(&mut writer, AgentOutcome::failed("not_started", message)).await;
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

/// Why a script is not told to its end.
enum ScriptHalt {
    /// The run has ended, or the server stops: the next one goes on.
    Leave,
    /// Nothing more can be written.
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
    /// Answers that the script was not told yet.
    answers: Vec<InteractionResolved>,
    /// Events that are written already.
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
            // Whoever waits for a person is in nobody's way.
            drop(permit);
            let Some(interaction_id) = interaction_id else { return Ok(()) };
            while !self.answer_script(&interaction_id) {
                self.wait_for_signals(None).await?;
            }
        }
    }

    /// Tells the script up to a question without an answer, or to its end.
    async fn run_to_interaction(&mut self) -> Result<Option<String>, ScriptHalt> {
        loop {
            match self.script.next() {
                Step::Emit(_) if self.skip > 0 => self.skip -= 1,
                Step::Emit(event) => {
                    self.writer.write_event(&event).await?;
                    tokio::task::consume_budget().await;
                }
                Step::Pause(_) if self.skip > 0 => {}
                Step::Pause(time) => self.wait_for_signals(Some(time / self.pace)).await?,
                Step::Ask { interaction_id } if self.answer_script(&interaction_id) => {}
                Step::Ask { interaction_id } => return Ok(Some(interaction_id)),
                Step::End => return Ok(None),
            }
        }
    }

    /// Tells the script what is written, without pauses, as far as it is.
    fn skip_written(&mut self) {
        while self.skip > 0 {
            match self.script.next() {
                Step::Emit(_) => self.skip -= 1,
                Step::Pause(_) => {}
                Step::Ask { interaction_id } if self.answer_script(&interaction_id) => {}
                Step::Ask { .. } | Step::End => return,
            }
        }
    }

    /// Tells the script the answer to its question, if there is one. A script that was cancelled has no question.
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

    /// Waits for a time, or without one for whatever comes first.
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
