//! `GET /metrics`.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use crate::harness::{Served, within_timeout};

const STARTED: &str = "{\"type\":\"run.started\"}\n";
const ASKS: &str = "{\"type\":\"interaction.requested\",\"interaction_id\":\"q\",\"kind\":\"approval\"}\n";

/// Reads the samples, and checks the form of every line on the way.
async fn samples(served: &Served) -> HashMap<String, f64> {
    let answer = served.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let mut samples = HashMap::new();
    let mut family = String::new();
    for line in answer.text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap().to_owned();
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with(&family), "{line} is not of the family {family}");
            assert!(samples.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{line} comes twice");
        }
    }
    samples
}

#[tokio::test(flavor = "multi_thread")]
async fn records_readers_and_open_runs_are_counted() {
    let served = Served::start().await;
    let before = samples(&served).await;
    assert_eq!(before["runwire_records_written_total"], 0.0);
    assert_eq!(before["runwire_store_up"], 1.0);
    served.post("/v1/runs/asks/events", &format!("{STARTED}{ASKS}")).await.written(2, 0);
    served.post("/v1/runs/runs/events", STARTED).await.written(1, 0);
    served.post("/v1/runs", r#"{"run_id":"waits"}"#).await;
    served.post("/v1/runs/ends/events?end=true", STARTED).await.written(1, 0);
    served.post("/v1/runs/runs/events", "nonsense").await;
    let after = samples(&served).await;
    for status in ["pending", "running", "suspended"] {
        assert_eq!(after[&format!("runwire_runs_open{{status=\"{status}\"}}")], 1.0, "{status}");
    }
    assert_eq!(after["runwire_interactions_open"], 1.0);
    assert_eq!(
        after["runwire_frame_bytes_written_total"],
        (3 * STARTED.trim().len() + ASKS.trim().len()) as f64
    );
    // Two starts, a start with its question and suspension, a start and its end.
    assert_eq!(after["runwire_events_written_total"], 6.0);
    assert!(after["runwire_commit_seconds_count"] > before["runwire_commit_seconds_count"]);
    assert_eq!(after["runwire_commit_seconds_count"], after["runwire_commit_seconds_bucket{le=\"+Inf\"}"]);
    assert!(after["runwire_store_bytes"] > 0.0);
    assert_eq!(after["runwire_http_requests_total{class=\"write\",status=\"200\"}"], 3.0);
    assert_eq!(after["runwire_http_requests_total{class=\"write\",status=\"400\"}"], 1.0);
    assert_eq!(after["runwire_http_requests_total{class=\"resource\",status=\"201\"}"], 1.0);
    assert_eq!(after["runwire_http_requests_total{class=\"server\",status=\"200\"}"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_is_counted_for_as_long_as_it_reads() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events", STARTED).await.written(1, 0);
    let mut reader = served.raw().await;
    let ask = "GET /v1/runs/r/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    reader.send(ask.as_bytes()).await.unwrap();
    let until = async |open: f64| {
        within_timeout(async {
            while samples(&served).await["runwire_readers_open{framing=\"sse\"}"] != open {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    };
    until(1.0).await;
    assert_eq!(samples(&served).await["runwire_http_requests_total{class=\"read\",status=\"200\"}"], 1.0);
    drop(reader);
    until(0.0).await;
}

#[tokio::test]
async fn every_metric_is_documented_and_every_documented_one_exists() {
    let served = Served::with(|config| config.webhooks = Vec::new()).await;
    let text = served.get("/metrics").await.text;
    let told: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| line.split_once(' ').unwrap())
        .collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
    let page = fs::read_to_string(page).unwrap();
    let documented: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .filter_map(|(name, rest)| Some((name, rest.split(' ').next()?)))
        .filter(|(name, _)| name.starts_with("runwire_") || name.starts_with("process_"))
        .collect();
    assert_eq!(told, documented);
}
