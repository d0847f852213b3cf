//! Lists of runs and threads, and the ranges and contents of threads.

use runwire_model::Timestamp;
use runwire_model::record::History;
use runwire_model::run::Status;

use super::Bed;
use super::fixture::{COMPLETED, Fixture, STARTED, TENANT, delta, run, thread, to_run, to_run_of};
use crate::append::{Append, Target};
use crate::error::LogError;
use crate::info::{NewRun, NewThread, RunQuery};
use crate::key::{RunKey, ThreadKey};

async fn listed(fixture: &Fixture<'_>, query: RunQuery) -> Vec<String> {
    let query = RunQuery { tenant: TENANT.into(), ..query };
    fixture.log.runs(query).await.expect("runs").into_iter().map(|run| run.run_id).collect()
}

/// Filters are combined, and a page begins after the last run of the previous one.
pub async fn runs_are_listed_newest_first_with_filters_and_pages(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    for (id, agent) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y"), ("e", "x")] {
        let new = NewRun {
            tenant: TENANT.into(),
            run_id: Some(id.into()),
            thread_id: (id != "e").then(|| "t".into()),
            agent: Some(agent.into()),
            ..NewRun::default()
        };
        fixture.log.create_run(new).await.expect("the run");
    }
    fixture.write(to_run("b", &[STARTED])).await;
    fixture.write(to_run("c", &[STARTED, COMPLETED])).await;
    let fixture = fixture.reopen().await;
    let all = || RunQuery { limit: 10, ..RunQuery::default() };
    assert_eq!(listed(&fixture, all()).await, ["e", "d", "c", "b", "a"]);
    assert_eq!(listed(&fixture, RunQuery { limit: 2, ..all() }).await, ["e", "d"]);
    assert_eq!(listed(&fixture, RunQuery { limit: 2, before: Some("d".into()), ..all() }).await, ["c", "b"]);
    assert_eq!(listed(&fixture, RunQuery { before: Some("a".into()), ..all() }).await, [""; 0]);
    assert_eq!(
        listed(&fixture, RunQuery { statuses: vec![Status::Pending], ..all() }).await,
        ["e", "d", "a"]
    );
    let several = |limit| RunQuery {
        statuses: vec![Status::Completed, Status::Pending, Status::Running, Status::Pending],
        limit,
        ..all()
    };
    assert_eq!(listed(&fixture, several(10)).await, ["e", "d", "c", "b", "a"]);
    assert_eq!(listed(&fixture, several(3)).await, ["e", "d", "c"]);
    assert_eq!(listed(&fixture, RunQuery { agent: Some("x".into()), ..all() }).await, ["e", "c", "a"]);
    let both = RunQuery { thread: Some("t".into()), agent: Some("x".into()), ..all() };
    assert_eq!(listed(&fixture, both).await, ["c", "a"]);
    assert_eq!(listed(&fixture, RunQuery { statuses: vec![Status::Completed], ..all() }).await, ["c"]);
    for (prefix, found) in
        [("b", &["b"][..]), ("t", &["d", "c", "b", "a"]), ("x", &["e", "c", "a"]), ("%", &[])]
    {
        assert_eq!(
            listed(&fixture, RunQuery { prefix: Some(prefix.into()), ..all() }).await,
            found,
            "{prefix}"
        );
    }
    let created = fixture.log.run(&run("c")).await.expect("a run").created_at;
    let later = Timestamp(created.0 + 60_000);
    assert_eq!(listed(&fixture, RunQuery { since: Some(later), ..all() }).await, [""; 0]);
    assert_eq!(listed(&fixture, RunQuery { until: Some(later), ..all() }).await.len(), 5);
    assert!(listed(&fixture, RunQuery { since: Some(created), ..all() }).await.contains(&"c".to_owned()));
    assert!(!listed(&fixture, RunQuery { until: Some(created), ..all() }).await.contains(&"c".to_owned()));
    assert_eq!(listed(&fixture, RunQuery { limit: usize::MAX, ..all() }).await.len(), 5);
    assert_eq!(listed(&fixture, RunQuery { limit: 0, ..all() }).await, [""; 0]);
    let unknown = RunQuery { tenant: TENANT.into(), before: Some("none".into()), ..all() };
    assert_eq!(fixture.log.runs(unknown).await, Err(LogError::RunUnknown("none".into())));
}

/// Threads are listed like runs.
pub async fn threads_are_listed_newest_first_with_pages(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for id in ["a", "b", "c"] {
        fixture.closed_run(id, &format!("run-{id}"), "x").await;
    }
    fixture.create_run("open", Some("b")).await;
    let ids = |threads: Result<Vec<crate::ThreadInfo>, LogError>| {
        threads.expect("threads").into_iter().map(|thread| thread.thread_id).collect::<Vec<_>>()
    };
    assert_eq!(ids(fixture.log.threads(TENANT, None, usize::MAX).await), ["c", "b", "a"]);
    assert_eq!(ids(fixture.log.threads(TENANT, None, 1).await), ["c"]);
    assert_eq!(ids(fixture.log.threads(TENANT, Some("c"), 1).await), ["b"]);
    let all = fixture.log.threads(TENANT, None, 10).await.expect("threads");
    assert_eq!((all[1].runs, &all[1].open_runs[..], all[1].head), (2, &["open".to_owned()][..], 3));
    let unknown = fixture.log.threads(TENANT, Some("none"), 1).await;
    assert_eq!(unknown, Err(LogError::ThreadUnknown("none".into())));
}

