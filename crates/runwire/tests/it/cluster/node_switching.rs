//! A reader that switches to another node after any frame reads exactly the stream.

use std::fs;
use std::thread;

use runwire_model::dialect::Dialect;

use super::test_cluster::{Setup, TestCluster};
use crate::command::vectors;
use crate::crash::context::TestContext;
use crate::crash::frames::WriterDialect;
use crate::crash::http::{Exchange, post};
use crate::crash::random::Seed;
use crate::crash::readers::{Frame, ReaderPlan, ReaderTransport, Scope};
use crate::crash::workload::Workload;

/// Streams of the vectors that are resumed, each in all ways.
const STREAMS: usize = 60;

#[test]
fn readers_that_hop_to_another_node_after_every_frame_see_exactly_the_stream() {
    let mut cluster = TestCluster::start(Setup::default());
    let context = cluster.context();
    let seen = thread::scope(|threads| {
        let _watch = context.watch();
        let plans = [
            ("runwire", ReaderTransport::Sse),
            ("runwire", ReaderTransport::WebSocket),
            ("raw", ReaderTransport::Ndjson),
            ("ag-ui", ReaderTransport::Sse),
            ("agio", ReaderTransport::Ndjson),
            ("loom", ReaderTransport::WebSocket),
            ("easyflow-chat", ReaderTransport::Sse),
            ("streaming-engine", ReaderTransport::Ndjson),
            ("social-app", ReaderTransport::WebSocket),
        ];
        let hop = |(dialect, over)| {
            let plan = ReaderPlan { scope: Scope::Run("r".to_owned()), dialect, over };
            let context = &context;
            threads.spawn(move || plan.reconnect_every_frame(context, "0".to_owned()))
        };
        let readers: Vec<_> = plans.map(hop).into();
        // Each frame comes by another node, too, and several at once.
        let mut at = 0;
        for count in (1..=7).cycle().take(21) {
            let body: String =
                (at..at + count).map(|number| WriterDialect::AgUi.frame("w", number) + "\n").collect();
            let stamp = [("producer-id", "w".to_owned()), ("producer-seq", at.to_string())];
            let answer = post(context.server(), "/v1/runs/r/events?dialect=ag-ui", &stamp, &body).unwrap();
            assert_eq!((answer.status, answer.written().accepted), (200, count), "{answer:?}");
            at += count;
        }
        let answer = post(context.server(), "/v1/runs/r/events?dialect=ag-ui&end=true", &[], "").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        readers.into_iter().map(|reader| reader.join().expect("the reader is content")).collect::<Vec<_>>()
    });
    for seen in &seen {
        assert!(seen.connections >= seen.frames.len(), "it did not hop: {seen:?}");
        for node in cluster.addresses() {
            seen.check(&TestContext::new(node));
        }
    }
    cluster.stop();
}

#[test]
fn writers_and_readers_of_all_kinds_on_all_nodes_agree() {
    let seed = Seed::of("RUNWIRE_CHAOS_SEED");
    let random = seed.random();
    let mut cluster = TestCluster::start(Setup { lease: 3600, ..Setup::default() });
    let context = cluster.context();
    let outcome = thread::scope(|threads| {
        let _watch = context.watch();
        let mut workload = Workload::begin(threads, &context, &random, "calm", 0);
        workload.join_late(threads, &context, &random);
        context.finish_writers();
        workload.end(&context)
    });
    for node in cluster.addresses() {
        outcome.check(&TestContext::new(node));
    }
    cluster.stop();
}

#[test]
fn the_vectors_are_resumed_on_any_node_after_any_frame() {
    let seed = Seed::of("RUNWIRE_CHAOS_SEED");
    let mut random = seed.random().named("vectors");
    let mut cluster = TestCluster::start(Setup::default());
    let context = cluster.context();
    let mut streams = Vec::new();
    for (scope, path, kind, bytes) in cases() {
        let content = [("content-type", kind.to_owned())];
        let sent = Exchange::begin(context.server(), "POST", &path, &content, Some(&bytes));
        let answer = sent.and_then(Exchange::answer).unwrap();
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        streams.extend(Dialect::ALL.map(|dialect| (scope.clone(), dialect.name())));
    }
    // All of them, or some.
    if std::env::var_os("RUNWIRE_LONG").is_none() {
        streams = (0..STREAMS).map(|_| streams[random.below(streams.len())].clone()).collect();
    }
    for (scope, dialect) in streams {
        let plan = |over| ReaderPlan { scope: scope.clone(), dialect, over };
        let all = plan(ReaderTransport::Ndjson).replay(&context, "0");
        for over in [ReaderTransport::Sse, ReaderTransport::Ndjson, ReaderTransport::WebSocket]
            .iter()
            .filter(|_| !all.is_empty())
        {
            let seen = random.below(all.len());
            let after = all[seen].cursor.clone();
            let rest = match (over, &scope) {
                (ReaderTransport::WebSocket, Scope::Run(_)) => {
                    plan(*over).follow(&context, random.named(&after), after.clone()).frames
                }
                // A thread's stream has no end that a socket would tell.
                _ => plan(*over).replay(&context, &after),
            };
            let told = |frame: &Frame| (frame.cursor.clone(), bare(dialect, &frame.data));
            let rest: Vec<_> = rest.iter().map(told).collect();
            let expected: Vec<_> = all[seen + 1..].iter().map(told).collect();
            assert_eq!(rest, expected, "{scope:?} in {dialect} after {after}, {over:?}");
        }
    }
    cluster.stop();
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
