//! Nodes write to the same threads concurrently: each defers commands for locked threads, and nothing is lost.

use std::collections::VecDeque;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use runwire_engines::Postgres as Engine;
use runwire_log::postgres::PgOptions;
use runwire_log::{LogEvents, StoredRecord, ThreadKey};

use super::failures::frame;

const NODES: usize = 3;
const THREADS: usize = 12;
const EACH: usize = 50;

/// Returns the writer of a record, and the record's ordinal among its writer's records.
fn said(stored: &StoredRecord) -> Option<(usize, usize)> {
    let frame: serde_json::Value = serde_json::from_slice(stored.frame.as_ref()?).unwrap();
    let (node, number) = frame["value"].as_str()?.split_once('-')?;
    Some((node.parse().unwrap(), number.parse().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_appends_of_several_nodes_to_shared_threads_are_stored_once_and_in_order() {
    let engine = Engine::start().unwrap();
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(super::open(engine.url("postgres"), PgOptions::default()).await);
    }
    let sent = nodes.iter().cloned().enumerate().map(|(number, node)| {
        tokio::spawn(async move {
            let mut asked = VecDeque::new();
            for at in 0..EACH * THREADS {
                let (thread, index) = (format!("thread{}", at % THREADS), at / THREADS);
                let (node, asks) = (node.clone(), frame(&thread, &format!("{number}-{index}")));
                let mut one = Box::pin(tokio::task::unconstrained(async move { node.append(asks).await }));
                // With the first look it is asked.
                match (&mut one).now_or_never() {
                    Some(answer) => assert_eq!(answer.unwrap().accepted, 1),
                    None => asked.push_back(one),
                }
                if asked.len() > 3 * THREADS {
                    assert_eq!(asked.pop_front().unwrap().await.unwrap().accepted, 1);
                }
            }
            join_all(asked).await
        })
    });
    for answers in join_all(sent).await {
        for answer in answers.unwrap() {
            assert_eq!(answer.unwrap().accepted, 1);
        }
    }
    for thread in 0..THREADS {
        let page = nodes[0].read(&ThreadKey::new("tenant", format!("thread{thread}")), 0).await.unwrap();
        for number in 0..NODES {
            let said = page.records.iter().filter_map(|stored| said(stored));
            let said: Vec<usize> = said.filter(|(node, _)| *node == number).map(|(_, at)| at).collect();
            assert_eq!(said, (0..EACH).collect::<Vec<_>>(), "node {number}, thread {thread}");
        }
    }
}
