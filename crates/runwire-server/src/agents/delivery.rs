//! What an agent says, on its way to the log: in order, each frame once.
//!
//! Two producers write the run. One is the agent: its frames go as they are. The other is the server, in canonical
//! events: frames that cannot be read, and the end that an exit or a broken connection decides. A producer has one
//! dialect, so they cannot be one.
//!
//! Both have one epoch, which tells this server from another that has taken the run over. What the store cannot take
//! now is written again under the same stamp when it is back, so nothing is lost and nothing is there twice.

use std::sync::Arc;

use runwire_log::{Append, CheckMode, FrameBatch, Log, LogError, ProducerInfo, RunKey, Stamp, Target};
use runwire_model::dialect::Dialect;
use runwire_model::event::{Event, Level, Notice};
use runwire_model::json::Object;
use runwire_model::run::WholePolicy;
use tokio::sync::watch;

use super::ending::Ending;
use super::http::own_words;
use crate::write::check_of;
use crate::{limits, outage};

/// What the agent is called as a producer.
const AGENT: &str = "runwire-agent";
/// The dialect of a frame that a strict agent's document does not allow.
const REFUSED: &str = "refused";
/// What the server is called as a producer beside it.
const OWN: &str = "runwire-agent-own";
/// The epoch of the server that has created a run.
const FIRST_EPOCH: u64 = 1;
/// How far a server that takes a run up may go beyond the epoch that it finds.
const EPOCH_STEP: u64 = 1 << 20;

/// Tells whether an agent of a server has written to a run.
pub(super) async fn has_written(log: &dyn Log, run: &RunKey) -> Result<bool, LogError> {
    Ok(known(log, run).await?.iter().any(Option::is_some))
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
    /// Another server has taken the run over.
    #[error("another server has taken the run over")]
    Fenced,
    /// The store refuses for good what the agent says.
    #[error("the store cannot hold what the agent says")]
    Refused,
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
    /// Until when a store that is away is waited for.
    shutdown: Option<watch::Receiver<bool>>,
}

/// One producer, and its place.
struct Lane {
    producer: Arc<str>,
    epoch: u64,
    next: u64,
    dialect: Dialect,
    check: CheckMode,
    whole: WholePolicy,
}

impl Delivery {
    /// Begins a run that nobody has worked on. Where another server has taken it up meanwhile, it is that one's: a new
    /// run has the first epoch, always.
    pub(super) async fn begin(log: Arc<dyn Log>, run: &RunKey, dialect: Dialect) -> Result<Self, LogError> {
        let known = known(&*log, run).await?;
        match newest_epoch(&known) {
            0..=FIRST_EPOCH => Ok(Self::at(log, run, dialect, &known, FIRST_EPOCH)),
            epoch => Err(LogError::ProducerFenced { epoch }),
        }
    }

    /// Takes up a run where another server has left it. Whatever that server still says is refused from now on.
    pub(super) async fn take_up(log: Arc<dyn Log>, run: &RunKey, dialect: Dialect) -> Result<Self, LogError> {
        let left = known(&*log, run).await?;
        // One that has written nothing yet has the first epoch. Two that take it up at once shall not meet in the next.
        let step = fastrand::u64(1..=EPOCH_STEP);
        let epoch = newest_epoch(&left).max(FIRST_EPOCH).saturating_add(step);
        let claimed = Self::at(log, run, dialect, &left, epoch);
        for lane in [&claimed.agent, &claimed.own] {
            claimed.log.append(lane.append(run, FrameBatch::default(), false)).await?;
        }
        // What it has written until then counts.
        let left = known(&*claimed.log, run).await?;
        Ok(Self::at(claimed.log, run, dialect, &left, epoch))
    }

    fn at(log: Arc<dyn Log>, run: &RunKey, dialect: Dialect, known: &Known, epoch: u64) -> Self {
        let lane = |name: &str, dialect, known: &Option<ProducerInfo>| {
            let next = known.as_ref().map_or(0, |known| known.next);
            Lane {
                producer: name.into(),
                epoch,
                next,
                dialect,
                check: CheckMode::Warn,
                whole: WholePolicy::Add,
            }
        };
        let [agent, own] = known;
        Self {
            log,
            run: run.clone(),
            agent: lane(AGENT, dialect, agent),
            own: Lane { check: CheckMode::Off, ..lane(OWN, Dialect::Runwire, own) },
            last_seq: 0,
            strays: 0,
            first_stray: None,
            shutdown: None,
        }
    }