/// The user message comes from the request, or else from the producer's start.
pub async fn lists_contain_the_user_message(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let long = "长".repeat(1000);
    let new = NewRun {
        tenant: TENANT.into(),
        run_id: Some("asked".into()),
        thread_id: Some("t".into()),
        message: Some(long.clone()),
        ..NewRun::default()
    };
    let pending = fixture.log.create_run(new).await.expect("the run").value;
    let shown = pending.summary.message.expect("what was asked");
    assert!(long.starts_with(&shown) && shown.len() <= crate::limits::TITLE_BYTES && shown.len() > 500);
    fixture.write(to_run("asked", &[STARTED, COMPLETED])).await;
    let said = r#"{"type":"run.started","message":"天气怎么样"}"#.to_owned();
    fixture.write(to_run_of("t", "told", &[said])).await;
    fixture.write(to_run("told", &[delta("x")])).await;
    let fixture = fixture.reopen().await;
    let message = async |id| fixture.log.run(&run(id)).await.expect("a run").summary.message;
    assert_eq!(message("asked").await.as_deref(), Some(shown.as_str()));
    assert_eq!(message("told").await.as_deref(), Some("天气怎么样"));
    let found = fixture.log.thread(&thread("t")).await.expect("the thread");
    assert_eq!(found.title.as_deref(), Some(shown.as_str()));
    let latest = found.latest.expect("a run began");
    assert_eq!((latest.run_id.as_str(), latest.status), ("told", Status::Running));
    fixture.write(to_run("told", &[COMPLETED])).await;
    let ended = fixture.log.run(&run("told")).await.expect("a run").ended_at.expect("it ended");
    let latest = fixture.log.thread(&thread("t")).await.expect("the thread").latest.expect("a run began");
    assert_eq!((latest.status, latest.at), (Status::Completed, ended));
}

/// Ranges are returned in the order the runs began; a run without a record has none.
pub async fn spans_are_the_ranges_of_the_runs_of_a_thread(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    fixture.create_run("late", Some("t")).await;
    fixture.create_run("never", Some("t")).await;
    fixture.write(to_run_of("t", "a", &[STARTED])).await;
    fixture.write(to_run("late", &[STARTED, COMPLETED])).await;
    fixture.write(to_run("a", &[delta("x")])).await;
    let spans = fixture.log.spans(&thread("t")).await.expect("the thread");
    let spans: Vec<_> =
        spans.iter().map(|span| (span.run_id.as_str(), span.first_seq, span.last_seq, span.open)).collect();
    assert_eq!(spans, [("a", 1, 4, true), ("late", 2, 3, false)]);
}

/// Messages before a `seq` are returned run by run, also of parallel runs.
pub async fn messages_and_state_are_returned_as_of_any_seq(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    let say =
        |id: &str, text: &str| format!(r#"{{"type":"text.delta","message_id":"{id}","content":"{text}"}}"#);
    fixture.write(to_run_of("t", "a", &[say("ma", "a1")])).await;
    fixture.write(to_run_of("t", "b", &[say("mb", "b1")])).await;
    fixture.write(to_run("a", &[say("ma", "a2")])).await;
    fixture
        .write(to_run("b", &[say("mb", "b2"), r#"{"type":"state.snapshot","state":{"n":1}}"#.into()]))
        .await;
    fixture.write(to_run("a", &[say("ma", "a3")])).await;
    let texts = async |seq: u64| {
        let window = fixture.log.before(&thread("t"), seq).await.expect("the thread");
        let texts = window.messages().into_iter().map(|message| message.content).collect::<Vec<_>>();
        (texts, window.state().is_some())
    };
    assert_eq!(texts(0).await, (vec![], false));
    assert_eq!(texts(1).await, (vec![], false));
    assert_eq!(texts(2).await, (vec!["a1".to_owned()], false));
    assert_eq!(texts(5).await, (vec!["a1a2".to_owned(), "b1b2".to_owned()], false));
    assert_eq!(texts(u64::MAX).await, (vec!["a1a2a3".to_owned(), "b1b2".to_owned()], true));
}

/// The same ids in two tenants are different threads and runs.
pub async fn tenants_see_nothing_of_each_other(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("t", "r", "mine").await;
    let theirs = |frames: &[&str]| Append {
        target: Target::Run(RunKey::new("theirs", "r")),
        ..to_run_of("t", "", frames)
    };
    fixture.write(theirs(&[STARTED])).await;
    let new = NewThread { tenant: "third".into(), thread_id: Some("t".into()), parallel: true };
    assert!(fixture.log.create_thread(new).await.expect("the thread").new);
    let fixture = fixture.reopen().await;
    fixture.write(theirs(&[COMPLETED])).await;
    assert_eq!(fixture.records("t").await.len(), 3);
    let page = fixture.log.read(&ThreadKey::new("theirs", "t"), 0).await.expect("a page");
    assert_eq!(page.records.len(), 2);
    assert_eq!(fixture.log.threads("theirs", None, 10).await.expect("threads").len(), 1);
    let query = RunQuery { tenant: "theirs".into(), limit: 10, ..RunQuery::default() };
    assert_eq!(fixture.log.runs(query).await.expect("runs").len(), 1);
    assert_eq!(fixture.log.run(&RunKey::new("third", "r")).await, Err(LogError::RunUnknown("r".into())));
    let tail = fixture.log.tail(&thread("t"));
    fixture.log.delete_thread(&ThreadKey::new("theirs", "t"), false).await.expect("deleted");
    assert!(!tail.head().deleted);
    assert_eq!(fixture.log.run(&run("r")).await.expect("mine").last_seq, 3);
}
