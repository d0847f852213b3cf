//! Whatever comes: no frame is lost, no frame that cannot be read changes anything, and neither cuts in the
//! bytes nor a restart between two frames show in what comes out.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use runwire_model::Timestamp;
use runwire_model::convert::{Converter, Options};
use runwire_model::dialect::{Decoder, Dialect, Encoder, Fidelity, Frames, RecordBuilder};
use runwire_model::framing::{Framing, Unframer, write_frame};
use runwire_model::record::Record;
use runwire_model::run::{Authority, RunState};
use runwire_model::window::Window;
use serde_json::{Value, json};

use super::properties::{WireFrame, config, encode};
use super::runs::{self, RUN, THREAD};
use super::vectors;

/// The frames of every vector, by dialect.
static STREAMS: LazyLock<Vec<(Dialect, Vec<WireFrame>)>> =
    LazyLock::new(|| vectors::cases().iter().map(|case| (case.dialect, case.input())).collect());

/// A change of one frame.
#[derive(Debug, Clone)]
enum Mutation {
    Flip(Index, u8),
    Truncate(Index),
    DropField(Index),
    SwapType(Index, usize),
    Repeat,
    Remove,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Flip(at, byte)),
        any::<Index>().prop_map(Mutation::Truncate),
        any::<Index>().prop_map(Mutation::DropField),
        any::<Index>().prop_map(Mutation::DropField),
        (any::<Index>(), 0usize..8).prop_map(|(at, value)| Mutation::SwapType(at, value)),
        (any::<Index>(), 0usize..8).prop_map(|(at, value)| Mutation::SwapType(at, value)),
        Just(Mutation::Repeat),
        Just(Mutation::Remove),
    ]
}

/// A vector's stream with a few frames changed.
fn mutated_stream() -> impl Strategy<Value = (Dialect, Vec<WireFrame>)> {
    (any::<Index>(), proptest::collection::vec((any::<Index>(), mutation()), 0..6)).prop_map(
        |(stream, mutations)| {
            let (dialect, mut frames) = stream.get(&STREAMS).clone();
            for (at, mutation) in mutations {
                if !frames.is_empty() {
                    let at = at.index(frames.len());
                    mutate(&mut frames, at, &mutation);
                }
            }
            (dialect, frames)
        },
    )
}

fn mutate(frames: &mut Vec<WireFrame>, at: usize, mutation: &Mutation) {
    let data = &mut frames[at].1;
    match mutation {
        Mutation::Flip(place, byte) if !data.is_empty() => {
            let place = place.index(data.len());
            data[place] = *byte;
        }
        Mutation::Flip(..) => {}
        Mutation::Truncate(place) => data.truncate(place.index(data.len() + 1)),
        Mutation::DropField(place) => rewrite(data, place, None),
        Mutation::SwapType(place, value) => {
            let values = [
                json!(null),
                json!(7),
                json!(-1.5),
                json!("word"),
                json!([]),
                json!({}),
                json!(true),
                json!(""),
            ];
            rewrite(data, place, Some(values[*value].clone()));
        }
        Mutation::Repeat => frames.insert(at, frames[at].clone()),
        Mutation::Remove => {
            frames.remove(at);
        }
    }
}

/// Drops or replaces one of a frame's fields, at any depth.
fn rewrite(data: &mut Vec<u8>, place: &Index, value: Option<Value>) {
    let Ok(mut frame) = serde_json::from_slice::<Value>(data) else { return };
    let mut paths = Vec::new();
    list_fields(&frame, &mut Vec::new(), &mut paths);
    if paths.is_empty() {
        return;
    }
    let path = &paths[place.index(paths.len())];
    let Some((name, outer)) = path.split_last() else { return };
    let Some(outer) = outer.iter().try_fold(&mut frame, |inner, name| inner.get_mut(name)) else { return };
    let Some(outer) = outer.as_object_mut() else { return };
    match value {
        Some(value) => outer.insert(name.clone(), value),
        None => outer.remove(name),
    };
    *data = frame.to_string().into_bytes();
}

fn list_fields(value: &Value, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    for (name, inner) in value.as_object().into_iter().flatten() {
        path.push(name.clone());
        out.push(path.clone());
        list_fields(inner, path, out);
        path.pop();
    }
}

/// Bytes that mostly are no JSON, and sometimes nearly are.
fn any_frame() -> impl Strategy<Value = WireFrame> {
    let name = proptest::option::weighted(0.3, "[a-z_]{0,12}");
    let data = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80),
        "\\{(\"(type|data|domain|payload|reply|runId|metadata)\":(\"[a-zA-Z_.]{0,12}\"|[0-9]{1,24}|null|\\{\\}|\\[\\]),?){0,5}\\}"
            .prop_map(String::into_bytes),
    ];
    (name, data)
}

