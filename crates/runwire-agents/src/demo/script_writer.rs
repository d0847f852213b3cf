//! Collects the events of a script: assigns ids and steps, and adds pauses.

use std::collections::VecDeque;
use std::time::Duration;

use runwire_model::event::{
    Body, RunCancelled, RunCompleted, RunFailed, RunStarted, StatePatched, StateSnapshot, StepFinished,
    StepStarted, Summary, TextDelta, TextFinished, TextStarted, ThinkingDelta, ThinkingFinished,
    ThinkingStarted, Usage,
};
use runwire_model::{Event, Json};
use serde_json::Value;

use super::cities::{Language, SeededRng, hash, quoted};
use super::{ScriptEnding, ScriptStep};

/// Columns of a text delta; a Chinese character has two.
const PIECE_COLUMNS: usize = 12;

/// Pause after a text delta, in milliseconds.
const PIECE_PAUSE: u64 = 180;

/// Pause after a thinking delta, which people do not read word by word.
const THOUGHT_PAUSE: u64 = 140;

/// Pause after the start of a step.
const STEP_PAUSE: u64 = 250;

/// Queue of the steps that a scene writes.
pub(super) struct ScriptWriter {
    agent: &'static str,
    pub(super) message: String,
    pub(super) language: Language,
    pub(super) rng: SeededRng,
    /// Hash of the run id, to make ids unique in the thread.
    run: u64,
    steps: VecDeque<ScriptStep>,
    step: Option<(&'static str, String)>,
    step_count: u64,
    id_count: u64,
    /// Characters since the last usage event.
    text_since_usage: u64,
    /// Tokens of the conversation so far.
    context: u64,
    emitted: EmittedTotals,
}

/// Totals of the emitted events; a cancel discards queued ones.
#[derive(Default)]
struct EmittedTotals {
    prompt: u64,
    completion: u64,
    steps: u64,
    calls: u64,
}

impl ScriptWriter {
    pub(super) fn new(agent: &'static str, message: &str, run: &str) -> Self {
        Self {
            agent,
            message: message.to_owned(),
            language: Language::of(message),
            rng: SeededRng::from(message),
            run: hash(run),
            steps: VecDeque::new(),
            step: None,
            step_count: 0,
            id_count: 0,
            text_since_usage: 0,
            context: 180,
            emitted: EmittedTotals::default(),
        }
    }

    /// Takes the next step.
    pub(super) fn take(&mut self) -> Option<ScriptStep> {
        let step = self.steps.pop_front()?;
        if let ScriptStep::Emit(event) = &step {
            match &event.body {
                Body::StepStarted(_) => self.emitted.steps += 1,
                Body::ToolCalled(_) => self.emitted.calls += 1,
                Body::Usage(usage) => {
                    self.emitted.prompt += usage.prompt_tokens.unwrap_or(0);
                    self.emitted.completion += usage.completion_tokens.unwrap_or(0);
                }
                _ => {}
            }
        }
        Some(step)
    }

    /// Returns the number of queued steps.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.steps.len()
    }

    /// Discards the queued steps.
    pub(super) fn discard_queued(&mut self) {
        self.steps.clear();
    }

    /// Returns the text in the language of the message.
    pub(super) fn words(&self, en: impl Into<String>, zh: impl Into<String>) -> String {
        match self.language {
            Language::English => en.into(),
            Language::Chinese => zh.into(),
        }
    }

    /// Quotes the person's message.
    pub(super) fn quoted_message(&self) -> String {
        let quote = quoted(&self.message, 40);
        if quote.is_empty() { "…".to_owned() } else { quote }
    }

    /// Creates an id that is unique in the thread.
    pub(super) fn id(&mut self, kind: &str) -> String {
        self.id_count += 1;
        format!("{kind}-{}-{:016x}", self.id_count, self.run)
    }

    // Events

    pub(super) fn emit(&mut self, body: impl Into<Body>) {
        let mut event = Event::new(body);
        event.step_id = self.step.as_ref().map(|(_, id)| id.clone());
        self.steps.push_back(ScriptStep::Emit(Box::new(event)));
    }

    pub(super) fn pause(&mut self, millis: u64) {
        self.steps.push_back(ScriptStep::Pause(Duration::from_millis(millis)));
    }

