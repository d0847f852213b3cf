//! Reads frames of StreamingEngine.

use super::{ERROR_CODE, FIRST_TEN_DIGITS, LAST_PIECE, NO_CODE, STAMPED};
use crate::dialect::RecordBuilder;
use crate::dialect::decode::{
    DecodeError, DecoderState, Envelope, OpenedFrame, decode_residue, owned, read_arguments, slot_event,
};
use crate::event::{
    Data, ErrorInfo, Extra, Level, Notice, RunCancelled, RunCompleted, RunFailed, RunStarted, Summary,
    TextFinished, ToolCalled, ToolFinished, ToolProgress, ToolStatus,
};
use crate::json::{FieldError, Json, Object, ObjectWriter};
use crate::time::Timestamp;

pub(crate) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
    let kind = object.get_str("type");
    let begins = kind.as_deref() == Some("session_start");
    let metadata = object.get("metadata").and_then(Object::of);
    let data = object.get("data").filter(|_| begins).and_then(Object::of);
    let id = |part: &Option<Object<'_>>, key: &str| part.as_ref().map(|part| part.get_id(key)).transpose();
    let run = match id(&metadata, "request_id")?.flatten() {
        Some(run) => Some(run),
        None => id(&data, "request_id")?.flatten(),
    };
    let time = metadata.as_ref().and_then(|metadata| metadata.get("timestamp"));
    let time = time.and_then(|raw| raw.get().parse::<f64>().ok()).filter(|time| *time >= 0.0).map(to_millis);
    let older = metadata.is_none() && matches!(kind.as_deref(), Some("token" | "thinking" | "tool_call"));
    Ok(Envelope {
        thread: id(&data, "session_id")?.flatten(),
        run,
        time: time.and_then(|millis| Timestamp::from_millis(millis as u64)),
        starts: older || begins,
        begins,
    })
}

/// Reads a time in milliseconds, or in seconds, which have ten digits before the point.
fn to_millis(time: f64) -> f64 {
    let is_seconds = (FIRST_TEN_DIGITS..FIRST_TEN_DIGITS * 10.0).contains(&time);
    if is_seconds { (time * 1000.0).round() } else { time }
}

pub(crate) fn decode(
    state: &mut DecoderState,
    mut frame: OpenedFrame<'_>,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    let whole = frame.whole();
    let mut metadata = frame.object.take_object("metadata")?;
    if decode_residue(metadata.as_mut(), builder)? {
        return Ok(());
    }
    let kind = frame.object.take_str("type")?;
    if kind == "runwire" {
        let slot = frame.object.get("data").map(Json::from_raw).as_ref().and_then(slot_event);
        match slot {
            Some(event) => builder.slot(event)?,
            None => builder.foreign(whole, frame.name)?,
        }
        return Ok(());
    }
    // The older events are flat, or nested without metadata; a flat `dataframe_data` has a `data` of its own.
    let nested = frame
        .object
        .get("data")
        .and_then(Object::of)
        .filter(|_| kind != "dataframe_data" || metadata.is_some());
    let is_nested = nested.is_some();
    let mut data = match nested {
        Some(data) => {
            frame.object.take("data");
            data
        }
        None => std::mem::take(&mut frame.object),
    };
    let inside = |error: FieldError| if is_nested { error.inside("data") } else { error };
    let duration_ms = match &mut metadata {
        Some(metadata) => {
            for stamped in STAMPED {
                metadata.take(stamped);
            }
            metadata.take_opt("duration_ms").map_err(|error| error.inside("metadata"))?
        }
        None => None,
    };
    let payload = read_payload(&kind, &mut data, builder).map_err(inside)?;
    let mut extra = data.rest();
    for (name, raw) in frame.object.fields() {
        extra.set(format!("frame.{name}"), Json::from_raw(raw));
    }
    extra.add_inside("metadata", metadata.as_ref());
    match payload {
        Some(payload) => add_payload(payload, duration_ms, extra, state, builder),
        None => Ok(builder.foreign(whole, frame.name)?),
    }
}

