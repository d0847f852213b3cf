//! Tests of the demo agents: whole runs through decoder, guard and encoders.

mod golden;
mod harness;
mod properties;

use runwire_model::Json;
use runwire_model::dialect::{Dialect, Fidelity};
use runwire_model::event::{Body, Decision, InteractionKind};
use serde_json::{Value, json};

use super::{Script, ScriptStep, agents};
use harness::{Scenario, ScriptedAnswer, run_scenario};

fn approved() -> ScriptedAnswer {
    ScriptedAnswer::new(Decision::Approved, None)
}

fn filled_in(values: Value) -> ScriptedAnswer {
    ScriptedAnswer::new(Decision::Submitted, Some(values))
}

/// Runs the demo to its end and returns its last text.
#[track_caller]
fn reply(message: &str, answers: &[ScriptedAnswer]) -> String {
    let result = run_scenario(&Scenario { answers, ..Scenario::new("demo", message) });
    match &result.last().body {
        Body::RunCompleted(completed) => completed.reply.clone().unwrap(),
        other => panic!("ended with {other:?}"),
    }
}

#[test]
fn every_agent_has_a_name_and_words_in_both_languages() {
    let names: Vec<&str> = agents().iter().map(|demo| demo.name).collect();
    assert_eq!(names, ["demo", "thought-tree", "thought-graph", "failing", "endless"]);
    for demo in agents() {
        for words in [demo.title, demo.description] {
            assert!(words.en.is_ascii() && !words.en.is_empty(), "{words:?}");
            assert!(words.zh.contains(|c: char| !c.is_ascii()), "{words:?}");
        }
        assert!(Script::new(demo.name, "", "r").is_some());
    }
    assert!(Script::new("no such agent", "", "r").is_none());
}

#[test]
fn the_demo_shows_everything() {
    for message in ["天气怎么样", "What is the weather like?"] {
        let answers = [filled_in(json!({"name": "Lin", "email": "lin@example.com"})), approved()];
        let result = run_scenario(&Scenario { answers: &answers, ..Scenario::new("demo", message) });
        let told = |name: &str| result.emitted.iter().filter(|event| event.body.type_name() == name).count();
        for name in [
            "run.started",
            "state.snapshot",
            "state.patched",
            "step.started",
            "step.finished",
            "thinking.delta",
            "tool.args_started",
            "tool.args_delta",
            "tool.progress",
            "tool.output",
            "data",
            "notice",
            "usage",
            "text.delta",
            "run.completed",
        ] {
            assert!(told(name) > 0, "no {name}");
        }
        assert_eq!(told("tool.called"), 4);
        assert_eq!(told("interaction.requested"), 2);
        let blocks = result.emitted.iter().filter_map(|event| match &event.body {
            Body::Data(data) => Some(data.data_type.as_str()),
            _ => None,
        });
        assert_eq!(blocks.collect::<Vec<_>>(), ["dataframe", "chart"]);
        let text = result.frames(Dialect::Text, Fidelity::Native);
        let text: String = text.iter().map(|(_, data)| String::from_utf8_lossy(data)).collect();
        assert_eq!(
            text.matches(if message.is_ascii() { "### Booked" } else { "### 已预订" }).count(),
            1,
            "{text}"
        );
        assert!((100..=200).contains(&result.emitted.len()), "{} events", result.emitted.len());
        assert!((20..=40).contains(&result.pauses.as_secs()), "{:?}", result.pauses);
    }
}

