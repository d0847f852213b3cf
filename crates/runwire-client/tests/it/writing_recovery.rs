//! What goes wrong between an engine and its server costs no event, and repeats none.

use std::time::Duration;

use runwire_client::Error;
use runwire_client::model::{Body, Event};
use runwire_client::write::{
    Connection, EmitError, Failure, Format, Question, Sent, SessionStatus, Signal, StreamingEngine, WhenFull,
};

use crate::writing_stage::{Lossy, Stage, client_of, patient, until};

fn text_of(events: &[Event]) -> String {
    let piece = |event: &Event| match &event.body {
        Body::TextDelta(delta) => Some(delta.content.clone()),
        _ => None,
    };
    events.iter().filter_map(piece).collect()
}

fn numbers(count: usize) -> String {
    (0..count).map(|number| format!("{number};")).collect()
}

async fn say(engine: &StreamingEngine, number: usize) -> Sent {
    patient(engine.emit_content(format!("{number};"), Format::Text, false)).await.unwrap()
}

async fn end(engine: &StreamingEngine) {
    patient(engine.emit_session_end(SessionStatus::Completed, None)).await.unwrap();
    patient(engine.close()).await.unwrap();
}

#[tokio::test]
async fn lost_acknowledgements_cost_no_event_and_repeat_none() {
    let stage = Stage::start().await;
    let lossy = Lossy::to(stage.address).await;
    for window in [1, 64] {
        let run = format!("r{window}");
        let engine = stage.builder(&run).window(window).server(&client_of(lossy.address)).unwrap();
        for number in 0..60 {
            if number % 7 == 0 {
                lossy.lose(1 + number % 3);
            }
            say(&engine, number).await;
        }
        end(&engine).await;
        assert_eq!(stage.text(&run).await, numbers(60));
    }
    assert!(lossy.lost() > 10, "{}", lossy.lost());
}

#[tokio::test]
async fn a_killed_and_restarted_server_costs_no_event_and_repeats_none() {
    let mut stage = Stage::start().await;
    let engine = stage.engine("r1");
    let mut said = 0;
    for _ in 0..4 {
        for _ in 0..50 {
            say(&engine, said).await;
            said += 1;
        }
        // Whatever is under way now may or may not be written, and nobody will say which.
        stage.kill();
        for _ in 0..50 {
            say(&engine, said).await;
            said += 1;
        }
        until(|| matches!(engine.state().connection, Connection::Retrying { .. })).await;
        let state = engine.state();
        assert!(state.buffered >= 50 && state.buffered_bytes > 0, "{state:?}");
        stage.restart().await;
        patient(engine.flush()).await.unwrap();
        assert!(matches!(engine.state().connection, Connection::Connected));
    }
    end(&engine).await;
    let state = engine.state();
    assert_eq!((state.emitted, state.acknowledged, state.buffered), (401, 401, 0));
    let events = stage.events("r1").await;
    assert_eq!(text_of(&events), numbers(400));
    assert!(matches!(events.last().unwrap().body, Body::RunCompleted(_)));
}

