//! Writes the output of an agent to the log: in order, each frame once.
//!
//! Two producers write the run, because a producer has one dialect. One is the agent: its frames are written as they
//! are. The other is the server, in canonical events: unreadable frames, and the end of the run after an exit or a
//! broken connection.
//!
//! Both use one epoch, which fences this server once another has claimed the run. A write that fails in an outage is
//! repeated with the same stamp, so nothing is lost or duplicated.

use std::sync::Arc;

use runwire_log::{CheckMode, FrameBatch, Log, LogError, ProducerInfo, RunKey};
use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;
use runwire_model::event::{Event, Foreign, Level, Notice};
use runwire_model::run::WholePolicy;
use runwire_producer::{Producer, WriteError, next_epoch};
use tokio::sync::watch;

use super::http::error_text_in;
use super::log_producer::{LogDestination, LogProducer, LogWriteError};
use super::outcome::AgentOutcome;
use crate::limits;

/// Producer id of the agent.
const AGENT_PRODUCER: &str = "runwire-agent";
/// Dialect name of a frame that strict validation has refused.
const REFUSED: &str = "refused";
/// Producer id of the server beside the agent.
const SERVER_PRODUCER: &str = "runwire-agent-own";
/// Epoch of the server that created the run.
const FIRST_EPOCH: u64 = 1;

/// Returns true if an agent of any server has written to the run.
pub(super) async fn has_written(log: &dyn Log, run: &RunKey) -> Result<bool, LogError> {
    Ok(producer_positions(log, run).await?.iter().any(Option::is_some))
}

/// Why no more output of an agent can be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AgentWriteError {
    /// The run has ended.
    #[error("the run has ended")]
    Closed,
    /// Too many frames of the agent are unreadable.
    #[error("{0}")]
    Garbled(String),
    /// Another server has claimed the run.
    #[error("another server has taken the run over")]
    Fenced,
    /// The store permanently refuses the output.
    #[error("the store cannot hold what the agent says")]
    Refused,
    /// The log failed.
    #[error(transparent)]
    Log(LogError),
}

/// Writes the output of one agent to its run.
pub(super) struct AgentWriter {
    run: RunKey,
    agent: LogProducer,
    server: LogProducer,
    unreadable_frames: usize,
    /// The line of the first unreadable frame, and the error.
    first_unreadable: Option<String>,
}

impl AgentWriter {
    /// Starts writing a new run. A new run has the first epoch: a higher one means that another server has claimed it.
    pub(super) async fn start(log: Arc<dyn Log>, run: &RunKey, dialect: Dialect) -> Result<Self, LogError> {
        let positions = producer_positions(&*log, run).await?;
        match newest_epoch(&positions) {
            0..=FIRST_EPOCH => Ok(Self::new(log, run, dialect, &positions, FIRST_EPOCH)),
            epoch => Err(LogError::ProducerFenced { epoch }),
        }
    }

    /// Claims an orphaned run: continues where the other server stopped, and fences it.
    pub(super) async fn claim(log: Arc<dyn Log>, run: &RunKey, dialect: Dialect) -> Result<Self, LogError> {
        let positions = producer_positions(&*log, run).await?;
        let epoch = next_epoch(newest_epoch(&positions).max(FIRST_EPOCH));
        let claimed = Self::new(log.clone(), run, dialect, &positions, epoch);
        for producer in [&claimed.agent, &claimed.server] {
            producer.fence().await?;
        }
        // Read again: the other server may have written until it was fenced.
        let positions = producer_positions(&*log, run).await?;
        Ok(Self::new(log, run, dialect, &positions, epoch))
    }

    fn new(
        log: Arc<dyn Log>,
        run: &RunKey,
        dialect: Dialect,
        positions: &ProducerPositions,
        epoch: u64,
    ) -> Self {
        let producer = |name: &str, dialect, check, position: &Option<ProducerInfo>| {
            let next = position.as_ref().map_or(0, |position| position.next);
            let destination = LogDestination {
                log: log.clone(),
                run: run.clone(),
                dialect,
                check,
                whole: WholePolicy::Add,
                last_seq: 0,
                shutdown: None,
            };
            LogProducer { producer: Producer::new(name, epoch, next), destination }
        };
        let [agent, server] = positions;
        Self {
            run: run.clone(),
            agent: producer(AGENT_PRODUCER, dialect, CheckMode::Warn, agent),
            server: producer(SERVER_PRODUCER, Dialect::Runwire, CheckMode::Off, server),
            unreadable_frames: 0,
            first_unreadable: None,
        }
    }

