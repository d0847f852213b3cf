//! Writes frames of StreamingEngine.

use serde::{Deserialize, Serialize};

use super::{DATA_TYPES, ERROR_CODE, ERROR_TYPES, FORMATS, LAST_PIECE, NO_CODE, STAGES, STAMPED};
use crate::dialect::Frames;
use crate::dialect::encode::{Encode, EncodeContext};
use crate::dialect::shown_state::ShownText;
use crate::event::{Body, ErrorInfo, Level, Summary, TextFinished, ToolFinished, ToolStatus};
use crate::json::{Object, ObjectWriter};
use crate::record::{Entry, EventOrigin};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Encoder {
    sequence: u64,
    /// What the run's end needs of the answer, once a native `content` was written.
    answer: Option<ShownAnswer>,
    /// Whether `is_complete: true` was written, which happens once a run.
    complete: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ShownAnswer {
    /// Format of its last piece.
    format: Option<String>,
}

impl Encoder {
    fn frame(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &str,
        data: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.frame_with(context, out, kind, data, |_| {});
    }

    fn frame_with(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &str,
        data: impl FnOnce(&mut ObjectWriter<'_>),
        metadata: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", kind);
        let mut inner = object.object("data");
        data(&mut inner);
        context.write_own_fields("", &mut inner);
        inner.end();
        self.metadata(context, &mut object, metadata);
        context.write_own_fields("frame.", &mut object);
        object.end();
        out.end(None);
    }

    fn metadata(
        &mut self,
        context: &EncodeContext<'_>,
        object: &mut ObjectWriter<'_>,
        more: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut metadata = object.object("metadata");
        metadata.str("request_id", &context.ids.run);
        metadata.u64("timestamp", crate::dialect::shown_time(context).0);
        metadata.u64("sequence", self.sequence);
        self.sequence += 1;
        more(&mut metadata);
        context.write_own_fields("metadata.", &mut metadata);
        context.write_residue(&mut metadata);
        metadata.end();
    }

    fn content(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        content: &str,
        format: Option<&str>,
        complete: bool,
    ) {
        self.frame(context, out, "content", |data| {
            data.str("content", content);
            data.opt_str("format", format);
            data.bool("is_complete", complete);
        });
    }

    /// Writes the end of a text: of the answer, if the run ends in the same record, else with a residue,
    /// because more may follow.
    fn text_finished(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        finished: &TextFinished,
        replacement: Option<&str>,
    ) {
        // An end that the decoder added is not written, so it completes nothing.
        let is_silent = context.same_dialect
            && !context.full
            && context.entry.origin == EventOrigin::Decoder
            && !context.ends_before_addition();
        let is_empty = context.shown.text(&finished.message_id).is_none_or(|text| !text.was_shown);
        if is_silent || is_empty && !finished.says_more() && replacement.is_none() {
            return;
        }
        if finished.says_more() {
            context.keep_in_residue();
        }
        if let Some(content) = replacement {
            context.keep_replacement(finished, content);
        }
        let content = replacement.unwrap_or_default();
        let (before, after) = context.neighbours();
        let is_text = |entry: &Entry| matches!(entry.event.body, Body::TextDelta(_) | Body::TextFinished(_));
        let ends_run = after.iter().any(|entry| entry.event.body.is_terminal()) && !after.iter().any(is_text);
        let answer = self.answer.get_or_insert_default();
        if !self.complete && context.same_dialect && calls_itself_last(context.entry) {
            self.complete = true;
            if context.full || !before.last().is_some_and(|piece| are_one_frame(piece, context.entry)) {
                self.frame(context, out, "content", |data| data.str("content", ""));
            }
        } else if !self.complete && ends_run {
            self.complete = true;
            let format = answer.format.clone();
            self.content(context, out, content, format.as_deref(), true);
        } else {
            context.keep_in_residue();
            context.without_own(|| self.content(context, out, content, None, false));
        }
    }

    /// Marks the answer as complete, unless a producer did. Which piece was last is known only at the run's end.
    fn complete_answer(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let Some(answer) = self.answer.as_ref().filter(|_| !self.complete) else { return };
        self.complete = true;
        let format = answer.format.clone();
        context.beside_event(|| self.content(context, out, "", format.as_deref(), true));
    }

    fn error(&mut self, context: &EncodeContext<'_>, out: &mut Frames, error: &ErrorInfo, recoverable: bool) {
        let kind = error.kind.as_deref().filter(|kind| ERROR_TYPES.contains(kind));
        if error.kind.is_some() && kind.is_none() || error.code.is_some() || error.domain.is_some() {
            context.keep_in_residue();
        }
        self.frame(context, out, "error", |data| {
            data.str("error_type", kind.unwrap_or("execution"));
            data.str("message", &error.message);
            data.opt_json("details", error.details.as_ref());
            data.bool("recoverable", recoverable);
        });
    }

    fn session_end(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        status: &str,
        summary: Option<&Summary>,
    ) {
        let all = context.shown.summary_with_usage(summary, context.record.at);
        self.frame(context, out, "session_end", |data| {
            data.str("status", status);
            // The source's own summary is complete; elsewhere the document's three figures are filled in.
            let shown = if context.same_dialect { summary.cloned().unwrap_or_default() } else { all };
            if context.same_dialect && summary.is_none() {
                return;
            }
            let mut object = data.object("summary");
            object.opt_u64("total_tokens", shown.total_tokens);
            object.opt_u64("prompt_tokens", shown.prompt_tokens);
            object.opt_u64("completion_tokens", shown.completion_tokens);
            object.opt_f64("duration_ms", shown.duration_ms);
            object.opt_u64("tool_calls", shown.tool_calls);
            object.opt_u64("steps", shown.steps);
            object.extra(&shown.extra);
            object.end();
        });
    }
}

/// Returns true if a producer marked a piece with `is_complete: true`.
fn calls_itself_last(entry: &Entry) -> bool {
    matches!(entry.event.body, Body::TextFinished(_)) && entry.event.extra.get(LAST_PIECE).is_some()
}

/// Returns true if a piece and its end came in one `content`.
fn are_one_frame(piece: &Entry, end: &Entry) -> bool {
    match (&piece.event.body, &end.event.body) {
        (Body::TextDelta(delta), Body::TextFinished(finished)) => {
            calls_itself_last(end) && delta.message_id == finished.message_id
        }
        _ => false,
    }
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
                self.frame(context, out, "session_start", |data| {
                    data.str("session_id", &context.ids.thread);
                    data.str("request_id", &context.ids.run);
                });
            }
            Body::ThinkingStarted(started) => {
                if shown.needs_thought_start(started) {
                    self.slot(context, out);
                }
            }
            Body::ThinkingDelta(delta) => {
                if shown.thought(&delta.message_id).is_none() {
                    return self.slot(context, out);
                }
                context.keep_id(&delta.message_id);
                let stage = delta.stage.as_deref().filter(|stage| STAGES.contains(stage));
                self.frame(context, out, "thinking", |data| {
                    data.str("content", &delta.content);
                    data.opt_str("stage", stage);
                });
            }
            Body::ThinkingFinished(finished) => {
                let was_aside = shown
                    .thought(&finished.message_id)
                    .is_some_and(|thought| thought.needs_id && thought.was_shown);
                if was_aside || finished.content.is_some() {
                    self.slot(context, out);
                }
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
                let format = delta.format.as_deref().filter(|format| FORMATS.contains(format));
                context.keep_text(delta);
                let (_, after) = context.neighbours();
                let is_whole_frame = after.first().is_some_and(|end| are_one_frame(context.entry, end));
                let complete = is_whole_frame && context.same_dialect && !context.full && !self.complete;
                // The end of a text beside another one is a slot.
                self.complete |= complete && shown.needs_id(&delta.message_id);
                self.answer = Some(ShownAnswer { format: format.map(str::to_owned) });
                self.content(context, out, &delta.content, format, complete);
            }
            Body::TextFinished(finished) => {
                if shown.awaits_first_frame(&finished.message_id) && finished.content.is_none() {
                    return;
                }
                let replacement = context.replacement(finished);
                let in_slot = shown.text(&finished.message_id).map_or(replacement.is_none(), |text| {
                    text.is_not_assistant() || text.needs_id && replacement.is_none()
                });
                if in_slot {
                    return self.slot(context, out);
                }
                self.text_finished(context, out, finished, replacement);
            }
            Body::ToolArgsStarted(_) | Body::ToolArgsDelta(_) | Body::ToolStarted(_) => {}
            Body::ToolCalled(called) => {
                if called.arguments_text.is_some() || called.incomplete.is_some() {
                    context.keep_in_residue();
                }
                self.frame(context, out, "tool_call_start", |data| {
                    data.str("tool_id", &called.call_id);
                    data.str("tool_name", &called.name);
                    data.opt_str("description", called.description.as_deref());
                    data.json("arguments", &called.arguments);
                });
            }
            Body::ToolProgress(progress) => self.frame(context, out, "tool_call_progress", |data| {
                data.str("tool_id", &progress.call_id);
                data.f64("progress", progress.progress.unwrap_or(0.0));
                data.str("message", progress.message.as_deref().unwrap_or_default());
            }),
            Body::ToolFinished(finished) => {
                let failed = finished.status == ToolStatus::Failure;
                let error = finished.error.as_ref().filter(|_| failed).map(|error| ErrorInfo {
                    code: error.code.clone(),
                    extra: error.extra.clone(),
                    ..ErrorInfo::message(&error.message)
                });
                context
                    .keep_result_kind(finished, ToolFinished { error, message_id: None, ..finished.clone() });
                self.frame_with(
                    context,
                    out,
                    "tool_call_end",
                    |data| {
                        data.str("tool_id", &finished.call_id);
                        data.str("status", if failed { "failed" } else { "success" });
                        if let Some(result) = &finished.result {
                            context.write_object_result(data, result);
                        }
                        if let (true, Some(error)) = (failed, &finished.error) {
                            let mut object = data.object("error");
                            object.str("message", &error.message);
                            let says_none = !context.same_dialect
                                || context.entry.origin == EventOrigin::Guard
                                || context.own_field(ERROR_CODE).is_some();
                            let code = error.code.as_deref();
                            object.opt_str("code", code.or(says_none.then_some(NO_CODE)));
                            object.extra(&error.extra);
                            object.end();
                        }
                    },
                    |metadata| metadata.opt_f64("duration_ms", finished.duration_ms),
                );
            }
            Body::Data(block) => {
                let mut calls = shown.calls.iter().filter(|call| call.called);
                let only = match (calls.next(), calls.next()) {
                    (Some(call), None) => Some(&call.id),
                    _ => None,
                };
                let known = DATA_TYPES.contains(&block.data_type.as_str());
                if block.call_id.as_ref() != only || !known {
                    context.keep_in_residue();
                }
                self.frame(context, out, "data", |data| {
                    data.str("data_type", if known { &block.data_type } else { "custom" });
                    data.json("data", &block.data);
                    data.opt_json("metadata", block.metadata.as_ref());
                });
            }
            Body::Notice(notice) if notice.level == Level::Error => {
                self.error(context, out, &notice.to_error(), notice.fatal != Some(true));
            }
            Body::RunCompleted(completed) => {
                self.complete_answer(context, out);
                if completed.result.is_some() {
                    context.keep_in_residue();
                }
                self.session_end(context, out, "completed", completed.summary.as_ref());
            }
            Body::RunFailed(failed) => {
                self.complete_answer(context, out);
                if !shown.was_fatal_notice(&failed.error) {
                    self.error(context, out, &failed.error, false);
                }
                self.session_end(context, out, "error", failed.summary.as_ref());
            }
            Body::RunCancelled(cancelled) => {
                self.complete_answer(context, out);
                if cancelled.reason.is_some() {
                    context.keep_in_residue();
                }
                self.session_end(context, out, "cancelled", cancelled.summary.as_ref());
            }
            // Tokens are summed in the summary.
            Body::Usage(_) if !context.full && !context.same_dialect => {}
            Body::Foreign(foreign)
                if foreign.dialect == "streaming-engine" && foreign.frame.is_object() && !context.full =>
            {
                let mut object = ObjectWriter::begin(out.begin());
                let mut source = Object::of_json(&foreign.frame).unwrap_or_default();
                let own = source.take("metadata").and_then(Object::of).unwrap_or_default();
                for (name, raw) in source.fields() {
                    object.raw(name, raw.get());
                }
                self.metadata(context, &mut object, |metadata| context.write_rest(metadata, &own, &STAMPED));
                object.end();
                out.end(None);
            }
            _ => self.slot(context, out),
        }
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", "runwire");
        context.write_native(object.key("data"));
        context.drop_residue();
        self.metadata(context, &mut object, |_| {});
        object.end();
        out.end(None);
    }

    /// Shows the implied end of a text: the document's clients append pieces, so a new whole text must not run into it.
    fn shows_implied(&self, context: &EncodeContext<'_>) -> bool {
        context.ends_before_addition()
    }

    fn order(&mut self) -> Option<&mut u64> {
        Some(&mut self.sequence)
    }
}
