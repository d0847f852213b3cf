//! Several nodes on one store in Postgres.

use std::sync::Arc;

use runwire_log::conformance::{Bed, Timing};
use runwire_log::{Append, FrameBatch, Log, NewRun, RunKey, Stamp, Target};

use crate::cluster::PostgresBed;

const NODES: usize = 3;

async fn nodes(bed: &PostgresBed) -> Vec<Arc<dyn Log>> {
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(bed.open(Timing::default()).await);
    }
    nodes
}

fn frame(producer: usize, index: u64) -> Append {
    let mut frames = FrameBatch::default();
    let data = format!(r#"{{"type":"custom","name":"p{producer}","value":{index}}}"#);
    frames.push(1, None, data.as_bytes());
    let target = Target::Run(RunKey::new("tenant", "run"));
    let stamp = Some(Stamp { producer: format!("p{producer}").into(), epoch: 1, index });
    Append {
        target,
        thread: Some("thread".into()),
        dialect: None,
        stamp,
        frames,
        end: false,
        check: Default::default(),
        whole: Default::default(),
        parallel: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_repeated_on_any_node_are_stored_once_in_one_order() {
    const FRAMES: u64 = 20;
    let bed = PostgresBed::new();
    let nodes = nodes(&bed).await;
    let writers = (0..NODES).map(|producer| {
        let nodes = nodes.clone();
        tokio::spawn(async move {
            for index in 0..FRAMES {
                let (here, there) = (&nodes[producer], &nodes[(producer + 1) % NODES]);
                assert_eq!(here.append(frame(producer, index)).await.unwrap().accepted, 1);
                let again = there.append(frame(producer, index)).await.unwrap();
                assert_eq!((again.accepted, again.duplicates), (0, 1));
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let thread = RunKey::new("tenant", "run").thread("thread");
    let page = nodes[0].read(&thread, 0).await.unwrap();
    let seqs: Vec<u64> = page.records.iter().map(|stored| stored.record.seq).collect();
    assert_eq!(seqs, (1..=FRAMES * NODES as u64).collect::<Vec<_>>());
    for producer in 0..NODES {
        let sent: Vec<String> = (0..FRAMES)
            .map(|index| {
                String::from_utf8(frame(producer, index).frames.iter().next().unwrap().data.to_vec()).unwrap()
            })
            .collect();
        let name = format!(r#""p{producer}""#);
        let kept = page.records.iter().filter_map(|stored| stored.frame.as_ref());
        let kept: Vec<_> = kept.map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
        let kept: Vec<_> = kept.into_iter().filter(|frame| frame.contains(&name)).collect();
        assert_eq!(kept, sent);
    }
    for node in &nodes[1..] {
        assert_eq!(node.read(&thread, 0).await.unwrap().records, page.records);
    }
}

/// Frames of two sessions of a producer, beside each other.
fn sessions(producer: usize, index: u64) -> Append {
    let mut frames = FrameBatch::default();
    for session in ["a", "b"] {
        let data = format!(
            r#"{{"session_id":"{session}{producer}","type":"message_chunk","content":"{index} ","id":"agent"}}"#
        );
        frames.push(1, None, data.as_bytes());
    }
    let stamp = Some(Stamp { producer: format!("p{producer}").into(), epoch: 1, index: 2 * index });
    Append { target: Target::Tenant("tenant".into()), frames, stamp, thread: None, ..frame(producer, index) }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_several_sessions_are_written_once_on_any_node() {
    const FRAMES: u64 = 20;
    let bed = PostgresBed::new();
    let nodes = nodes(&bed).await;
    let writers = (0..NODES).map(|producer| {
        let nodes = nodes.clone();
        tokio::spawn(async move {
            for index in 0..FRAMES {
                let at = producer + index as usize;
                let (here, there) = (&nodes[at % NODES], &nodes[(at + 1) % NODES]);
                assert_eq!(here.append(sessions(producer, index)).await.unwrap().accepted, 2);
                let again = there.append(sessions(producer, index)).await.unwrap();
                assert_eq!((again.accepted, again.duplicates), (0, 2));
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    for (producer, session) in (0..NODES).flat_map(|producer| [(producer, "a"), (producer, "b")]) {
        let thread = RunKey::new("tenant", "").thread(format!("{session}{producer}"));
        let records = nodes[0].read(&thread, 0).await.unwrap().records;
        let said: Vec<String> = records
            .iter()
            .filter_map(|stored| stored.frame.as_ref())
            .map(|frame| serde_json::from_slice::<serde_json::Value>(frame).unwrap()["content"].to_string())
            .collect();
        assert_eq!(said, (0..FRAMES).map(|index| format!("\"{index} \"")).collect::<Vec<_>>());
        assert!(records.iter().all(|stored| stored.run == records[0].run), "one run a session");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_nodes_that_create_one_run_at_once_one_is_the_first() {
    let bed = PostgresBed::new();
    let nodes = nodes(&bed).await;
    for round in 0..10 {
        let new = |thread: &str| NewRun {
            tenant: "tenant".into(),
            run_id: Some(format!("run-{round}")),
            thread_id: Some(format!("{thread}-{round}")),
            ..NewRun::default()
        };
        let asked = nodes.iter().cloned().map(|node| {
            let run = new("thread");
            tokio::spawn(async move { node.create_run(run).await.unwrap() })
        });
        let mut created = Vec::new();
        for asked in asked.collect::<Vec<_>>() {
            created.push(asked.await.unwrap());
        }
        assert_eq!(created.iter().filter(|created| created.new).count(), 1);
        assert!(created.windows(2).all(|pair| pair[0].value == pair[1].value));
        // The id is taken on every node.
        for node in &nodes {
            assert!(node.create_run(new("another")).await.is_err());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_open_an_empty_store_at_once_all_find_it_ready() {
    let bed = PostgresBed::new();
    let (one, another, third) =
        tokio::join!(bed.open(Timing::default()), bed.open(Timing::default()), bed.open(Timing::default()));
    for node in [one, another, third] {
        node.ready().await.unwrap();
    }
}
