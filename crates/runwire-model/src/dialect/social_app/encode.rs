//! Writes frames of social-app.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{CANCELLED, WORKER, scrub, stage_of};
use crate::dialect::Frames;
use crate::dialect::encode::{Encode, EncodeContext};
use crate::event::{
    Body, ErrorInfo, Event, Extra, TextDelta, TextFinished, TextStarted, ThinkingFinished, ToolCalled,
    ToolFinished,
};
use crate::json::{Json, ObjectWriter};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Encoder {
    /// Calls whose start was shown, and whether their arguments were.
    begun: Vec<(String, bool)>,
}

impl Encoder {
    fn frame(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &'static str,
        fields: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = begin(context, out, kind);
        fields(&mut object);
        if context.same_dialect {
            for (name, value) in
                context.event().extra.iter().filter(|(name, _)| !matches!(*name, "stage" | "role"))
            {
                object.json(name, value);
            }
        }
        context.write_residue(&mut object);
        object.end();
        out.end(Some(Cow::Borrowed(kind)));
    }

    fn call(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &'static str,
        id: &str,
        name: &str,
        args: Option<&Json>,
    ) {
        let call = context.shown.call(id);
        let message = call.and_then(|call| call.message_id.as_deref()).map(Cow::Borrowed);
        let message = message.unwrap_or_else(|| format!("{id}:message").into());
        let name = if name.is_empty() { call.map_or("unknown", |call| call.name.as_str()) } else { name };
        self.frame(context, out, kind, |object| {
            object.str("messageId", &message);
            object.str("toolCallId", id);
            object.str("toolCallName", name);
            object.opt_json("args", args);
            object.str("stage", &stage(context));
        });
    }
}

fn begin<'o>(context: &EncodeContext<'_>, out: &'o mut Frames, kind: &str) -> ObjectWriter<'o> {
    let mut object = ObjectWriter::begin(out.begin());
    object.str("type", kind);
    object.str("threadId", &context.ids.thread);
    object.str("runId", &context.ids.run);
    object
}

fn stage<'t>(context: &'t EncodeContext<'_>) -> Cow<'t, str> {
    let own = context.event().extra.get("stage").filter(|_| context.same_dialect).and_then(Json::as_string);
    own.unwrap_or_else(|| {
        context.shown.step_of(context.event()).map_or(WORKER, |step| stage_of(&step.name)).into()
    })
}

/// Returns true if a text goes to slots: the document has frames for the assistant's only. A whole text of a frame of
/// this dialect is that frame again.
fn needs_id(context: &EncodeContext<'_>, message_id: &str) -> bool {
    let Some(text) = context.shown.text(message_id) else { return false };
    let is_whole_frame = context.same_dialect && text.start.seq == context.record.seq;
    text.role.as_deref().is_some_and(|role| role != "assistant") && !is_whole_frame
}

