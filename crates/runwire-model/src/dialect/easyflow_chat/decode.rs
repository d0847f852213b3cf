//! Reads frames of EasyFlow.

use std::borrow::Cow;

use super::encode::says_no_schema;
use super::{ERROR, EitherCase, FORM_ID, INTERACTION, MESSAGE_ID, NODE_ID, REASON, THINKING, is_form, word};
use crate::dialect::RecordBuilder;
use crate::dialect::decode::{
    DecodeError, DecoderState, Envelope, OpenedFrame, decode_residue, owned, read_arguments, slot_event,
};
use crate::event::{
    Decision, ErrorInfo, Event, Extra, InteractionKind, InteractionRequested, InteractionResolved, Level,
    Notice, RunCancelled, RunCompleted, RunFailed, RunResumed, RunStarted, RunStatus, RunSuspended, Summary,
    TextFinished, ToolCalled, ToolFinished, ToolStatus,
};
use crate::json::{FieldError, Json, Object, ObjectWriter};
use crate::record::EventOrigin;
use crate::run::Status;

pub(crate) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
    let meta = object.get("meta").and_then(Object::of);
    let run = meta.map(|meta| meta.get_id(meta.name_of("run_id", "runId"))).transpose()?.flatten();
    let thread = object.name_of("conversation_id", "conversationId");
    let starts = word(object, "domain").as_deref() != Some("system")
        || !matches!(word(object, "type").as_deref(), None | Some("done" | "error"));
    Ok(Envelope { thread: object.take_id(thread)?, run, time: None, starts, begins: false })
}

pub(crate) fn decode(
    state: &mut DecoderState,
    mut frame: OpenedFrame<'_>,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    let whole = frame.whole();
    let mut meta = frame.object.take_object("meta")?;
    if decode_residue(meta.as_mut(), builder)? {
        return Ok(());
    }
    if let Some(meta) = &mut meta {
        meta.take(meta.name_of("run_id", "runId"));
    }
    let domain = frame.object.take_str("domain")?.to_lowercase();
    let kind = frame.object.take_opt_str("type")?.map(|kind| kind.to_lowercase());
    // In the wild the end has a domain and no type.
    let kind = match kind {
        Some(kind) => kind,
        None if domain == "system" || domain == "done" => "done".to_owned(),
        None => return Err(FieldError::new("type", "is missing; a string is required").into()),
    };
    frame.object.take("protocol");
    frame.object.take("version");
    let id_name = frame.object.name_of("message_id", "messageId");
    let message_id = frame.object.take_id(id_name)?;
    let tells_message = matches!((&*domain, &*kind), ("llm", _) | ("tool", "tool_call"));
    let named = message_id.clone().filter(|_| !tells_message);
    frame.object.take("index");
    let mut payload = frame.object.take_object("payload")?.unwrap_or_default();
    let reader = Reader {
        domain: &domain,
        kind: &kind,
        message_id,
        terminal: take_terminal(frame.name, meta.as_mut()),
    };
    let inside = |error: FieldError| error.inside("payload");
    let Some(said) = reader.read(&mut payload, meta.as_mut()).map_err(inside)? else {
        return Ok(builder.foreign(whole, frame.name)?);
    };
    let mut extra = payload.rest();
    for (name, raw) in frame.object.fields() {
        extra.set(format!("frame.{name}"), Json::from_raw(raw));
    }
    extra.add_inside("meta", meta.as_ref());
    if let Some(message_id) = named {
        extra.set(MESSAGE_ID, Json::string(&message_id));
    }
    if builder.is_pending() {
        state.thoughts.clear();
    }
    match &said {
        FramePayload::Thinking { id: Some(id), content } => {
            let (id, content) = (id.clone(), content.clone());
            let goes_on = builder.is_open_thought(&id);
            add_payload(said, extra, builder)?;
            state.grow_thought(&id, &content, goes_on);
        }
        FramePayload::WholeThinking { id: Some(id), content } => {
            let (id, content) = (id.clone(), content.clone());
            // What is open and was not divided is compared where it is stored.
            let streamed = state
                .thought(&id)
                .filter(|streamed| streamed.all != streamed.last || !builder.is_open_thought(&id));
            match streamed {
                Some(streamed) => {
                    builder.rest_of_thought(&id, &content, [streamed.all, streamed.last], extra)?;
                }
                None => add_payload(said, extra, builder)?,
            }
            state.set_thought(&id, &content);
        }
        _ => add_payload(said, extra, builder)?,
    }
    Ok(())
}

