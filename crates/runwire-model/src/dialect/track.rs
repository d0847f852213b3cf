//! What a reader has been shown of a run: the part that encoders have in common.

use serde::{Deserialize, Serialize};

use crate::event::{Body, ErrorInfo, Event, InteractionKind, Summary, TextStarted, ThinkingStarted, Usage};
use crate::record::Place;
use crate::run::{Digest, continues};
use crate::time::Timestamp;

/// A step that is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) id: String,
    pub(super) name: String,
    /// The ordinal step of the run it is, from 1.
    pub(super) ordinal: u64,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) start: Place,
    pub(super) at: Timestamp,
    /// Whether pieces of its arguments were seen.
    pub(super) pieces: bool,
    pub(super) called: bool,
    /// The message that calls it.
    pub(super) message_id: Option<String>,
}

/// A text or thought that is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) id: String,
    pub(super) start: Place,
    /// Told in slots: a dialect whose pieces have no id can tell only one text of the assistant at a time.
    pub(super) aside: bool,
    /// Whether anything was told of it.
    pub(super) told: bool,
    pub(super) role: Option<String>,
    in_subagent: bool,
    /// What was told of it.
    pub(super) digest: Digest,
}

impl Piece {
    /// Returns whether the text is not the assistant's.
    fn is_not_assistant(&self) -> bool {
        self.role.as_deref().is_some_and(|role| role != "assistant")
    }
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) kind: InteractionKind,
    pub(super) place: Place,
}

/// Which kind of piece was told last, with nothing after it that would end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Last {
    Text,
    Thought,
}

/// What a reader has been shown of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Track {
    pub(super) steps: Vec<Step>,
    pub(super) calls: Vec<Call>,
    pub(super) texts: Vec<Piece>,
    pub(super) thoughts: Vec<Piece>,
    pub(super) questions: Vec<Asked>,
    pub(super) last: Option<Last>,
    /// The assistant's text outside subagents that began last, of those that said anything.
    last_text: Option<String>,
    pub(super) started_at: Option<Timestamp>,
    first_text_at: Option<Timestamp>,
    pub(super) step_count: u64,
    pub(super) call_count: u64,
    pub(super) usage: Option<Tokens>,
    /// The message of the last fatal notice, so that the failure that follows does not say it again.
    fatal: Option<Digest>,
}

/// Tokens, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) total: u64,
}

impl Tokens {
    /// Returns whether more is known than the total.
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

impl Track {
    /// Takes note of what an event begins, before it is told.
    pub(super) fn before(&mut self, event: &Event, place: Place, at: Timestamp) {
        match &event.body {
            Body::RunStarted(_) => self.started_at = Some(at),
            Body::StepStarted(started) => {
                self.step_count += 1;
                let id = event.step_id.clone().unwrap_or_default();
                self.steps.push(Step { id, name: started.name.clone(), ordinal: self.step_count });
            }
            Body::TextStarted(started) => {
                let aside = started.is_not_assistant()
                    || self.texts.iter().chain(&self.thoughts).any(|piece| !piece.aside);
                self.texts.push(Piece {
                    id: started.message_id.clone(),
                    start: place,
                    aside,
                    told: started.is_not_assistant(),
                    role: started.role.clone(),
                    in_subagent: event.subagent_run_id.is_some(),
                    digest: Digest::default(),
                });
            }
            Body::TextDelta(_) => {
                self.first_text_at.get_or_insert(at);
            }
            Body::ThinkingStarted(started) => {
                let aside = self.texts.iter().chain(&self.thoughts).any(|piece| !piece.aside);
                self.thoughts.push(Piece {
                    id: started.message_id.clone(),
                    start: place,
                    aside,
                    told: false,
                    role: None,
                    in_subagent: event.subagent_run_id.is_some(),
                    digest: Digest::default(),
                });
            }
            Body::ToolArgsStarted(started) => self.calls.push(Call {
                id: started.call_id.clone(),
                name: started.name.clone().unwrap_or_default(),
                start: place,
                at,
                pieces: true,
                called: false,
                message_id: started.message_id.clone(),
            }),
            Body::ToolCalled(called) => {
                self.call_count += 1;
                match self.calls.iter_mut().find(|call| call.id == called.call_id) {
                    Some(call) => {
                        (call.called, call.at) = (true, at);
                    }
                    None => self.calls.push(Call {
                        id: called.call_id.clone(),
                        name: called.name.clone(),
                        start: place,
                        at,
                        pieces: false,
                        called: true,
                        message_id: called.message_id.clone(),
                    }),
                }
            }
            Body::InteractionRequested(asked) => {
                self.questions.push(Asked { id: asked.interaction_id.clone(), kind: asked.kind, place });
            }
            Body::Usage(usage) => {
                let tokens = self.usage.get_or_insert_default();
                tokens.add(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens);
            }
            _ => {}
        }
    }

