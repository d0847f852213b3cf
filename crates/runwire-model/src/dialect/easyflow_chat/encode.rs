//! Writes frames of EasyFlow.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{ERROR, FORM_ID, INTERACTION, MESSAGE_ID, NODE_ID, REASON, THINKING, is_form};
use crate::dialect::Frames;
use crate::dialect::encode::{Encode, EncodeContext};
use crate::dialect::shown_state::ShownText;
use crate::event::{
    Body, Decision, ErrorInfo, InteractionKind, InteractionRequested, Level, Summary, ToolFinished,
    ToolStatus,
};
use crate::json::{Json, Object, ObjectWriter};
use crate::record::EventOrigin;
use crate::run::continued;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Encoder {
    /// Next indexes of the most recent messages.
    indexes: Vec<(String, u64)>,
    /// Whether a frame has named the run.
    named: bool,
    /// Nodes that were shown as waiting.
    waiting: Vec<Waiting>,
    /// Node that the run's own resumption has resumed.
    resumed: Option<Waiting>,
    /// Whether the source reported that the run waits before its first interaction.
    waits_early: bool,
    /// The last piece.
    last: Option<Shown>,
    /// The last text.
    last_text: Option<Shown>,
    /// Open interactions whose form has another id, with the form's.
    forms: Vec<(String, Json)>,
}

/// A node that waits, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Waiting {
    node: String,
    reason: Option<String>,
    /// Whether the run's own suspension added it, rather than the source.
    is_added: bool,
}

/// A message, and how it was shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Shown {
    id: String,
    shown: String,
    in_subagent: bool,
    is_text: bool,
}

/// Messages whose index is remembered; a message that was silent for longer begins anew.
const REMEMBERED: usize = 16;