#[test]
fn two_tools_of_the_demo_are_open_at_once() {
    let result = run_scenario(&Scenario::new("demo", "hello"));
    let (mut open, mut most) = (0, 0);
    for event in &result.emitted {
        match &event.body {
            Body::ToolStarted(_) => open += 1,
            Body::ToolFinished(_) => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    assert_eq!(most, 2);
}

#[test]
fn the_language_of_the_message_is_the_language_of_the_answer() {
    let chinese = reply("杭州天气怎么样", &[filled_in(json!({"name": "林"})), approved()]);
    assert!(chinese.contains("已预订：杭州") && chinese.contains("Have a good trip!"), "{chinese}");
    let english = reply("weather in Paris?", &[filled_in(json!({"name": "Lin"})), approved()]);
    assert!(english.contains("Booked: Paris") && english.contains("祝你旅途愉快"), "{english}");
    let japanese = reply("天気はどうですか", &[]);
    assert!(japanese.contains("The form was put aside"), "{japanese}");
}

#[test]
fn each_answer_leads_its_own_way() {
    let form = || filled_in(json!({"name": "Lin", "email": "lin@example.com"}));
    let say = |decision, reason: &str| ScriptedAnswer {
        reason: Some(reason.into()),
        ..ScriptedAnswer::new(decision, None)
    };
    let replies = [
        (vec![form(), approved()], "Booked"),
        (vec![form(), say(Decision::Rejected, "too dear")], "You did not approve the booking (“too dear”)."),
        (vec![form(), ScriptedAnswer::new(Decision::Submitted, None)], "You did not approve the booking."),
        (vec![form(), ScriptedAnswer::new(Decision::Cancelled, None)], "The booking was called off."),
        (vec![form(), ScriptedAnswer::new(Decision::Expired, None)], "Nobody approved the booking in time."),
        (vec![ScriptedAnswer::new(Decision::Cancelled, None)], "The form was put aside"),
        (vec![ScriptedAnswer::new(Decision::Expired, None)], "Nobody filled in the form in time"),
    ];
    for (answers, expected) in replies {
        let reply = reply("weather", &answers);
        assert!(reply.contains(expected), "{expected}: {reply}");
    }
}

#[test]
fn what_is_filled_in_changes_the_booking() {
    let book = |values| reply("weather in Paris", &[filled_in(values), approved()]);
    let plain = book(json!({"name": "Lin"}));
    assert!(plain.contains("| train |") && plain.contains("hotel × 1"), "{plain}");
    let other = book(json!({
        "name": "Lin", "transport": "car", "insurance": true, "departure": "2027-01-02",
        "interests": ["museums", "food"], "hotel": {"nights": 3},
    }));
    for part in ["Paris, 2027-01-02", "| car |", "| insurance |", "hotel × 3", "museums, food"] {
        assert!(other.contains(part), "{part}: {other}");
    }
    let poor = book(json!({"name": "Lin", "budget": 1}));
    assert!(poor.contains("The hotel is left out") && !poor.contains("hotel ×"), "{poor}");
}

#[test]
fn values_that_fit_no_schema_are_defaults() {
    let odd = json!({
        "name": 7, "email": [], "travellers": 1e300, "budget": -1e300, "transport": {}, "interests": "x",
        "insurance": "yes", "hotel": {"nights": -5, "breakfast": null}, "departure": "x".repeat(5000),
    });
    for values in [odd, json!([1]), json!("text"), json!(null)] {
        assert!(reply("weather", &[filled_in(values), approved()]).contains("Booked"));
    }
}

#[test]
fn the_form_is_a_schema_that_takes_its_own_defaults() {
    for message in ["天气怎么样", "weather"] {
        let result = run_scenario(&Scenario::new("demo", message));
        let asked = result.emitted.iter().find_map(|event| match &event.body {
            Body::InteractionRequested(asked) if asked.kind == InteractionKind::Form => Some(asked),
            _ => None,
        });
        let schema = asked.unwrap().schema.as_ref().unwrap().to_value().unwrap();
        let form = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let mut values = json!({"name": "林", "email": "lin@example.com", "departure": "2027-01-02"});
        for (name, field) in schema["properties"].as_object().unwrap() {
            assert!(field["title"].is_string(), "{name}");
            if let Some(default) = field.get("default") {
                values[name] = default.clone();
            }
        }
        assert!(form.is_valid(&values), "{:?}", form.iter_errors(&values).collect::<Vec<_>>());
        let wrong = [
            ("name", json!("")),
            ("email", json!("nobody")),
            ("departure", json!("2027-02-30")),
            ("travellers", json!(0)),
            ("budget", json!("much")),
            ("transport", json!("boat")),
            ("interests", json!(["food", "food"])),
            ("insurance", json!(1)),
            ("hotel", json!({"nights": 1.5})),
            ("more", json!(1)),
        ];
        for (name, value) in wrong {
            let mut values = values.clone();
            values[name] = value;
            assert!(!form.is_valid(&values), "{name}");
        }
    }
}

#[test]
fn a_tree_goes_back_once_and_follows_the_best_score() {
    for message in ["", "make 24 from 3 3 8 8", "用 1 5 5 5 算 24"] {
        let result = run_scenario(&Scenario::new("thought-tree", message));
        let count = |name: &str| result.emitted.iter().filter(|event| event.body.type_name() == name).count();
        assert_eq!(count("tot.backtracked"), 1);
        assert_eq!((count("tot.expanded"), count("tot.evaluated")), (5, 5));
        let list = |json: &Json| json.to_value().unwrap().as_array().unwrap().clone();
        let mut grown = 0;
        for event in &result.emitted {
            match &event.body {
                Body::TotExpanded(expanded) => grown = list(&expanded.candidates).len(),
                Body::TotEvaluated(judged) => {
                    let scores: Vec<f64> = list(&judged.scores).iter().map(|s| s.as_f64().unwrap()).collect();
                    let chosen = judged.chosen.to_value().unwrap().as_u64().unwrap() as usize;
                    assert_eq!(scores.len(), grown);
                    assert!(scores.iter().all(|score| *score <= scores[chosen]), "{scores:?}, {chosen}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_graph_finishes_every_node_that_it_starts() {
    let result = run_scenario(&Scenario::new("thought-graph", "compare"));
    let mut open = std::collections::BTreeSet::new();
    let (mut failed, mut done) = (0, 0);
    for event in &result.emitted {
        match &event.body {
            Body::GotNodeStarted(node) => assert!(open.insert(node.node_id.clone()), "{node:?}"),
            Body::GotNodeCompleted(node) => done += usize::from(open.remove(&node.node_id)),
            Body::GotNodeFailed(node) => failed += usize::from(open.remove(&node.node_id)),
            _ => {}
        }
    }
    assert_eq!((done, failed, open.len()), (6, 1, 0));
}

#[test]
fn a_failure_says_what_to_do() {
    let result = run_scenario(&Scenario::new("failing", "report"));
    let Body::RunFailed(failed) = &result.last().body else { panic!("{:?}", result.last()) };
    assert_eq!(failed.error.code.as_deref(), Some("export_quota_exceeded"));
    assert_eq!(failed.error.retryable, Some(true));
    assert!(failed.error.message.contains("retry the run"), "{}", failed.error.message);
}

#[test]
fn an_endless_run_holds_no_more_after_a_million_steps_and_ends_when_it_is_cancelled() {
    let mut script = Script::new("endless", "go", "r").unwrap();
    let mut most = 0;
    for _ in 0..1_000_000 {
        assert!(matches!(script.next(), ScriptStep::Emit(_) | ScriptStep::Pause(_)));
        most = most.max(script.writer.queued());
    }
    assert!(most < 100, "{most} steps wait");
    script.cancel();
    let ScriptStep::Emit(event) = script.next() else { panic!("no event") };
    assert_eq!(event.body.type_name(), "run.cancelled");
    assert_eq!(script.next(), ScriptStep::End);
}

#[test]
fn an_endless_run_never_gathers_more_text_than_a_run_may() {
    let mut script = Script::new("endless", "每秒", "r").unwrap();
    let mut bytes = 0;
    loop {
        match script.next() {
            ScriptStep::Emit(event) => match event.body {
                Body::TextDelta(delta) => bytes += delta.content.len() as u64,
                Body::RunStatus(_) => break,
                _ => {}
            },
            ScriptStep::Pause(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(bytes < runwire_model::limits::RUN_TEXT_BYTES, "{bytes}");
}

#[test]
fn an_interaction_stays_open_until_its_own_answer_comes() {
    let mut script = Script::new("demo", "weather", "r").unwrap();
    let asked = loop {
        if let ScriptStep::Ask { interaction_id } = script.next() {
            break interaction_id;
        }
    };
    assert_eq!(script.next(), ScriptStep::Ask { interaction_id: asked.clone() });
    let answer = ScriptedAnswer::new(Decision::Cancelled, None);
    assert!(!script.answer(&answer.to("another")));
    assert_eq!(script.next(), ScriptStep::Ask { interaction_id: asked.clone() });
    assert!(script.answer(&answer.to(&asked)));
    assert!(!script.answer(&answer.to(&asked)));
    assert!(matches!(script.next(), ScriptStep::Emit(_) | ScriptStep::Pause(_)));
}

#[test]
fn a_cancel_after_the_end_changes_nothing() {
    let mut script = Script::new("failing", "report", "r").unwrap();
    while script.next() != ScriptStep::End {}
    script.cancel();
    assert_eq!(script.next(), ScriptStep::End);
}

#[test]
fn ids_differ_between_the_runs_of_a_thread() {
    let ids = |run: &str| {
        let mut script = Script::new("failing", "report", run).unwrap();
        let mut ids = std::collections::BTreeSet::new();
        loop {
            match script.next() {
                ScriptStep::Emit(event) => match event.body {
                    Body::TextStarted(text) => assert!(ids.insert(text.message_id)),
                    Body::ThinkingStarted(thought) => assert!(ids.insert(thought.message_id)),
                    Body::ToolCalled(call) => assert!(ids.insert(call.call_id)),
                    _ => {}
                },
                ScriptStep::End => return ids,
                _ => {}
            }
        }
    };
    assert_eq!(ids("run-1"), ids("run-1"));
    assert!(ids("run-1").is_disjoint(&ids("run-2")));
    assert!(ids(&"x".repeat(512)).iter().all(|id| id.len() < 64));
}