    /// Retries during outages until the server stops.
    pub(super) fn retry_until(mut self, shutdown: &watch::Receiver<bool>) -> Self {
        for producer in [&mut self.agent, &mut self.server] {
            producer.destination.shutdown = Some(shutdown.clone());
        }
        self
    }

    /// Sets strict validation: frames that break the dialect's document are refused.
    pub(super) fn strict(mut self, strict: bool) -> Self {
        self.agent.destination.check = if strict { CheckMode::Refuse } else { CheckMode::Warn };
        self
    }

    /// Sets the policy for a whole text that differs from its streamed pieces.
    pub(super) fn whole(mut self, whole: WholePolicy) -> Self {
        self.agent.destination.whole = whole;
        self
    }

    /// Returns the number of frames that the agent has written.
    pub(super) fn written(&self) -> u64 {
        self.agent.producer.next()
    }

    /// Returns the error of the first unreadable frame, if no frame was readable.
    pub(super) fn unreadable_reason(&self) -> Option<&str> {
        self.first_unreadable.as_deref().filter(|_| self.agent.producer.next() == 0)
    }

    /// Returns the last record that this writer knows of.
    pub(super) fn last_seq(&self) -> u64 {
        self.agent.destination.last_seq.max(self.server.destination.last_seq)
    }

    /// Writes frames of the agent; an unreadable one is stored as `foreign`.
    pub(super) async fn write(&mut self, mut frames: FrameBatch) -> Result<(), AgentWriteError> {
        while !frames.is_empty() {
            let Some(RefusedFrame { at, code, why }) = refused(self.agent.write(&frames, false).await)?
            else {
                return Ok(());
            };
            let mut rest = FrameBatch::default();
            for (index, frame) in frames.iter().enumerate().skip(at) {
                if index == at {
                    let why = with_error_text(&why, frame.data);
                    // A refused frame must not be replayed as a frame of the agent's dialect.
                    let dialect = self.agent.destination.dialect.name();
                    let dialect = if code == ErrorCode::BreaksDocument { REFUSED } else { dialect };
                    self.keep_unreadable(frame.line, frame.name, frame.data, &why, dialect).await?;
                    if code == ErrorCode::BreaksDocument {
                        self.warn(code, format!("line {} of the agent is refused: {why}", frame.line))
                            .await?;
                    }
                } else {
                    rest.push(frame.line, frame.name, frame.data);
                }
            }
            frames = rest;
        }
        Ok(())
    }

    /// Writes an event in the `runwire` dialect.
    pub(super) async fn write_event(&mut self, event: &Event) -> Result<(), AgentWriteError> {
        let mut frames = FrameBatch::default();
        frames.push(1, None, event.to_json().text().as_bytes());
        self.write(frames).await
    }

    /// Records a warning for a frame above the size limit.
    pub(super) async fn skip_too_long(&mut self, line: u64) -> Result<(), AgentWriteError> {
        self.count_unreadable(line, "it is too long")?;
        self.warn(ErrorCode::FrameTooLong, format!("line {line} of the agent is too long, and is left out"))
            .await
    }

    /// Fails if another server has claimed the run. Called before sending something to the agent, because a server that
    /// was paused may not know yet.
    pub(super) async fn check_not_fenced(&mut self) -> Result<(), AgentWriteError> {
        refused(self.server.write(&FrameBatch::default(), false).await).map(drop)
    }

    /// Ends the run; returns false if it had ended before.
    pub(super) async fn end(&mut self, outcome: AgentOutcome) -> bool {
        let complete = outcome == AgentOutcome::Complete;
        let mut frames = FrameBatch::default();
        if let Some(event) = outcome.event() {
            frames.push(1, None, event.to_json().text().as_bytes());
        }
        match refused(self.server.write(&frames, complete).await) {
            Ok(None) => return true,
            Err(AgentWriteError::Closed | AgentWriteError::Fenced) => {}
            Ok(Some(frame)) => {
                tracing::error!(run = &*self.run.id, why = frame.why, "a run cannot be ended");
            }
            Err(stop) => tracing::warn!(run = &*self.run.id, %stop, "a run cannot be ended"),
        }
        false
    }

