//! Sinks other than a server: byte streams in any dialect and framing, channels, custom sinks.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use runwire_client::Dialect;
use runwire_client::model::convert::{Converter, Options};
use runwire_client::model::dialect::{Decoder, RecordBuilder};
use runwire_client::model::event::StepStarted;
use runwire_client::model::framing::{Framing, write_frame};
use runwire_client::model::run::{Authority, RunState};
use runwire_client::model::window::Window;
use runwire_client::model::{Event, Json};
use runwire_client::write::{
    ChannelSink, DataType, EmitError, Emitted, EngineFailure, EngineSink, ErrorType, Format,
    InteractionRequest, OutputSink, Receipt, SendBatch, SendError, SessionStatus, SinkContext,
    StreamingEngine, ToolEnd,
};
use serde_json::json;

use crate::test_server::within_timeout;
use crate::writing::{emit_canonical, emit_document};

/// The emitted frames.
type RecordedFrames = Arc<Mutex<Vec<Vec<u8>>>>;

/// A custom sink that also records the frames.
struct TeeSink<S>(S, RecordedFrames);

impl<S: EngineSink> EngineSink for TeeSink<S> {
    async fn send(&mut self, batch: &SendBatch, context: &SinkContext) -> Result<Receipt, SendError> {
        self.1.lock().unwrap().extend(batch.frames().map(|(_, frame)| frame.to_vec()));
        self.0.send(batch, context).await
    }

    async fn close(&mut self) -> Result<(), EngineFailure> {
        self.0.close().await
    }
}

/// Converts frames as `runwire convert` does.
fn converted(frames: &[Vec<u8>], dialect: Dialect, framing: Option<Framing>) -> Vec<u8> {
    let mut out = Vec::new();
    let options = Options { from: Some(Dialect::StreamingEngine), ..Options::to(dialect) };
    let mut converter = Converter::new(options);
    let mut write = |converted: runwire_client::model::convert::Converted<'_>| {
        for (k, (name, data)) in converted.frames.iter().enumerate() {
            match (framing, dialect) {
                (None, _) => out.extend_from_slice(data),
                (Some(Framing::Ndjson), Dialect::Text) => {
                    out.extend(serde_json::to_vec(std::str::from_utf8(data).unwrap()).unwrap());
                    out.push(b'\n');
                }
                (Some(framing), _) => {
                    let cursor = format!("{}-{k}", converted.record.seq);
                    write_frame(framing, &mut out, Some(&cursor), name, data);
                }
            }
        }
    };
    for (line, frame) in (1..).zip(frames) {
        converter.push(line, None, frame, &mut write).unwrap();
    }
    converter.finish(&mut write).unwrap();
    if framing.is_none() {
        out.push(b'\n');
    }
    out
}

#[tokio::test]
async fn a_file_in_any_dialect_and_framing_is_what_convert_makes_of_it() {
    let directory = tempfile::tempdir().unwrap();
    for dialect in Dialect::ALL {
        for framing in [Framing::Ndjson, Framing::Sse] {
            for whole in [true, false] {
                let path = directory.path().join(format!("{dialect}.{}.{whole}", framing.name()));
                let seen = RecordedFrames::default();
                let sink = OutputSink::file(&path, dialect, framing).await.unwrap();
                let engine = StreamingEngine::builder("r1").sink(TeeSink(sink, seen.clone())).unwrap();
                if whole {
                    emit_document(&engine).await.unwrap();
                } else {
                    engine.emit_thinking("…", None).await.unwrap();
                }
                within_timeout(engine.close()).await.unwrap();
                let expected = converted(&seen.lock().unwrap(), dialect, Some(framing));
                let written = std::fs::read(&path).unwrap();
                assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(expected).unwrap());
            }
        }
    }
}

#[tokio::test]
async fn everything_in_every_dialect_is_what_convert_makes_of_it() {
    for dialect in Dialect::ALL {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let seen = RecordedFrames::default();
        let sink = OutputSink::new(near, dialect, Framing::Sse);
        let engine = StreamingEngine::builder("r1").sink(TeeSink(sink, seen.clone())).unwrap();
        emit_canonical(&engine).await.unwrap();
        within_timeout(engine.close()).await.unwrap();
        let mut written = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut far, &mut written).await.unwrap();
        let expected = converted(&seen.lock().unwrap(), dialect, Some(Framing::Sse));
        assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(expected).unwrap());
    }
}

