//! Reads frames of Agio.

use std::borrow::Cow;

use crate::dialect::RecordBuilder;
use crate::dialect::decode::{
    DecodeError, DecoderState, Envelope, OpenedFrame, decode_residue, owned, read_arguments, slot_event,
};
use crate::event::{
    ErrorInfo, Event, Extra, Level, Metrics, Notice, RunCancelled, RunCompleted, RunFailed, RunStarted,
    Summary, TextFinished, ToolCalled, ToolFinished, ToolStatus, Usage,
};
use crate::json::{FieldError, Json, Object};
use crate::record::EventOrigin;
use crate::time::Timestamp;

/// Reads the envelope. In the wild the type may be in the SSE name alone, and the data is the event's `data`.
pub(crate) fn open(object: &mut Object<'_>, name: Option<&str>) -> Result<Envelope, FieldError> {
    if !is_whole(object) {
        let starts = name == Some("run_started");
        return Ok(Envelope { starts, begins: starts, ..Envelope::default() });
    }
    let metadata = object.get("metadata").and_then(Object::of);
    let thread = metadata.map(|metadata| metadata.get_id("thread_id")).transpose()?.flatten();
    let time = object.get_str("timestamp").and_then(|text| Timestamp::parse(&text));
    let starts = object.get_str("type").as_deref() == Some("run_started");
    let run = object.take_id("run_id")?;
    // A run that names no thread has one of its own.
    Ok(Envelope { thread: thread.or_else(|| run.clone()), run, time, starts, begins: starts })
}

fn is_whole(object: &Object<'_>) -> bool {
    object.has("type") && (object.has("data") || object.has("run_id"))
}

pub(crate) fn decode(
    _state: &mut DecoderState,
    mut frame: OpenedFrame<'_>,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    let whole = frame.whole();
    let named = frame.name.filter(|_| !is_whole(&frame.object) && !frame.object.has("data"));
    let (kind, mut data, metadata, outer) = match named {
        Some(name) => (Cow::Borrowed(name), frame.object, None, None),
        None => {
            let mut metadata = frame.object.take_object("metadata")?;
            if decode_residue(metadata.as_mut(), builder)? {
                return Ok(());
            }
            if let Some(metadata) = &mut metadata {
                metadata.take("thread_id");
            }
            frame.object.take("timestamp");
            let data = frame.object.take_object("data")?.unwrap_or_default();
            (frame.object.take_str("type")?, data, metadata, Some(frame.object))
        }
    };
    let inside = |error: FieldError| error.inside("data");
    let step = match &*kind {
        "metrics_snapshot" => None,
        _ => data.take_opt::<u64>("step").map_err(inside)?,
    };
    let Some(payload) = read_payload(&kind, &mut data, step).map_err(inside)? else {
        return Ok(builder.foreign(whole, frame.name)?);
    };
    let mut extra = data.rest();
    extra.add_inside("metadata", metadata.as_ref());
    extra.add_inside("frame", outer.as_ref());
    add_payload(payload, extra, builder)
}

/// Payload of a frame.
enum Payload {
    Started { message: Option<String> },
    Completed { reply: Option<String>, summary: Option<Summary> },
    Failed { error: Option<ErrorInfo> },
    Cancelled { reason: Option<String> },
    StepStarted { name: Option<String>, step: Option<u64> },
    StepCompleted { name: Option<String>, step: Option<u64> },
    Text { content: String },
    WholeText { content: String },
    Called { id: Option<String>, called: ToolCalled },
    Finished { id: Option<String>, finished: ToolFinished },
    Usage(Usage),
    Metrics(Metrics),
    Notice(Notice),
    Slot(Box<Event>),
}

