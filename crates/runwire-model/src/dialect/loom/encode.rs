//! Writes frames of Loom.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{NODE, NODE_ID, OUTSIDE, minted_node_id};
use crate::dialect::encode::{Encode, EncodeContext};
use crate::dialect::shown_state::{ShownStep, ShownText};
use crate::dialect::{Frames, SESSION_ID};
use crate::event::{Body, InteractionKind, InteractionRequested, Summary, ToolStatus, Usage};
use crate::json::{Json, Object, ObjectWriter};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Encoder {
    event_id: u64,
    /// The `session_id` of the run, where it is not the thread's id.
    session: Option<String>,
    /// The producer's ids of open node runs, each with the ordinal of its step.
    named: Vec<(u64, String)>,
    /// Id of the node run that ended last, until another begins.
    ended: Option<String>,
    /// Id of the node run of the last text: it belongs to the reply.
    spoke: Option<String>,
}

/// Writes the frames of an event in Loom's vocabulary, in either envelope.
///
/// Type and payload are the same in both forms of Loom's output; only names and nesting differ.
pub(crate) trait Form {
    /// Writes a frame of a type.
    fn frame(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &'static str,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
    );
    /// Writes the reply.
    fn reply(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
    );
    /// Returns true if the frame of a step's end identifies the step.
    fn tells_step_end(&self, context: &EncodeContext<'_>, name: &str) -> bool {
        context.shown.ends_innermost(context.event(), name)
    }
    /// Writes the slot.
    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames);
    /// Writes an event into the slot, if the reader's options show it.
    fn slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        if context.shows_slot() {
            self.write_slot(context, out);
        }
    }
}

impl Form for Encoder {
    fn frame(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &'static str,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        // The payload of got_expand has a node_id of its own.
        let node_id = self.node_id(context).filter(|_| kind != "got_expand");
        let mut object = self.envelope(context, out, node_id.as_deref());
        object.str("type", kind);
        payload(&mut object);
        finish(context, object);
        out.end(None);
        if kind == "message_chunk" {
            self.spoke = node_id;
        }
    }

    fn reply(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let node_id = self.spoke.clone().or_else(|| self.node_id(context));
        let mut object = self.envelope(context, out, node_id.as_deref());
        payload(&mut object);
        finish(context, object);
        out.end(None);
    }

    /// Among nodes of one name and id, the innermost ends.
    fn tells_step_end(&self, context: &EncodeContext<'_>, name: &str) -> bool {
        let Some(ended) = context.shown.step_of(context.event()) else { return true };
        let node_id = self.id_of(ended);
        let same = |step: &&ShownStep| step.name == name && self.id_of(step) == node_id;
        context.shown.steps.iter().rfind(same).is_none_or(|step| step.ordinal == ended.ordinal)
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let node_id = self.node_id(context);
        let mut object = self.envelope(context, out, node_id.as_deref());
        object.str("type", "custom");
        let mut value = object.object("value");
        context.write_native(value.key("runwire"));
        value.end();
        context.drop_residue();
        object.end();
        out.end(None);
    }
}

impl Encoder {
    fn envelope<'o>(
        &mut self,
        context: &EncodeContext<'_>,
        out: &'o mut Frames,
        node_id: Option<&str>,
    ) -> ObjectWriter<'o> {
        self.event_id += 1;
        let mut object = ObjectWriter::begin(out.begin());
        object.str("session_id", self.session.as_deref().unwrap_or(&context.ids.thread));
        object.opt_str("node_id", node_id);
        object.u64("event_id", context.order_base.saturating_add(self.event_id));
        object
    }

    /// Returns the id of an event's node run, else of the one that ended last.
    fn node_id(&self, context: &EncodeContext<'_>) -> Option<String> {
        context.shown.step_of(context.event()).map(|step| self.id_of(step)).or_else(|| self.ended.clone())
    }

    /// Returns the id of a node run: the producer's, else a minted one.
    fn id_of(&self, step: &ShownStep) -> String {
        let named = self.named.iter().find(|(ordinal, _)| *ordinal == step.ordinal);
        named.map_or_else(|| minted_node_id(&step.name, step.ordinal - 1), |(_, id)| id.clone())
    }

    /// Stores the ids of a start's envelope.
    fn begin(&mut self, context: &EncodeContext<'_>) {
        let id = |name| context.event().extra.get(name).and_then(Json::as_string).map(Cow::into_owned);
        match &context.event().body {
            Body::RunStarted(_) => self.session = id(SESSION_ID),
            Body::StepStarted(_) => self.named.extend(id(NODE_ID).map(|id| (context.shown.step_count, id))),
            _ => {}
        }
    }

    /// Forgets the node run that an event ends.
    fn end(&mut self, context: &EncodeContext<'_>) {
        if let Body::StepFinished(_) = &context.event().body {
            self.ended = self.node_id(context);
            let ended = context.shown.step_of(context.event()).map(|step| step.ordinal);
            self.named.retain(|(ordinal, _)| Some(*ordinal) != ended);
        }
    }
}

