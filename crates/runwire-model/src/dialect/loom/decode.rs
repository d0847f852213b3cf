//! Reads frames of Loom.

use std::borrow::Cow;

use super::{NODE, NODE_ID, OUTSIDE, minted_node_id};
use crate::dialect::decode::{
    DecodeError, DecoderState, Envelope, OpenedFrame, decode_residue, owned, read_arguments, slot_event,
};
use crate::dialect::encode::{CALL_ID, looks_minted};
use crate::dialect::{RecordBuilder, SESSION_ID};
use crate::event::{
    Body, Checkpoint, Custom, ErrorInfo, Extra, GotExpanded, GotNodeCompleted, GotNodeFailed, GotNodeStarted,
    GotPlanned, InteractionKind, InteractionRequested, RunCancelled, RunCompleted, RunFailed, RunStarted,
    StateSnapshot, StateUpdated, ToolCalled, ToolFinished, ToolStatus, TotBacktracked, TotEvaluated,
    TotExpanded, Usage,
};
use crate::json::{FieldError, Json, Object};
use crate::limits;
use crate::record::EventOrigin;

pub(crate) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
    let kind = object.get_str("type");
    // After a reply, a run start or a node opens the next run.
    let starts = matches!(kind.as_deref(), Some("run_start" | "node_enter"));
    let run = match kind.as_deref() {
        Some("run_start") => object.get_id("run_id")?,
        _ => None,
    };
    let thread = object.take_id("session_id")?;
    object.take("event_id");
    let begins = kind.as_deref() == Some("run_start");
    Ok(Envelope { thread, run, time: None, starts, begins })
}

pub(crate) fn decode(
    _state: &mut DecoderState,
    mut frame: OpenedFrame<'_>,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    let session = frame.envelope.thread.take().filter(|_| builder.is_pending());
    // A node's start names the whole span, and the payload of got_expand has a node_id of its own.
    if !matches!(frame.object.get_str("type").as_deref(), Some("got_expand" | "node_enter"))
        && let Some(node_id) = frame.object.take("node_id").map(Json::from_raw)
    {
        builder.name_step(&node_id);
    }
    decode_payload(frame, builder)?;
    if let Some(session) = session.filter(|session| *session != builder.state.thread_id) {
        builder.add_to_start(SESSION_ID, Json::string(&session));
    }
    Ok(())
}

fn decode_payload(mut frame: OpenedFrame<'_>, builder: &mut RecordBuilder<'_>) -> Result<(), DecodeError> {
    if decode_residue(Some(&mut frame.object), builder)? {
        return Ok(());
    }
    let whole = frame.whole();
    let OpenedFrame { mut object, name, .. } = frame;
    if object.has("reply") && !object.has("type") {
        return reply(object, builder);
    }
    let kind = object.take_str("type")?;
    if !payload(&kind, object, builder)? {
        builder.foreign(whole, name)?;
    }
    Ok(())
}

