//! The built-in agents: scripts, told at a pace that people can follow.
//!
//! A script is the same whenever it is told. So a run that an earlier server has left is taken up by telling the
//! script from its beginning, with the answers that the log holds, and passing over what is written.

use std::time::Duration;

use runwire_model::event::InteractionResolved;

use super::config::DemoAgent;
use super::delivery::{Delivery, Stop};
use super::ending::Ending;
use super::job::{Job, Left};
use super::signals::{Follower, Signal};
use crate::demo::{Script, Step};

/// How much faster than for people a fast script is.
const FASTER: u32 = 100;

/// Tells the script, to the end of its run or of the server.
pub(super) async fn run(
    job: &Job,
    agent: &DemoAgent,
    mut delivery: Delivery,
    follower: Follower,
    left: Option<Left>,
) {
    let message = job.input.message.as_deref().unwrap_or_default();
    let Some(script) = Script::new(&agent.script, message, &job.run.id) else {
        let message = format!("there is no demo called `{}`", agent.script);
        return job.end(&mut delivery, Ending::failed("not_started", message)).await;
    };
    let left = left.unwrap_or_default();
    let skip = delivery.written();
    let mut telling = Telling {
        job,
        script,
        delivery,
        follower,
        answers: left.answers,
        skip,
        is_cancelled: false,
        pace: if agent.fast { FASTER } else { 1 },
    };
    if left.is_cancelled {
        telling.skip_written();
        telling.cancel();
    }
    match telling.tell().await {
        Ok(()) | Err(Halt::Leave | Halt::Stop(Stop::Closed | Stop::Fenced)) => {}
        Err(Halt::Stop(Stop::Refused)) => job.end(&mut telling.delivery, Ending::store_damaged()).await,
        Err(Halt::Stop(stop)) => {
            tracing::warn!(run = &*job.run.id, agent = job.agent.name, %stop, "a demo cannot be told");
        }
    }
}

/// Why a script is not told to its end.
enum Halt {
    /// The run has ended, or the server stops: the next one goes on.
    Leave,
    /// Nothing more can be written.
    Stop(Stop),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

struct Telling<'a> {
    job: &'a Job,
    script: Script,
    delivery: Delivery,
    follower: Follower,
    /// Answers that the script was not told yet.
    answers: Vec<InteractionResolved>,
    /// Events that are written already.
    skip: u64,
    is_cancelled: bool,
    pace: u32,
}

impl Telling<'_> {
    async fn tell(&mut self) -> Result<(), Halt> {
        let job = self.job;
        loop {
            let Some(turn) = job.turn(&mut self.delivery, &mut self.follower).await else {
                return Err(Halt::Leave);
            };
            let asked = job.beating(self.tell_until_question()).await?;
            // Whoever waits for a person is in nobody's way.
            drop(turn);
            let Some(asked) = asked else { return Ok(()) };
            while !self.settle(&asked) {
                self.attend(None).await?;
            }
        }
    }

    /// Tells the script up to a question without an answer, or to its end.
    async fn tell_until_question(&mut self) -> Result<Option<String>, Halt> {
        loop {
            match self.script.next() {
                Step::Emit(_) if self.skip > 0 => self.skip -= 1,
                Step::Emit(event) => {
                    self.delivery.write_event(&event).await?;
                    tokio::task::consume_budget().await;
                }
                Step::Pause(_) if self.skip > 0 => {}
                Step::Pause(time) => self.attend(Some(time / self.pace)).await?,
                Step::Ask { interaction_id } if self.settle(&interaction_id) => {}
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
                Step::Ask { interaction_id } if self.settle(&interaction_id) => {}
                Step::Ask { .. } | Step::End => return,
            }
        }
    }

    /// Tells the script the answer to its question, if there is one. A script that was cancelled has no question.
    fn settle(&mut self, asked: &str) -> bool {
        if self.is_cancelled {
            return true;
        }
        let at = self.answers.iter().position(|answer| answer.interaction_id == asked);
        at.is_some_and(|at| self.script.answer(&self.answers.remove(at)))
    }

    fn cancel(&mut self) {
        self.script.cancel();
        self.is_cancelled = true;
    }

    /// Waits for a time, or without one for whatever comes first.
    async fn attend(&mut self, time: Option<Duration>) -> Result<(), Halt> {
        let until = time.map(|time| tokio::time::Instant::now() + time);
        loop {
            let signals = tokio::select! {
                signals = self.follower.signals() => signals,
                () = self.job.server_stops() => return Err(Halt::Leave),
                () = sleep_until(until) => return Ok(()),
            };
            let mut is_answered = false;
            for signal in signals {
                match signal {
                    Signal::Answered(resolved) => {
                        self.answers.push(resolved);
                        is_answered = true;
                    }
                    Signal::CancelRequested { .. } => {
                        self.cancel();
                        return Ok(());
                    }
                    Signal::Closed { .. } => return Err(Halt::Leave),
                    Signal::Suspended | Signal::Resumed { .. } => {}
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