    /// Stores an unreadable frame as `foreign`.
    async fn keep_unreadable(
        &mut self,
        line: u64,
        name: Option<&str>,
        data: &[u8],
        why: &str,
        dialect: &'static str,
    ) -> Result<(), AgentWriteError> {
        self.count_unreadable(line, why)?;
        let mut frames = FrameBatch::default();
        frames.push(line, None, Foreign::canonical_frame(dialect, name, data).as_bytes());
        match refused(self.server.write(&frames, false).await)? {
            None => Ok(()),
            // Wrapped it is too long, or the run is full: a warning is recorded instead.
            Some(RefusedFrame { code, why, .. }) => {
                self.warn(code, format!("line {line} of the agent is left out: {why}")).await
            }
        }
    }

    fn count_unreadable(&mut self, line: u64, why: &str) -> Result<(), AgentWriteError> {
        self.unreadable_frames += 1;
        let first = self.first_unreadable.get_or_insert_with(|| format!("line {line}: {why}"));
        if self.unreadable_frames > limits::AGENT_UNREADABLE_FRAMES {
            let dialect = self.agent.destination.dialect.name();
            let limit = limits::AGENT_UNREADABLE_FRAMES;
            let message = format!(
                "more than {limit} frames of the agent cannot be taken as {dialect}; the first: {first}"
            );
            return Err(AgentWriteError::Garbled(message));
        }
        Ok(())
    }

    async fn warn(&mut self, code: ErrorCode, message: String) -> Result<(), AgentWriteError> {
        let notice =
            Notice { level: Level::Warning, code: Some(code.to_string()), message, ..Default::default() };
        let mut frames = FrameBatch::default();
        frames.push(1, None, Event::new(notice).to_json().text().as_bytes());
        refused(self.server.write(&frames, false).await).map(drop)
    }
}

/// A frame that the log has refused.
struct RefusedFrame {
    /// Its index in the batch.
    at: usize,
    code: ErrorCode,
    why: String,
}

/// Returns the frame that was refused, if one was; fails if nothing more can be written.
fn refused(written: Result<(), WriteError<LogWriteError>>) -> Result<Option<RefusedFrame>, AgentWriteError> {
    let error = match written {
        Ok(()) => return Ok(None),
        Err(WriteError::Frame { at, error: LogWriteError::Frame(fault) }) => {
            let (code, why) = (fault.problem.code(), fault.problem.to_string());
            return Ok(Some(RefusedFrame { at, code, why }));
        }
        Err(WriteError::Closed { .. }) => return Err(AgentWriteError::Closed),
        Err(WriteError::Fenced(_)) => return Err(AgentWriteError::Fenced),
        Err(error) => error.into_inner(),
    };
    Err(match error {
        LogWriteError::Log(LogError::Damaged(_)) => AgentWriteError::Refused,
        LogWriteError::Log(error) => AgentWriteError::Log(error),
        // The log refuses a frame that it was not given.
        LogWriteError::Frame(fault) => AgentWriteError::Log(LogError::Damaged(fault.to_string())),
    })
}

/// Stored positions of the agent and of the server beside it.
type ProducerPositions = [Option<ProducerInfo>; 2];

async fn producer_positions(log: &dyn Log, run: &RunKey) -> Result<ProducerPositions, LogError> {
    Ok([log.producer(run, AGENT_PRODUCER).await?, log.producer(run, SERVER_PRODUCER).await?])
}

/// Returns the newest epoch of a run; 0 if no server has written to it.
fn newest_epoch(positions: &ProducerPositions) -> u64 {
    positions.iter().flatten().map(|position| position.epoch).max().unwrap_or(0)
}

/// Adds the error message inside an unreadable frame: agents often report errors in a format of their own.
fn with_error_text(why: &str, data: &[u8]) -> String {
    match error_text_in(data) {
        Some(says) => format!("{why}; it says: {says}"),
        None => why.to_owned(),
    }
}
