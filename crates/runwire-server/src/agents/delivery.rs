//! What an agent says, on its way to the log: in order, each frame once.
//!
//! Two producers write the run. One is the agent: its frames go as they are. The other is the server, in canonical
//! events: frames that cannot be read, and the end that an exit or a broken connection decides. A producer has one
//! dialect, so they cannot be one.

use std::sync::Arc;

use runwire_log::{Append, FrameBatch, Log, LogError, RunKey, Stamp, Target};
use runwire_model::dialect::Dialect;
use runwire_model::event::{Event, Level, Notice};
use runwire_model::json::Object;

use super::ending::Ending;
use super::http::own_words;
use crate::limits;

/// What the agent is called as a producer.
const AGENT: &str = "runwire-agent";
/// What the server is called as a producer beside it.
const OWN: &str = "runwire-agent-own";

/// Tells whether an agent of a server has written to a run.
pub(super) async fn has_written(log: &dyn Log, run: &RunKey) -> Result<bool, LogError> {
    Ok(log.producer(run, AGENT).await?.is_some() || log.producer(run, OWN).await?.is_some())
}

/// Why nothing more of an agent can be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stop {
    /// The run has ended.
    #[error("the run has ended")]
    Closed,
    /// Too much of what the agent says cannot be read.
    #[error("{0}")]
    Garbled(String),
    /// The log takes nothing.
    #[error(transparent)]
    Log(LogError),
}

/// Writes what an agent says.
pub(super) struct Delivery {
    log: Arc<dyn Log>,
    run: RunKey,
    agent: Lane,
    own: Lane,
    last_seq: u64,
    strays: usize,
    /// The first frame that could not be read, and why.
    first_stray: Option<String>,
}

/// One producer, and its place.
struct Lane {
    producer: Arc<str>,
    epoch: u64,
    next: u64,
    dialect: Dialect,
}

impl Lane {
    /// Takes up a producer under a new epoch, where it was left or from the beginning.
    async fn take_up(log: &dyn Log, run: &RunKey, name: &str, dialect: Dialect) -> Result<Self, LogError> {
        let known = log.producer(run, name).await?;
        let (epoch, next) = known.map_or((1, 0), |known| (known.epoch + 1, known.next));
        Ok(Self { producer: name.into(), epoch, next, dialect })
    }
}

impl Delivery {
    /// Takes up a run where it was left, or from its beginning.
    pub(super) async fn take_up(log: Arc<dyn Log>, run: &RunKey, dialect: Dialect) -> Result<Self, LogError> {
        let agent = Lane::take_up(&*log, run, AGENT, dialect).await?;
        let own = Lane::take_up(&*log, run, OWN, Dialect::Runwire).await?;
        Ok(Self { log, run: run.clone(), agent, own, last_seq: 0, strays: 0, first_stray: None })
    }

    /// Counts the frames that the agent has written.
    pub(super) fn written(&self) -> u64 {
        self.agent.next
    }

    /// Tells the first frame that could not be read, and why, if none could.
    pub(super) fn unreadable(&self) -> Option<&str> {
        self.first_stray.as_deref().filter(|_| self.agent.next == 0)
    }

    /// Tells the last record of the run that is known here.
    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Writes frames of the agent; one that cannot be read is kept as `foreign`.
    pub(super) async fn write(&mut self, mut frames: FrameBatch) -> Result<(), Stop> {
        while !frames.is_empty() {
            let Some((at, code, why)) = self.append(Who::Agent, &frames, false).await? else { return Ok(()) };
            if code == "run_closed" {
                return Err(Stop::Closed);
            }
            let mut rest = FrameBatch::default();
            for (index, frame) in frames.iter().enumerate().skip(at) {
                if index == at {
                    let why = explained(&why, frame.data);
                    self.stray(frame.line, frame.name, frame.data, &why).await?;
                } else {
                    rest.push(frame.line, frame.name, frame.data);
                }
            }
            frames = rest;
        }
        Ok(())
    }

    /// Writes an event of an agent that speaks `runwire`.
    pub(super) async fn write_event(&mut self, event: &Event) -> Result<(), Stop> {
        let mut frames = FrameBatch::default();
        frames.push(1, None, event.to_json().text().as_bytes());
        self.write(frames).await
    }

    /// Tells of a frame that was longer than any may be.
    pub(super) async fn too_long(&mut self, line: u64) -> Result<(), Stop> {
        self.count_stray(line, "it is too long")?;
        self.warn("frame_too_long", format!("line {line} of the agent is too long, and is left out")).await
    }