/// Writes the source's own fields in its own dialect, and the residue.
fn finish(context: &EncodeContext<'_>, mut object: ObjectWriter<'_>) {
    context.write_own_fields("", &mut object);
    context.write_residue(&mut object);
    object.end();
}

impl Encode for Encoder {
    fn event(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        self.begin(context);
        match &context.event().body {
            Body::Foreign(foreign)
                if foreign.dialect == "loom" && foreign.frame.is_object() && !context.full =>
            {
                let node_id = self.node_id(context).filter(|_| !foreign.frame.text().contains("\"node_id\""));
                let mut object = self.envelope(context, out, node_id.as_deref());
                for (name, raw) in Object::of_json(&foreign.frame).iter().flat_map(Object::fields) {
                    if !matches!(name, "session_id" | "event_id") {
                        object.raw(name, raw.get());
                    }
                }
                context.write_residue(&mut object);
                object.end();
                out.end(None);
            }
            _ => tell(self, context, out),
        }
        self.end(context);
    }

    fn streams_arguments(&self) -> bool {
        true
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        Form::write_slot(self, context, out);
    }

    fn order(&mut self) -> Option<&mut u64> {
        Some(&mut self.event_id)
    }
}

/// Writes an event in Loom's vocabulary.
pub(crate) fn tell(form: &mut impl Form, context: &EncodeContext<'_>, out: &mut Frames) {
    let event = context.event();
    let node = shown_node(context);
    let node = node.as_ref();
    match &event.body {
        Body::RunStarted(started) => {
            if started.input.is_some() || started.parent_run_id.is_some() || started.message_id.is_some() {
                context.keep_in_residue();
            }
            form.frame(context, out, "run_start", |object| {
                object.str("run_id", &context.ids.run);
                object.opt_str("message", started.message.as_deref());
                object.opt_str("agent", started.agent.as_deref());
            });
        }
        Body::StepStarted(started) => {
            form.frame(context, out, "node_enter", |object| object.str("id", &started.name));
        }
        Body::StepFinished(finished) => {
            if !form.tells_step_end(context, &finished.name) {
                context.keep_in_residue();
            }
            form.frame(context, out, "node_exit", |object| {
                object.str("id", &finished.name);
                match &finished.error {
                    None => object.str("result", "Ok"),
                    Some(error) => {
                        let mut result = object.object("result");
                        result.str("Err", &error.message);
                        result.end();
                    }
                }
            });
        }
        Body::TextStarted(started) => {
            if context.shown.needs_start(started) {
                form.slot(context, out);
            }
        }
        Body::TextDelta(delta) => {
            if context.shown.text(&delta.message_id).is_none_or(ShownText::is_not_assistant) {
                return form.slot(context, out);
            }
            context.keep_text(delta);
            write_chunk(form, context, out, &delta.content);
        }
        Body::TextFinished(finished) => {
            let text = context.shown.text(&finished.message_id);
            let aside = text.is_some_and(|text| text.needs_id);
            let in_slot = text.is_some_and(ShownText::is_not_assistant);
            let silent = context.shown.awaits_first_frame(&finished.message_id) && finished.content.is_none();
            match context.replacement(finished).filter(|_| !in_slot) {
                Some(content) => {
                    context.keep_replacement(finished, content);
                    write_chunk(form, context, out, content);
                }
                None if !silent && (aside || finished.says_more()) => form.slot(context, out),
                None => {}
            }
        }
        Body::ThinkingStarted(started) => {
            if context.shown.needs_thought_start(started) {
                form.slot(context, out);
            }
        }
        Body::ThinkingDelta(delta) => {
            if context.shown.thought(&delta.message_id).is_none() {
                return form.slot(context, out);
            }
            context.keep_id(&delta.message_id);
            form.frame(context, out, "thought_chunk", |object| {
                object.str("content", &delta.content);
                object.str("id", node);
            });
        }
        Body::ThinkingFinished(finished) => {
            let was_aside = context
                .shown
                .thought(&finished.message_id)
                .is_some_and(|thought| thought.needs_id && thought.was_shown);
            if was_aside || finished.content.is_some() {
                form.slot(context, out);
            }
        }
        Body::ToolArgsStarted(_) => {}
        Body::ToolArgsDelta(delta) => {
            // In its own dialect only the first piece names the tool.
            let first = || {
                context
                    .record
                    .entries
                    .iter()
                    .any(|entry| matches!(entry.event.body, Body::ToolArgsStarted(_)))
            };
            let name = context.shown.call(&delta.call_id).map(|call| call.name.as_str());
            let name = name.filter(|name| !name.is_empty() && (!context.same_dialect || first()));
            form.frame(context, out, "tool_call_chunk", |object| {
                write_call_id(context, object, &delta.call_id);
                object.opt_str("name", name);
                object.str("arguments_delta", &delta.delta);
            });
        }
        Body::ToolCalled(called) => {
            if called.arguments_text.is_some() || called.incomplete.is_some() || called.description.is_some()
            {
                context.keep_in_residue();
            }
            form.frame(context, out, "tool_call", |object| {
                write_call_id(context, object, &called.call_id);
                object.str("name", &called.name);
                object.json("arguments", &called.arguments);
            });
        }
        Body::ToolStarted(started) => form.frame(context, out, "tool_start", |object| {
            write_call_id(context, object, &started.call_id);
            object.str("name", call_name(context, &started.call_id, started.name.as_deref()));
        }),
        Body::ToolOutput(output) => form.frame(context, out, "tool_output", |object| {
            write_call_id(context, object, &output.call_id);
            object.str("name", call_name(context, &output.call_id, output.name.as_deref()));
            object.str("content", &output.content);
        }),
        Body::ToolFinished(finished) => {
            context.keep_result_beside_error(finished);
            form.frame(context, out, "tool_end", |object| {
                write_call_id(context, object, &finished.call_id);
                object.str("name", call_name(context, &finished.call_id, finished.name.as_deref()));
                object.str("result", &finished.text_form().unwrap_or_default());
                object.bool("is_error", finished.status == ToolStatus::Failure);
            });
        }
        Body::InteractionRequested(asked) => approve(form, context, out, asked),
        Body::StateSnapshot(snapshot) => {
            form.frame(context, out, "values", |object| object.json("state", &snapshot.state))
        }
        Body::StateUpdated(updated) => form.frame(context, out, "updates", |object| {
            object.str("id", &updated.step);
            object.json("state", &updated.state);
        }),
        Body::StatePatched(_) => match context.history.state() {
            Some(state) => form.frame(context, out, "values", |object| object.json("state", &state)),
            None => form.slot(context, out),
        },
        Body::Checkpoint(checkpoint) => form.frame(context, out, "checkpoint", |object| {
            object.json("checkpoint_id", checkpoint.checkpoint_id.as_ref().unwrap_or(&Json::string("")));
            object.json("timestamp", checkpoint.timestamp.as_ref().unwrap_or(&Json::string("")));
            object.opt_json("step", checkpoint.step.as_ref());
            object.json("state", checkpoint.state.as_ref().unwrap_or(&Json::null()));
            object.json("thread_id", checkpoint.thread.as_ref().unwrap_or(&Json::null()));
            object.json("checkpoint_ns", checkpoint.checkpoint_ns.as_ref().unwrap_or(&Json::null()));
        }),
        Body::TotExpanded(expanded) => {
            form.frame(context, out, "tot_expand", |object| object.json("candidates", &expanded.candidates));
        }
        Body::TotEvaluated(evaluated) => form.frame(context, out, "tot_evaluate", |object| {
            object.json("chosen", &evaluated.chosen);
            object.json("scores", &evaluated.scores);
        }),
        Body::TotBacktracked(back) => form.frame(context, out, "tot_backtrack", |object| {
            object.str("reason", back.reason.as_deref().unwrap_or_default());
            object.json("to_depth", &back.to_depth);
        }),
        Body::GotPlanned(planned) => form.frame(context, out, "got_plan", |object| {
            object.opt_json("node_count", planned.node_count.as_ref());
            object.opt_json("edge_count", planned.edge_count.as_ref());
            object.opt_json("node_ids", planned.node_ids.as_ref());
        }),
        Body::GotNodeStarted(started) => {
            form.frame(context, out, "got_node_start", |object| object.str("id", &started.node_id));
        }
        Body::GotNodeCompleted(completed) => form.frame(context, out, "got_node_complete", |object| {
            object.str("id", &completed.node_id);
            object.str("result_summary", completed.result_summary.as_deref().unwrap_or_default());
        }),
        Body::GotNodeFailed(failed) => form.frame(context, out, "got_node_failed", |object| {
            object.str("id", &failed.node_id);
            object.str("error", &failed.error);
        }),
        Body::GotExpanded(expanded) => form.frame(context, out, "got_expand", |object| {
            object.str("node_id", &expanded.node_id);
            object.opt_json("nodes_added", expanded.nodes_added.as_ref());
            object.opt_json("edges_added", expanded.edges_added.as_ref());
        }),
        Body::Usage(usage) => write_usage(form, context, out, usage),
        // A value that could be taken for a slot goes into one.
        Body::Custom(custom) if custom.name.is_none() && !crate::dialect::looks_like_slot(&custom.value) => {
            form.frame(context, out, "custom", |object| object.json("value", &custom.value));
        }
        Body::RunCompleted(completed) => {
            if completed.result.is_some() {
                context.keep_in_residue();
            }
            summed_usage(form, context, out, completed.summary.as_ref());
            let joined;
            let reply = match &completed.reply {
                Some(reply) => reply,
                None => {
                    joined = context.history.run_text();
                    &joined
                }
            };
            form.reply(context, out, |object| object.str("reply", reply));
        }
        Body::RunFailed(failed) => {
            summed_usage(form, context, out, failed.summary.as_ref());
            form.reply(context, out, |object| {
                object.str("reply", &context.history.run_text());
                object.str("stop_reason", "error");
                crate::dialect::write_error(object, "error", &failed.error);
            });
        }
        Body::RunCancelled(cancelled) => {
            summed_usage(form, context, out, cancelled.summary.as_ref());
            if cancelled.reason.is_some() {
                context.keep_in_residue();
            }
            form.reply(context, out, |object| {
                object.str("reply", &context.history.run_text());
                object.str("stop_reason", "cancelled");
            });
        }
        _ => form.slot(context, out),
    }
}

