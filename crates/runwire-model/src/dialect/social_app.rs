//! `social-app`: social-app's profile of AG-UI (`docs/dialects/social-app.md`).
//!
//! It is read like AG-UI where it says the same. Figures that are internal to its back end are stored like
//! anything else and never written here.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::decode::{
    DecodeError, DecoderState, Envelope, Opened, owned, read_arguments, take_residue, weave_residue,
};
use super::encode::{Encode, Turn};
use super::{Frames, Weave, ag_ui};
use crate::event::{
    Body, ErrorInfo, Event, Extra, RunCancelled, RunFailed, TextDelta, TextFinished, TextStarted,
    ToolArgsDelta, ToolCalled, ToolFinished, ToolStatus,
};
use crate::json::{FieldError, Json, Object, ObjectWriter};
use crate::record::By;

/// Figures that the document keeps inside the back end.
const INTERNAL: &[&str] = &["inputTokens", "outputTokens", "cost", "latencyMs", "model"];
/// What finds their names in a frame.
static NAMED: LazyLock<Vec<memmem::Finder<'static>>> = LazyLock::new(|| {
    INTERNAL.iter().map(|key| memmem::Finder::new(&format!("\"{key}\"")).into_owned()).collect()
});
/// The stage of what happens outside any step.
const STAGE: &str = "worker";
/// The code of a run that was cancelled, which the document has no event for.
const CANCELLED: &str = "CANCELLED";

// Decoding

/// Tells whether a frame of AG-UI has a field that only this profile knows.
pub(super) fn shows(object: &Object<'_>) -> bool {
    ["args", "answer", "stage", "tool_call_id"].iter().any(|key| object.has(key))
}

pub(super) fn open(object: &mut Object<'_>) -> Result<Envelope, FieldError> {
    ag_ui::open(object)
}

pub(super) fn decode(
    state: &mut DecoderState,
    mut frame: Opened<'_>,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
    state.social = true;
    let residue = take_residue(&mut frame.object);
    if weave_residue(residue.as_ref(), weave)? {
        return Ok(());
    }
    let whole = frame.whole();
    let kind = frame.object.take_str("type")?;
    let object = &mut frame.object;
    match &*kind {
        "TOOL_CALL_ARGS" if object.has("args") => {
            let call_id = call_id(object)?;
            let args = object.take_json("args")?;
            let extra = rest(&mut frame, weave);
            weave.say(ToolArgsDelta { call_id, delta: args.text().to_owned() }, extra)?;
        }
        "TOOL_CALL_END" => {
            let call_id = call_id(object)?;
            let extra = rest(&mut frame, weave);
            let called = ag_ui::gathered(&call_id, weave);
            weave.say(called, extra)?;
        }
        "TOOL_CALL_RESULT" if object.has("tool_call_id") => tool_result(frame, weave)?,
        "TEXT_MESSAGE_END" if object.has("answer") => text_end(frame, weave)?,
        "RUN_ERROR" => run_error(frame, weave)?,
        _ => {
            if kind.starts_with("TOOL_CALL_") {
                *object = std::mem::take(object).renamed("messageId", "parentMessageId");
            }
            keep_stage(object, weave);
            let metadata = object.take_object("metadata")?;
            let object = std::mem::take(object);
            if !ag_ui::payload(state, &kind, object, metadata, weave)? {
                weave.foreign(whole, frame.name)?;
            }
        }
    }
    Ok(())
}

/// The stage repeats the step's name; only one that does not is kept.
fn keep_stage(object: &mut Object<'_>, weave: &Weave<'_>) {
    let step = weave.state.current_step().map_or(STAGE, |step| step.name.as_str());
    if object.get_str("stage").as_deref() == Some(step) {
        object.take("stage");
    }
}

fn rest(frame: &mut Opened<'_>, weave: &Weave<'_>) -> Extra {
    let mut object = std::mem::take(&mut frame.object);
    for envelope in ["threadId", "runId", "timestamp"] {
        object.take(envelope);
    }
    keep_stage(&mut object, weave);
    object.rest()
}

/// Takes the call's id; message and name repeat what its start said.
fn call_id(object: &mut Object<'_>) -> Result<String, FieldError> {
    object.take("messageId");
    object.take("toolCallName");
    object.take_required_id("toolCallId")
}

fn tool_result(mut frame: Opened<'_>, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
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
    let extra = rest(&mut frame, weave);
    if weave.known_call(Some(&id), name.as_deref().unwrap_or_default()).is_none()
        && !weave.state.calls.iter().chain(&weave.state.carried).any(|call| call.id == id)
    {
        let mut called =
            ToolCalled { name: name.clone().unwrap_or_else(|| "unknown".into()), ..Default::default() };
        read_arguments(&mut called, arguments);
        weave.imply_call(Some(id.clone()), called)?;
    }
    let finished = ToolFinished { name, status, result, error, message_id, ..Default::default() };
    Ok(weave.tool_finished(Some(id), finished, extra)?)
}

