//! The life cycle of a run: created, written, cancelled, closed.

use runwire_model::event::Body;
use runwire_model::fold::MessageState;
use runwire_model::record::EventOrigin;
use runwire_model::{ErrorCode, Json};

use super::fixture::{COMPLETED, Fixture, STARTED, TENANT, delta, run, thread, to_run, to_run_of};
use super::{Bed, Timing};
use crate::append::Append;
use crate::error::LogError;
use crate::info::{NewRun, RunQuery};
use crate::{Cancel, Cancelled};

const ASKS: &str =
    r#"{"type":"interaction.requested","interaction_id":"q","kind":"approval","title":"May I?"}"#;

fn new(id: &str, message: &str) -> NewRun {
    NewRun {
        tenant: TENANT.into(),
        run_id: Some(id.into()),
        agent: Some("demo".into()),
        message: Some(message.into()),
        input: Json::parse(r#"{"n": 1.50, "s": "x"}"#).ok(),
        ..NewRun::default()
    }
}

/// The same request is the same run; another one under its id is refused.
pub async fn creating_a_run_twice_in_the_same_words_gives_it_again(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let first = fixture.log.create_run(new("r", "hi")).await.expect("the run");
    assert!(first.new);
    assert_eq!((first.value.status.as_str(), first.value.first_seq), ("pending", None));
    let fixture = fixture.reopen().await;
    let reordered = NewRun { input: Json::parse(r#"{"s":"x","n":1.5}"#).ok(), ..new("r", "hi") };
    for again in [new("r", "hi"), reordered] {
        let again = fixture.log.create_run(again).await.expect("the run");
        assert_eq!((again.new, &again.value), (false, &first.value));
    }
    for other in [
        new("r", "ho"),
        NewRun { agent: None, ..new("r", "hi") },
        NewRun { thread_id: Some("t".into()), ..new("r", "hi") },
        NewRun { input: None, ..new("r", "hi") },
    ] {
        assert_eq!(fixture.log.create_run(other).await, Err(LogError::RunExists("r".into())));
    }
    fixture.write(to_run("r", &[STARTED, COMPLETED])).await;
    let closed = fixture.log.create_run(new("r", "hi")).await.expect("the run");
    assert_eq!((closed.new, closed.value.status.as_str()), (false, "completed"));
    // A run that frames have made was made in no words at all.
    fixture.write(to_run("s", &[STARTED])).await;
    assert_eq!(fixture.log.create_run(new("s", "hi")).await, Err(LogError::RunExists("s".into())));
    let minted = fixture.log.create_run(NewRun { run_id: None, ..new("", "hi") }).await.expect("a run");
    assert!(minted.new && !minted.value.run_id.is_empty());
}

/// A repeated attempt reports the run that it has created as new; another request does not.
pub async fn a_repeated_attempt_reports_its_run_as_new(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    let attempt = |name: &str| NewRun { attempt: Some(name.into()), ..new("r", "hi") };
    assert!(fixture.log.create_run(attempt("one")).await.expect("the run").new);
    for _ in 0..2 {
        for (asked, is_new) in [(attempt("one"), true), (attempt("two"), false), (new("r", "hi"), false)] {
            assert_eq!(fixture.log.create_run(asked).await.expect("the run").new, is_new);
        }
        fixture = fixture.reopen().await;
    }
    // Without a name none is that of another.
    fixture.log.create_run(new("s", "hi")).await.expect("the run");
    assert!(!fixture.log.create_run(new("s", "hi")).await.expect("the run").new);
}

/// Agent, message and input of the request stand in `run.started`, whatever the producer's says.
pub async fn the_request_of_a_run_wins_over_its_producer(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    for (id, first) in [
        ("said", r#"{"type":"run.started","message":"else","agent":"x","input":[1],"parent_run_id":"p"}"#),
        ("unsaid", r#"{"type":"text.delta","message_id":"m","content":"x"}"#),
    ] {
        fixture.log.create_run(new(id, "hi")).await.expect("the run");
        fixture.write(to_run(id, &[first])).await;
        let records = fixture.records(id).await;
        let Body::RunStarted(started) = &records[0].record.entries[0].event.body else { panic!("a start") };
        assert_eq!(started.message.as_deref(), Some("hi"));
        // Who speaks is the producer's to say.
        assert_eq!(started.agent.as_deref(), Some(if id == "said" { "x" } else { "demo" }));
        assert_eq!(started.input.as_ref().map(Json::text), Some(r#"{"n": 1.50, "s": "x"}"#));
        assert_eq!(started.parent_run_id.as_deref(), (id == "said").then_some("p"));
        assert_eq!(fixture.info(id).await.agent.as_deref(), Some("demo"));
    }
}

/// The agent that a producer names is the run's where none was asked for.
pub async fn a_run_takes_the_agent_that_its_producer_names(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_run("created", None).await;
    let started = r#"{"type":"run.started","agent":"react"}"#;
    for id in ["created", "pushed"] {
        fixture.write(to_run(id, &[started])).await;
    }
    let fixture = fixture.reopen().await;
    for id in ["created", "pushed"] {
        assert_eq!(fixture.info(id).await.agent.as_deref(), Some("react"), "{id}");
    }
    let query =
        RunQuery { tenant: TENANT.into(), agent: Some("react".into()), limit: 10, ..RunQuery::default() };
    let listed = fixture.log.runs(query).await.expect("a list");
    assert_eq!(listed.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["pushed", "created"]);
    // Asking for the run again in the same words still gives it.
    fixture.create_run("created", None).await;
}

/// The thread of a run that names none has its id, or a new one where that is taken.
pub async fn a_run_without_a_thread_gets_one_of_its_own(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED])).await;
    fixture.create_run("s", None).await;
    assert_eq!(
        (fixture.info("r").await.thread_id, fixture.info("s").await.thread_id),
        ("r".into(), "s".into())
    );
    fixture.closed_run("taken", "x", "x").await;
    fixture.write(to_run("taken", &[STARTED])).await;
    let minted = fixture.info("taken").await.thread_id;
    assert!(minted != "taken" && !minted.is_empty());
    assert_eq!(fixture.records(&minted).await.len(), 1);
}

/// `end` closes what no frame has closed; a fatal notice makes it a failure.
pub async fn end_completes_a_run_that_no_frame_has_ended(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let end = |append: Append| Append { end: true, ..append };
    fixture.write(end(to_run("r", &[STARTED, &delta("a")]))).await;
    assert_eq!(fixture.types("r").await[3..], ["text.finished", "run.completed"]);
    let notice = r#"{"type":"notice","level":"error","code":"E1","message":"it broke","fatal":true}"#;
    fixture.write(to_run("failed", &[STARTED, notice])).await;
    let fixture = fixture.reopen().await;
    fixture.write(end(to_run("failed", &[""; 0]))).await;
    let info = fixture.info("failed").await;
    assert_eq!(info.status.as_str(), "failed");
    assert_eq!(info.summary.error.map(|error| error.message), Some("it broke".into()));
    // The end of what has ended is no second end.
    fixture.write(end(to_run("ended", &[STARTED, COMPLETED]))).await;
    fixture.write(end(to_run("ended", &[""; 0]))).await;
    assert_eq!(fixture.records("ended").await.len(), 2);
}

/// After the terminal event nothing is written any more.
pub async fn a_closed_run_takes_no_frame(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let appended =
        fixture.log.append(to_run("r", &[STARTED, COMPLETED, &delta("late")])).await.expect("an answer");
    let fault = appended.fault.expect("a fault");
    assert_eq!((appended.accepted, fault.index, fault.problem.code()), (2, 2, ErrorCode::RunClosed));
    let fixture = fixture.reopen().await;
    let appended = fixture.log.append(to_run("r", &[COMPLETED])).await.expect("an answer");
    assert_eq!(appended.fault.expect("a fault").problem.code(), ErrorCode::RunClosed);
    let records = fixture.records("r").await;
    assert!(records.len() == 2 && records[1].is_terminal());
}

/// Answers and cancel requests from a producer are kept as foreign.
pub async fn producers_cannot_forge_what_belongs_to_people(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let forged = r#"{"type":"interaction.resolved","interaction_id":"q","decision":"approved"}"#;
    fixture.write(to_run("r", &[STARTED, ASKS, forged, r#"{"type":"run.cancel_requested"}"#])).await;
    assert_eq!(fixture.types("r").await[3..], ["foreign", "foreign"]);
    let info = fixture.info("r").await;
    assert_eq!((info.status.as_str(), info.summary.cancel_requested), ("suspended", false));
    // It may take its own question back.
    let withdrawn = r#"{"type":"interaction.resolved","interaction_id":"q","decision":"cancelled"}"#;
    fixture.write(to_run("r", &[withdrawn])).await;
    let info = fixture.info("r").await;
    assert_eq!((info.status.as_str(), &*info.summary.interactions[0].status), ("running", "cancelled"));
}

/// A run without records has no producer to ask: its first record is the server's.
pub async fn a_cancelled_pending_run_is_closed_at_once(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.log.create_run(new("r", "hi")).await.expect("the run");
    let cancel = Cancel { reason: Some("changed my mind".into()), by: Some("li".into()) };
    let Cancelled { run: info, new } = fixture.log.cancel(&run("r"), cancel).await.expect("the run");
    assert!(new);
    assert_eq!((info.status.as_str(), info.last_seq), ("cancelled", 1));
    let records = fixture.records("r").await;
    assert_eq!(records[0].frame, None);
    let entries = &records[0].record.entries;
    assert_eq!(super::fixture::types_of(&records[0]), ["run.started", "run.cancelled"]);
    assert_eq!((entries[0].origin, entries[1].origin), (EventOrigin::Guard, EventOrigin::Server));
    let Body::RunStarted(started) = &entries[0].event.body else { panic!("a start") };
    assert_eq!(started.message.as_deref(), Some("hi"));
    let Body::RunCancelled(cancelled) = &entries[1].event.body else { panic!("an end") };
    assert_eq!(cancelled.reason.as_deref(), Some("changed my mind"));
    assert_eq!(
        fixture.log.cancel(&run("none"), Cancel::default()).await,
        Err(LogError::RunUnknown("none".into()))
    );
}

/// A producer at work is asked to stop, once; if it does not, the server ends the run.
pub async fn a_cancelled_running_run_is_asked_first(bed: &dyn Bed) {
    let timing = Timing { cancel_grace: std::time::Duration::from_millis(50), ..Timing::default() };
    let fixture = Fixture::with(bed, timing).await;
    fixture.write(to_run("r", &[STARTED, &delta("a")])).await;
    fixture.write(to_run("obeys", &[STARTED, &delta("a")])).await;
    for (id, is_first) in [("r", true), ("obeys", true), ("r", false)] {
        let Cancelled { run: info, new } =
            fixture.log.cancel(&run(id), Cancel::default()).await.expect("the run");
        assert_eq!(new, is_first);
        assert!(info.summary.cancel_requested);
        assert_eq!((info.status.as_str(), info.last_seq), ("running", 3));
    }
    assert!(fixture.log.heartbeat(&run("r")).await.expect("the run").summary.cancel_requested);
    fixture.write(to_run("obeys", &[r#"{"type":"run.cancelled","reason":"as asked"}"#])).await;
    fixture.write(to_run("r", &[delta("still here")])).await;
    fixture.sweep_until("r", "cancelled").await;
    assert_eq!(fixture.records("obeys").await.len(), 4);
    assert_eq!(
        fixture.types("r").await[3..],
        ["run.cancel_requested", "text.delta", "text.finished", "run.cancelled"]
    );
}

/// A suspended run ends at once, and its interaction with it.
pub async fn a_cancelled_suspended_run_is_closed_at_once(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.write(to_run("r", &[STARTED, ASKS])).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.status("r").await, "suspended");
    let info = fixture.log.cancel(&run("r"), Cancel::default()).await.expect("the run").run;
    assert_eq!(info.status.as_str(), "cancelled");
    assert_eq!(&*info.summary.interactions[0].status, "cancelled");
    assert_eq!(fixture.types("r").await[3..], ["interaction.resolved", "run.cancelled"]);
}

/// Cancelling a closed run returns how it ended.
pub async fn cancelling_a_closed_run_returns_it_unchanged(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("t", "r", "x").await;
    let before = fixture.info("r").await;
    let cancelled = fixture.log.cancel(&run("r"), Cancel::default()).await;
    assert_eq!(cancelled, Ok(Cancelled { run: before.clone(), new: false }));
    assert_eq!(fixture.log.heartbeat(&run("r")).await, Ok(before));
    assert_eq!(fixture.log.thread(&thread("t")).await.expect("the thread").head, 3);
}

/// What the run's row counts is what its records hold.
pub async fn a_summary_counts_what_the_fold_counts(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let frames = [
        STARTED,
        r#"{"type":"step.started","name":"think"}"#,
        &delta("a"),
        r#"{"type":"usage","prompt_tokens":10,"completion_tokens":5,"total_tokens":15}"#,
        r#"{"type":"tool.called","call_id":"c","name":"f","arguments":{}}"#,
        ASKS,
        r#"{"type":"interaction.resolved","interaction_id":"q","decision":"cancelled"}"#,
        r#"{"type":"usage","prompt_tokens":1,"completion_tokens":2,"total_tokens":3}"#,
        r#"{"type":"run.failed","error":{"code":"E","message":"no"},"summary":{"total_tokens":99}}"#,
    ];
    fixture.write(to_run_of("t", "r", &frames[..4])).await;
    let fixture = fixture.reopen().await;
    fixture.write(to_run("r", &frames[4..])).await;
    fixture
        .write(to_run("totals", &[STARTED, r#"{"type":"run.completed","summary":{"total_tokens":7}}"#]))
        .await;
    for (id, in_thread) in [("r", "t"), ("totals", "totals")] {
        let mut message = MessageState::new(id);
        let records = fixture.records(in_thread).await;
        records.iter().for_each(|record| message.apply_record(&record.record));
        let summary = fixture.info(id).await.summary;
        assert_eq!(summary.records, records.len() as u64);
        let events: usize = records.iter().map(|record| record.record.entries.len()).sum();
        assert_eq!(summary.events, events as u64);
        assert_eq!(summary.tool_calls, message.tool_calls.len() as u64);
        assert_eq!(summary.steps, message.steps.len() as u64);
        let usage = message.usage.expect("tokens");
        let counted = (summary.prompt_tokens, summary.completion_tokens, summary.total_tokens);
        assert_eq!(counted, (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens));
        assert_eq!(summary.error.map(|error| error.message), message.error_message);
        let asked: Vec<_> = summary.interactions.iter().map(|asked| asked.status.as_str()).collect();
        assert_eq!(asked, message.interactions.iter().map(|asked| asked.status).collect::<Vec<_>>());
    }
}
