//! Writes AG-UI that the official client accepts, whatever the source.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::interrupts::{InterruptPlacement, placement};
use super::{ENCRYPTED, SPAN, UNNAMED_SOURCE, last_user_message};
use crate::dialect::encode::{Encode, EncodeContext};
use crate::dialect::shown_state::Tokens;
use crate::dialect::{APPROVAL_SCHEMA, Frames, are_messages, asks_for_approval};
use crate::event::{
    Body, Event, InteractionKind, InteractionRequested, RunStarted, Summary, ToolCalled, ToolStatus, Usage,
};
use crate::json::{Json, Object, ObjectWriter};
use crate::patch;
use crate::record::ChatMessage;
use crate::window::user_message_id;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Encoder {
    /// Whether a `RUN_STARTED` has no `RUN_FINISHED` yet.
    active: bool,
    /// Open steps, as the frames name them.
    steps: Vec<Step>,
    /// Open subagents: id and name.
    subagents: Vec<(String, String)>,
    /// Subagents shown since the last `RUN_STARTED`; none may begin again.
    shown_subagents: Vec<String>,
    /// Whether the run waits without an interaction, which only a slot can show.
    waits: bool,
    /// The spans of open thoughts whose ids are not the thoughts' own.
    spans: Vec<(String, String)>,
    /// Ids of such spans since the last `RUN_STARTED`. The client holds them for the run's own.
    shown_spans: Vec<String>,
    /// Thoughts of subagents in slots, because their ids are among those.
    hidden: Vec<String>,
    /// Tokens since the last `RUN_FINISHED`.
    usage: Option<Tokens>,
    /// Calls that an interrupt ended while their arguments were arriving.
    cut_calls: Vec<String>,
    /// The most recent messages, with the subagent of each: no result may have their ids, and no call of another
    /// subagent may belong to them.
    messages: Vec<(String, Option<String>)>,
    /// The subagents that showed an activity since the last `RUN_STARTED`; no other may change it.
    activities: Vec<(String, Option<String>)>,
}

/// A step that is open on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Step {
    id: String,
    /// Its name, with a number while another of the same name is open.
    name: String,
    subagent: Option<String>,
}

impl Step {
    fn write(&self, object: &mut ObjectWriter<'_>) {
        object.str("stepName", &self.name);
        object.opt_str("subagentRunId", self.subagent.as_deref());
    }
}

/// Adds an item to a list, and drops the oldest if it is full.
fn remember<T>(list: &mut Vec<T>, item: T) {
    if list.len() == REMEMBERED {
        list.remove(0);
    }
    list.push(item);
}

impl Encoder {
    fn frame(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &str,
        fields: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.frame_with(context, out, kind, None, fields);
    }

    fn frame_with(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &str,
        status: Option<ToolStatus>,
        fields: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let event = context.event();
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", kind);
        fields(&mut object);
        if let Some(subagent) = &event.subagent_run_id
            && !kind.starts_with("RUN_")
            && !kind.starts_with("SUBAGENT_")
            && kind != "MESSAGES_SNAPSHOT"
        {
            object.str("subagentRunId", subagent);
        }
        let mut metadata = None;
        if context.same_dialect {
            if let Some(time) = context.record.source_time {
                object.u64("timestamp", time.0);
            }
            for (name, value) in event.extra.iter() {
                match name {
                    "metadata" => metadata = Some(value),
                    SPAN if matches!(event.body, Body::ThinkingStarted(_)) => {}
                    // The client takes an explicit null for malformed.
                    _ if value.is_null() => {}
                    _ => object.json(name, value),
                }
            }
        }
        if metadata.is_some() || status.is_some() || context.has_residue() {
            let mut inner = object.object("metadata");
            for (name, raw) in metadata.and_then(Object::of_json).iter().flat_map(Object::fields) {
                inner.raw(name, raw.get());
            }
            if let Some(status) = status {
                inner.str("status", status.as_str());
            }
            context.write_residue(&mut inner);
            inner.end();
        }
        object.end();
        out.end(None);
    }

