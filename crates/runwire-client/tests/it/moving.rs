//! A thread moves from one server to another, also over ways that break.

use bytes::Bytes;
use futures_util::stream;
use runwire_client::{Client, Error, Imported, Records};

use crate::reading_way::{Brittle, COMPLETED, Seeded, delta, quick, write};
use crate::writing_stage::{Stage, patient};

async fn lines(mut records: Records) -> Vec<Bytes> {
    let mut lines = Vec::new();
    while let Some(line) = patient(records.next_line()).await.unwrap() {
        lines.push(line);
    }
    lines
}

async fn import(client: &Client, thread: &str, lines: &[Bytes]) -> Result<Imported, Error> {
    let text: Vec<u8> = lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect();
    let pieces: Vec<_> =
        text.chunks(1000).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
    patient(client.thread(thread).import(stream::iter(pieces))).await
}

/// Runs with many lines that follow records, and many records.
async fn a_thread(stage: &Stage) {
    for number in 0..12 {
        let run = stage.client().run(format!("r{number}"));
        let frames = (0..20).map(|_| delta("some tea")).collect::<String>() + COMPLETED;
        let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from(frames))]);
        let upload = run.upload().thread("t").producer("p", None, Some(0));
        patient(upload.send(bytes)).await.unwrap();
    }
}

#[tokio::test]
async fn an_exported_thread_is_imported_whole_and_once() {
    let (here, there) = (Stage::start().await, Stage::start().await);
    a_thread(&here).await;
    let moved = lines(here.client().thread("t").records()).await;
    let imported = import(&there.client(), "t", &moved).await.unwrap();
    assert_eq!((imported.imported, imported.skipped, imported.complete), (252, 0, true));
    let again = import(&there.client(), "t", &moved).await.unwrap();
    assert_eq!((again.imported, again.skipped, again.last_seq), (0, 252, 252));
    assert_eq!(lines(there.client().thread("t").records()).await, moved);
    let alone = lines(here.client().thread("t").records_of("r3")).await;
    assert!(alone.len() < 30 && alone.last().unwrap().starts_with(b"{\"type\":\"end\""));
    let unfit = import(&there.client(), "t", &alone).await.unwrap_err();
    assert_eq!(unfit.problem().and_then(runwire_client::Problem::line), Some(1));
    let unknown = here.client().thread("none").records().next_line().await.unwrap_err();
    assert_eq!(unknown.code(), Some("thread_unknown"));
}

#[tokio::test]
async fn an_export_over_a_way_that_breaks_is_the_same_line_by_line() {
    let stage = Stage::start().await;
    a_thread(&stage).await;
    let whole = lines(stage.client().thread("t").records()).await;
    for seed in 1..=8 {
        let way = Brittle::to(stage.address, Seeded(seed * 7919), 20_000).await;
        let client = quick(way.address).first_tries(1000).build().unwrap();
        assert_eq!(lines(client.thread("t").records()).await, whole);
        assert!(way.connections() > 3, "the way did not break");
    }
}

#[tokio::test]
async fn a_restarted_server_costs_an_export_no_line() {
    let mut stage = Stage::start().await;
    a_thread(&stage).await;
    write(&stage.client().run("later"), &delta("x")).await;
    let whole = lines(stage.client().thread("t").records()).await;
    let mut records = quick(stage.address).build().unwrap().thread("t").records();
    let mut found = vec![records.next_line().await.unwrap().unwrap()];
    stage.kill();
    stage.restart().await;
    while let Some(line) = patient(records.next_line()).await.unwrap() {
        found.push(line);
    }
    assert_eq!(found, whole);
}
