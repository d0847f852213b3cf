//! Catching up in fewer frames: a compacted stream says what the plain one says, and can be left for it at any
//! of its cursors.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use runwire_model::compact::Compactor;
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::event::{Event, RunStarted, TextDelta, TextStarted};
use runwire_model::limits;
use runwire_model::record::{EventOrigin, Record};
use runwire_model::window::Window;

use super::attach::{Run, runs_of, wire};
use super::properties::{WireFrame, config, decode, one_each, seen};
use super::runs;
use super::vectors;

/// A frame with its cursor.
type Told = ((u64, usize), WireFrame);

fn told(seq: u64, frames: &Frames) -> Vec<Told> {
    wire(frames).into_iter().enumerate().map(|(k, frame)| ((seq, k), frame)).collect()
}

fn plain(run: &Run, dialect: Dialect, fidelity: Fidelity) -> (Vec<Told>, Encoder) {
    let (mut encoder, mut window) = (run.encoder(dialect, fidelity), run.window());
    let (mut frames, mut out) = (Frames::default(), Vec::new());
    for record in &run.records {
        window.absorb(record);
        frames.clear();
        encoder.step(record, &window, &mut frames);
        out.extend(told(record.seq, &frames));
    }
    (out, encoder)
}

fn compacted(run: &Run, dialect: Dialect, fidelity: Fidelity) -> (Vec<Told>, Encoder) {
    let (mut encoder, mut window) = (run.encoder(dialect, fidelity), run.window());
    let (mut compactor, mut out) = (Compactor::new(), Vec::new());
    let mut sink = |seq, frames: &Frames, _: Option<&Record>| out.extend(told(seq, frames));
    for record in &run.records {
        window.absorb(record);
        compactor.step(&mut encoder, record, &window, &mut sink);
    }
    compactor.flush(&window, &mut sink);
    (out, encoder)
}

/// The field that orders a dialect's frames.
fn order(frame: &WireFrame, dialect: Dialect) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(&frame.1).ok()?;
    match dialect {
        Dialect::Loom => value["event_id"].as_u64(),
        Dialect::StreamingEngine => value["metadata"]["sequence"].as_u64(),
        Dialect::EasyflowChat => value["index"].as_u64(),
        Dialect::Runwire => value["seq"].as_u64(),
        _ => None,
    }
}

fn compacting_changes_nothing(run: &Run, dialect: Dialect, fidelity: Fidelity) -> Result<(), String> {
    let (all, after_all) = plain(run, dialect, fidelity);
    let (fewer, after_fewer) = compacted(run, dialect, fidelity);
    if after_all != after_fewer {
        return Err("the encoder goes on otherwise".to_owned());
    }
    let ordered: Vec<_> = all.iter().map(|(cursor, frame)| (cursor, order(frame, dialect))).collect();
    for (cursor, frame) in &fewer {
        if !ordered.contains(&(cursor, order(frame, dialect))) {
            return Err(format!("the plain stream has no cursor {cursor:?} with this ordering value"));
        }
    }
    if all.last().map(|(cursor, _)| cursor) != fewer.last().map(|(cursor, _)| cursor) {
        return Err("the last cursor differs".to_owned());
    }
    let frames = |told: Vec<Told>| told.into_iter().map(|(_, frame)| frame).collect::<Vec<_>>();
    let (all, fewer) = (frames(all), frames(fewer));
    if dialect == Dialect::Text {
        let joined =
            |frames: Vec<WireFrame>| frames.into_iter().flat_map(|(_, data)| data).collect::<Vec<u8>>();
        return if joined(all) == joined(fewer) { Ok(()) } else { Err("the text differs".to_owned()) };
    }
    let (expected, found) =
        (seen(&decode(&all, dialect)?, dialect), seen(&decode(&fewer, dialect)?, dialect));
    if expected == found { Ok(()) } else { Err(format!("\n  expected {expected}\n  found    {found}")) }
}

