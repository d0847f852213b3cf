//! An engine loses and repeats no event when its server restarts or its connections break.

use std::time::Duration;

use runwire_client::model::{Body, Event};
use runwire_client::write::{
    ConnectionState, EmitError, EngineFailure, Format, InteractionRequest, PendingAck, SessionStatus, Signal,
    StreamingEngine, WhenFull,
};
use runwire_client::{Error, RunStatus};
use runwire_model::ErrorCode;

use crate::test_server::{LossyProxy, TestServer, client_of, until, within_timeout};

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

async fn say(engine: &StreamingEngine, number: usize) -> PendingAck {
    within_timeout(engine.emit_content(format!("{number};"), Format::Text, false)).await.unwrap()
}

async fn end(engine: &StreamingEngine) {
    within_timeout(engine.emit_session_end(SessionStatus::Completed, None)).await.unwrap();
    within_timeout(engine.close()).await.unwrap();
}

#[tokio::test]
async fn lost_acknowledgements_cost_no_event_and_repeat_none() {
    let server = TestServer::start().await;
    let proxy = LossyProxy::to(server.address).await;
    for window in [1, 64] {
        let run = format!("r{window}");
        let engine = server.builder(&run).window(window).server(&client_of(proxy.address)).unwrap();
        for number in 0..60 {
            if number % 7 == 0 {
                proxy.lose(1 + number % 3);
            }
            say(&engine, number).await;
        }
        end(&engine).await;
        assert_eq!(server.text(&run).await, numbers(60));
    }
    assert!(proxy.lost() > 10, "{}", proxy.lost());
}

#[tokio::test]
async fn a_killed_and_restarted_server_costs_no_event_and_repeats_none() {
    let mut server = TestServer::start().await;
    let engine = server.engine("r1");
    let mut said = 0;
    for _ in 0..4 {
        for _ in 0..50 {
            say(&engine, said).await;
            said += 1;
        }
        // The outcome of the batch in flight is unknown.
        server.kill();
        for _ in 0..50 {
            say(&engine, said).await;
            said += 1;
        }
        until(|| matches!(engine.state().connection, ConnectionState::Retrying { .. })).await;
        let state = engine.state();
        assert!(state.buffered >= 50 && state.buffered_bytes > 0, "{state:?}");
        server.restart().await;
        within_timeout(engine.flush()).await.unwrap();
        assert!(matches!(engine.state().connection, ConnectionState::Connected));
    }
    end(&engine).await;
    let state = engine.state();
    assert_eq!((state.emitted, state.acknowledged, state.buffered), (401, 401, 0));
    let events = server.events("r1").await;
    assert_eq!(text_of(&events), numbers(400));
    assert!(matches!(events.last().unwrap().body, Body::RunCompleted(_)));
}