    /// Writes a frame that the protocol needs, without the event's own fields.
    fn plain(&mut self, out: &mut Frames, kind: &str, fields: impl FnOnce(&mut ObjectWriter<'_>)) {
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", kind);
        fields(&mut object);
        // A reader that decodes this must not take it for an event.
        let mut metadata = object.object("metadata");
        metadata.raw("runwire", "[]");
        metadata.end();
        object.end();
        out.end(None);
    }

    /// Begins a response, if none is open: after an interrupt, a start and the open steps come first.
    fn ensure_active(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        if self.active {
            return;
        }
        self.active = true;
        self.shown_subagents.clear();
        self.activities.clear();
        self.shown_spans.clear();
        self.plain(out, "RUN_STARTED", |object| {
            object.str("threadId", &context.ids.thread);
            object.str("runId", &context.ids.run);
        });
        for step in self.steps.clone() {
            self.plain(out, "STEP_STARTED", |object| step.write(object));
        }
        for (id, name) in self.subagents.clone() {
            self.shown_subagents.push(id.clone());
            self.plain(out, "SUBAGENT_STARTED", |object| {
                object.str("subagentRunId", &id);
                object.str("name", &name);
            });
        }
    }

    fn run_started(&mut self, context: &EncodeContext<'_>, out: &mut Frames, started: &RunStarted) {
        self.active = true;
        // The source's own input is told as it came, where it says what was asked.
        let usable = context.same_dialect
            && started.input.as_ref().is_some_and(|input| {
                let asked = last_user_message(input).map_or((None, None), |(id, text)| (id, Some(text)));
                input.is_object() && asked == (started.message_id.clone(), started.message.clone())
            });
        if started.agent.is_some() || (started.input.is_some() && !usable) {
            context.keep_in_residue();
        }
        self.frame(context, out, "RUN_STARTED", |object| {
            object.str("threadId", &context.ids.thread);
            object.str("runId", &context.ids.run);
            object.opt_str("parentRunId", started.parent_run_id.as_deref());
            match (&started.input, &started.message) {
                (Some(input), _) if usable => object.json("input", input),
                (_, Some(message)) => {
                    let mut input = object.object("input");
                    input.str("threadId", &context.ids.thread);
                    input.str("runId", &context.ids.run);
                    input.array("messages", [message], |out, message| {
                        let mut user = ObjectWriter::begin(out);
                        let minted = user_message_id(&context.ids.run);
                        user.str("id", started.message_id.as_deref().unwrap_or(&minted));
                        user.str("role", "user");
                        user.str("content", message);
                        user.end();
                    });
                    input.end();
                }
                _ => {}
            }
        });
    }

    /// Takes the token counts since the last end of a response, or those that only the run's summary has.
    fn take_usage(&mut self, context: &EncodeContext<'_>, summary: Option<&Summary>) -> Option<Tokens> {
        let summed = || {
            let usage = context.shown.summed_usage(summary)?;
            let mut tokens = Tokens::default();
            tokens.add(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens);
            Some(tokens)
        };
        let tokens = self.usage.take().or_else(summed)?;
        let usage = Usage {
            prompt_tokens: Some(tokens.prompt).filter(|_| tokens.has_parts()),
            completion_tokens: Some(tokens.completion).filter(|_| tokens.has_parts()),
            total_tokens: Some(tokens.total),
        };
        context.replace_in_residue(vec![Event::new(usage), context.event().clone()]);
        Some(tokens)
    }

    /// Closes steps and subagents, which a response must not leave open.
    fn close_spans(&mut self, out: &mut Frames) {
        for (id, _) in self.subagents.clone().into_iter().rev() {
            self.plain(out, "SUBAGENT_FINISHED", |object| object.str("subagentRunId", &id));
        }
        for step in self.steps.clone().into_iter().rev() {
            self.plain(out, "STEP_FINISHED", |object| step.write(object));
        }
    }

    /// Ends the calls whose arguments are arriving, which a response must not leave open either. No call may start
    /// twice, so the rest of them goes to slots.
    fn cut_calls(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        for call in context.shown.calls.iter().filter(|call| call.has_pieces && !call.called) {
            if !self.cut_calls.contains(&call.id) {
                self.cut_calls.push(call.id.clone());
                self.plain(out, "TOOL_CALL_END", |object| object.str("toolCallId", &call.id));
            }
        }
    }

    /// Ends a response with the open interactions.
    fn interrupt(&mut self, context: &EncodeContext<'_>, out: &mut Frames, settled: Option<&str>) {
        self.ensure_active(context, out);
        self.cut_calls(context, out);
        self.close_spans(out);
        self.active = false;
        // What is asked again after an answer tells nothing new.
        let usage = if settled.is_none() { self.take_usage(context, None) } else { None };
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", "RUN_FINISHED");
        object.str("threadId", &context.ids.thread);
        object.str("runId", &context.ids.run);
        let mut outcome = object.object("outcome");
        outcome.str("type", "interrupt");
        let questions = context.shown.interactions.iter().filter(|asked| Some(asked.id.as_str()) != settled);
        outcome.array("interrupts", questions, |out, asked| {
            let question = context.history.interaction(asked.position, &asked.id).unwrap_or_else(|| {
                InteractionRequested {
                    interaction_id: asked.id.clone(),
                    kind: asked.kind,
                    ..Default::default()
                }
            });
            write_interrupt(out, context, &question);
        });
        outcome.end();
        write_usage(&mut object, usage);
        if let Some(time) = context.record.source_time.filter(|_| context.same_dialect) {
            object.u64("timestamp", time.0);
        }
        write_metadata(context, &mut object);
        object.end();
        out.end(None);
    }

    fn finished(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        result: Option<&Json>,
        summary: Option<&Summary>,
        cancelled: bool,
    ) {
        self.ensure_active(context, out);
        self.close_spans(out);
        (self.active, self.steps, self.subagents) = (false, Vec::new(), Vec::new());
        let pending: Vec<&str> = context.shown.calls.iter().map(|call| call.id.as_str()).collect();
        let usage = self.take_usage(context, summary);
        self.frame(context, out, "RUN_FINISHED", |object| {
            object.str("threadId", &context.ids.thread);
            object.str("runId", &context.ids.run);
            object.opt_json("result", result.filter(|result| !result.is_null()));
            if context.same_dialect && context.event().extra.get("outcome").is_some() {
                // The source's own outcome follows with its other fields.
            } else if cancelled {
                let mut outcome = object.object("outcome");
                outcome.str("type", "cancelled");
                outcome.end();
            } else if !pending.is_empty() {
                let mut outcome = object.object("outcome");
                outcome.str("type", "success");
                outcome.array("pendingToolCallIds", pending, crate::json::write_str);
                outcome.end();
            }
            write_usage(object, usage);
        });
    }

    fn called(&mut self, context: &EncodeContext<'_>, out: &mut Frames, called: &ToolCalled) {
        if let Some(at) = self.cut_calls.iter().position(|cut| *cut == called.call_id) {
            self.cut_calls.remove(at);
            return self.all_messages(context, out);
        }
        let call = context.shown.call(&called.call_id);
        let begun = call.is_some_and(|call| call.has_pieces);
        if called.description.is_some() || called.incomplete.is_some() {
            context.keep_in_residue();
        }
        let text = called.arguments_text.as_deref().unwrap_or(called.arguments.text());
        let sent = match call {
            Some(call) if begun => context.history.arguments(call.start, &call.id),
            _ => String::new(),
        };
        let shown_name = call.map(|call| call.name.as_str()).filter(|name| !name.is_empty());
        let renamed = begun && shown_name.unwrap_or(UNNAMED_TOOL) != called.name;
        let replaced = renamed || (!sent.is_empty() && !same_arguments(&sent, called));
        if replaced {
            context.keep_in_residue();
        }
        if !begun {
            let parent = self.parent(context, called.message_id.as_deref());
            self.frame(context, out, "TOOL_CALL_START", |object| {
                object.str("toolCallId", &called.call_id);
                object.str("toolCallName", &called.name);
                object.opt_str("parentMessageId", parent);
            });
        }
        if sent.is_empty() && text != "{}" {
            self.frame_bare(context, out, "TOOL_CALL_ARGS", |object| {
                object.str("toolCallId", &called.call_id);
                object.str("delta", text);
            });
        }
        if begun {
            self.frame(context, out, "TOOL_CALL_END", |object| object.str("toolCallId", &called.call_id));
        } else {
            self.frame_bare(context, out, "TOOL_CALL_END", |object| {
                object.str("toolCallId", &called.call_id)
            });
        }
        if replaced {
            self.all_messages(context, out);
        }
    }

    /// Writes a frame beside the event's main one, without the event's own fields.
    fn frame_bare(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &str,
        fields: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", kind);
        fields(&mut object);
        object.opt_str("subagentRunId", context.event().subagent_run_id.as_deref());
        write_metadata(context, &mut object);
        object.end();
        out.end(None);
    }

    /// Writes all messages, where shown ones must be replaced.
    fn all_messages(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        context.keep_in_residue();
        let messages = context.history.messages();
        self.frame_bare(context, out, "MESSAGES_SNAPSHOT", |object| {
            object.array("messages", &messages, write_message);
        });
    }
}

/// Writes the residue, if one is due, into AG-UI's metadata.
fn write_metadata(context: &EncodeContext<'_>, object: &mut ObjectWriter<'_>) {
    if context.has_residue() {
        let mut metadata = object.object("metadata");
        context.write_residue(&mut metadata);
        metadata.end();
    }
}

fn write_usage(object: &mut ObjectWriter<'_>, tokens: Option<Tokens>) {
    let Some(tokens) = tokens else { return };
    object.array("usage", [tokens], |out, tokens| {
        let mut object = ObjectWriter::begin(out);
        // Where only the total is known, the parts are not told.
        if tokens.has_parts() {
            object.u64("inputTokens", tokens.prompt);
            object.u64("outputTokens", tokens.completion);
        }
        object.u64("totalTokens", tokens.total);
        object.end();
    });
}

/// Returns true if the pieces of a call's arguments equal the call's.
fn same_arguments(sent: &str, called: &ToolCalled) -> bool {
    match &called.arguments_text {
        Some(text) => text.trim() == sent.trim(),
        None if sent == called.arguments.text() => true,
        None => serde_json::from_str::<serde_json::Value>(sent)
            .is_ok_and(|sent| called.arguments.to_value().is_ok_and(|arguments| sent == arguments)),
    }
}

fn write_message(out: &mut Vec<u8>, message: &ChatMessage) {
    let mut object = ObjectWriter::begin(out);
    object.str("id", &message.id);
    object.str("role", &message.role);
    if !message.content.is_empty() || message.tool_calls.is_empty() {
        object.str("content", &message.content);
    }
    if !message.tool_calls.is_empty() {
        object.array("toolCalls", &message.tool_calls, |out, (id, name, arguments)| {
            let mut call = ObjectWriter::begin(out);
            call.str("id", id);
            call.str("type", "function");
            let mut function = call.object("function");
            function.str("name", name);
            function.str("arguments", arguments);
            function.end();
            call.end();
        });
    }
    object.opt_str("toolCallId", message.tool_call_id.as_deref());
    object.end();
}

fn write_interrupt(out: &mut Vec<u8>, context: &EncodeContext<'_>, asked: &InteractionRequested) {
    let approval = asked.kind == InteractionKind::Approval;
    let schema = asked.schema.as_ref().filter(|schema| schema.is_object());
    let native = match (approval, schema, &asked.call_id) {
        (true, None, _) => true,
        (true, Some(schema), _) => asks_for_approval(schema) && schema.text() != APPROVAL_SCHEMA,
        (false, Some(schema), _) => !asks_for_approval(schema),
        (false, None, call) => call.is_none(),
    };
    let implied = matches!(asked.reason.as_deref(), Some("tool_call" | "input_required"));
    let more = implied
        || schema.is_some() != asked.schema.is_some()
        || asked.ui.is_some()
        || asked.name.is_some()
        || asked.arguments.is_some()
        || asked.title.is_some();
    let mut object = ObjectWriter::begin(out);
    object.str("id", &asked.interaction_id);
    object.str(
        "reason",
        match (&asked.reason, approval) {
            (Some(reason), _) => reason,
            (None, true) => "tool_call",
            (None, false) => "input_required",
        },
    );
    object.opt_str("message", asked.description.as_deref().or(asked.title.as_deref()));
    object.opt_str("toolCallId", asked.call_id.as_deref());
    match schema {
        Some(schema) => object.json("responseSchema", schema),
        None if approval && asked.call_id.is_none() => object.raw("responseSchema", APPROVAL_SCHEMA),
        None => {}
    }
    object.opt_str("expiresAt", asked.expires_at.as_deref());
    if more || !native || context.full {
        let mut metadata = object.object("metadata");
        let event = Event::new(asked.clone()).to_json();
        metadata.json("runwire", &event);
        metadata.end();
    }
    object.end();
}

/// Returns a patch as it may be written: without operations that RFC 6902 does not define, which readers drop.
fn defined(patch: &Json) -> Cow<'_, Json> {
    patch::defined(patch).map_or(Cow::Borrowed(patch), Cow::Owned)
}