/// Returns a message's id in EasyFlow: its pieces keep it around a tool call.
fn message_id(id: &str) -> &str {
    let id = id.strip_suffix(THINKING).unwrap_or(id);
    match id.rsplit_once('#') {
        Some((base, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            base.strip_suffix(THINKING).unwrap_or(base)
        }
        _ => id,
    }
}

/// A frame to be written.
struct Outline<'a> {
    domain: &'static str,
    kind: &'static str,
    sse: &'static str,
    message: Option<(&'a str, Option<u64>)>,
}

impl<'a> Outline<'a> {
    fn new(domain: &'static str, kind: &'static str) -> Self {
        Self { domain, kind, sse: "message", message: None }
    }

    fn named(self, sse: &'static str) -> Self {
        Self { sse, ..self }
    }

    fn of_message(self, id: &'a str, index: Option<u64>) -> Self {
        Self { message: Some((id, index)), ..self }
    }

    fn write(
        self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
        meta: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = self.begin(context, out);
        let mut inner = object.object("payload");
        payload(&mut inner);
        context.write_own_fields("", &mut inner);
        inner.end();
        let mut written = Vec::new();
        let mut inner = ObjectWriter::begin(&mut written);
        meta(&mut inner);
        context.write_own_fields("meta.", &mut inner);
        context.write_residue(&mut inner);
        inner.end();
        if written.len() > 2 {
            object.key("meta").extend_from_slice(&written);
        }
        context.write_own_fields("frame.", &mut object);
        object.end();
        out.end(Some(Cow::Borrowed(self.sse)));
    }

    fn begin<'o>(&self, context: &EncodeContext<'_>, out: &'o mut Frames) -> ObjectWriter<'o> {
        let mut object = ObjectWriter::begin(out.begin());
        object.str("protocol", "easyflow-chat");
        object.str("version", "1.1");
        object.str("domain", self.domain);
        object.str("type", self.kind);
        object.str("conversation_id", &context.ids.thread);
        match self.message {
            Some((id, index)) => {
                object.str("message_id", id);
                if let Some(index) = index {
                    object.u64("index", index);
                }
            }
            None => {
                object.opt_json("message_id", context.own_field(MESSAGE_ID));
            }
        }
        object
    }
}

fn nothing(_: &mut ObjectWriter<'_>) {}

/// Writes the error of a call or a node, in its own dialect in its original form.
fn write_error(context: &EncodeContext<'_>, payload: &mut ObjectWriter<'_>, error: &ErrorInfo) {
    match context.own_field(ERROR) {
        Some(own) => payload.json("error", own),
        None => crate::dialect::write_error(payload, "error", error),
    }
}

impl Waiting {
    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(INTERACTION)
    }
}

/// Writes the suspension or resumption of a node, because the run's own is.
fn node(context: &EncodeContext<'_>, out: &mut Frames, waiting: &Waiting, state: &str) {
    let outline = Outline::new("workflow", "status");
    let mut object = outline.begin(context, out);
    let mut payload = object.object("payload");
    payload.str(NODE_ID, &waiting.node);
    payload.str("state", state);
    payload.str(REASON, waiting.reason());
    payload.end();
    if context.has_residue() {
        let mut meta = object.object("meta");
        context.write_residue(&mut meta);
        meta.end();
    }
    object.end();
    out.end(Some(Cow::Borrowed(outline.sse)));
}

impl Encoder {
    fn next_index(&mut self, id: &str) -> u64 {
        if let Some((_, index)) = self.indexes.iter_mut().find(|(known, _)| known == id) {
            *index += 1;
            return *index - 1;
        }
        if self.indexes.len() == REMEMBERED {
            self.indexes.remove(0);
        }
        self.indexes.push((id.to_owned(), 1));
        0
    }

    /// Returns the id of a message in frames: its own if the reader would take it for the message before.
    fn shown_id(&self, context: &EncodeContext<'_>, id: &str, is_text: bool) -> String {
        let is_same = |text: &&Shown| text.id == id || context.shown.continues(&text.id, id);
        let shown = match self.last_text.as_ref().filter(is_same) {
            Some(text) => text.shown.as_str(),
            None => message_id(id),
        };
        match &self.last {
            Some(last) if last.id == id => last.shown.clone(),
            // Text and thinking end each other. What happens outside a subagent ends no text in it.
            Some(last)
                if last.shown == shown
                    && last.is_text == is_text
                    && (last.in_subagent || context.shown.last.is_some()) =>
            {
                let number = id.rsplit_once('#').map(|(_, number)| number.trim_end_matches(THINKING));
                number.map_or(shown.to_owned(), |number| format!("{shown}#{number}"))
            }
            _ => shown.to_owned(),
        }
    }

    fn piece(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &'static str,
        id: &str,
        content: &str,
    ) {
        // A message beside another one keeps its own id, and takes nothing of the other's.
        let aside = context.shown.needs_id(id);
        let shown = match aside {
            true => id.strip_suffix(THINKING).unwrap_or(id).to_owned(),
            false => self.shown_id(context, id, kind == "message"),
        };
        // Of a message that the reader has in part, only pieces may follow.
        let has_part = context.shown.begins_continuation(id) || continued(id) == Some(shown.as_str());
        let key = if came_whole(context, id) && !has_part { "content" } else { "delta" };
        let index = self.next_index(&shown);
        if !aside {
            let in_subagent = context.event().subagent_run_id.is_some();
            let is_text = kind == "message";
            self.last = Some(Shown { id: id.to_owned(), shown: shown.clone(), in_subagent, is_text });
            if is_text {
                self.last_text.clone_from(&self.last);
            }
        }
        Outline::new("llm", kind).of_message(&shown, Some(index)).write(
            context,
            out,
            |payload| payload.str(key, content),
            nothing,
        );
    }

    /// Writes a state of the run; the first frame names the run.
    fn status(&mut self, context: &EncodeContext<'_>, out: &mut Frames, state: &str) {
        let names = !std::mem::replace(&mut self.named, true);
        Outline::new("system", "status").write(
            context,
            out,
            |payload| payload.str("state", state),
            |meta| meta.opt_str("run_id", Some(&*context.ids.run).filter(|_| names)),
        );
    }

    /// Writes the start or end of a step.
    fn step(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        name: &str,
        state: &str,
        error: Option<&ErrorInfo>,
    ) {
        self.waiting.retain(|waiting| waiting.node != name);
        self.resumed = None;
        Outline::new("workflow", "status").write(
            context,
            out,
            |payload| {
                payload.str("node_id", name);
                payload.str("state", state);
                if let Some(error) = error {
                    write_error(context, payload, error);
                }
            },
            nothing,
        );
    }

    /// Writes the suspension of the innermost step, unless it was shown before.
    fn suspend_node(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let Some(step) = context.shown.steps.last() else { return };
        // A source that has said which of its nodes waits speaks for all of them.
        if context.same_dialect && !self.waiting.is_empty() {
            return;
        }
        if self.waiting.iter().all(|waiting| waiting.node != step.name) {
            let waiting = Waiting { node: step.name.clone(), reason: None, is_added: true };
            node(context, out, &waiting, "suspend");
            self.wait(waiting);
        }
    }

    /// Writes the resumption of the innermost step, if it was shown as waiting.
    fn resume_node(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let Some(step) = context.shown.steps.last() else { return };
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.node == step.name) {
            let waiting = self.waiting.remove(at);
            node(context, out, &waiting, "resume");
            self.resumed = Some(waiting);
        }
    }

    /// Writes the suspension of a run that its source reported before the first interaction.
    fn tell_early_wait(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        if std::mem::take(&mut self.waits_early) {
            context.beside_event(|| {
                self.status(context, out, "suspended");
                self.suspend_node(context, out);
            });
        }
    }

    /// Writes a node's state that the source reports, once: another reason than the one of the run's own suspension or
    /// resumption goes to the slot.
    fn node_status(&mut self, context: &EncodeContext<'_>, out: &mut Frames, name: &str, state: &str) {
        let reason = context.event().extra.get(REASON).and_then(Json::as_string).map(Cow::into_owned);
        let says = Waiting { node: name.to_owned(), reason, is_added: false };
        let shown_before = match state {
            "suspend" => self
                .waiting
                .iter_mut()
                .find(|shown_before| shown_before.is_added && shown_before.node == name),
            "resume" => self.resumed.as_mut().filter(|shown_before| shown_before.node == name),
            _ => None,
        };
        if let Some(shown_before) = shown_before {
            if says.reason.is_some() && says.reason() != shown_before.reason() {
                shown_before.reason = says.reason;
                self.slot(context, out);
            }
            return;
        }
        match state {
            "suspend" => self.wait(says.clone()),
            "resume" => self.waiting.retain(|waiting| waiting.node != name),
            _ => {}
        }
        Outline::new("workflow", "status").write(
            context,
            out,
            |payload| {
                payload.str("state", state);
                // In its own dialect, they are among the fields that the source said beside the state.
                if !context.same_dialect {
                    payload.str(NODE_ID, name);
                    payload.opt_str(REASON, says.reason.as_deref());
                }
            },
            nothing,
        );
    }

    fn wait(&mut self, waiting: Waiting) {
        self.resumed = None;
        self.waiting.retain(|known| known.node != waiting.node);
        if self.waiting.len() == REMEMBERED {
            self.waiting.remove(0);
        }
        self.waiting.push(waiting);
    }

    fn error(
        &self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        error: &ErrorInfo,
        terminal: bool,
        summary: Option<&Summary>,
    ) {
        let domain = if error.domain.as_deref() == Some("business") { "business" } else { "system" };
        if error.kind.is_some() {
            context.keep_in_residue();
        }
        let sse = if terminal { "error" } else { "message" };
        Outline::new(domain, "error").named(sse).write(
            context,
            out,
            |payload| {
                payload.str("code", error.code.as_deref().unwrap_or("ERROR"));
                payload.str("message", &error.message);
                if domain == "system" || error.retryable.is_some() {
                    payload.bool("retryable", error.retryable.unwrap_or(false));
                }
                match &error.details {
                    Some(details) => payload.json("detail", details),
                    None if domain == "system" => payload.json("detail", &Json::empty_object()),
                    None => {}
                }
            },
            |meta| {
                if terminal {
                    figures(context, meta, summary);
                } else {
                    meta.bool("terminal", false);
                }
            },
        );
    }

    fn done(
        &self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        summary: Option<&Summary>,
        cancelled: Option<Option<&str>>,
    ) {
        Outline::new("system", "done").named("done").write(
            context,
            out,
            |payload| payload.opt_str("reason", cancelled.flatten()),
            |meta| {
                if cancelled.is_some() {
                    meta.str("status", "cancelled");
                }
                figures(context, meta, summary);
            },
        );
    }
}

