//! The guard: decides which events may follow, and adds those that make every run well-formed.
//!
//! `apply` is a pure function of the run's state and an event. It runs where the event is written, under
//! the thread's single writer, so the first commit wins every race.

use super::state::{CallPhase, OpenCall, OpenInteraction, OpenStep, OpenText, RunState, Status, hash_of};
use crate::event::{
    Body, Decision, ErrorInfo, Event, Foreign, InteractionRequested, InteractionResolved, RunCompleted,
    RunFailed, RunResumed, RunStarted, RunStatus, RunSuspended, StepFinished, TextDelta, TextFinished,
    TextStarted, ThinkingDelta, ThinkingFinished, ThinkingStarted, ToolArgsDelta, ToolArgsStarted,
    ToolCalled, ToolFinished, ToolOutput, ToolProgress, ToolStarted, ToolStatus,
};
use crate::json::Json;
use crate::limits;
use crate::record::{Entry, EventOrigin, EventPosition, History};
use crate::{ErrorCode, RunFailureCode};

/// On whose behalf an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// A producer's; events of people and the server are refused.
    Producer,
    /// The server's, a person's, or that of a log being copied.
    Server,
}

/// Reason why an event was refused. A refusal changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run has ended.
    #[error("the run is {} and takes no more events; start a new run", .0.as_str())]
    RunClosed(Status),
    /// A size would exceed its limit.
    #[error("{what} would have more than {limit} bytes")]
    TooLarge {
        /// What exceeds it.
        what: &'static str,
        /// Its limit.
        limit: u64,
    },
    /// Too many things of one kind would be open.
    #[error("the run would have more than {limit} {what}")]
    TooMany {
        /// Their kind.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

impl Refusal {
    /// Returns the stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::RunClosed(_) => ErrorCode::RunClosed,
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::TooMany { .. } => ErrorCode::TooManyOpen,
        }
    }
}

/// Meaning of the end of input for a run that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfInput {
    /// The producer ended its stream: the run is complete, unless its last event was a fatal notice.
    Complete,
    /// The stream broke off: the run failed.
    Cut,
}

/// The way a run ends, as applied to what is still open.
#[derive(Clone, Copy)]
enum TerminalOutcome<'a> {
    Completed,
    Failed(&'a str),
    Cancelled,
}

impl RunState {
    /// Adds an event, and the events that it requires, to the record's entries.
    ///
    /// `seq` is the record's number. A refusal changes nothing.
    pub fn apply(
        &mut self,
        event: Event,
        origin: EventOrigin,
        authority: Authority,
        seq: u64,
        history: &dyn History,
        out: &mut Vec<Entry>,
    ) -> Result<(), Refusal> {
        self.check_limits(&event.body)?;
        let mut writer = Writer { state: self, seq, history, out };
        if authority == Authority::Producer {
            let event = writer.refuse_forgery(event);
            writer.write(event, origin);
        } else {
            writer.write(event, origin);
        }
        Ok(())
    }

    /// Ends a run whose input has ended. A closed run stays as it is.
    pub fn end_of_input(&mut self, end: EndOfInput, seq: u64, history: &dyn History, out: &mut Vec<Entry>) {
        if self.status.is_closed() {
            return;
        }
        let fatal = self.fatal.and_then(|position| history.notice(position));
        let body: Body = match (fatal, end) {
            (Some(notice), _) => RunFailed { error: notice.to_error(), ..Default::default() }.into(),
            (None, EndOfInput::Complete) => RunCompleted::default().into(),
            (None, EndOfInput::Cut) => {
                let error = RunFailureCode::StreamEnded.error("the stream ended before the run did");
                RunFailed { error, ..Default::default() }.into()
            }
        };
        Writer { state: self, seq, history, out }.write(Event::new(body), EventOrigin::Guard);
    }

