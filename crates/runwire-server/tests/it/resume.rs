//! Resuming from any cursor continues exactly there, over real connections and across restarts.
//!
//! `src/feed/tests.rs` resumes after every cursor in process; this takes a sample of a thousand through the
//! network, or all of them where `RUNWIRE_LONG` is set.

use http::StatusCode;
use runwire_log::{Append, FrameBatch, RunKey, Target, ThreadKey};
use runwire_model::dialect::Dialect;
use serde_json::json;

use crate::harness::Served;
use crate::reading::{NDJSON, SSE};
use crate::vectors::{self, Case};

/// Numbers that are the same in every run of the tests.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A frame with its cursor.
type Told = (String, String);

async fn write(served: &Served, case: &Case) -> String {
    let mut frames = FrameBatch::default();
    for (at, (name, data)) in case.frames.iter().enumerate() {
        frames.push(at as u64 + 1, name.as_deref(), data);
    }
    let label = case.label.as_str();
    let (target, path) = if case.several {
        (Target::Thread(ThreadKey::new("default", label)), format!("/v1/threads/{label}/events"))
    } else {
        (Target::Run(RunKey::new("default", label)), format!("/v1/runs/{label}/events"))
    };
    let append = Append {
        target,
        thread: None,
        dialect: Some(case.dialect),
        stamp: None,
        frames,
        end: true,
        check: Default::default(),
        whole: Default::default(),
        parallel: false,
    };
    assert_eq!(served.log.append(append).await.unwrap().fault, None);
    path
}

/// Reads the rest after a cursor over one of the ways.
async fn rest(served: &Served, way: usize, path: &str, dialect: Dialect, after: &str) -> Vec<Told> {
    let address = format!("{path}?dialect={dialect}&follow=false");
    match way {
        0 => {
            let headers = [SSE, ("last-event-id", after)];
            let mut stream = served.read(&address, &headers).await;
            if stream.status == StatusCode::NO_CONTENT {
                return Vec::new();
            }
            assert_eq!(stream.status, 200);
            let events = stream.rest().await.into_iter();
            // In `text` a frame is a string; everywhere it is compared as JSON is written.
            let data = |data: String| if dialect == Dialect::Text { json!(data).to_string() } else { data };
            events.map(|event| (event.id.unwrap(), data(event.data.unwrap()))).collect()
        }
        1 => {
            let address = format!("{address}&cursors=true&after={after}");
            let mut stream = served.read(&address, &[NDJSON]).await;
            if stream.status == StatusCode::NO_CONTENT {
                return Vec::new();
            }
            assert_eq!(stream.status, 200);
            stream.lines().await.iter().map(|line| unwrapped(line)).collect()
        }
        _ => {
            let mut socket = served.socket().await;
            let (_, id) = path.trim_end_matches("/events").rsplit_once('/').unwrap();
            let kind = if path.contains("/threads/") { "thread" } else { "run" };
            socket.subscribe("s", json!({kind: id, "dialect": dialect.name(), "after": after})).await;
            let end = if kind == "thread" { "caught_up" } else { "end" };
            let frames = socket.frames_until(end).await;
            frames
                .iter()
                .map(|frame| (frame["cursor"].as_str().unwrap().into(), frame["frame"].to_string()))
                .collect()
        }
    }
}

/// Reads `{"cursor":…,"frame":…}` without touching the frame's bytes.
fn unwrapped(line: &str) -> Told {
    let rest = line.strip_prefix(r#"{"cursor":""#).unwrap();
    let (cursor, frame) = rest.split_once(r#"","frame":"#).unwrap();
    (cursor.to_owned(), frame.strip_suffix('}').unwrap().to_owned())
}

fn same(way: usize, found: &[Told], expected: &[Told]) -> bool {
    if way < 2 {
        return found == expected;
    }
    // What came over the WebSocket was read as JSON, so it is compared as JSON.
    let parsed = |told: &[Told]| -> Vec<(String, serde_json::Value)> {
        told.iter().map(|(cursor, frame)| (cursor.clone(), serde_json::from_str(frame).unwrap())).collect()
    };
    parsed(found) == parsed(expected)
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_over_the_network_and_across_restarts_gives_exactly_the_rest() {
    let mut served = Served::start().await;
    let mut streams = Vec::new();
    for case in vectors::cases() {
        let path = write(&served, &case).await;
        streams.extend(Dialect::ALL.map(|dialect| (path.clone(), dialect)));
    }
    let mut replays = Vec::new();
    for (path, dialect) in &streams {
        replays.push(rest(&served, 1, path, *dialect, "0").await);
    }
    // Every place: a stream, and how many of its frames were seen.
    let counts = replays.iter().enumerate();
    let mut places: Vec<(usize, usize)> =
        counts.flat_map(|(at, all)| (1..=all.len()).map(move |seen| (at, seen))).collect();
    let mut seeded = Seeded(20_261_115);
    if std::env::var_os("RUNWIRE_LONG").is_none() {
        places = (0..1000).map(|_| places[seeded.below(places.len())]).collect();
    }
    let restart_after = places.len() / 4 + 1;
    for (count, (at, seen)) in places.into_iter().enumerate() {
        if count % restart_after == restart_after - 1 {
            served = served.restarted().await;
        }
        let ((path, dialect), all) = (&streams[at], &replays[at]);
        let way = seeded.below(3);
        let after = &all[seen - 1].0;
        let found = rest(&served, way, path, *dialect, after).await;
        assert!(same(way, &found, &all[seen..]), "{path} in {dialect} after {after}, way {way}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_are_cut_off_by_restarts_see_everything_once() {
    let mut served = Served::start().await;
    let frame =
        |at: usize| format!("{{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"{at} \"}}\n");
    served.post("/v1/runs/r/events", &frame(0)).await.written(1, 0);
    let (mut seen, mut last) = (String::new(), None::<String>);
    for round in 1..=3 {
        let headers: Vec<(&str, &str)> =
            last.as_deref().map(|last| ("last-event-id", last)).into_iter().chain([SSE]).collect();
        let mut stream = served.read("/v1/runs/r/events?dialect=text", &headers).await;
        served.post("/v1/runs/r/events", &(frame(3 * round) + &frame(3 * round + 1))).await.written(2, 0);
        seen.push_str(&stream.event().await.unwrap().data.unwrap());
        served.begin_to_stop();
        for event in stream.rest().await {
            seen.push_str(&event.data.unwrap());
        }
        last = stream.last_id.clone();
        served = served.restarted().await;
    }
    served.post("/v1/runs/r/events?end=true", "").await.written(0, 0);
    let last = last.unwrap();
    for event in served.events("/v1/runs/r/events?dialect=text", &[SSE, ("last-event-id", &last)]).await {
        seen.push_str(&event.data.unwrap());
    }
    assert_eq!(seen, "0 3 4 6 7 9 10 ");
}