/// Adds the events of a payload; returns `false` for a type that the document does not define.
///
/// The export form has the same payloads under other names, and calls this too.
pub(crate) fn payload(
    kind: &str,
    mut object: Object<'_>,
    builder: &mut RecordBuilder<'_>,
) -> Result<bool, DecodeError> {
    let names_call = object.get_str("call_id").is_some_and(|id| looks_minted(&id, &builder.state.run_id));
    match kind {
        "run_start" => {
            object.take_id("run_id")?;
            let (message, agent) = (owned(object.take_opt_str("message")?), object.take_id("agent")?);
            builder.add(RunStarted { message, agent, ..Default::default() }, object.rest())?;
        }
        "node_enter" => {
            let name = object.take_required_id("id")?;
            let node_id = object.take("node_id").map(Json::from_raw);
            let node_id = node_id.as_ref().and_then(Json::as_string).filter(|id| is_id(id));
            let mut extra = object.rest();
            if let Some(id) = node_id.as_deref() {
                keep_node_id(&mut extra, id, &name, builder);
            }
            builder.step_started(name, extra)?;
            if let Some(step) = builder.state.steps.last_mut() {
                step.source_id = node_id.map(Cow::into_owned);
            }
        }
        "node_exit" => {
            let (name, error) = (object.take_required_id("id")?, node_error(&mut object)?);
            builder.step_finished(name, error, object.rest())?;
        }
        "message_chunk" => {
            let content = object.take_str("content")?;
            let extra = extra_of(object, builder);
            builder.text(None, content, None, extra)?;
        }
        "thought_chunk" => {
            let content = object.take_str("content")?;
            let extra = extra_of(object, builder);
            builder.thinking(None, content, None, extra)?;
        }
        "usage" => {
            let usage = Usage {
                prompt_tokens: object.take_opt("prompt_tokens")?,
                completion_tokens: object.take_opt("completion_tokens")?,
                total_tokens: object.take_opt("total_tokens")?,
            };
            builder.add(usage, object.rest())?;
        }
        "values" => {
            let state = object.take_json("state")?;
            builder.add(StateSnapshot { state }, object.rest())?;
        }
        "updates" => {
            let (step, state) = (object.take_required_id("id")?, object.take_json("state")?);
            builder.add(StateUpdated { step, state }, object.rest())?;
        }
        "custom" => {
            let value = object.take_json("value")?;
            custom(value, object.rest(), builder)?;
        }
        "checkpoint" => {
            let mut take = |key| object.take_present(key).map(Json::from_raw);
            let checkpoint = Checkpoint {
                checkpoint_id: take("checkpoint_id"),
                timestamp: take("timestamp"),
                step: take("step"),
                state: take("state"),
                thread: take("thread_id"),
                checkpoint_ns: take("checkpoint_ns"),
            };
            builder.add(checkpoint, object.rest())?;
        }
        "tot_expand" => {
            let candidates = object.take_json("candidates")?;
            builder.add(TotExpanded { candidates }, object.rest())?;
        }
        "tot_evaluate" => {
            let (chosen, scores) = (object.take_json("chosen")?, object.take_json("scores")?);
            builder.add(TotEvaluated { chosen, scores }, object.rest())?;
        }
        "tot_backtrack" => {
            let (reason, to_depth) = (owned(object.take_opt_str("reason")?), object.take_json("to_depth")?);
            builder.add(TotBacktracked { reason, to_depth }, object.rest())?;
        }
        "got_plan" => {
            let mut take = |key| object.take_present(key).map(Json::from_raw);
            let planned = GotPlanned {
                node_count: take("node_count"),
                edge_count: take("edge_count"),
                node_ids: take("node_ids"),
            };
            builder.add(planned, object.rest())?;
        }
        "got_node_start" => {
            let node_id = object.take_required_id("id")?;
            builder.add(GotNodeStarted { node_id }, object.rest())?;
        }
        "got_node_complete" => {
            let node_id = object.take_required_id("id")?;
            let result_summary = owned(object.take_opt_str("result_summary")?);
            builder.add(GotNodeCompleted { node_id, result_summary }, object.rest())?;
        }
        "got_node_failed" => {
            let (node_id, error) = (object.take_required_id("id")?, object.take_str("error")?.into_owned());
            builder.add(GotNodeFailed { node_id, error }, object.rest())?;
        }
        "got_expand" => {
            let node_id = object.take_required_id("node_id")?;
            let mut take = |key| object.take_present(key).map(Json::from_raw);
            let (nodes_added, edges_added) = (take("nodes_added"), take("edges_added"));
            builder.add(GotExpanded { node_id, nodes_added, edges_added }, object.rest())?;
        }
        "tool_call_chunk" => {
            let (id, name) = (object.take_id("call_id")?, object.take_id("name")?);
            let delta = object.take_str("arguments_delta")?.into_owned();
            builder.call_arguments(id, name, delta, object.rest())?;
        }
        "tool_call" => {
            let (id, called) = call(&mut object)?;
            builder.called(id, called, object.rest())?;
        }
        "tool_start" => {
            let (id, name) = (object.take_id("call_id")?, object.take_id("name")?);
            builder.tool_started(id, name, object.rest())?;
        }
        "tool_output" => {
            let (id, name) = (object.take_id("call_id")?, object.take_id("name")?);
            let content = object.take_str("content")?.into_owned();
            builder.tool_output(id, name, content, object.rest())?;
        }
        "tool_end" => {
            let (id, name) = (object.take_id("call_id")?, object.take_id("name")?);
            let result = object.take_present("result").map(Json::from_raw);
            let failed = object.take_opt::<bool>("is_error")?.unwrap_or(false);
            builder.tool_finished(id, ended(name, result, failed), object.rest())?;
        }
        "tool_approval" => {
            let (id, called) = call(&mut object)?;
            approval(id, called, object.rest(), builder)?;
        }
        _ => return Ok(false),
    }
    if names_call {
        builder.extend_added(CALL_ID, Json::from_valid("true"));
    }
    Ok(true)
}

/// Returns the fields that the document does not define, and the piece's node if it is not the step's name.
fn extra_of(mut object: Object<'_>, builder: &RecordBuilder<'_>) -> Extra {
    let node = object.take_present("id").map(Json::from_raw);
    let mut extra = object.rest();
    keep_node(&mut extra, node, builder);
    extra
}

/// Keeps a piece's node if it does not repeat the step's name.
pub(crate) fn keep_node(extra: &mut Extra, node: Option<Json>, builder: &RecordBuilder<'_>) {
    let other = node.filter(|node| node.as_string().as_deref() != Some(current_node(builder)));
    if let Some(node) = other {
        extra.set(NODE, node);
    }
}