/// Takes an error's finality from the SSE name and meta, if they have it.
fn take_terminal(name: Option<&str>, meta: Option<&mut Object<'_>>) -> Option<bool> {
    let named = meta.and_then(|meta| meta.take("terminal")).and_then(|raw| match raw.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    });
    if name == Some("error") { Some(true) } else { named }
}

/// Payload of a frame.
enum FramePayload {
    Thinking { id: Option<String>, content: String },
    WholeThinking { id: Option<String>, content: String },
    Text { id: Option<String>, content: String },
    WholeText { id: Option<String>, content: String },
    Called { id: Option<String>, called: ToolCalled },
    Finished { id: Option<String>, finished: ToolFinished, error: Option<Json> },
    Failed { error: ErrorInfo, summary: Option<Summary> },
    Notice(Notice),
    Status(String),
    Completed(Option<Summary>),
    Cancelled { reason: Option<String>, summary: Option<Summary> },
    Node { name: String, state: String, reason: Option<String>, error: Option<Json> },
    Asked(InteractionRequested),
    Withdrawn { form_id: String },
    Slot(Box<Event>),
}

struct Reader<'a> {
    domain: &'a str,
    kind: &'a str,
    message_id: Option<String>,
    terminal: Option<bool>,
}

impl Reader<'_> {
    fn read(
        self,
        payload: &mut Object<'_>,
        meta: Option<&mut Object<'_>>,
    ) -> Result<Option<FramePayload>, FieldError> {
        Ok(Some(match (self.domain, self.kind) {
            ("llm", "thinking") => {
                let id = self.message_id.map(|id| id + THINKING);
                match piece(payload)? {
                    (content, false) => FramePayload::Thinking { id, content },
                    (content, true) => FramePayload::WholeThinking { id, content },
                }
            }
            ("llm", "message") => match piece(payload)? {
                (content, false) => FramePayload::Text { id: self.message_id, content },
                (content, true) => FramePayload::WholeText { id: self.message_id, content },
            },
            ("tool", "tool_call") => {
                let id = payload.take_id(payload.name_of("tool_call_id", "toolCallId"))?;
                let mut called = ToolCalled { name: payload.take_required_id("name")?, ..Default::default() };
                read_arguments(&mut called, payload.take("arguments").map(Json::from_raw));
                called.message_id = self.message_id;
                FramePayload::Called { id, called }
            }
            ("tool", "tool_result") => {
                let id = payload.take_id(payload.name_of("tool_call_id", "toolCallId"))?;
                let name = payload.take_id("name")?;
                let word = payload.take_opt_str("status")?.map(|word| word.to_lowercase());
                let status = match word.as_deref() {
                    None | Some("success") => ToolStatus::Success,
                    Some("error" | "failed" | "failure") => ToolStatus::Failure,
                    Some("partial") => ToolStatus::Partial,
                    Some(other) => {
                        let problem = format!("must be success or error, and is `{other}`");
                        return Err(FieldError::new("status", problem));
                    }
                };
                let result = payload.take_present("result").map(Json::from_raw);
                let error = payload.take_present("error").map(Json::from_raw);
                // A failed call that gave nothing back has an empty object here.
                let result = result.filter(|result| {
                    status != ToolStatus::Failure || error.is_none() || result.text() != "{}"
                });
                FramePayload::Finished {
                    id,
                    finished: ToolFinished { name, status, result, ..Default::default() },
                    error,
                }
            }
            ("system" | "business", "error") => {
                let error = self.error(payload)?;
                // A system error ends the run unless it says that it does not; a business error the other way.
                if self.terminal.unwrap_or(self.domain == "system") {
                    FramePayload::Failed { error, summary: meta.map(figures_of).transpose()?.flatten() }
                } else {
                    FramePayload::Notice(Notice {
                        level: Level::Error,
                        domain: error.domain,
                        code: error.code,
                        kind: None,
                        message: error.message,
                        retryable: error.retryable,
                        fatal: Some(false),
                        details: error.details,
                    })
                }
            }
            ("system", "status") => FramePayload::Status(payload.take_str("state")?.to_lowercase()),
            ("system", "done") | ("done", _) => done(payload, meta)?,
            ("workflow", "status") => FramePayload::Node {
                name: payload.take_required_id(payload.name_of("node_id", "nodeId"))?,
                state: payload.take_str("state")?.to_lowercase(),
                reason: owned(payload.take_opt_str("reason")?),
                error: payload.take_present("error").map(Json::from_raw),
            },
            ("interaction", "form_request") => FramePayload::Asked(form(payload)?),
            ("interaction", "form_cancel") => FramePayload::Withdrawn {
                form_id: payload.take_required_id(payload.name_of("form_id", "formId"))?,
            },
            ("debug", "runwire") => {
                let slot = slot_event(&crate::dialect::fields_of(payload));
                match slot {
                    Some(event) => FramePayload::Slot(Box::new(event)),
                    None => return Ok(None),
                }
            }
            ("debug", "notice") => FramePayload::Notice(Notice {
                level: payload.take_opt("level")?.unwrap_or(Level::Debug),
                code: payload.take_id("code")?,
                message: payload.take_str("message")?.into_owned(),
                ..Default::default()
            }),
            _ => return Ok(None),
        }))
    }

    fn error(&self, payload: &mut Object<'_>) -> Result<ErrorInfo, FieldError> {
        let message = owned(payload.take_opt_str("message")?);
        let code = payload.take_id("code")?;
        let message = message
            .or_else(|| code.clone())
            .ok_or_else(|| FieldError::new("message", "is missing; an error needs a message or a code"))?;
        Ok(ErrorInfo {
            code,
            domain: Some(self.domain.to_owned()),
            message,
            retryable: payload.take_opt("retryable")?,
            // An empty one only fills the field.
            details: payload
                .take_present("detail")
                .map(Json::from_raw)
                .filter(|detail| detail.text() != "{}"),
            ..Default::default()
        })
    }
}