/// Returns a patch as it may be written, and keeps the whole one beside it where that is less.
fn kept_whole<'p>(context: &EncodeContext<'_>, patch: &'p Json) -> Cow<'p, Json> {
    let written = defined(patch);
    if matches!(written, Cow::Owned(_)) {
        context.keep_in_residue();
    }
    written
}

/// Returns whether the official client would take this for a JSON Patch.
fn is_patch(patch: &Json) -> bool {
    let Ok(operations) = serde_json::from_str::<Vec<&RawValue>>(patch.text()) else { return false };
    let is_pointer = |pointer: Option<Cow<'_, str>>| {
        pointer.is_some_and(|text| {
            let escapes = text
                .match_indices('~')
                .all(|(at, _)| matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')));
            (text.is_empty() || text.starts_with('/')) && escapes
        })
    };
    let fits = |operation: Object<'_>| {
        let rest = match operation.get_str("op").as_deref() {
            Some("add" | "replace" | "test") => operation.has("value"),
            Some("move" | "copy") => is_pointer(operation.get_str("from")),
            Some("remove") => true,
            _ => false,
        };
        rest && is_pointer(operation.get_str("path"))
    };
    operations.into_iter().all(|operation| Object::of(operation).is_some_and(fits))
}

impl Encode for Encoder {
    fn event(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let event = context.event();
        match &event.body {
            Body::RunStarted(started) => return self.run_started(context, out, started),
            Body::InteractionRequested(_) => match placement(context) {
                InterruptPlacement::Here => return self.interrupt(context, out, None),
                InterruptPlacement::Later => return,
                InterruptPlacement::Never => return self.slot(context, out),
            },
            Body::RunSuspended(_) if !context.shown.interactions.is_empty() => {
                if placement(context) == InterruptPlacement::Here {
                    self.interrupt(context, out, None);
                }
                return;
            }
            Body::RunCompleted(completed) => {
                return self.finished(
                    context,
                    out,
                    completed.result.as_ref(),
                    completed.summary.as_ref(),
                    false,
                );
            }
            Body::RunCancelled(cancelled) => {
                if cancelled.reason.is_some() {
                    context.keep_in_residue();
                }
                return self.finished(context, out, None, cancelled.summary.as_ref(), true);
            }
            Body::Usage(usage) => {
                let tokens = self.usage.get_or_insert_default();
                tokens.add(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens);
                return;
            }
            Body::TextDelta(delta) if delta.content.is_empty() => return,
            Body::ThinkingDelta(delta) if delta.content.is_empty() => return,
            Body::ToolStarted(_) => return,
            _ => {}
        }
        self.ensure_active(context, out);
        match &event.body {
            Body::RunFailed(failed) => {
                (self.active, self.steps, self.subagents) = (false, Vec::new(), Vec::new());
                let error = &failed.error;
                if error.kind.is_some() || error.details.is_some() || error.retryable.is_some() {
                    context.keep_in_residue();
                }
                let usage = self.take_usage(context, failed.summary.as_ref());
                self.frame(context, out, "RUN_ERROR", |object| {
                    object.str("message", &error.message);
                    object.opt_str("code", error.code.as_deref());
                    write_usage(object, usage);
                });
            }
            // While other questions are open, the client is asked again.
            Body::InteractionResolved(resolved) => {
                self.slot(context, out);
                context.mark_shown();
                if placement(context) == InterruptPlacement::Here {
                    self.interrupt(context, out, Some(&resolved.interaction_id));
                }
            }
            Body::RunSuspended(_) => {
                self.waits = true;
                self.slot(context, out);
            }
            Body::RunResumed(_) if self.waits => {
                self.waits = false;
                self.slot(context, out);
            }
            // The start after the interrupt says it.
            Body::RunResumed(_) => {}
            Body::StepStarted(started) => {
                let taken = |name: &str| self.steps.iter().any(|open| open.name == name);
                let name = if taken(&started.name) {
                    (2..)
                        .map(|n| format!("{}#{n}", started.name))
                        .find(|name| !taken(name))
                        .unwrap_or_default()
                } else {
                    started.name.clone()
                };
                self.frame(context, out, "STEP_STARTED", |object| object.str("stepName", &name));
                let (id, subagent) =
                    (event.step_id.clone().unwrap_or_default(), event.subagent_run_id.clone());
                self.steps.push(Step { id, name, subagent });
            }
            Body::StepFinished(finished) => {
                let open = self.steps.iter().rposition(|step| Some(&step.id) == event.step_id.as_ref());
                let Some(at) = open else { return };
                let name = self.steps.remove(at).name;
                if finished.error.is_some() || !context.shown.ends_innermost(event, &finished.name) {
                    context.keep_in_residue();
                }
                self.frame(context, out, "STEP_FINISHED", |object| object.str("stepName", &name));
            }
            Body::TextStarted(started) => {
                let role =
                    started.role.as_deref().filter(|role| matches!(*role, "developer" | "system" | "user"));
                remember(&mut self.messages, (started.message_id.clone(), event.subagent_run_id.clone()));
                self.frame(context, out, "TEXT_MESSAGE_START", |object| {
                    object.str("messageId", &started.message_id);
                    object.str("role", role.unwrap_or("assistant"));
                });
            }
            Body::TextDelta(delta) => {
                if delta.format.is_some() && context.full {
                    context.keep_in_residue();
                }
                self.frame(context, out, "TEXT_MESSAGE_CONTENT", |object| {
                    object.str("messageId", &delta.message_id);
                    object.str("delta", &delta.content);
                });
            }
            Body::TextFinished(finished) => {
                let replaces = context.replacement(finished).is_some();
                if finished.says_more() || replaces {
                    context.keep_in_residue();
                }
                if context.shown.text(&finished.message_id).is_some() {
                    self.frame(context, out, "TEXT_MESSAGE_END", |object| {
                        object.str("messageId", &finished.message_id);
                    });
                } else if finished.says_more() && !replaces {
                    // The message has ended: what its source says of it now has no frame.
                    self.slot(context, out);
                }
                if replaces {
                    self.all_messages(context, out);
                }
            }
            Body::ThinkingStarted(started)
                if event.subagent_run_id.is_some() && self.shown_spans.contains(&started.message_id) =>
            {
                remember(&mut self.hidden, started.message_id.clone());
                self.slot(context, out);
            }
            Body::ThinkingDelta(delta) if self.hidden.contains(&delta.message_id) => self.slot(context, out),
            Body::ThinkingFinished(finished) if self.hidden.contains(&finished.message_id) => {
                self.hidden.retain(|hidden| *hidden != finished.message_id);
                self.slot(context, out);
            }
            Body::ThinkingStarted(started) => {
                remember(&mut self.messages, (started.message_id.clone(), event.subagent_run_id.clone()));
                let span = event.extra.get(SPAN).filter(|_| context.same_dialect).and_then(Json::as_string);
                let is_open = |id: &str| self.spans.iter().any(|(_, span)| span == id);
                let is_shown = |id: &str| self.messages.iter().any(|(shown, _)| shown == id);
                let is_held = |id: &str| {
                    event.subagent_run_id.is_some() && self.shown_spans.iter().any(|shown| shown == id)
                };
                let span = span.filter(|span| !is_open(span) && !is_shown(span) && !is_held(span));
                // An earlier thought's span may have the id of this thought.
                let span = match span {
                    None if is_open(&started.message_id) => {
                        Some(format!("{}:span", started.message_id).into())
                    }
                    span => span,
                };
                if let Some(span) = &span {
                    self.spans.push((started.message_id.clone(), span.clone().into_owned()));
                    remember(&mut self.shown_spans, span.clone().into_owned());
                }
                let id = span.as_deref().unwrap_or(&started.message_id);
                self.frame(context, out, "REASONING_START", |object| object.str("messageId", id));
                self.frame_bare(context, out, "REASONING_MESSAGE_START", |object| {
                    object.str("messageId", &started.message_id);
                    object.str("role", "reasoning");
                });
            }
            Body::ThinkingDelta(delta) => self.frame(context, out, "REASONING_MESSAGE_CONTENT", |object| {
                object.str("messageId", &delta.message_id);
                object.str("delta", &delta.content);
            }),
            Body::ThinkingFinished(finished) => {
                if context.shown.thought(&finished.message_id).is_none() {
                    return;
                }
                if finished.content.is_some() {
                    context.keep_in_residue();
                }
                self.frame(context, out, "REASONING_MESSAGE_END", |object| {
                    object.str("messageId", &finished.message_id);
                });
                let span = self.spans.iter().position(|(id, _)| *id == finished.message_id);
                let span = span.map(|at| self.spans.remove(at).1);
                let id = span.as_deref().unwrap_or(&finished.message_id);
                self.frame_bare(context, out, "REASONING_END", |object| object.str("messageId", id));
            }
            Body::ToolArgsStarted(started) => {
                let parent = self.parent(context, started.message_id.as_deref());
                self.frame(context, out, "TOOL_CALL_START", |object| {
                    object.str("toolCallId", &started.call_id);
                    object.str("toolCallName", started.name.as_deref().unwrap_or(UNNAMED_TOOL));
                    object.opt_str("parentMessageId", parent);
                });
            }
            Body::ToolArgsDelta(delta) if self.cut_calls.contains(&delta.call_id) => self.slot(context, out),
            Body::ToolArgsDelta(delta) => self.frame(context, out, "TOOL_CALL_ARGS", |object| {
                object.str("toolCallId", &delta.call_id);
                object.str("delta", &delta.delta);
            }),
            Body::ToolCalled(called) => self.called(context, out, called),
            Body::ToolFinished(finished) => {
                if finished.result.is_some() && finished.error.is_some() {
                    context.keep_in_residue();
                }
                let status = Some(finished.status).filter(|status| *status != ToolStatus::Success);
                let minted = format!("{}:result", finished.call_id);
                let fits =
                    |id: &&str| context.same_dialect && self.messages.iter().all(|(shown, _)| shown != id);
                let id = finished.message_id.as_deref().filter(fits).unwrap_or(&minted);
                self.frame_with(context, out, "TOOL_CALL_RESULT", status, |object| {
                    object.str("messageId", id);
                    object.str("toolCallId", &finished.call_id);
                    match finished
                        .result
                        .as_ref()
                        .filter(|result| context.same_dialect && result.text().starts_with('['))
                    {
                        Some(parts) => object.json("content", parts),
                        None => object.str("content", &finished.text_form().unwrap_or_default()),
                    }
                    object.str("role", "tool");
                });
            }
            Body::StateSnapshot(snapshot) => {
                self.frame(context, out, "STATE_SNAPSHOT", |object| object.json("snapshot", &snapshot.state));
            }
            Body::StateUpdated(updated) => {
                context.keep_in_residue();
                self.frame(context, out, "STATE_SNAPSHOT", |object| object.json("snapshot", &updated.state));
            }
            Body::StatePatched(patched) if is_patch(&defined(&patched.patch)) => {
                let delta = kept_whole(context, &patched.patch);
                self.frame(context, out, "STATE_DELTA", |object| object.json("delta", &delta));
            }
            Body::MessagesSnapshot(snapshot) if are_messages(&snapshot.messages) => {
                self.frame(context, out, "MESSAGES_SNAPSHOT", |object| {
                    object.json("messages", &snapshot.messages)
                });
            }
            Body::ActivitySnapshot(snapshot) if snapshot.content.is_object() => {
                let known = self.activities.iter().position(|(id, _)| *id == snapshot.message_id);
                if snapshot.replace != Some(false) || known.is_none() {
                    known.map(|at| self.activities.remove(at));
                    let owner = (snapshot.message_id.clone(), event.subagent_run_id.clone());
                    remember(&mut self.activities, owner);
                }
                self.frame(context, out, "ACTIVITY_SNAPSHOT", |object| {
                    object.str("messageId", &snapshot.message_id);
                    object.str("activityType", &snapshot.activity_type);
                    object.json("content", &snapshot.content);
                    if let Some(replace) = snapshot.replace {
                        object.bool("replace", replace);
                    }
                });
            }
            Body::ActivityPatched(patched)
                if is_patch(&defined(&patched.patch)) && self.may_change(&patched.message_id, event) =>
            {
                let patch = kept_whole(context, &patched.patch);
                self.frame(context, out, "ACTIVITY_DELTA", |object| {
                    object.str("messageId", &patched.message_id);
                    object.str("activityType", &patched.activity_type);
                    object.json("patch", &patch);
                });
            }
            Body::SubagentStarted(started) => {
                let id = event.subagent_run_id.clone().unwrap_or_default();
                if id.is_empty() || self.shown_subagents.contains(&id) || self.subagents.len() == REMEMBERED {
                    return self.slot(context, out);
                }
                let name = started.name.clone().unwrap_or_else(|| "subagent".to_owned());
                self.frame(context, out, "SUBAGENT_STARTED", |object| {
                    object.str("subagentRunId", &id);
                    object.str("name", &name);
                });
                remember(&mut self.shown_subagents, id.clone());
                self.subagents.push((id, name));
            }
            Body::SubagentFinished(finished) => {
                let Some(id) = self.end_subagent(event.subagent_run_id.as_deref()) else {
                    return self.slot(context, out);
                };
                self.frame(context, out, "SUBAGENT_FINISHED", |object| {
                    object.str("subagentRunId", &id);
                    object.opt_json("result", finished.result.as_ref().filter(|result| !result.is_null()));
                });
            }
            Body::SubagentFailed(failed) => {
                let Some(id) = self.end_subagent(event.subagent_run_id.as_deref()) else {
                    return self.slot(context, out);
                };
                self.frame(context, out, "SUBAGENT_ERROR", |object| {
                    object.str("subagentRunId", &id);
                    object.str("message", &failed.message);
                    object.opt_str("code", failed.code.as_deref());
                });
            }
            Body::Custom(custom) => match custom.name.as_deref() {
                Some(ENCRYPTED) if custom.value.is_object() => {
                    self.frame(context, out, "REASONING_ENCRYPTED_VALUE", |object| {
                        for (name, raw) in Object::of_json(&custom.value).iter().flat_map(Object::fields) {
                            object.raw(name, raw.get());
                        }
                    });
                }
                // Without a name, or with one that could be taken for a slot, it goes into one.
                Some(name) if !name.starts_with("runwire.") => self.frame(context, out, "CUSTOM", |object| {
                    object.str("name", name);
                    object.json("value", &custom.value);
                }),
                _ => self.slot(context, out),
            },
            Body::Foreign(foreign) => {
                if foreign.name.is_some() {
                    context.keep_in_residue();
                }
                self.frame(context, out, "RAW", |object| {
                    object.json("event", &foreign.frame);
                    object.opt_str(
                        "source",
                        Some(foreign.dialect.as_str()).filter(|name| *name != UNNAMED_SOURCE),
                    );
                });
            }
            _ => self.slot(context, out),
        }
    }