fn text_end(mut frame: Opened<'_>, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
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
    let extra = rest(&mut frame, weave);
    let open = id.as_deref().map(|id| weave.state.text_id(id).to_owned());
    let open = open.filter(|id| weave.state.texts.iter().any(|text| text.id == *id));
    finished.message_id = match open {
        // Pieces came before, as in AG-UI: the answer is their whole.
        Some(id) => {
            finished.content = weave.named_text(&id, &answer, By::Decoder)?;
            id
        }
        None => weave.imply_text_as(id, role, &answer)?,
    };
    Ok(weave.say(finished, extra)?)
}

fn run_error(mut frame: Opened<'_>, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
    let object = &mut frame.object;
    let message = object.take_str("message")?.into_owned();
    let code = object.take_id("code")?;
    let extra = rest(&mut frame, weave);
    if code.as_deref() == Some(CANCELLED) {
        let reason = Some(message).filter(|message| message != "cancelled");
        return Ok(weave.say(RunCancelled { reason, summary: None }, extra)?);
    }
    let error = ErrorInfo { code, ..ErrorInfo::message(message) };
    Ok(weave.fail(Some(error), RunFailed::default(), extra)?)
}

// Encoding

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {
    /// Calls whose start was told, and whether their arguments were.
    begun: Vec<(String, bool)>,
}

impl Encoder {
    fn frame(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        kind: &'static str,
        fields: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = begin(turn, out, kind);
        fields(&mut object);
        if turn.own {
            for (name, value) in
                turn.event().extra.iter().filter(|(name, _)| !matches!(*name, "stage" | "role"))
            {
                object.json(name, value);
            }
        }
        let is_told_whole = turn.has_residue();
        turn.write_residue(&mut object);
        object.end();
        let is_own = turn.own && !turn.event().extra.is_empty();
        if is_told_whole || is_own || carries_values(turn) {
            scrub_last(out);
        }
        out.end(Some(Cow::Borrowed(kind)));
    }

    fn call(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        kind: &'static str,
        id: &str,
        name: &str,
        args: Option<&Json>,
    ) {
        let call = turn.track.call(id);
        let message = call.and_then(|call| call.message_id.as_deref()).map(Cow::Borrowed);
        let message = message.unwrap_or_else(|| format!("{id}:message").into());
        let name = if name.is_empty() { call.map_or("unknown", |call| call.name.as_str()) } else { name };
        self.frame(turn, out, kind, |object| {
            object.str("messageId", &message);
            object.str("toolCallId", id);
            object.str("toolCallName", name);
            object.opt_json("args", args);
            object.str("stage", &stage(turn));
        });
    }
}

fn begin<'o>(turn: &Turn<'_>, out: &'o mut Frames, kind: &str) -> ObjectWriter<'o> {
    let mut object = ObjectWriter::begin(out.begin());
    object.str("type", kind);
    object.str("threadId", &turn.ids.thread);
    object.str("runId", &turn.ids.run);
    object
}

/// Takes the figures that must not leave the back end out of the frame that is being written.
fn scrub_last(out: &mut Frames) {
    out.rewrite_last(|data| {
        let frame: &RawValue = may_tell(data).then(|| serde_json::from_slice(data).ok()).flatten()?;
        let mut scrubbed = Vec::with_capacity(data.len());
        scrub(frame, &mut scrubbed);
        Some(scrubbed)
    });
}

/// Tells whether an internal figure may be named in a text; its key could also hide behind escapes.
fn may_tell(text: &[u8]) -> bool {
    NAMED.iter().any(|named| named.find(text).is_some())
        || memchr::memchr_iter(b'\\', text).any(|at| text.get(at + 1) == Some(&b'u'))
}

/// Tells whether an event carries values of the producer's own, in which figures could stand.
fn carries_values(turn: &Turn<'_>) -> bool {
    match &turn.event().body {
        Body::StepStarted(_) | Body::ToolArgsStarted(_) | Body::RunCompleted(_) => false,
        Body::TextFinished(finished) => finished.says_more(),
        _ => true,
    }
}

/// Copies a value without the internal figures, at any depth; all else stays the text it is.
fn scrub(value: &RawValue, out: &mut Vec<u8>) {
    if !may_tell(value.get().as_bytes()) {
        out.extend_from_slice(value.get().as_bytes());
    } else if let Some(object) = Object::of(value) {
        let mut writer = ObjectWriter::begin(out);
        for (name, value) in object.fields().filter(|(name, _)| !INTERNAL.contains(name)) {
            scrub(value, writer.key(name));
        }
        writer.end();
    } else if let Some(items) = array_of(value) {
        out.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            scrub(item, out);
        }
        out.push(b']');
    } else {
        out.extend_from_slice(value.get().as_bytes());
    }
}

