//! The synthetic run of a busy agent: mostly pieces of text, with thinking, tool calls, state and usage.

use runwire_model::event::{
    RunCompleted, RunStarted, StatePatched, StateSnapshot, StepFinished, StepStarted, TextDelta,
    TextFinished, TextStarted, ThinkingDelta, ThinkingFinished, ThinkingStarted, ToolArgsDelta,
    ToolArgsStarted, ToolCalled, ToolFinished, ToolStarted, Usage,
};
use runwire_model::record::{EventOrigin, Record};
use runwire_model::run::{Authority, RunState};
use runwire_model::window::Window;
use runwire_model::{Body, Event, Json, Timestamp};

use crate::Failure;

/// A run: its ids and its canonical records.
pub(crate) struct Run {
    pub(crate) thread_id: String,
    pub(crate) run_id: String,
    pub(crate) records: Vec<Record>,
}

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunShape {
    /// Turns of thinking, a tool call and an answer; each is about 75 events.
    pub(crate) turns: u64,
    /// Repetitions of each piece of text.
    pub(crate) repeat: usize,
    /// Minimum length of ids.
    pub(crate) id_bytes: usize,
}

impl RunShape {
    /// About a thousand events of about 200 bytes.
    pub(crate) const TYPICAL: Self = Self { turns: 13, repeat: 1, id_bytes: 0 };
}

/// 2026-11-15, the day of the first measurements.
const START_TIME: u64 = 1_794_700_000_000;

const WORDS: &[&str] = &[
    "the",
    "forecast",
    "for",
    "tomorrow",
    "says",
    "light",
    "rain",
    "in",
    "the",
    "morning,",
    "then",
    "sun;",
    "天气",
    "不错，",
    "so",
    "a",
    "walk",
    "along",
    "the",
    "river",
    "is",
    "worth",
    "it",
    "**before**",
    "noon",
    "(about",
    "12",
    "km)",
    "出门",
    "带",
    "一把",
    "伞",
    "and",
    "some",
    "water",
    "`let x = 1;`",
    "because",
    "shops",
    "close",
    "early",
    "on",
    "Sundays",
    "in",
    "this",
    "part",
    "of",
    "town.",
];

/// A deterministic random number generator (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Returns a piece of text: a few words, sometimes a line break or a quotation.
    fn piece(&mut self) -> String {
        let mut piece = String::new();
        for _ in 0..4 + self.below(8) {
            piece.push_str(WORDS[self.below(WORDS.len() as u64) as usize]);
            piece.push(' ');
        }
        match self.below(12) {
            0 => piece.push_str("\n\n- "),
            1 => piece.push_str("\"quoted\" "),
            _ => {}
        }
        piece
    }
}

