//! Runs an agent on another server: a request starts it, and the response stream is the run.
//!
//! An interaction ends the stream or leaves it idle; the answer is sent as another request, whose stream continues
//! the same run. The agent is done when no stream is open and the run does not wait for a person.

mod client;
mod error_response;
mod request;
mod stream;

use runwire_log::LogError;
use runwire_model::RunFailureCode;
use runwire_model::event::{ErrorInfo, InteractionResolved};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::agent_writer::{AgentWriteError, AgentWriter};
use super::config::HttpAgent;
use super::job::{Job, OrphanState};
use super::outcome::AgentOutcome;
use super::signals::{RecordFollower, RunSignal};
pub(super) use error_response::error_text_in;
use request::AgentRequest;
use stream::{AgentClient, StreamEnd, StreamEvent};

/// Returns an agent's URL for the server's log.
pub(super) fn address(agent: &HttpAgent) -> String {
    client::redacted_url(&agent.url)
}

/// Capacity of the queue of stream events; backpressure beyond it.
const EVENT_QUEUE: usize = 2;

/// Runs the agent until the run ends or the server stops.
pub(super) async fn run(
    job: &Job,
    agent: &HttpAgent,
    mut writer: AgentWriter,
    follower: RecordFollower,
    orphan: Option<OrphanState>,
) {
    let client = match client::build(agent) {
        Ok(client) => client,
        Err(reason) => {
            return job
                .end(&mut writer, AgentOutcome::failed(RunFailureCode::AgentUnreachable, reason))
                .await;
        }
    };
    let (events, received) = mpsc::channel(EVENT_QUEUE);
    let agent_client =
        AgentClient { client, agent: agent.clone(), run_permits: job.run_permits.clone(), events };
    let mut http_run = HttpRun {
        job,
        agent,
        writer,
        follower,
        agent_client,
        received,
        streams: JoinSet::new(),
        open: 0,
        frames: 0,
        frames_at_answer: 0,
        is_suspended: false,
        undelivered_answers: Vec::new(),
        cancelled: None,
        stream_error: None,
    };
    let outcome = match http_run.start(orphan).await {
        Ok(()) => http_run.run().await,
        Err(end) => end,
    };
    match outcome {
        HttpRunEnd::End(outcome) => job.end(&mut http_run.writer, outcome).await,
        HttpRunEnd::Leave => {}
    }
}

/// How the work on a run ends.
enum HttpRunEnd {
    /// The run ends with this outcome.
    End(AgentOutcome),
    /// The run has ended already, or waits for a person while the server stops and another one resumes it.
    Leave,
}

impl From<AgentWriteError> for HttpRunEnd {
    fn from(stop: AgentWriteError) -> Self {
        match stop {
            AgentWriteError::Closed | AgentWriteError::Fenced => Self::Leave,
            AgentWriteError::Garbled(message) => {
                Self::End(AgentOutcome::failed(RunFailureCode::AgentGarbled, message))
            }
            AgentWriteError::Refused => Self::End(AgentOutcome::store_damaged()),
            AgentWriteError::Log(error) => error.into(),
        }
    }
}

impl From<LogError> for HttpRunEnd {
    fn from(error: LogError) -> Self {
        tracing::warn!(%error, "the log takes nothing of an agent");
        Self::Leave
    }
}

/// A cancel request, until the agent has ended or the grace period is over.
struct Cancelled {
    reason: Option<String>,
    until: Instant,
}

struct HttpRun<'a> {
    job: &'a Job,
    agent: &'a HttpAgent,
    writer: AgentWriter,
    follower: RecordFollower,
    agent_client: AgentClient,
    received: mpsc::Receiver<StreamEvent>,
    streams: JoinSet<()>,
    /// Streams that are open or wait for a permit.
    open: usize,
    /// Received frames.
    frames: u64,
    /// Received frames at the time of the last answer.
    frames_at_answer: u64,
    is_suspended: bool,
    /// Answers that were not sent to the agent.
    undelivered_answers: Vec<InteractionResolved>,
    cancelled: Option<Cancelled>,
    /// Error of a stream, until it is known whether the run waits for a person.
    stream_error: Option<Box<ErrorInfo>>,
}