#[test]
fn a_compacted_stream_comes_to_the_same_run() {
    for case in vectors::cases() {
        for run in runs_of(&case) {
            for dialect in Dialect::ALL {
                for fidelity in [Fidelity::Native, Fidelity::Full] {
                    compacting_changes_nothing(&run, dialect, fidelity).unwrap_or_else(|problem| {
                        panic!("{} {} in {dialect} {fidelity:?}: {problem}", case.label(), run.run_id)
                    });
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_compacted_stream_comes_to_the_same_made_up_run(run in runs::run()) {
        let run = Run::made_up(runs::carry_out(&run));
        for dialect in Dialect::ALL {
            compacting_changes_nothing(&run, dialect, Fidelity::Native)
                .map_err(|problem| TestCaseError::fail(format!("{dialect}: {problem}")))?;
        }
    }
}

#[test]
fn compaction_left_anywhere_goes_on_as_the_plain_stream() {
    for case in vectors::cases() {
        for run in runs_of(&case) {
            for dialect in Dialect::ALL {
                left_anywhere(&run, dialect, &case.label());
            }
        }
    }
}

/// After each record the held pieces are handed out, as at the end of a page: the encoder is then where the plain
/// one is, and so is everything that follows.
fn left_anywhere(run: &Run, dialect: Dialect, label: &str) {
    let (mut plain, mut window) = (run.encoder(dialect, Fidelity::Native), run.window());
    let mut states = Vec::new();
    for record in &run.records {
        window.absorb(record);
        plain.step(record, &window, &mut Frames::default());
        states.push(plain.clone());
    }
    for pages in [1, 2, 3] {
        let (mut encoder, mut window) = (run.encoder(dialect, Fidelity::Native), run.window());
        let mut compactor = Compactor::new();
        let mut last = 0;
        for (at, record) in run.records.iter().enumerate() {
            window.absorb(record);
            let mut sink = |seq: u64, frames: &Frames, _: Option<&Record>| {
                assert!(frames.is_empty() || seq > last, "{label}: a cursor goes back");
                last = seq;
            };
            compactor.step(&mut encoder, record, &window, &mut sink);
            if at % pages == 0 {
                compactor.flush(&window, &mut sink);
                assert_eq!(last, record.seq, "{label}: something is held back");
            }
            assert_eq!(encoder, states[at], "{label} in {dialect} after record {at}");
        }
    }
}

fn text_of(pieces: impl IntoIterator<Item = String>) -> Run {
    let piece = |content| TextDelta { message_id: "m".into(), content, format: None }.into();
    let start: [Event; 2] =
        [RunStarted::default().into(), TextStarted { message_id: "m".into(), role: None }.into()];
    let events = start.into_iter().chain(pieces.into_iter().map(piece));
    Run::made_up(one_each(events, EventOrigin::Producer))
}

#[test]
fn many_pieces_become_one_frame_with_the_last_cursor() {
    let run = text_of((0..100).map(|n| format!("{n} ")));
    for dialect in [Dialect::Runwire, Dialect::Loom, Dialect::Agio, Dialect::AgUi, Dialect::StreamingEngine] {
        let (fewer, _) = compacted(&run, dialect, Fidelity::Native);
        assert!(fewer.len() <= 3, "{dialect} has {} frames", fewer.len());
        assert_eq!(fewer.last().unwrap().0, (102, 0), "{dialect}");
    }
}

#[test]
fn a_merged_frame_has_a_bound() {
    let run = text_of((0..40).map(|_| "x".repeat(4000)));
    let (fewer, _) = compacted(&run, Dialect::Runwire, Fidelity::Native);
    assert_eq!(fewer.len(), 2 + 40_usize.div_ceil(limits::MERGED_BYTES / 4000));
    assert!(fewer.iter().all(|(_, (_, data))| data.len() < limits::MERGED_BYTES + 200));
    let window = Window::default();
    Compactor::new().flush(&window, &mut |_, _, _| panic!("nothing is held"));
}