    /// Waits for a store that is away, until the server stops.
    pub(super) fn until(self, shutdown: watch::Receiver<bool>) -> Self {
        Self { shutdown: Some(shutdown), ..self }
    }

    /// Refuses frames of the agent that its dialect's document does not allow.
    pub(super) fn strict(mut self, strict: bool) -> Self {
        self.agent.check = check_of(strict);
        self
    }

    /// Sets what becomes of a whole text of the agent that differs from what the run has told.
    pub(super) fn whole(mut self, whole: WholePolicy) -> Self {
        self.agent.whole = whole;
        self
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
                    // What is refused is shown to nobody as the agent's own frame.
                    let dialect = self.agent.dialect.name();
                    let dialect = if code == "breaks_document" { REFUSED } else { dialect };
                    self.stray(frame.line, frame.name, frame.data, &why, dialect).await?;
                    if code == "breaks_document" {
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

    /// Makes sure that no other server has taken the run over, before the agent is told something: a server that was
    /// paused for a while does not know it.
    pub(super) async fn check_ours(&mut self) -> Result<(), Stop> {
        let last_seq = self.last_seq;
        let checked = self.append(Who::Server, &FrameBatch::default(), false).await;
        self.last_seq = last_seq;
        checked.map(drop)
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
            Err(Stop::Closed | Stop::Fenced) | Ok(Some((_, "run_closed", _))) => {}
            Ok(Some((_, _, why))) => tracing::error!(run = &*self.run.id, why, "a run cannot be ended"),
            Err(stop) => tracing::warn!(run = &*self.run.id, %stop, "a run cannot be ended"),
        }
        false
    }

    /// Keeps a frame that the agent's dialect cannot read.
    async fn stray(
        &mut self,
        line: u64,
        name: Option<&str>,
        data: &[u8],
        why: &str,
        dialect: &'static str,
    ) -> Result<(), Stop> {
        self.count_stray(line, why)?;
        let mut frames = FrameBatch::default();
        frames.push(line, None, foreign(dialect, name, data).as_bytes());
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
        let (log, run) = (&self.log, &self.run);
        let attempt = || log.append(lane.append(run, frames.clone(), end));
        let appended = match &self.shutdown {
            Some(shutdown) => outage::outlast(shutdown, attempt).await,
            None => attempt().await,
        };
        match appended {
            Ok(appended) => {
                // Frames that were there have come in an attempt whose outcome nobody could tell.
                lane.next += appended.accepted + appended.duplicates;
                self.last_seq = self.last_seq.max(appended.last_seq);
                Ok(appended.fault.map(|fault| (fault.index, fault.problem.code(), fault.problem.to_string())))
            }
            Err(LogError::ThreadDeleted(_)) => Err(Stop::Closed),
            Err(LogError::ProducerFenced { .. }) => Err(Stop::Fenced),
            Err(error @ LogError::Damaged(_)) => {
                tracing::error!(run = &*self.run.id, %error, "the store refuses what an agent says");
                Err(Stop::Refused)
            }
            Err(error) => Err(Stop::Log(error)),
        }
    }
}

impl Lane {
    /// Stamps frames with what comes next.
    fn append(&self, run: &RunKey, frames: FrameBatch, end: bool) -> Append {
        let stamp = Stamp { producer: self.producer.clone(), epoch: self.epoch, index: self.next };
        Append {
            target: Target::Run(run.clone()),
            thread: None,
            dialect: Some(self.dialect),
            stamp: Some(stamp),
            frames,
            end,
            check: self.check,
            whole: self.whole,
        }
    }
}

/// How far the agent and the server beside it are in a run.
type Known = [Option<ProducerInfo>; 2];

async fn known(log: &dyn Log, run: &RunKey) -> Result<Known, LogError> {
    Ok([log.producer(run, AGENT).await?, log.producer(run, OWN).await?])
}

/// Tells the newest epoch under which a server has worked on a run; 0 where none has.
fn newest_epoch(known: &Known) -> u64 {
    known.iter().flatten().map(|known| known.epoch).max().unwrap_or(0)
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
fn foreign(dialect: &str, name: Option<&str>, data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    let frame = match Object::parse(data) {
        Ok(_) => text.into_owned(),
        Err(_) => serde_json::Value::from(text).to_string(),
    };
    let name = name.map(|name| format!(r#","name":{}"#, serde_json::Value::from(name))).unwrap_or_default();
    format!(r#"{{"type":"foreign","dialect":"{dialect}","frame":{frame}{name}}}"#)
}