/// Payload of a frame.
enum Payload {
    Start,
    Thinking { content: String, stage: Option<String> },
    Called { id: Option<String>, called: ToolCalled },
    Progress { id: Option<String>, progress: ToolProgress },
    Finished { id: Option<String>, finished: ToolFinished },
    Content { content: String, format: Option<String>, complete: bool },
    Whole { content: String },
    Data(Data),
    Error(Notice),
    End { status: End, summary: Option<Summary> },
}

enum End {
    Completed,
    Error,
    Cancelled,
}

fn read_payload(
    kind: &str,
    data: &mut Object<'_>,
    builder: &RecordBuilder<'_>,
) -> Result<Option<Payload>, FieldError> {
    Ok(Some(match kind {
        "session_start" => {
            data.take("session_id");
            data.take("request_id");
            Payload::Start
        }
        "thinking" => Payload::Thinking {
            content: data.take_str("content")?.into_owned(),
            stage: owned(data.take_opt_str("stage")?),
        },
        "tool_call_start" | "tool_call" => {
            let (id, name) = (data.take_id("tool_id")?, data.take_required_id("tool_name")?);
            let description = owned(data.take_opt_str("description")?);
            let mut called = ToolCalled { name, description, ..Default::default() };
            let arguments = data.take("arguments").or_else(|| data.take("tool_args"));
            read_arguments(&mut called, arguments.map(Json::from_raw));
            Payload::Called { id, called }
        }
        "tool_call_progress" => {
            let id = data.take_id("tool_id")?;
            let progress = data.take_opt("progress")?;
            let message = owned(data.take_opt_str("message")?);
            Payload::Progress { id, progress: ToolProgress { progress, message, ..Default::default() } }
        }
        "tool_call_end" | "tool_result" => {
            let (id, name) = (data.take_id("tool_id")?, data.take_id("tool_name")?);
            let word = owned(data.take_opt_str("status")?);
            let status = tool_status(word.as_deref())?;
            let result = data.take_present("result").map(Json::from_raw);
            let error = data.take_present("error").map(|raw| ErrorInfo::read_lenient(&Json::from_raw(raw)));
            Payload::Finished {
                id,
                finished: ToolFinished { name, status, result, error, ..Default::default() },
            }
        }
        "content" | "token" => Payload::Content {
            content: data.take_str("content")?.into_owned(),
            format: owned(data.take_opt_str("format")?),
            complete: data.take_opt("is_complete")?.unwrap_or(false),
        },
        "final_answer" => Payload::Whole { content: data.take_str("content")?.into_owned() },
        "data" => Payload::Data(Data {
            data_type: data.take_required_id("data_type")?,
            data: data.take_json("data")?,
            metadata: data.take_present("metadata").map(Json::from_raw),
            call_id: the_only_call(builder),
        }),
        "dataframe_data" => Payload::Data(dataframe(data, builder)?),
        "error" => {
            let kind = owned(data.take_opt_str("error_type")?);
            let message = data.take_str("message")?.into_owned();
            let details = data.take_present("details").map(Json::from_raw);
            let recoverable = data.take_opt::<bool>("recoverable")?.unwrap_or(false);
            Payload::Error(Notice {
                level: Level::Error,
                kind,
                message,
                details,
                fatal: Some(!recoverable),
                ..Default::default()
            })
        }
        "session_end" => {
            let status = match data.take_opt_str("status")?.as_deref() {
                None | Some("completed" | "success") => End::Completed,
                Some("error" | "failed") => End::Error,
                Some("cancelled" | "canceled") => End::Cancelled,
                Some(other) => {
                    let problem = format!("must be one of completed error cancelled, and is `{other}`");
                    return Err(FieldError::new("status", problem));
                }
            };
            Payload::End { status, summary: data.take_opt("summary")? }
        }
        "done" => Payload::End { status: End::Completed, summary: data.take_opt("summary")? },
        _ => return Ok(None),
    }))
}

