//! Export and import of a thread, also over breaking connections.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use runwire_client::{Client, Error, Imported, ThreadExport};
use runwire_model::ErrorCode;

use crate::fake_servers::{
    BreakingProxy, COMPLETED, Ending, ScriptedServer, SeededRandom, answer, delta, fast_retry_client, write,
};
use crate::test_server::{TestServer, within_timeout};

async fn lines(mut records: ThreadExport) -> Vec<Bytes> {
    let mut lines = Vec::new();
    while let Some(line) = within_timeout(records.next_line()).await.unwrap() {
        lines.push(line);
    }
    lines
}

async fn import(client: &Client, thread: &str, lines: &[Bytes]) -> Result<Imported, Error> {
    let text: Vec<u8> = lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect();
    let pieces: Vec<_> =
        text.chunks(1000).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
    within_timeout(client.thread(thread).import(stream::iter(pieces))).await
}

/// Runs with many lines that follow records, and many records.
async fn a_thread(server: &TestServer) {
    for number in 0..12 {
        let run = server.client().run(format!("r{number}"));
        let frames = (0..20).map(|_| delta("some tea")).collect::<String>() + COMPLETED;
        let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from(frames))]);
        let upload = run.upload().thread("t").producer("p", None, Some(0));
        within_timeout(upload.send(bytes)).await.unwrap();
    }
}

#[tokio::test]
async fn an_exported_thread_is_imported_whole_and_once() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
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
    assert_eq!(unknown.code(), Some(ErrorCode::ThreadUnknown));
}

#[tokio::test]
async fn an_export_over_breaking_connections_is_complete() {
    let server = TestServer::start().await;
    a_thread(&server).await;
    let whole = lines(server.client().thread("t").records()).await;
    for seed in 1..=8 {
        let proxy = BreakingProxy::to(server.address, SeededRandom(seed * 7919), 20_000).await;
        let client = fast_retry_client(proxy.address).connect_attempts(1000).build().unwrap();
        assert_eq!(lines(client.thread("t").records()).await, whole);
        assert!(proxy.connections() > 3, "no connection broke");
    }
}

#[tokio::test]
async fn an_export_gives_up_if_its_connections_bring_no_line_in_time() {
    let nothing = answer("200 OK", "application/x-ndjson", "");
    let server = ScriptedServer::play(vec![(nothing, Ending::Close)]).await;
    let client = server.client().give_up_after(Duration::ZERO).build().unwrap();
    let error = within_timeout(client.thread("t").records().next_line()).await.unwrap_err();
    assert!(error.to_string().contains("it ended too early"), "{error}");
}

#[tokio::test]
async fn a_restarted_server_costs_an_export_no_line() {
    let mut server = TestServer::start().await;
    a_thread(&server).await;
    write(&server.client().run("later"), &delta("x")).await;
    let whole = lines(server.client().thread("t").records()).await;
    let mut records = fast_retry_client(server.address).build().unwrap().thread("t").records();
    let mut found = vec![records.next_line().await.unwrap().unwrap()];
    server.kill();
    server.restart().await;
    while let Some(line) = within_timeout(records.next_line()).await.unwrap() {
        found.push(line);
    }
    assert_eq!(found, whole);
}
