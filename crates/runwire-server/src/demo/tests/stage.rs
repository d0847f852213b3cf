//! Plays a script the way a runner does: through the decoder and the guard of a `runwire` producer.

use std::time::Duration;

use runwire_model::Timestamp;
use runwire_model::dialect::{Decoder, Dialect, Encoder, Fidelity, Frames, Weave};
use runwire_model::event::{Body, Decision, Event, InteractionResolved};
use runwire_model::record::{By, Record};
use runwire_model::run::{Authority, RunState, Status};
use runwire_model::window::Window;
use serde_json::Value;

use crate::demo::{Script, Step};

pub(super) const THREAD: &str = "thread-1";
pub(super) const RUN: &str = "run-1";

/// What a person answers.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) decision: Decision,
    pub(super) values: Option<Value>,
    pub(super) reason: Option<String>,
}

impl Answer {
    pub(super) fn new(decision: Decision, values: Option<Value>) -> Self {
        Self { decision, values, reason: None }
    }

    pub(super) fn to(&self, interaction_id: &str) -> InteractionResolved {
        InteractionResolved {
            interaction_id: interaction_id.to_owned(),
            decision: self.decision,
            values: self.values.as_ref().map(runwire_model::Json::from_value),
            reason: self.reason.clone(),
            by: None,
        }
    }
}

/// Who plays, and what people do.
pub(super) struct Cast<'c> {
    pub(super) agent: &'c str,
    pub(super) message: &'c str,
    /// The answers in order; questions beyond them are cancelled.
    pub(super) answers: &'c [Answer],
    /// After how many steps somebody cancels.
    pub(super) cancel_after: Option<usize>,
}

impl<'c> Cast<'c> {
    pub(super) fn new(agent: &'c str, message: &'c str) -> Self {
        Self { agent, message, answers: &[], cancel_after: None }
    }
}

/// What came of it.
pub(super) struct Played {
    /// The steps as the script gave them, up to its end.
    pub(super) steps: Vec<Step>,
    /// The events that the script told.
    pub(super) told: Vec<Event>,
    /// What the log would hold.
    pub(super) records: Vec<Record>,
    pub(super) pauses: Duration,
}

impl Played {
    pub(super) fn last(&self) -> &Event {
        self.told.last().unwrap()
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Event> {
        self.records.iter().flat_map(|record| &record.entries).map(|entry| &entry.event)
    }

    /// The frames that a reader of a dialect sees.
    pub(super) fn frames(&self, dialect: Dialect, fidelity: Fidelity) -> Vec<(Option<String>, Vec<u8>)> {
        let mut encoder = Encoder::new(dialect, THREAD, RUN, fidelity);
        let (mut window, mut frames, mut all) = (Window::default(), Frames::default(), Vec::new());
        for record in &self.records {
            window.absorb(record);
            frames.clear();
            encoder.step(record, &window, &mut frames);
            all.extend(frames.iter().map(|(name, data)| (name.map(str::to_owned), data.to_vec())));
        }
        all
    }
}

/// Plays a script to its end, and checks what holds for every run: the guard takes each event as it is, adds
/// nothing but the suspension, and finds the run closed after exactly one terminal event.
#[track_caller]
pub(super) fn play(cast: &Cast<'_>) -> Played {
    let mut script = Script::new(cast.agent, cast.message, RUN).unwrap();
    let mut log = Log { state: RunState::new(THREAD, RUN), window: Window::default(), records: Vec::new() };
    let mut decoder = Decoder::new(Dialect::Runwire);
    let mut answers = cast.answers.iter();
    let (mut steps, mut told, mut pauses) = (Vec::new(), Vec::new(), Duration::ZERO);
    loop {
        if cast.cancel_after == Some(steps.len()) {
            script.cancel();
        }
        let step = script.next();
        steps.push(step.clone());
        match step {
            Step::Emit(event) => {
                log.write(&mut decoder, &event);
                told.push(*event);
            }
            Step::Pause(pause) => pauses += pause,
            Step::Ask { interaction_id } => {
                assert_eq!(log.state.status, Status::Suspended);
                assert!(log.state.questions.iter().any(|question| question.id == interaction_id));
                // Somebody else may cancel before there is an answer.
                if cast.cancel_after == Some(steps.len()) {
                    continue;
                }
                let answer = answers.next().cloned().unwrap_or(Answer::new(Decision::Cancelled, None));
                let resolved = answer.to(&interaction_id);
                log.answer(resolved.clone());
                assert!(script.answer(&resolved));
            }
            Step::End => break,
        }
        assert!(steps.len() < 10_000, "it does not end");
    }
    let played = Played { steps, told, records: log.records, pauses };
    assert!(log.state.status.is_closed(), "{:?}", log.state.status);
    assert_eq!(played.told.iter().filter(|event| event.body.is_terminal()).count(), 1);
    assert!(played.last().body.is_terminal());
    let cancelled = matches!(played.last().body, Body::RunCancelled(_));
    for entry in played.records.iter().flat_map(|record| &record.entries) {
        let suspension = matches!(entry.event.body, Body::RunSuspended(_) | Body::RunResumed(_));
        let closing = cancelled || matches!(entry.event.body, Body::StepFinished(_));
        assert!(entry.by != By::Guard || suspension || closing, "the guard added {:?}", entry.event);
        assert!(!matches!(entry.event.body, Body::Foreign(_)), "{:?}", entry.event);
    }
    played
}

struct Log {
    state: RunState,
    window: Window,
    records: Vec<Record>,
}

impl Log {
    #[track_caller]
    fn write(&mut self, decoder: &mut Decoder, event: &Event) {
        let (frame, seq, mut entries) = (event.to_json(), self.records.len() as u64 + 1, Vec::new());
        let opened = decoder.open(None, frame.text().as_bytes()).unwrap();
        let mut weave = Weave::new(
            &mut self.state,
            &self.window,
            Authority::Producer,
            Dialect::Runwire,
            seq,
            &mut entries,
        );
        decoder.decode(opened, &mut weave).unwrap();
        assert!(entries.iter().any(|entry| entry.event == *event), "{event:?} became {entries:?}");
        self.keep(Some(Dialect::Runwire), entries);
    }

    #[track_caller]
    fn answer(&mut self, resolved: InteractionResolved) {
        let (seq, mut entries) = (self.records.len() as u64 + 1, Vec::new());
        let event = Event::new(resolved);
        self.state.apply(event, By::Server, Authority::Server, seq, &self.window, &mut entries).unwrap();
        self.keep(None, entries);
    }

    fn keep(&mut self, dialect: Option<Dialect>, entries: Vec<runwire_model::record::Entry>) {
        let seq = self.records.len() as u64 + 1;
        let record = Record { seq, at: Timestamp(0), source_time: None, dialect, entries };
        self.window.absorb(&record);
        self.records.push(record);
    }
}
