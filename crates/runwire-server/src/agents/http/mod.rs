//! An agent that is somebody else's server: a request starts it, and the stream that answers is the run.
//!
//! A question ends the stream, or leaves it open and silent; the answer goes out as another request, whose stream
//! continues the same run. The run's input is over when no stream is open and no person is waited for.

mod client;
mod refusal;
mod request;
mod stream;

use runwire_log::LogError;
use runwire_model::event::{ErrorInfo, InteractionResolved};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::config::HttpAgent;
use super::delivery::{Delivery, Stop};
use super::ending::Ending;
use super::job::{Job, Left};
use super::signals::{Follower, Signal};
pub(super) use refusal::own_words;
use request::Prepared;
use stream::{Arrival, Asking, Over};

/// Tells where an agent is, as the server's log may say it.
pub(super) fn address(agent: &HttpAgent) -> String {
    client::redacted_url(&agent.url)
}

/// Arrivals that wait to be written; the agent waits while there are more.
const WAITING: usize = 2;

/// Runs the agent, to the end of its run or of the server.
pub(super) async fn run(
    job: &Job,
    agent: &HttpAgent,
    mut delivery: Delivery,
    follower: Follower,
    left: Option<Left>,
) {
    let client = match client::build(agent) {
        Ok(client) => client,
        Err(reason) => return job.end(&mut delivery, Ending::failed("agent_unreachable", reason)).await,
    };
    let (arrivals, arrived) = mpsc::channel(WAITING);
    let asking = Asking { client, agent: agent.clone(), turns: job.turns.clone(), arrivals };
    let mut talk = Talk {
        job,
        agent,
        delivery,
        follower,
        asking,
        arrived,
        streams: JoinSet::new(),
        open: 0,
        frames: 0,
        frames_when_told: 0,
        is_suspended: false,
        untold: Vec::new(),
        cancelled: None,
        broken: None,
    };
    let ending = match talk.begin(left).await {
        Ok(()) => talk.converse().await,
        Err(halt) => halt,
    };
    match ending {
        Halt::End(ending) => job.end(&mut talk.delivery, ending).await,
        Halt::Leave => {}
    }
}

/// Why a talk is over.
enum Halt {
    /// The run ends like this.
    End(Ending),
    /// The run has ended, or waits for a person while the server stops: the next one goes on.
    Leave,
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Closed | Stop::Fenced => Self::Leave,
            Stop::Garbled(message) => Self::End(Ending::failed("agent_garbled", message)),
            Stop::Refused => Self::End(Ending::store_damaged()),
            Stop::Log(error) => error.into(),
        }
    }
}

impl From<LogError> for Halt {
    fn from(error: LogError) -> Self {
        tracing::warn!(%error, "the log takes nothing of an agent");
        Self::Leave
    }
}

/// A cancelled run, until its agent has ended or its time is over.
struct Cancelled {
    reason: Option<String>,
    until: Instant,
}

struct Talk<'a> {
    job: &'a Job,
    agent: &'a HttpAgent,
    delivery: Delivery,
    follower: Follower,
    asking: Asking,
    arrived: mpsc::Receiver<Arrival>,
    streams: JoinSet<()>,
    /// How many streams are open or wait for their turn.
    open: usize,
    /// How many frames have come.
    frames: u64,
    /// How many had come when the agent was told an answer.
    frames_when_told: u64,
    is_suspended: bool,
    /// Answers that the agent was not told yet.
    untold: Vec<InteractionResolved>,
    cancelled: Option<Cancelled>,
    /// How a stream has failed, until it is known whether that matters.
    broken: Option<Box<ErrorInfo>>,
}