fn figures(context: &EncodeContext<'_>, meta: &mut ObjectWriter<'_>, own: Option<&Summary>) {
    let all = context.shown.summary_with_usage(own, context.record.at);
    let shown = if context.same_dialect { own.cloned().unwrap_or_default() } else { all };
    meta.opt_u64("prompt_tokens", shown.prompt_tokens);
    meta.opt_u64("completion_tokens", shown.completion_tokens);
    let has_total = context.same_dialect || shown.prompt_tokens.is_none() || sums_up(&shown);
    meta.opt_u64("total_tokens", shown.total_tokens.filter(|_| has_total));
    meta.opt_f64("latency_ms", shown.duration_ms);
    meta.str("run_id", &context.ids.run);
}

/// Returns true if the total is not the sum of prompt and completion.
fn sums_up(summary: &Summary) -> bool {
    let parts = summary.prompt_tokens.unwrap_or(0).saturating_add(summary.completion_tokens.unwrap_or(0));
    summary.total_tokens != Some(parts)
}

/// Returns true if a text began and ended with its one piece in the same record.
fn came_whole(context: &EncodeContext<'_>, id: &str) -> bool {
    let (mut begun, mut pieces, mut ended) = (false, 0, false);
    for entry in &context.record.entries {
        match &entry.event.body {
            Body::TextStarted(started) => begun |= started.message_id == id,
            Body::ThinkingStarted(started) => begun |= started.message_id == id,
            Body::TextDelta(delta) if delta.message_id == id => pieces += 1,
            Body::ThinkingDelta(delta) if delta.message_id == id => pieces += 1,
            // An end that says more follows in a slot, which must find the text open.
            Body::TextFinished(finished) => ended |= finished.message_id == id && !finished.says_more(),
            Body::ThinkingFinished(finished) => ended |= finished.message_id == id,
            _ => {}
        }
    }
    begun && ended && pieces == 1
}