/// Reads a piece of text, and whether it is the whole text.
fn piece(payload: &mut Object<'_>) -> Result<(String, bool), FieldError> {
    if let Some(delta) = payload.take_opt_str("delta")? {
        return Ok((delta.into_owned(), false));
    }
    match payload.take_opt_str("content")? {
        Some(content) => Ok((content.into_owned(), true)),
        None => Err(FieldError::new("delta", "is missing; a piece has `delta`, a whole text `content`")),
    }
}

fn done(payload: &mut Object<'_>, meta: Option<&mut Object<'_>>) -> Result<FramePayload, FieldError> {
    let Some(meta) = meta else { return Ok(FramePayload::Completed(None)) };
    let summary = figures_of(meta)?;
    match meta.take_opt_str("status")?.as_deref() {
        Some("cancelled") => {
            Ok(FramePayload::Cancelled { reason: owned(payload.take_opt_str("reason")?), summary })
        }
        _ => Ok(FramePayload::Completed(summary)),
    }
}

/// Reads the figures of a run that ends.
fn figures_of(meta: &mut Object<'_>) -> Result<Option<Summary>, FieldError> {
    let number = |meta: &mut Object<'_>, snake, camel| meta.take_opt::<u64>(meta.name_of(snake, camel));
    let summary = Summary {
        prompt_tokens: number(meta, "prompt_tokens", "promptTokens")?,
        completion_tokens: number(meta, "completion_tokens", "completionTokens")?,
        total_tokens: number(meta, "total_tokens", "totalTokens")?,
        duration_ms: meta.take_opt(meta.name_of("latency_ms", "latencyMs"))?,
        ..Default::default()
    };
    Ok((summary != Summary::default()).then_some(summary))
}

fn form(payload: &mut Object<'_>) -> Result<InteractionRequested, FieldError> {
    let interaction_id = payload.take_required_id(payload.name_of("form_id", "formId"))?;
    let schema = payload.take_object("schema")?.map(|schema| crate::dialect::fields_of(&schema));
    let kind = if schema.as_ref().is_some_and(crate::dialect::asks_for_approval) {
        InteractionKind::Approval
    } else {
        InteractionKind::Form
    };
    Ok(InteractionRequested {
        interaction_id,
        kind,
        title: owned(payload.take_opt_str("title")?),
        description: owned(payload.take_opt_str("description")?),
        schema: schema.filter(|schema| !says_no_schema(Some(schema))),
        ui: payload.take_present("ui").map(Json::from_raw),
        call_id: payload.take_id("call_id")?,
        name: payload.take_id("name")?,
        arguments: payload.take_present("arguments").map(Json::from_raw),
        reason: owned(payload.take_opt_str("reason")?),
        expires_at: owned(payload.take_opt_str("expires_at")?),
    })
}

