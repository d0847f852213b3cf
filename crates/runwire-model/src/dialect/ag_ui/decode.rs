//! Reads frames of AG-UI.

use super::{ENCRYPTED, RESUME, SPAN, UNNAMED_SOURCE};
use crate::dialect::decode::{
    Chunk, DecodeError, DecoderState, Envelope, OpenedFrame, decode_residue, owned, slot_event,
};
use crate::dialect::{APPROVAL_SCHEMA, RecordBuilder, asks_for_approval};
use crate::event::{
    ActivityPatched, ActivitySnapshot, Body, Custom, ErrorInfo, Event, Extra, Foreign, InteractionKind,
    InteractionRequested, MessagesSnapshot, RunCancelled, RunCompleted, RunFailed, RunStarted, StatePatched,
    StateSnapshot, SubagentFailed, SubagentFinished, SubagentStarted, TextDelta, TextFinished, TextStarted,
    ThinkingDelta, ThinkingFinished, ThinkingStarted, ToolArgsDelta, ToolArgsStarted, ToolCalled,
    ToolFinished, ToolStatus, Usage,
};
use crate::json::{FieldError, Json, Object};
use crate::record::EventOrigin;
use crate::run::set_arguments;
use crate::time::Timestamp;

pub(crate) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
    let starts = object.get_str("type").as_deref() == Some("RUN_STARTED");
    let time = object.get("timestamp").and_then(|raw| raw.get().parse::<f64>().ok());
    let time = time.filter(|millis| *millis >= 0.0).and_then(|millis| Timestamp::from_millis(millis as u64));
    let (thread, run) = (object.get_id("threadId")?, object.get_id("runId")?);
    Ok(Envelope { thread, run, time, starts, begins: starts })
}

pub(crate) fn decode(
    state: &mut DecoderState,
    mut frame: OpenedFrame<'_>,
    builder: &mut RecordBuilder<'_>,
) -> Result<(), DecodeError> {
    let whole = frame.whole();
    let mut metadata = frame.object.take_object("metadata")?;
    if decode_residue(metadata.as_mut(), builder)? {
        return Ok(());
    }
    let kind = frame.object.take_str("type")?;
    if !payload(state, &kind, frame.object, metadata, builder)? {
        builder.foreign(whole, frame.name)?;
    }
    Ok(())
}