    /// Checks the limits for several interactions at once.
    pub(crate) fn check_interactions<'q>(
        &self,
        asked: impl Iterator<Item = &'q InteractionRequested>,
    ) -> Result<(), Refusal> {
        let (count, bytes) =
            asked.fold((0, 0), |(count, bytes), asked| (count + 1, bytes + question_bytes(asked)));
        if self.interactions.len() + count > limits::OPEN_ITEMS {
            return Err(Refusal::TooMany { what: "open questions", limit: limits::OPEN_ITEMS });
        }
        if self.interaction_ids.len() + count > limits::RUN_INTERACTIONS {
            return Err(Refusal::TooMany { what: "questions", limit: limits::RUN_INTERACTIONS });
        }
        self.check_held(bytes)
    }

    /// Returns true for the end of something that never began, as far as ids are remembered.
    pub fn ends_nothing(&self, event: &Event) -> bool {
        let is_new = |id: &str, now: &str, open: &[OpenText]| {
            !self.recent.contains(&hash_of(id)) && open.iter().all(|text| text.id != now)
        };
        match &event.body {
            Body::StepFinished(finished) => {
                self.find_step(event.step_id.as_deref(), &finished.name).is_none()
            }
            Body::TextFinished(TextFinished { message_id: id, .. }) => {
                is_new(id, self.text_id(id), &self.texts) && self.text_digests.last_id.as_ref() != Some(id)
            }
            Body::ThinkingFinished(ThinkingFinished { message_id: id, .. }) => {
                is_new(id, self.thought_id(id), &self.thoughts)
            }
            Body::InteractionResolved(resolved) => {
                resolved.decision == Decision::Cancelled
                    && !self.interaction_ids.contains(&resolved.interaction_id)
            }
            _ => false,
        }
    }

    /// Returns the open step with an id, else the innermost one of a name.
    fn find_step(&self, id: Option<&str>, name: &str) -> Option<usize> {
        let by_id = self.steps.iter().rposition(|step| Some(step.id.as_str()) == id);
        by_id.or_else(|| self.steps.iter().rposition(|step| step.name == name))
    }

    fn check_held(&self, more: usize) -> Result<(), Refusal> {
        let limit = limits::RUN_ARGUMENT_BYTES;
        let what = "what the run's open calls and questions hold";
        let within = self.held_bytes() + more as u64 <= limit;
        within.then_some(()).ok_or(Refusal::TooLarge { what, limit })
    }

    /// Checks that the run is not closed.
    pub(crate) fn check_open(&self) -> Result<(), Refusal> {
        if self.status.is_closed() { Err(Refusal::RunClosed(self.status)) } else { Ok(()) }
    }

    /// Checks that the run is not closed, and that an event keeps within the limits.
    pub(crate) fn check_limits(&self, body: &Body) -> Result<(), Refusal> {
        self.check_open()?;
        let text = |more: usize| {
            let within = self.text_bytes + more as u64 <= limits::RUN_TEXT_BYTES;
            let refusal = Refusal::TooLarge { what: "the run's text", limit: limits::RUN_TEXT_BYTES };
            within.then_some(()).ok_or(refusal)
        };
        let check_open = |open: usize, what: &'static str, limit: usize| {
            (open < limit).then_some(()).ok_or(Refusal::TooMany { what, limit })
        };
        match body {
            Body::TextStarted(_) => check_open(self.texts.len(), "open texts", limits::OPEN_ITEMS),
            Body::ThinkingStarted(_) => check_open(self.thoughts.len(), "open thoughts", limits::OPEN_ITEMS),
            Body::StepStarted(_) => check_open(self.steps.len(), "open steps", limits::OPEN_ITEMS),
            // A piece of what is open opens nothing.
            Body::TextDelta(TextDelta { message_id, content, .. }) => {
                let current = self.text_id(message_id);
                if self.texts.iter().all(|text| text.id != current) {
                    check_open(self.texts.len(), "open texts", limits::OPEN_ITEMS)?;
                }
                text(content.len())
            }
            Body::ThinkingDelta(ThinkingDelta { message_id, content, .. }) => {
                let current = self.thought_id(message_id);
                if self.thoughts.iter().all(|thought| thought.id != current) {
                    check_open(self.thoughts.len(), "open thoughts", limits::OPEN_ITEMS)?;
                }
                text(content.len())
            }
            Body::TextFinished(TextFinished { content: Some(content), .. }) => text(content.len()),
            Body::ToolArgsStarted(_) => check_open(self.calls.len(), "open calls", limits::OPEN_ITEMS),
            // What is said of a call that nobody made makes it.
            Body::ToolStarted(ToolStarted { call_id, .. })
            | Body::ToolProgress(ToolProgress { call_id, .. })
            | Body::ToolOutput(ToolOutput { call_id, .. })
                if self.calls.iter().all(|call| call.id != *call_id) =>
            {
                check_open(self.calls.len(), "open calls", limits::OPEN_ITEMS)
            }
            Body::ToolArgsDelta(ToolArgsDelta { call_id, delta }) => {
                if self.calls.iter().all(|call| call.id != *call_id) {
                    check_open(self.calls.len(), "open calls", limits::OPEN_ITEMS)?;
                }
                let gathered =
                    self.calls.iter().find(|call| call.id == *call_id).map_or(0, |call| call.bytes);
                if gathered + delta.len() as u64 > limits::CALL_ARGUMENT_BYTES {
                    let what = "the arguments of the call";
                    return Err(Refusal::TooLarge { what, limit: limits::CALL_ARGUMENT_BYTES });
                }
                self.check_held(delta.len())
            }
            Body::ToolCalled(called) => {
                check_open(self.calls.len(), "open calls", limits::OPEN_ITEMS)?;
                self.check_held(call_bytes(called))
            }
            Body::InteractionRequested(asked) => self.check_interactions(std::iter::once(asked)),
            _ => Ok(()),
        }
    }
}