/// Creates the `number`-th run of a thread.
pub(crate) fn run(shape: RunShape, thread: u64, number: u64) -> Result<Run, Failure> {
    let padded = |id: String| format!("{id}{}", "x".repeat(shape.id_bytes.saturating_sub(id.len())));
    let (thread_id, run_id) = (padded(format!("thread-{thread:08}")), padded(format!("run-{number:08}")));
    let mut writer = Writer {
        state: RunState::new(&thread_id, &run_id),
        window: Window::default(),
        at: START_TIME + number * 60_000,
        random: Random::new(number),
        records: Vec::new(),
    };
    let message = Some("What will the weather be like, and what should I do tomorrow?".to_owned());
    writer.write(RunStarted { message, ..Default::default() })?;
    writer.write(StateSnapshot { state: Json::parse(r#"{"city":"Hangzhou","turn":0,"plan":[]}"#)? })?;
    for turn in 1..=shape.turns {
        writer.turn(shape, turn)?;
    }
    writer.write(RunCompleted::default())?;
    Ok(Run { thread_id, run_id, records: writer.records })
}

struct Writer {
    state: RunState,
    window: Window,
    at: u64,
    random: Random,
    records: Vec<Record>,
}

impl Writer {
    fn turn(&mut self, shape: RunShape, turn: u64) -> Result<(), Failure> {
        self.write(StepStarted { name: "think".into() })?;
        let message_id = format!("thought-{turn}");
        self.write(ThinkingStarted { message_id: message_id.clone(), stage: None })?;
        for _ in 0..12 {
            let content = self.random.piece().repeat(shape.repeat);
            self.write(ThinkingDelta { message_id: message_id.clone(), content, stage: None })?;
        }
        self.write(ThinkingFinished { message_id, content: None })?;
        self.write(StepFinished { name: "think".into(), error: None })?;

        self.write(StepStarted { name: "act".into() })?;
        self.call(turn)?;
        self.write(StepFinished { name: "act".into(), error: None })?;

        self.write(StepStarted { name: "answer".into() })?;
        let message_id = format!("msg-{turn}");
        self.write(TextStarted { message_id: message_id.clone(), role: None })?;
        for _ in 0..40 {
            let content = self.random.piece().repeat(shape.repeat);
            self.write(TextDelta { message_id: message_id.clone(), content, format: None })?;
        }
        self.write(TextFinished { message_id, ..Default::default() })?;
        let patch = format!(r#"[{{"op":"replace","path":"/turn","value":{turn}}}]"#);
        self.write(StatePatched { patch: Json::parse(&patch)? })?;
        let (prompt, completion) = (900 + self.random.below(400), 300 + self.random.below(200));
        self.write(Usage {
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            total_tokens: Some(prompt + completion),
        })?;
        self.write(StepFinished { name: "answer".into(), error: None })
    }

    fn call(&mut self, turn: u64) -> Result<(), Failure> {
        let (call_id, name) = (format!("call-{turn}"), "weather_forecast");
        let pieces = [
            r#"{"city":"Hangzhou","#.to_owned(),
            r#""days":[1,2,3],"units":"metric","#.to_owned(),
            format!(r#""query":"hour by hour, turn {turn}","#),
            r#""include":{"wind":true,"rain":true}}"#.to_owned(),
        ];
        self.write(ToolArgsStarted {
            call_id: call_id.clone(),
            name: Some(name.into()),
            ..Default::default()
        })?;
        for piece in &pieces {
            self.write(ToolArgsDelta { call_id: call_id.clone(), delta: piece.clone() })?;
        }
        let arguments = Json::parse(&pieces.concat())?;
        self.write(ToolCalled {
            call_id: call_id.clone(),
            name: name.into(),
            arguments,
            ..Default::default()
        })?;
        self.write(ToolStarted { call_id: call_id.clone(), name: Some(name.into()) })?;
        let hours: Vec<String> = (6..14)
            .map(|hour| format!(r#"{{"hour":{hour},"rain_mm":0.{},"wind":"NW"}}"#, self.random.below(9)))
            .collect();
        let result = format!(r#"{{"city":"Hangzhou","summary":"小雨转晴","hours":[{}]}}"#, hours.join(","));
        self.write(ToolFinished {
            call_id,
            name: Some(name.into()),
            result: Some(Json::parse(&result)?),
            duration_ms: Some(183.0),
            ..Default::default()
        })
    }

    fn write(&mut self, body: impl Into<Body>) -> Result<(), Failure> {
        let seq = self.records.len() as u64 + 1;
        self.at += 20 + self.random.below(30);
        let mut event = Event::new(body);
        let around = matches!(event.body, Body::StepStarted(_) | Body::StepFinished(_));
        if !around && !event.body.type_name().starts_with("run.") {
            event.step_id = self.state.current_step().map(|step| step.id.clone());
        }
        let mut entries = Vec::new();
        self.state.apply(
            event,
            EventOrigin::Producer,
            Authority::Producer,
            seq,
            &self.window,
            &mut entries,
        )?;
        let record = Record { seq, at: Timestamp(self.at), source_time: None, dialect: None, entries };
        self.window.absorb(&record);
        self.records.push(record);
        Ok(())
    }
}
