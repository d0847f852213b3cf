//! Tells a script's events: their ids, their steps, and the pace at which a person can follow.

use std::collections::VecDeque;
use std::time::Duration;

use runwire_model::event::{
    Body, RunCancelled, RunCompleted, RunFailed, RunStarted, StatePatched, StateSnapshot, StepFinished,
    StepStarted, Summary, TextDelta, TextFinished, TextStarted, ThinkingDelta, ThinkingFinished,
    ThinkingStarted, Usage,
};
use runwire_model::{Event, Json};
use serde_json::Value;

use super::facts::{Draw, Language, hash, quoted};
use super::{Ending, Step};

/// The columns of a piece of text; a Chinese character takes two.
const PIECE_COLUMNS: usize = 12;

/// The pause after a piece of text.
const PIECE_PAUSE: u64 = 180;

/// The pause after a piece of thinking, which nobody reads word by word.
const THOUGHT_PAUSE: u64 = 140;

/// The pause after the beginning of a step.
const STEP_PAUSE: u64 = 250;

/// Takes down what a scene tells.
pub(super) struct Teller {
    agent: &'static str,
    pub(super) message: String,
    pub(super) language: Language,
    pub(super) draw: Draw,
    /// Makes ids unique in the thread.
    run: u64,
    steps: VecDeque<Step>,
    step: Option<(&'static str, String)>,
    begun_steps: u64,
    minted: u64,
    /// Characters told since the last usage.
    spoken: u64,
    /// Tokens of the conversation so far.
    context: u64,
    handed_out: Tally,
}

/// What the caller has been given: a cancel drops what is still waiting.
#[derive(Default)]
struct Tally {
    prompt: u64,
    completion: u64,
    steps: u64,
    calls: u64,
}

impl Teller {
    pub(super) fn new(agent: &'static str, message: &str, run: &str) -> Self {
        Self {
            agent,
            message: message.to_owned(),
            language: Language::of(message),
            draw: Draw::from(message),
            run: hash(run),
            steps: VecDeque::new(),
            step: None,
            begun_steps: 0,
            minted: 0,
            spoken: 0,
            context: 180,
            handed_out: Tally::default(),
        }
    }

    /// Hands out the next step.
    pub(super) fn take(&mut self) -> Option<Step> {
        let step = self.steps.pop_front()?;
        if let Step::Emit(event) = &step {
            match &event.body {
                Body::StepStarted(_) => self.handed_out.steps += 1,
                Body::ToolCalled(_) => self.handed_out.calls += 1,
                Body::Usage(usage) => {
                    self.handed_out.prompt += usage.prompt_tokens.unwrap_or(0);
                    self.handed_out.completion += usage.completion_tokens.unwrap_or(0);
                }
                _ => {}
            }
        }
        Some(step)
    }

    /// Tells how many steps are waiting.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.steps.len()
    }

    /// Drops what was not handed out.
    pub(super) fn fall_silent(&mut self) {
        self.steps.clear();
    }

    /// Chooses the words of the answer's language.
    pub(super) fn words(&self, en: impl Into<String>, zh: impl Into<String>) -> String {
        match self.language {
            Language::English => en.into(),
            Language::Chinese => zh.into(),
        }
    }

    /// Quotes what the person asked.
    pub(super) fn asked(&self) -> String {
        let asked = quoted(&self.message, 40);
        if asked.is_empty() { "…".to_owned() } else { asked }
    }

    /// Makes an id that no other run of the thread has.
    pub(super) fn id(&mut self, kind: &str) -> String {
        self.minted += 1;
        format!("{kind}-{}-{:016x}", self.minted, self.run)
    }

    // What is told

    pub(super) fn emit(&mut self, body: impl Into<Body>) {
        let mut event = Event::new(body);
        event.step_id = self.step.as_ref().map(|(_, id)| id.clone());
        self.steps.push_back(Step::Emit(Box::new(event)));
    }

    pub(super) fn pause(&mut self, millis: u64) {
        self.steps.push_back(Step::Pause(Duration::from_millis(millis)));
    }

    /// Tells that the run begins. What the person asked is known to whoever started it.
    pub(super) fn begin(&mut self) {
        self.emit(RunStarted { agent: Some(self.agent.to_owned()), ..Default::default() });
        self.pause(300);
    }

    /// Begins a step; the one before it must have ended.
    pub(super) fn begin_step(&mut self, name: &'static str) {
        self.begun_steps += 1;
        self.step = Some((name, format!("{name}.{}", self.begun_steps)));
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
        self.spoken += text.chars().count() as u64;
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
        self.spoken += piece.chars().count() as u64;
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

    /// Tells the tokens of a model call that made what was told since the last one.
    pub(super) fn usage(&mut self) {
        let completion = self.spoken / 2 + 12;
        let prompt = self.context;
        self.spoken = 0;
        self.context += completion + 40;
        self.emit(Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            total_tokens: Some(prompt + completion),
        });
    }

    /// Tells the terminal event.
    pub(super) fn end(&mut self, ending: Ending) {
        self.step = None;
        let Tally { prompt, completion, steps, calls } = self.handed_out;
        let summary = Some(Summary {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            total_tokens: Some(prompt + completion),
            steps: Some(steps),
            tool_calls: Some(calls),
            ..Default::default()
        });
        match ending {
            Ending::Completed { reply } => {
                self.emit(RunCompleted { reply: Some(reply), result: None, summary });
            }
            Ending::Failed(error) => self.emit(RunFailed { error, summary }),
            Ending::Cancelled => {
                let reason = self.words("Stopped on request.", "已按要求停止。");
                self.emit(RunCancelled { reason: Some(reason), summary });
            }
        }
    }
}

/// Cuts a text into the pieces that it is told in, between words.
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