#[tokio::test]
async fn plain_text_can_be_written() {
    let (near, mut far) = tokio::io::duplex(1 << 16);
    let engine = StreamingEngine::builder("r1").sink(OutputSink::plain_text(near)).unwrap();
    emit_document(&engine).await.unwrap();
    within_timeout(engine.close()).await.unwrap();
    let mut written = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut far, &mut written).await.unwrap();
    assert_eq!(written, "答案在此\n");
}

#[tokio::test]
async fn a_closed_output_is_reported_to_the_emitter() {
    let (near, far) = tokio::io::duplex(64);
    let sink = OutputSink::new(near, Dialect::Runwire, Framing::Ndjson);
    let engine = StreamingEngine::builder("r1").window(1).sink(sink).unwrap();
    drop(far);
    let broken = within_timeout(engine.emit_thinking("…", None)).await;
    assert!(matches!(broken, Err(EmitError::Failed(EngineFailure::Write(_)))), "{broken:?}");
}

#[tokio::test]
async fn a_channel_gets_every_frame_in_order_and_its_close_is_reported() {
    let (sink, mut receiver) = ChannelSink::new(2);
    let engine = StreamingEngine::builder("r1").sink(sink).unwrap();
    let writer = {
        let engine = engine.clone();
        tokio::spawn(async move { emit_document(&engine).await.map(|sent| sent.len()) })
    };
    for expected in 0..13 {
        let Emitted { sequence, frame } = within_timeout(receiver.recv()).await.unwrap();
        let frame: serde_json::Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!((sequence, &frame["metadata"]["sequence"]), (expected, &json!(expected)));
    }
    assert_eq!(writer.await.unwrap().unwrap(), 13);
    within_timeout(engine.close()).await.unwrap();
    assert!(within_timeout(receiver.recv()).await.is_none());
    assert!(within_timeout(engine.signals().next()).await.is_none());

    let (sink, receiver) = ChannelSink::new(2);
    let engine = StreamingEngine::builder("r1").window(1).sink(sink).unwrap();
    drop(receiver);
    let unheard = within_timeout(engine.emit_thinking("…", None)).await;
    assert!(matches!(unheard, Err(EmitError::Failed(EngineFailure::ReceiverDropped))), "{unheard:?}");
}

/// An `emit_*` call, which may be illegal at its point in the run.
#[derive(Debug, Clone)]
enum Emit {
    Think(String),
    Content(String, bool),
    Start(u8),
    Arguments(u8, String),
    Progress(u8, f64),
    Finish(u8, bool),
    Output(u8, String),
    StepStart(u8),
    StepEnd(u8),
    TextStart(u8),
    Text(u8, String),
    TextEnd(u8),
    Ask(u8),
    Withdraw(u8),
    Data(i64),
    Error(bool),
    Usage(u64),
    InSubagent(u8),
    End(u8),
}

fn emit() -> impl Strategy<Value = Emit> {
    let text = "\\PC{0,12}";
    prop_oneof![
        text.prop_map(Emit::Think),
        (text, any::<bool>()).prop_map(|(text, complete)| Emit::Content(text, complete)),
        (0..4u8).prop_map(Emit::Start),
        (0..4u8, text).prop_map(|(call, text)| Emit::Arguments(call, text)),
        (0..4u8, any::<f64>()).prop_map(|(call, progress)| Emit::Progress(call, progress)),
        (0..4u8, any::<bool>()).prop_map(|(call, fine)| Emit::Finish(call, fine)),
        (0..4u8, text).prop_map(|(call, text)| Emit::Output(call, text)),
        (0..3u8).prop_map(Emit::StepStart),
        (0..3u8).prop_map(Emit::StepEnd),
        (0..3u8).prop_map(Emit::TextStart),
        (0..3u8, text).prop_map(|(message, text)| Emit::Text(message, text)),
        (0..3u8).prop_map(Emit::TextEnd),
        (0..6u8).prop_map(Emit::Ask),
        (0..6u8).prop_map(Emit::Withdraw),
        any::<i64>().prop_map(Emit::Data),
        any::<bool>().prop_map(Emit::Error),
        any::<u64>().prop_map(Emit::Usage),
        (0..3u8).prop_map(Emit::InSubagent),
        (0..40u8).prop_map(Emit::End),
    ]
}