impl Encode for Encoder {
    fn event(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let shown = context.shown;
        match &context.event().body {
            Body::RunStarted(started) => {
                if started.message.is_some() || started.says_more() {
                    context.keep_in_residue();
                }
                self.frame(context, out, "RUN_STARTED", |_| {});
            }
            Body::RunCompleted(completed) => {
                if completed.result.is_some() {
                    context.keep_in_residue();
                }
                self.frame(context, out, "RUN_FINISHED", |_| {});
            }
            Body::RunFailed(failed) => self.frame(context, out, "RUN_ERROR", |object| {
                object.str("message", &failed.error.message);
                match &failed.error.code {
                    Some(code) => object.str("code", code),
                    None => object.null("code"),
                }
            }),
            Body::RunCancelled(cancelled) => self.frame(context, out, "RUN_ERROR", |object| {
                object.str("message", cancelled.reason.as_deref().unwrap_or("cancelled"));
                object.str("code", CANCELLED);
            }),
            Body::StepStarted(started) => self.step(context, out, "STEP_STARTED", &started.name),
            Body::StepFinished(finished) => {
                if finished.error.is_some() || !shown.ends_innermost(context.event(), &finished.name) {
                    context.keep_in_residue();
                }
                self.step(context, out, "STEP_FINISHED", &finished.name);
            }
            Body::TextStarted(started) if started.is_not_assistant() && !context.is_silent() => {
                self.slot(context, out)
            }
            Body::TextDelta(delta) if needs_id(context, &delta.message_id) => self.slot(context, out),
            Body::TextStarted(_) | Body::TextDelta(_) => {}
            Body::TextFinished(finished) => match shown.text(&finished.message_id) {
                Some(text) if !needs_id(context, &text.id) => {
                    let whole = match &finished.content {
                        Some(content) => content.clone(),
                        None => context.history.text(text.start, &text.id),
                    };
                    let own_role = context
                        .event()
                        .extra
                        .get("role")
                        .filter(|_| context.same_dialect)
                        .and_then(Json::as_string);
                    let role = own_role.or(text.role.as_deref().map(Cow::Borrowed));
                    // Nothing was told of the text before: its end stands for all of it.
                    let like =
                        |body: Body| Event { body, extra: Extra::default(), ..context.event().clone() };
                    let (message_id, role_of) = (text.id.clone(), text.role.clone());
                    let started = TextStarted { message_id: message_id.clone(), role: role_of };
                    let delta = TextDelta { message_id, content: whole.clone(), format: None };
                    let content = None;
                    let ended = TextFinished { content, ..finished.clone() };
                    context.replace_in_residue(vec![
                        like(started.into()),
                        like(delta.into()),
                        like(ended.into()),
                    ]);
                    self.text_end(context, out, finished, &whole, role.as_deref().unwrap_or("assistant"));
                }
                // The message has ended, and was told: its end is told again with the answer that replaces it.
                None if finished.content.is_some() && context.event().subagent_run_id.is_none() => {
                    context.keep_in_residue();
                    let answer = finished.content.as_deref().unwrap_or_default();
                    self.text_end(context, out, finished, answer, "assistant");
                }
                _ => self.slot(context, out),
            },
            Body::ToolArgsStarted(started) => {
                // What the source tells bit by bit is told so in its own dialect, and gathered elsewhere.
                if context.same_dialect {
                    let name = started.name.as_deref().unwrap_or_default();
                    self.begun.push((started.call_id.clone(), false));
                    self.call(context, out, "TOOL_CALL_START", &started.call_id, name, None);
                }
            }
            Body::ToolArgsDelta(delta) => {
                let whole = Some(&delta.delta)
                    .filter(|_| context.same_dialect)
                    .and_then(|text| Json::parse(text).ok());
                let whole = whole.filter(Json::is_object);
                let begun = self.begun.iter_mut().find(|(id, _)| *id == delta.call_id);
                if let (true, Some(args), Some(begun)) = (context.same_dialect, whole, begun) {
                    begun.1 = true;
                    self.call(context, out, "TOOL_CALL_ARGS", &delta.call_id, "", Some(&args));
                }
            }
            Body::ToolCalled(called) => self.called(context, out, called),
            Body::ToolStarted(_) => {}
            Body::ToolFinished(finished) => self.finished(context, out, finished),
            Body::StateSnapshot(snapshot) => {
                self.frame(context, out, "STATE_SNAPSHOT", |object| object.json("snapshot", &snapshot.state));
            }
            Body::StateUpdated(updated) => {
                context.keep_in_residue();
                self.frame(context, out, "STATE_SNAPSHOT", |object| object.json("snapshot", &updated.state));
            }
            Body::StatePatched(_) => match context.history.state() {
                Some(state) => {
                    self.frame(context, out, "STATE_SNAPSHOT", |object| object.json("snapshot", &state))
                }
                None => self.slot(context, out),
            },
            Body::MessagesSnapshot(snapshot) if snapshot.messages.text().starts_with('[') => {
                self.frame(context, out, "MESSAGES_SNAPSHOT", |object| {
                    object.json("messages", &snapshot.messages)
                });
            }
            // TextDigests whole at its end.
            Body::ThinkingStarted(_) | Body::ThinkingDelta(_) => {}
            Body::ThinkingFinished(finished) => self.thought(context, out, finished),
            // The document exposes no figures of the back end.
            Body::Usage(_) | Body::Metrics(_) => {}
            Body::Custom(custom) => match custom.name.as_deref() {
                Some(name) if !name.starts_with("runwire.") => self.frame(context, out, "CUSTOM", |object| {
                    object.str("name", name);
                    object.json("value", &custom.value);
                }),
                _ => self.slot(context, out),
            },
            Body::Foreign(foreign) => self.frame(context, out, "RAW", |object| {
                object.json("event", &foreign.frame);
                object.opt_str("source", Some(foreign.dialect.as_str()).filter(|name| *name != "raw"));
            }),
            _ => self.slot(context, out),
        }
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        match context.event().body {
            Body::Usage(_) | Body::Metrics(_) => {}
            Body::ThinkingStarted(_) | Body::ThinkingDelta(_) if !context.full => {}
            _ => slot(context, out, context.event()),
        }
    }

    fn scrub(&self, event: &Event) -> Option<Event> {
        scrub::scrubbed(event)
    }