/// Adds the events of a frame of an official type; returns `false` for any other type.
pub(crate) fn payload(
    state: &mut DecoderState,
    kind: &str,
    mut object: Object<'_>,
    metadata: Option<Object<'_>>,
    builder: &mut RecordBuilder<'_>,
) -> Result<bool, DecodeError> {
    if !kind.ends_with("_CHUNK") {
        end_chunk(state, builder)?;
    }
    for stamped in ["timestamp", "threadId", "runId"] {
        object.take(stamped);
    }
    let subagent = object.take_id("subagentRunId")?;
    let mut frame = Payload { object, metadata, subagent, builder };
    match kind {
        "RUN_STARTED" => frame.run_started()?,
        "RUN_FINISHED" => frame.run_finished()?,
        "RUN_ERROR" => frame.run_error()?,
        "STEP_STARTED" => {
            let name = frame.object.take_required_id("stepName")?;
            let name = frame.base_name(name);
            frame.add(crate::event::StepStarted { name })?;
        }
        "STEP_FINISHED" => {
            let name = frame.object.take_required_id("stepName")?;
            let name = frame.base_name(name);
            frame.add(crate::event::StepFinished { name, error: None })?;
        }
        "TEXT_MESSAGE_START" => {
            let message_id = frame.object.take_required_id("messageId")?;
            let role = frame.object.take_id("role")?.filter(|role| role != "assistant");
            frame.add(TextStarted { message_id, role })?;
        }
        "TEXT_MESSAGE_CONTENT" => {
            let message_id = frame.object.take_required_id("messageId")?;
            let content = frame.object.take_str("delta")?.into_owned();
            frame.add(TextDelta { message_id, content, format: None })?;
        }
        "TEXT_MESSAGE_END" => {
            let message_id = frame.object.take_required_id("messageId")?;
            frame.add(TextFinished { message_id, ..Default::default() })?;
        }
        "TEXT_MESSAGE_CHUNK" => frame.text_chunk(state)?,
        "TOOL_CALL_START" => {
            let call_id = frame.object.take_required_id("toolCallId")?;
            let name = Some(frame.object.take_required_id("toolCallName")?);
            let message_id = frame.object.take_id("parentMessageId")?;
            frame.add(ToolArgsStarted { call_id, name, message_id })?;
        }
        "TOOL_CALL_ARGS" => {
            let call_id = frame.object.take_required_id("toolCallId")?;
            let delta = frame.object.take_str("delta")?.into_owned();
            frame.add(ToolArgsDelta { call_id, delta })?;
        }
        "TOOL_CALL_END" => {
            let call_id = frame.object.take_required_id("toolCallId")?;
            frame.call_ended(&call_id)?;
        }
        "TOOL_CALL_CHUNK" => frame.call_chunk(state)?,
        "TOOL_CALL_RESULT" => frame.call_result()?,
        "STATE_SNAPSHOT" => {
            let state = frame.object.take_json("snapshot")?;
            frame.add(StateSnapshot { state })?;
        }
        "STATE_DELTA" => {
            let patch = frame.object.take_json("delta")?;
            frame.add(StatePatched { patch })?;
        }
        "MESSAGES_SNAPSHOT" => {
            let messages = frame.object.take_json("messages")?;
            frame.add(MessagesSnapshot { messages })?;
        }
        "ACTIVITY_SNAPSHOT" => {
            let snapshot = ActivitySnapshot {
                message_id: frame.object.take_required_id("messageId")?,
                activity_type: frame.object.take_required_id("activityType")?,
                content: frame.object.take_json("content")?,
                replace: frame.object.take_opt("replace")?,
            };
            frame.add(snapshot)?;
        }
        "ACTIVITY_DELTA" => {
            let patched = ActivityPatched {
                message_id: frame.object.take_required_id("messageId")?,
                activity_type: frame.object.take_required_id("activityType")?,
                patch: frame.object.take_json("patch")?,
            };
            frame.add(patched)?;
        }
        // A span around reasoning messages; the messages themselves begin and end the thinking.
        "REASONING_START" | "REASONING_END" | "THINKING_START" | "THINKING_END" => {
            let id = frame.object.take_id("messageId")?;
            if frame.builder.state.status.is_closed() {
                return Err(crate::run::Refusal::RunClosed(frame.builder.state.status).into());
            }
            let has_begun = |id: &String| state.span.as_ref() == Some(id) || frame.builder.state.is_known(id);
            if kind == "REASONING_END" && !id.as_ref().is_none_or(has_begun) {
                return Ok(false);
            }
            state.span = id.filter(|_| kind == "REASONING_START");
        }
        "REASONING_MESSAGE_START" => {
            let message_id = frame.object.take_required_id("messageId")?;
            frame.object.take("role");
            let mut extra = frame.extra();
            if let Some(span) = state.span.as_ref().filter(|span| **span != message_id) {
                extra.set(SPAN, Json::string(span));
            }
            frame.add_with_origin(
                ThinkingStarted { message_id, stage: None },
                extra,
                EventOrigin::Producer,
            )?;
        }
        "REASONING_MESSAGE_CONTENT" => {
            let message_id = frame.object.take_required_id("messageId")?;
            let content = frame.object.take_str("delta")?.into_owned();
            frame.add(ThinkingDelta { message_id, content, stage: None })?;
        }
        "REASONING_MESSAGE_END" => {
            let message_id = frame.object.take_required_id("messageId")?;
            frame.add(ThinkingFinished { message_id, content: None })?;
        }
        "REASONING_MESSAGE_CHUNK" => frame.thinking_chunk(state)?,
        "THINKING_TEXT_MESSAGE_START" => frame.builder.end_thoughts(true)?,
        "THINKING_TEXT_MESSAGE_CONTENT" => {
            let content = frame.object.take_str("delta")?;
            let extra = frame.object.rest();
            frame.builder.thinking(None, content, None, extra)?;
        }
        "THINKING_TEXT_MESSAGE_END" => frame.builder.end_thoughts(true)?,
        "REASONING_ENCRYPTED_VALUE" => {
            let value = crate::dialect::fields_of(&frame.object);
            frame.object = Object::default();
            frame.add(Custom { name: Some(ENCRYPTED.into()), value })?;
        }
        "SUBAGENT_STARTED" => {
            let name = frame.object.take_id("name")?;
            frame.add(SubagentStarted { name })?;
        }
        "SUBAGENT_FINISHED" => {
            let result = frame.object.take_present("result").map(Json::from_raw);
            frame.add(SubagentFinished { result })?;
        }
        "SUBAGENT_ERROR" => {
            let (message, code) =
                (frame.object.take_str("message")?.into_owned(), frame.object.take_id("code")?);
            frame.add(SubagentFailed { message, code })?;
        }
        "RAW" => {
            let event = frame.object.take_json("event")?;
            let dialect = frame.object.take_id("source")?.unwrap_or_else(|| UNNAMED_SOURCE.to_owned());
            frame.add(Foreign { dialect, frame: event, name: None })?;
        }
        "CUSTOM" => frame.custom()?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Ends what chunks began, because another frame came.
fn end_chunk(state: &mut DecoderState, builder: &mut RecordBuilder<'_>) -> Result<(), DecodeError> {
    match state.chunk.take() {
        Some(Chunk::Text(message_id)) => builder.imply(TextFinished { message_id, ..Default::default() })?,
        Some(Chunk::Thinking(message_id)) => builder.imply(ThinkingFinished { message_id, content: None })?,
        Some(Chunk::Call(call_id)) => {
            let called = gathered(&call_id, None, builder);
            builder.imply(called)?;
        }
        None => {}
    }
    Ok(())
}

/// Returns the call whose arguments have all arrived; `name` is that of a call whose start had none.
pub(crate) fn gathered(call_id: &str, name: Option<String>, builder: &RecordBuilder<'_>) -> ToolCalled {
    let current = builder.state.call_id(call_id);
    let call = builder.state.calls.iter().find(|call| call.id == current);
    let name = call.and_then(|call| call.name.clone()).or(name).unwrap_or_else(|| "unknown".to_owned());
    let mut called = ToolCalled { call_id: call_id.to_owned(), name, ..Default::default() };
    let text = call.map(|call| builder.history.arguments(call.start, &call.id)).unwrap_or_default();
    set_arguments(&mut called, &text);
    called
}

/// Fields of a frame, while its events are added.
struct Payload<'o, 'w, 'r> {
    object: Object<'o>,
    metadata: Option<Object<'o>>,
    subagent: Option<String>,
    builder: &'w mut RecordBuilder<'r>,
}

impl Payload<'_, '_, '_> {
    /// Adds an event with all fields that were not taken.
    fn add(&mut self, body: impl Into<Body>) -> Result<(), DecodeError> {
        let extra = self.extra();
        self.add_with_origin(body, extra, EventOrigin::Producer)
    }

    /// Returns the fields that were not taken.
    fn extra(&mut self) -> Extra {
        let mut extra = std::mem::take(&mut self.object).rest();
        if let Some(metadata) = self.metadata.take().filter(|metadata| metadata.fields().next().is_some()) {
            extra.set("metadata", crate::dialect::fields_of(&metadata));
        }
        extra
    }

    fn imply(&mut self, body: impl Into<Body>) -> Result<(), DecodeError> {
        self.add_with_origin(body, Extra::default(), EventOrigin::Decoder)
    }

    fn add_with_origin(
        &mut self,
        body: impl Into<Body>,
        extra: Extra,
        origin: EventOrigin,
    ) -> Result<(), DecodeError> {
        let mut event = Event::new(body);
        event.extra = extra;
        event.subagent_run_id.clone_from(&self.subagent);
        let kind = event.body.type_name();
        if !kind.starts_with("run.") && !kind.starts_with("step.") {
            event.step_id = self.builder.state.current_step().map(|step| step.id.clone());
        }
        Ok(self.builder.event(event, origin)?)
    }

    /// Returns a step's name without the number of a step that was open twice.
    fn base_name(&self, name: String) -> String {
        match name.rsplit_once('#') {
            Some((base, number))
                if number.bytes().all(|byte| byte.is_ascii_digit())
                    && self.builder.state.steps.iter().any(|step| step.name == base) =>
            {
                base.to_owned()
            }
            _ => name,
        }
    }

    fn run_started(&mut self) -> Result<(), DecodeError> {
        let parent_run_id = self.object.take_id("parentRunId")?;
        let input = self.object.take_present("input").map(Json::from_raw);
        let asked = input.as_ref().and_then(last_user_message);
        let (message_id, message) = asked.map_or((None, None), |(id, text)| (id, Some(text)));
        if !self.builder.is_pending() {
            return self.resumed(input.as_ref());
        }
        self.add(RunStarted { message, message_id, agent: None, input, parent_run_id })
    }

    /// Adds the answers in a start after an interrupt. They are the agent's account of them, not the people's own.
    fn resumed(&mut self, input: Option<&Json>) -> Result<(), DecodeError> {
        if self.builder.state.status.is_closed() {
            return Err(crate::run::Refusal::RunClosed(self.builder.state.status).into());
        }
        let answers = input.and_then(Object::of_json).and_then(|mut input| input.take_present("resume"));
        match answers.map(Json::from_raw) {
            Some(value) => self.add_with_origin(
                Custom { name: Some(RESUME.into()), value },
                Extra::default(),
                EventOrigin::Producer,
            ),
            None => Ok(()),
        }
    }

    fn run_finished(&mut self) -> Result<(), DecodeError> {
        let result = self.object.take_present("result").map(Json::from_raw);
        let usages = usages(&mut self.object)?;
        let mut outcome = self.object.take_object("outcome")?.unwrap_or_default();
        let whole_outcome = crate::dialect::fields_of(&outcome);
        let kind = owned(outcome.take_opt_str("type").map_err(|error| error.inside("outcome"))?);
        let mut questions = match kind.as_deref() {
            Some("interrupt") => interrupts(&mut outcome)?,
            _ => Vec::new(),
        };
        // With each question all that are still open are asked again.
        questions.retain(|question| {
            let id = &question.asked.interaction_id;
            self.builder.state.interactions.iter().all(|open| open.id != *id)
        });
        if self.builder.state.status.is_closed() {
            return Err(crate::run::Refusal::RunClosed(self.builder.state.status).into());
        }
        self.builder.state.check_interactions(questions.iter().map(|question| &question.asked))?;
        for (usage, extra) in usages {
            self.add_with_origin(usage, extra, EventOrigin::Producer)?;
        }
        match kind.as_deref() {
            Some("interrupt") => questions.into_iter().try_for_each(|question| self.ask(question)),
            Some("cancelled") => self.add(RunCancelled::default()),
            _ => {
                let mut extra = self.extra();
                if kind.is_some() {
                    extra.set("outcome", whole_outcome);
                }
                self.add_with_origin(
                    RunCompleted { reply: None, result, summary: None },
                    extra,
                    EventOrigin::Producer,
                )
            }
        }
    }

    fn ask(&mut self, question: OpenInteraction) -> Result<(), DecodeError> {
        let OpenInteraction { mut asked, extra, surroundings } = question;
        self.builder.refer_to_call(&mut asked);
        match surroundings {
            None => self.add_with_origin(asked, extra, EventOrigin::Producer),
            Some((step_id, subagent_run_id)) => {
                let event = Event { body: asked.into(), step_id, subagent_run_id, extra };
                Ok(self.builder.event(event, EventOrigin::Producer)?)
            }
        }
    }

    fn run_error(&mut self) -> Result<(), DecodeError> {
        let message = self.object.take_str("message")?.into_owned();
        let code = self.object.take_id("code")?;
        let usages = usages(&mut self.object)?;
        if self.builder.state.status.is_closed() {
            return Err(crate::run::Refusal::RunClosed(self.builder.state.status).into());
        }
        for (usage, extra) in usages {
            self.add_with_origin(usage, extra, EventOrigin::Producer)?;
        }
        let error = ErrorInfo { code, message, ..Default::default() };
        self.add(RunFailed { error, summary: None })
    }

    fn text_chunk(&mut self, state: &mut DecoderState) -> Result<(), DecodeError> {
        let id = self.object.take_id("messageId")?;
        let role = self.object.take_id("role")?.filter(|role| role != "assistant");
        let content = owned(self.object.take_opt_str("delta")?);
        let known = match (&state.chunk, id) {
            (Some(Chunk::Text(open)), None) => Some(open.clone()),
            (Some(Chunk::Text(open)), Some(id)) if *open == id => Some(id),
            (_, Some(id)) => {
                end_chunk(state, self.builder)?;
                self.imply(TextStarted { message_id: id.clone(), role })?;
                state.chunk = Some(Chunk::Text(id.clone()));
                Some(id)
            }
            (_, None) => None,
        };
        let message_id = known
            .ok_or_else(|| FieldError::new("messageId", "is missing; the first chunk names its message"))?;
        match content {
            Some(content) => self.add(TextDelta { message_id, content, format: None }),
            None => Ok(()),
        }
    }

    fn thinking_chunk(&mut self, state: &mut DecoderState) -> Result<(), DecodeError> {
        let id = self.object.take_id("messageId")?;
        let content = owned(self.object.take_opt_str("delta")?);
        let known = match (&state.chunk, id) {
            (Some(Chunk::Thinking(open)), None) => Some(open.clone()),
            (Some(Chunk::Thinking(open)), Some(id)) if *open == id => Some(id),
            (_, Some(id)) => {
                end_chunk(state, self.builder)?;
                self.imply(ThinkingStarted { message_id: id.clone(), stage: None })?;
                state.chunk = Some(Chunk::Thinking(id.clone()));
                Some(id)
            }
            (_, None) => None,
        };
        let message_id = known
            .ok_or_else(|| FieldError::new("messageId", "is missing; the first chunk names its message"))?;
        match content {
            // An empty piece ends the thinking.
            Some(content) if content.is_empty() => end_chunk(state, self.builder),
            Some(content) => self.add(ThinkingDelta { message_id, content, stage: None }),
            None => Ok(()),
        }
    }

    fn call_chunk(&mut self, state: &mut DecoderState) -> Result<(), DecodeError> {
        let (id, name) = (self.object.take_id("toolCallId")?, self.object.take_id("toolCallName")?);
        let message_id = self.object.take_id("parentMessageId")?;
        let delta = owned(self.object.take_opt_str("delta")?);
        let known = match (&state.chunk, id) {
            (Some(Chunk::Call(open)), None) => Some(open.clone()),
            (Some(Chunk::Call(open)), Some(id)) if *open == id => Some(id),
            (_, Some(id)) => {
                end_chunk(state, self.builder)?;
                self.imply(ToolArgsStarted { call_id: id.clone(), name, message_id })?;
                state.chunk = Some(Chunk::Call(id.clone()));
                Some(id)
            }
            (_, None) => None,
        };
        let call_id = known
            .ok_or_else(|| FieldError::new("toolCallId", "is missing; the first chunk names its call"))?;
        match delta {
            Some(delta) => self.add(ToolArgsDelta { call_id, delta }),
            None => Ok(()),
        }
    }

    fn call_ended(&mut self, call_id: &str) -> Result<(), DecodeError> {
        let called = gathered(call_id, None, self.builder);
        self.add(called)
    }

    fn call_result(&mut self) -> Result<(), DecodeError> {
        let message_id = self.object.take_id("messageId")?;
        let call_id = self.object.take_required_id("toolCallId")?;
        let content = self.object.take_json("content")?;
        self.object.take("role");
        let status = self.metadata.as_mut().and_then(|metadata| metadata.take_opt("status").ok().flatten());
        let status = status.unwrap_or(ToolStatus::Success);
        let mut finished = ToolFinished { call_id, status, message_id, ..Default::default() };
        if status == ToolStatus::Failure {
            finished.error = Some(ErrorInfo::message(content.text_form()));
        } else {
            finished.result = Some(content);
        }
        let current = self.builder.state.call_id(&finished.call_id);
        let mut calls = self.builder.state.calls.iter().chain(&self.builder.state.carried);
        finished.name = calls.find(|call| call.id == current).and_then(|call| call.name.clone());
        self.add(finished)
    }

    fn custom(&mut self) -> Result<(), DecodeError> {
        let name = self.object.take_required_id("name")?;
        let value = self.object.take_json("value")?;
        let slot = name.starts_with("runwire.").then(|| slot_event(&value)).flatten();
        match slot {
            Some(event) => Ok(self.builder.slot(event)?),
            None => self.add(Custom { name: Some(name), value }),
        }
    }
}

