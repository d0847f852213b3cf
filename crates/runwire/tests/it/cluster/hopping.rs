//! Reading anywhere: whoever goes to another node, after whichever frame, sees exactly the stream.

use std::fs;
use std::thread;

use runwire_model::dialect::Dialect;

use super::bed::{Bed, Setup};
use crate::command::vectors;
use crate::crash::cast::Cast;
use crate::crash::frames::Tongue;
use crate::crash::http::{Exchange, post};
use crate::crash::random::Seed;
use crate::crash::readers::{Frame, Over, Reading, Scope};
use crate::crash::world::World;

/// Streams of the vectors that are resumed, each in all ways.
const STREAMS: usize = 60;

#[test]
fn readers_that_hop_to_another_node_after_every_frame_see_exactly_the_stream() {
    let mut bed = Bed::start(Setup::default());
    let world = bed.world();
    let seen = thread::scope(|threads| {
        let _watch = world.watch();
        let readings = [
            ("runwire", Over::Sse),
            ("runwire", Over::WebSocket),
            ("raw", Over::Ndjson),
            ("ag-ui", Over::Sse),
            ("agio", Over::Ndjson),
            ("loom", Over::WebSocket),
            ("easyflow-chat", Over::Sse),
            ("streaming-engine", Over::Ndjson),
            ("social-app", Over::WebSocket),
        ];
        let hop = |(dialect, over)| {
            let reading = Reading { scope: Scope::Run("r".to_owned()), dialect, over };
            let world = &world;
            threads.spawn(move || reading.hop(world, "0".to_owned()))
        };
        let readers: Vec<_> = readings.map(hop).into();
        // Each frame comes by another node, too, and several at once.
        let mut at = 0;
        for count in (1..=7).cycle().take(21) {
            let body: String =
                (at..at + count).map(|number| Tongue::AgUi.frame("w", number) + "\n").collect();
            let stamp = [("producer-id", "w".to_owned()), ("producer-seq", at.to_string())];
            let answer = post(world.server(), "/v1/runs/r/events?dialect=ag-ui", &stamp, &body).unwrap();
            assert_eq!((answer.status, answer.written().accepted), (200, count), "{answer:?}");
            at += count;
        }
        let answer = post(world.server(), "/v1/runs/r/events?dialect=ag-ui&end=true", &[], "").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        readers.into_iter().map(|reader| reader.join().expect("the reader is content")).collect::<Vec<_>>()
    });
    for seen in &seen {
        assert!(seen.connections >= seen.frames.len(), "it did not hop: {seen:?}");
        for node in bed.addresses() {
            seen.check(&World::new(node));
        }
    }
    bed.stop();
}

#[test]
fn writers_and_readers_of_all_kinds_on_all_nodes_agree() {
    let seed = Seed::of("RUNWIRE_CHAOS_SEED");
    let random = seed.random();
    let mut bed = Bed::start(Setup { lease: 3600, ..Setup::default() });
    let world = bed.world();
    let outcome = thread::scope(|threads| {
        let _watch = world.watch();
        let mut cast = Cast::begin(threads, &world, &random, "calm", 0);
        cast.join_late(threads, &world, &random);
        world.enough_is_written();
        cast.end(&world)
    });
    for node in bed.addresses() {
        outcome.check(&World::new(node));
    }
    bed.stop();
}

#[test]
fn the_vectors_are_resumed_on_any_node_after_any_frame() {
    let seed = Seed::of("RUNWIRE_CHAOS_SEED");
    let mut random = seed.random().named("vectors");
    let mut bed = Bed::start(Setup::default());
    let world = bed.world();
    let mut streams = Vec::new();
    for (scope, path, kind, bytes) in cases() {
        let content = [("content-type", kind.to_owned())];
        let sent = Exchange::begin(world.server(), "POST", &path, &content, Some(&bytes));
        let answer = sent.and_then(Exchange::answer).unwrap();
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        streams.extend(Dialect::ALL.map(|dialect| (scope.clone(), dialect.name())));
    }
    // All of them, or some.
    if std::env::var_os("RUNWIRE_LONG").is_none() {
        streams = (0..STREAMS).map(|_| streams[random.below(streams.len())].clone()).collect();
    }
    for (scope, dialect) in streams {
        let reading = |over| Reading { scope: scope.clone(), dialect, over };
        let all = reading(Over::Ndjson).replay(&world, "0");
        for over in [Over::Sse, Over::Ndjson, Over::WebSocket].iter().filter(|_| !all.is_empty()) {
            let seen = random.below(all.len());
            let after = all[seen].cursor.clone();
            let rest = match (over, &scope) {
                (Over::WebSocket, Scope::Run(_)) => {
                    reading(*over).follow(&world, random.named(&after), after.clone()).frames
                }
                // A thread's stream has no end that a socket would tell.
                _ => reading(*over).replay(&world, &after),
            };
            let told = |frame: &Frame| (frame.cursor.clone(), bare(dialect, &frame.data));
            let rest: Vec<_> = rest.iter().map(told).collect();
            let expected: Vec<_> = all[seen + 1..].iter().map(told).collect();
            assert_eq!(rest, expected, "{scope:?} in {dialect} after {after}, {over:?}");
        }
    }
    bed.stop();
}

/// In `text` a frame is a string, which SSE carries without quotes.
fn bare(dialect: &str, data: &str) -> String {
    if dialect != "text" {
        return data.to_owned();
    }
    serde_json::from_str(data).unwrap_or_else(|_| data.to_owned())
}

/// Lists the golden streams: what each becomes, where it is written, its content type and its bytes.
fn cases() -> Vec<(Scope, String, &'static str, Vec<u8>)> {
    let mut cases = Vec::new();
    for dialect in Dialect::READABLE {
        let Ok(entries) = fs::read_dir(vectors().join(dialect.name())) else { continue };
        let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        folders.retain(|path| path.is_dir());
        folders.sort();
        for folder in folders {
            let (bytes, kind) = match fs::read(folder.join("input.ndjson")) {
                Ok(bytes) => (bytes, "application/x-ndjson"),
                Err(_) => (fs::read(folder.join("input.sse")).unwrap(), "text/event-stream"),
            };
            let messages = fs::read(folder.join("message.json")).unwrap();
            let messages: Vec<serde_json::Value> = serde_json::from_slice(&messages).unwrap();
            let label = format!("{dialect}.{}", folder.file_name().unwrap().to_string_lossy());
            let scope = if messages.len() > 1 { Scope::Thread(label) } else { Scope::Run(label) };
            let path = format!("{}/events?dialect={dialect}&end=true", scope.path());
            cases.push((scope, path, kind, bytes));
        }
    }
    assert!(!cases.is_empty(), "there are no vectors");
    cases
}
