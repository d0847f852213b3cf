//! Property tests: for any message and answers, the guard accepts the run, it ends once, and every dialect encodes it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use runwire_model::Timestamp;
use runwire_model::dialect::{Decoder, Dialect, Fidelity, RecordBuilder};
use runwire_model::event::{Body, Decision, Event};
use runwire_model::record::Record;
use runwire_model::run::{Authority, RunState};
use runwire_model::window::Window;
use serde_json::{Value, json};

use super::harness::{RUN, Scenario, ScenarioResult, ScriptedAnswer, THREAD, run_scenario};

/// The same runs every time; `PROPTEST_CASES` asks for other ones, and for as many as it says.
fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(60),
        rng_seed: if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(0) },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn messages() -> impl Strategy<Value = String> {
    let any = prop::collection::vec(any::<char>(), 0..80).prop_map(String::from_iter);
    let known = ["天气怎么样", "What is the weather in Paris?", "24: 3 3 8 8", "**|`<b>\n```", "", "🌦️👨‍👩‍👧"];
    prop_oneof![2 => any, 1 => prop::sample::select(known.to_vec()).prop_map(str::to_owned)]
}

fn answers() -> impl Strategy<Value = Vec<ScriptedAnswer>> {
    let decision = prop::sample::select(Decision::ALL.to_vec());
    let values = prop_oneof![
        Just(None),
        Just(Some(json!({"name": "林", "email": "lin@example.com"}))),
        Just(Some(json!({"name": "\u{202e}\n", "budget": 0, "transport": "plane", "hotel": {"nights": 7}}))),
        (any::<f64>(), any::<i64>(), any::<bool>()).prop_map(|(number, whole, yes)| Some(json!({
            "travellers": whole, "budget": number, "insurance": yes, "hotel": {"nights": number},
        }))),
        Just(Some(json!([[], "x", null]))),
    ];
    let reason = prop::option::of(prop::collection::vec(any::<char>(), 0..200).prop_map(String::from_iter));
    let answer = (decision, values, reason);
    let answer = answer.prop_map(|(decision, values, reason)| ScriptedAnswer { decision, values, reason });
    prop::collection::vec(answer, 0..3)
}

/// Everything but the endless agent runs with and without a cancel.
fn scenarios() -> impl Strategy<Value = (&'static str, String, Vec<ScriptedAnswer>, Option<usize>)> {
    let agent =
        prop::sample::select(vec!["demo", "demo", "thought-tree", "thought-graph", "failing", "endless"]);
    (agent, messages(), answers(), prop::option::of(0usize..300)).prop_map(
        |(agent, message, answers, cancel)| {
            let cancel = if agent == "endless" { cancel.or(Some(77)) } else { cancel };
            (agent, message, answers, cancel)
        },
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_run_is_accepted_ends_once_and_can_be_encoded_in_every_dialect(
        (agent, message, answers, cancel_after) in scenarios()
    ) {
        let scenario = Scenario { agent, message: &message, answers: &answers, cancel_after };
        let result = run_scenario(&scenario);
        for dialect in Dialect::ALL {
            for fidelity in [Fidelity::Native, Fidelity::Full] {
                judge(&result, dialect, fidelity);
            }
        }
        for dialect in Dialect::READABLE {
            read_back(&result, dialect);
        }
        prop_assert_eq!(run_scenario(&scenario).steps, result.steps, "the same again differs");
    }
}

fn schema(dialect: Dialect) -> &'static Validator {
    static SCHEMAS: OnceLock<BTreeMap<&'static str, Validator>> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(|| {
        let read = |dialect: Dialect| {
            let schema: Value = serde_json::from_str(dialect.schema()).unwrap();
            (dialect.name(), jsonschema::validator_for(&schema).unwrap())
        };
        Dialect::READABLE.into_iter().map(read).collect()
    });
    &schemas[dialect.name()]
}

/// Validates every frame against the schema of its dialect.
#[track_caller]
fn judge(result: &ScenarioResult, dialect: Dialect, fidelity: Fidelity) {
    let frames = result.frames(dialect, fidelity);
    if dialect == Dialect::Text {
        assert!(frames.iter().all(|(_, data)| std::str::from_utf8(data).is_ok()));
        return;
    }
    assert!(!frames.is_empty());
    for (_, data) in &frames {
        let frame: Value = serde_json::from_slice(data).unwrap();
        let faults: Vec<String> = schema(dialect)
            .iter_errors(&frame)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{dialect}: {faults:?}\n{frame}");
    }
}

/// Reads a run back from what was written of it in full, and finds the same events.
#[track_caller]
fn without_tokens(event: &Event, dialect: Dialect) -> Event {
    let mut event = event.clone();
    let summary = match &mut event.body {
        Body::RunCompleted(completed) => completed.summary.as_mut(),
        Body::RunFailed(failed) => failed.summary.as_mut(),
        Body::RunCancelled(cancelled) => cancelled.summary.as_mut(),
        _ => None,
    };
    if let Some(summary) = summary.filter(|_| dialect == Dialect::SocialApp) {
        (summary.prompt_tokens, summary.completion_tokens, summary.total_tokens) = (None, None, None);
    }
    event
}

fn read_back(result: &ScenarioResult, dialect: Dialect) {
    let (mut state, mut window) = (RunState::new(THREAD, RUN), Window::default());
    let (mut decoder, mut events) = (Decoder::new(dialect), Vec::new());
    for (at, (name, data)) in result.frames(dialect, Fidelity::Full).iter().enumerate() {
        let (seq, mut entries) = (at as u64 + 1, Vec::new());
        let opened = decoder.open(name.as_deref(), data).unwrap();
        let mut builder =
            RecordBuilder::new(&mut state, &window, Authority::Server, dialect, seq, &mut entries);
        decoder.decode(opened, &mut builder).unwrap();
        let record = Record { seq, at: Timestamp(0), source_time: None, dialect: Some(dialect), entries };
        window.absorb(&record);
        events.extend(record.entries.into_iter().map(|entry| entry.event));
    }
    // social-app shows no figures of the back end, whatever the fidelity.
    let shown = |event: &&Event| dialect != Dialect::SocialApp || !matches!(event.body, Body::Usage(_));
    let told: Vec<Event> =
        result.events().filter(shown).map(|event| without_tokens(event, dialect)).collect();
    // Questions that an end settles look like answered ones when they are read one by one.
    if let [.., Event { body: Body::RunResumed(_), .. }, _] = events.as_slice()
        && !matches!(told.as_slice(), [.., Event { body: Body::RunResumed(_), .. }, _])
    {
        events.remove(events.len() - 2);
    }
    assert_eq!(events.iter().filter(|event| event.body.is_terminal()).count(), 1);
    assert!(events.iter().all(|event| !matches!(event.body, Body::Foreign(_))), "{dialect}");
    for (read, told) in events.iter().zip(&told) {
        assert_eq!(read, told, "{dialect}");
    }
    assert_eq!(events.len(), told.len(), "{dialect}");
}