fn add_payload(
    payload: FramePayload,
    mut extra: Extra,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    match payload {
        FramePayload::Thinking { id, content } => builder.thinking(id, content.into(), None, extra)?,
        FramePayload::WholeThinking { id, content } => builder.complete_thought(id, content, extra)?,
        FramePayload::Text { id, content } => builder.text(id, content.into(), None, extra)?,
        FramePayload::WholeText { id, content } => whole_text(id, &content, extra, builder)?,
        FramePayload::Called { id, called } => builder.called(id, called, extra)?,
        FramePayload::Finished { id, mut finished, error } => {
            finished.error = error.map(|error| read_error(error, &mut extra));
            builder.tool_finished(id, finished, extra)?;
        }
        FramePayload::Failed { error, summary } => {
            builder.fail(Some(error), RunFailed { summary, ..Default::default() }, extra)?;
        }
        FramePayload::Notice(notice) => builder.add(notice, extra)?,
        FramePayload::Status(state) => match state.as_str() {
            "running" if builder.is_pending() => builder.add(RunStarted::default(), extra)?,
            "suspended" => builder.add(RunSuspended::default(), extra)?,
            // One that does not wait may have been told to go on before, by an answer.
            "resumed" if builder.may_have_waited() => builder.add(RunResumed::default(), extra)?,
            _ => {
                if builder.is_pending() {
                    builder.imply(RunStarted::default())?;
                }
                builder.add(RunStatus { state }, extra)?;
            }
        },
        FramePayload::Completed(summary) => {
            builder.end_texts(false)?;
            builder.complete(RunCompleted { summary, ..Default::default() }, extra)?;
        }
        FramePayload::Cancelled { reason, summary } => {
            builder.add(RunCancelled { reason, summary }, extra)?
        }
        FramePayload::Node { name, state, reason, error } => {
            let repeats_guard = state == "suspend"
                && builder.state.status == Status::Suspended
                && builder.state.current_step().is_some_and(|step| step.name == name)
                && reason.as_deref().is_none_or(|reason| reason == INTERACTION)
                && extra.is_empty();
            let error = error.map(|error| read_error(error, &mut extra));
            if let Some(reason) = reason {
                extra.set(REASON, Json::string(&reason));
            }
            match state.as_str() {
                "start" => builder.step_started(name, extra)?,
                "end" => builder.step_finished(name, error, extra)?,
                _ if repeats_guard => {}
                _ => {
                    extra.set(NODE_ID, Json::string(&name));
                    builder.add(RunStatus { state }, extra)?;
                }
            }
        }
        FramePayload::Asked(mut asked) => {
            let form_id = asked.interaction_id.clone();
            if builder.state.interaction_ids.contains(&form_id) {
                extra.set(FORM_ID, Json::string(&form_id));
            }
            builder.refer_to_call(&mut asked);
            builder.ask(asked, extra)?;
        }
        FramePayload::Withdrawn { form_id } => {
            let open =
                builder.state.interactions.iter().rev().find(|question| is_form(&question.id, &form_id));
            let interaction_id = open.map_or(form_id.clone(), |question| question.id.clone());
            let decision = Decision::Cancelled;
            builder.add(InteractionResolved { interaction_id, decision, ..Default::default() }, extra)?;
        }
        FramePayload::Slot(event) => builder.slot(*event)?,
    }
    Ok(())
}

/// Reads an error, and keeps its original form where the model would write another, such as a text.
fn read_error(json: Json, extra: &mut Extra) -> ErrorInfo {
    let error = ErrorInfo::read_lenient(&json);
    let mut written = Vec::new();
    let mut object = ObjectWriter::begin(&mut written);
    crate::dialect::write_error(&mut object, "error", &error);
    object.end();
    let source = Json::from_valid(&format!(r#"{{"error":{}}}"#, json.text()));
    if !Json::from_written(written).is_same_value(&source) {
        extra.set(ERROR, json);
    }
    error
}

/// Adds a whole text, unless it repeats its pieces.
fn whole_text(
    id: Option<String>,
    content: &str,
    extra: Extra,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    let Some(id) = id else {
        builder.whole_text(content, EventOrigin::Producer, extra)?;
        return Ok(builder.end_texts(false)?);
    };
    match builder.named_text(&id, content, EventOrigin::Producer)? {
        Some((message_id, Some(content))) => {
            builder.add(TextFinished { message_id, content: Some(content), ..Default::default() }, extra)?;
        }
        Some((_, None)) => {}
        None if builder.is_known(content) => {}
        None => builder.text(Some(id), Cow::Borrowed(content), None, extra)?,
    }
    Ok(builder.end_texts(false)?)
}
