//! Reads frames of social-app.

use super::{CANCELLED, WORKER, stage_of};
use crate::dialect::decode::{DecodeError, DecoderState, OpenedFrame, decode_residue, owned, read_arguments};
use crate::dialect::{RecordBuilder, ag_ui};
use crate::event::{
    ErrorInfo, Extra, RunCancelled, RunFailed, TextFinished, ToolArgsDelta, ToolCalled, ToolFinished,
    ToolStatus,
};
use crate::json::{FieldError, Json, Object};
use crate::record::EventOrigin;

pub(crate) fn decode(
    state: &mut DecoderState,
    mut frame: OpenedFrame<'_>,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    if decode_residue(Some(&mut frame.object), builder)? {
        return Ok(());
    }
    let whole = frame.whole();
    let kind = frame.object.take_str("type")?;
    let object = &mut frame.object;
    match &*kind {
        "TOOL_CALL_ARGS" if object.has("args") => {
            let call_id = call_id(object)?;
            let args = object.take_json("args")?;
            let extra = rest(&mut frame, builder);
            builder.add(ToolArgsDelta { call_id, delta: args.text().to_owned() }, extra)?;
        }
        "TOOL_CALL_END" => {
            let name = object.take_id("toolCallName")?;
            let call_id = call_id(object)?;
            let extra = rest(&mut frame, builder);
            let called = ag_ui::gathered(&call_id, name, builder);
            builder.add(called, extra)?;
        }
        "TOOL_CALL_RESULT" if object.has("tool_call_id") => tool_result(frame, builder)?,
        "TEXT_MESSAGE_END" if object.has("answer") => text_end(frame, builder)?,
        "RUN_ERROR" => run_error(frame, builder)?,
        _ => {
            if kind.starts_with("TOOL_CALL_") {
                *object = std::mem::take(object).renamed("messageId", "parentMessageId");
            }
            if kind.starts_with("STEP_") && object.get_str("name").is_some_and(|name| stage_of(&name) != name)
            {
                object.take("stepName");
                *object = std::mem::take(object).renamed("name", "stepName");
            }
            keep_stage(object, builder);
            let metadata = object.take_object("metadata")?;
            let object = std::mem::take(object);
            if !ag_ui::payload(state, &kind, object, metadata, builder)? {
                builder.foreign(whole, frame.name)?;
            }
        }
    }
    Ok(())
}

/// Drops a stage that repeats the step's.
fn keep_stage(object: &mut Object<'_>, builder: &RecordBuilder<'_>) {
    let stage = builder.state.current_step().map_or(WORKER, |step| stage_of(&step.name));
    if object.get_str("stage").as_deref() == Some(stage) {
        object.take("stage");
    }
}

fn rest(frame: &mut OpenedFrame<'_>, builder: &RecordBuilder<'_>) -> Extra {
    let mut object = std::mem::take(&mut frame.object);
    for envelope in ["threadId", "runId", "timestamp"] {
        object.take(envelope);
    }
    keep_stage(&mut object, builder);
    object.rest()
}

/// Takes the call's id; its message and name repeat the start's.
fn call_id(object: &mut Object<'_>) -> Result<String, FieldError> {
    object.take("messageId");
    object.take("toolCallName");
    object.take_required_id("toolCallId")
}

fn tool_result(mut frame: OpenedFrame<'_>, builder: &mut RecordBuilder<'_>) -> Result<(), DecodeError> {
    let object = &mut frame.object;
    let id = object.take_required_id("tool_call_id")?;
    object.take("toolCallId");
    let (message_id, name) = (object.take_id("messageId")?, object.take_id("tool_name")?);
    object.take("role");
    let arguments = object.take_present("tool_call_args").map(Json::from_raw);
    let status = object.take_opt("status")?.unwrap_or(ToolStatus::Success);
    let result = object.take_present("result").map(Json::from_raw);
    let error = object.take_present("error").map(|raw| ErrorInfo::read_lenient(&Json::from_raw(raw)));
    // A failed call that gave nothing back has an empty text here.
    let result = result.filter(|result| error.is_none() || result.text() != "\"\"");
    let extra = rest(&mut frame, builder);
    if builder.known_call(Some(&id), name.as_deref().unwrap_or_default()).is_none()
        && !builder.state.calls.iter().chain(&builder.state.carried).any(|call| call.id == id)
    {
        let mut called =
            ToolCalled { name: name.clone().unwrap_or_else(|| "unknown".into()), ..Default::default() };
        read_arguments(&mut called, arguments);
        builder.imply_call(Some(id.clone()), called)?;
    }
    let finished = ToolFinished { name, status, result, error, message_id, ..Default::default() };
    Ok(builder.tool_finished(Some(id), finished, extra)?)
}

fn text_end(mut frame: OpenedFrame<'_>, builder: &mut RecordBuilder<'_>) -> Result<(), DecodeError> {
    let object = &mut frame.object;
    let id = object.take_id("messageId")?;
    let role = object.take_id("role")?.filter(|role| role != "assistant");
    let answer = owned(object.take_opt_str("answer")?).unwrap_or_default();
    let full = |json: &Json| !matches!(json.text(), "[]" | "{}");
    let mut take = |key| object.take_present(key).map(Json::from_raw);
    let (key_points, suggested_actions) =
        (take("key_points").filter(full), take("suggested_actions").filter(full));
    let (ui_schema, error) = (take("ui_schema").filter(full), take("error"));
    let mut finished = TextFinished {
        status: object.take_id("status")?.filter(|status| status != "success"),
        result_type: object.take_id("result_type")?.filter(|kind| kind != "unknown"),
        key_points,
        suggested_actions,
        ui_schema,
        error,
        ..Default::default()
    };
    let extra = rest(&mut frame, builder);
    // Pieces may have come before, as in AG-UI: the answer is their whole.
    let named = match &id {
        Some(id) => builder.named_text(id, &answer, EventOrigin::Decoder)?,
        None => None,
    };
    (finished.message_id, finished.content) = match named {
        Some((id, content)) if content.is_none() || builder.is_open_text(&id) => (id, content),
        // A message that is told whole twice is another one.
        _ => (builder.imply_text_as(id, role, &answer)?, None),
    };
    Ok(builder.add(finished, extra)?)
}

fn run_error(mut frame: OpenedFrame<'_>, builder: &mut RecordBuilder<'_>) -> Result<(), DecodeError> {
    let object = &mut frame.object;
    let message = object.take_str("message")?.into_owned();
    let code = object.take_id("code")?;
    let extra = rest(&mut frame, builder);
    if code.as_deref() == Some(CANCELLED) {
        let reason = Some(message).filter(|message| message != "cancelled");
        return Ok(builder.add(RunCancelled { reason, summary: None }, extra)?);
    }
    let error = ErrorInfo { code, ..ErrorInfo::message(message) };
    Ok(builder.fail(Some(error), RunFailed::default(), extra)?)
}
