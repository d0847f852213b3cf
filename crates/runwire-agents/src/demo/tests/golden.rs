//! Golden files: one run of each agent, as a readable listing.
//!
//! `RUNWIRE_WRITE_GOLDEN=1 cargo nextest run -p runwire-server demo` writes them anew.

use std::fmt::Write;

use runwire_model::event::{Body, Decision, Event};
use serde_json::{Value, json};

use super::harness::{Scenario, ScenarioResult, ScriptedAnswer, run_scenario};
use crate::demo::ScriptStep;

#[test]
fn a_run_of_each_agent_reads_well() {
    let filled = |values| ScriptedAnswer::new(Decision::Submitted, Some(values));
    let chinese = [
        filled(json!({"name": "林小雨", "email": "lin@example.com", "transport": "train"})),
        ScriptedAnswer::new(Decision::Approved, None),
    ];
    let rejected = ScriptedAnswer::new(Decision::Rejected, None);
    let english = [
        filled(json!({"name": "Lin", "email": "lin@example.com", "transport": "plane", "budget": 100})),
        ScriptedAnswer { reason: Some("next month rather".into()), ..rejected },
    ];
    compare("demo.zh", &Scenario { answers: &chinese, ..Scenario::new("demo", "天气怎么样") });
    compare(
        "demo.en",
        &Scenario { answers: &english, ..Scenario::new("demo", "What is the weather like in Paris?") },
    );
    compare("thought-tree", &Scenario::new("thought-tree", "用 4 7 8 8 算 24 点"));
    compare("thought-graph", &Scenario::new("thought-graph", "Where should we go this weekend?"));
    compare("failing", &Scenario::new("failing", "Export the quarterly report"));
    compare("endless", &Scenario { cancel_after: Some(25), ..Scenario::new("endless", "go on") });
}

#[track_caller]
fn compare(name: &str, scenario: &Scenario<'_>) {
    let shown = listing(scenario, &run_scenario(scenario));
    let path = format!("{}/src/demo/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("RUNWIRE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == expected, "{path} differs; what is told now:\n{shown}");
}

/// Lists the steps with the time at human pace; pieces of one text are one line, a bar between them.
fn listing(scenario: &Scenario<'_>, result: &ScenarioResult) -> String {
    let mut shown = format!("{}: {}\n{} events\n\n", scenario.agent, scenario.message, result.emitted.len());
    let (mut millis, mut answers) = (0, scenario.answers.iter());
    let mut before: Option<&str> = None;
    for step in &result.steps {
        match step {
            ScriptStep::Pause(pause) => millis += pause.as_millis(),
            ScriptStep::Emit(event) => match (piece(event), before) {
                (Some((kind, text)), Some(last)) if kind == last => write!(shown, "|{text}").unwrap(),
                (Some((kind, text)), _) => {
                    write!(shown, "\n{}{kind}  {text}", time(millis)).unwrap();
                    before = Some(kind);
                }
                (None, _) => {
                    write!(shown, "\n{}{}", time(millis), line(event)).unwrap();
                    before = None;
                }
            },
            ScriptStep::Ask { interaction_id } => {
                let answer = answers.next().map_or("cancelled".to_owned(), |answer| {
                    let values =
                        answer.values.as_ref().map(|values| format!(" {values}")).unwrap_or_default();
                    let reason =
                        answer.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                    format!("{}{values}{reason}", answer.decision.as_str())
                });
                write!(shown, "\n        >>> {interaction_id}: {answer}").unwrap();
            }
            ScriptStep::End => shown.push('\n'),
        }
    }
    shown
}

fn time(millis: u128) -> String {
    format!("{:>3}.{}s  ", millis / 1000, millis % 1000 / 100)
}

fn piece(event: &Event) -> Option<(&'static str, String)> {
    let content = match &event.body {
        Body::TextDelta(delta) => &delta.content,
        Body::ThinkingDelta(delta) => &delta.content,
        Body::ToolArgsDelta(delta) => &delta.delta,
        _ => return None,
    };
    Some((event.body.type_name(), content.replace('\n', "⏎")))
}

fn line(event: &Event) -> String {
    let Ok(Value::Object(mut fields)) = event.to_json().to_value() else { return String::new() };
    fields.shift_remove("type");
    format!("{}  {}", event.body.type_name(), Value::Object(fields))
}
