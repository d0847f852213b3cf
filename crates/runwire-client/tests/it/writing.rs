//! Emitted events are what readers get; refused events change nothing.

use futures_util::StreamExt;
use runwire_client::model::event::{
    Checkpoint, ErrorInfo, Level, RunFailed, RunStarted, Summary, ToolFinished, ToolStatus as Ended,
};
use runwire_client::model::{Body, Event, Json};
use runwire_client::write::{
    DataType, EmitError, ErrorType, Format, InteractionRequest, PendingAck, SessionStatus, Signal,
    Stage as Thinking, StreamingEngine, ToolEnd,
};
use runwire_client::{Answer, Decision, Dialect, RunStatus};
use serde_json::{Value, json};

use crate::test_server::{TestServer, within_timeout};

/// Calls every `emit_*` method of the document.
pub(crate) async fn emit_document(engine: &StreamingEngine) -> Result<Vec<PendingAck>, EmitError> {
    let arguments = json!({"table_name": "销售数据", "columns": ["产品", "销量"]});
    let end = ToolEnd::success().result(json!({"rows": 2})).duration_ms(150.0);
    let failed = ToolEnd::failed("没有权限").code("DENIED").duration_ms(1.5);
    let summary = Summary { total_tokens: Some(1500), tool_calls: Some(2), ..Default::default() };
    let note = Json::from_value(&json!({"description": "数据描述"}));
    let trace = Json::from_value(&json!({"stack_trace": "…"}));
    Ok(vec![
        engine.emit_session_start("sess_1").await?,
        engine.emit_thinking("先想想", Thinking::Reasoning).await?,
        engine.emit_thinking("再想想", None).await?,
        engine.emit_tool_call_start("tool_1", "display_table", "展示表格数据", arguments).await?,
        engine.emit_tool_call_progress("tool_1", 42.5, "一半").await?,
        engine.emit_data(DataType::Dataframe, json!({"name": "表", "columns": [], "rows": []}), note).await?,
        engine.emit_tool_call_end("tool_1", end).await?,
        engine.emit_tool_call_start("tool_2", "delete", "", json!({})).await?,
        engine.emit_tool_call_end("tool_2", failed).await?,
        engine.emit_error(ErrorType::Timeout, "慢了", trace, true).await?,
        engine.emit_content("答案", Format::Markdown, false).await?,
        engine.emit_content("在此", Format::Markdown, true).await?,
        engine.emit_session_end(SessionStatus::Completed, summary).await?,
    ])
}

