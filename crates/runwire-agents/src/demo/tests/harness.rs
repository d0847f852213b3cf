//! Test harness: runs a script like a producer does, through decoder and guard.

use std::time::Duration;

use runwire_model::Timestamp;
use runwire_model::dialect::{Decoder, Dialect, Encoder, Fidelity, Frames, RecordBuilder};
use runwire_model::event::{Body, Decision, Event, InteractionResolved};
use runwire_model::record::{EventOrigin, Record};
use runwire_model::run::{Authority, RunState, Status};
use runwire_model::window::Window;
use serde_json::Value;

use crate::demo::{Script, ScriptStep};

pub(super) const THREAD: &str = "thread-1";
pub(super) const RUN: &str = "run-1";

/// A person's answer.
#[derive(Debug, Clone)]
pub(super) struct ScriptedAnswer {
    pub(super) decision: Decision,
    pub(super) values: Option<Value>,
    pub(super) reason: Option<String>,
}

impl ScriptedAnswer {
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

/// The agent of a run, and what people do.
pub(super) struct Scenario<'c> {
    pub(super) agent: &'c str,
    pub(super) message: &'c str,
    /// The answers in order; further interactions are cancelled.
    pub(super) answers: &'c [ScriptedAnswer],
    /// Number of steps before a cancel.
    pub(super) cancel_after: Option<usize>,
}

impl<'c> Scenario<'c> {
    pub(super) fn new(agent: &'c str, message: &'c str) -> Self {
        Self { agent, message, answers: &[], cancel_after: None }
    }
}

/// The result of a scenario.
pub(super) struct ScenarioResult {
    /// All steps of the script.
    pub(super) steps: Vec<ScriptStep>,
    /// The emitted events.
    pub(super) emitted: Vec<Event>,
    /// The records that a log would store.
    pub(super) records: Vec<Record>,
    pub(super) pauses: Duration,
}

impl ScenarioResult {
    pub(super) fn last(&self) -> &Event {
        self.emitted.last().unwrap()
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Event> {
        self.records.iter().flat_map(|record| &record.entries).map(|entry| &entry.event)
    }

    /// Encodes the records in a dialect.
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

/// Runs a script to its end and checks the invariants of every run: the guard accepts each event unchanged, adds only
/// the suspension, and the run is closed after exactly one terminal event.
#[track_caller]
pub(super) fn run_scenario(scenario: &Scenario<'_>) -> ScenarioResult {
    let mut script = Script::new(scenario.agent, scenario.message, RUN).unwrap();
    let mut log =
        RecordedRun { state: RunState::new(THREAD, RUN), window: Window::default(), records: Vec::new() };
    let mut decoder = Decoder::new(Dialect::Runwire);
    let mut answers = scenario.answers.iter();
    let (mut steps, mut emitted, mut pauses) = (Vec::new(), Vec::new(), Duration::ZERO);
    loop {
        if scenario.cancel_after == Some(steps.len()) {
            script.cancel();
        }
        let step = script.next();
        steps.push(step.clone());
        match step {
            ScriptStep::Emit(event) => {
                log.write(&mut decoder, &event);
                emitted.push(*event);
            }
            ScriptStep::Pause(pause) => pauses += pause,
            ScriptStep::Ask { interaction_id } => {
                assert_eq!(log.state.status, Status::Suspended);
                assert!(log.state.interactions.iter().any(|question| question.id == interaction_id));
                // A cancel may come before the answer.
                if scenario.cancel_after == Some(steps.len()) {
                    continue;
                }
                let answer =
                    answers.next().cloned().unwrap_or(ScriptedAnswer::new(Decision::Cancelled, None));
                let resolved = answer.to(&interaction_id);
                log.answer(resolved.clone());
                assert!(script.answer(&resolved));
            }
            ScriptStep::End => break,
        }
        assert!(steps.len() < 10_000, "it does not end");
    }
    let result = ScenarioResult { steps, emitted, records: log.records, pauses };
    assert!(log.state.status.is_closed(), "{:?}", log.state.status);
    assert_eq!(result.emitted.iter().filter(|event| event.body.is_terminal()).count(), 1);
    assert!(result.last().body.is_terminal());
    let cancelled = matches!(result.last().body, Body::RunCancelled(_));
    for entry in result.records.iter().flat_map(|record| &record.entries) {
        let suspension = matches!(entry.event.body, Body::RunSuspended(_) | Body::RunResumed(_));
        let closing = cancelled || matches!(entry.event.body, Body::StepFinished(_));
        assert!(
            entry.origin != EventOrigin::Guard || suspension || closing,
            "the guard added {:?}",
            entry.event
        );
        assert!(!matches!(entry.event.body, Body::Foreign(_)), "{:?}", entry.event);
    }
    result
}

struct RecordedRun {
    state: RunState,
    window: Window,
    records: Vec<Record>,
}

impl RecordedRun {
    #[track_caller]
    fn write(&mut self, decoder: &mut Decoder, event: &Event) {
        let (frame, seq, mut entries) = (event.to_json(), self.records.len() as u64 + 1, Vec::new());
        let opened = decoder.open(None, frame.text().as_bytes()).unwrap();
        let mut builder = RecordBuilder::new(
            &mut self.state,
            &self.window,
            Authority::Producer,
            Dialect::Runwire,
            seq,
            &mut entries,
        );
        decoder.decode(opened, &mut builder).unwrap();
        assert!(entries.iter().any(|entry| entry.event == *event), "{event:?} became {entries:?}");
        self.keep(Some(Dialect::Runwire), entries);
    }

    #[track_caller]
    fn answer(&mut self, resolved: InteractionResolved) {
        let (seq, mut entries) = (self.records.len() as u64 + 1, Vec::new());
        let event = Event::new(resolved);
        self.state
            .apply(event, EventOrigin::Server, Authority::Server, seq, &self.window, &mut entries)
            .unwrap();
        self.keep(None, entries);
    }

    fn keep(&mut self, dialect: Option<Dialect>, entries: Vec<runwire_model::record::Entry>) {
        let seq = self.records.len() as u64 + 1;
        let record = Record { seq, at: Timestamp(0), source_time: None, dialect, entries };
        self.window.absorb(&record);
        self.records.push(record);
    }
}