/// Feeds frames to a decoder, and checks that one it refuses changes nothing.
fn feed(dialect: Dialect, frames: &[WireFrame]) -> Result<(), TestCaseError> {
    let mut decoder = Decoder::new(dialect);
    let (mut state, mut window, mut seq) = (RunState::new(THREAD, RUN), Window::default(), 0);
    for (name, data) in frames {
        let Ok(opened) = decoder.open(name.as_deref(), data) else { continue };
        let before = (state.clone(), decoder.clone());
        let mut entries = Vec::new();
        let mut builder = RecordBuilder::new(
            &mut state,
            &window,
            Authority::Producer,
            decoder.dialect(),
            seq + 1,
            &mut entries,
        );
        match decoder.decode(opened, &mut builder) {
            Ok(()) => {
                seq += 1;
                let dialect = Some(decoder.dialect());
                let record = Record { seq, at: Timestamp(0), source_time: None, dialect, entries };
                window.absorb(&record);
            }
            Err(error) => {
                let text = |value: &(RunState, Decoder)| serde_json::to_string(value).unwrap();
                let after = (state.clone(), decoder.clone());
                let frame = String::from_utf8_lossy(data);
                prop_assert_eq!(
                    text(&before),
                    text(&after),
                    "{}: {} changed the run: {}",
                    dialect,
                    frame,
                    error
                );
            }
        }
    }
    Ok(())
}

/// Feeds frames to a conversion, and checks that each gives a record or an error.
fn convert(dialect: Dialect, frames: &[WireFrame]) -> Result<(), TestCaseError> {
    let mut converter = Converter::new(Options { from: Some(dialect), ..Options::to(Dialect::Runwire) });
    for (line, (name, data)) in frames.iter().enumerate() {
        let mut records = 0;
        let pushed = converter.push(line as u64 + 1, name.as_deref(), data, &mut |_| records += 1);
        let frame = String::from_utf8_lossy(data);
        prop_assert!(pushed.is_err() || records > 0, "{} neither gave a record nor an error", frame);
    }
    let finished = converter.finish(&mut |_| ());
    prop_assert_eq!(finished, Ok(()));
    Ok(())
}

fn cut(framing: Framing, bytes: &[u8], cuts: &[Index]) -> Vec<String> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    places.push(bytes.len());
    let (mut unframer, mut from, mut out) = (Unframer::new(framing), 0, Vec::new());
    for to in places {
        unframer.push(&bytes[from..to]);
        from = to;
        while let Some(frame) = unframer.next() {
            out.push(format!("{frame:?}"));
        }
    }
    unframer.finish();
    while let Some(frame) = unframer.next() {
        out.push(format!("{frame:?}"));
    }
    out
}

/// A stream's bytes in a framing.
fn bytes_of(framing: Framing, frames: &[WireFrame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, data) in frames {
        write_frame(framing, &mut bytes, Some("1-0"), name.as_deref(), data);
    }
    bytes
}

/// A thing as it is after a restart.
fn restored<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_slice(&serde_json::to_vec(value).unwrap()).unwrap()
}