fn write_chunk(form: &mut impl Form, context: &EncodeContext<'_>, out: &mut Frames, content: &str) {
    form.frame(context, out, "message_chunk", |object| {
        object.str("content", content);
        object.str("id", &shown_node(context));
    });
}

/// Returns the node of a piece: the source's in its own dialect, else the step's name.
pub(crate) fn shown_node<'t>(context: &'t EncodeContext<'_>) -> Cow<'t, str> {
    let own = context.event().extra.get(NODE).filter(|_| context.same_dialect).and_then(Json::as_string);
    own.unwrap_or_else(|| {
        context.shown.step_of(context.event()).map_or(OUTSIDE, |step| step.name.as_str()).into()
    })
}

/// Writes the call's id, unless the source's own frame lacked it.
fn write_call_id(context: &EncodeContext<'_>, object: &mut ObjectWriter<'_>, call_id: &str) {
    if !context.is_own_minted(call_id) {
        object.str("call_id", call_id);
    }
}

fn write_usage(form: &mut impl Form, context: &EncodeContext<'_>, out: &mut Frames, usage: &Usage) {
    let (prompt, completion) = (usage.prompt_tokens.unwrap_or(0), usage.completion_tokens.unwrap_or(0));
    form.frame(context, out, "usage", |object| {
        object.u64("prompt_tokens", prompt);
        object.u64("completion_tokens", completion);
        object.u64("total_tokens", usage.total_tokens.unwrap_or(prompt.saturating_add(completion)));
    });
}

