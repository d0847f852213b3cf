//! Placement of the list of interrupts in the frames of a record: at its last event about interactions.
//!
//! Each list ends a response, so a record with several interactions must not have several lists.

use crate::dialect::encode::EncodeContext;
use crate::event::Body;
use crate::record::Entry;

/// Where the list of interrupts stands, as seen from an event about interactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterruptPlacement {
    /// In this event's frame: the response ends with all open interactions.
    Here,
    /// In the frame of a later event of the record.
    Later,
    /// In no frame: no interaction is open when the record ends.
    Never,
}

/// Returns the placement of the list for an event about interactions.
pub(super) fn placement(context: &EncodeContext<'_>) -> InterruptPlacement {
    let later = context.record.entries.get(context.position.index as usize + 1..).unwrap_or_default();
    let is_settled = |id: &str| later.iter().any(|entry| settles(entry, id));
    let ends = later.iter().any(|entry| entry.event.body.is_terminal());
    let stays_open = match &context.event().body {
        Body::InteractionRequested(asked) => !is_settled(&asked.interaction_id),
        Body::InteractionResolved(resolved) => context
            .shown
            .interactions
            .iter()
            .any(|open| open.id != resolved.interaction_id && !is_settled(&open.id)),
        _ => context.shown.interactions.iter().any(|open| !is_settled(&open.id)),
    };
    if ends || !stays_open {
        return InterruptPlacement::Never;
    }
    if later.iter().any(is_about_interactions) { InterruptPlacement::Later } else { InterruptPlacement::Here }
}

fn settles(entry: &Entry, id: &str) -> bool {
    matches!(&entry.event.body, Body::InteractionResolved(resolved) if resolved.interaction_id == id)
}

fn is_about_interactions(entry: &Entry) -> bool {
    matches!(
        entry.event.body,
        Body::InteractionRequested(_) | Body::InteractionResolved(_) | Body::RunSuspended(_)
    )
}

#[cfg(test)]
mod tests {
    use crate::Timestamp;
    use crate::dialect::{Dialect, Encoder, Fidelity, Frames};
    use crate::event::{
        Body, Event, InteractionRequested, InteractionResolved, RunCompleted, RunResumed, RunStarted,
        RunSuspended,
    };
    use crate::record::{Entry, EventOrigin, Record};
    use crate::window::Window;

    fn asked(id: &str) -> Body {
        InteractionRequested { interaction_id: id.into(), ..Default::default() }.into()
    }

    fn settled(id: &str) -> Body {
        InteractionResolved { interaction_id: id.into(), ..Default::default() }.into()
    }

    /// Returns what each record becomes: the types of its frames, an interrupt as its list of questions.
    fn frame_types(records: Vec<Vec<Body>>) -> Vec<Vec<String>> {
        let mut encoder = Encoder::new(Dialect::AgUi, "t", "r", Fidelity::Native);
        let mut frame_types = Vec::new();
        for (seq, bodies) in (1..).zip(records) {
            let entry = |body| Entry { event: Event::new(body), origin: EventOrigin::Producer };
            let entries = bodies.into_iter().map(entry).collect();
            let record = Record { seq, at: Timestamp(0), source_time: None, dialect: None, entries };
            let mut frames = Frames::default();
            encoder.step(&record, &Window::default(), &mut frames);
            let frames = frames.iter().map(|(_, data)| {
                let frame: serde_json::Value = serde_json::from_slice(data).unwrap();
                match frame["outcome"]["interrupts"].as_array() {
                    Some(list) => list.iter().filter_map(|asked| asked["id"].as_str()).collect(),
                    None => frame["name"].as_str().or(frame["type"].as_str()).unwrap().to_owned(),
                }
            });
            frame_types.push(frames.collect());
        }
        frame_types
    }

    const ASKED: &str = "runwire.interaction.requested";
    const SETTLED: &str = "runwire.interaction.resolved";

    #[test]
    fn a_record_has_one_list_of_all_that_is_open_when_it_ends() {
        let (suspended, resumed) = (RunSuspended::default(), RunResumed::default());
        let frame_types = frame_types(vec![
            vec![RunStarted::default().into()],
            vec![asked("a"), suspended.into(), asked("b"), asked("c")],
            vec![asked("d")],
            vec![settled("a"), settled("c")],
            vec![settled("d"), settled("b"), resumed.into()],
            vec![RunCompleted::default().into()],
        ]);
        let expected: [&[&str]; 6] = [
            &["RUN_STARTED"],
            &["abc"],
            &["RUN_STARTED", "abcd"],
            &["RUN_STARTED", SETTLED, SETTLED, "bd"],
            &["RUN_STARTED", SETTLED, SETTLED],
            &["RUN_FINISHED"],
        ];
        assert_eq!(frame_types, expected);
    }

    #[test]
    fn what_is_settled_when_its_record_ends_is_asked_of_nobody() {
        let (suspended, resumed) = (RunSuspended::default(), RunResumed::default());
        let frame_types = frame_types(vec![
            vec![RunStarted::default().into()],
            vec![asked("a"), suspended.clone().into(), settled("a"), resumed.into()],
            vec![asked("b"), suspended.clone().into(), asked("c"), settled("b")],
            vec![asked("d"), settled("c"), settled("d"), RunCompleted::default().into()],
        ]);
        let expected: [&[&str]; 4] = [
            &["RUN_STARTED"],
            &[ASKED, SETTLED],
            &[ASKED, SETTLED, "c"],
            &["RUN_STARTED", ASKED, SETTLED, SETTLED, "RUN_FINISHED"],
        ];
        assert_eq!(frame_types, expected);
    }
}