fn tool_status(word: Option<&str>) -> Result<ToolStatus, FieldError> {
    match word {
        None | Some("success" | "completed") => Ok(ToolStatus::Success),
        Some("failed" | "failure" | "error") => Ok(ToolStatus::Failure),
        Some("partial") => Ok(ToolStatus::Partial),
        Some(other) => Err(FieldError::new("status", format!("must be success or failed, and is `{other}`"))),
    }
}

fn the_only_call(builder: &RecordBuilder<'_>) -> Option<String> {
    match builder.state.calls.as_slice() {
        [call] => Some(call.id.clone()),
        _ => None,
    }
}

/// Reads an older table into the form that `data` has.
fn dataframe(data: &mut Object<'_>, builder: &RecordBuilder<'_>) -> Result<Data, FieldError> {
    let mut table = match data.get("data").and_then(Object::of) {
        Some(table) => {
            data.take("data");
            table
        }
        None => std::mem::take(data),
    };
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    for (name, old) in [("name", "dataframe_name"), ("columns", "columns"), ("rows", "data")] {
        if let Some(raw) = table.take(old) {
            object.json(name, &Json::from_raw(raw));
        }
    }
    for (name, raw) in table.fields() {
        object.json(name, &Json::from_raw(raw));
    }
    object.end();
    Ok(Data {
        data_type: "dataframe".into(),
        data: Json::from_written(out),
        metadata: None,
        call_id: the_only_call(builder),
    })
}

fn add_payload(
    payload: Payload,
    duration_ms: Option<f64>,
    extra: Extra,
    state: &mut DecoderState,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    match payload {
        Payload::Start => builder.add(RunStarted::default(), extra)?,
        Payload::Thinking { content, stage } => builder.thinking(None, content.into(), stage, extra)?,
        Payload::Called { id, called } => builder.called(id, called, extra)?,
        Payload::Progress { id, progress } => builder.tool_progress(id, progress, extra)?,
        Payload::Finished { id, mut finished } => {
            finished.duration_ms = duration_ms;
            let mut extra = extra;
            if let Some(error) = &mut finished.error
                && error.code.as_deref() == Some(NO_CODE)
            {
                error.code = None;
                extra.set(ERROR_CODE, Json::string(NO_CODE));
            }
            builder.tool_finished(id, finished, extra)?;
        }
        Payload::Content { content, format, complete: false } => {
            builder.text(None, content.into(), format, extra)?
        }
        Payload::Content { content, format, complete: true } => {
            let mut extra = extra;
            let is_open = builder.state.texts.iter().any(|text| text.minted);
            // After the last text it adds nothing: the run's end marks the answer as complete.
            let is_new = !content.is_empty() || !builder.has_texts();
            if is_open && content.is_empty() {
                if let Some(format) = format {
                    extra.set("format", Json::string(&format));
                }
            } else if is_new {
                builder.text(None, content.into(), format, std::mem::take(&mut extra))?;
            }
            if let Some(text) = builder.state.texts.iter().rfind(|text| text.minted) {
                let message_id = text.id.clone();
                // Kept because it says more than that the text ends: it was the run's last piece.
                extra.set(LAST_PIECE, Json::from_valid("true"));
                builder.add(TextFinished { message_id, ..Default::default() }, extra)?;
            }
        }
        Payload::Whole { content } => state.answer = builder.whole_answer(&content, extra)?,
        Payload::Data(data) => builder.add(data, extra)?,
        Payload::Error(notice) => builder.add(notice, extra)?,
        Payload::End { status: End::Completed, summary } => {
            let reply = state.answer.take().and_then(|answer| builder.reply_of(&answer));
            builder.complete(RunCompleted { reply, summary, ..Default::default() }, extra)?;
        }
        Payload::End { status: End::Error, summary } => {
            builder.fail(None, RunFailed { summary, ..Default::default() }, extra)?;
        }
        Payload::End { status: End::Cancelled, summary } => {
            builder.add(RunCancelled { summary, ..Default::default() }, extra)?;
        }
    }
    Ok(())
}