fn read_payload(kind: &str, data: &mut Object<'_>, step: Option<u64>) -> Result<Option<Payload>, FieldError> {
    Ok(Some(match kind {
        "run_started" => Payload::Started { message: owned(data.take_opt_str("query")?) },
        "run_completed" => Payload::Completed {
            reply: owned(data.take_opt_str("response")?),
            summary: data.take_object("metrics")?.map(summary).transpose()?,
        },
        "run_failed" => {
            let (message, kind) =
                (owned(data.take_opt_str("error")?), owned(data.take_opt_str("error_type")?));
            Payload::Failed {
                error: message.map(|message| ErrorInfo { kind, ..ErrorInfo::message(message) }),
            }
        }
        "run_cancelled" => Payload::Cancelled { reason: owned(data.take_opt_str("reason")?) },
        "step_started" => Payload::StepStarted { name: data.take_id("name")?, step },
        "step_completed" => Payload::StepCompleted { name: data.take_id("name")?, step },
        "text_delta" => Payload::Text { content: data.take_str("content")?.into_owned() },
        "text_completed" => {
            Payload::WholeText { content: owned(data.take_opt_str("content")?).unwrap_or_default() }
        }
        "tool_call_started" => {
            let (id, name) = (data.take_id("tool_call_id")?, data.take_required_id("tool_name")?);
            let mut called = ToolCalled { name, ..Default::default() };
            read_arguments(&mut called, data.take("arguments").map(Json::from_raw));
            Payload::Called { id, called }
        }
        "tool_call_completed" | "tool_call_failed" => {
            let (id, name) = (data.take_id("tool_call_id")?, data.take_id("tool_name")?);
            let result = data.take_present("result").map(Json::from_raw);
            let seconds: Option<f64> = data.take_opt("duration")?;
            let mut finished =
                ToolFinished { name, result, duration_ms: seconds.map(to_millis), ..Default::default() };
            if kind == "tool_call_failed" {
                finished.status = ToolStatus::Failure;
                let message =
                    data.take_present("error").map(|raw| Json::from_raw(raw).text_form().into_owned());
                let kind = owned(data.take_opt_str("error_type")?);
                finished.error = message.map(|message| ErrorInfo { kind, ..ErrorInfo::message(message) });
            }
            Payload::Finished { id, finished }
        }
        "usage_update" => {
            let mut nested = data.take_object("usage")?;
            let usage = nested.as_mut().unwrap_or(data);
            Payload::Usage(Usage {
                prompt_tokens: usage.take_opt("prompt_tokens")?,
                completion_tokens: usage.take_opt("completion_tokens")?,
                total_tokens: usage.take_opt("total_tokens")?,
            })
        }
        "metrics_snapshot" => {
            Payload::Metrics(Metrics { figures: crate::dialect::fields_of(&std::mem::take(data)) })
        }
        "error" => {
            let message = match data.take_opt_str("error")? {
                Some(error) => error,
                None => data.take_str("message")?,
            };
            let recoverable = data.take_opt::<bool>("recoverable")?.unwrap_or(false);
            Payload::Notice(Notice {
                level: Level::Error,
                message: message.into_owned(),
                kind: owned(data.take_opt_str("error_type")?),
                fatal: Some(!recoverable),
                ..Default::default()
            })
        }
        "warning" | "debug" => {
            if let Some(event) = data.get("runwire").map(Json::from_raw).as_ref().and_then(slot_event) {
                return Ok(Some(Payload::Slot(Box::new(event))));
            }
            let level = if kind == "debug" { Level::Debug } else { Level::Warning };
            let message = owned(data.take_opt_str("message")?).unwrap_or_default();
            Payload::Notice(Notice { level, message, ..Default::default() })
        }
        _ => return Ok(None),
    }))
}

fn summary(mut metrics: Object<'_>) -> Result<Summary, FieldError> {
    let inside = |error: FieldError| error.inside("metrics");
    let duration: Option<f64> = metrics.take_opt("duration").map_err(inside)?;
    Ok(Summary {
        duration_ms: duration.map(to_millis),
        steps: metrics.take_opt("steps_count").map_err(inside)?,
        tool_calls: metrics.take_opt("tool_calls_count").map_err(inside)?,
        total_tokens: metrics.take_opt("total_tokens").map_err(inside)?,
        prompt_tokens: metrics.take_opt("total_prompt_tokens").map_err(inside)?,
        completion_tokens: metrics.take_opt("total_completion_tokens").map_err(inside)?,
        response_latency_ms: metrics.take_opt("response_latency").map_err(inside)?,
        extra: metrics.rest(),
    })
}

/// Seconds to milliseconds, without the noise of binary fractions.
fn to_millis(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e6
}

fn add_payload(payload: Payload, extra: Extra, builder: &mut RecordBuilder<'_>) -> Result<(), DecodeError> {
    match payload {
        Payload::Started { message } => builder.add(RunStarted { message, ..Default::default() }, extra)?,
        Payload::Completed { reply, summary } => {
            builder.complete(RunCompleted { reply, summary, result: None }, extra)?;
        }
        Payload::Failed { error } => builder.fail(error, RunFailed::default(), extra)?,
        Payload::Cancelled { reason } => builder.add(RunCancelled { reason, summary: None }, extra)?,
        Payload::StepStarted { name, step } => {
            let ordinal = step.unwrap_or(builder.state.run_steps() + 1);
            builder.step_started(name.unwrap_or_else(|| format!("step-{ordinal}")), extra)?;
        }
        Payload::StepCompleted { name, step } => {
            let numbered = step.map(|step| format!("step-{step}"));
            let is_open = |name: &String| builder.state.steps.iter().any(|open| open.name == *name);
            let known = name.or(numbered).filter(is_open);
            let innermost = || builder.state.current_step().map(|step| step.name.clone());
            let name = known.or_else(innermost).unwrap_or_default();
            builder.step_finished(name, None, extra)?;
        }
        Payload::Text { content } => builder.text(None, content.into(), None, extra)?,
        Payload::WholeText { content } => {
            builder.whole_text(&content, EventOrigin::Decoder, Extra::default())?;
            if let Some(text) = builder.state.texts.iter().rfind(|text| text.minted) {
                let message_id = text.id.clone();
                builder.add(TextFinished { message_id, ..Default::default() }, extra)?;
            }
        }
        Payload::Called { id, called } => builder.called(id, called, extra)?,
        Payload::Finished { id, finished } => builder.tool_finished(id, finished, extra)?,
        Payload::Usage(usage) => builder.add(usage, extra)?,
        Payload::Metrics(metrics) => builder.add(metrics, extra)?,
        Payload::Notice(notice) => builder.add(notice, extra)?,
        Payload::Slot(event) => builder.slot(*event)?,
    }
    Ok(())
}
