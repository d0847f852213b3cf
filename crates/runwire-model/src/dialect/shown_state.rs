//! State that all encoders share: what a reader has been shown of a run.

use serde::{Deserialize, Serialize};

use crate::event::{Body, ErrorInfo, Event, InteractionKind, Summary, TextStarted, ThinkingStarted, Usage};
use crate::record::EventPosition;
use crate::run::{Digest, continues};
use crate::time::Timestamp;

/// An open step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ShownStep {
    pub(super) id: String,
    pub(super) name: String,
    /// Ordinal of the step in its run, from 1.
    pub(super) ordinal: u64,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ShownCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) start: EventPosition,
    pub(super) at: Timestamp,
    /// Whether its arguments arrived in pieces.
    pub(super) has_pieces: bool,
    pub(super) called: bool,
    /// The message that calls it.
    pub(super) message_id: Option<String>,
}

/// An open text or thought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ShownText {
    pub(super) id: String,
    pub(super) start: EventPosition,
    /// Whether its frames need its id: it is not the assistant's, or it began while another one was open whose frames
    /// carry no id in most dialects.
    pub(super) needs_id: bool,
    /// Whether a frame has shown anything of it.
    pub(super) was_shown: bool,
    pub(super) role: Option<String>,
    in_subagent: bool,
    /// Digest of the content shown so far.
    pub(super) digest: Digest,
}

impl ShownText {
    /// Makes a text or thought that an event begins, and of which nothing was shown.
    fn new(id: &str, start: EventPosition, needs_id: bool, event: &Event) -> Self {
        Self {
            id: id.to_owned(),
            start,
            needs_id,
            was_shown: false,
            role: None,
            in_subagent: event.subagent_run_id.is_some(),
            digest: Digest::default(),
        }
    }

    /// Returns true for a text that is not the assistant's: only slots show it.
    pub(super) fn is_not_assistant(&self) -> bool {
        self.role.as_deref().is_some_and(|role| role != "assistant")
    }
}

/// An open interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ShownInteraction {
    pub(super) id: String,
    pub(super) kind: InteractionKind,
    pub(super) position: EventPosition,
}

/// Kind of the last piece, as long as nothing after it would end its text or thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LastPiece {
    Text,
    Thought,
}

/// State of what a reader has been shown of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ShownState {
    pub(super) steps: Vec<ShownStep>,
    pub(super) calls: Vec<ShownCall>,
    pub(super) texts: Vec<ShownText>,
    pub(super) thoughts: Vec<ShownText>,
    pub(super) interactions: Vec<ShownInteraction>,
    pub(super) last: Option<LastPiece>,
    /// Id of the assistant's last text outside subagents that is not empty.
    last_text: Option<String>,
    /// Last time of the source, if its dialect is the reader's.
    pub(super) source_time: Option<Timestamp>,
    pub(super) started_at: Option<Timestamp>,
    first_text_at: Option<Timestamp>,
    pub(super) step_count: u64,
    pub(super) call_count: u64,
    pub(super) usage: Option<Tokens>,
    /// Digest of the last fatal notice, so that the failure after it does not repeat the message.
    fatal: Option<Digest>,
}

/// Sums of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) total: u64,
}

impl Tokens {
    /// Returns true if more than the total is known.
    pub(super) fn has_parts(self) -> bool {
        self.prompt > 0 || self.completion > 0
    }

    pub(super) fn add(&mut self, prompt: Option<u64>, completion: Option<u64>, total: Option<u64>) {
        let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
        self.prompt = self.prompt.saturating_add(prompt);
        self.completion = self.completion.saturating_add(completion);
        self.total = self.total.saturating_add(total.unwrap_or(prompt.saturating_add(completion)));
    }
}