#[tokio::test]
async fn a_full_buffer_makes_emit_wait_or_refuse() {
    let mut server = TestServer::start().await;
    let build = |run: &str| server.builder(run).window(4).buffer(10, 1 << 20);
    let refusing = build("r1").when_full(WhenFull::Refuse).server(&server.client()).unwrap();
    let waiting = build("r2").server(&server.client()).unwrap();
    let heavy = server.builder("r3").buffer(100, 4096).when_full(WhenFull::Refuse);
    let heavy = heavy.server(&server.client()).unwrap();
    for engine in [&refusing, &waiting, &heavy] {
        say(engine, 0).await;
        within_timeout(engine.flush()).await.unwrap();
    }
    server.kill();
    for engine in [&refusing, &waiting, &heavy] {
        say(engine, 1).await;
        until(|| matches!(engine.state().connection, ConnectionState::Retrying { .. })).await;
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
    server.restart().await;
    within_timeout(blocked).await.unwrap();
    within_timeout(refusing.flush()).await.unwrap();
    say(&refusing, 11).await;
    for (engine, run) in [(&refusing, "r1"), (&waiting, "r2")] {
        end(engine).await;
        assert_eq!(server.text(run).await, numbers(12));
    }
}

#[tokio::test]
async fn with_a_window_of_one_each_event_is_written_when_emit_returns() {
    let server = TestServer::start().await;
    let engine = server.builder("r1").window(1).server(&server.client()).unwrap();
    for number in 0..10 {
        say(&engine, number).await;
        let state = engine.state();
        assert_eq!((state.acknowledged, state.buffered), (number as u64 + 1, 0));
        assert_eq!(server.text("r1").await, numbers(number + 1));
    }
    assert_eq!(engine.state().last_seq, Some(10));
}

#[tokio::test]
async fn clones_write_concurrently_and_each_event_once() {
    let server = TestServer::start().await;
    let engine = server.builder("r1").window(8).server(&server.client()).unwrap();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let engine = engine.clone();
            tokio::spawn(async move {
                for number in 0..50 {
                    let name = format!("{writer}-{number}");
                    within_timeout(engine.emit_custom(name, serde_json::json!(null))).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        within_timeout(writer).await.unwrap();
    }
    end(&engine).await;
    let mut next = [0; 8];
    for event in server.events("r1").await {
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
async fn a_resumed_engine_continues_and_its_predecessor_is_fenced() {
    let server = TestServer::start().await;
    let client = server.client();
    let zombie = server.builder("r1").resume(&client, "agent-7").await.unwrap();
    say(&zombie, 0).await;
    say(&zombie, 1).await;
    within_timeout(zombie.flush()).await.unwrap();

    let heir = server.builder("r1").resume(&client, "agent-7").await.unwrap();
    assert_eq!(say(&heir, 2).await.sequence(), 2);
    within_timeout(heir.flush()).await.unwrap();

    let sent = within_timeout(zombie.emit_content("ghost", Format::Text, false)).await.unwrap();
    let fenced = within_timeout(sent.acknowledged()).await.unwrap_err();
    assert!(
        matches!(&fenced, EngineFailure::Fenced(problem) if problem.code() == Some(ErrorCode::ProducerFenced)),
        "{fenced:?}"
    );
    let after = zombie.emit_content("ghost", Format::Text, false).await;
    assert!(matches!(after, Err(EmitError::Failed(EngineFailure::Fenced(_)))), "{after:?}");
    assert!(matches!(zombie.state().connection, ConnectionState::Failed(EngineFailure::Fenced(_))));
    assert!(within_timeout(zombie.close()).await.is_err());

    end(&heir).await;
    assert_eq!(server.text("r1").await, numbers(3));
}

#[tokio::test]
async fn a_refused_event_stops_the_engine_and_what_came_before_is_acknowledged() {
    let server = TestServer::start().await;
    let client = server.client();
    let engine = server.engine("r1");
    say(&engine, 0).await;
    within_timeout(engine.flush()).await.unwrap();
    // Another producer fills the run up to its limit.
    let other = server.engine("r1");
    for _ in 0..8 {
        within_timeout(other.emit_content("x".repeat(1_040_000), Format::Text, false)).await.unwrap();
    }
    within_timeout(other.close()).await.unwrap();
    let before = within_timeout(engine.emit_custom("small", serde_json::json!(1))).await.unwrap();
    let refused =
        within_timeout(engine.emit_content("x".repeat(600_000), Format::Text, false)).await.unwrap();
    let after = engine.emit_custom("after", serde_json::json!(1)).await;
    within_timeout(before.acknowledged()).await.unwrap();
    let failure = within_timeout(refused.acknowledged()).await.unwrap_err();
    assert_eq!(failure.problem().unwrap().code(), Some(ErrorCode::TooLarge));
    assert_eq!(failure.problem().unwrap().status(), 422);
    if let Ok(after) = after {
        assert!(within_timeout(after.acknowledged()).await.is_err());
    }
    let state = engine.state();
    assert_eq!(state.acknowledged, 2);
    assert!(matches!(state.connection, ConnectionState::Failed(EngineFailure::Refused(_))));
    assert!(matches!(engine.emit_status("x").await, Err(EmitError::Failed(_))));
    let events = server.events("r1").await;
    assert!(
        matches!(&events.last().unwrap().body, Body::Custom(custom) if custom.name.as_deref() == Some("small"))
    );

    // A run that someone else has ended.
    client.run("r1").cancel(None).await.unwrap();
    let third = server.engine("r2");
    within_timeout(third.emit_interaction(InteractionRequest::approval("q"))).await.unwrap();
    within_timeout(third.flush()).await.unwrap();
    client.run("r2").cancel(None).await.unwrap();
    let sent = within_timeout(third.emit_status("late")).await.unwrap();
    let failure = within_timeout(sent.acknowledged()).await.unwrap_err();
    assert_eq!(failure.problem().unwrap().code(), Some(ErrorCode::RunClosed));
}

#[tokio::test]
async fn the_engine_gives_up_after_the_retry_timeout() {
    let mut server = TestServer::start().await;
    let client = server.client();
    let engine =
        StreamingEngine::builder("r1").retry_timeout(Duration::from_millis(200)).server(&client).unwrap();
    say(&engine, 0).await;
    within_timeout(engine.flush()).await.unwrap();
    server.kill();
    let sent = say(&engine, 1).await;
    let failure = within_timeout(sent.acknowledged()).await.unwrap_err();
    assert!(matches!(&failure, EngineFailure::GaveUp { attempts: 2.., .. }), "{failure:?}");
    assert!(within_timeout(engine.flush()).await.is_err());
}

#[tokio::test]
async fn a_dropped_engine_still_writes_what_was_emitted() {
    let server = TestServer::start().await;
    let engine = server.engine("r1");
    let mut last = None;
    for number in 0..20 {
        last = Some(say(&engine, number).await);
    }
    drop(engine);
    within_timeout(last.unwrap().acknowledged()).await.unwrap();
    assert_eq!(server.text("r1").await, numbers(20));
    // The run was not ended, so it stays open for a resumed engine, or until its lease expires.
    assert!(server.events("r1").await.iter().all(|event| !event.body.is_terminal()));
}

#[tokio::test]
async fn a_dropped_engine_stops_after_its_linger_time() {
    let mut server = TestServer::start().await;
    let engine = server.builder("r1").linger(Duration::from_millis(50)).server(&server.client()).unwrap();
    say(&engine, 0).await;
    within_timeout(engine.flush()).await.unwrap();
    server.kill();
    let sent = say(&engine, 1).await;
    drop(engine);
    let failure = within_timeout(sent.acknowledged()).await.unwrap_err();
    assert!(matches!(failure, EngineFailure::Stopped), "{failure:?}");
}

#[tokio::test]
async fn heartbeats_keep_an_idle_run_and_report_a_cancel() {
    let server = TestServer::with_lease(Duration::from_millis(1500)).await;
    let client = server.client();
    let silent = server.engine("r0");
    let engine = server.builder("r1").heartbeat(Duration::from_millis(100)).server(&client).unwrap();
    say(&silent, 0).await;
    say(&engine, 0).await;
    within_timeout(silent.flush()).await.unwrap();
    within_timeout(engine.flush()).await.unwrap();
    // The run without heartbeats shows when the lease has expired.
    within_timeout(async {
        while client.run("r0").info().await.unwrap().ended_at.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(client.run("r1").info().await.unwrap().ended_at.is_none());
    assert!(!engine.is_cancel_requested());
    client.run("r1").cancel(None).await.unwrap();
    until(|| engine.is_cancel_requested()).await;
    within_timeout(engine.emit_session_end(SessionStatus::Cancelled, None)).await.unwrap();
    within_timeout(engine.close()).await.unwrap();
}

#[tokio::test]
async fn a_heartbeat_reports_that_the_run_was_ended() {
    let server = TestServer::start().await;
    let client = server.client();
    let engine = server.builder("r1").heartbeat(Duration::from_millis(50)).server(&client).unwrap();
    within_timeout(engine.emit_interaction(InteractionRequest::approval("q"))).await.unwrap();
    within_timeout(engine.flush()).await.unwrap();
    client.run("r1").cancel(None).await.unwrap();
    until(|| matches!(engine.state().connection, ConnectionState::Failed(_))).await;
    assert!(engine.is_cancel_requested());
    let late = engine.emit_status("late").await;
    let Err(EmitError::Failed(EngineFailure::RunClosed { status })) = late else { panic!("{late:?}") };
    assert_eq!(status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_restarted_server_costs_no_signal_and_repeats_none() {
    let mut server = TestServer::start().await;
    let engine = server.engine("r1");
    let mut signals = engine.signals();
    within_timeout(engine.emit_interaction(InteractionRequest::approval("before"))).await.unwrap();
    within_timeout(engine.emit_interaction_withdrawn("before", None)).await.unwrap();
    let interaction_of = |signal: Option<Result<Signal, Error>>| match signal.unwrap().unwrap() {
        Signal::Answer { interaction_id, .. } => interaction_id,
        other => panic!("{other:?}"),
    };
    assert_eq!(interaction_of(within_timeout(signals.next()).await), "before");
    server.kill();
    within_timeout(engine.emit_interaction(InteractionRequest::approval("after"))).await.unwrap();
    within_timeout(engine.emit_interaction_withdrawn("after", None)).await.unwrap();
    // A stream that starts while the server is down gets everything too.
    let mut late = engine.signals();
    let mut listening = Box::pin(late.next());
    assert!(futures_util::poll!(&mut listening).is_pending());
    until(|| matches!(engine.state().connection, ConnectionState::Retrying { .. })).await;
    server.restart().await;
    assert_eq!(interaction_of(within_timeout(signals.next()).await), "after");
    assert_eq!(interaction_of(within_timeout(listening).await), "before");
    assert_eq!(interaction_of(within_timeout(late.next()).await), "after");
    server.client().run("r1").cancel(Some("enough")).await.unwrap();
    for signals in [&mut signals, &mut late] {
        let cancel = within_timeout(signals.next()).await.unwrap().unwrap();
        assert_eq!(cancel, Signal::Cancel { reason: Some("enough".into()), by: None });
    }
    end(&engine).await;
    assert!(within_timeout(signals.next()).await.is_none());
}

#[tokio::test]
async fn a_busy_engine_learns_of_a_cancel_too() {
    let server = TestServer::with_lease(Duration::from_secs(60)).await;
    let client = server.client();
    let engine = server.builder("r1").heartbeat(Duration::from_millis(50)).server(&client).unwrap();
    say(&engine, 0).await;
    within_timeout(engine.flush()).await.unwrap();
    client.run("r1").cancel(None).await.unwrap();
    within_timeout(async {
        let mut number = 1;
        while !engine.is_cancel_requested() {
            say(&engine, number).await;
            number += 1;
        }
    })
    .await;
    within_timeout(engine.emit_session_end(SessionStatus::Cancelled, None)).await.unwrap();
    within_timeout(engine.close()).await.unwrap();
}