    /// Takes note of what an event ends, after it was told.
    ///
    /// `chunks` says whether the dialect tells pieces of arguments.
    pub(super) fn after(&mut self, event: &Event, chunks: bool) {
        // A text ends the thinking before it, also one that is told in slots.
        let begins_aside = match &event.body {
            Body::TextStarted(started) => started.is_not_assistant(),
            Body::TextDelta(delta) => self.is_silent(&delta.message_id),
            _ => false,
        };
        if begins_aside && event.subagent_run_id.is_none() && self.last == Some(Last::Thought) {
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
            piece.told = true;
        }
        // What happens in a subagent ends no text outside it.
        if event.subagent_run_id.is_none() && self.ends_texts(&event.body, chunks) {
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
            Body::TextDelta(delta) if self.text(&delta.message_id).is_some_and(|text| !text.aside) => {
                self.last = Some(Last::Text);
            }
            Body::ThinkingDelta(delta)
                if self.thought(&delta.message_id).is_some_and(|thought| !thought.aside) =>
            {
                self.last = Some(Last::Thought);
            }
            Body::ToolFinished(finished) => self.calls.retain(|call| call.id != finished.call_id),
            Body::InteractionResolved(resolved) => {
                self.questions.retain(|question| question.id != resolved.interaction_id);
            }
            Body::Notice(notice) if notice.fatal == Some(true) => {
                self.fatal = Some(Digest::of(&notice.message))
            }
            _ => {}
        }
    }

    /// Returns whether a text continues another one, which is the last before it.
    pub(super) fn continues(&self, previous: &str, id: &str) -> bool {
        let is_outside = self.text(id).is_some_and(|text| !text.in_subagent);
        let is_closed = self.text(previous).is_none();
        is_outside && is_closed && self.last_text.as_deref() == Some(previous) && continues(previous, id)
    }

    /// Returns whether nothing was told yet of a text that continues the one before it.
    pub(super) fn begins_continuation(&self, id: &str) -> bool {
        let is_new = self.text(id).is_some_and(|text| text.digest.len == 0 && !text.is_not_assistant());
        is_new && self.last_text.as_deref().is_some_and(|last| self.continues(last, id))
    }

    /// Returns whether the start of a text must be told where pieces have no id: it is another's text, or it
    /// follows one that nothing ended. One that is told in slots begins with its first piece.
    pub(super) fn tells_start(&self, started: &TextStarted) -> bool {
        // The first piece of a continuation says that it is one.
        let apart = self.text(&started.message_id).is_some_and(|text| text.aside)
            || self.begins_continuation(&started.message_id);
        started.is_not_assistant() || (!apart && self.last == Some(Last::Text))
    }

    /// Returns the same of a thought.
    pub(super) fn tells_thought_start(&self, started: &ThinkingStarted) -> bool {
        let aside = self.thought(&started.message_id).is_some_and(|thought| thought.aside);
        !aside && self.last == Some(Last::Thought)
    }