#[tokio::test]
async fn the_buffer_takes_no_more_than_its_limit_and_the_engine_waits_or_says_so() {
    let mut stage = Stage::start().await;
    let build = |run: &str| stage.builder(run).window(4).buffer(10, 1 << 20);
    let refusing = build("r1").when_full(WhenFull::Refuse).server(&stage.client()).unwrap();
    let waiting = build("r2").server(&stage.client()).unwrap();
    let heavy = stage.builder("r3").buffer(100, 4096).when_full(WhenFull::Refuse);
    let heavy = heavy.server(&stage.client()).unwrap();
    for engine in [&refusing, &waiting, &heavy] {
        say(engine, 0).await;
        patient(engine.flush()).await.unwrap();
    }
    stage.kill();
    for engine in [&refusing, &waiting, &heavy] {
        say(engine, 1).await;
        until(|| matches!(engine.state().connection, Connection::Retrying { .. })).await;
    }
    for number in 2..11 {
        say(&refusing, number).await;
        say(&waiting, number).await;
    }
    let full = refusing.emit_content("11;", Format::Text, false).await;
    assert!(matches!(full, Err(EmitError::Full { events: 10 })), "{full:?}");
    let full = heavy.emit_content("x".repeat(5000), Format::Text, false).await;
    full.unwrap();
    let full = heavy.emit_content("y", Format::Text, false).await;
    assert!(matches!(full, Err(EmitError::Full { events: 2 })), "{full:?}");

    let mut blocked = Box::pin(waiting.emit_content("11;", Format::Text, false));
    assert!(futures_util::poll!(&mut blocked).is_pending());
    stage.restart().await;
    patient(blocked).await.unwrap();
    patient(refusing.flush()).await.unwrap();
    say(&refusing, 11).await;
    for (engine, run) in [(&refusing, "r1"), (&waiting, "r2")] {
        end(engine).await;
        assert_eq!(stage.text(run).await, numbers(12));
    }
}

#[tokio::test]
async fn with_a_window_of_one_each_event_is_written_when_emit_returns() {
    let stage = Stage::start().await;
    let engine = stage.builder("r1").window(1).server(&stage.client()).unwrap();
    for number in 0..10 {
        say(&engine, number).await;
        let state = engine.state();
        assert_eq!((state.acknowledged, state.buffered), (number as u64 + 1, 0));
        assert_eq!(stage.text("r1").await, numbers(number + 1));
    }
    assert_eq!(engine.state().last_seq, Some(10));
}

