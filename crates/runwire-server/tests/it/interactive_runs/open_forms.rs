//! Forms that stay open for long: over restarts, a week, reloads, and to their expiry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runwire_log::limits::INTERACTION_MILLIS;
use runwire_log::sqlite::SqliteOptions;
use runwire_model::Timestamp;
use serde_json::json;

use super::{FORM, of_type, submit, write};
use crate::agents::fake_agents::RunAssertions;
use crate::harness::{COMPLETED, Served};

/// When the clocks of these tests begin.
pub(super) const BEGIN: u64 = 1_800_000_000_000;

/// A clock that a test sets.
#[derive(Clone)]
pub(super) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(BEGIN)))
    }

    pub(super) fn options(&self) -> SqliteOptions {
        let now = self.0.clone();
        SqliteOptions {
            clock: Arc::new(move || Timestamp(now.load(Ordering::SeqCst))),
            ..SqliteOptions::default()
        }
    }

    pub(super) fn pass(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_waits_for_a_week_over_restarts_and_reloads_and_is_answered_in_its_last_moment() {
    let clock = Clock::new();
    let mut served = Served::with_store(clock.options(), |_| {}).await;
    write(&served, "r", &[r#"{"type":"run.started"}"#, FORM]).await;
    let asked = served.get("/v1/runs/r/interactions/q").await.json();
    // A day at a time, with another server each day.
    for day in 1..8 {
        clock.pass(if day == 7 { INTERACTION_MILLIS / 7 - 1 } else { INTERACTION_MILLIS / 7 });
        served = served.restarted_on(clock.options()).await;
        assert_eq!(served.get("/v1/runs/r").await.json()["status"], "suspended", "day {day}");
        assert_eq!(served.get("/v1/interactions").await.json()["interactions"], json!([asked]), "day {day}");
        // A page that is loaded again shows the form in every dialect that offers the present.
        for dialect in ["runwire", "ag-ui", "easyflow-chat", "streaming-engine"] {
            let path = format!("/v1/runs/r/events?dialect={dialect}&attach=snapshot&follow=false");
            let shown = served.get(&path).await;
            assert!(
                shown.text.contains("\"q\"") && shown.text.contains("\"required\""),
                "{dialect}: {shown:?}"
            );
        }
    }
    assert_eq!(submit(&served, "r", 7).await.status.as_u16(), 200);
    write(&served, "r", &[COMPLETED.trim()]).await;
    served.one_end("r").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_expires_when_it_says_and_the_run_goes_on() {
    let clock = Clock::new();
    let served = Served::with_store(clock.options(), |_| {}).await;
    let at = Timestamp(BEGIN + 3_600_000);
    let asks = FORM.replace("\"kind\"", &format!("\"expires_at\":\"{at}\",\"kind\""));
    for run in ["swept", "late"] {
        write(&served, run, &[r#"{"type":"run.started"}"#, &asks]).await;
    }
    clock.pass(3_599_999);
    served.log.sweep().await.unwrap();
    assert_eq!(served.get("/v1/interactions").await.json()["interactions"].as_array().unwrap().len(), 2);
    let served = served.restarted_on(clock.options()).await;
    clock.pass(1);
    // Whether somebody answers first, or the server looks first: it is too late.
    let late = submit(&served, "late", 1).await.problem(409, "interaction_closed");
    assert_eq!(late["answer"]["decision"], "expired");
    let detail = late["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("expired at {at}")), "{detail}");
    // The server looks by itself.
    served.until_status("swept", "running").await;
    for run in ["swept", "late"] {
        assert_eq!(
            submit(&served, run, 1).await.problem(409, "interaction_closed")["answer"]["decision"],
            "expired"
        );
        let events = served.happened(run).await;
        assert_eq!(of_type(&events, "interaction.resolved").len(), 1);
        assert_eq!(events.last().unwrap()["type"], "run.resumed");
    }
}