/// Calls every other `emit_*` method.
pub(crate) async fn emit_canonical(engine: &StreamingEngine) -> Result<(), EmitError> {
    let started =
        RunStarted { message: Some("天气?".into()), agent: Some("demo".into()), ..Default::default() };
    engine.emit_run_started(started).await?;
    engine.emit_status("initializing").await?;
    engine.emit_step_start("s1", "plan").await?;
    engine.emit_thought_start("t1", Thinking::Planning).await?;
    engine.emit_thought("t1", "想", None).await?;
    engine.emit_thought_end("t1").await?;
    engine.emit_tot_expanded(json!(["a", "b"])).await?;
    engine.emit_tot_evaluated(1, json!([0.1, 0.9])).await?;
    engine.emit_tot_backtracked(0, "no way".to_owned()).await?;
    engine.emit_got_planned(["n1", "n2"], 1).await?;
    engine.emit_got_node_start("n1").await?;
    engine.emit_got_node_end("n1", "found".to_owned()).await?;
    engine.emit_got_node_failed("n2", "lost").await?;
    engine.emit_got_expanded("n1", json!(["n3"]), json!([["n1", "n3"]])).await?;
    engine.emit_step_end("s1", "plan", "not good enough".to_owned()).await?;
    engine.emit_tool_arguments_start("c1", "search".to_owned()).await?;
    engine.emit_tool_arguments("c1", "{\"q\":").await?;
    engine.emit_tool_arguments("c1", "1}").await?;
    engine.emit_tool_call_start("c1", "search", "", json!({"q": 1})).await?;
    engine.emit_tool_working("c1").await?;
    engine.emit_tool_output("c1", "line\n").await?;
    let partial = ToolFinished { call_id: "c1".into(), status: Ended::Partial, ..Default::default() };
    engine.emit(partial).await?;
    engine.emit_text_start("m1", None).await?;
    engine.emit_text("m1", "Hel", Format::Text).await?;
    engine.emit_text("m1", "lo", None).await?;
    engine.emit_text_end("m1").await?;
    engine.emit_state(json!({"n": 1})).await?;
    engine.emit_state_update("plan", json!({"n": 2})).await?;
    engine.emit_state_patch(json!([{"op": "replace", "path": "/n", "value": 3}])).await?;
    engine.emit_messages(json!([])).await?;
    engine.emit_checkpoint(Checkpoint { state: Some(Json::empty_object()), ..Default::default() }).await?;
    engine.emit_activity("a1", "PLAN", json!({"steps": []}), true).await?;
    engine.emit_activity_patch("a1", "PLAN", json!([])).await?;
    engine.emit_subagent_start("sub", "helper".to_owned()).await?;
    engine.emit_subagent_end("sub", Json::string("ok")).await?;
    engine.emit_subagent_start("sub2", None).await?;
    engine.emit_subagent_failed("sub2", "tired", "T".to_owned()).await?;
    engine.emit_usage(10, 5).await?;
    engine.emit_metrics(json!({"p99": 3})).await?;
    engine.emit_notice(Level::Warning, "careful", "W1".to_owned()).await?;
    engine.emit_custom("mood", json!({"good": true})).await?;
    engine.emit_interaction(InteractionRequest::form("q1", json!({"type": "object"})).title("Who?")).await?;
    engine.emit_interaction_withdrawn("q1", "found out".to_owned()).await?;
    engine
        .emit_interaction(InteractionRequest::approval("q2").about_tool("c9", "rm", json!({})).reason("why"))
        .await?;
    engine.emit_run_failed(ErrorInfo::coded("E1", "坏了")).await?;
    Ok(())
}

fn types(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.body.type_name()).collect()
}

#[tokio::test]
async fn the_documents_frames_come_back_as_they_were_emitted() {
    let server = TestServer::start().await;
    let engine = server.engine("req_1");
    let sent = within_timeout(emit_document(&engine)).await.unwrap();
    within_timeout(engine.close()).await.unwrap();
    assert!(sent.iter().map(PendingAck::sequence).eq(0..13));
    within_timeout(sent[12].acknowledged()).await.unwrap();

    // The log keeps them byte for byte.
    let raw = server.client().run("req_1").frames(Dialect::StreamingEngine).raw(true).follow(false);
    let mut frames: Vec<Value> =
        within_timeout(raw.map(|frame| serde_json::from_slice(&frame.unwrap().data).unwrap()).collect())
            .await;
    let mut before = 0;
    for (sequence, frame) in frames.iter_mut().enumerate() {
        let metadata = frame["metadata"].as_object_mut().unwrap();
        assert_eq!(metadata.remove("request_id"), Some("req_1".into()));
        assert_eq!(metadata.remove("sequence"), Some(sequence.into()));
        let at = metadata.remove("timestamp").unwrap().as_u64().unwrap();
        assert!(at >= before && at > 1_600_000_000_000, "{at} after {before}");
        before = at;
    }
    let frame = |kind: &str, data: Value| json!({"type": kind, "data": data, "metadata": {}});
    let took = |mut frame: Value, duration: Value| {
        frame["metadata"]["duration_ms"] = duration;
        frame
    };
    let table = json!({"table_name": "销售数据", "columns": ["产品", "销量"]});
    let rows = json!({"name": "表", "columns": [], "rows": []});
    let expected = [
        frame("session_start", json!({"session_id": "sess_1", "request_id": "req_1"})),
        frame("thinking", json!({"content": "先想想", "stage": "reasoning"})),
        frame("thinking", json!({"content": "再想想"})),
        frame(
            "tool_call_start",
            json!({"tool_id": "tool_1", "tool_name": "display_table", "description": "展示表格数据", "arguments": table}),
        ),
        frame("tool_call_progress", json!({"tool_id": "tool_1", "progress": 42.5, "message": "一半"})),
        frame(
            "data",
            json!({"data_type": "dataframe", "data": rows, "metadata": {"description": "数据描述"}}),
        ),
        took(
            frame("tool_call_end", json!({"tool_id": "tool_1", "status": "success", "result": {"rows": 2}})),
            json!(150),
        ),
        frame("tool_call_start", json!({"tool_id": "tool_2", "tool_name": "delete", "arguments": {}})),
        took(
            frame(
                "tool_call_end",
                json!({"tool_id": "tool_2", "status": "failed", "error": {"message": "没有权限", "code": "DENIED"}}),
            ),
            json!(1.5),
        ),
        frame(
            "error",
            json!({"error_type": "timeout", "message": "慢了", "details": {"stack_trace": "…"}, "recoverable": true}),
        ),
        frame("content", json!({"content": "答案", "format": "markdown", "is_complete": false})),
        frame("content", json!({"content": "在此", "format": "markdown", "is_complete": true})),
        frame(
            "session_end",
            json!({"status": "completed", "summary": {"total_tokens": 1500, "tool_calls": 2}}),
        ),
    ];
    assert_eq!(frames, expected);
    assert_eq!(*server.client().run("req_1").info().await.unwrap().thread_id, *"sess_1");
}

