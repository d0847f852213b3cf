//! The terminal's screen while a run is drawn.

use runwire_model::{Event, Json, Timestamp};

use super::fixtures::{FakeTerminal, terminal};
use crate::{Style, View};

const START: Timestamp = Timestamp(1_794_204_900_000);

struct TestView {
    view: View<FakeTerminal>,
    screen: FakeTerminal,
    at: u64,
}

impl TestView {
    fn new(columns: u16) -> Self {
        let screen = FakeTerminal::new(60, columns);
        Self { view: View::new(terminal(columns.into()), screen.clone()), screen, at: 0 }
    }

    fn now(&self) -> Timestamp {
        Timestamp(START.0 + self.at)
    }

    /// Draws events, given as frames without their envelope.
    fn draw(&mut self, frames: &[&str]) -> String {
        for frame in frames {
            let event = Event::from_json(&Json::parse(frame).unwrap()).unwrap();
            self.view.event("r1", self.now(), &event).unwrap();
            self.view.flush().unwrap();
        }
        self.screen.text()
    }
}

const CALL: &str = r#"{"type":"tool.called","call_id":"c1","name":"search","arguments":{"q":"tea"}}"#;
const OTHER: &str = r#"{"type":"tool.called","call_id":"c2","name":"fetch","arguments":{}}"#;
const DONE: &str = r#"{"type":"tool.finished","call_id":"c1","name":"search","status":"success","result":"ok","duration_ms":5}"#;
const TEXT: &str = r#"{"type":"text.started","message_id":"m1"}"#;