    /// Returns whether a text or thought came to nothing that a slot could tell.
    pub(super) fn is_silent(&self, id: &str) -> bool {
        let piece = self.text(id).or_else(|| self.thought(id));
        piece.is_some_and(|piece| piece.aside && !piece.told)
    }

    /// Returns whether a reader takes an event for the end of the texts before it.
    fn ends_texts(&self, body: &Body, chunks: bool) -> bool {
        match body {
            Body::StepStarted(_) | Body::StepFinished(_) | Body::ToolCalled(_) => true,
            Body::InteractionRequested(_) | Body::RunSuspended(_) => true,
            Body::InteractionResolved(_) => self.questions.len() > 1,
            Body::ToolArgsDelta(_) => chunks,
            // An end that says more than that is told in a slot.
            Body::TextFinished(finished) => {
                let native = self.text(&finished.message_id).is_some_and(|text| !text.aside);
                native && (finished.content.is_some() || finished.says_more())
            }
            Body::ThinkingFinished(finished) => {
                let native = self.thought(&finished.message_id).is_some_and(|thought| !thought.aside);
                native && finished.content.is_some()
            }
            _ => false,
        }
    }

    pub(super) fn text(&self, id: &str) -> Option<&Piece> {
        self.texts.iter().find(|text| text.id == id)
    }

    pub(super) fn thought(&self, id: &str) -> Option<&Piece> {
        self.thoughts.iter().find(|thought| thought.id == id)
    }

    pub(super) fn call(&self, id: &str) -> Option<&Call> {
        self.calls.iter().find(|call| call.id == id)
    }

    /// Finds the step that an event happened in: the one it names, else the innermost.
    pub(super) fn step_of(&self, event: &Event) -> Option<&Step> {
        let named = event.step_id.as_ref().and_then(|id| self.steps.iter().find(|step| step.id == *id));
        named.or_else(|| self.steps.last())
    }

    /// Returns whether a name alone says which step ends: the innermost of that name.
    pub(super) fn ends_innermost(&self, event: &Event, name: &str) -> bool {
        let innermost = self.steps.iter().rfind(|step| step.name == name);
        innermost.is_none_or(|step| Some(&step.id) == event.step_id.as_ref())
    }

    /// Returns whether a fatal notice said the same before.
    pub(super) fn said_fatally(&self, error: &ErrorInfo) -> bool {
        self.fatal == Some(Digest::of(&error.message))
    }

    /// Returns the tokens that only the run's own summary knows.
    pub(super) fn summed_usage(&self, told: Option<&Summary>) -> Option<Usage> {
        let told = told.filter(|_| self.usage.is_none())?;
        let mut usage = Usage {
            prompt_tokens: told.prompt_tokens,
            completion_tokens: told.completion_tokens,
            total_tokens: told.total_tokens,
        };
        if usage.total_tokens.is_none() {
            let parts = usage.prompt_tokens.unwrap_or(0).saturating_add(usage.completion_tokens.unwrap_or(0));
            usage.total_tokens = Some(parts);
        }
        let told = [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens];
        told.into_iter().flatten().any(|tokens| tokens > 0).then_some(usage)
    }

    /// Fills in the same, for dialects that tell tokens in the summary alone: what the model calls told comes
    /// before what the source summed up.
    pub(super) fn summary_with_usage(&self, told: Option<&Summary>, at: Timestamp) -> Summary {
        let mut summary = self.summary(told, at);
        if let Some(tokens) = self.usage {
            summary.prompt_tokens = Some(tokens.prompt);
            summary.completion_tokens = Some(tokens.completion);
            summary.total_tokens = Some(tokens.total);
        }
        summary
    }

    /// Fills in the figures that a run's own summary does not tell.
    pub(super) fn summary(&self, told: Option<&Summary>, at: Timestamp) -> Summary {
        let mut summary = told.cloned().unwrap_or_default();
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
        // At the epoch no time was ever told.
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
