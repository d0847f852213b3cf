//! The inbox: every open interaction, newest first, and nothing else.

use super::Bed;
use super::answers::asks;
use super::fixture::{Fixture, STARTED, TENANT, run, thread, to_run, to_run_of};
use crate::Cancel;
use crate::info::NewRun;
use crate::interaction::{Answer, InteractionPage, InteractionQuery};
use crate::key::{RunKey, ThreadKey};
use crate::transfer::ExportRequest;

fn all() -> InteractionQuery {
    InteractionQuery { tenant: TENANT.into(), limit: 100, ..InteractionQuery::default() }
}

async fn page(fixture: &Fixture<'_>, query: InteractionQuery) -> InteractionPage {
    fixture.log.interactions(query).await.expect("the inbox")
}

fn names(page: &InteractionPage) -> Vec<String> {
    let name = |asked: &crate::Interaction| format!("{}/{}", asked.run_id, asked.question.interaction_id);
    page.interactions.iter().map(name).collect()
}

/// Interactions are listed by the time of their request, with filters and pages.
pub async fn open_interactions_are_listed_newest_first_with_filters_and_pages(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let new = NewRun {
        tenant: TENANT.into(),
        run_id: Some("old".into()),
        thread_id: Some("t".into()),
        agent: Some("demo".into()),
        ..NewRun::default()
    };
    fixture.log.create_run(new).await.expect("the run");
    for n in 0..5 {
        fixture.write(to_run(&format!("r{n}"), &[STARTED, &asks("q")])).await;
    }
    // One that was created first and asks last, and asks again while it waits.
    fixture.write(to_run("old", &[STARTED, &asks("x")])).await;
    fixture.write(to_run("old", &[asks("y")])).await;
    let expected = ["old/y", "old/x", "r4/q", "r3/q", "r2/q", "r1/q", "r0/q"];
    assert_eq!(names(&page(&fixture, all()).await), expected);
    let mut listed = Vec::new();
    let mut query = InteractionQuery { limit: 2, ..all() };
    loop {
        let page = page(&fixture, query.clone()).await;
        listed.extend(names(&page));
        let Some(next) = page.next else { break };
        // What is settled meanwhile does not disturb the next page.
        if listed.len() == 4 {
            let answer = Answer { interaction_id: "q".into(), ..Answer::default() };
            fixture.log.answer(&run("r3"), answer).await.expect("an answer");
        }
        query.before = Some(next);
    }
    assert_eq!(listed, expected);
    let of = |query: InteractionQuery| page(&fixture, query);
    let agent = of(InteractionQuery { agent: Some("demo".into()), ..all() }).await;
    assert_eq!(names(&agent), ["old/y", "old/x"]);
    assert_eq!(agent.interactions[0].agent.as_deref(), Some("demo"));
    assert_eq!(names(&of(InteractionQuery { thread: Some("r2".into()), ..all() }).await), ["r2/q"]);
    assert_eq!(names(&of(InteractionQuery { run: Some("old".into()), ..all() }).await), ["old/y", "old/x"]);
    assert!(names(&of(InteractionQuery { tenant: "stranger".into(), ..all() }).await).is_empty());
    let fixture = fixture.reopen().await;
    let expected = ["old/y", "old/x", "r4/q", "r2/q", "r1/q", "r0/q"];
    assert_eq!(names(&page(&fixture, all()).await), expected);
}

/// However an interaction is resolved, it leaves the inbox.
pub async fn a_resolved_interaction_leaves_the_inbox(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for id in ["answered", "withdrawn", "cancelled", "deleted", "failed", "open"] {
        fixture.write(to_run_of(id, id, &[STARTED, &asks("q"), &asks("other")])).await;
    }
    let expiring = asks("q").replace("\"title\"", "\"expires_at\":\"2020-01-01T00:00:00Z\",\"title\"");
    fixture.write(to_run("expired", &[STARTED, &expiring])).await;
    assert_eq!(page(&fixture, all()).await.interactions.len(), 13);
    let answer = Answer { interaction_id: "q".into(), ..Answer::default() };
    fixture.log.answer(&run("answered"), answer).await.expect("an answer");
    let withdrawn = r#"{"type":"interaction.resolved","interaction_id":"q","decision":"cancelled"}"#;
    fixture.write(to_run("withdrawn", &[withdrawn])).await;
    fixture.log.cancel(&run("cancelled"), Cancel::default()).await.expect("the run");
    fixture.log.delete_thread(&thread("deleted"), true).await.expect("the thread");
    fixture.write(to_run("failed", &[r#"{"type":"run.failed","error":{"message":"m"}}"#])).await;
    fixture.log.sweep().await.expect("a sweep");
    let left = ["open/other", "open/q", "withdrawn/other", "answered/other"];
    let mut found = names(&page(&fixture, all()).await);
    found.sort_unstable();
    let mut expected = left.map(str::to_owned);
    expected.sort_unstable();
    assert_eq!(found, expected);
    let fixture = fixture.reopen().await;
    let mut found = names(&page(&fixture, all()).await);
    found.sort_unstable();
    assert_eq!(found, expected);
}

/// A page of large interactions ends early, and the next one continues.
pub async fn large_interactions_make_small_pages(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let large = asks("q").replace("Who?", &"x".repeat(1 << 19));
    for n in 0..12 {
        fixture.write(to_run(&format!("r{n:02}"), &[STARTED, &large])).await;
    }
    let first = page(&fixture, all()).await;
    assert!(first.interactions.len() < 12);
    let rest = page(&fixture, InteractionQuery { before: first.next, ..all() }).await;
    assert_eq!((first.interactions.len() + rest.interactions.len(), rest.next), (12, None));
}

/// An imported interaction is open here, and is answered here.
pub async fn an_interaction_is_exported_with_its_run(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run_of("t", "r", &[STARTED, &asks("q"), &asks("answered")])).await;
    let answer = Answer { interaction_id: "answered".into(), ..Answer::default() };
    let won = fixture.log.answer(&run("r"), answer.clone()).await.expect("an answer").answer;
    let exported = fixture.log.export(&thread("t"), &ExportRequest::default()).await.expect("the thread");
    let items = exported.items.into_iter().enumerate().map(|(at, item)| (at as u64 + 1, item)).collect();
    let there = ThreadKey::new("elsewhere", "t");
    assert_eq!(fixture.log.import(&there, items).await.expect("the thread").fault, None);
    let fixture = fixture.reopen().await;
    let inbox = page(&fixture, InteractionQuery { tenant: "elsewhere".into(), ..all() }).await;
    assert_eq!(names(&inbox), ["r/q"]);
    let moved = RunKey::new("elsewhere", "r");
    assert_eq!(fixture.log.interaction(&moved, "answered").await.expect("the question").answer, Some(won));
    assert!(!fixture.log.answer(&moved, answer).await.expect("the same").new);
    let answer = Answer { interaction_id: "q".into(), ..Answer::default() };
    assert!(fixture.log.answer(&moved, answer).await.expect("an answer").new);
    assert_eq!(names(&page(&fixture, all()).await), ["r/q"]);
}