    /// Emits the start of the run, without the message, which its creator knows.
    pub(super) fn begin(&mut self) {
        self.emit(RunStarted { agent: Some(self.agent.to_owned()), ..Default::default() });
        self.pause(300);
    }

    /// Starts a step; the one before must have ended.
    pub(super) fn begin_step(&mut self, name: &'static str) {
        self.step_count += 1;
        self.step = Some((name, format!("{name}.{}", self.step_count)));
        self.emit(StepStarted { name: name.to_owned() });
        self.pause(STEP_PAUSE);
    }

    pub(super) fn end_step(&mut self) {
        if let Some((name, _)) = self.step {
            self.emit(StepFinished { name: name.to_owned(), error: None });
        }
        self.step = None;
    }

    pub(super) fn think(&mut self, stage: &str, text: &str) {
        let message_id = self.id("thinking");
        let stage = Some(stage.to_owned());
        self.emit(ThinkingStarted { message_id: message_id.clone(), stage: stage.clone() });
        for piece in pieces(text) {
            let (message_id, content) = (message_id.clone(), piece.to_owned());
            self.emit(ThinkingDelta { message_id, content, stage: stage.clone() });
            self.pause(THOUGHT_PAUSE);
        }
        self.emit(ThinkingFinished { message_id, content: None });
        self.text_since_usage += text.chars().count() as u64;
    }

    pub(super) fn say(&mut self, markdown: &str) {
        let message_id = self.begin_text();
        for piece in pieces(markdown) {
            self.say_piece(&message_id, piece);
            self.pause(PIECE_PAUSE);
        }
        self.end_text(message_id);
    }

    pub(super) fn begin_text(&mut self) -> String {
        let message_id = self.id("text");
        self.emit(TextStarted { message_id: message_id.clone(), role: None });
        message_id
    }

    pub(super) fn say_piece(&mut self, message_id: &str, piece: &str) {
        let (message_id, content) = (message_id.to_owned(), piece.to_owned());
        self.text_since_usage += piece.chars().count() as u64;
        self.emit(TextDelta { message_id, content, format: Some("markdown".to_owned()) });
    }

    pub(super) fn end_text(&mut self, message_id: String) {
        self.emit(TextFinished { message_id, ..Default::default() });
    }

    pub(super) fn snapshot(&mut self, state: &Value) {
        self.emit(StateSnapshot { state: Json::from_value(state) });
    }

    pub(super) fn patch(&mut self, patch: &Value) {
        self.emit(StatePatched { patch: Json::from_value(patch) });
    }

    /// Emits the usage of a model call that made the text since the last one.
    pub(super) fn usage(&mut self) {
        let completion = self.text_since_usage / 2 + 12;
        let prompt = self.context;
        self.text_since_usage = 0;
        self.context += completion + 40;
        self.emit(Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            total_tokens: Some(prompt + completion),
        });
    }

    /// Emits the terminal event.
    pub(super) fn end(&mut self, ending: ScriptEnding) {
        self.step = None;
        let EmittedTotals { prompt, completion, steps, calls } = self.emitted;
        let summary = Some(Summary {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            total_tokens: Some(prompt + completion),
            steps: Some(steps),
            tool_calls: Some(calls),
            ..Default::default()
        });
        match ending {
            ScriptEnding::Completed { reply } => {
                self.emit(RunCompleted { reply: Some(reply), result: None, summary });
            }
            ScriptEnding::Failed(error) => self.emit(RunFailed { error, summary }),
            ScriptEnding::Cancelled => {
                let reason = self.words("Stopped on request.", "已按要求停止。");
                self.emit(RunCancelled { reason: Some(reason), summary });
            }
        }
    }
}

/// Splits a text into deltas, between words.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut columns) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        columns += if c.is_ascii() { 1 } else { 2 };
        if columns >= PIECE_COLUMNS && !c.is_ascii_alphanumeric() {
            let end = at + c.len_utf8();
            pieces.push(&text[start..end]);
            (start, columns) = (end, 0);
        }
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_between_words_and_lose_nothing() {
        let text = "Sunny all day, 15–22 °C. 适合去西湖 walk 一圈，或者 stay-in。🌤️";
        assert_eq!(pieces(text).concat(), text);
        assert_eq!(pieces("Sunny all day today"), ["Sunny all day ", "today"]);
        assert_eq!(pieces("今天天气非常好啊"), ["今天天气非常", "好啊"]);
        assert!(pieces("").is_empty());
    }
}