const FRAMINGS: [Framing; 3] = [Framing::Ndjson, Framing::Sse, Framing::Json];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_mutated_stream_loses_no_frame_and_a_refused_frame_changes_nothing((dialect, frames) in mutated_stream()) {
        feed(dialect, &frames)?;
        convert(dialect, &frames)?;
    }

    #[test]
    fn a_stream_of_another_dialect_loses_no_frame_and_a_refused_frame_changes_nothing(
        (_, frames) in mutated_stream(),
        dialect in proptest::sample::select(&Dialect::READABLE[..]),
    ) {
        feed(dialect, &frames)?;
        convert(dialect, &frames)?;
    }

    #[test]
    fn arbitrary_bytes_lose_no_frame_and_a_refused_frame_changes_nothing(
        frames in proptest::collection::vec(any_frame(), 0..12),
        dialect in proptest::sample::select(&Dialect::READABLE[..]),
    ) {
        feed(dialect, &frames)?;
        convert(dialect, &frames)?;
    }

    #[test]
    fn cuts_in_the_bytes_of_a_stream_do_not_show(
        (_, frames) in mutated_stream(),
        cuts in proptest::collection::vec(any::<Index>(), 0..20),
        framing in proptest::sample::select(&FRAMINGS[..]),
    ) {
        let bytes = bytes_of(framing, &frames);
        prop_assert_eq!(cut(framing, &bytes, &cuts), cut(framing, &bytes, &[]));
    }

    #[test]
    fn cuts_in_arbitrary_bytes_do_not_show(
        bytes in proptest::collection::vec(
            prop_oneof![
                any::<u8>(),
                proptest::sample::select(&b"\r\n\n{}[]\",: data:event:id:\xEF\xBB\xBF"[..]),
            ],
            0..120,
        ),
        cuts in proptest::collection::vec(any::<Index>(), 0..20),
        framing in proptest::sample::select(&FRAMINGS[..]),
    ) {
        prop_assert_eq!(cut(framing, &bytes, &cuts), cut(framing, &bytes, &[]));
    }

    #[test]
    fn an_encoder_goes_on_after_a_restart_between_any_two_records(run in runs::run()) {
        let records = runs::carry_out(&run);
        for dialect in Dialect::ALL {
            for fidelity in [Fidelity::Native, Fidelity::Full] {
                let mut encoder = Encoder::new(dialect, THREAD, RUN, fidelity);
                let (mut window, mut frames, mut out) = (Window::default(), Frames::default(), Vec::new());
                for record in &records {
                    window.absorb(record);
                    frames.clear();
                    encoder.step(record, &window, &mut frames);
                    out.extend(frames.iter().map(|(name, data)| (name.map(str::to_owned), data.to_vec())));
                    encoder = restored(&encoder);
                }
                prop_assert!(out == encode(&records, dialect, fidelity), "{} {:?}", dialect, fidelity);
            }
        }
    }

    #[test]
    fn a_decoder_and_its_run_go_on_after_a_restart_between_any_two_frames((dialect, frames) in mutated_stream()) {
        let read = |restart: bool| {
            let (mut decoder, mut state) = (Decoder::new(dialect), RunState::new(THREAD, RUN));
            let (mut window, mut records) = (Window::default(), Vec::new());
            for (name, data) in &frames {
                let Ok(opened) = decoder.open(name.as_deref(), data) else { continue };
                let (seq, mut entries) = (records.len() as u64 + 1, Vec::new());
                let authority = Authority::Producer;
                let mut builder = RecordBuilder::new(&mut state, &window, authority, dialect, seq, &mut entries);
                if decoder.decode(opened, &mut builder).is_err() {
                    continue;
                }
                let record =
                    Record { seq, at: Timestamp(0), source_time: None, dialect: Some(dialect), entries };
                window.absorb(&record);
                records.push(record);
                if restart {
                    (decoder, state) = (restored(&decoder), restored(&state));
                }
            }
            (records, state)
        };
        prop_assert!(read(true) == read(false));
    }
}

#[test]
fn a_frame_whose_time_cannot_be_read_shows_the_time_of_the_one_before() {
    let piece = |time: &str| {
        let data = r#""data":{"content":"Hi","step":1}"#;
        format!(r#"{{"type":"text_delta","run_id":"r","timestamp":"{time}",{data}}}"#)
    };
    let mut decoder = Decoder::new(Dialect::Agio);
    let mut encoder = Encoder::new(Dialect::Agio, "t", "r", Fidelity::Native);
    let (mut state, mut window) = (RunState::new("t", "r"), Window::default());
    let mut shown = Vec::new();
    for (seq, time) in (1..).zip(["2025-11-30T08:00:00.000Z", "2025-11-31T08:00:00.000Z"]) {
        let frame = piece(time);
        let opened = decoder.open(None, frame.as_bytes()).unwrap();
        let (source_time, mut entries) = (opened.envelope.time, Vec::new());
        let mut builder =
            RecordBuilder::new(&mut state, &window, Authority::Producer, Dialect::Agio, seq, &mut entries);
        decoder.decode(opened, &mut builder).unwrap();
        // The log's own time is a later one.
        let at = Timestamp(1_800_000_000_000);
        let record = Record { seq, at, source_time, dialect: Some(Dialect::Agio), entries };
        window.absorb(&record);
        let mut frames = Frames::default();
        encoder.step(&record, &window, &mut frames);
        for (_, data) in frames.iter() {
            let frame: Value = serde_json::from_slice(data).unwrap();
            shown.push(frame["timestamp"].as_str().unwrap().to_owned());
        }
    }
    assert!(shown.len() > 1 && shown.iter().all(|time| time == "2025-11-30T08:00:00.000Z"), "{shown:?}");
}
