//! Preflight check: runs the server's decoder and guard on each frame before it is queued.
//!
//! A frame that passes is accepted by the server if the engine is the run's only producer. The check does not know
//! what other producers and people write to the run, nor what a resumed engine's predecessor has left open.

use std::collections::HashSet;

use runwire_model::Json;
use runwire_model::dialect::{DecodeError, Decoder, RecordBuilder};
use runwire_model::event::{Body, Decision, Event, InteractionRequested, Notice, ToolCalled};
use runwire_model::record::{ChatMessage, Entry, EventPosition, History};
use runwire_model::run::{Authority, CallPhase, OpenCall, OpenStep, Refusal, RunState, RunText, Status};

use super::EmitError;
use super::emission::{Emission, check_id};
use super::engine::DIALECT;

/// Whether an engine creates its run or joins it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The engine creates the run.
    Fresh,
    /// The run exists, and the producer has sent `next` frames to it.
    Joined { next: u64 },
}

impl Start {
    /// Returns the sequence of the first event.
    pub(super) fn sequence(self) -> u64 {
        match self {
            Self::Fresh => 0,
            Self::Joined { next } => next,
        }
    }
}

/// The state of the run as the engine knows it.
#[derive(Debug)]
pub(super) struct Preflight {
    decoder: Decoder,
    state: RunState,
    /// Ids of all requested interactions. People answer them, so only the server knows which are open.
    asked: HashSet<String>,
    /// Whether others may have written to the run before, so that its state is not known here.
    joined: bool,
    records: u64,
    entries: Vec<Entry>,
}

impl Preflight {
    pub(super) fn new(run_id: &str, from: Start) -> Self {
        let mut state = RunState::new(run_id, run_id);
        let joined = from != Start::Fresh;
        if matches!(from, Start::Joined { next: 1.. }) {
            state.status = Status::Running;
        }
        let decoder = Decoder::new(DIALECT);
        Self { decoder, state, asked: HashSet::new(), joined, records: 0, entries: Vec::new() }
    }

    /// Returns true if the engine creates the run.
    pub(super) fn is_fresh(&self) -> bool {
        !self.joined
    }

    /// Returns the innermost open step.
    pub(super) fn current_step(&self) -> Option<String> {
        self.state.current_step().map(|step| step.id.clone())
    }

    /// Checks that an emission refers to calls, steps and interactions that exist.
    pub(super) fn check_references(&self, emission: &Emission) -> Result<(), EmitError> {
        if self.state.status.is_closed() {
            return Err(EmitError::Ended);
        }
        match emission {
            Emission::SessionStart { .. } if self.state.status != Status::Pending => {
                Err(EmitError::field("type", "a session starts once, before anything else"))
            }
            Emission::ToolCallStart { tool_id, .. } if self.is_called(tool_id) => {
                Err(EmitError::field("tool_id", format!("the call `{tool_id}` is open already")))
            }
            Emission::ToolCallProgress { tool_id, .. } | Emission::ToolCallEnd { tool_id, .. } => {
                self.check_call("tool_id", tool_id)
            }
            Emission::Event(event) => self.check_event(event),
            _ => Ok(()),
        }
    }

    fn check_event(&self, event: &Event) -> Result<(), EmitError> {
        let id = check_id;
        if let Some(step) = &event.step_id {
            id("step_id", step)?;
        }
        let ends_message = matches!(event.body, Body::TextFinished(_) | Body::ThinkingFinished(_));
        if ends_message && !self.joined && self.state.ends_nothing(event) {
            return Err(EmitError::field("message_id", "no message of this id has begun"));
        }
        match &event.body {
            Body::RunStarted(_) if self.state.status != Status::Pending => {
                Err(EmitError::field("type", "a run starts once, before anything else"))
            }
            Body::RunCancelRequested(_) => Err(not_for_producers()),
            Body::InteractionResolved(resolved) if resolved.decision != Decision::Cancelled => {
                Err(not_for_producers())
            }
            Body::InteractionResolved(resolved) if !self.was_asked(&resolved.interaction_id) => {
                let problem = format!("the question `{}` was not asked", resolved.interaction_id);
                Err(EmitError::field("interaction_id", problem))
            }
            Body::InteractionRequested(asked) => {
                id("interaction_id", &asked.interaction_id)?;
                let again = self.asked.contains(&asked.interaction_id);
                let problem = || format!("the question `{}` was asked before", asked.interaction_id);
                (!again).then_some(()).ok_or_else(|| EmitError::field("interaction_id", problem()))
            }
            Body::StepStarted(started) => id("name", &started.name),
            Body::StepFinished(finished) => {
                let named = |step: &OpenStep| match &event.step_id {
                    Some(id) => step.id == *id,
                    None => step.name == finished.name,
                };
                let open = self.joined || self.state.steps.iter().any(named);
                let problem = || format!("the step `{}` is not open", finished.name);
                open.then_some(()).ok_or_else(|| EmitError::field("step_id", problem()))
            }
            Body::TextStarted(started) => id("message_id", &started.message_id),
            Body::TextDelta(delta) => id("message_id", &delta.message_id),
            Body::TextFinished(finished) => id("message_id", &finished.message_id),
            Body::ThinkingStarted(started) => id("message_id", &started.message_id),
            Body::ThinkingDelta(delta) => id("message_id", &delta.message_id),
            Body::ThinkingFinished(finished) => id("message_id", &finished.message_id),
            Body::ToolArgsStarted(started) if self.has_call(&started.call_id) => {
                Err(EmitError::field("call_id", format!("the call `{}` is open already", started.call_id)))
            }
            Body::ToolArgsStarted(started) => id("call_id", &started.call_id),
            Body::ToolArgsDelta(delta) => self.check_call("call_id", &delta.call_id),
            Body::ToolCalled(called) if self.is_called(&called.call_id) => {
                Err(EmitError::field("call_id", format!("the call `{}` is open already", called.call_id)))
            }
            Body::ToolCalled(called) => {
                id("call_id", &called.call_id).and_then(|()| id("name", &called.name))
            }
            Body::ToolStarted(started) => self.check_call("call_id", &started.call_id),
            Body::ToolProgress(progress) => self.check_call("call_id", &progress.call_id),
            Body::ToolOutput(output) => self.check_call("call_id", &output.call_id),
            Body::ToolFinished(finished) => self.check_call("call_id", &finished.call_id),
            _ => Ok(()),
        }
    }

