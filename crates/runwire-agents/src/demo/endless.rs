//! The script of `endless`: a run that only a cancel ends.

use runwire_model::event::RunStatus;

use super::Transition;
use super::script_writer::ScriptWriter;

/// Ticks in one text.
const TICKS: u64 = 30;

/// Texts before the run emits only heartbeats: a run's text is limited.
const TEXTS: u64 = 10_000;

pub(super) fn opening(t: &mut ScriptWriter) -> Transition {
    t.begin();
    let hint = t.words(
        "I go on until somebody cancels me; a reader that leaves changes nothing.",
        "我会一直说下去，直到有人取消（cancel）；读者离开不会影响我。",
    );
    t.say(&hint);
    Transition::scene(|t| text(t, 0))
}

/// Emits half a minute of text, a tick per second, then continues with the next.
fn text(t: &mut ScriptWriter, text_count: u64) -> Transition {
    if text_count >= TEXTS {
        t.emit(RunStatus { state: "running".to_owned() });
        t.pause(1000);
        return Transition::scene(move |t| text(t, text_count));
    }
    let message_id = t.begin_text();
    for tick in text_count * TICKS + 1..=(text_count + 1) * TICKS {
        let piece = t.words(format!("tick {tick}  \n"), format!("第 {tick} 秒  \n"));
        t.say_piece(&message_id, &piece);
        t.pause(1000);
    }
    t.end_text(message_id);
    Transition::scene(move |t| text(t, text_count + 1))
}
