//! `agio`: Agio's events (`docs/dialects/agio.md`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::decode::{
    DecodeError, DecoderState, Envelope, Opened, owned, read_arguments, slot_event, take_residue,
    weave_residue,
};
use super::encode::{Encode, Turn};
use super::registry::{AgentStart, Ending, NamedIds, Read, Rule, Spec, StartRequest};
use super::{Frames, Weave};
use crate::event::{
    Body, ErrorInfo, Event, Extra, Level, Metrics, Notice, RunCancelled, RunCompleted, RunFailed, RunStarted,
    Summary, TextFinished, ToolCalled, ToolFinished, ToolStatus, Usage,
};
use crate::json::{FieldError, Json, Object, ObjectWriter};
use crate::record::By;
use crate::time::Timestamp;

pub(super) const SPEC: Spec = Spec {
    name: "agio",
    read: Some(Read {
        open,
        decode,
        detect: &[Rule { rank: 5, matches: is_agio }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::Run,
    thread_field: "metadata.thread_id",
    schema: include_str!("../../../../vectors/agio/schema.json"),
    frames_section: "统一事件模型",
    offers_attach: false,
    has_unnamed_pieces: true,
    has_extensions: true,
};

// Decoding

fn is_agio(frame: &Object<'_>) -> bool {
    ["run_id", "timestamp", "data"].iter().all(|key| frame.has(key))
}

/// The body of `POST /agent/stream`.
fn start_request(start: &AgentStart<'_>) -> Value {
    json!({"query": start.message.unwrap_or_default()})
}

fn ending(frame: &Object<'_>, name: Option<&str>) -> Option<Ending> {
    match frame.get_str("type").as_deref().or(name) {
        Some("run_completed" | "run_cancelled") => Some(Ending::Over),
        Some("run_failed") => Some(Ending::Failed),
        _ => None,
    }
}

/// In the wild the type also stands in the SSE name alone, and the data is the event's `data`.
pub(super) fn open(object: &mut Object<'_>, name: Option<&str>) -> Result<Envelope, FieldError> {
    if !is_whole(object) {
        let starts = name == Some("run_started");
        return Ok(Envelope { starts, begins: starts, ..Envelope::default() });
    }
    let metadata = object.get("metadata").and_then(Object::of);
    let thread = metadata.map(|metadata| metadata.get_id("thread_id")).transpose()?.flatten();
    let time = object.get_str("timestamp").and_then(|text| Timestamp::parse(&text));
    let starts = object.get_str("type").as_deref() == Some("run_started");
    let run = object.take_id("run_id")?;
    // A run that names no thread has one of its own.
    Ok(Envelope { thread: thread.or_else(|| run.clone()), run, time, starts, begins: starts })
}

fn is_whole(object: &Object<'_>) -> bool {
    object.has("type") && (object.has("data") || object.has("run_id"))
}

pub(super) fn decode(
    _state: &mut DecoderState,
    mut frame: Opened<'_>,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
    let whole = frame.whole();
    let named = frame.name.filter(|_| !is_whole(&frame.object) && !frame.object.has("data"));
    let (kind, mut data, metadata, outer) = match named {
        Some(name) => (Cow::Borrowed(name), frame.object, None, None),
        None => {
            let mut metadata = frame.object.take_object("metadata")?;
            let residue = metadata.as_mut().and_then(take_residue);
            if weave_residue(residue.as_ref(), weave)? {
                return Ok(());
            }
            if let Some(metadata) = &mut metadata {
                metadata.take("thread_id");
            }
            frame.object.take("timestamp");
            let data = frame.object.take_object("data")?.unwrap_or_default();
            (frame.object.take_str("type")?, data, metadata, Some(frame.object))
        }
    };
    let inside = |error: FieldError| error.inside("data");
    let step = match &*kind {
        "metrics_snapshot" => None,
        _ => data.take_opt::<u64>("step").map_err(inside)?,
    };
    let Some(payload) = read_payload(&kind, &mut data, step).map_err(inside)? else {
        return Ok(weave.foreign(whole, frame.name)?);
    };
    let mut extra = data.rest();
    extra.add_inside("metadata", metadata.as_ref());
    extra.add_inside("frame", outer.as_ref());
    weave_payload(payload, extra, weave)
}

/// What a frame's data says.
enum Payload {
    Started { message: Option<String> },
    Completed { reply: Option<String>, summary: Option<Summary> },
    Failed { error: Option<ErrorInfo> },
    Cancelled { reason: Option<String> },
    StepStarted { name: Option<String>, step: Option<u64> },
    StepCompleted { name: Option<String>, step: Option<u64> },
    Text { content: String },
    WholeText { content: String },
    Called { id: Option<String>, called: ToolCalled },
    Finished { id: Option<String>, finished: ToolFinished },
    Usage(Usage),
    Metrics(Metrics),
    Notice(Notice),
    Slot(Box<Event>),
}

fn read_payload(kind: &str, data: &mut Object<'_>, step: Option<u64>) -> Result<Option<Payload>, FieldError> {
    Ok(Some(match kind {
        "run_started" => Payload::Started { message: owned(data.take_opt_str("query")?) },
        "run_completed" => Payload::Completed {
            reply: owned(data.take_opt_str("response")?),
            summary: data.take_object("metrics")?.map(summary).transpose()?,
        },
        "run_failed" => {
            let (message, kind) =
                (owned(data.take_opt_str("error")?), owned(data.take_opt_str("error_type")?));
            Payload::Failed {
                error: message.map(|message| ErrorInfo { kind, ..ErrorInfo::message(message) }),
            }
        }
        "run_cancelled" => Payload::Cancelled { reason: owned(data.take_opt_str("reason")?) },
        "step_started" => Payload::StepStarted { name: data.take_id("name")?, step },
        "step_completed" => Payload::StepCompleted { name: data.take_id("name")?, step },
        "text_delta" => Payload::Text { content: data.take_str("content")?.into_owned() },
        "text_completed" => {
            Payload::WholeText { content: owned(data.take_opt_str("content")?).unwrap_or_default() }
        }
        "tool_call_started" => {
            let (id, name) = (data.take_id("tool_call_id")?, data.take_required_id("tool_name")?);
            let mut called = ToolCalled { name, ..Default::default() };
            read_arguments(&mut called, data.take("arguments").map(Json::from_raw));
            Payload::Called { id, called }
        }
        "tool_call_completed" | "tool_call_failed" => {
            let (id, name) = (data.take_id("tool_call_id")?, data.take_id("tool_name")?);
            let result = data.take_present("result").map(Json::from_raw);
            let seconds: Option<f64> = data.take_opt("duration")?;
            let mut finished =
                ToolFinished { name, result, duration_ms: seconds.map(to_millis), ..Default::default() };
            if kind == "tool_call_failed" {
                finished.status = ToolStatus::Failure;
                let message =
                    data.take_present("error").map(|raw| Json::from_raw(raw).text_form().into_owned());
                let kind = owned(data.take_opt_str("error_type")?);
                finished.error = message.map(|message| ErrorInfo { kind, ..ErrorInfo::message(message) });
            }
            Payload::Finished { id, finished }
        }
        "usage_update" => {
            let mut nested = data.take_object("usage")?;
            let usage = nested.as_mut().unwrap_or(data);
            Payload::Usage(Usage {
                prompt_tokens: usage.take_opt("prompt_tokens")?,
                completion_tokens: usage.take_opt("completion_tokens")?,
                total_tokens: usage.take_opt("total_tokens")?,
            })
        }
        "metrics_snapshot" => Payload::Metrics(Metrics { figures: super::fields_of(&std::mem::take(data)) }),
        "error" => {
            let message = match data.take_opt_str("error")? {
                Some(error) => error,
                None => data.take_str("message")?,
            };
            let recoverable = data.take_opt::<bool>("recoverable")?.unwrap_or(false);
            Payload::Notice(Notice {
                level: Level::Error,
                message: message.into_owned(),
                kind: owned(data.take_opt_str("error_type")?),
                fatal: Some(!recoverable),
                ..Default::default()
            })
        }
        "warning" | "debug" => {
            if let Some(event) = data.get("runwire").map(Json::from_raw).as_ref().and_then(slot_event) {
                return Ok(Some(Payload::Slot(Box::new(event))));
            }
            let level = if kind == "debug" { Level::Debug } else { Level::Warning };
            let message = owned(data.take_opt_str("message")?).unwrap_or_default();
            Payload::Notice(Notice { level, message, ..Default::default() })
        }
        _ => return Ok(None),
    }))
}

fn summary(mut metrics: Object<'_>) -> Result<Summary, FieldError> {
    let inside = |error: FieldError| error.inside("metrics");
    let duration: Option<f64> = metrics.take_opt("duration").map_err(inside)?;
    Ok(Summary {
        duration_ms: duration.map(to_millis),
        steps: metrics.take_opt("steps_count").map_err(inside)?,
        tool_calls: metrics.take_opt("tool_calls_count").map_err(inside)?,
        total_tokens: metrics.take_opt("total_tokens").map_err(inside)?,
        prompt_tokens: metrics.take_opt("total_prompt_tokens").map_err(inside)?,
        completion_tokens: metrics.take_opt("total_completion_tokens").map_err(inside)?,
        response_latency_ms: metrics.take_opt("response_latency").map_err(inside)?,
        extra: metrics.rest(),
    })
}

/// Seconds to milliseconds, without the noise of binary fractions.
fn to_millis(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e6
}

fn to_seconds(millis: f64) -> f64 {
    (millis * 1e6).round() / 1e9
}

fn weave_payload(payload: Payload, extra: Extra, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
    match payload {
        Payload::Started { message } => weave.say(RunStarted { message, ..Default::default() }, extra)?,
        Payload::Completed { reply, summary } => {
            weave.complete(RunCompleted { reply, summary, result: None }, extra)?;
        }
        Payload::Failed { error } => weave.fail(error, RunFailed::default(), extra)?,
        Payload::Cancelled { reason } => weave.say(RunCancelled { reason, summary: None }, extra)?,
        Payload::StepStarted { name, step } => {
            let ordinal = step.unwrap_or(weave.state.run_steps() + 1);
            weave.step_started(name.unwrap_or_else(|| format!("step-{ordinal}")), extra)?;
        }
        Payload::StepCompleted { name, step } => {
            let numbered = step.map(|step| format!("step-{step}"));
            let is_open = |name: &String| weave.state.steps.iter().any(|open| open.name == *name);
            let known = name.or(numbered).filter(is_open);
            let innermost = || weave.state.current_step().map(|step| step.name.clone());
            let name = known.or_else(innermost).unwrap_or_default();
            weave.step_finished(name, None, extra)?;
        }
        Payload::Text { content } => weave.text(None, content.into(), None, extra)?,
        Payload::WholeText { content } => {
            weave.whole_text(&content, By::Decoder, Extra::default())?;
            if let Some(text) = weave.state.texts.iter().rfind(|text| text.minted) {
                let message_id = text.id.clone();
                weave.say(TextFinished { message_id, ..Default::default() }, extra)?;
            }
        }
        Payload::Called { id, called } => weave.called(id, called, extra)?,
        Payload::Finished { id, finished } => weave.tool_finished(id, finished, extra)?,
        Payload::Usage(usage) => weave.say(usage, extra)?,
        Payload::Metrics(metrics) => weave.say(metrics, extra)?,
        Payload::Notice(notice) => weave.say(notice, extra)?,
        Payload::Slot(event) => weave.slot(*event)?,
    }
    Ok(())
}

// Encoding

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {}

impl Encoder {
    fn frame(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        kind: &str,
        data: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = ObjectWriter::begin(out.begin());
        head(turn, &mut object, kind);
        let mut inner = object.object("data");
        data(&mut inner);
        turn.write_own("", &mut inner);
        inner.end();
        metadata(turn, &mut object);
        turn.write_own("frame.", &mut object);
        object.end();
        out.end(None);
    }

    fn text_delta(&mut self, turn: &Turn<'_>, out: &mut Frames, content: &str, step: u64) {
        self.frame(turn, out, "text_delta", |data| {
            data.str("content", content);
            data.u64("step", step);
        });
    }

    fn usage(&mut self, turn: &Turn<'_>, out: &mut Frames, usage: &Usage, step: u64) {
        let (prompt, completion) = (usage.prompt_tokens.unwrap_or(0), usage.completion_tokens.unwrap_or(0));
        self.frame(turn, out, "usage_update", |data| {
            data.u64("prompt_tokens", prompt);
            data.u64("completion_tokens", completion);
            data.u64("total_tokens", usage.total_tokens.unwrap_or(prompt.saturating_add(completion)));
            data.u64("step", step);
        });
    }

    /// Writes tokens that the source only summed up at the end, where the end has no place for them.
    fn summed_usage(&mut self, turn: &Turn<'_>, out: &mut Frames, summary: Option<&Summary>, step: u64) {
        if let Some(usage) = turn.track.summed_usage(summary).filter(|_| !turn.full) {
            self.usage(turn, out, &usage, step);
        }
    }

    fn failure(
        &mut self,
        turn: &Turn<'_>,
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
            turn.keep_whole();
        }
        self.frame(turn, out, kind, |data| {
            data.str("error", &error.message);
            data.str("error_type", error.kind.as_deref().or(error.code.as_deref()).unwrap_or("Error"));
            if recoverable {
                data.bool("recoverable", true);
            }
        });
    }
}

fn head(turn: &Turn<'_>, object: &mut ObjectWriter<'_>, kind: &str) {
    object.str("type", kind);
    object.str("run_id", &turn.ids.run);
    let time = object.key("timestamp");
    time.push(b'"');
    super::shown_time(turn).write(time);
    time.push(b'"');
}

fn metadata(turn: &Turn<'_>, object: &mut ObjectWriter<'_>) {
    metadata_with(turn, object, |_| {});
}

fn metadata_with(turn: &Turn<'_>, object: &mut ObjectWriter<'_>, more: impl FnOnce(&mut ObjectWriter<'_>)) {
    let mut metadata = object.object("metadata");
    metadata.str("thread_id", &turn.ids.thread);
    more(&mut metadata);
    turn.write_own("metadata.", &mut metadata);
    turn.write_residue(&mut metadata);
    metadata.end();
}

impl Encode for Encoder {
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let (event, track) = (turn.event(), turn.track);
        let step = track.step_of(event).map_or(track.step_count.max(1), |step| step.ordinal);
        match &event.body {
            Body::RunStarted(started) => {
                if started.says_more() {
                    turn.keep_whole();
                }
                self.frame(turn, out, "run_started", |data| {
                    data.str("query", started.message.as_deref().unwrap_or_default());
                });
            }
            Body::StepStarted(started) => self.frame(turn, out, "step_started", |data| {
                data.u64("step", step);
                write_step_name(data, step, &started.name);
            }),
            Body::StepFinished(finished) => {
                if finished.error.is_some() || !track.ends_innermost(turn.event(), &finished.name) {
                    turn.keep_whole();
                }
                self.frame(turn, out, "step_completed", |data| {
                    data.u64("step", step);
                    write_step_name(data, step, &finished.name);
                });
            }
            Body::TextStarted(started) => {
                if started.is_not_assistant() {
                    self.slot(turn, out);
                }
            }
            Body::TextDelta(delta) => {
                if track.text(&delta.message_id).is_none_or(|text| text.aside) {
                    return self.slot(turn, out);
                }
                turn.keep_continuation(delta);
                self.text_delta(turn, out, &delta.content, step);
            }
            Body::TextFinished(finished) => {
                let text = track.text(&finished.message_id);
                if track.is_silent(&finished.message_id) && finished.content.is_none() {
                    return;
                }
                let aside = text.is_some_and(|text| text.aside);
                let replacement = turn.replacement(finished).filter(|_| !aside);
                if finished.says_more() || replacement.is_some() {
                    turn.keep_whole();
                }
                // The document's clients show deltas only.
                if let Some(content) = replacement {
                    self.text_delta(turn, out, content, step);
                }
                let Some(text) = text.filter(|text| !text.aside) else {
                    if replacement.is_none() {
                        self.slot(turn, out);
                    }
                    return;
                };
                let whole = turn.earlier.text(text.start, &text.id);
                self.frame(turn, out, "text_completed", |data| {
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
                    turn.keep_whole();
                }
                self.frame(turn, out, "tool_call_started", |data| {
                    data.str("tool_name", &called.name);
                    data.str("tool_call_id", &called.call_id);
                    data.json("arguments", &called.arguments);
                    data.u64("step", step);
                });
            }
            Body::ToolFinished(finished) => {
                if finished.status == ToolStatus::Partial {
                    turn.keep_whole();
                }
                let call = track.call(&finished.call_id);
                let name =
                    finished.name.as_deref().or(call.map(|call| call.name.as_str())).unwrap_or("unknown");
                // At the epoch no time was ever told.
                let timed = call.filter(|call| call.at.0 > 0);
                let measured = timed.map(|call| turn.record.at.since(call.at) as f64);
                let failed = finished.status == ToolStatus::Failure;
                let kind = if failed { "tool_call_failed" } else { "tool_call_completed" };
                self.frame(turn, out, kind, |data| {
                    data.str("tool_name", name);
                    data.str("tool_call_id", &finished.call_id);
                    match &finished.result {
                        Some(result) => data.json("result", result),
                        None if failed => {}
                        None => data.null("result"),
                    }
                    if let Some(millis) =
                        finished.duration_ms.or(measured.filter(|_| !turn.own || turn.entry.by == By::Guard))
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
            Body::Usage(usage) => self.usage(turn, out, usage, step),
            Body::Metrics(metrics) if metrics.figures.is_object() => {
                self.frame(turn, out, "metrics_snapshot", |data| {
                    for (name, raw) in Object::of_json(&metrics.figures).iter().flat_map(Object::fields) {
                        data.raw(name, raw.get());
                    }
                });
            }
            Body::Notice(notice) => match notice.level {
                Level::Error => {
                    self.failure(turn, out, "error", &notice.to_error(), notice.fatal != Some(true))
                }
                Level::Warning | Level::Debug => {
                    let more = notice.code.is_some() || notice.domain.is_some() || notice.details.is_some();
                    if more || notice.fatal == Some(true) {
                        turn.keep_whole();
                    }
                    self.frame(turn, out, notice.level.as_str(), |data| data.str("message", &notice.message));
                }
            },
            Body::RunCompleted(completed) => {
                if completed.result.is_some() {
                    turn.keep_whole();
                }
                let response = completed.reply.clone().unwrap_or_else(|| turn.earlier.run_text());
                let summary = match (&completed.summary, turn.own) {
                    (Some(summary), true) => summary.clone(),
                    (told, _) => track.summary(told.as_ref(), turn.record.at),
                };
                self.frame(turn, out, "run_completed", |data| {
                    data.str("response", &response);
                    write_metrics(&summary, data.object("metrics"));
                });
            }
            Body::RunFailed(failed) => {
                self.summed_usage(turn, out, failed.summary.as_ref(), step);
                if !track.said_fatally(&failed.error) {
                    self.failure(turn, out, "error", &failed.error, false);
                }
                self.failure(turn, out, "run_failed", &failed.error, false);
            }
            Body::RunCancelled(cancelled) => {
                self.summed_usage(turn, out, cancelled.summary.as_ref(), step);
                self.frame(turn, out, "run_cancelled", |data| {
                    data.opt_str("reason", cancelled.reason.as_deref())
                });
            }
            Body::Foreign(foreign)
                if foreign.dialect == "agio" && foreign.frame.is_object() && !turn.full =>
            {
                foreign_frame(turn, out, &foreign.frame);
            }
            _ => self.slot(turn, out),
        }
    }

    /// The document's clients show deltas only: what a whole text adds is told as one.
    fn shows_implied(&self, turn: &Turn<'_>) -> bool {
        matches!(turn.event().body, Body::TextDelta(_)) || turn.ends_before_addition()
    }

    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let mut object = ObjectWriter::begin(out.begin());
        head(turn, &mut object, "debug");
        let mut data = object.object("data");
        turn.write_native(data.key("runwire"));
        data.end();
        turn.told_in_slot();
        metadata(turn, &mut object);
        object.end();
        out.end(None);
    }
}

/// Writes the name of a step, unless its number says it.
fn write_step_name(data: &mut ObjectWriter<'_>, step: u64, name: &str) {
    if name != format!("step-{step}") {
        data.str("name", name);
    }
}

fn write_metrics(summary: &Summary, mut metrics: ObjectWriter<'_>) {
    metrics.f64("duration", to_seconds(summary.duration_ms.unwrap_or(0.0)));
    for (name, value) in [
        ("steps_count", summary.steps),
        ("tool_calls_count", summary.tool_calls),
        ("total_tokens", summary.total_tokens),
        ("total_prompt_tokens", summary.prompt_tokens),
        ("total_completion_tokens", summary.completion_tokens),
    ] {
        if let Some(value) = value {
            metrics.u64(name, value);
        }
    }
    if let Some(latency) = summary.response_latency_ms {
        metrics.f64("response_latency", latency);
    }
    for (name, value) in summary.extra.iter() {
        metrics.json(name, value);
    }
    metrics.end();
}

/// Hands on a frame of unknown type as it came, in our envelope.
fn foreign_frame(turn: &Turn<'_>, out: &mut Frames, frame: &Json) {
    let mut source = Object::of_json(frame).unwrap_or_default();
    let kind = source.take_opt_str("type").ok().flatten();
    let mut object = ObjectWriter::begin(out.begin());
    head(turn, &mut object, kind.as_deref().unwrap_or("debug"));
    for envelope in ["run_id", "timestamp"] {
        source.take(envelope);
    }
    let own = source.take("metadata").and_then(Object::of).unwrap_or_default();
    match source.take("data") {
        Some(data) => object.raw("data", Json::from_raw(data).text()),
        None => object.raw("data", "{}"),
    }
    metadata_with(turn, &mut object, |metadata| turn.write_rest(metadata, &own, &["thread_id"]));
    for (name, raw) in source.fields() {
        object.raw(name, raw.get());
    }
    object.end();
    out.end(None);
}
