//! `endless`: a run that only a cancel ends.

use runwire_model::event::RunStatus;

use super::Then;
use super::teller::Teller;

/// The ticks that one text holds.
const TICKS: u64 = 30;

/// The texts that are told before the run only gives signs of life: a run may not gather text for ever.
const TEXTS: u64 = 10_000;

pub(super) fn opening(t: &mut Teller) -> Then {
    t.begin();
    let hint = t.words(
        "I go on until somebody cancels me; a reader that leaves changes nothing.",
        "我会一直说下去，直到有人取消（cancel）；读者离开不会影响我。",
    );
    t.say(&hint);
    Then::scene(|t| text(t, 0))
}

/// Tells half a minute, a tick a second, and then the next.
fn text(t: &mut Teller, told: u64) -> Then {
    if told >= TEXTS {
        t.emit(RunStatus { state: "running".to_owned() });
        t.pause(1000);
        return Then::scene(move |t| text(t, told));
    }
    let message_id = t.begin_text();
    for tick in told * TICKS + 1..=(told + 1) * TICKS {
        let piece = t.words(format!("tick {tick}  \n"), format!("第 {tick} 秒  \n"));
        t.say_piece(&message_id, &piece);
        t.pause(1000);
    }
    t.end_text(message_id);
    Then::scene(move |t| text(t, told + 1))
}
