//! What Agio's document promises to its clients.

use runwire_model::Timestamp;
use runwire_model::dialect::{Dialect, Fidelity};
use runwire_model::event::{Event, RunCancelled};
use runwire_model::record::{Entry, EventOrigin, Record};
use serde_json::Value;

use super::properties::{decode, encode};

#[test]
fn what_the_server_adds_is_never_before_what_a_producer_ahead_of_it_has_sent() {
    let frame = |kind: &str, time: &str, data: &str| {
        let frame =
            format!(r#"{{"type":"{kind}","run_id":"r","timestamp":"{time}","data":{data},"metadata":{{}}}}"#);
        (None, frame.into_bytes())
    };
    let input = [
        frame("run_started", "2126-11-20T00:00:00.000Z", r#"{"query":"?"}"#),
        frame("text_delta", "2126-11-20T00:00:05.000Z", r#"{"content":"a","step":1}"#),
        frame("text_delta", "2126-11-20T00:00:03.000Z", r#"{"content":"b","step":1}"#),
        frame("future", "2126-11-20T00:00:02.000Z", "{}"),
    ];
    let mut records = decode(&input, Dialect::Agio).unwrap();
    const AHEAD: u64 = 4_950_806_400_000;
    for (record, seconds) in records.iter_mut().zip([0, 5, 3, 2]) {
        record.source_time = Some(Timestamp(AHEAD + seconds * 1000));
    }
    // The server cancels the run, by its own clock.
    let seq = records.last().unwrap().seq + 1;
    let event = Event::new(RunCancelled::default());
    let entries = vec![Entry { event, origin: EventOrigin::Server }];
    records.push(Record { seq, at: Timestamp(1_000), source_time: None, dialect: None, entries });
    let frames = encode(&records, Dialect::Agio, Fidelity::Native);
    let frames: Vec<Value> = frames.iter().map(|(_, data)| serde_json::from_slice(data).unwrap()).collect();
    let times: Vec<&str> = frames.iter().map(|frame| frame["timestamp"].as_str().unwrap()).collect();
    assert_eq!(frames.last().unwrap()["type"], "run_cancelled");
    // A producer's own times come back as they are.
    let seconds: Vec<&str> = times.iter().map(|time| &time[17..19]).collect();
    assert_eq!(seconds[..4], ["00", "05", "03", "02"], "{times:?}");
    assert!(times[4..].iter().all(|time| *time == "2126-11-20T00:00:05.000Z"), "{times:?}");
}