fn array_of(value: &RawValue) -> Option<Vec<&RawValue>> {
    value.get().starts_with('[').then(|| serde_json::from_str(value.get()).ok()).flatten()
}

fn stage<'t>(turn: &'t Turn<'_>) -> Cow<'t, str> {
    let own = turn.event().extra.get("stage").filter(|_| turn.own).and_then(Json::as_string);
    own.unwrap_or_else(|| turn.track.step_of(turn.event()).map_or(STAGE, |step| step.name.as_str()).into())
}

impl Encode for Encoder {
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let track = turn.track;
        match &turn.event().body {
            Body::RunStarted(started) => {
                if started.message.is_some() || started.says_more() {
                    turn.keep_whole();
                }
                self.frame(turn, out, "RUN_STARTED", |_| {});
            }
            Body::RunCompleted(completed) => {
                if completed.result.is_some() {
                    turn.keep_whole();
                }
                self.frame(turn, out, "RUN_FINISHED", |_| {});
            }
            Body::RunFailed(failed) => self.frame(turn, out, "RUN_ERROR", |object| {
                object.str("message", &failed.error.message);
                match &failed.error.code {
                    Some(code) => object.str("code", code),
                    None => object.null("code"),
                }
            }),
            Body::RunCancelled(cancelled) => self.frame(turn, out, "RUN_ERROR", |object| {
                object.str("message", cancelled.reason.as_deref().unwrap_or("cancelled"));
                object.str("code", CANCELLED);
            }),
            Body::StepStarted(started) => {
                self.frame(turn, out, "STEP_STARTED", |object| object.str("stepName", &started.name));
            }
            Body::StepFinished(finished) => {
                if finished.error.is_some() || !track.ends_innermost(turn.event(), &finished.name) {
                    turn.keep_whole();
                }
                self.frame(turn, out, "STEP_FINISHED", |object| object.str("stepName", &finished.name));
            }
            Body::TextStarted(_) | Body::TextDelta(_) => {}
            Body::TextFinished(finished) => match track.text(&finished.message_id) {
                Some(text) => {
                    let whole = match &finished.content {
                        Some(content) => content.clone(),
                        None => turn.earlier.text(text.start, &text.id),
                    };
                    let own_role =
                        turn.event().extra.get("role").filter(|_| turn.own).and_then(Json::as_string);
                    let role = own_role.or(text.role.as_deref().map(Cow::Borrowed));
                    // Nothing was told of the text before: its end stands for all of it.
                    let like = |body: Body| Event { body, extra: Extra::default(), ..turn.event().clone() };
                    let (message_id, role_of) = (text.id.clone(), text.role.clone());
                    let started = TextStarted { message_id: message_id.clone(), role: role_of };
                    let delta = TextDelta { message_id, content: whole.clone(), format: None };
                    let content = None;
                    let ended = TextFinished { content, ..finished.clone() };
                    turn.keep_instead(vec![like(started.into()), like(delta.into()), like(ended.into())]);
                    self.text_end(turn, out, finished, &whole, role.as_deref().unwrap_or("assistant"));
                }
                None => self.slot(turn, out),
            },
            Body::ToolArgsStarted(started) => {
                // What the source tells bit by bit is told so in its own dialect, and gathered elsewhere.
                if turn.own {
                    let name = started.name.as_deref().unwrap_or_default();
                    self.begun.push((started.call_id.clone(), false));
                    self.call(turn, out, "TOOL_CALL_START", &started.call_id, name, None);
                }
            }
            Body::ToolArgsDelta(delta) => {
                let whole = Some(&delta.delta).filter(|_| turn.own).and_then(|text| Json::parse(text).ok());
                let whole = whole.filter(Json::is_object);
                let begun = self.begun.iter_mut().find(|(id, _)| *id == delta.call_id);
                if let (true, Some(args), Some(begun)) = (turn.own, whole, begun) {
                    begun.1 = true;
                    self.call(turn, out, "TOOL_CALL_ARGS", &delta.call_id, "", Some(&args));
                }
            }
            Body::ToolCalled(called) => self.called(turn, out, called),
            Body::ToolStarted(_) => {}
            Body::ToolFinished(finished) => self.finished(turn, out, finished),
            Body::StateSnapshot(snapshot) => {
                self.frame(turn, out, "STATE_SNAPSHOT", |object| object.json("snapshot", &snapshot.state));
            }
            Body::StateUpdated(updated) => {
                turn.keep_whole();
                self.frame(turn, out, "STATE_SNAPSHOT", |object| object.json("snapshot", &updated.state));
            }
            Body::StatePatched(_) => match turn.earlier.state() {
                Some(state) => {
                    self.frame(turn, out, "STATE_SNAPSHOT", |object| object.json("snapshot", &state))
                }
                None => self.slot(turn, out),
            },
            Body::MessagesSnapshot(snapshot) if snapshot.messages.text().starts_with('[') => {
                self.frame(turn, out, "MESSAGES_SNAPSHOT", |object| {
                    object.json("messages", &snapshot.messages)
                });
            }
            // The document exposes no figures of the back end.
            Body::Usage(_) => {}
            Body::Custom(custom) => match custom.name.as_deref() {
                Some(name) if !name.starts_with("runwire.") => self.frame(turn, out, "CUSTOM", |object| {
                    object.str("name", name);
                    object.json("value", &custom.value);
                }),
                _ => self.slot(turn, out),
            },
            Body::Foreign(foreign) => self.frame(turn, out, "RAW", |object| {
                object.json("event", &foreign.frame);
                object.opt_str("source", Some(foreign.dialect.as_str()).filter(|name| *name != "raw"));
            }),
            _ => self.slot(turn, out),
        }
    }

    fn slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        if matches!(turn.event().body, Body::Usage(_)) {
            return;
        }
        let mut object = begin(turn, out, "CUSTOM");
        object.str("name", &format!("runwire.{}", turn.event().body.type_name()));
        turn.write_native(object.key("value"));
        turn.told_in_slot();
        object.end();
        scrub_last(out);
        out.end(Some(Cow::Borrowed("CUSTOM")));
    }
}

