//! Interactions in a store of an older version, after a crash, and over a week.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runwire_log::conformance::{Bed, Timing};
use runwire_log::sqlite::{SqliteLog, SqliteOptions};
use runwire_log::{
    Answer, Append, FrameBatch, InteractionQuery, Log, LogError, LogEvents, LogNode, LogRuns, LogUpkeep,
    RunKey, Target, ThreadKey, limits,
};
use runwire_model::Timestamp;
use runwire_model::event::Decision;

use crate::bed::SqliteBed;

const ASKS: &str = r#"{"type":"interaction.requested","interaction_id":"q","kind":"form"}"#;
const ASKS_AGAIN: &str = r#"{"type":"interaction.requested","interaction_id":"p","kind":"approval"}"#;

fn append(run: &str, frames: &[&str]) -> Append {
    let mut batch = FrameBatch::default();
    frames.iter().for_each(|frame| batch.push(1, None, frame.as_bytes()));
    let target = Target::Run(RunKey::new("tenant", run));
    Append {
        target,
        thread: None,
        dialect: None,
        stamp: None,
        frames: batch,
        end: false,
        check: Default::default(),
        whole: Default::default(),
        parallel: false,
    }
}

fn answer(id: &str) -> Answer {
    Answer { interaction_id: id.into(), ..Answer::default() }
}

async fn open(log: &dyn Log) -> Vec<String> {
    let query = InteractionQuery { tenant: "tenant".into(), limit: 10, ..InteractionQuery::default() };
    let page = log.interactions(query).await.unwrap();
    page.interactions.into_iter().map(|asked| asked.question.interaction_id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn interactions_in_pending_commits_are_recovered() {
    let bed = SqliteBed::new();
    let log = bed.open(Timing::default()).await;
    log.append(append("r", &[ASKS])).await.unwrap();
    // Neither changes how far the run is, so both stand in the journal alone.
    log.append(append("r", &[ASKS_AGAIN])).await.unwrap();
    log.answer(&RunKey::new("tenant", "r"), answer("q")).await.unwrap();
    // What is on disk now is what a killed process leaves behind.
    let copy = tempfile::tempdir().unwrap();
    for name in ["log.db", "log.db-wal"] {
        std::fs::copy(bed.path().with_file_name(name), copy.path().join(name)).unwrap();
    }
    log.close().await;
    let log = SqliteLog::open(&copy.path().join("log.db"), SqliteOptions::default()).unwrap();
    assert_eq!(open(&log).await, ["p"]);
    let refused =
        log.answer(&RunKey::new("tenant", "r"), Answer { by: Some("b".into()), ..answer("q") }).await;
    assert!(matches!(refused, Err(LogError::InteractionClosed { .. })), "{refused:?}");
    assert!(log.answer(&RunKey::new("tenant", "r"), answer("p")).await.unwrap().new);
    log.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_waits_for_a_week_over_restarts_and_then_expires() {
    let bed = SqliteBed::new();
    let now = Arc::new(AtomicU64::new(1_800_000_000_000));
    let options = || {
        let now = now.clone();
        SqliteOptions {
            clock: Arc::new(move || Timestamp(now.load(Ordering::SeqCst))),
            ..SqliteOptions::default()
        }
    };
    let log = SqliteLog::open(&bed.path(), options()).unwrap();
    for run in ["answered", "late", "expired"] {
        log.append(append(run, &[ASKS])).await.unwrap();
    }
    now.fetch_add(limits::INTERACTION_MILLIS - 1, Ordering::SeqCst);
    log.close().await;
    let log = SqliteLog::open(&bed.path(), options()).unwrap();
    assert_eq!(log.sweep().await, Ok(0));
    assert_eq!(open(&log).await.len(), 3);
    assert!(log.answer(&RunKey::new("tenant", "answered"), answer("q")).await.unwrap().new);
    now.fetch_add(1, Ordering::SeqCst);
    let late = log.answer(&RunKey::new("tenant", "late"), answer("q")).await;
    assert!(
        matches!(late, Err(LogError::InteractionClosed { answer, .. }) if answer.decision == Decision::Expired)
    );
    log.sweep().await.unwrap();
    assert!(open(&log).await.is_empty());
    for run in ["late", "expired"] {
        let page = log.read(&ThreadKey::new("tenant", run), 0).await.unwrap();
        let last = page.records.last().unwrap();
        let types: Vec<_> = last.record.entries.iter().map(|entry| entry.event.body.type_name()).collect();
        assert_eq!(types, ["interaction.resolved", "run.resumed"], "{run}");
    }
    log.close().await;
}