#[tokio::test]
async fn every_other_event_of_the_model_comes_back_too() {
    let server = TestServer::start().await;
    let engine = server.engine("r1");
    within_timeout(emit_canonical(&engine)).await.unwrap();
    within_timeout(engine.close()).await.unwrap();
    let events = server.events("r1").await;
    let expected = "run.started run.status step.started thinking.started thinking.delta thinking.finished \
        tot.expanded tot.evaluated tot.backtracked got.planned got.node_started got.node_completed \
        got.node_failed got.expanded step.finished tool.args_started tool.args_delta tool.args_delta \
        tool.called tool.started tool.output tool.finished text.started text.delta text.delta text.finished \
        state.snapshot state.updated state.patched messages.snapshot checkpoint activity.snapshot \
        activity.patched subagent.started subagent.finished subagent.started subagent.failed usage metrics \
        notice custom interaction.requested run.suspended interaction.resolved run.resumed \
        interaction.requested run.suspended interaction.resolved run.failed";
    assert_eq!(types(&events), expected.split_whitespace().collect::<Vec<_>>());
    assert!(events.iter().any(|event| event.step_id.as_deref() == Some("s1")
        && matches!(&event.body, Body::ThinkingDelta(delta) if delta.content == "想" && delta.message_id == "t1")));
    assert!(events.iter().any(|event| matches!(&event.body, Body::TextDelta(delta)
        if delta.content == "Hel" && delta.message_id == "m1" && delta.format.as_deref() == Some("text"))));
    assert!(events.iter().any(|event| event.subagent_run_id.as_deref() == Some("sub2")
        && matches!(&event.body, Body::SubagentFailed(failed) if failed.code.as_deref() == Some("T"))));
    let error = RunFailed { error: ErrorInfo::coded("E1", "坏了"), summary: None };
    assert_eq!(events.last().unwrap().body, error.into());
}