impl Talk<'_> {
    async fn begin(&mut self, left: Option<Left>) -> Result<(), Halt> {
        let Some(left) = left else {
            let prepared = request::start(self.job, self.agent).await?;
            self.ask(prepared);
            return Ok(());
        };
        self.frames = self.delivery.written();
        self.is_suspended = left.is_suspended;
        self.untold = left.untold;
        match left.resumed {
            Some(seq) => self.tell_answers(seq).await,
            None => Ok(()),
        }
    }

    fn ask(&mut self, prepared: Prepared) {
        while self.streams.try_join_next().is_some() {}
        let asking = self.asking.clone();
        // A run that has a stream has its turn; if it waited for another, all could wait for each other.
        match self.open {
            0 => self.streams.spawn(asking.ask_in_turn(prepared)),
            _ => self.streams.spawn(asking.ask(prepared)),
        };
        self.open += 1;
    }

    async fn converse(&mut self) -> Halt {
        loop {
            let turn = match self.open {
                // A run that waits for a person keeps no lease.
                0 => self.attend().await,
                _ => self.job.beating(self.attend()).await,
            };
            if let Err(halt) = turn {
                return halt;
            }
            // What was written may have asked something; that is known once it was read.
            if self.follower.at() < self.delivery.last_seq() {
                continue;
            }
            match self.broken.take() {
                // Nobody needs a stream while a person is waited for: the answer brings another.
                Some(error) if self.is_suspended => {
                    tracing::debug!(run = &*self.job.run.id, error = error.message, "a stream is gone");
                }
                Some(_) if self.cancelled.is_some() => return self.cancelled_end(),
                Some(error) => return Halt::End(Ending::Failed(error)),
                None => {}
            }
            if self.open == 0 && !self.is_suspended {
                return self.input_over();
            }
        }
    }

    async fn attend(&mut self) -> Result<(), Halt> {
        let until = self.cancelled.as_ref().map(|cancelled| cancelled.until);
        tokio::select! {
            biased;
            signals = self.follower.signals() => {
                for signal in signals {
                    self.heed(signal).await?;
                }
                Ok(())
            }
            () = self.job.server_stops() => Err(match self.open {
                0 => Halt::Leave,
                _ => Halt::End(Ending::server_stopped()),
            }),
            () = sleep_until(until) => Err(self.cancelled_end()),
            Some(arrival) = self.arrived.recv() => self.take(arrival).await,
        }
    }

    async fn take(&mut self, arrival: Arrival) -> Result<(), Halt> {
        match arrival {
            Arrival::Frames(frames) => {
                self.frames += frames.len() as u64;
                Ok(self.delivery.write(frames).await?)
            }
            Arrival::TooLong { line } => Ok(self.delivery.too_long(line).await?),
            Arrival::Over(over) => {
                self.open -= 1;
                match over {
                    Over::Acknowledged if self.open == 0 && self.frames == self.frames_when_told => {
                        let message = "the agent took the answer, and sends no stream that continues the run";
                        Err(Halt::End(Ending::failed("agent_not_a_stream", message)))
                    }
                    Over::Clean | Over::Acknowledged | Over::Unheard => Ok(()),
                    Over::Failed(error) => {
                        self.broken = Some(error);
                        Ok(())
                    }
                }
            }
        }
    }

    async fn heed(&mut self, signal: Signal) -> Result<(), Halt> {
        match signal {
            Signal::Suspended => self.is_suspended = true,
            Signal::Answered(resolved) => self.untold.push(resolved),
            Signal::Resumed { seq } => {
                self.is_suspended = false;
                self.tell_answers(seq).await?;
            }
            Signal::CancelRequested { reason } => return self.cancel(reason),
            Signal::Closed { by_agent } => {
                // Whoever waits for a person is not at the other end of a connection that could be closed.
                if self.is_suspended && !by_agent {
                    self.tell_cancel(None);
                }
                return Err(Halt::Leave);
            }
        }
        Ok(())
    }

    /// Tells the agent what people have answered.
    async fn tell_answers(&mut self, seq: u64) -> Result<(), Halt> {
        let untold = std::mem::take(&mut self.untold);
        if untold.is_empty() {
            return Ok(());
        }
        self.delivery.check_ours().await?;
        let requests = request::answers(self.job, self.agent, &untold, seq).await?;
        if requests.is_empty() {
            let message = "the answer cannot be told to the agent, which has no `answer_url`";
            return Err(Halt::End(Ending::failed("agent_takes_no_answer", message)));
        }
        self.frames_when_told = self.frames;
        for prepared in requests {
            self.ask(prepared);
        }
        Ok(())
    }

    /// Tells the agent to stop, and gives it time to; one that cannot be told is cut off.
    fn cancel(&mut self, reason: Option<String>) -> Result<(), Halt> {
        let told = self.tell_cancel(reason.as_deref());
        let until = Instant::now() + self.job.grace;
        self.cancelled = Some(Cancelled { reason, until });
        if told { Ok(()) } else { Err(self.cancelled_end()) }
    }

    fn tell_cancel(&mut self, reason: Option<&str>) -> bool {
        let Some(prepared) = request::cancel(self.job, self.agent, reason) else { return false };
        // Nobody waits for its answer, and it shall not be taken for one of the run's streams.
        let (arrivals, _) = mpsc::channel(1);
        let asking = Asking { arrivals, ..self.asking.clone() };
        let asking = tokio::time::timeout(self.job.grace, asking.ask(prepared));
        tokio::spawn(async move { asking.await.is_ok() });
        true
    }

    fn cancelled_end(&mut self) -> Halt {
        let reason = self.cancelled.take().and_then(|cancelled| cancelled.reason);
        Halt::End(Ending::Cancelled { reason })
    }

    /// Tells how a run ends of which nothing more comes.
    fn input_over(&mut self) -> Halt {
        if self.cancelled.is_some() {
            return self.cancelled_end();
        }
        Halt::End(match (self.frames, self.delivery.unreadable()) {
            (0, _) => Ending::failed("agent_empty", "the agent's answer was empty"),
            (_, Some(first)) => {
                let dialect = self.agent.dialect.name();
                let message = format!("nothing of the agent's answer is {dialect}; the first: {first}");
                Ending::failed("agent_garbled", message)
            }
            (_, None) => Ending::Complete,
        })
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
