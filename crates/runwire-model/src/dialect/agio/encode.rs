//! Writes frames of Agio.

use serde::{Deserialize, Serialize};

use crate::dialect::Frames;
use crate::dialect::encode::{Encode, EncodeContext};
use crate::dialect::shown_state::ShownText;
use crate::event::{Body, ErrorInfo, Level, Summary, ToolStatus, Usage};
use crate::json::{Json, Object, ObjectWriter};
use crate::record::EventOrigin;
use crate::time::Timestamp;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Encoder {
    /// Time of the frame that is written.
    time: Timestamp,
    /// The latest time so far. Clients sort by it, so what has no time of the producer's own never comes before it.
    latest: Timestamp,
}

impl Encoder {
    fn frame(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &str,
        data: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = ObjectWriter::begin(out.begin());
        head(context, &mut object, kind, self.time);
        let mut inner = object.object("data");
        data(&mut inner);
        context.write_own_fields("", &mut inner);
        inner.end();
        metadata(context, &mut object);
        context.write_own_fields("frame.", &mut object);
        object.end();
        out.end(None);
    }

    fn text_delta(&mut self, context: &EncodeContext<'_>, out: &mut Frames, content: &str, step: u64) {
        self.frame(context, out, "text_delta", |data| {
            data.str("content", content);
            data.u64("step", step);
        });
    }

    fn usage(&mut self, context: &EncodeContext<'_>, out: &mut Frames, usage: &Usage, step: u64) {
        let (prompt, completion) = (usage.prompt_tokens.unwrap_or(0), usage.completion_tokens.unwrap_or(0));
        self.frame(context, out, "usage_update", |data| {
            data.u64("prompt_tokens", prompt);
            data.u64("completion_tokens", completion);
            data.u64("total_tokens", usage.total_tokens.unwrap_or(prompt.saturating_add(completion)));
            data.u64("step", step);
        });
    }

    /// Writes token counts that only the source's summary has, where the end has no field for them.
    fn summed_usage(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        summary: Option<&Summary>,
        step: u64,
    ) {
        if let Some(usage) = context.shown.summed_usage(summary).filter(|_| !context.full) {
            self.usage(context, out, &usage, step);
        }
    }

    fn failure(
        &mut self,
        context: &EncodeContext<'_>,
        out: &mut Frames,
        kind: &str,
        error: &ErrorInfo,
        recoverable: bool,
    ) {
        if error.code.is_some()
            || error.domain.is_some()
            || error.details.is_some()
            || error.retryable.is_some()
        {
            context.keep_in_residue();
        }
        self.frame(context, out, kind, |data| {
            data.str("error", &error.message);
            data.str("error_type", error.kind.as_deref().or(error.code.as_deref()).unwrap_or("Error"));
            if recoverable {
                data.bool("recoverable", true);
            }
        });
    }
}

fn head(context: &EncodeContext<'_>, object: &mut ObjectWriter<'_>, kind: &str, at: Timestamp) {
    object.str("type", kind);
    object.str("run_id", &context.ids.run);
    let time = object.key("timestamp");
    time.push(b'"');
    at.write(time);
    time.push(b'"');
}

fn metadata(context: &EncodeContext<'_>, object: &mut ObjectWriter<'_>) {
    metadata_with(context, object, |_| {});
}