    /// Ends the run, and tells whether this did; it may have ended before.
    pub(super) async fn end(&mut self, ending: Ending) -> bool {
        let complete = ending == Ending::Complete;
        let mut frames = FrameBatch::default();
        if let Some(event) = ending.event() {
            frames.push(1, None, event.to_json().text().as_bytes());
        }
        match self.append(Who::Server, &frames, complete).await {
            Ok(None) => return true,
            Err(Stop::Closed) | Ok(Some((_, "run_closed", _))) => {}
            Ok(Some((_, _, why))) => tracing::error!(run = &*self.run.id, why, "a run cannot be ended"),
            Err(stop) => tracing::warn!(run = &*self.run.id, %stop, "a run cannot be ended"),
        }
        false
    }

    /// Keeps a frame that the agent's dialect cannot read.
    async fn stray(&mut self, line: u64, name: Option<&str>, data: &[u8], why: &str) -> Result<(), Stop> {
        self.count_stray(line, why)?;
        let mut frames = FrameBatch::default();
        frames.push(line, None, foreign(self.agent.dialect, name, data).as_bytes());
        match self.append(Who::Server, &frames, false).await? {
            None => Ok(()),
            Some((_, "run_closed", _)) => Err(Stop::Closed),
            // What is around it makes it too long, or the run is full: that it came is told all the same.
            Some((_, code, why)) => {
                self.warn(code, format!("line {line} of the agent is left out: {why}")).await
            }
        }
    }

    fn count_stray(&mut self, line: u64, why: &str) -> Result<(), Stop> {
        self.strays += 1;
        let first = self.first_stray.get_or_insert_with(|| format!("line {line}: {why}"));
        if self.strays > limits::AGENT_STRAYS {
            let dialect = self.agent.dialect.name();
            let most = limits::AGENT_STRAYS;
            let message = format!(
                "more than {most} frames of the agent cannot be taken as {dialect}; the first: {first}"
            );
            return Err(Stop::Garbled(message));
        }
        Ok(())
    }

    async fn warn(&mut self, code: &str, message: String) -> Result<(), Stop> {
        let notice =
            Notice { level: Level::Warning, code: Some(code.to_owned()), message, ..Default::default() };
        let mut frames = FrameBatch::default();
        frames.push(1, None, Event::new(notice).to_json().text().as_bytes());
        match self.append(Who::Server, &frames, false).await? {
            Some((_, "run_closed", _)) => Err(Stop::Closed),
            _ => Ok(()),
        }
    }

    /// Appends frames, and tells which of them was refused, with a code and why.
    async fn append(
        &mut self,
        who: Who,
        frames: &FrameBatch,
        end: bool,
    ) -> Result<Option<(usize, &'static str, String)>, Stop> {
        let lane = match who {
            Who::Agent => &mut self.agent,
            Who::Server => &mut self.own,
        };
        let stamp = Stamp { producer: lane.producer.clone(), epoch: lane.epoch, index: lane.next };
        let append = Append {
            target: Target::Run(self.run.clone()),
            thread: None,
            dialect: Some(lane.dialect),
            stamp: Some(stamp),
            frames: frames.clone(),
            end,
        };
        match self.log.append(append).await {
            Ok(appended) => {
                lane.next += appended.accepted;
                self.last_seq = self.last_seq.max(appended.last_seq);
                Ok(appended.fault.map(|fault| (fault.index, fault.problem.code(), fault.problem.to_string())))
            }
            Err(LogError::ThreadDeleted(_)) => Err(Stop::Closed),
            Err(error) => Err(Stop::Log(error)),
        }
    }
}

#[derive(Clone, Copy)]
enum Who {
    Agent,
    Server,
}

/// Tells why a frame cannot be read, with what it says itself: an error of the agent is most often none of its frames.
fn explained(why: &str, data: &[u8]) -> String {
    match own_words(data) {
        Some(says) => format!("{why}; it says: {says}"),
        None => why.to_owned(),
    }
}

/// Wraps a frame that its dialect cannot read; what is no JSON object goes on as its text.
fn foreign(dialect: Dialect, name: Option<&str>, data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    let frame = match Object::parse(data) {
        Ok(_) => text.into_owned(),
        Err(_) => serde_json::Value::from(text).to_string(),
    };
    let name = name.map(|name| format!(r#","name":{}"#, serde_json::Value::from(name))).unwrap_or_default();
    format!(r#"{{"type":"foreign","dialect":"{}","frame":{frame}{name}}}"#, dialect.name())
}