async fn say(engine: &StreamingEngine, emit: Emit) -> Result<(), EmitError> {
    let id = |kind: &str, number: u8| format!("{kind}{number}");
    let sent = match emit {
        Emit::Think(text) => engine.emit_thinking(text, None).await,
        Emit::Content(text, complete) => engine.emit_content(text, Format::Text, complete).await,
        Emit::Start(call) => engine.emit_tool_call_start(id("c", call), "tool", "", json!({"n": 1})).await,
        Emit::Arguments(call, text) => {
            let _ = engine.emit_tool_arguments_start(id("c", call), None).await;
            engine.emit_tool_arguments(id("c", call), text).await
        }
        Emit::Progress(call, progress) => engine.emit_tool_call_progress(id("c", call), progress, "").await,
        Emit::Finish(call, true) => engine.emit_tool_call_end(id("c", call), ToolEnd::success()).await,
        Emit::Finish(call, false) => engine.emit_tool_call_end(id("c", call), ToolEnd::failed("no")).await,
        Emit::Output(call, text) => engine.emit_tool_output(id("c", call), text).await,
        Emit::StepStart(step) => engine.emit_step_start(id("s", step), "step").await,
        Emit::StepEnd(step) => engine.emit_step_end(id("s", step), "step", None).await,
        Emit::TextStart(message) => engine.emit_text_start(id("m", message), None).await,
        Emit::Text(message, text) => engine.emit_text(id("m", message), text, None).await,
        Emit::TextEnd(message) => engine.emit_text_end(id("m", message)).await,
        Emit::Ask(question) => {
            engine.emit_interaction(InteractionRequest::form(id("q", question), json!({}))).await
        }
        Emit::Withdraw(question) => engine.emit_interaction_withdrawn(id("q", question), None).await,
        Emit::Data(number) => engine.emit_data(DataType::Custom, json!({"n": number}), None).await,
        Emit::Error(recoverable) => engine.emit_error(ErrorType::System, "oh", None, recoverable).await,
        Emit::Usage(tokens) => engine.emit_usage(tokens, 1).await,
        Emit::InSubagent(step) => {
            let mut event = Event::new(StepStarted { name: id("inner", step) });
            event.subagent_run_id = Some("sub".into());
            engine.emit(event).await
        }
        Emit::End(0) => engine.emit_session_end(SessionStatus::Completed, None).await,
        Emit::End(1) => engine.emit_session_end(SessionStatus::Error, None).await,
        Emit::End(_) => engine.emit_custom("none", Json::null()).await,
    };
    sent.map(drop)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever the engine accepts, in any order, the guard accepts.
    #[test]
    fn whatever_is_emitted_is_accepted_by_the_guard(words in prop::collection::vec(emit(), 0..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (frames, taken) = runtime.block_on(async {
            let seen = RecordedFrames::default();
            let sink = OutputSink::new(tokio::io::sink(), Dialect::Runwire, Framing::Ndjson);
            let engine = StreamingEngine::builder("r1").sink(TeeSink(sink, seen.clone())).unwrap();
            let mut taken = 0;
            for emit in words {
                // Arguments may be two events.
                let before = engine.state().emitted;
                match say(&engine, emit).await {
                    Ok(()) => assert!(engine.state().emitted > before),
                    Err(EmitError::Field { .. } | EmitError::Ended) => {}
                    Err(error) => panic!("{error}"),
                }
                taken = engine.state().emitted;
            }
            engine.close().await.unwrap();
            (seen.lock().unwrap().clone(), taken)
        });
        prop_assert_eq!(frames.len() as u64, taken);
        let (mut state, mut decoder) = (RunState::new("t", "r1"), Decoder::new(Dialect::StreamingEngine));
        let mut window = Window::new("r1");
        for (seq, frame) in (1..).zip(&frames) {
            let mut entries = Vec::new();
            let opened = decoder.open(None, frame).unwrap();
            let dialect = Dialect::StreamingEngine;
            let mut builder = RecordBuilder::new(&mut state, &window, Authority::Producer, dialect, seq, &mut entries);
            decoder.decode(opened, &mut builder).unwrap();
            prop_assert!(!entries.iter().any(|entry| entry.event.body.type_name() == "foreign"));
            let record = runwire_client::model::record::Record {
                seq,
                at: Default::default(),
                source_time: None,
                dialect: Some(dialect),
                entries,
            };
            window.absorb(&record);
        }
    }
}