    /// Shows the implied end of AG-UI's chunks.
    fn shows_implied(&self, context: &EncodeContext<'_>) -> bool {
        match &context.event().body {
            Body::TextFinished(_) | Body::ThinkingFinished(_) | Body::ToolArgsStarted(_) => true,
            Body::ToolCalled(called) => self.begun.iter().any(|(id, _)| *id == called.call_id),
            _ => false,
        }
    }
}

/// Writes an event into the extension slot.
fn slot(context: &EncodeContext<'_>, out: &mut Frames, event: &Event) {
    let mut object = begin(context, out, "CUSTOM");
    object.str("name", &format!("runwire.{}", event.body.type_name()));
    crate::dialect::runwire::write(object.key("value"), context.record, context.ids, event);
    context.drop_residue();
    object.end();
    out.end(Some(Cow::Borrowed("CUSTOM")));
}

impl Encoder {
    /// Writes a step as a stage of the document, with its name in the other system.
    fn step(&mut self, context: &EncodeContext<'_>, out: &mut Frames, kind: &'static str, name: &str) {
        let stage = stage_of(name);
        self.frame(context, out, kind, |object| {
            object.str("stepName", stage);
            object.opt_str("name", Some(name).filter(|name| *name != stage));
        });
    }

    /// Writes a whole thought; in full fidelity its pieces were shown before.
    fn thought(&mut self, context: &EncodeContext<'_>, out: &mut Frames, finished: &ThinkingFinished) {
        let thought = context.shown.thought(&finished.message_id).filter(|_| !context.full);
        let Some(thought) = thought else { return self.slot(context, out) };
        if !context.shows_slot() {
            return;
        }
        let whole =
            finished.content.clone().unwrap_or_else(|| context.history.text(thought.start, &thought.id));
        let finished = ThinkingFinished { content: Some(whole), ..finished.clone() };
        slot(context, out, &Event { body: finished.into(), ..context.event().clone() });
    }

    fn text_end(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        finished: &TextFinished,
        answer: &str,
        role: &str,
    ) {
        let or = |json: &Option<Json>, empty: &'static str| {
            json.as_ref().map_or(Cow::Borrowed(empty), |json| Cow::Owned(json.text().to_owned()))
        };
        self.frame(context, out, "TEXT_MESSAGE_END", |object| {
            object.str("messageId", &finished.message_id);
            object.str("role", role);
            object.str("stage", &stage(context));
            object.str("status", finished.status.as_deref().unwrap_or("success"));
            object.str("answer", answer);
            object.raw("key_points", &or(&finished.key_points, "[]"));
            object.str("result_type", finished.result_type.as_deref().unwrap_or("unknown"));
            object.raw("suggested_actions", &or(&finished.suggested_actions, "[]"));
            object.raw("error", &or(&finished.error, "null"));
            object.raw("ui_schema", &or(&finished.ui_schema, "{}"));
        });
    }

    fn called(&mut self, context: &EncodeContext<'_>, out: &mut Frames, called: &ToolCalled) {
        if called.arguments_text.is_some() || called.incomplete.is_some() || called.description.is_some() {
            context.keep_in_residue();
        }
        let begun =
            self.begun.iter().position(|(id, _)| *id == called.call_id).map(|at| self.begun.remove(at));
        if begun.is_none() {
            self.call(context, out, "TOOL_CALL_START", &called.call_id, &called.name, None);
        }
        if begun.is_none_or(|(_, has_arguments)| !has_arguments) {
            self.call(context, out, "TOOL_CALL_ARGS", &called.call_id, &called.name, Some(&called.arguments));
        }
        self.call(context, out, "TOOL_CALL_END", &called.call_id, &called.name, None);
    }

    fn finished(&mut self, context: &EncodeContext<'_>, out: &mut Frames, finished: &ToolFinished) {
        let call = context.shown.call(&finished.call_id);
        let name = finished.name.as_deref().or(call.map(|call| call.name.as_str())).unwrap_or("unknown");
        let called = call.and_then(|call| context.history.call(call.start, &call.id));
        let minted = format!("{}:result", finished.call_id);
        let error = finished.error.as_ref();
        if error.is_some_and(|error| *error != ErrorInfo::message(error.message.clone())) {
            context.keep_in_residue();
        }
        self.frame(context, out, "TOOL_CALL_RESULT", |object| {
            object.str(
                "messageId",
                finished.message_id.as_deref().filter(|_| context.same_dialect).unwrap_or(&minted),
            );
            object.str("role", "tool");
            object.str("stage", &stage(context));
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