fn metadata_with(
    context: &EncodeContext<'_>,
    object: &mut ObjectWriter<'_>,
    more: impl FnOnce(&mut ObjectWriter<'_>),
) {
    let mut metadata = object.object("metadata");
    metadata.str("thread_id", &context.ids.thread);
    more(&mut metadata);
    context.write_own_fields("metadata.", &mut metadata);
    context.write_residue(&mut metadata);
    metadata.end();
}

impl Encode for Encoder {
    fn event(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let (event, shown) = (context.event(), context.shown);
        let time = crate::dialect::shown_time(context);
        self.latest = self.latest.max(time);
        let is_own = context.same_dialect && context.record.source_time.is_some();
        self.time = if is_own { time } else { self.latest };
        let step = shown.step_of(event).map_or(shown.step_count.max(1), |step| step.ordinal);
        match &event.body {
            Body::RunStarted(started) => {
                if started.says_more() {
                    context.keep_in_residue();
                }
                self.frame(context, out, "run_started", |data| {
                    data.str("query", started.message.as_deref().unwrap_or_default());
                });
            }
            Body::StepStarted(started) => self.frame(context, out, "step_started", |data| {
                data.u64("step", step);
                write_step_name(data, step, &started.name);
            }),
            Body::StepFinished(finished) => {
                if finished.error.is_some() || !shown.ends_innermost(context.event(), &finished.name) {
                    context.keep_in_residue();
                }
                self.frame(context, out, "step_completed", |data| {
                    data.u64("step", step);
                    write_step_name(data, step, &finished.name);
                });
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
                context.keep_text(delta);
                self.text_delta(context, out, &delta.content, step);
            }
            Body::TextFinished(finished) => {
                let text = shown.text(&finished.message_id);
                if shown.awaits_first_frame(&finished.message_id) && finished.content.is_none() {
                    return;
                }
                let in_slot = text.is_some_and(ShownText::is_not_assistant);
                let replacement = context.replacement(finished).filter(|_| !in_slot);
                if finished.says_more() {
                    context.keep_in_residue();
                }
                // The document's clients show deltas only.
                if let Some(content) = replacement {
                    context.keep_replacement(finished, content);
                    self.text_delta(context, out, content, step);
                }
                let Some(text) = text.filter(|text| !text.needs_id) else {
                    if replacement.is_none() {
                        self.slot(context, out);
                    }
                    return;
                };
                let whole = context.history.text(text.start, &text.id);
                self.frame(context, out, "text_completed", |data| {
                    data.str("content", &whole);
                    data.u64("step", step);
                });
            }
            Body::ToolArgsStarted(_) | Body::ToolArgsDelta(_) | Body::ToolStarted(_) => {}
            Body::ToolCalled(called) => {
                if called.arguments_text.is_some()
                    || called.incomplete.is_some()
                    || called.description.is_some()
                {
                    context.keep_in_residue();
                }
                self.frame(context, out, "tool_call_started", |data| {
                    data.str("tool_name", &called.name);
                    data.str("tool_call_id", &called.call_id);
                    data.json("arguments", &called.arguments);
                    data.u64("step", step);
                });
            }
            Body::ToolFinished(finished) => {
                if finished.status == ToolStatus::Partial {
                    context.keep_in_residue();
                }
                let call = shown.call(&finished.call_id);
                let name =
                    finished.name.as_deref().or(call.map(|call| call.name.as_str())).unwrap_or("unknown");
                // At the epoch no time was ever told.
                let timed = call.filter(|call| call.at.0 > 0);
                let measured = timed.map(|call| context.record.at.since(call.at) as f64);
                let failed = finished.status == ToolStatus::Failure;
                let kind = if failed { "tool_call_failed" } else { "tool_call_completed" };
                self.frame(context, out, kind, |data| {
                    data.str("tool_name", name);
                    data.str("tool_call_id", &finished.call_id);
                    match &finished.result {
                        Some(result) => data.json("result", result),
                        None if failed => {}
                        None => data.null("result"),
                    }
                    if let Some(millis) = finished.duration_ms.or(measured
                        .filter(|_| !context.same_dialect || context.entry.origin == EventOrigin::Guard))
                    {
                        data.f64("duration", to_seconds(millis));
                    }
                    data.u64("step", step);
                    if failed {
                        let error = finished.error.as_ref();
                        data.str("error", &finished.text_form().unwrap_or("failed".into()));
                        data.opt_str(
                            "error_type",
                            error.and_then(|error| error.kind.as_deref().or(error.code.as_deref())),
                        );
                    }
                });
            }
            Body::Usage(usage) => self.usage(context, out, usage, step),
            Body::Metrics(metrics) if metrics.figures.is_object() => {
                self.frame(context, out, "metrics_snapshot", |data| {
                    for (name, raw) in Object::of_json(&metrics.figures).iter().flat_map(Object::fields) {
                        data.raw(name, raw.get());
                    }
                });
            }
            Body::Notice(notice) => match notice.level {
                Level::Error => {
                    self.failure(context, out, "error", &notice.to_error(), notice.fatal != Some(true))
                }
                Level::Warning | Level::Debug => {
                    let more = notice.code.is_some() || notice.domain.is_some() || notice.details.is_some();
                    if more || notice.fatal == Some(true) {
                        context.keep_in_residue();
                    }
                    self.frame(context, out, notice.level.as_str(), |data| {
                        data.str("message", &notice.message)
                    });
                }
            },
            Body::RunCompleted(completed) => {
                if completed.result.is_some() {
                    context.keep_in_residue();
                }
                let response = completed.reply.clone().unwrap_or_else(|| context.history.run_text());
                let summary = match (&completed.summary, context.same_dialect) {
                    (Some(summary), true) => summary.clone(),
                    (own, _) => shown.summary(own.as_ref(), context.record.at),
                };
                self.frame(context, out, "run_completed", |data| {
                    data.str("response", &response);
                    write_metrics(&summary, data.object("metrics"));
                });
            }
            Body::RunFailed(failed) => {
                self.summed_usage(context, out, failed.summary.as_ref(), step);
                if !shown.was_fatal_notice(&failed.error) {
                    self.failure(context, out, "error", &failed.error, false);
                }
                self.failure(context, out, "run_failed", &failed.error, false);
            }
            Body::RunCancelled(cancelled) => {
                self.summed_usage(context, out, cancelled.summary.as_ref(), step);
                self.frame(context, out, "run_cancelled", |data| {
                    data.opt_str("reason", cancelled.reason.as_deref())
                });
            }
            Body::Foreign(foreign)
                if foreign.dialect == "agio" && foreign.frame.is_object() && !context.full =>
            {
                foreign_frame(context, out, &foreign.frame, self.time);
            }
            _ => self.slot(context, out),
        }
    }

    /// Shows the implied part of a whole text as a delta, because the document's clients show only deltas.
    fn shows_implied(&self, context: &EncodeContext<'_>) -> bool {
        matches!(context.event().body, Body::TextDelta(_)) || context.ends_before_addition()
    }

    fn write_slot(&mut self, context: &EncodeContext<'_>, out: &mut Frames) {
        let mut object = ObjectWriter::begin(out.begin());
        head(context, &mut object, "debug", self.time);
        let mut data = object.object("data");
        context.write_native(data.key("runwire"));
        data.end();
        context.drop_residue();
        metadata(context, &mut object);
        object.end();
        out.end(None);
    }
}

/// Writes the name of a step, unless it is its number.
fn write_step_name(data: &mut ObjectWriter<'_>, step: u64, name: &str) {
    if name != format!("step-{step}") {
        data.str("name", name);
    }
}

fn write_metrics(summary: &Summary, mut metrics: ObjectWriter<'_>) {
    metrics.f64("duration", to_seconds(summary.duration_ms.unwrap_or(0.0)));
    metrics.opt_u64("steps_count", summary.steps);
    metrics.opt_u64("tool_calls_count", summary.tool_calls);
    metrics.opt_u64("total_tokens", summary.total_tokens);
    metrics.opt_u64("total_prompt_tokens", summary.prompt_tokens);
    metrics.opt_u64("total_completion_tokens", summary.completion_tokens);
    metrics.opt_f64("response_latency", summary.response_latency_ms);
    metrics.extra(&summary.extra);
    metrics.end();
}

/// Writes a frame of unknown type as it came, in a new envelope.
fn foreign_frame(context: &EncodeContext<'_>, out: &mut Frames, frame: &Json, at: Timestamp) {
    let mut source = Object::of_json(frame).unwrap_or_default();
    let kind = source.take_opt_str("type").ok().flatten();
    let mut object = ObjectWriter::begin(out.begin());
    head(context, &mut object, kind.as_deref().unwrap_or("debug"), at);
    for envelope in ["run_id", "timestamp"] {
        source.take(envelope);
    }
    let own = source.take("metadata").and_then(Object::of).unwrap_or_default();
    match source.take("data") {
        Some(data) => object.raw("data", Json::from_raw(data).text()),
        None => object.raw("data", "{}"),
    }
    metadata_with(context, &mut object, |metadata| context.write_rest(metadata, &own, &["thread_id"]));
    for (name, raw) in source.fields() {
        object.raw(name, raw.get());
    }
    object.end();
    out.end(None);
}

fn to_seconds(millis: f64) -> f64 {
    (millis * 1e6).round() / 1e9
}