fn delta(content: &str) -> String {
    format!(r#"{{"type":"text.delta","message_id":"m1","content":{}}}"#, Json::string(content).text())
}

#[test]
fn a_call_is_one_row_that_changes_in_place_and_ends_as_a_line() {
    let mut test = TestView::new(60);
    assert_eq!(test.draw(&[CALL]), "⠋ search(q: tea)");
    let progress = r#"{"type":"tool.progress","call_id":"c1","progress":50,"message":"half"}"#;
    assert_eq!(test.draw(&[progress]), "⠋ search(q: tea)  ━━━━━━────── 50%  half");
    test.at = 2500;
    test.view.tick(test.now()).unwrap();
    assert_eq!(test.screen.text(), "⠙ search(q: tea)  ━━━━━━────── 50%  half  2.5s");
    assert_eq!(test.draw(&[DONE]), "✓ search(q: tea)  5ms → ok");
}

#[test]
fn text_streams_above_the_rows_and_they_move_down() {
    let mut test = TestView::new(40);
    test.draw(&[CALL, OTHER, TEXT, &delta("Let me look ")]);
    assert_eq!(
        test.draw(&[&delta("that up.\nSecond")]),
        "Let me look that up.\nSecond\n\n⠋ search(q: tea)\n⠋ fetch"
    );
    let end = [DONE, r#"{"type":"text.finished","message_id":"m1"}"#];
    assert_eq!(test.draw(&end), "Let me look that up.\nSecond\n\n✓ search(q: tea)  5ms → ok\n⠋ fetch");
}

#[test]
fn a_word_that_does_not_fit_moves_to_the_next_line_as_it_streams() {
    let mut test = TestView::new(20);
    let pieces: Vec<String> =
        "one two three four fiv".chars().map(|letter| delta(&letter.to_string())).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    test.draw(&[TEXT]);
    assert_eq!(test.draw(&pieces), "one two three four\nfiv");
    assert_eq!(
        test.draw(&[&delta("e 今天天气很好，出去走走")]),
        "one two three four\nfive 今天天气很好，\n出去走走"
    );
}

#[test]
fn a_line_that_is_just_full_is_followed_by_no_empty_one() {
    let mut test = TestView::new(20);
    test.draw(&[TEXT, &delta("nineteen characters"), &delta(" "), &delta("\nnext")]);
    assert_eq!(test.screen.text(), "nineteen characters\nnext");
    assert_eq!(test.draw(&[&delta(" nineteen chars  and")]), "nineteen characters\nnext nineteen chars\nand");
}

#[test]
fn thinking_is_dim_and_an_error_is_red() {
    let mut test = TestView::new(60);
    test.draw(&[
        r#"{"type":"thinking.started","message_id":"t1"}"#,
        r#"{"type":"thinking.delta","message_id":"t1","content":"hmm"}"#,
        r#"{"type":"thinking.finished","message_id":"t1"}"#,
        TEXT,
        &delta("answer"),
        r#"{"type":"run.failed","error":{"code":"E1","message":"broken","retryable":true}}"#,
    ]);
    assert_eq!(test.screen.text(), "thinking: hmm\n\nanswer\n\n✗ failed\n  broken [E1]  can be tried again");
    assert!(test.screen.cell_of("hmm").dim());
    assert!(!test.screen.cell_of("answer").dim());
    assert_eq!(test.screen.cell_of("broken").fgcolor(), vt100::Color::Idx(1));
}

#[test]
fn many_calls_take_no_more_rows_than_there_are() {
    let mut test = TestView::new(40);
    for call in 0..100 {
        let call =
            format!(r#"{{"type":"tool.called","call_id":"n{call}","name":"tool {call}","arguments":{{}}}}"#);
        test.draw(&[&call]);
    }
    let shown = test.screen.text();
    assert_eq!(shown.lines().count(), 8);
    assert!(shown.ends_with("⠋ tool 6\n  and 93 more"), "{shown}");
}

#[test]
fn a_terminal_that_becomes_narrower_shows_the_rows_once() {
    let mut test = TestView::new(60);
    test.draw(&[TEXT, &delta("a text of some words that stands on one line"), CALL]);
    // This terminal truncates what does not fit, where others wrap it.
    test.screen.resize(60, 30);
    test.view.resize(30, 24).unwrap();
    test.draw(&[&delta(", and more")]);
    let shown = test.screen.text();
    assert!(
        shown.ends_with("a text of some words that\nstands on one line, and more\n\n⠋ search(q: tea)"),
        "{shown}"
    );
    assert_eq!(shown.matches("search").count(), 1, "{shown}");
}

#[test]
fn notices_stand_on_lines_of_their_own() {
    let mut test = TestView::new(40);
    test.draw(&[TEXT, &delta("half a sen"), CALL]);
    test.view.notice("reconnecting…").unwrap();
    assert_eq!(test.screen.text(), "half a sen\n\n· reconnecting…\n⠋ search(q: tea)");
    assert_eq!(test.draw(&[&delta("tence")]), "half a sen\n\n· reconnecting…\n\ntence\n\n⠋ search(q: tea)");
}

#[test]
fn the_end_leaves_the_cursor_on_a_line_of_its_own_and_says_what_still_runs() {
    let mut test = TestView::new(40);
    test.draw(&[TEXT, &delta("half"), CALL]);
    test.view.finish().unwrap();
    assert_eq!(test.screen.text(), "half\n\n· search(q: tea)  left open");
    assert_eq!(test.screen.cursor(), (3, 0));
}

#[test]
fn a_terminal_too_narrow_for_rows_gets_lines() {
    let mut out = Vec::new();
    let style = Style { width: 12, live: true, ..Style::plain() };
    let mut view = View::new(style, &mut out);
    for frame in [CALL, DONE] {
        let event = Event::from_json(&Json::parse(frame).unwrap()).unwrap();
        view.event("r1", START, &event).unwrap();
    }
    view.finish().unwrap();
    drop(view);
    assert_eq!(String::from_utf8(out).unwrap(), "› search(q: tea)\n✓ search(q: t…)  5…\n");
}

#[test]
fn a_long_text_costs_no_more_for_being_long() {
    let mut sizes = Vec::new();
    for pieces in [1000, 4000] {
        let mut out = Vec::new();
        let mut view = View::new(terminal(80), &mut out);
        for frame in
            [CALL, TEXT].into_iter().chain(std::iter::repeat_n(delta("some more words ").as_str(), pieces))
        {
            let event = Event::from_json(&Json::parse(frame).unwrap()).unwrap();
            view.event("r1", START, &event).unwrap();
            view.flush().unwrap();
        }
        drop(view);
        sizes.push(out.len());
    }
    // Output is linear in the text: each piece redraws one line and one row.
    assert!(sizes[1] < 5 * sizes[0], "{sizes:?}");
}

#[test]
fn runs_side_by_side_are_told_apart() {
    let mut out = Vec::new();
    let mut view = View::new(Style::plain(), &mut out);
    let mut draw = |run: &str, frame: &str| {
        let event = Event::from_json(&Json::parse(frame).unwrap()).unwrap();
        view.event(run, START, &event).unwrap();
    };
    draw("r1", r#"{"type":"run.started","message":"one"}"#);
    draw("r2", r#"{"type":"run.started","message":"two"}"#);
    draw("r1", TEXT);
    draw("r1", &delta("first"));
    draw("r2", TEXT);
    draw("r2", &delta("second"));
    draw("r2", r#"{"type":"run.completed"}"#);
    draw("r1", &delta(" and last"));
    view.finish().unwrap();
    drop(view);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "r1\n> one\n\nr2\n> two\n\n── r1\nfirst\n\n── r2\nsecond\n\n✓ completed\n\n── r1\n and last\n"
    );
}
