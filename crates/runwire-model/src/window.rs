//! Stored events of a thread that translation looks up, kept in memory.
//!
//! A server looks them up in its log; a conversion has no log and keeps this window. It holds no more than the limits
//! of a run allow: the run's texts, its open thoughts, the arguments of its open calls, its open interactions, the
//! thread's state, and the newest of the thread's messages.

use std::collections::VecDeque;

use crate::event::{Body, Event, InteractionRequested, Notice, ToolCalled};
use crate::json::Json;
use crate::limits;
use crate::patch;
use crate::record::{ChatMessage, EventPosition, History, Record};
use crate::run::RunText;

/// The part of a thread that translation looks up.
#[derive(Debug, Clone, Default)]
pub struct Window {
    run_id: String,
    /// The thread's messages; those before `run_from` are of earlier runs.
    messages: VecDeque<ChatMessage>,
    run_from: usize,
    /// Bytes of all messages.
    bytes: usize,
    thoughts: Vec<(String, String)>,
    arguments: Vec<(String, String)>,
    calls: Vec<ToolCalled>,
    interactions: Vec<InteractionRequested>,
    notice: Option<Notice>,
    state: Option<Json>,
    /// Whether the newest record has a patch that did not apply.
    misfit: bool,
    /// Thoughts, calls and interactions that ended in the newest record, which may still be encoded.
    ended_thoughts: Vec<String>,
    ended_calls: Vec<String>,
    ended_interactions: Vec<String>,
}

impl Window {
    /// Makes the window of a thread's first run.
    pub fn new(run_id: &str) -> Self {
        Self { run_id: run_id.to_owned(), ..Self::default() }
    }

    /// Makes the window of a thread with these messages and this state, before its next run.
    ///
    /// [`History::messages`] and [`History::state`] read them back. [`Window::next_run`] then begins the run.
    pub fn after(messages: Vec<ChatMessage>, state: Option<Json>) -> Self {
        let bytes = messages.iter().map(weight).sum();
        let run_from = messages.len();
        let mut window = Self { messages: messages.into(), run_from, bytes, state, ..Self::default() };
        window.shrink();
        window
    }

    /// Returns the thread's state, also if the newest record's patch did not apply.
    pub(crate) fn kept_state(&self) -> Option<&Json> {
        self.state.as_ref()
    }

    /// Sets the thread's state, which another run of it has changed.
    pub(crate) fn set_state(&mut self, state: Option<Json>) {
        self.state = state;
    }

    /// Estimates the bytes of the messages and the state.
    pub(crate) fn weight(&self) -> usize {
        self.bytes + self.state.as_ref().map_or(0, |state| state.text().len())
    }

    /// Begins a run of the thread, the first or another.
    pub fn next_run(&mut self, run_id: &str) {
        run_id.clone_into(&mut self.run_id);
        self.run_from = self.messages.len();
        self.thoughts.clear();
        self.arguments.clear();
        self.calls.clear();
        self.interactions.clear();
        self.notice = None;
        self.ended_thoughts.clear();
        self.ended_calls.clear();
        self.ended_interactions.clear();
    }

    /// Adds a record; called before it is encoded.
    pub fn absorb(&mut self, record: &Record) {
        for id in self.ended_thoughts.drain(..) {
            self.thoughts.retain(|(thought, _)| *thought != id);
        }
        for id in self.ended_calls.drain(..) {
            self.calls.retain(|call| call.call_id != id);
            self.arguments.retain(|(call, _)| *call != id);
        }
        for id in self.ended_interactions.drain(..) {
            self.interactions.retain(|interaction| interaction.interaction_id != id);
        }
        self.misfit = false;
        for entry in &record.entries {
            self.absorb_event(&entry.event);
        }
        self.shrink();
    }

    fn absorb_event(&mut self, event: &Event) {
        match &event.body {
            Body::RunStarted(started) => {
                if let Some(message) = &started.message {
                    let id = started.message_id.clone().unwrap_or_else(|| user_message_id(&self.run_id));
                    self.push(ChatMessage {
                        id,
                        role: "user".into(),
                        content: message.clone(),
                        ..Default::default()
                    });
                }
            }
            Body::TextStarted(started) => {
                let role = started.role.clone().unwrap_or_else(|| "assistant".to_owned());
                let (id, is_subagents) = (started.message_id.clone(), event.subagent_run_id.is_some());
                self.push(ChatMessage { id, role, is_subagents, ..Default::default() });
            }
            Body::TextDelta(delta) => {
                if let Some(message) = self.message(&delta.message_id) {
                    message.content.push_str(&delta.content);
                    self.bytes += delta.content.len();
                }
            }
            Body::TextFinished(finished) => {
                if let (Some(content), Some(message)) =
                    (&finished.content, self.message(&finished.message_id))
                {
                    let before = std::mem::replace(&mut message.content, content.clone()).len();
                    self.bytes = self.bytes + content.len() - before;
                }
            }
            Body::ThinkingStarted(started) => {
                self.thoughts.push((started.message_id.clone(), String::new()));
            }
            Body::ThinkingDelta(delta) => {
                if let Some((_, text)) = self.thoughts.iter_mut().rfind(|(id, _)| *id == delta.message_id) {
                    text.push_str(&delta.content);
                }
            }
            Body::ThinkingFinished(finished) => self.ended_thoughts.push(finished.message_id.clone()),
            Body::ToolArgsStarted(started) => self.arguments.push((started.call_id.clone(), String::new())),
            Body::ToolArgsDelta(delta) => {
                if let Some((_, text)) = self.arguments.iter_mut().find(|(call, _)| *call == delta.call_id) {
                    text.push_str(&delta.delta);
                }
            }
            Body::ToolCalled(called) => {
                self.calls.push(called.clone());
                let text = called.arguments_text.as_deref().unwrap_or(called.arguments.text());
                let call = (called.call_id.clone(), called.name.clone(), text.to_owned());
                let weight = text.len() + called.name.len() + called.call_id.len();
                let parent = called.message_id.as_deref().and_then(|id| self.message(id));
                match parent.filter(|message| message.role == "assistant") {
                    Some(message) => {
                        message.tool_calls.push(call);
                        self.bytes += weight;
                    }
                    None => self.push(ChatMessage {
                        id: called.call_id.clone(),
                        role: "assistant".into(),
                        tool_calls: vec![call],
                        ..Default::default()
                    }),
                }
            }
            Body::ToolFinished(finished) => {
                self.ended_calls.push(finished.call_id.clone());
                if let Some(text) = finished.text_form() {
                    self.push(ChatMessage {
                        id: format!("{}:result", finished.call_id),
                        role: "tool".into(),
                        content: text.into_owned(),
                        tool_call_id: Some(finished.call_id.clone()),
                        ..Default::default()
                    });
                }
            }
            Body::InteractionRequested(asked) => self.interactions.push(asked.clone()),
            Body::InteractionResolved(resolved) => {
                self.ended_interactions.push(resolved.interaction_id.clone())
            }
            Body::Notice(notice) if notice.fatal == Some(true) => self.notice = Some(notice.clone()),
            body => self.misfit |= !change_state(&mut self.state, body),
        }
    }