#[tokio::test]
async fn a_refused_event_names_its_field_and_changes_nothing() {
    let server = TestServer::start().await;
    let engine = server.engine("r1");
    engine.emit_session_start("t1").await.unwrap();
    let long = "x".repeat(600);
    let deep = Json::parse(&format!("{}1{}", "[".repeat(200), "]".repeat(200)));
    let refused = [
        (engine.emit_session_start("t2").await, "type"),
        (engine.emit_tool_call_start("", "a", "", json!({})).await, "tool_id"),
        (engine.emit_tool_call_start("c", &long, "", json!({})).await, "tool_name"),
        (engine.emit_tool_call_start("c", "a", "", json!([1])).await, "arguments"),
        (engine.emit_tool_call_end("c", ToolEnd::success()).await, "tool_id"),
        (engine.emit_tool_call_progress("c", 1.0, "").await, "tool_id"),
        (engine.emit_tool_call_progress("c", f64::NAN, "").await, "progress"),
        (engine.emit_tool_call_end("c", ToolEnd::success().duration_ms(f64::INFINITY)).await, "duration_ms"),
        (engine.emit_step_end("s", "s", None).await, "step_id"),
        (engine.emit_interaction_withdrawn("q", None).await, "interaction_id"),
        (engine.emit_got_node_start("").await, "node_id"),
        (
            engine.emit(ToolFinished { duration_ms: Some(f64::NAN), ..Default::default() }).await,
            "duration_ms",
        ),
        (engine.emit_step_start(&long, "plan").await, "step_id"),
        (engine.emit_text("", "x", None).await, "message_id"),
        (engine.emit(runwire_client::model::event::RunCancelRequested::default()).await, "type"),
    ];
    for (refused, expected) in refused {
        let Err(EmitError::Field { field, .. }) = &refused else { panic!("{expected}: {refused:?}") };
        assert_eq!(field, expected);
    }
    let huge = engine.emit_content("x".repeat(2 << 20), Format::Text, false).await;
    assert!(matches!(huge, Err(EmitError::Frame(_))), "{huge:?}");
    let too_deep = engine.emit_custom("deep", deep.unwrap()).await;
    assert!(matches!(too_deep, Err(EmitError::Frame(_))), "{too_deep:?}");

    engine.emit_session_end(SessionStatus::Completed, None).await.unwrap();
    let late = engine.emit_content("late", Format::Text, false).await;
    assert!(matches!(late, Err(EmitError::Ended)), "{late:?}");
    assert_eq!(engine.state().emitted, 2);
    within_timeout(engine.close()).await.unwrap();
    assert_eq!(types(&server.events("r1").await), ["run.started", "run.completed"]);
    let closed = engine.emit_content("late", Format::Text, false).await;
    assert!(matches!(closed, Err(EmitError::Closed | EmitError::Ended)), "{closed:?}");
    assert!(StreamingEngine::builder("").server(&server.client()).is_err());
}

#[tokio::test]
async fn the_engine_refuses_text_beyond_the_runs_limit() {
    let server = TestServer::start().await;
    let engine = server.engine("r1");
    let piece = "x".repeat(1_000_000);
    let mut taken = 0;
    let refused = loop {
        match within_timeout(engine.emit_content(&piece, Format::Text, false)).await {
            Ok(_) => taken += 1,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, EmitError::Limit(_)), "{refused:?}");
    assert_eq!(taken, 8);
    engine.emit_session_end(SessionStatus::Completed, None).await.unwrap();
    within_timeout(engine.close()).await.unwrap();
    assert_eq!(server.text("r1").await.len(), 8_000_000);
}