/// Writes token counts that only the source's summary has; Loom's reply has no field for them.
fn summed_usage(
    form: &mut impl Form,
    context: &EncodeContext<'_>,
    out: &mut Frames,
    summary: Option<&Summary>,
) {
    if let Some(usage) = context.shown.summed_usage(summary).filter(|_| !context.full) {
        write_usage(form, context, out, &usage);
    }
}

fn call_name<'t>(context: &'t EncodeContext<'_>, call_id: &str, own: Option<&'t str>) -> &'t str {
    own.or_else(|| context.shown.call(call_id).map(|call| call.name.as_str())).unwrap_or("unknown")
}

/// Writes an approval natively if it is about a call, else into the slot.
fn approve(
    form: &mut impl Form,
    context: &EncodeContext<'_>,
    out: &mut Frames,
    asked: &InteractionRequested,
) {
    let call = asked.call_id.as_ref().and_then(|id| context.shown.call(id));
    let name = asked.name.as_deref().or(call.map(|call| call.name.as_str())).filter(|name| !name.is_empty());
    let (InteractionKind::Approval, Some(name)) = (asked.kind, name) else { return form.slot(context, out) };
    let plain = asked.title.is_none() && asked.description.is_none() && asked.reason.is_none();
    let minted = asked.call_id.as_deref().is_some_and(|call_id| context.is_own_minted(call_id));
    let named_by_call = minted || asked.call_id.as_ref() == Some(&asked.interaction_id);
    // An approval of a call that was not made would make it.
    let made = call.is_some_and(|call| call.called);
    if !plain || asked.schema.is_some() || asked.ui.is_some() || !named_by_call || !made {
        context.keep_in_residue();
    }
    let known =
        call.and_then(|call| context.history.call(call.start, &call.id)).map(|called| called.arguments);
    let arguments =
        asked.arguments.clone().or(known).filter(Json::is_object).unwrap_or_else(Json::empty_object);
    form.frame(context, out, "tool_approval", |object| {
        object.opt_str("call_id", asked.call_id.as_deref().filter(|_| !minted));
        object.str("name", name);
        object.json("arguments", &arguments);
    });
}
