//! What the run would say to a frame: the server's own decoder and guard, before anything is sent.
//!
//! What passes here, passes at the server, as far as the run is the engine's alone. What other producers and
//! people do to the run, and what a resumed engine's predecessor has left open, only the server knows.

use std::collections::HashSet;

use runwire_model::Json;
use runwire_model::dialect::{DecodeError, Decoder, Dialect, Weave};
use runwire_model::event::{Body, Decision, Event, InteractionRequested, Notice, ToolCalled};
use runwire_model::record::{ChatMessage, Earlier, Entry, Place};
use runwire_model::run::{Authority, CallPhase, OpenCall, OpenStep, Refusal, RunState, RunText, Status};

use super::EmitError;
use super::frame::{Says, check_id};

/// How an engine comes to its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The run is its own.
    Fresh,
    /// The run is there already, and the producer has sent so many frames to it.
    Joined { next: u64 },
}

impl Start {
    /// Tells the sequence of the first event.
    pub(super) fn sequence(self) -> u64 {
        match self {
            Self::Fresh => 0,
            Self::Joined { next } => next,
        }
    }
}

/// The run as the engine knows it.
#[derive(Debug)]
pub(super) struct Check {
    decoder: Decoder,
    state: RunState,
    /// Every question's id: people answer them, so which are open only the server knows.
    asked: HashSet<String>,
    /// Whether others may have written to the run before, so that much of it is not known here.
    joined: bool,
    records: u64,
    entries: Vec<Entry>,
}

impl Check {
    pub(super) fn new(run_id: &str, from: Start) -> Self {
        let mut state = RunState::new(run_id, run_id);
        let joined = from != Start::Fresh;
        if matches!(from, Start::Joined { next: 1.. }) {
            state.status = Status::Running;
        }
        let decoder = Decoder::new(Dialect::StreamingEngine);
        Self { decoder, state, asked: HashSet::new(), joined, records: 0, entries: Vec::new() }
    }

    /// Tells whether the run is the engine's own, as far as it knows.
    pub(super) fn is_fresh(&self) -> bool {
        !self.joined
    }

    /// Tells the innermost open step.
    pub(super) fn current_step(&self) -> Option<String> {
        self.state.current_step().map(|step| step.id.clone())
    }

    /// Checks that what is said is about something that there is.
    pub(super) fn check_meaning(&self, says: &Says) -> Result<(), EmitError> {
        if self.state.status.is_closed() {
            return Err(EmitError::Ended);
        }
        match says {
            Says::SessionStart { .. } if self.state.status != Status::Pending => {
                Err(EmitError::field("type", "a session starts once, before anything else"))
            }
            Says::ToolCallStart { tool_id, .. } if self.is_called(tool_id) => {
                Err(EmitError::field("tool_id", format!("the call `{tool_id}` is open already")))
            }
            Says::ToolCallProgress { tool_id, .. } | Says::ToolCallEnd { tool_id, .. } => {
                self.check_call("tool_id", tool_id)
            }
            Says::Event(event) => self.check_event(event),
            _ => Ok(()),
        }
    }

    fn check_event(&self, event: &Event) -> Result<(), EmitError> {
        let id = check_id;
        if let Some(step) = &event.step_id {
            id("step_id", step)?;
        }
        match &event.body {
            Body::RunStarted(_) if self.state.status != Status::Pending => {
                Err(EmitError::field("type", "a run starts once, before anything else"))
            }
            Body::RunCancelRequested(_) => Err(not_a_producers()),
            Body::InteractionResolved(resolved) if resolved.decision != Decision::Cancelled => {
                Err(not_a_producers())
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

    /// Finds an open call; the guard has put a number after an id that was used before.
    fn call(&self, id: &str) -> Option<&OpenCall> {
        let is = |call: &&OpenCall| {
            call.id.strip_prefix(id).is_some_and(|rest| rest.is_empty() || is_number(rest))
        };
        self.state.calls.iter().find(is)
    }

    fn has_call(&self, id: &str) -> bool {
        self.call(id).is_some()
    }

    /// Tells whether a call is open of which not only the arguments have come.
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

    /// Lets the run take a frame, or says why it may not; then nothing has changed.
    pub(super) fn admit(&mut self, says: &Says, frame: &[u8]) -> Result<(), EmitError> {
        self.entries.clear();
        let opened = self.decoder.open(None, frame).map_err(refused)?;
        let mut weave = Weave::new(
            &mut self.state,
            &Nothing,
            Authority::Producer,
            Dialect::StreamingEngine,
            self.records + 1,
            &mut self.entries,
        );
        self.decoder.decode(opened, &mut weave).map_err(refused)?;
        self.records += 1;
        if let Says::Event(event) = says
            && let Body::InteractionRequested(asked) = &event.body
        {
            self.asked.insert(asked.interaction_id.clone());
        }
        // Answers are not seen here, so no question is held open: the server counts them.
        self.state.questions.clear();
        if self.state.status == Status::Suspended {
            self.state.status = Status::Running;
        }
        Ok(())
    }
}

/// Tells whether this is what the guard puts after an id that is used again.
fn is_number(rest: &str) -> bool {
    rest.strip_prefix('#').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn not_a_producers() -> EmitError {
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

/// No earlier records: whether a frame may be written does not depend on what they said.
struct Nothing;

impl Earlier for Nothing {
    fn text(&self, _: Place, _: &str) -> String {
        String::new()
    }

    fn arguments(&self, _: Place, _: &str) -> String {
        String::new()
    }

    fn call(&self, _: Place, _: &str) -> Option<ToolCalled> {
        None
    }

    fn question(&self, _: Place, _: &str) -> Option<InteractionRequested> {
        None
    }

    fn notice(&self, _: Place) -> Option<Notice> {
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
