//! Outages of the store: connections stay open, work continues, nothing is lost or duplicated.

mod agents;
mod creating_runs;
mod flaky_log;
mod reading;
mod writing;

use std::sync::Arc;

use runwire_server::Config;

use crate::harness::Served;
pub(crate) use flaky_log::{FlakyLog, Outage};

/// A server whose store can be told to be away.
async fn serving(configure: impl FnOnce(&mut Config)) -> (Served, Arc<FlakyLog>) {
    Served::through(FlakyLog::new, configure).await
}

#[tokio::test]
async fn requests_during_an_outage_get_503_without_secrets() {
    let (served, store) = serving(|_| {}).await;
    served.post("/v1/runs/r/events", &crate::harness::delta("a")).await.written(1, 0);
    store.fail(Outage::Everything);
    let asks = [
        served.get("/readyz").await,
        served.get("/v1/runs/r").await,
        served.get("/v1/runs/r/events").await,
        served.get_with("/v1/runs/r/events", &[crate::reading::SSE]).await,
        served.get("/v1/threads").await,
        served.post("/v1/runs/r/cancel", "").await,
        served.post("/v1/runs", "{}").await,
        served.post("/v1/runs/r/events", &crate::harness::delta("b")).await,
    ];
    for answer in asks {
        answer.problem(503, "store_unavailable");
        assert_eq!(answer.headers["retry-after"], "1");
        assert!(!answer.text.contains("secret") && !answer.text.contains("postgres"), "{answer:?}");
    }
    // The store waits itself before it says so: nobody shall wait for it twice.
    store.fail(Outage::Everything);
    served.get_with("/v1/runs/r/events", &[crate::reading::SSE]).await.problem(503, "store_unavailable");
    assert_eq!(store.refused("run"), 1);
    store.recover();
    assert_eq!(served.get("/v1/runs/r").await.json()["counts"]["records"], 1);
}
