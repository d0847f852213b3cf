//! Orphaned runs, whose server is gone.

use runwire_model::Json;

use super::Bed;
use super::fixture::{COMPLETED, Fixture, STARTED, TENANT, run, to_run};
use crate::info::{NewRun, OrphanedRun};

fn started(id: &str, agent: &str) -> NewRun {
    NewRun {
        tenant: TENANT.into(),
        run_id: Some(id.into()),
        agent: Some(agent.into()),
        message: Some(format!("for {id}")),
        input: Json::parse(r#"{"n":1.50}"#).ok(),
        is_started_here: true,
        ..NewRun::default()
    }
}

async fn claim_orphans(fixture: &Fixture<'_>, agents: &[&str], limit: usize) -> Vec<OrphanedRun> {
    fixture.log.claim_orphans(agents, limit).await.expect("what is left")
}

fn ids(left: &[OrphanedRun]) -> Vec<&str> {
    left.iter().map(|left| left.run.run_id.as_str()).collect()
}

/// After a server is gone, its open runs are claimed with the requests that created them.
pub async fn an_orphan_is_claimed_once_and_only_after_its_server_is_gone(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for id in ["pending", "running", "more", "most"] {
        fixture.log.create_run(started(id, "a")).await.expect("a run");
    }
    fixture.log.create_run(started("others", "b")).await.expect("a run");
    let theirs = NewRun { tenant: "theirs".into(), ..started("running", "a") };
    fixture.log.create_run(theirs).await.expect("a run");
    fixture.write(to_run("running", &[STARTED])).await;
    assert_eq!(ids(&claim_orphans(&fixture, &["a"], 10).await), Vec::<&str>::new());
    let fixture = fixture.reopen().await;
    fixture.log.create_run(started("new", "a")).await.expect("a run");
    assert_eq!(claim_orphans(&fixture, &[], 10).await, []);
    assert_eq!(claim_orphans(&fixture, &["a"], 0).await, []);
    let left = claim_orphans(&fixture, &["a"], 2).await;
    assert_eq!(ids(&left), ["pending", "running"]);
    assert_eq!(left[0].asked, started("pending", "a"));
    assert_eq!(left[1].run, fixture.info("running").await);
    let left = claim_orphans(&fixture, &["a", "c"], 10).await;
    assert_eq!(ids(&left), ["more", "most", "running"]);
    assert_eq!(left[2].tenant, "theirs");
    assert_eq!(claim_orphans(&fixture, &["a"], 10).await, []);
    // What was taken up is left again when its next server is gone.
    let fixture = fixture.reopen().await;
    fixture.log.cancel(&run("more"), crate::Cancel::default()).await.expect("a run");
    assert_eq!(
        ids(&claim_orphans(&fixture, &["a"], 10).await),
        ["pending", "running", "most", "running", "new"]
    );
}

/// An agent's name alone is a label: another program writes the run.
pub async fn runs_that_no_server_started_or_that_ended_are_no_orphans(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let label = NewRun { is_started_here: false, ..started("label", "a") };
    fixture.log.create_run(label.clone()).await.expect("a run");
    fixture.log.create_run(started("ended", "a")).await.expect("a run");
    fixture.write(to_run("ended", &[STARTED, COMPLETED])).await;
    fixture.log.create_run(started("open", "a")).await.expect("a run");
    // Who starts it is no part of what was asked for.
    let again = NewRun { is_started_here: true, ..label };
    assert!(!fixture.log.create_run(again).await.expect("the same run").new);
    let fixture = fixture.reopen().await;
    assert_eq!(ids(&claim_orphans(&fixture, &["a"], 10).await), ["open"]);
}

/// One node must deliver webhooks.
pub async fn a_store_that_is_open_alone_is_the_leader(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    assert!(fixture.log.is_leader());
    assert!(fixture.reopen().await.log.is_leader());
}