fn question_bytes(asked: &InteractionRequested) -> usize {
    let texts =
        [&asked.title, &asked.description, &asked.name, &asked.reason, &asked.call_id, &asked.expires_at];
    let values = [&asked.schema, &asked.ui, &asked.arguments];
    texts.into_iter().flatten().map(String::len).sum::<usize>()
        + values.into_iter().flatten().map(|json| json.text().len()).sum::<usize>()
}

fn call_bytes(called: &ToolCalled) -> usize {
    let texts = [&called.arguments_text, &called.description, &called.message_id];
    called.arguments.text().len()
        + called.name.len()
        + texts.into_iter().flatten().map(String::len).sum::<usize>()
}

/// Writer of the events of one record.
struct Writer<'a> {
    state: &'a mut RunState,
    seq: u64,
    history: &'a dyn History,
    out: &'a mut Vec<Entry>,
}

impl Writer<'_> {
    fn position(&self) -> EventPosition {
        EventPosition { seq: self.seq, index: self.out.len() as u32 }
    }

    fn push(&mut self, event: Event, origin: EventOrigin) {
        self.out.push(Entry { event, origin });
    }

    fn add_in(&mut self, body: impl Into<Body>, subagent: Option<String>) {
        let mut event = Event::new(body);
        event.step_id = self.state.current_step().map(|step| step.id.clone());
        event.subagent_run_id = subagent;
        self.push(event, EventOrigin::Guard);
    }

    /// Turns a producer's event into `foreign` if only people and the server may write it. A producer may withdraw its
    /// own interactions.
    fn refuse_forgery(&self, event: Event) -> Event {
        let forged = match &event.body {
            Body::RunCancelRequested(_) => true,
            Body::InteractionResolved(resolved) => resolved.decision != Decision::Cancelled,
            _ => false,
        };
        if !forged {
            return event;
        }
        Event::new(Foreign { dialect: "runwire".into(), frame: event.to_json(), name: None })
    }

    /// Writes an event, and the events that must precede and follow it.
    fn write(&mut self, mut event: Event, origin: EventOrigin) {
        if self.state.status == Status::Pending {
            self.state.status = Status::Running;
            if matches!(event.body, Body::RunStarted(_)) {
                return self.push(event, origin);
            }
            self.push(Event::new(RunStarted::default()), EventOrigin::Guard);
        }
        if !self.admit(&mut event) {
            return;
        }
        let settled = match &event.body {
            Body::InteractionRequested(asked) => Some((asked.interaction_id.clone(), Status::Suspended)),
            Body::InteractionResolved(resolved) if self.state.interactions.is_empty() => {
                Some((resolved.interaction_id.clone(), Status::Running))
            }
            _ => None,
        };
        self.push(event, origin);
        match settled {
            Some((id, Status::Suspended)) => self.suspend(vec![id]),
            Some((id, _)) => self.resume(vec![id]),
            None => {}
        }
    }

    /// Applies an event to the state, and adds the events that must precede it. Returns `false` for one that changes
    /// nothing.
    fn admit(&mut self, event: &mut Event) -> bool {
        let scope = match self.owner(event) {
            Some(owner) => owner.clone(),
            None => event.subagent_run_id.clone(),
        };
        event.subagent_run_id.clone_from(&scope);
        match &mut event.body {
            Body::RunStarted(_) => return false,
            Body::TextStarted(started) => return self.start_text(started, &scope),
            Body::TextDelta(delta) => self.continue_text(delta, &scope),
            Body::TextFinished(finished) => return self.finish_text(finished),
            Body::ThinkingStarted(started) => return self.start_thought(&mut started.message_id, &scope),
            Body::ThinkingDelta(delta) => self.continue_thought(delta, &scope),
            Body::ThinkingFinished(finished) => {
                finished.message_id = self.state.thought_id(&finished.message_id).to_owned();
                let open = self.state.thoughts.iter().position(|thought| thought.id == finished.message_id);
                let Some(at) = open else { return false };
                self.state.thoughts.remove(at);
            }
            Body::StepStarted(started) => {
                self.boundary(&scope);
                let (id, name) = (event.step_id.take(), started.name.clone());
                self.state.counts.steps += 1;
                let id = id.unwrap_or_else(|| format!("{name}.{}", self.state.counts.steps));
                event.step_id = Some(id.clone());
                self.state.steps.push(OpenStep { id, name, subagent: scope, source_id: None });
            }
            Body::StepFinished(finished) => {
                let open = self.state.find_step(event.step_id.as_deref(), &finished.name);
                let Some(at) = open else { return false };
                self.boundary(&scope);
                let step = self.state.steps.remove(at);
                (event.step_id, finished.name) = (Some(step.id), step.name);
            }
            Body::ToolArgsStarted(started) => return self.start_call(started, &scope),
            Body::ToolArgsDelta(delta) => return self.continue_call(delta, &scope),
            Body::ToolCalled(called) => return self.call(called, &scope),
            Body::ToolStarted(started) => {
                let call = self.open_call(&mut started.call_id, started.name.as_deref(), &scope);
                call.phase = CallPhase::Started;
            }
            Body::ToolProgress(progress) => {
                self.open_call(&mut progress.call_id, None, &scope);
            }
            Body::ToolOutput(output) => {
                self.open_call(&mut output.call_id, output.name.as_deref(), &scope);
            }
            Body::ToolFinished(finished) => self.finish_call(finished, &scope),
            Body::InteractionRequested(asked) => self.ask(asked),
            Body::InteractionResolved(resolved) => {
                let is = |question: &OpenInteraction| question.id == resolved.interaction_id;
                let Some(at) = self.state.interactions.iter().position(is) else { return false };
                self.state.interactions.remove(at);
                // The run waits for the rest: it is suspended anew.
                if !self.state.interactions.is_empty() {
                    self.close_texts(TerminalOutcome::Cancelled);
                }
            }
            Body::RunSuspended(suspended) => {
                if self.state.status == Status::Suspended {
                    return false;
                }
                self.close_texts(TerminalOutcome::Cancelled);
                self.state.status = Status::Suspended;
                if suspended.interaction_ids.is_empty() {
                    suspended.interaction_ids =
                        self.state.interactions.iter().map(|question| question.id.clone()).collect();
                }
            }
            Body::RunResumed(_) => {
                if self.state.status != Status::Suspended {
                    return false;
                }
                if self.state.interactions.is_empty() {
                    self.state.status = Status::Running;
                } else {
                    // Only an answer resumes; what the producer says of itself is kept as its status.
                    event.body = RunStatus { state: "resumed".into() }.into();
                }
            }
            Body::Notice(notice) if notice.fatal == Some(true) => self.state.fatal = Some(self.position()),
            Body::RunCompleted(_) => self.close(TerminalOutcome::Completed, Status::Completed),
            Body::RunFailed(RunFailed { error, .. }) => {
                self.close(TerminalOutcome::Failed(&error.message), Status::Failed)
            }
            Body::RunCancelled(_) => self.close(TerminalOutcome::Cancelled, Status::Cancelled),
            _ => {}
        }
        true
    }

    /// Returns the subagent that began what an event continues: it stays the owner, whoever continues.
    fn owner(&self, event: &Event) -> Option<&Option<String>> {
        let state = &self.state;
        let text = |id: &str, open: &'_ [OpenText]| open.iter().position(|text| text.id == id);
        match &event.body {
            Body::TextDelta(TextDelta { message_id, .. })
            | Body::TextFinished(TextFinished { message_id, .. }) => {
                text(state.text_id(message_id), &state.texts).map(|at| &state.texts[at].subagent)
            }
            Body::ThinkingDelta(ThinkingDelta { message_id, .. })
            | Body::ThinkingFinished(ThinkingFinished { message_id, .. }) => {
                text(state.thought_id(message_id), &state.thoughts).map(|at| &state.thoughts[at].subagent)
            }
            Body::ToolArgsDelta(ToolArgsDelta { call_id, .. })
            | Body::ToolCalled(ToolCalled { call_id, .. }) => {
                self.find_call(call_id).map(|at| &state.calls[at].subagent)
            }
            Body::StepFinished(finished) => {
                state.find_step(event.step_id.as_deref(), &finished.name).map(|at| &state.steps[at].subagent)
            }
            _ => None,
        }
    }

    // Texts and thoughts

    /// Closes the texts and thoughts of a run or subagent that has moved on. A later piece of one of them reopens it
    /// under another id, because no client can show one message in two places.
    fn boundary(&mut self, scope: &Option<String>) {
        self.close_thoughts_of(scope);
        while let Some(at) = self.state.texts.iter().position(|text| text.subagent == *scope) {
            let text = self.state.texts.remove(at);
            self.add_in(TextFinished { message_id: text.id, ..Default::default() }, text.subagent);
        }
    }

    fn close_thoughts_of(&mut self, scope: &Option<String>) {
        while let Some(at) = self.state.thoughts.iter().position(|thought| thought.subagent == *scope) {
            let thought = self.state.thoughts.remove(at);
            self.add_in(ThinkingFinished { message_id: thought.id, content: None }, thought.subagent);
        }
    }

    fn start_text(&mut self, started: &mut TextStarted, scope: &Option<String>) -> bool {
        if self.state.texts.iter().any(|text| text.id == self.state.text_id(&started.message_id)) {
            return false;
        }
        let assistant = started.role.as_deref().is_none_or(|role| role == "assistant");
        started.message_id = self.open_text(std::mem::take(&mut started.message_id), assistant, scope);
        true
    }

    fn open_text(&mut self, id: String, assistant: bool, scope: &Option<String>) -> String {
        self.close_thoughts_of(scope);
        let id = self.state.claim_id(id);
        let start = self.position();
        self.state.texts.push(OpenText {
            id: id.clone(),
            minted: false,
            assistant,
            subagent: scope.clone(),
            start,
            has_content: false,
        });
        id
    }

    fn continue_text(&mut self, delta: &mut TextDelta, scope: &Option<String>) {
        let current = self.state.text_id(&delta.message_id);
        let open = self.state.texts.iter().find(|text| text.id == current);
        let is_answer = open.map_or(scope.is_none(), |text| text.assistant && text.subagent.is_none());
        if open.is_some() {
            if current != delta.message_id {
                delta.message_id = current.to_owned();
            }
        } else {
            delta.message_id = self.open_text(delta.message_id.clone(), true, scope);
            self.add_in(TextStarted { message_id: delta.message_id.clone(), role: None }, scope.clone());
        }
        self.state.text_bytes += delta.content.len() as u64;
        if delta.content.is_empty() {
            return;
        }
        let text = self.state.texts.iter_mut().rfind(|text| text.id == delta.message_id);
        let is_first = text.is_some_and(|text| !std::mem::replace(&mut text.has_content, true));
        if is_answer {
            self.state.text_digests.grow(&delta.message_id, &delta.content, is_first);
        }
    }

    /// Closes a text. An end without an open text is dropped, unless it replaces the last message's content or says more
    /// of it.
    fn finish_text(&mut self, finished: &mut TextFinished) -> bool {
        finished.message_id = self.state.text_id(&finished.message_id).to_owned();
        let open = self.state.texts.iter().position(|text| text.id == finished.message_id);
        let is_last = self.state.text_digests.last_id.as_deref() == Some(&finished.message_id);
        let is_answer = open.map_or(is_last, |at| {
            let text = &self.state.texts[at];
            text.assistant && text.subagent.is_none()
        });
        if let (Some(content), true) = (&finished.content, is_answer) {
            let is_first = open.is_some_and(|at| !self.state.texts[at].has_content);
            self.state.text_digests.replace(&finished.message_id, content, is_first);
        }
        self.state.text_bytes += finished.content.as_ref().map_or(0, String::len) as u64;
        match open {
            Some(at) => {
                self.state.texts.remove(at);
                true
            }
            None => is_last && (finished.content.is_some() || finished.says_more()),
        }
    }

    fn start_thought(&mut self, id: &mut String, scope: &Option<String>) -> bool {
        if self.state.thoughts.iter().any(|thought| thought.id == self.state.thought_id(id)) {
            return false;
        }
        *id = self.state.claim_id(std::mem::take(id));
        let start = self.position();
        self.state.thoughts.push(OpenText {
            id: id.clone(),
            minted: false,
            assistant: true,
            subagent: scope.clone(),
            start,
            has_content: false,
        });
        true
    }

    fn continue_thought(&mut self, delta: &mut ThinkingDelta, scope: &Option<String>) {
        let current = self.state.thought_id(&delta.message_id);
        if self.state.thoughts.iter().any(|thought| thought.id == current) {
            if current != delta.message_id {
                delta.message_id = current.to_owned();
            }
        } else {
            self.start_thought(&mut delta.message_id, scope);
            let started =
                ThinkingStarted { message_id: delta.message_id.clone(), stage: delta.stage.clone() };
            self.add_in(started, scope.clone());
        }
        self.state.text_bytes += delta.content.len() as u64;
    }

    // Calls

    fn find_call(&self, id: &str) -> Option<usize> {
        let current = self.state.call_id(id);
        let is = |call: &OpenCall| call.id == current || call.alias.as_deref() == Some(id);
        self.state.calls.iter().position(is)
    }

    fn push_call(
        &mut self,
        id: String,
        name: Option<String>,
        phase: CallPhase,
        subagent: &Option<String>,
    ) -> String {
        let id = self.state.claim_id(id);
        self.state.counts.calls += 1;
        let start = self.position();
        let call = OpenCall {
            id: id.clone(),
            minted: false,
            subagent: subagent.clone(),
            alias: None,
            name,
            phase,
            start,
            bytes: 0,
            message_id: None,
        };
        self.state.calls.push(call);
        id
    }

    fn start_call(&mut self, started: &mut ToolArgsStarted, scope: &Option<String>) -> bool {
        if self.find_call(&started.call_id).is_some() {
            return false;
        }
        self.boundary(scope);
        started.call_id = self.push_call(
            std::mem::take(&mut started.call_id),
            started.name.clone(),
            CallPhase::Arguments,
            scope,
        );
        if let Some(call) = self.state.calls.last_mut() {
            call.message_id.clone_from(&started.message_id);
        }
        true
    }

    fn continue_call(&mut self, delta: &mut ToolArgsDelta, scope: &Option<String>) -> bool {
        let at = match self.find_call(&delta.call_id) {
            // Arguments of a call that was already made change nothing.
            Some(at) if self.state.calls[at].phase != CallPhase::Arguments => return false,
            Some(at) => {
                self.boundary(scope);
                at
            }
            None => {
                self.boundary(scope);
                let position = self.position();
                delta.call_id = self.push_call(delta.call_id.clone(), None, CallPhase::Arguments, scope);
                let started = ToolArgsStarted { call_id: delta.call_id.clone(), ..Default::default() };
                self.add_in(started, scope.clone());
                let at = self.state.calls.len() - 1;
                self.state.calls[at].start = position;
                at
            }
        };
        let call = &mut self.state.calls[at];
        call.bytes += delta.delta.len() as u64;
        delta.call_id.clone_from(&call.id);
        true
    }

    fn call(&mut self, called: &mut ToolCalled, scope: &Option<String>) -> bool {
        let bytes = call_bytes(called) as u64;
        let at = match self.find_call(&called.call_id) {
            Some(at) if self.state.calls[at].phase == CallPhase::Arguments => {
                self.boundary(scope);
                at
            }
            Some(_) => return false,
            None => {
                self.boundary(scope);
                self.push_call(called.call_id.clone(), None, CallPhase::Called, scope);
                self.state.calls.len() - 1
            }
        };
        let call = &mut self.state.calls[at];
        (call.phase, call.bytes) = (CallPhase::Called, bytes);
        call.name = Some(called.name.clone());
        called.call_id.clone_from(&call.id);
        if called.message_id.is_none() {
            called.message_id.clone_from(&call.message_id);
        }
        true
    }

    fn finish_call(&mut self, finished: &mut ToolFinished, scope: &Option<String>) {
        if self.answer_carried(finished) {
            return;
        }
        let id = self.open_call(&mut finished.call_id, finished.name.as_deref(), scope).id.clone();
        self.state.calls.retain(|call| call.id != id);
    }

    /// Adds the result of a call that the thread's previous run left open.
    fn answer_carried(&mut self, finished: &mut ToolFinished) -> bool {
        let Some(at) = self.state.carried.iter().position(|call| call.id == finished.call_id) else {
            return false;
        };
        let call = self.state.carried.remove(at);
        if finished.name.is_none() {
            finished.name = call.name;
        }
        true
    }

    /// Returns the open call that an event refers to; an unknown one is added rather than lose the event.
    fn open_call(&mut self, id: &mut String, name: Option<&str>, scope: &Option<String>) -> &mut OpenCall {
        let at = match self.find_call(id) {
            Some(at) => at,
            None => {
                let start = self.position();
                *id = self.push_call(std::mem::take(id), None, CallPhase::Arguments, scope);
                let at = self.state.calls.len() - 1;
                self.state.calls[at].start = start;
                at
            }
        };
        if self.state.calls[at].phase == CallPhase::Arguments {
            let owner = self.state.calls[at].subagent.clone();
            self.boundary(&owner);
            self.call_with_gathered(at, name);
        }
        id.clone_from(&self.state.calls[at].id);
        &mut self.state.calls[at]
    }

    /// Adds the call of which only argument pieces arrived.
    fn call_with_gathered(&mut self, at: usize, name: Option<&str>) {
        let call = &self.state.calls[at];
        let text = match call.bytes {
            0 => String::new(),
            _ => self.history.arguments(call.start, &call.id),
        };
        let name = call.name.as_deref().or(name).unwrap_or("unknown").to_owned();
        let mut called = ToolCalled {
            call_id: call.id.clone(),
            name: name.clone(),
            message_id: call.message_id.clone(),
            ..Default::default()
        };
        set_arguments(&mut called, &text);
        let call = &mut self.state.calls[at];
        (call.name, call.phase) = (Some(name), CallPhase::Called);
        let subagent = call.subagent.clone();
        self.add_in(called, subagent);
    }

    // Questions

    fn ask(&mut self, asked: &mut InteractionRequested) {
        self.close_texts(TerminalOutcome::Cancelled);
        let wanted = std::mem::take(&mut asked.interaction_id);
        let taken = |id: &str| self.state.interaction_ids.iter().any(|known| known == id);
        asked.interaction_id = if taken(&wanted) {
            (2..).map(|n| format!("{wanted}.{n}")).find(|id| !taken(id)).unwrap_or(wanted)
        } else {
            wanted
        };
        self.state.interaction_ids.push(asked.interaction_id.clone());
        let (position, bytes) = (self.position(), question_bytes(asked) as u64);
        let id = asked.interaction_id.clone();
        self.state.interactions.push(OpenInteraction { id, kind: asked.kind, position, bytes });
    }

    fn suspend(&mut self, interaction_ids: Vec<String>) {
        if self.state.status == Status::Suspended {
            return;
        }
        self.state.status = Status::Suspended;
        self.push(Event::new(RunSuspended { reason: None, interaction_ids }), EventOrigin::Guard);
    }

    fn resume(&mut self, interaction_ids: Vec<String>) {
        if self.state.status != Status::Suspended {
            return;
        }
        self.state.status = Status::Running;
        self.push(Event::new(RunResumed { reason: None, interaction_ids }), EventOrigin::Guard);
    }

    // Endings

    fn close_texts(&mut self, ending: TerminalOutcome<'_>) {
        let status = match ending {
            TerminalOutcome::Completed => None,
            TerminalOutcome::Failed(_) => Some("failed".to_owned()),
            TerminalOutcome::Cancelled => Some("partial_success".to_owned()),
        };
        for thought in std::mem::take(&mut self.state.thoughts) {
            self.add_in(ThinkingFinished { message_id: thought.id, content: None }, thought.subagent);
        }
        for text in std::mem::take(&mut self.state.texts) {
            let finished = TextFinished { message_id: text.id, status: status.clone(), ..Default::default() };
            self.add_in(finished, text.subagent);
        }
    }

    /// Closes all that is open, so that nothing gathered is lost and no reader waits for an end.
    fn close(&mut self, ending: TerminalOutcome<'_>, status: Status) {
        self.close_texts(ending);
        let why = match ending {
            TerminalOutcome::Completed => None,
            TerminalOutcome::Failed(message) => Some(message),
            TerminalOutcome::Cancelled => Some("cancelled"),
        };
        for at in 0..self.state.calls.len() {
            if self.state.calls[at].phase == CallPhase::Arguments {
                self.call_with_gathered(at, None);
                if let Some(Entry { event: Event { body: Body::ToolCalled(called), .. }, .. }) =
                    self.out.last_mut()
                {
                    cut_off(called, why.is_some());
                }
            }
        }
        if let Some(message) = why {
            for call in std::mem::take(&mut self.state.calls) {
                let finished = ToolFinished {
                    call_id: call.id,
                    name: call.name,
                    status: ToolStatus::Failure,
                    error: Some(ErrorInfo::message(message)),
                    ..Default::default()
                };
                self.add_in(finished, call.subagent);
            }
        }
        for step in std::mem::take(&mut self.state.steps).into_iter().rev() {
            let mut event = Event::new(StepFinished { name: step.name, error: why.map(ErrorInfo::message) });
            (event.step_id, event.subagent_run_id) = (Some(step.id), step.subagent);
            self.push(event, EventOrigin::Guard);
        }
        for question in std::mem::take(&mut self.state.interactions) {
            let resolved = InteractionResolved {
                interaction_id: question.id,
                decision: Decision::Cancelled,
                ..Default::default()
            };
            self.push(Event::new(resolved), EventOrigin::Guard);
        }
        self.state.status = status;
    }
}

/// Sets a call's arguments from their text: the object that it parses to, else the text itself.
pub(crate) fn set_arguments(called: &mut ToolCalled, text: &str) {
    let text = text.trim();
    match Json::parse(text) {
        Ok(json) if json.is_object() => called.arguments = json,
        _ => {
            called.arguments = Json::empty_object();
            called.arguments_text = (!text.is_empty()).then(|| text.to_owned());
        }
    }
}

/// Marks a call whose arguments were cut off. On failure they count as cut off even if they parse.
fn cut_off(called: &mut ToolCalled, failed: bool) {
    if failed && called.arguments_text.is_none() && called.arguments.text() != "{}" {
        called.arguments_text = Some(called.arguments.text().to_owned());
        called.arguments = Json::empty_object();
    }
    if failed || called.arguments_text.is_some() {
        called.incomplete = Some(true);
    }
}