#[tokio::test]
async fn clones_write_side_by_side_and_every_event_once() {
    let stage = Stage::start().await;
    let engine = stage.builder("r1").window(8).server(&stage.client()).unwrap();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let engine = engine.clone();
            tokio::spawn(async move {
                for number in 0..50 {
                    let name = format!("{writer}-{number}");
                    patient(engine.emit_custom(name, serde_json::json!(null))).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        patient(writer).await.unwrap();
    }
    end(&engine).await;
    let mut next = [0; 8];
    for event in stage.events("r1").await {
        let Body::Custom(custom) = event.body else { continue };
        let name = custom.name.unwrap();
        let (writer, number) = name.split_once('-').unwrap();
        let next = &mut next[writer.parse::<usize>().unwrap()];
        assert_eq!(number.parse::<usize>().unwrap(), *next);
        *next += 1;
    }
    assert_eq!(next, [50; 8]);
}

#[tokio::test]
async fn a_resumed_engine_goes_on_and_the_zombie_is_told() {
    let stage = Stage::start().await;
    let client = stage.client();
    let zombie = stage.builder("r1").resume(&client, "agent-7").await.unwrap();
    say(&zombie, 0).await;
    say(&zombie, 1).await;
    patient(zombie.flush()).await.unwrap();

    let heir = stage.builder("r1").resume(&client, "agent-7").await.unwrap();
    assert_eq!(say(&heir, 2).await.sequence(), 2);
    patient(heir.flush()).await.unwrap();

    let sent = patient(zombie.emit_content("ghost", Format::Text, false)).await.unwrap();
    let told = patient(sent.acknowledged()).await.unwrap_err();
    assert!(
        matches!(&told, Failure::Fenced(problem) if problem.code() == Some("producer_fenced")),
        "{told:?}"
    );
    let after = zombie.emit_content("ghost", Format::Text, false).await;
    assert!(matches!(after, Err(EmitError::Failed(Failure::Fenced(_)))), "{after:?}");
    assert!(matches!(zombie.state().connection, Connection::Failed(Failure::Fenced(_))));
    assert!(patient(zombie.close()).await.is_err());

    end(&heir).await;
    assert_eq!(stage.text("r1").await, numbers(3));
}

#[tokio::test]
async fn a_refused_event_stops_the_engine_and_what_came_before_is_acknowledged() {
    let stage = Stage::start().await;
    let client = stage.client();
    let engine = stage.engine("r1");
    say(&engine, 0).await;
    patient(engine.flush()).await.unwrap();
    // Another producer fills the run up, which this one cannot know.
    let other = stage.engine("r1");
    for _ in 0..8 {
        patient(other.emit_content("x".repeat(1_040_000), Format::Text, false)).await.unwrap();
    }
    patient(other.close()).await.unwrap();
    let before = patient(engine.emit_custom("small", serde_json::json!(1))).await.unwrap();
    let refused = patient(engine.emit_content("x".repeat(600_000), Format::Text, false)).await.unwrap();
    let after = engine.emit_custom("after", serde_json::json!(1)).await;
    patient(before.acknowledged()).await.unwrap();
    let failure = patient(refused.acknowledged()).await.unwrap_err();
    assert_eq!(failure.problem().unwrap().code(), Some("too_large"));
    assert_eq!(failure.problem().unwrap().status(), 422);
    if let Ok(after) = after {
        assert!(patient(after.acknowledged()).await.is_err());
    }
    let state = engine.state();
    assert_eq!(state.acknowledged, 2);
    assert!(matches!(state.connection, Connection::Failed(Failure::Refused(_))));
    assert!(matches!(engine.emit_status("x").await, Err(EmitError::Failed(_))));
    let events = stage.events("r1").await;
    assert!(
        matches!(&events.last().unwrap().body, Body::Custom(custom) if custom.name.as_deref() == Some("small"))
    );

    // A run that was closed by somebody else.
    client.run("r1").cancel(None).await.unwrap();
    let third = stage.engine("r2");
    patient(third.emit_question(Question::approval("q"))).await.unwrap();
    patient(third.flush()).await.unwrap();
    client.run("r2").cancel(None).await.unwrap();
    let sent = patient(third.emit_status("late")).await.unwrap();
    let failure = patient(sent.acknowledged()).await.unwrap_err();
    assert_eq!(failure.problem().unwrap().code(), Some("run_closed"));
}

#[tokio::test]
async fn a_server_that_does_not_come_back_is_given_up_when_patience_is_over() {
    let mut stage = Stage::start().await;
    let client = stage.client();
    let engine = StreamingEngine::builder("r1").patience(Duration::from_millis(200)).server(&client).unwrap();
    say(&engine, 0).await;
    patient(engine.flush()).await.unwrap();
    stage.kill();
    let sent = say(&engine, 1).await;
    let failure = patient(sent.acknowledged()).await.unwrap_err();
    assert!(matches!(&failure, Failure::GaveUp { attempts: 2.., .. }), "{failure:?}");
    assert!(patient(engine.flush()).await.is_err());
}

#[tokio::test]
async fn an_engine_that_is_dropped_still_writes_what_was_emitted() {
    let stage = Stage::start().await;
    let engine = stage.engine("r1");
    let mut last = None;
    for number in 0..20 {
        last = Some(say(&engine, number).await);
    }
    drop(engine);
    patient(last.unwrap().acknowledged()).await.unwrap();
    assert_eq!(stage.text("r1").await, numbers(20));
    // The run was not ended, so it stays open for a resumed engine, or until its lease runs out.
    assert!(stage.events("r1").await.iter().all(|event| !event.body.is_terminal()));
}

#[tokio::test]
async fn an_engine_that_is_dropped_while_nobody_answers_lets_go() {
    let mut stage = Stage::start().await;
    let engine = stage.builder("r1").linger(Duration::from_millis(50)).server(&stage.client()).unwrap();
    say(&engine, 0).await;
    patient(engine.flush()).await.unwrap();
    stage.kill();
    let sent = say(&engine, 1).await;
    drop(engine);
    let failure = patient(sent.acknowledged()).await.unwrap_err();
    assert!(matches!(failure, Failure::Stopped), "{failure:?}");
}

#[tokio::test]
async fn heartbeats_keep_a_silent_run_and_tell_of_a_cancel() {
    let stage = Stage::with_lease(Duration::from_millis(1500)).await;
    let client = stage.client();
    let silent = stage.engine("r0");
    let engine = stage.builder("r1").heartbeat(Duration::from_millis(100)).server(&client).unwrap();
    say(&silent, 0).await;
    say(&engine, 0).await;
    patient(silent.flush()).await.unwrap();
    patient(engine.flush()).await.unwrap();
    // The run whose engine is silent for longer than its lease shows when the other one would have been lost.
    patient(async {
        while client.run("r0").info().await.unwrap().ended_at.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(client.run("r1").info().await.unwrap().ended_at.is_none());
    assert!(!engine.is_cancel_requested());
    client.run("r1").cancel(None).await.unwrap();
    until(|| engine.is_cancel_requested()).await;
    patient(engine.emit_session_end(SessionStatus::Cancelled, None)).await.unwrap();
    patient(engine.close()).await.unwrap();
}

#[tokio::test]
async fn a_heartbeat_tells_that_somebody_else_has_ended_the_run() {
    let stage = Stage::start().await;
    let client = stage.client();
    let engine = stage.builder("r1").heartbeat(Duration::from_millis(50)).server(&client).unwrap();
    patient(engine.emit_question(Question::approval("q"))).await.unwrap();
    patient(engine.flush()).await.unwrap();
    client.run("r1").cancel(None).await.unwrap();
    until(|| matches!(engine.state().connection, Connection::Failed(_))).await;
    assert!(engine.is_cancel_requested());
    let late = engine.emit_status("late").await;
    let Err(EmitError::Failed(Failure::RunClosed { status })) = late else { panic!("{late:?}") };
    assert_eq!(status, "cancelled");
}

#[tokio::test]
async fn a_restarted_server_costs_no_signal_and_repeats_none() {
    let mut stage = Stage::start().await;
    let engine = stage.engine("r1");
    let mut signals = engine.signals();
    patient(engine.emit_question(Question::approval("before"))).await.unwrap();
    patient(engine.emit_question_withdrawn("before", None)).await.unwrap();
    let told = |signal: Option<Result<Signal, Error>>| match signal.unwrap().unwrap() {
        Signal::Answer { interaction_id, .. } => interaction_id,
        other => panic!("{other:?}"),
    };
    assert_eq!(told(patient(signals.next()).await), "before");
    stage.kill();
    patient(engine.emit_question(Question::approval("after"))).await.unwrap();
    patient(engine.emit_question_withdrawn("after", None)).await.unwrap();
    // One that begins to listen while nobody answers hears everything, too.
    let mut late = engine.signals();
    let mut listening = Box::pin(late.next());
    assert!(futures_util::poll!(&mut listening).is_pending());
    until(|| matches!(engine.state().connection, Connection::Retrying { .. })).await;
    stage.restart().await;
    assert_eq!(told(patient(signals.next()).await), "after");
    assert_eq!(told(patient(listening).await), "before");
    assert_eq!(told(patient(late.next()).await), "after");
    stage.client().run("r1").cancel(Some("enough")).await.unwrap();
    for signals in [&mut signals, &mut late] {
        let cancel = patient(signals.next()).await.unwrap().unwrap();
        assert_eq!(cancel, Signal::Cancel { reason: Some("enough".into()), by: None });
    }
    end(&engine).await;
    assert!(patient(signals.next()).await.is_none());
}

#[tokio::test]
async fn an_agent_that_never_falls_silent_hears_of_a_cancel_too() {
    let stage = Stage::with_lease(Duration::from_secs(60)).await;
    let client = stage.client();
    let engine = stage.builder("r1").heartbeat(Duration::from_millis(50)).server(&client).unwrap();
    say(&engine, 0).await;
    patient(engine.flush()).await.unwrap();
    client.run("r1").cancel(None).await.unwrap();
    patient(async {
        let mut number = 1;
        while !engine.is_cancel_requested() {
            say(&engine, number).await;
            number += 1;
        }
    })
    .await;
    patient(engine.emit_session_end(SessionStatus::Cancelled, None)).await.unwrap();
    patient(engine.close()).await.unwrap();
}