impl ShownState {
    /// Opens what an event begins; called before the event is encoded.
    pub(super) fn before_event(&mut self, event: &Event, position: EventPosition, at: Timestamp) {
        match &event.body {
            Body::RunStarted(_) => self.started_at = Some(at),
            Body::StepStarted(started) => {
                self.step_count += 1;
                let id = event.step_id.clone().unwrap_or_default();
                self.steps.push(ShownStep { id, name: started.name.clone(), ordinal: self.step_count });
            }
            Body::TextStarted(started) => {
                let is_not_assistant = started.is_not_assistant();
                let needs_id = is_not_assistant || self.has_unnamed_piece();
                let text = ShownText::new(&started.message_id, position, needs_id, event);
                let role = started.role.clone();
                self.texts.push(ShownText { was_shown: is_not_assistant, role, ..text });
            }
            Body::TextDelta(_) => {
                self.first_text_at.get_or_insert(at);
            }
            Body::ThinkingStarted(started) => {
                let needs_id = self.has_unnamed_piece();
                self.thoughts.push(ShownText::new(&started.message_id, position, needs_id, event));
            }
            Body::ToolArgsStarted(started) => self.calls.push(ShownCall {
                id: started.call_id.clone(),
                name: started.name.clone().unwrap_or_default(),
                start: position,
                at,
                has_pieces: true,
                called: false,
                message_id: started.message_id.clone(),
            }),
            Body::ToolCalled(called) => {
                self.call_count += 1;
                match self.calls.iter_mut().find(|call| call.id == called.call_id) {
                    Some(call) => {
                        (call.called, call.at) = (true, at);
                    }
                    None => self.calls.push(ShownCall {
                        id: called.call_id.clone(),
                        name: called.name.clone(),
                        start: position,
                        at,
                        has_pieces: false,
                        called: true,
                        message_id: called.message_id.clone(),
                    }),
                }
            }
            Body::InteractionRequested(asked) => {
                self.interactions.push(ShownInteraction {
                    id: asked.interaction_id.clone(),
                    kind: asked.kind,
                    position,
                });
            }
            Body::Usage(usage) => {
                let tokens = self.usage.get_or_insert_default();
                tokens.add(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens);
            }
            _ => {}
        }
    }