/// Returns the person's last message in a RunAgentInput.
pub(super) fn last_user_message(input: &Json) -> Option<(Option<String>, String)> {
    let input = Object::of_json(input)?;
    let messages: Vec<&serde_json::value::RawValue> =
        serde_json::from_str(input.get("messages")?.get()).ok()?;
    let message = Json::from_raw(messages.last()?).to_value().ok()?;
    if message["role"] != "user" {
        return None;
    }
    let text = match &message["content"] {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    Some((message["id"].as_str().map(str::to_owned), text))
}

fn usages(object: &mut Object<'_>) -> Result<Vec<(Usage, Extra)>, FieldError> {
    let Some(raw) = object.take_present("usage") else { return Ok(Vec::new()) };
    // Back ends of the same family tell the tokens of one call without a list.
    let items: Vec<&serde_json::value::RawValue> = match raw.get().starts_with('{') {
        true => vec![raw],
        false => serde_json::from_str(raw.get())
            .map_err(|_| FieldError::new("usage", "must be an array of objects"))?,
    };
    let mut usages = Vec::with_capacity(items.len());
    for item in items {
        let mut item =
            Object::of(item).ok_or_else(|| FieldError::new("usage", "must be an array of objects"))?;
        let usage = Usage {
            prompt_tokens: item.take_opt("inputTokens").map_err(|error| error.inside("usage"))?,
            completion_tokens: item.take_opt("outputTokens").map_err(|error| error.inside("usage"))?,
            total_tokens: item.take_opt("totalTokens").map_err(|error| error.inside("usage"))?,
        };
        usages.push((usage, item.rest()));
    }
    Ok(usages)
}

/// An interaction, and its step and subagent where it was first requested.
struct OpenInteraction {
    asked: InteractionRequested,
    extra: Extra,
    /// Its step and subagent, if it came from elsewhere.
    surroundings: Option<(Option<String>, Option<String>)>,
}

fn interrupts(outcome: &mut Object<'_>) -> Result<Vec<OpenInteraction>, FieldError> {
    let inside = |error: FieldError| error.inside("outcome.interrupts");
    let missing = || FieldError::new("outcome.interrupts", "must be an array of objects, and not empty");
    let raw = outcome.take_present("interrupts").ok_or_else(missing)?;
    let items: Vec<&serde_json::value::RawValue> = serde_json::from_str(raw.get()).map_err(|_| missing())?;
    if items.is_empty() {
        return Err(missing());
    }
    items.into_iter().map(|item| interrupt(Object::of(item).ok_or_else(missing)?).map_err(inside)).collect()
}

fn interrupt(mut object: Object<'_>) -> Result<OpenInteraction, FieldError> {
    let metadata = object.take_present("metadata").map(Json::from_raw);
    let kept = metadata.as_ref().and_then(Object::of_json).and_then(|mut metadata| metadata.take("runwire"));
    let kept = kept.map(Json::from_raw).as_ref().and_then(slot_event);
    if let Some(Event { body: Body::InteractionRequested(asked), step_id, subagent_run_id, extra }) = kept {
        return Ok(OpenInteraction { asked, extra, surroundings: Some((step_id, subagent_run_id)) });
    }
    let schema = object.take_present("responseSchema").map(Json::from_raw);
    let call_id = object.take_id("toolCallId")?;
    let kind = match (&schema, &call_id) {
        (None, Some(_)) => InteractionKind::Approval,
        (Some(schema), _) if asks_for_approval(schema) => InteractionKind::Approval,
        _ => InteractionKind::Form,
    };
    let reason = owned(object.take_opt_str("reason")?);
    let asked = InteractionRequested {
        interaction_id: object.take_required_id("id")?,
        kind,
        description: owned(object.take_opt_str("message")?),
        schema: schema.filter(|schema| schema.text() != APPROVAL_SCHEMA),
        call_id,
        reason: reason.filter(|reason| reason != "tool_call" && reason != "input_required"),
        expires_at: owned(object.take_opt_str("expiresAt")?),
        ..Default::default()
    };
    let mut extra = object.rest();
    if let Some(metadata) = metadata {
        extra.set("metadata", metadata);
    }
    Ok(OpenInteraction { asked, extra, surroundings: None })
}