    fn push(&mut self, message: ChatMessage) {
        self.bytes += weight(&message);
        self.messages.push_back(message);
    }

    /// Returns a message of the run, searching from the newest.
    fn message(&mut self, id: &str) -> Option<&mut ChatMessage> {
        self.messages.iter_mut().skip(self.run_from).rfind(|message| message.id == id)
    }

    /// Drops the oldest messages, first of earlier runs, then calls and their results.
    fn shrink(&mut self) {
        while self.bytes > limits::THREAD_MEMORY_BYTES && self.run_from > 0 {
            self.run_from -= 1;
            if let Some(message) = self.messages.pop_front() {
                self.bytes -= weight(&message);
            }
        }
        while self.bytes > limits::THREAD_MEMORY_BYTES {
            let newest = self.messages.len() - 1;
            let droppable = |(at, message): (usize, &ChatMessage)| {
                let of_tool = message.role == "tool" || !message.tool_calls.is_empty();
                at < newest && (of_tool || message.content.is_empty())
            };
            let Some(at) = self.messages.iter().enumerate().position(droppable) else { break };
            if let Some(message) = self.messages.remove(at) {
                self.bytes -= weight(&message);
            }
        }
    }
}

/// Applies an event to a thread's state; returns `false` for a patch that does not apply.
pub(crate) fn change_state(state: &mut Option<Json>, body: &Body) -> bool {
    match body {
        Body::StateSnapshot(snapshot) => *state = Some(snapshot.state.clone()),
        Body::StateUpdated(updated) => *state = Some(updated.state.clone()),
        Body::StatePatched(patched) => {
            let before = state.get_or_insert_with(Json::empty_object);
            match patch::apply(before, &patched.patch) {
                Some(next) if next.text().len() <= limits::THREAD_MEMORY_BYTES => *before = next,
                _ => return false,
            }
        }
        _ => {}
    }
    true
}

/// Estimates the bytes of a message.
fn weight(message: &ChatMessage) -> usize {
    let calls =
        message.tool_calls.iter().map(|(id, name, text)| id.len() + name.len() + text.len()).sum::<usize>();
    size_of::<ChatMessage>() + message.id.len() + message.content.len() + calls
}

/// Mints the id of what the person asked, where the source has none.
pub fn user_message_id(run_id: &str) -> String {
    format!("{run_id}:user")
}

impl History for Window {
    fn text(&self, _start: EventPosition, message_id: &str) -> String {
        let mut thoughts = self.thoughts.iter().rev();
        if let Some((_, text)) = thoughts.find(|(thought, _)| thought == message_id) {
            return text.clone();
        }
        let run = self.messages.iter().skip(self.run_from);
        run.rev()
            .find(|message| message.id == message_id)
            .map(|message| message.content.clone())
            .unwrap_or_default()
    }

    fn arguments(&self, _start: EventPosition, call_id: &str) -> String {
        self.arguments
            .iter()
            .rev()
            .find(|(call, _)| call == call_id)
            .map(|(_, text)| text.clone())
            .unwrap_or_default()
    }

    fn call(&self, _start: EventPosition, call_id: &str) -> Option<ToolCalled> {
        self.calls.iter().rev().find(|call| call.call_id == call_id).cloned()
    }

    fn interaction(&self, _position: EventPosition, interaction_id: &str) -> Option<InteractionRequested> {
        self.interactions
            .iter()
            .rev()
            .find(|interaction| interaction.interaction_id == interaction_id)
            .cloned()
    }

    fn notice(&self, _position: EventPosition) -> Option<Notice> {
        self.notice.clone()
    }

    fn run_texts(&self) -> Vec<RunText> {
        let run = self.messages.iter().skip(self.run_from);
        let is_text = |message: &&ChatMessage| message.role == "assistant" && !message.content.is_empty();
        run.filter(is_text)
            .filter(|message| !message.is_subagents)
            .map(|message| RunText { id: message.id.clone(), content: message.content.clone() })
            .collect()
    }

    fn state(&self) -> Option<Json> {
        self.state.clone().filter(|_| !self.misfit)
    }

    fn messages(&self) -> Vec<ChatMessage> {
        self.messages.iter().cloned().collect()
    }
}