impl Encode for Encoder {
    fn event(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let shown = context.shown;
        context.keep_usage();
        match &context.event().body {
            Body::RunStarted(started) => {
                if started.message.is_some() || started.says_more() {
                    context.keep_in_residue();
                }
                self.named = false;
                self.status(context, out, "running");
                self.named = !context.is_silent();
            }
            Body::RunStatus(status) => match context.event().extra.get(NODE_ID).and_then(Json::as_string) {
                Some(node) => self.node_status(context, out, &node, &status.state),
                None => self.status(context, out, &status.state),
            },
            // A client of the document is suspended by a form: it is told of one that is still to come first.
            Body::RunSuspended(_)
                if context.same_dialect
                    && context.entry.origin == EventOrigin::Producer
                    && shown.interactions.is_empty() =>
            {
                self.waits_early = true;
                self.slot(context, out);
            }
            Body::RunSuspended(_) => {
                self.status(context, out, "suspended");
                self.suspend_node(context, out);
            }
            Body::RunResumed(_) => {
                self.tell_early_wait(context, out);
                self.status(context, out, "resumed");
                self.resume_node(context, out);
            }
            Body::StepStarted(started) => self.step(context, out, &started.name, "start", None),
            Body::StepFinished(finished) => {
                if !shown.ends_innermost(context.event(), &finished.name) {
                    context.keep_in_residue();
                }
                self.step(context, out, &finished.name, "end", finished.error.as_ref())
            }
            Body::TextStarted(started) => {
                if started.is_not_assistant() {
                    self.slot(context, out);
                }
            }
            Body::TextDelta(delta) => {
                if shown.text(&delta.message_id).is_none_or(ShownText::is_not_assistant) {
                    return self.slot(context, out);
                }
                context.keep_id(&delta.message_id);
                self.piece(context, out, "message", &delta.message_id, &delta.content);
            }
            Body::TextFinished(finished) => {
                let text = shown.text(&finished.message_id);
                let was_aside = text.is_some_and(|text| text.needs_id && text.was_shown);
                let in_slot = text.is_some_and(ShownText::is_not_assistant);
                match context.replacement(finished).filter(|_| !in_slot) {
                    Some(content) => {
                        context.keep_replacement(finished, content);
                        self.piece(context, out, "message", &finished.message_id, content);
                    }
                    None if was_aside || finished.says_more() => self.slot(context, out),
                    None => {}
                }
            }
            Body::ThinkingStarted(_) => {}
            Body::ThinkingDelta(delta) => {
                if shown.thought(&delta.message_id).is_none() {
                    return self.slot(context, out);
                }
                context.keep_id(&delta.message_id);
                self.piece(context, out, "thinking", &delta.message_id, &delta.content)
            }
            Body::ThinkingFinished(finished) => {
                let was_aside = shown
                    .thought(&finished.message_id)
                    .is_some_and(|thought| thought.needs_id && thought.was_shown);
                if was_aside || finished.content.is_some() {
                    self.slot(context, out);
                }
            }
            Body::ToolArgsStarted(_) | Body::ToolArgsDelta(_) | Body::ToolStarted(_) => {}
            Body::ToolCalled(called) => {
                if called.arguments_text.is_some()
                    || called.incomplete.is_some()
                    || called.description.is_some()
                {
                    context.keep_in_residue();
                }
                let mut outline = Outline::new("tool", "tool_call");
                if let Some(id) = &called.message_id {
                    outline = outline.of_message(message_id(id), None);
                }
                outline.write(
                    context,
                    out,
                    |payload| {
                        payload.str("tool_call_id", &called.call_id);
                        payload.str("name", &called.name);
                        payload.json("arguments", &called.arguments);
                    },
                    nothing,
                );
            }
            Body::ToolFinished(finished) => {
                let failed = finished.status == ToolStatus::Failure;
                let said = ToolFinished { duration_ms: None, message_id: None, ..finished.clone() };
                let is_empty = finished.result.as_ref().is_some_and(|result| result.text() == "{}");
                if !context.same_dialect && (finished.result.is_none() && !failed || is_empty && failed) {
                    context.keep_result(said);
                } else {
                    context.keep_result_kind(finished, said);
                }
                Outline::new("tool", "tool_result").write(
                    context,
                    out,
                    |payload| {
                        payload.str("tool_call_id", &finished.call_id);
                        payload.str("status", if failed { "error" } else { "success" });
                        match (&finished.result, failed) {
                            (Some(result), _) => context.write_object_result(payload, result),
                            (None, false) if context.same_dialect => payload.null("result"),
                            // A failed call gave nothing back, and the document has a result on every one.
                            (None, _) => payload.json("result", &Json::empty_object()),
                        }
                        match (&finished.error, failed) {
                            (Some(error), _) => write_error(context, payload, error),
                            (None, true) if finished.result.is_none() => {
                                crate::dialect::write_error(payload, "error", &ErrorInfo::message("failed"));
                            }
                            _ => {}
                        }
                    },
                    nothing,
                );
            }
            Body::InteractionRequested(asked) => {
                if let Some(form_id) = context.own_field(FORM_ID) {
                    self.forms.push((asked.interaction_id.clone(), form_id.clone()));
                }
                ask(context, out, asked);
                self.tell_early_wait(context, out);
            }
            Body::InteractionResolved(resolved) => {
                let plain = resolved.values.is_none() && resolved.reason.is_none() && resolved.by.is_none();
                let id = resolved.interaction_id.as_str();
                let known = self.forms.iter().position(|(question, _)| question == id);
                let form_id = known.map_or_else(|| Json::string(id), |at| self.forms.remove(at).1);
                let form = form_id.as_string().unwrap_or_default();
                let newest = shown.interactions.iter().rev().find(|question| is_form(&question.id, &form));
                let ends = context.record.entries.iter().any(|entry| entry.event.body.is_terminal());
                let meant = ends || newest.is_none_or(|question| question.id == id);
                if resolved.decision != Decision::Cancelled || !plain || !meant {
                    return self.slot(context, out);
                }
                Outline::new("interaction", "form_cancel").write(
                    context,
                    out,
                    |payload| payload.json("form_id", &form_id),
                    nothing,
                );
            }
            // A fatal notice is told by the failure that follows it: a client ends at the first error.
            Body::Notice(notice) if notice.level == Level::Error && notice.fatal != Some(true) => {
                self.error(context, out, &notice.to_error(), false, None);
            }
            Body::Notice(notice) if notice.level != Level::Error && notice.fatal != Some(true) => {
                if notice.domain.is_some() || notice.details.is_some() || notice.kind.is_some() {
                    context.keep_in_residue();
                }
                Outline::new("debug", "notice").write(
                    context,
                    out,
                    |payload| {
                        payload.str("level", notice.level.as_str());
                        payload.opt_str("code", notice.code.as_deref());
                        payload.str("message", &notice.message);
                    },
                    nothing,
                );
            }
            Body::RunCompleted(completed) => {
                if completed.result.is_some() {
                    context.keep_in_residue();
                }
                self.done(context, out, completed.summary.as_ref(), None);
            }
            Body::RunFailed(failed) => self.error(context, out, &failed.error, true, failed.summary.as_ref()),
            Body::RunCancelled(cancelled) => {
                self.done(context, out, cancelled.summary.as_ref(), Some(cancelled.reason.as_deref()));
            }
            // Tokens are summed in the end's meta.
            Body::Usage(_) if !context.full && !context.same_dialect => {}
            Body::Foreign(foreign)
                if foreign.dialect == "easyflow-chat" && foreign.frame.is_object() && !context.full =>
            {
                let mut object = ObjectWriter::begin(out.begin());
                let mut names_thread = false;
                for (name, raw) in Object::of_json(&foreign.frame).iter().flat_map(Object::fields) {
                    if matches!(name, "conversation_id" | "conversationId") {
                        names_thread = true;
                        object.str("conversation_id", &context.ids.thread);
                    } else {
                        object.raw(name, raw.get());
                    }
                }
                if !names_thread {
                    object.str("conversation_id", &context.ids.thread);
                }
                object.end();
                out.end(Some(Cow::Borrowed("message")));
            }
            _ => self.slot(context, out),
        }
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let outline = Outline::new("debug", "runwire");
        let mut object = outline.begin(context, out);
        context.write_native(object.key("payload"));
        context.drop_residue();
        object.end();
        out.end(Some(Cow::Borrowed("message")));
    }
}

