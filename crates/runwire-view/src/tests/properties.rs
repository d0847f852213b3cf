//! Property tests: no run makes the view panic, act on the terminal, or draw over itself.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use runwire_model::{Event, Json, Timestamp};
use serde_json::{Value, json};

use super::fixtures::{FakeTerminal, terminal};
use crate::{Style, View};

/// Height of a terminal that shows a whole run.
const TALL: u16 = 700;

/// Text of runs and attackers.
fn text() -> impl Strategy<Value = String> {
    let pieces = [
        "word ",
        "a",
        "天气",
        "，",
        "👨\u{200d}👩\u{200d}👧",
        "🇨🇳",
        "e\u{301}\u{302}",
        "❤\u{fe0f}",
        "👍🏽",
        "\u{200d}",
        "\n",
        "\t",
        "\r",
        " ",
        "\x1b[2J",
        "\x1b]0;x\x07",
        "\u{9b}1A",
        "\u{202e}",
        "\0",
        "averyveryverylongwordindeed",
        "{\"a\":",
        "한글",
        "ไทย",
    ];
    let piece = prop::sample::select(pieces.to_vec());
    prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

/// An event of any type, with few ids so that they collide.
fn event() -> impl Strategy<Value = Event> {
    (0..34u8, 0..3u8, text(), text(), 0..130i32).prop_map(|(kind, id, one, other, number)| {
        let (message, call) = (format!("m{id}"), format!("c{id}"));
        let frame = match kind {
            0 => json!({"type": "run.started", "message": one, "agent": other}),
            1 => json!({"type": "step.started", "name": one, "step_id": "s"}),
            2 => json!({"type": "step.finished", "name": one, "step_id": "s", "error": {"message": other}}),
            3 => json!({"type": "text.started", "message_id": message, "role": (number > 90).then_some(one)}),
            4..=9 => json!({"type": "text.delta", "message_id": message, "content": one}),
            10 => json!({"type": "text.finished", "message_id": message, "content": (number > 90).then_some(one), "key_points": [other]}),
            11 => json!({"type": "thinking.started", "message_id": message, "stage": one}),
            12 | 13 => json!({"type": "thinking.delta", "message_id": message, "content": one}),
            14 => json!({"type": "thinking.finished", "message_id": message}),
            15 => json!({"type": "tool.args_started", "call_id": call, "name": one}),
            16 => json!({"type": "tool.args_delta", "call_id": call, "delta": one}),
            17..=19 => json!({"type": "tool.called", "call_id": call, "name": one, "arguments": {"a": other}}),
            20 => json!({"type": "tool.progress", "call_id": call, "progress": number, "message": one}),
            21 => json!({"type": "tool.output", "call_id": call, "content": one}),
            22 | 23 => json!({"type": "tool.finished", "call_id": call, "status": if number > 60 { "failure" } else { "success" }, "result": one, "error": {"message": other}}),
            24 => json!({"type": "data", "data_type": "table", "data": {"name": one, "columns": [other, one, "n"], "rows": [[other, one, number], [one]]}}),
            25 => json!({"type": "data", "data_type": "chart", "data": {"labels": [one, other], "series": [{"name": one, "data": [number, 3]}]}}),
            26 => json!({"type": "data", "data_type": one, "data": other}),
            27 => json!({"type": "notice", "level": "error", "message": one, "code": other, "retryable": true, "details": {"hint": one}}),
            28 => json!({"type": "got.node_started", "node_id": call}),
            29 => json!({"type": "got.node_failed", "node_id": call, "error": one}),
            30 => json!({"type": "subagent.started", "name": one, "subagent_run_id": call}),
            31 => json!({"type": "tot.evaluated", "chosen": number, "scores": [1, one]}),
            32 => json!({"type": "custom", "name": one, "value": other}),
            _ => json!({"type": "run.completed", "reply": one, "summary": {"total_tokens": 3}}),
        };
        read(&frame)
    })
}

/// An interaction, whose lines for copying may be wrapped by the terminal.
fn question() -> impl Strategy<Value = Event> {
    (text(), text(), any::<bool>()).prop_map(|(one, other, form)| {
        read(&json!({
            "type": "interaction.requested", "interaction_id": one, "kind": if form { "form" } else { "approval" },
            "title": other, "name": one, "arguments": {"a": [one], "b": other}, "expires_at": one,
            "schema": {"required": [one], "properties": {&one: {"type": other, "enum": [one], "default": other, "description": one}}},
        }))
    })
}

fn read(frame: &Value) -> Event {
    Event::from_json(&Json::from_value(frame)).unwrap()
}

/// Draws on a terminal; `each` flushes after every event.
fn draw(events: &[Event], rows: u16, columns: u16, each: bool) -> FakeTerminal {
    let screen = FakeTerminal::new(rows, columns);
    let mut view = View::new(terminal(columns.into()), screen.clone());
    for event in events {
        view.event("r1", Timestamp(5), event).unwrap();
        if each {
            view.flush().unwrap();
        }
    }
    view.flush().unwrap();
    screen
}

/// Returns the escape sequences and control characters of an output.
fn escapes(out: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = out.chars();
    while let Some(letter) = letters.next() {
        if letter == '\x1b' {
            let mut sequence = String::new();
            for letter in letters.by_ref() {
                sequence.push(letter);
                if letter.is_ascii_alphabetic() {
                    break;
                }
            }
            found.push(sequence);
        } else if letter.is_control() || crate::sanitize::sanitize(letter) != letter {
            found.push(letter.to_string());
        }
    }
    found
}

/// Uses a fixed seed; `PROPTEST_CASES` uses other seeds, and more cases.
fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<u32>().ok());
    ProptestConfig {
        // Each case draws a whole run on a terminal or two.
        cases: asked.map_or(48, |cases| cases.div_ceil(100)),
        rng_seed: if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(7) },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_plain_view_has_no_control_characters_but_line_ends(
        events in prop::collection::vec(prop_oneof![9 => event(), 1 => question()], 0..40), width in 0..120usize,
    ) {
        let mut out = Vec::new();
        let mut view = View::new(Style { width, ..Style::plain() }, &mut out);
        for event in &events {
            view.event("r1", Timestamp(5), event).unwrap();
        }
        view.finish().unwrap();
        drop(view);
        let out = String::from_utf8(out).unwrap();
        prop_assert!(escapes(&out).iter().all(|escape| matches!(escape.as_str(), "\n" | "\t")), "{out:?}");
    }

    #[test]
    fn a_live_view_emits_its_own_escapes_and_no_others(
        events in prop::collection::vec(prop_oneof![9 => event(), 1 => question()], 0..40),
        widths in prop::collection::vec(0..1100usize, 1..4),
    ) {
        let mut out = Vec::new();
        let mut view = View::new(terminal(widths[0]), &mut out);
        for (at, event) in events.iter().enumerate() {
            view.event("r1", Timestamp(5), event).unwrap();
            view.tick(Timestamp(at as u64 * 700)).unwrap();
            if at % 7 == 6 {
                view.resize(widths[at % widths.len()], at).unwrap();
            }
        }
        view.finish().unwrap();
        drop(view);
        let out = String::from_utf8(out).unwrap();
        for escape in escapes(&out) {
            let figures = escape.trim_start_matches('[').trim_end_matches(|last: char| last.is_ascii_alphabetic());
            let own = matches!(escape.as_str(), "\n" | "\r" | "[K" | "[J")
                || escape == "\t" && (1..20).contains(&widths[0])
                || escape.ends_with(['A', 'm']) && figures.chars().all(|figure| figure.is_ascii_digit() || figure == ';');
            prop_assert!(own, "{escape:?}");
        }
    }

    #[test]
    fn no_line_reaches_the_edge_of_the_terminal(
        events in prop::collection::vec(event(), 0..40), columns in 20..120u16,
    ) {
        // Tables are aligned for terminals that join emoji, which this one does not.
        let events: Vec<Event> = events.into_iter().filter(|event| event.body.type_name() != "data").collect();
        prop_assert!(!draw(&events, TALL, columns, true).has_full_row());
    }

    #[test]
    fn tables_and_charts_fit_the_width(
        events in prop::collection::vec(event(), 0..40), width in 20..200usize,
    ) {
        let mut out = Vec::new();
        let mut view = View::new(Style { width, ..Style::plain() }, &mut out);
        for event in events.iter().filter(|event| event.body.type_name() == "data") {
            view.event("r1", Timestamp(5), event).unwrap();
        }
        view.finish().unwrap();
        drop(view);
        for line in String::from_utf8(out).unwrap().lines() {
            prop_assert!(crate::measure::width(line) < width, "{}", line);
        }
    }

    #[test]
    fn redrawing_leaves_no_trace(events in prop::collection::vec(event(), 0..40), columns in 20..120u16) {
        let each = draw(&events, TALL, columns, true);
        let once = draw(&events, TALL, columns, false);
        prop_assert_eq!(each.text(), once.text());
        prop_assert_eq!(each.cursor(), once.cursor());
    }

    #[test]
    fn a_terminal_that_scrolls_shows_the_end_of_what_a_tall_one_shows(
        events in prop::collection::vec(event(), 0..40), columns in 20..60u16,
    ) {
        let tall = draw(&events, TALL, columns, true);
        let short = draw(&events, 24, columns, true);
        let (tall, short) = (tall.text(), short.text());
        let shown = short.trim_start_matches('\n');
        prop_assert!(tall.ends_with(shown), "tall:\n{}\nshort:\n{}", tall, short);
    }
}