    /// Finds an open call; the guard appends a number to an id that was used before.
    fn call(&self, id: &str) -> Option<&OpenCall> {
        let is = |call: &&OpenCall| {
            call.id.strip_prefix(id).is_some_and(|rest| rest.is_empty() || is_number(rest))
        };
        self.state.calls.iter().find(is)
    }

    fn has_call(&self, id: &str) -> bool {
        self.call(id).is_some()
    }

    /// Returns true if a call is open that is more than streamed arguments.
    fn is_called(&self, id: &str) -> bool {
        self.call(id).is_some_and(|call| call.phase != CallPhase::Arguments)
    }

    fn check_call(&self, field: &str, id: &str) -> Result<(), EmitError> {
        check_id(field, id)?;
        let known = self.joined || self.has_call(id);
        known.then_some(()).ok_or_else(|| EmitError::field(field, format!("the call `{id}` is not open")))
    }

    fn was_asked(&self, id: &str) -> bool {
        self.joined || self.asked.contains(id)
    }

    /// Applies a frame to the run's state, or refuses it; then nothing changes.
    pub(super) fn admit(&mut self, emission: &Emission, frame: &[u8]) -> Result<(), EmitError> {
        self.entries.clear();
        let opened = self.decoder.open(None, frame).map_err(refused)?;
        let mut builder = RecordBuilder::new(
            &mut self.state,
            &NoRecords,
            Authority::Producer,
            DIALECT,
            self.records + 1,
            &mut self.entries,
        );
        self.decoder.decode(opened, &mut builder).map_err(refused)?;
        self.records += 1;
        if let Emission::Event(event) = emission
            && let Body::InteractionRequested(asked) = &event.body
        {
            self.asked.insert(asked.interaction_id.clone());
        }
        // Answers are not seen here, so no interaction is kept open: the server counts them.
        self.state.interactions.clear();
        if self.state.status == Status::Suspended {
            self.state.status = Status::Running;
        }
        Ok(())
    }
}

/// Returns true if this is the suffix that the guard appends to a reused id.
fn is_number(rest: &str) -> bool {
    rest.strip_prefix('#').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn not_for_producers() -> EmitError {
    EmitError::field("type", "only people and the server may say this")
}

fn refused(error: DecodeError) -> EmitError {
    match error {
        DecodeError::Frame(fault) => EmitError::Frame(fault),
        DecodeError::Field(error) => EmitError::Field { field: error.field, problem: error.problem },
        DecodeError::Refused(Refusal::RunClosed(_)) => EmitError::Ended,
        DecodeError::Refused(refusal) => EmitError::Limit(refusal),
    }
}

/// No earlier records: whether a frame is accepted does not depend on their contents.
struct NoRecords;

impl History for NoRecords {
    fn text(&self, _: EventPosition, _: &str) -> String {
        String::new()
    }

    fn arguments(&self, _: EventPosition, _: &str) -> String {
        String::new()
    }

    fn call(&self, _: EventPosition, _: &str) -> Option<ToolCalled> {
        None
    }

    fn interaction(&self, _: EventPosition, _: &str) -> Option<InteractionRequested> {
        None
    }

    fn notice(&self, _: EventPosition) -> Option<Notice> {
        None
    }

    fn run_texts(&self) -> Vec<RunText> {
        Vec::new()
    }

    fn state(&self) -> Option<Json> {
        None
    }

    fn messages(&self) -> Vec<ChatMessage> {
        Vec::new()
    }
}
