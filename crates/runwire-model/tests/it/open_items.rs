//! What a run may have open at once, and what goes on with it when it has that many.

use runwire_model::ErrorCode;
use runwire_model::convert::{Converter, Options};
use runwire_model::dialect::Dialect;
use runwire_model::event::{Event, TextDelta, TextStarted, ThinkingDelta, ThinkingStarted};
use runwire_model::limits::OPEN_ITEMS;
use runwire_model::record::EventOrigin;
use runwire_model::run::{Authority, Refusal, RunState};
use runwire_model::window::Window;

/// Writes an event as a record of its own.
fn write(state: &mut RunState, seq: u64, event: impl Into<Event>) -> Result<(), Refusal> {
    let look = Window::default();
    state.apply(event.into(), EventOrigin::Producer, Authority::Producer, seq, &look, &mut Vec::new())
}

#[test]
fn pieces_of_open_texts_and_thoughts_are_taken_when_no_more_may_be_opened() {
    let mut state = RunState::new("t", "r");
    let mut seqs = 1..;
    for at in 0..OPEN_ITEMS {
        // Thoughts of subagents: a text of the same agent would close them.
        let mut thought = Event::from(ThinkingStarted { message_id: format!("t{at}"), stage: None });
        thought.subagent_run_id = Some(format!("s{at}"));
        write(&mut state, seqs.next().unwrap(), thought).unwrap();
    }
    for at in 0..OPEN_ITEMS {
        let text = TextStarted { message_id: format!("m{at}"), role: None };
        write(&mut state, seqs.next().unwrap(), text).unwrap();
    }
    assert_eq!((state.texts.len(), state.thoughts.len()), (OPEN_ITEMS, OPEN_ITEMS));
    for at in [0, OPEN_ITEMS - 1] {
        let piece = TextDelta { message_id: format!("m{at}"), content: "x".into(), format: None };
        assert_eq!(write(&mut state, seqs.next().unwrap(), piece), Ok(()));
        let piece = ThinkingDelta { message_id: format!("t{at}"), content: "x".into(), stage: None };
        assert_eq!(write(&mut state, seqs.next().unwrap(), piece), Ok(()));
    }
    // A piece of something else would open it.
    let piece = TextDelta { message_id: "other".into(), content: "x".into(), format: None };
    let refused = write(&mut state, seqs.next().unwrap(), piece).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooManyOpen);
    let piece = ThinkingDelta { message_id: "other".into(), content: "x".into(), stage: None };
    let refused = write(&mut state, seqs.next().unwrap(), piece).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooManyOpen);
}

#[test]
fn frames_go_on_with_an_open_text_when_no_more_may_be_opened() {
    let mut converter =
        Converter::new(Options { from: Some(Dialect::AgUi), ..Options::to(Dialect::Runwire) });
    let mut line = 0;
    let mut push = |frame: String| {
        line += 1;
        converter.push(line, None, frame.as_bytes(), &mut |_| {})
    };
    push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#.into()).unwrap();
    for at in 0..OPEN_ITEMS {
        push(format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"m{at}","role":"assistant"}}"#)).unwrap();
    }
    for at in 0..OPEN_ITEMS {
        push(format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m{at}","delta":"x"}}"#)).unwrap();
    }
}