    fn knows_subagents(&self) -> bool {
        true
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        // Nothing may follow the end of a response but a new start.
        self.ensure_active(context, out);
        let name = format!("runwire.{}", context.event().body.type_name());
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", "CUSTOM");
        object.str("name", &name);
        context.write_native(object.key("value"));
        context.drop_residue();
        object.end();
        out.end(None);
    }

    fn shows_implied(&self, _context: &EncodeContext<'_>) -> bool {
        true
    }
}

/// The name of a tool whose call began without one.
const UNNAMED_TOOL: &str = "unknown";
/// Subagents, messages and activities that are remembered by id.
const REMEMBERED: usize = 64;

impl Encoder {
    fn end_subagent(&mut self, id: Option<&str>) -> Option<String> {
        let at = self.subagents.iter().position(|(open, _)| Some(open.as_str()) == id)?;
        Some(self.subagents.remove(at).0)
    }

    /// Returns the message that a call belongs to, unless it is another subagent's.
    fn parent<'m>(&self, context: &EncodeContext<'_>, message_id: Option<&'m str>) -> Option<&'m str> {
        let subagent = &context.event().subagent_run_id;
        let owner = self.messages.iter().rfind(|(shown, _)| Some(shown.as_str()) == message_id);
        let fits = subagent.is_none() || owner.is_none_or(|(_, owner)| owner == subagent);
        if !fits {
            context.keep_in_residue();
        }
        message_id.filter(|_| fits)
    }

    /// Returns whether the client takes a change of an activity from the event's subagent.
    fn may_change(&self, activity: &str, event: &Event) -> bool {
        let owner = self.activities.iter().find(|(id, _)| id == activity).map(|(_, owner)| owner);
        event.subagent_run_id.is_none() || owner == Some(&event.subagent_run_id)
    }
}