/// The schema of a form that has none.
const ANY_FORM: &str = r#"{"type":"object"}"#;

/// Returns true for a schema that EasyFlow writes where there is none.
pub(super) fn says_no_schema(schema: Option<&Json>) -> bool {
    schema.is_some_and(|schema| matches!(schema.text(), ANY_FORM | crate::dialect::APPROVAL_SCHEMA))
}

/// Writes a form; an approval is a form with a boolean `approved`.
fn ask(context: &EncodeContext<'_>, out: &mut Frames, asked: &InteractionRequested) {
    let approval = asked.kind == InteractionKind::Approval;
    let own = context.own_field(FORM_ID);
    let fits = asked.schema.as_ref().is_some_and(Json::is_object);
    let reads_as_approval = asked.schema.as_ref().map_or(approval, crate::dialect::asks_for_approval);
    if approval != reads_as_approval
        || (asked.schema.is_some() && !fits)
        || says_no_schema(asked.schema.as_ref())
    {
        context.keep_in_residue();
    }
    Outline::new("interaction", "form_request").write(
        context,
        out,
        |payload| {
            match own {
                Some(form_id) => payload.json("form_id", form_id),
                None => payload.str("form_id", &asked.interaction_id),
            }
            payload.opt_str("title", asked.title.as_deref());
            payload.opt_str("description", asked.description.as_deref());
            match (&asked.schema, fits, approval) {
                (Some(schema), true, _) => payload.json("schema", schema),
                (_, _, true) => payload.raw("schema", crate::dialect::APPROVAL_SCHEMA),
                _ => payload.raw("schema", ANY_FORM),
            }
            payload.opt_json("ui", asked.ui.as_ref());
            payload.opt_str("call_id", asked.call_id.as_deref());
            payload.opt_str("name", asked.name.as_deref());
            payload.opt_json("arguments", asked.arguments.as_ref());
            payload.opt_str("reason", asked.reason.as_deref());
            payload.opt_str("expires_at", asked.expires_at.as_deref());
        },
        nothing,
    );
}