    /// Closes what an event ends; called after the event was encoded.
    ///
    /// `streams_arguments`: whether the dialect has frames for pieces of arguments.
    pub(super) fn after_event(&mut self, event: &Event, streams_arguments: bool) {
        // A text ends the thinking before it, also one whose frames name it.
        let begins_separately = match &event.body {
            Body::TextStarted(started) => started.is_not_assistant(),
            Body::TextDelta(delta) => self.awaits_first_frame(&delta.message_id),
            _ => false,
        };
        if begins_separately && event.subagent_run_id.is_none() && self.last == Some(LastPiece::Thought) {
            self.last = None;
        }
        let piece = match &event.body {
            Body::TextDelta(delta) => {
                let mut text = self.texts.iter_mut().find(|text| text.id == delta.message_id);
                if let Some(text) = text.as_mut().filter(|_| !delta.content.is_empty()) {
                    if text.digest.len == 0 && !text.is_not_assistant() && !text.in_subagent {
                        self.last_text = Some(text.id.clone());
                    }
                    text.digest = text.digest.then(Digest::of(&delta.content));
                }
                text
            }
            Body::ThinkingDelta(delta) => {
                self.thoughts.iter_mut().find(|thought| thought.id == delta.message_id)
            }
            _ => None,
        };
        if let Some(piece) = piece {
            piece.was_shown = true;
        }
        // What happens in a subagent ends no text outside it.
        if event.subagent_run_id.is_none() && self.ends_texts(&event.body, streams_arguments) {
            self.last = None;
        }
        match &event.body {
            Body::StepFinished(_) => self.steps.retain(|step| Some(&step.id) != event.step_id.as_ref()),
            Body::ToolCalled(called) => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == called.call_id) {
                    call.name.clone_from(&called.name);
                }
            }
            Body::TextDelta(_) | Body::ThinkingDelta(_) if event.subagent_run_id.is_some() => {}
            Body::TextFinished(finished) => self.texts.retain(|text| text.id != finished.message_id),
            Body::ThinkingFinished(finished) => {
                self.thoughts.retain(|thought| thought.id != finished.message_id)
            }
            Body::TextDelta(delta) if self.text(&delta.message_id).is_some_and(|text| !text.needs_id) => {
                self.last = Some(LastPiece::Text);
            }
            Body::ThinkingDelta(delta)
                if self.thought(&delta.message_id).is_some_and(|thought| !thought.needs_id) =>
            {
                self.last = Some(LastPiece::Thought);
            }
            Body::ToolFinished(finished) => self.calls.retain(|call| call.id != finished.call_id),
            Body::InteractionResolved(resolved) => {
                self.interactions.retain(|interaction| interaction.id != resolved.interaction_id);
            }
            Body::Notice(notice) if notice.fatal == Some(true) => {
                self.fatal = Some(Digest::of(&notice.message))
            }
            _ => {}
        }
    }

    /// Returns true while a text or thought is open whose frames carry no id. Those of a subagent always do.
    fn has_unnamed_piece(&self) -> bool {
        self.texts.iter().chain(&self.thoughts).any(|piece| !piece.needs_id && !piece.in_subagent)
    }

    /// Returns true if the frames of a text or thought need its id.
    pub(super) fn needs_id(&self, id: &str) -> bool {
        self.text(id).or_else(|| self.thought(id)).is_some_and(|piece| piece.needs_id)
    }

    /// Returns true if a text continues `previous`, the last text before it.
    pub(super) fn continues(&self, previous: &str, id: &str) -> bool {
        let is_outside = self.text(id).is_some_and(|text| !text.in_subagent);
        let is_closed = self.text(previous).is_none();
        is_outside && is_closed && self.last_text.as_deref() == Some(previous) && continues(previous, id)
    }

    /// Returns true until the first piece of a text that continues the one before it.
    pub(super) fn begins_continuation(&self, id: &str) -> bool {
        let is_new = self.text(id).is_some_and(|text| text.digest.len == 0 && !text.is_not_assistant());
        is_new && self.last_text.as_deref().is_some_and(|last| self.continues(last, id))
    }

    /// Returns true if the start of a text needs a frame in dialects whose pieces have no id: the text is not the
    /// assistant's, or follows one that nothing ended. A text whose frames carry its id starts with its first piece.
    pub(super) fn needs_start(&self, started: &TextStarted) -> bool {
        // The first piece of a continuation says that it is one.
        let apart = self.text(&started.message_id).is_some_and(|text| text.needs_id)
            || self.begins_continuation(&started.message_id);
        started.is_not_assistant() || (!apart && self.last == Some(LastPiece::Text))
    }

    /// Returns true if the start of a thought needs a frame, as [`Self::needs_start`] does for a text.
    pub(super) fn needs_thought_start(&self, started: &ThinkingStarted) -> bool {
        let needs_id = self.thought(&started.message_id).is_some_and(|thought| thought.needs_id);
        !needs_id && self.last == Some(LastPiece::Thought)
    }

    /// Returns true until the first frame of a text or thought whose frames need its id.
    pub(super) fn awaits_first_frame(&self, id: &str) -> bool {
        let piece = self.text(id).or_else(|| self.thought(id));
        piece.is_some_and(|piece| piece.needs_id && !piece.was_shown)
    }

    /// Returns true for an event that readers take for the end of the texts before it.
    fn ends_texts(&self, body: &Body, streams_arguments: bool) -> bool {
        match body {
            Body::StepStarted(_) | Body::StepFinished(_) | Body::ToolCalled(_) => true,
            Body::InteractionRequested(_) | Body::RunSuspended(_) => true,
            Body::InteractionResolved(_) => self.interactions.len() > 1,
            Body::ToolArgsDelta(_) => streams_arguments,
            // An end with fields of its own is shown in a slot.
            Body::TextFinished(finished) => {
                let native = self.text(&finished.message_id).is_some_and(|text| !text.needs_id);
                native && (finished.content.is_some() || finished.says_more())
            }
            Body::ThinkingFinished(finished) => {
                let native = self.thought(&finished.message_id).is_some_and(|thought| !thought.needs_id);
                native && finished.content.is_some()
            }
            _ => false,
        }
    }

    pub(super) fn text(&self, id: &str) -> Option<&ShownText> {
        self.texts.iter().find(|text| text.id == id)
    }

    pub(super) fn thought(&self, id: &str) -> Option<&ShownText> {
        self.thoughts.iter().find(|thought| thought.id == id)
    }

    pub(super) fn call(&self, id: &str) -> Option<&ShownCall> {
        self.calls.iter().find(|call| call.id == id)
    }

    /// Returns the step of an event: the one that it names, else the innermost.
    pub(super) fn step_of(&self, event: &Event) -> Option<&ShownStep> {
        let named = event.step_id.as_ref().and_then(|id| self.steps.iter().find(|step| step.id == *id));
        named.or_else(|| self.steps.last())
    }

    /// Returns true if the innermost step of a name ends, so that the name identifies it.
    pub(super) fn ends_innermost(&self, event: &Event, name: &str) -> bool {
        let innermost = self.steps.iter().rfind(|step| step.name == name);
        innermost.is_none_or(|step| Some(&step.id) == event.step_id.as_ref())
    }

    /// Returns true if the last fatal notice had the message of this error.
    pub(super) fn was_fatal_notice(&self, error: &ErrorInfo) -> bool {
        self.fatal == Some(Digest::of(&error.message))
    }

    /// Returns the token counts of a run's summary, if no event has counted tokens.
    pub(super) fn summed_usage(&self, own: Option<&Summary>) -> Option<Usage> {
        let own = own.filter(|_| self.usage.is_none())?;
        let mut usage = Usage {
            prompt_tokens: own.prompt_tokens,
            completion_tokens: own.completion_tokens,
            total_tokens: own.total_tokens,
        };
        if usage.total_tokens.is_none() {
            let parts = usage.prompt_tokens.unwrap_or(0).saturating_add(usage.completion_tokens.unwrap_or(0));
            usage.total_tokens = Some(parts);
        }
        let counts = [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens];
        counts.into_iter().flatten().any(|tokens| tokens > 0).then_some(usage)
    }

    /// Completes a summary for dialects that have tokens in it alone: counts of events take precedence over its own.
    pub(super) fn summary_with_usage(&self, own: Option<&Summary>, at: Timestamp) -> Summary {
        let mut summary = self.summary(own, at);
        if let Some(tokens) = self.usage {
            summary.prompt_tokens = Some(tokens.prompt);
            summary.completion_tokens = Some(tokens.completion);
            summary.total_tokens = Some(tokens.total);
        }
        summary
    }

    /// Completes a run's summary with the figures that it lacks.
    pub(super) fn summary(&self, own: Option<&Summary>, at: Timestamp) -> Summary {
        let mut summary = own.cloned().unwrap_or_default();
        if let Some(tokens) = self.usage {
            summary.prompt_tokens.get_or_insert(tokens.prompt);
            summary.completion_tokens.get_or_insert(tokens.completion);
            summary.total_tokens.get_or_insert(tokens.total);
        }
        if summary.prompt_tokens.is_some() || summary.completion_tokens.is_some() {
            let parts =
                summary.prompt_tokens.unwrap_or(0).saturating_add(summary.completion_tokens.unwrap_or(0));
            summary.total_tokens.get_or_insert(parts);
        }
        // The epoch stands for an unknown time.
        if let Some(started) = self.started_at.filter(|started| started.0 > 0) {
            summary.duration_ms.get_or_insert(at.since(started) as f64);
            if let Some(first) = self.first_text_at {
                summary.response_latency_ms.get_or_insert(first.since(started) as f64);
            }
        }
        summary.steps.get_or_insert(self.step_count);
        summary.tool_calls.get_or_insert(self.call_count);
        summary
    }
}