/// Keeps the producer's id of a node run if it differs from the one that would be minted.
fn keep_node_id(extra: &mut Extra, node_id: &str, name: &str, builder: &RecordBuilder<'_>) {
    if node_id != minted_node_id(name, builder.state.run_steps()) {
        extra.set(NODE_ID, Json::string(node_id));
    }
}

/// Returns whether a text can be an id.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= limits::ID_BYTES
}

/// Returns the name of the current node.
fn current_node<'w>(builder: &'w RecordBuilder<'_>) -> &'w str {
    builder.step().map_or(OUTSIDE, |step| step.name.as_str())
}

/// Adds the whole answer, which ends the run.
pub(crate) fn reply(mut object: Object<'_>, builder: &mut RecordBuilder<'_>) -> Result<(), DecodeError> {
    let reply = object.take_str("reply")?.into_owned();
    let stop_reason = owned(object.take_opt_str("stop_reason")?);
    let error = object.take_present("error").map(|raw| ErrorInfo::read_lenient(&Json::from_raw(raw)));
    let reasoning = object.get_str("reasoning_content").map(Cow::into_owned).unwrap_or_default();
    let mut extra = object.rest();
    builder.atomically(|builder| {
        builder.whole_thinking(&reasoning)?;
        match (stop_reason.as_deref(), error) {
            (Some("cancelled"), _) => {
                builder.whole_text(&reply, EventOrigin::Decoder, Extra::default())?;
                builder.add(RunCancelled::default(), extra)?;
            }
            (Some("error"), error) => {
                builder.whole_text(&reply, EventOrigin::Decoder, Extra::default())?;
                builder.fail(error, RunFailed::default(), extra)?;
            }
            (None, Some(error)) => {
                builder.whole_text(&reply, EventOrigin::Decoder, Extra::default())?;
                builder.fail(Some(error), RunFailed::default(), extra)?;
            }
            (other, error) => {
                if let Some(reason) = other {
                    extra.set("stop_reason", Json::string(reason));
                }
                if let Some(error) = error {
                    extra.set("error", Json::string(&error.message));
                }
                builder.complete(RunCompleted { reply: Some(reply), ..Default::default() }, extra)?;
            }
        }
        Ok(())
    })
}

fn node_error(object: &mut Object<'_>) -> Result<Option<ErrorInfo>, FieldError> {
    let Some(raw) = object.take_present("result") else { return Ok(None) };
    if raw.get() == "\"Ok\"" {
        return Ok(None);
    }
    let problem = "must be \"Ok\" or {\"Err\": string}";
    let mut result = Object::of(raw).ok_or_else(|| FieldError::new("result", problem))?;
    match result.take("Err") {
        Some(error) => Ok(Some(ErrorInfo::message(Json::from_raw(error).text_form()))),
        None if result.has("Ok") => Ok(None),
        None => Err(FieldError::new("result", problem)),
    }
}

fn call(object: &mut Object<'_>) -> Result<(Option<String>, ToolCalled), FieldError> {
    let (id, name) = (object.take_id("call_id")?, object.take_required_id("name")?);
    let mut called = ToolCalled { name, ..Default::default() };
    read_arguments(&mut called, object.take("arguments").map(Json::from_raw));
    Ok((id, called))
}

fn ended(name: Option<String>, result: Option<Json>, failed: bool) -> ToolFinished {
    let mut finished = ToolFinished { name, ..Default::default() };
    if failed {
        finished.status = ToolStatus::Failure;
        finished.error = result.map(|result| ErrorInfo::message(result.text_form()));
    } else {
        finished.result = result;
    }
    finished
}

pub(crate) fn custom(value: Json, extra: Extra, builder: &mut RecordBuilder<'_>) -> Result<(), DecodeError> {
    let slot = Object::of_json(&value).and_then(|mut object| object.take("runwire").map(Json::from_raw));
    match slot.as_ref().and_then(slot_event) {
        Some(event) => builder.slot(event)?,
        None => builder.add(Custom { name: None, value }, extra)?,
    }
    Ok(())
}

fn approval(
    id: Option<String>,
    called: ToolCalled,
    extra: Extra,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    let mut asked = InteractionRequested {
        kind: InteractionKind::Approval,
        name: Some(called.name.clone()),
        arguments: Some(called.arguments.clone()),
        ..Default::default()
    };
    builder.state.check_limits(&Body::InteractionRequested(asked.clone()))?;
    let known = builder.known_call(id.as_deref(), &called.name);
    let call_id = match known {
        Some(call_id) => call_id,
        None => builder.imply_call(id.clone(), called)?,
    };
    asked.interaction_id = match id {
        Some(id) => id,
        None => builder.mint_approval(),
    };
    asked.call_id = Some(call_id);
    Ok(builder.ask(asked, extra)?)
}