impl HttpRun<'_> {
    async fn start(&mut self, orphan: Option<OrphanState>) -> Result<(), HttpRunEnd> {
        let Some(orphan) = orphan else {
            let request = request::start_request(self.job, self.agent).await?;
            self.send(request);
            return Ok(());
        };
        self.frames = self.writer.written();
        self.is_suspended = orphan.is_suspended;
        self.undelivered_answers = orphan.undelivered_answers;
        match orphan.resumed {
            Some(seq) => self.send_answers(seq).await,
            None => Ok(()),
        }
    }

    fn send(&mut self, request: AgentRequest) {
        while self.streams.try_join_next().is_some() {}
        let agent_client = self.agent_client.clone();
        // A run with an open stream holds a permit; waiting for a second one could deadlock.
        match self.open {
            0 => self.streams.spawn(agent_client.send_in_turn(request)),
            _ => self.streams.spawn(agent_client.send_and_stream(request)),
        };
        self.open += 1;
    }

    async fn run(&mut self) -> HttpRunEnd {
        loop {
            let handled = match self.open {
                // A run that waits for a person needs no lease.
                0 => self.wait_for_event().await,
                _ => self.job.with_heartbeat(self.wait_for_event()).await,
            };
            if let Err(end) = handled {
                return end;
            }
            // A written frame may have opened an interaction: known once its record was read.
            if self.follower.at() < self.writer.last_seq() {
                continue;
            }
            match self.stream_error.take() {
                // A broken stream does not matter while the run waits for a person: the answer opens another.
                Some(error) if self.is_suspended => {
                    tracing::debug!(run = &*self.job.run.id, error = error.message, "a stream is gone");
                }
                Some(_) if self.cancelled.is_some() => return self.cancelled_outcome(),
                Some(error) => return HttpRunEnd::End(AgentOutcome::Failed(error)),
                None => {}
            }
            if self.open == 0 && !self.is_suspended {
                return self.stream_outcome();
            }
        }
    }

    async fn wait_for_event(&mut self) -> Result<(), HttpRunEnd> {
        let until = self.cancelled.as_ref().map(|cancelled| cancelled.until);
        tokio::select! {
            biased;
            signals = self.follower.signals() => {
                for signal in signals {
                    self.handle_signal(signal).await?;
                }
                Ok(())
            }
            () = self.job.server_stops() => Err(match self.open {
                0 => HttpRunEnd::Leave,
                _ => HttpRunEnd::End(AgentOutcome::server_stopped()),
            }),
            () = sleep_until(until) => Err(self.cancelled_outcome()),
            Some(event) = self.received.recv() => self.handle_event(event).await,
        }
    }

    async fn handle_event(&mut self, event: StreamEvent) -> Result<(), HttpRunEnd> {
        match event {
            StreamEvent::Frames(frames) => {
                self.frames += frames.len() as u64;
                Ok(self.writer.write(frames).await?)
            }
            StreamEvent::TooLong { line } => Ok(self.writer.skip_too_long(line).await?),
            StreamEvent::End(end) => {
                self.open -= 1;
                match end {
                    StreamEnd::Acknowledged if self.open == 0 && self.frames == self.frames_at_answer => {
                        let message = "the agent took the answer, and sends no stream that continues the run";
                        Err(HttpRunEnd::End(AgentOutcome::failed(RunFailureCode::AgentNotAStream, message)))
                    }
                    StreamEnd::Complete | StreamEnd::Acknowledged | StreamEnd::NoReceiver => Ok(()),
                    StreamEnd::Failed(error) => {
                        self.stream_error = Some(error);
                        Ok(())
                    }
                }
            }
        }
    }

    async fn handle_signal(&mut self, signal: RunSignal) -> Result<(), HttpRunEnd> {
        match signal {
            RunSignal::Suspended => self.is_suspended = true,
            RunSignal::Answered(resolved) => self.undelivered_answers.push(resolved),
            RunSignal::Resumed { seq } => {
                self.is_suspended = false;
                self.send_answers(seq).await?;
            }
            RunSignal::CancelRequested { reason } => return self.cancel(reason),
            RunSignal::Closed { by_agent } => {
                // A suspended agent has no connection that could be closed.
                if self.is_suspended && !by_agent {
                    self.send_cancel(None);
                }
                return Err(HttpRunEnd::Leave);
            }
        }
        Ok(())
    }

    /// Sends the answers to the agent.
    async fn send_answers(&mut self, seq: u64) -> Result<(), HttpRunEnd> {
        let undelivered_answers = std::mem::take(&mut self.undelivered_answers);
        if undelivered_answers.is_empty() {
            return Ok(());
        }
        self.writer.check_not_fenced().await?;
        let requests = request::answer_requests(self.job, self.agent, &undelivered_answers, seq).await?;
        if requests.is_empty() {
            let message = "the answer cannot be told to the agent, which has no `answer_url`";
            return Err(HttpRunEnd::End(AgentOutcome::failed(RunFailureCode::AgentTakesNoAnswer, message)));
        }
        self.frames_at_answer = self.frames;
        for request in requests {
            self.send(request);
        }
        Ok(())
    }

    /// Sends a cancel request and starts the grace period; without a cancel URL the run ends at once.
    fn cancel(&mut self, reason: Option<String>) -> Result<(), HttpRunEnd> {
        let is_sent = self.send_cancel(reason.as_deref());
        let until = Instant::now() + self.job.grace;
        self.cancelled = Some(Cancelled { reason, until });
        if is_sent { Ok(()) } else { Err(self.cancelled_outcome()) }
    }

    fn send_cancel(&mut self, reason: Option<&str>) -> bool {
        let Some(request) = request::cancel_request(self.job, self.agent, reason) else { return false };
        // Its response is ignored: the channel has no receiver.
        let (events, _) = mpsc::channel(1);
        let agent_client = AgentClient { events, ..self.agent_client.clone() };
        let agent_client = tokio::time::timeout(self.job.grace, agent_client.send_and_stream(request));
        tokio::spawn(async move { agent_client.await.is_ok() });
        true
    }

    fn cancelled_outcome(&mut self) -> HttpRunEnd {
        let reason = self.cancelled.take().and_then(|cancelled| cancelled.reason);
        HttpRunEnd::End(AgentOutcome::Cancelled { reason })
    }

    /// Returns the outcome of a run whose streams have all ended.
    fn stream_outcome(&mut self) -> HttpRunEnd {
        if self.cancelled.is_some() {
            return self.cancelled_outcome();
        }
        HttpRunEnd::End(match (self.frames, self.writer.unreadable_reason()) {
            (0, _) => AgentOutcome::failed(RunFailureCode::AgentEmpty, "the agent's answer was empty"),
            (_, Some(first)) => {
                let dialect = self.agent.dialect.name();
                let message = format!("nothing of the agent's answer is {dialect}; the first: {first}");
                AgentOutcome::failed(RunFailureCode::AgentGarbled, message)
            }
            (_, None) => AgentOutcome::Complete,
        })
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