#[tokio::test]
async fn a_cancel_and_a_resolved_interaction_arrive_once_each() {
    let server = TestServer::start().await;
    let engine = server.engine("r1");
    let mut signals = engine.signals();
    engine.emit_interaction(InteractionRequest::approval("q1")).await.unwrap();
    engine.flush().await.unwrap();
    let other = server.builder("r1").resume(&server.client(), "other").await.unwrap();
    other
        .emit(Event::new(runwire_client::model::event::InteractionRequested {
            interaction_id: "q2".into(),
            ..Default::default()
        }))
        .await
        .unwrap();
    other.emit_interaction_withdrawn("q2", "by another".to_owned()).await.unwrap();
    engine.emit_interaction_withdrawn("q1", None).await.unwrap();
    other.close().await.unwrap();
    engine.flush().await.unwrap();
    let mut settled = Vec::new();
    for _ in 0..2 {
        match within_timeout(signals.next()).await.unwrap().unwrap() {
            Signal::Answer { interaction_id, decision: Decision::Cancelled, .. } => {
                settled.push(interaction_id)
            }
            other => panic!("{other:?}"),
        }
    }
    settled.sort();
    assert_eq!(settled, ["q1", "q2"]);
    server.client().run("r1").cancel(Some("enough")).await.unwrap();
    let cancel = within_timeout(signals.next()).await.unwrap().unwrap();
    assert_eq!(cancel, Signal::Cancel { reason: Some("enough".into()), by: None });
    assert!(engine.is_cancel_requested());
    engine.emit_session_end(SessionStatus::Cancelled, None).await.unwrap();
    assert!(within_timeout(signals.next()).await.is_none());
    within_timeout(engine.close()).await.unwrap();
}

#[tokio::test]
async fn a_cancel_while_suspended_is_a_cancel_and_no_answer() {
    let server = TestServer::start().await;
    let engine = server.engine("r1");
    let mut signals = engine.signals();
    for question in ["q1", "q2"] {
        engine.emit_interaction(InteractionRequest::approval(question)).await.unwrap();
    }
    within_timeout(engine.flush()).await.unwrap();
    server.client().run("r1").cancel(Some("enough")).await.unwrap();
    let cancel = within_timeout(signals.next()).await.unwrap().unwrap();
    assert_eq!(cancel, Signal::Cancel { reason: Some("enough".into()), by: None });
    assert!(within_timeout(signals.next()).await.is_none());
}

#[expect(dead_code, reason = "its main reads the environment; the loop is what is run")]
#[path = "../../examples/agent_loop.rs"]
mod agent_loop;

#[tokio::test]
async fn the_agent_loop_of_the_example_writes_its_run() {
    let server = TestServer::start().await;
    let client = server.client();
    let asks = client.clone();
    let person = tokio::spawn(async move {
        while asks.run("loop").info().await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let mut events = asks.run("loop").events();
        while let Some(received) = events.next().await {
            if matches!(&received.as_ref().unwrap().body, Body::InteractionRequested(_)) {
                let answer = Answer::submitted(Json::parse(r#"{"city":"Oslo"}"#).unwrap());
                asks.run("loop").answer("city", &answer).await.unwrap();
                return;
            }
        }
    });
    let (agent, person) =
        within_timeout(async { tokio::join!(agent_loop::agent(&client, "loop"), person) }).await;
    agent.unwrap();
    person.unwrap();
    let events = server.events("loop").await;
    assert_eq!(
        types(&events),
        [
            "run.started",
            "thinking.started",
            "thinking.delta",
            "thinking.finished",
            "interaction.requested",
            "run.suspended",
            "interaction.resolved",
            "run.resumed",
            "tool.called",
            "tool.progress",
            "tool.progress",
            "tool.progress",
            "tool.finished",
            "text.started",
            "text.delta",
            "text.delta",
            "text.finished",
            "run.completed"
        ]
    );
    assert_eq!(server.text("loop").await, "The sky is **clear**.");
    let called = events.iter().find_map(|event| match &event.body {
        Body::ToolCalled(called) => Some(called.arguments.text().to_owned()),
        _ => None,
    });
    assert_eq!(called.as_deref(), Some(r#"{"city":"Oslo"}"#));
}

#[tokio::test]
async fn the_agent_loop_of_the_example_stops_when_cancelled() {
    let server = TestServer::start().await;
    let client = server.client();
    let cancels = async {
        loop {
            let info = client.run("loop").info().await;
            if info.is_ok_and(|info| info.status == RunStatus::Suspended) {
                break client.run("loop").cancel(None).await.unwrap();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let (agent, info) =
        within_timeout(async { tokio::join!(agent_loop::agent(&client, "loop"), cancels) }).await;
    agent.unwrap();
    assert_eq!(info.status, RunStatus::Cancelled);
}
