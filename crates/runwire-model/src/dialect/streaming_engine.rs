//! `streaming-engine`: StreamingEngine's events, and the older ones it still sends
//! (`docs/dialects/streaming-engine.md`).

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
    Body, Data, ErrorInfo, Extra, Level, Notice, RunCancelled, RunCompleted, RunFailed, RunStarted, Summary,
    TextFinished, ToolCalled, ToolFinished, ToolProgress, ToolStatus,
};
use crate::json::{FieldError, Json, Object, ObjectWriter};
use crate::record::{By, Entry};
use crate::time::Timestamp;

const STAGES: &[&str] = &["reasoning", "planning", "analyzing"];
const FORMATS: &[&str] = &["markdown", "text", "html"];
const DATA_TYPES: &[&str] = &["dataframe", "chart", "image", "custom"];
const ERROR_TYPES: &[&str] = &["validation", "execution", "timeout", "system"];
/// Name of the field that marks the last `content` of a run.
const LAST_PIECE: &str = "is_complete";
/// The members of `metadata` that are stamped anew on every frame.
const STAMPED: [&str; 3] = ["request_id", "timestamp", "sequence"];
/// Times from here up to ten times as much have ten digits: they are seconds.
const FIRST_TEN_DIGITS: f64 = 1e9;

pub(super) const SPEC: Spec = Spec {
    name: "streaming-engine",
    read: Some(Read {
        open,
        decode,
        detect: &[Rule { rank: 6, matches: has_envelope }, Rule { rank: 7, matches: is_legacy }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::Run,
    thread_field: "data.session_id",
    schema: include_str!("../../../../vectors/streaming-engine/schema.json"),
    frames_section: "§1.2",
    offers_attach: true,
    has_unnamed_pieces: true,
    has_extensions: true,
};

// Decoding

fn has_envelope(frame: &Object<'_>) -> bool {
    frame.has("data") && frame.has("metadata")
}

/// Recognises the older form (§6), flat or nested.
fn is_legacy(frame: &Object<'_>) -> bool {
    let data = frame.get("data").and_then(Object::of);
    frame.has("tool_id")
        || data.is_some_and(|data| data.has("tool_id"))
        || matches!(frame.get_str("type").as_deref(), Some("token" | "final_answer" | "done"))
}

/// The body of a chat request.
fn start_request(start: &AgentStart<'_>) -> Value {
    json!({"session_id": start.thread, "content": start.message.unwrap_or_default()})
}

fn ending(frame: &Object<'_>, _name: Option<&str>) -> Option<Ending> {
    let is_end = matches!(frame.get_str("type").as_deref(), Some("session_end" | "done"));
    is_end.then_some(Ending::Over)
}

pub(super) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
    let kind = object.get_str("type");
    let begins = kind.as_deref() == Some("session_start");
    let metadata = object.get("metadata").and_then(Object::of);
    let data = object.get("data").filter(|_| begins).and_then(Object::of);
    let id = |part: &Option<Object<'_>>, key: &str| part.as_ref().map(|part| part.get_id(key)).transpose();
    let run = match id(&metadata, "request_id")?.flatten() {
        Some(run) => Some(run),
        None => id(&data, "request_id")?.flatten(),
    };
    let time = metadata.as_ref().and_then(|metadata| metadata.get("timestamp"));
    let time = time.and_then(|raw| raw.get().parse::<f64>().ok()).filter(|time| *time >= 0.0).map(to_millis);
    let older = metadata.is_none() && matches!(kind.as_deref(), Some("token" | "thinking" | "tool_call"));
    Ok(Envelope {
        thread: id(&data, "session_id")?.flatten(),
        run,
        time: time.and_then(|millis| Timestamp::from_millis(millis as u64)),
        starts: older || begins,
        begins,
    })
}

/// Reads a time in milliseconds, or in seconds, which have ten digits before the point.
fn to_millis(time: f64) -> f64 {
    let is_seconds = (FIRST_TEN_DIGITS..FIRST_TEN_DIGITS * 10.0).contains(&time);
    if is_seconds { (time * 1000.0).round() } else { time }
}

pub(super) fn decode(
    _state: &mut DecoderState,
    mut frame: Opened<'_>,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
    let whole = frame.whole();
    let mut metadata = frame.object.take_object("metadata")?;
    let residue = metadata.as_mut().and_then(take_residue);
    if weave_residue(residue.as_ref(), weave)? {
        return Ok(());
    }
    let kind = frame.object.take_str("type")?;
    if kind == "runwire" {
        let slot = frame.object.get("data").map(Json::from_raw).as_ref().and_then(slot_event);
        match slot {
            Some(event) => weave.slot(event)?,
            None => weave.foreign(whole, frame.name)?,
        }
        return Ok(());
    }
    // The older events are flat, or nested without metadata; a flat `dataframe_data` has a `data` of its own.
    let nested = frame
        .object
        .get("data")
        .and_then(Object::of)
        .filter(|_| kind != "dataframe_data" || metadata.is_some());
    let is_nested = nested.is_some();
    let mut data = match nested {
        Some(data) => {
            frame.object.take("data");
            data
        }
        None => std::mem::take(&mut frame.object),
    };
    let inside = |error: FieldError| if is_nested { error.inside("data") } else { error };
    let duration_ms = match &mut metadata {
        Some(metadata) => {
            for stamped in STAMPED {
                metadata.take(stamped);
            }
            metadata.take_opt("duration_ms").map_err(|error| error.inside("metadata"))?
        }
        None => None,
    };
    let payload = read_payload(&kind, &mut data, weave).map_err(inside)?;
    let mut extra = data.rest();
    for (name, raw) in frame.object.fields() {
        extra.set(format!("frame.{name}"), Json::from_raw(raw));
    }
    extra.add_inside("metadata", metadata.as_ref());
    match payload {
        Some(payload) => weave_payload(payload, duration_ms, extra, weave),
        None => Ok(weave.foreign(whole, frame.name)?),
    }
}

/// What a frame's data says.
enum Payload {
    Start,
    Thinking { content: String, stage: Option<String> },
    Called { id: Option<String>, called: ToolCalled },
    Progress { id: Option<String>, progress: ToolProgress },
    Finished { id: Option<String>, finished: ToolFinished },
    Content { content: String, format: Option<String>, complete: bool },
    Whole { content: String },
    Data(Data),
    Error(Notice),
    End { status: End, summary: Option<Summary> },
}

enum End {
    Completed,
    Error,
    Cancelled,
}

fn read_payload(kind: &str, data: &mut Object<'_>, weave: &Weave<'_>) -> Result<Option<Payload>, FieldError> {
    Ok(Some(match kind {
        "session_start" => {
            data.take("session_id");
            data.take("request_id");
            Payload::Start
        }
        "thinking" => Payload::Thinking {
            content: data.take_str("content")?.into_owned(),
            stage: owned(data.take_opt_str("stage")?),
        },
        "tool_call_start" | "tool_call" => {
            let (id, name) = (data.take_id("tool_id")?, data.take_required_id("tool_name")?);
            let description = owned(data.take_opt_str("description")?);
            let mut called = ToolCalled { name, description, ..Default::default() };
            let arguments = data.take("arguments").or_else(|| data.take("tool_args"));
            read_arguments(&mut called, arguments.map(Json::from_raw));
            Payload::Called { id, called }
        }
        "tool_call_progress" => {
            let id = data.take_id("tool_id")?;
            let progress = data.take_opt("progress")?;
            let message = owned(data.take_opt_str("message")?);
            Payload::Progress { id, progress: ToolProgress { progress, message, ..Default::default() } }
        }
        "tool_call_end" | "tool_result" => {
            let (id, name) = (data.take_id("tool_id")?, data.take_id("tool_name")?);
            let word = owned(data.take_opt_str("status")?);
            let status = tool_status(word.as_deref())?;
            let result = data.take_present("result").map(Json::from_raw);
            let error = data.take_present("error").map(|raw| ErrorInfo::read_lenient(&Json::from_raw(raw)));
            Payload::Finished {
                id,
                finished: ToolFinished { name, status, result, error, ..Default::default() },
            }
        }
        "content" | "token" => Payload::Content {
            content: data.take_str("content")?.into_owned(),
            format: owned(data.take_opt_str("format")?),
            complete: data.take_opt("is_complete")?.unwrap_or(false),
        },
        "final_answer" => Payload::Whole { content: data.take_str("content")?.into_owned() },
        "data" => Payload::Data(Data {
            data_type: data.take_required_id("data_type")?,
            data: data.take_json("data")?,
            metadata: data.take_present("metadata").map(Json::from_raw),
            call_id: the_only_call(weave),
        }),
        "dataframe_data" => Payload::Data(dataframe(data, weave)?),
        "error" => {
            let kind = owned(data.take_opt_str("error_type")?);
            let message = data.take_str("message")?.into_owned();
            let details = data.take_present("details").map(Json::from_raw);
            let recoverable = data.take_opt::<bool>("recoverable")?.unwrap_or(false);
            Payload::Error(Notice {
                level: Level::Error,
                kind,
                message,
                details,
                fatal: Some(!recoverable),
                ..Default::default()
            })
        }
        "session_end" => {
            let status = match data.take_opt_str("status")?.as_deref() {
                None | Some("completed" | "success") => End::Completed,
                Some("error" | "failed") => End::Error,
                Some("cancelled" | "canceled") => End::Cancelled,
                Some(other) => {
                    let problem = format!("must be one of completed error cancelled, and is `{other}`");
                    return Err(FieldError::new("status", problem));
                }
            };
            Payload::End { status, summary: data.take_opt("summary")? }
        }
        "done" => Payload::End { status: End::Completed, summary: data.take_opt("summary")? },
        _ => return Ok(None),
    }))
}

fn tool_status(word: Option<&str>) -> Result<ToolStatus, FieldError> {
    match word {
        None | Some("success" | "completed") => Ok(ToolStatus::Success),
        Some("failed" | "failure" | "error") => Ok(ToolStatus::Failure),
        Some("partial") => Ok(ToolStatus::Partial),
        Some(other) => Err(FieldError::new("status", format!("must be success or failed, and is `{other}`"))),
    }
}

fn the_only_call(weave: &Weave<'_>) -> Option<String> {
    match weave.state.calls.as_slice() {
        [call] => Some(call.id.clone()),
        _ => None,
    }
}

/// Reads an older table into the form that `data` has.
fn dataframe(data: &mut Object<'_>, weave: &Weave<'_>) -> Result<Data, FieldError> {
    let mut table = match data.get("data").and_then(Object::of) {
        Some(table) => {
            data.take("data");
            table
        }
        None => std::mem::take(data),
    };
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    for (name, old) in [("name", "dataframe_name"), ("columns", "columns"), ("rows", "data")] {
        if let Some(raw) = table.take(old) {
            object.json(name, &Json::from_raw(raw));
        }
    }
    for (name, raw) in table.fields() {
        object.json(name, &Json::from_raw(raw));
    }
    object.end();
    Ok(Data {
        data_type: "dataframe".into(),
        data: Json::from_written(out),
        metadata: None,
        call_id: the_only_call(weave),
    })
}

fn weave_payload(
    payload: Payload,
    duration_ms: Option<f64>,
    extra: Extra,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
    match payload {
        Payload::Start => weave.say(RunStarted::default(), extra)?,
        Payload::Thinking { content, stage } => weave.thinking(None, content.into(), stage, extra)?,
        Payload::Called { id, called } => weave.called(id, called, extra)?,
        Payload::Progress { id, progress } => weave.tool_progress(id, progress, extra)?,
        Payload::Finished { id, mut finished } => {
            finished.duration_ms = duration_ms;
            weave.tool_finished(id, finished, extra)?;
        }
        Payload::Content { content, format, complete: false } => {
            weave.text(None, content.into(), format, extra)?
        }
        Payload::Content { content, format, complete: true } => {
            let mut extra = extra;
            let is_open = weave.state.texts.iter().any(|text| text.minted);
            // After the last text it adds nothing: the run's end marks the answer as complete.
            let is_new = !content.is_empty() || !weave.has_texts();
            if is_open && content.is_empty() {
                if let Some(format) = format {
                    extra.set("format", Json::string(&format));
                }
            } else if is_new {
                weave.text(None, content.into(), format, std::mem::take(&mut extra))?;
            }
            if let Some(text) = weave.state.texts.iter().rfind(|text| text.minted) {
                let message_id = text.id.clone();
                // Kept because it says more than that the text ends: it was the run's last piece.
                extra.set(LAST_PIECE, Json::from_valid("true"));
                weave.say(TextFinished { message_id, ..Default::default() }, extra)?;
            }
        }
        Payload::Whole { content } => weave.whole_text(&content, By::Producer, extra)?,
        Payload::Data(data) => weave.say(data, extra)?,
        Payload::Error(notice) => weave.say(notice, extra)?,
        Payload::End { status: End::Completed, summary } => {
            weave.complete(RunCompleted { summary, ..Default::default() }, extra)?;
        }
        Payload::End { status: End::Error, summary } => {
            weave.fail(None, RunFailed { summary, ..Default::default() }, extra)?;
        }
        Payload::End { status: End::Cancelled, summary } => {
            weave.say(RunCancelled { summary, ..Default::default() }, extra)?;
        }
    }
    Ok(())
}

// Encoding

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {
    sequence: u64,
    /// What the run's end must know of the answer, once a native `content` was written.
    answer: Option<Answer>,
    /// Whether `is_complete: true` was written, which happens once a run.
    complete: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Answer {
    /// Format of its last piece.
    format: Option<String>,
}

impl Encoder {
    fn frame(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        kind: &str,
        data: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.frame_with(turn, out, kind, data, |_| {});
    }

    fn frame_with(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        kind: &str,
        data: impl FnOnce(&mut ObjectWriter<'_>),
        metadata: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", kind);
        let mut inner = object.object("data");
        data(&mut inner);
        turn.write_own("", &mut inner);
        inner.end();
        self.metadata(turn, &mut object, metadata);
        turn.write_own("frame.", &mut object);
        object.end();
        out.end(None);
    }

    fn metadata(
        &mut self,
        turn: &Turn<'_>,
        object: &mut ObjectWriter<'_>,
        more: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut metadata = object.object("metadata");
        metadata.str("request_id", &turn.ids.run);
        metadata.u64("timestamp", super::shown_time(turn).0);
        metadata.u64("sequence", self.sequence);
        self.sequence += 1;
        more(&mut metadata);
        turn.write_own("metadata.", &mut metadata);
        turn.write_residue(&mut metadata);
        metadata.end();
    }

    fn content(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        content: &str,
        format: Option<&str>,
        complete: bool,
    ) {
        self.frame(turn, out, "content", |data| {
            data.str("content", content);
            data.opt_str("format", format);
            data.bool("is_complete", complete);
        });
    }

    /// Writes the end of a text: of the answer, if the run ends in the same record, else with a residue,
    /// because more may follow.
    fn text_finished(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        finished: &TextFinished,
        replacement: Option<&str>,
    ) {
        // An end that the decoder added is not written, so it completes nothing.
        let is_silent =
            turn.own && !turn.full && turn.entry.by == By::Decoder && !turn.ends_before_addition();
        let is_empty = turn.track.text(&finished.message_id).is_none_or(|text| !text.told);
        if is_silent || is_empty && !finished.says_more() && replacement.is_none() {
            return;
        }
        if finished.says_more() || replacement.is_some() {
            turn.keep_whole();
        }
        let content = replacement.unwrap_or_default();
        let (before, after) = turn.neighbours();
        let ends_run = after.iter().any(|entry| entry.event.body.is_terminal())
            && !after.iter().any(|entry| matches!(entry.event.body, Body::TextDelta(_)));
        let answer = self.answer.get_or_insert_default();
        if !self.complete && turn.own && calls_itself_last(turn.entry) {
            self.complete = true;
            if turn.full || !before.last().is_some_and(|piece| are_one_frame(piece, turn.entry)) {
                self.frame(turn, out, "content", |data| data.str("content", ""));
            }
        } else if !self.complete && ends_run {
            self.complete = true;
            let format = answer.format.clone();
            self.content(turn, out, content, format.as_deref(), true);
        } else {
            turn.keep_whole();
            turn.without_own(|| self.content(turn, out, content, None, false));
        }
    }

    /// Marks the answer as complete, unless a producer did. Only the run's end tells which piece was last.
    fn complete_answer(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let Some(answer) = self.answer.as_ref().filter(|_| !self.complete) else { return };
        self.complete = true;
        let format = answer.format.clone();
        turn.beside_event(|| self.content(turn, out, "", format.as_deref(), true));
    }

    fn error(&mut self, turn: &Turn<'_>, out: &mut Frames, error: &ErrorInfo, recoverable: bool) {
        let kind = error.kind.as_deref().filter(|kind| ERROR_TYPES.contains(kind));
        if error.kind.is_some() && kind.is_none() || error.code.is_some() || error.domain.is_some() {
            turn.keep_whole();
        }
        self.frame(turn, out, "error", |data| {
            data.str("error_type", kind.unwrap_or("execution"));
            data.str("message", &error.message);
            data.opt_json("details", error.details.as_ref());
            data.bool("recoverable", recoverable);
        });
    }

    fn session_end(&mut self, turn: &Turn<'_>, out: &mut Frames, status: &str, summary: Option<&Summary>) {
        let all = turn.track.summary_with_usage(summary, turn.record.at);
        self.frame(turn, out, "session_end", |data| {
            data.str("status", status);
            // The source's own summary is complete; elsewhere the document's three figures are filled in.
            let shown = if turn.own { summary.cloned().unwrap_or_default() } else { all };
            if turn.own && summary.is_none() {
                return;
            }
            let mut object = data.object("summary");
            for (name, value) in [
                ("total_tokens", shown.total_tokens),
                ("prompt_tokens", shown.prompt_tokens),
                ("completion_tokens", shown.completion_tokens),
            ] {
                if let Some(value) = value {
                    object.u64(name, value);
                }
            }
            if let Some(value) = shown.duration_ms {
                object.f64("duration_ms", value);
            }
            for (name, value) in [("tool_calls", shown.tool_calls), ("steps", shown.steps)] {
                if let Some(value) = value {
                    object.u64(name, value);
                }
            }
            for (name, value) in shown.extra.iter() {
                object.json(name, value);
            }
            object.end();
        });
    }
}

/// Returns whether a producer sent the end of a text as `is_complete: true`.
fn calls_itself_last(entry: &Entry) -> bool {
    matches!(entry.event.body, Body::TextFinished(_)) && entry.event.extra.get(LAST_PIECE).is_some()
}

/// Returns whether a piece and the end after it came in one `content`.
fn are_one_frame(piece: &Entry, end: &Entry) -> bool {
    match (&piece.event.body, &end.event.body) {
        (Body::TextDelta(delta), Body::TextFinished(finished)) => {
            calls_itself_last(end) && delta.message_id == finished.message_id
        }
        _ => false,
    }
}

impl Encode for Encoder {
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let track = turn.track;
        turn.keep_usage();
        match &turn.event().body {
            Body::RunStarted(started) => {
                if started.message.is_some() || started.says_more() {
                    turn.keep_whole();
                }
                self.frame(turn, out, "session_start", |data| {
                    data.str("session_id", &turn.ids.thread);
                    data.str("request_id", &turn.ids.run);
                });
            }
            Body::ThinkingStarted(started) => {
                if track.tells_thought_start(started) {
                    self.slot(turn, out);
                }
            }
            Body::ThinkingDelta(delta) => {
                if track.thought(&delta.message_id).is_none_or(|thought| thought.aside) {
                    return self.slot(turn, out);
                }
                let stage = delta.stage.as_deref().filter(|stage| STAGES.contains(stage));
                self.frame(turn, out, "thinking", |data| {
                    data.str("content", &delta.content);
                    data.opt_str("stage", stage);
                });
            }
            Body::ThinkingFinished(finished) => {
                let told =
                    track.thought(&finished.message_id).is_some_and(|thought| thought.aside && thought.told);
                if told || finished.content.is_some() {
                    self.slot(turn, out);
                }
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
                let format = delta.format.as_deref().filter(|format| FORMATS.contains(format));
                turn.keep_continuation(delta);
                let (_, after) = turn.neighbours();
                let is_whole_frame = after.first().is_some_and(|end| are_one_frame(turn.entry, end));
                let complete = is_whole_frame && turn.own && !turn.full && !self.complete;
                self.answer = Some(Answer { format: format.map(str::to_owned) });
                self.content(turn, out, &delta.content, format, complete);
            }
            Body::TextFinished(finished) => {
                if track.is_silent(&finished.message_id) && finished.content.is_none() {
                    return;
                }
                let replacement = turn.replacement(finished);
                let aside = track.text(&finished.message_id).map_or(replacement.is_none(), |text| text.aside);
                if aside {
                    return self.slot(turn, out);
                }
                self.text_finished(turn, out, finished, replacement);
            }
            Body::ToolArgsStarted(_) | Body::ToolArgsDelta(_) | Body::ToolStarted(_) => {}
            Body::ToolCalled(called) => {
                if called.arguments_text.is_some() || called.incomplete.is_some() {
                    turn.keep_whole();
                }
                self.frame(turn, out, "tool_call_start", |data| {
                    data.str("tool_id", &called.call_id);
                    data.str("tool_name", &called.name);
                    data.opt_str("description", called.description.as_deref());
                    data.json("arguments", &called.arguments);
                });
            }
            Body::ToolProgress(progress) => self.frame(turn, out, "tool_call_progress", |data| {
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
                turn.keep_result_kind(finished, ToolFinished { error, message_id: None, ..finished.clone() });
                self.frame_with(
                    turn,
                    out,
                    "tool_call_end",
                    |data| {
                        data.str("tool_id", &finished.call_id);
                        data.str("status", if failed { "failed" } else { "success" });
                        if let Some(result) = &finished.result {
                            turn.write_object_result(data, result);
                        }
                        if let (true, Some(error)) = (failed, &finished.error) {
                            let mut object = data.object("error");
                            object.str("message", &error.message);
                            object.opt_str("code", error.code.as_deref());
                            for (name, value) in error.extra.iter() {
                                object.json(name, value);
                            }
                            object.end();
                        }
                    },
                    |metadata| {
                        if let Some(duration) = finished.duration_ms {
                            metadata.f64("duration_ms", duration);
                        }
                    },
                );
            }
            Body::Data(block) => {
                let mut calls = track.calls.iter().filter(|call| call.called);
                let only = match (calls.next(), calls.next()) {
                    (Some(call), None) => Some(&call.id),
                    _ => None,
                };
                let known = DATA_TYPES.contains(&block.data_type.as_str());
                if block.call_id.as_ref() != only || !known {
                    turn.keep_whole();
                }
                self.frame(turn, out, "data", |data| {
                    data.str("data_type", if known { &block.data_type } else { "custom" });
                    data.json("data", &block.data);
                    data.opt_json("metadata", block.metadata.as_ref());
                });
            }
            Body::Notice(notice) if notice.level == Level::Error => {
                self.error(turn, out, &notice.to_error(), notice.fatal != Some(true));
            }
            Body::RunCompleted(completed) => {
                self.complete_answer(turn, out);
                if completed.result.is_some() {
                    turn.keep_whole();
                }
                self.session_end(turn, out, "completed", completed.summary.as_ref());
            }
            Body::RunFailed(failed) => {
                self.complete_answer(turn, out);
                if !track.said_fatally(&failed.error) {
                    self.error(turn, out, &failed.error, false);
                }
                self.session_end(turn, out, "error", failed.summary.as_ref());
            }
            Body::RunCancelled(cancelled) => {
                self.complete_answer(turn, out);
                if cancelled.reason.is_some() {
                    turn.keep_whole();
                }
                self.session_end(turn, out, "cancelled", cancelled.summary.as_ref());
            }
            // Tokens are summed in the summary.
            Body::Usage(_) if !turn.full && !turn.own => {}
            Body::Foreign(foreign)
                if foreign.dialect == "streaming-engine" && foreign.frame.is_object() && !turn.full =>
            {
                let mut object = ObjectWriter::begin(out.begin());
                let mut source = Object::of_json(&foreign.frame).unwrap_or_default();
                let own = source.take("metadata").and_then(Object::of).unwrap_or_default();
                for (name, raw) in source.fields() {
                    object.raw(name, raw.get());
                }
                self.metadata(turn, &mut object, |metadata| turn.write_rest(metadata, &own, &STAMPED));
                object.end();
                out.end(None);
            }
            _ => self.slot(turn, out),
        }
    }

    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", "runwire");
        turn.write_native(object.key("data"));
        turn.told_in_slot();
        self.metadata(turn, &mut object, |_| {});
        object.end();
        out.end(None);
    }

    /// The document's clients append pieces: a whole that is new must not run into the text before it.
    fn shows_implied(&self, turn: &Turn<'_>) -> bool {
        turn.ends_before_addition()
    }

    fn order(&mut self) -> Option<&mut u64> {
        Some(&mut self.sequence)
    }
}
