//! `social-app`: social-app's profile of AG-UI (`docs/dialects/social-app.md`).
//!
//! It is read like AG-UI where it says the same. Figures that are internal to its back end are stored like
//! anything else and never written here (`scrub.rs`).

mod scrub;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::decode::{DecodeError, DecoderState, Opened, owned, read_arguments, take_residue, weave_residue};
use super::encode::{Encode, Turn};
use super::registry::{NamedIds, Read, Rule, Spec, StartRequest};
use super::{Frames, Weave, ag_ui};
use crate::event::{
    Body, ErrorInfo, Event, Extra, RunCancelled, RunFailed, TextDelta, TextFinished, TextStarted,
    ThinkingFinished, ToolArgsDelta, ToolCalled, ToolFinished, ToolStatus,
};
use crate::json::{FieldError, Json, Object, ObjectWriter};
use crate::record::By;

/// The stage of the document that answers; steps of other systems belong to it.
const WORKER: &str = "worker";
/// The stage of the document that chooses who answers.
const ROUTER: &str = "router";
/// The code of a run that was cancelled, which the document has no event for.
const CANCELLED: &str = "CANCELLED";

pub(super) const SPEC: Spec = Spec {
    name: "social-app",
    read: Some(Read {
        open: ag_ui::open,
        decode,
        detect: &[Rule { rank: 3, matches: is_social_app }],
        ending: ag_ui::ending,
        refinement: None,
        resumes_as_new_run: true,
        start: StartRequest::RunAgentInput,
    }),
    ids: NamedIds::Run,
    thread_field: "threadId",
    schema: include_str!("../../../../vectors/social-app/schema.json"),
    frames_section: "§2",
    offers_attach: false,
    has_unnamed_pieces: false,
    has_extensions: true,
};

// Decoding

fn is_social_app(frame: &Object<'_>) -> bool {
    ag_ui::is_ag_ui(frame) && shows(frame)
}

/// Returns whether a frame of AG-UI has a field that only this profile knows.
pub(super) fn shows(object: &Object<'_>) -> bool {
    ["args", "answer", "stage", "tool_call_id"].iter().any(|key| object.has(key))
}

pub(super) fn decode(
    state: &mut DecoderState,
    mut frame: Opened<'_>,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
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
            if kind.starts_with("STEP_") && object.get_str("name").is_some_and(|name| stage_of(&name) != name)
            {
                object.take("stepName");
                *object = std::mem::take(object).renamed("name", "stepName");
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

/// Returns the stage that a step belongs to.
fn stage_of(step: &str) -> &'static str {
    if step == ROUTER { ROUTER } else { WORKER }
}

/// Takes out a stage that repeats the step's; only another one is kept.
fn keep_stage(object: &mut Object<'_>, weave: &Weave<'_>) {
    let stage = weave.state.current_step().map_or(WORKER, |step| stage_of(&step.name));
    if object.get_str("stage").as_deref() == Some(stage) {
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
        turn.write_residue(&mut object);
        object.end();
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

fn stage<'t>(turn: &'t Turn<'_>) -> Cow<'t, str> {
    let own = turn.event().extra.get("stage").filter(|_| turn.own).and_then(Json::as_string);
    own.unwrap_or_else(|| turn.track.step_of(turn.event()).map_or(WORKER, |step| stage_of(&step.name)).into())
}

/// Returns whether a text goes to slots: the document has frames for the assistant's alone. One that a frame of this
/// dialect tells whole is that frame again.
fn is_aside(turn: &Turn<'_>, message_id: &str) -> bool {
    let Some(text) = turn.track.text(message_id) else { return false };
    let is_whole_frame = turn.own && text.start.seq == turn.record.seq;
    text.role.as_deref().is_some_and(|role| role != "assistant") && !is_whole_frame
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
            Body::StepStarted(started) => self.step(turn, out, "STEP_STARTED", &started.name),
            Body::StepFinished(finished) => {
                if finished.error.is_some() || !track.ends_innermost(turn.event(), &finished.name) {
                    turn.keep_whole();
                }
                self.step(turn, out, "STEP_FINISHED", &finished.name);
            }
            Body::TextStarted(started) if started.is_not_assistant() && !turn.is_silent() => {
                self.slot(turn, out)
            }
            Body::TextDelta(delta) if is_aside(turn, &delta.message_id) => self.slot(turn, out),
            Body::TextStarted(_) | Body::TextDelta(_) => {}
            Body::TextFinished(finished) => match track.text(&finished.message_id) {
                Some(text) if !is_aside(turn, &text.id) => {
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
                _ => self.slot(turn, out),
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
            // Told whole at its end.
            Body::ThinkingStarted(_) | Body::ThinkingDelta(_) => {}
            Body::ThinkingFinished(finished) => self.thought(turn, out, finished),
            // The document exposes no figures of the back end.
            Body::Usage(_) | Body::Metrics(_) => {}
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

    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        match turn.event().body {
            Body::Usage(_) | Body::Metrics(_) => {}
            Body::ThinkingStarted(_) | Body::ThinkingDelta(_) if !turn.full => {}
            _ => slot(turn, out, turn.event()),
        }
    }

    fn scrub(&self, event: &Event) -> Option<Event> {
        scrub::scrubbed(event)
    }

    /// What chunks of AG-UI began is told at its end, which the decoder adds.
    fn shows_implied(&self, turn: &Turn<'_>) -> bool {
        match &turn.event().body {
            Body::TextFinished(_) | Body::ThinkingFinished(_) | Body::ToolArgsStarted(_) => true,
            Body::ToolCalled(called) => self.begun.iter().any(|(id, _)| *id == called.call_id),
            _ => false,
        }
    }
}

/// Writes an event in the extension slot.
fn slot(turn: &Turn<'_>, out: &mut Frames, event: &Event) {
    let mut object = begin(turn, out, "CUSTOM");
    object.str("name", &format!("runwire.{}", event.body.type_name()));
    super::runwire::write(object.key("value"), turn.record, turn.ids, event);
    turn.told_in_slot();
    object.end();
    out.end(Some(Cow::Borrowed("CUSTOM")));
}

impl Encoder {
    /// Writes a step as a stage of the document; the name that it has in another system stands beside it.
    fn step(&mut self, turn: &Turn<'_>, out: &mut Frames, kind: &'static str, name: &str) {
        let stage = stage_of(name);
        self.frame(turn, out, kind, |object| {
            object.str("stepName", stage);
            object.opt_str("name", Some(name).filter(|name| *name != stage));
        });
    }

    /// Writes a whole thought; in full fidelity its pieces were told before.
    fn thought(&mut self, turn: &Turn<'_>, out: &mut Frames, finished: &ThinkingFinished) {
        let thought = turn.track.thought(&finished.message_id).filter(|_| !turn.full);
        let Some(thought) = thought else { return self.slot(turn, out) };
        if !turn.shows_slot() {
            return;
        }
        let whole = finished.content.clone().unwrap_or_else(|| turn.earlier.text(thought.start, &thought.id));
        let finished = ThinkingFinished { content: Some(whole), ..finished.clone() };
        slot(turn, out, &Event { body: finished.into(), ..turn.event().clone() });
    }

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