impl Encoder {
    fn text_end(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        finished: &TextFinished,
        answer: &str,
        role: &str,
    ) {
        let or = |json: &Option<Json>, empty: &'static str| {
            json.as_ref().map_or(Cow::Borrowed(empty), |json| Cow::Owned(json.text().to_owned()))
        };
        self.frame(turn, out, "TEXT_MESSAGE_END", |object| {
            object.str("messageId", &finished.message_id);
            object.str("role", role);
            object.str("stage", &stage(turn));
            object.str("status", finished.status.as_deref().unwrap_or("success"));
            object.str("answer", answer);
            object.raw("key_points", &or(&finished.key_points, "[]"));
            object.str("result_type", finished.result_type.as_deref().unwrap_or("unknown"));
            object.raw("suggested_actions", &or(&finished.suggested_actions, "[]"));
            object.raw("error", &or(&finished.error, "null"));
            object.raw("ui_schema", &or(&finished.ui_schema, "{}"));
        });
    }

    fn called(&mut self, turn: &Turn<'_>, out: &mut Frames, called: &ToolCalled) {
        if called.arguments_text.is_some() || called.incomplete.is_some() || called.description.is_some() {
            turn.keep_whole();
        }
        let begun =
            self.begun.iter().position(|(id, _)| *id == called.call_id).map(|at| self.begun.remove(at));
        if begun.is_none() {
            self.call(turn, out, "TOOL_CALL_START", &called.call_id, &called.name, None);
        }
        if begun.is_none_or(|(_, told)| !told) {
            self.call(turn, out, "TOOL_CALL_ARGS", &called.call_id, &called.name, Some(&called.arguments));
        }
        self.call(turn, out, "TOOL_CALL_END", &called.call_id, &called.name, None);
    }

    fn finished(&mut self, turn: &Turn<'_>, out: &mut Frames, finished: &ToolFinished) {
        let call = turn.track.call(&finished.call_id);
        let name = finished.name.as_deref().or(call.map(|call| call.name.as_str())).unwrap_or("unknown");
        let called = call.and_then(|call| turn.earlier.call(call.start, &call.id));
        let minted = format!("{}:result", finished.call_id);
        let error = finished.error.as_ref();
        if error.is_some_and(|error| *error != ErrorInfo::message(error.message.clone())) {
            turn.keep_whole();
        }
        self.frame(turn, out, "TOOL_CALL_RESULT", |object| {
            object.str("messageId", finished.message_id.as_deref().filter(|_| turn.own).unwrap_or(&minted));
            object.str("role", "tool");
            object.str("stage", &stage(turn));
            object.str("tool_name", name);
            object.str("tool_call_id", &finished.call_id);
            match &called {
                Some(called) => object.json("tool_call_args", &called.arguments),
                None => object.raw("tool_call_args", "{}"),
            }
            object.str("status", finished.status.as_str());
            object.str("result", &finished.result.as_ref().map(Json::text_form).unwrap_or_default());
            match &finished.error {
                Some(error) => object.str("error", &error.message),
                None => object.null("error"),
            }
        });
    }
}
