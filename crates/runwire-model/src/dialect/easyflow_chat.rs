//! `easyflow-chat`: EasyFlow's chat protocol, version 1.1 (`docs/dialects/easyflow-chat.md`).

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
    Body, Decision, ErrorInfo, Event, Extra, InteractionKind, InteractionRequested, InteractionResolved,
    Level, Notice, RunCancelled, RunCompleted, RunFailed, RunResumed, RunStarted, RunStatus, RunSuspended,
    Summary, TextFinished, ToolCalled, ToolFinished, ToolStatus,
};
use crate::json::{FieldError, Json, Object, ObjectWriter};
use crate::record::By;
use crate::run::Status;

/// Follows a message's id in the id of its thinking, which is a message of its own here.
const THINKING: &str = ":thinking";

/// Keeps the id that a form has in its own dialect, where it was asked before.
const FORM_ID: &str = "own.form_id";

/// Keeps the message that a frame names without being a piece of it.
const MESSAGE_ID: &str = "own.message_id";

/// Keeps the error of a call or a node that its source wrote in another form than the model does.
const ERROR: &str = "own.error";

/// Names the node that a `run.status` is about.
const NODE_ID: &str = "node_id";

/// Says why a node waits or goes on.
const REASON: &str = "reason";

/// The reason of a node that waits for a person.
const INTERACTION: &str = "interaction";

pub(super) const SPEC: Spec = Spec {
    name: "easyflow-chat",
    read: Some(Read {
        open,
        decode,
        detect: &[Rule { rank: 1, matches: is_easyflow }],
        ending,
        refinement: None,
        resumes_as_new_run: false,
        start: StartRequest::Flat(start_request),
    }),
    ids: NamedIds::Session,
    thread_field: "conversation_id",
    schema: include_str!("../../../../vectors/easyflow-chat/schema.json"),
    frames_section: "§2",
    offers_attach: true,
    has_unnamed_pieces: false,
    has_extensions: true,
};

// Decoding

fn is_easyflow(frame: &Object<'_>) -> bool {
    frame.has("protocol") || frame.has("domain")
}

/// The body of `POST /api/v1/bot/chat`.
fn start_request(start: &AgentStart<'_>) -> Value {
    json!({
        "prompt": start.message.unwrap_or_default(),
        "botId": start.agent,
        "conversationId": start.thread,
    })
}

fn ending(frame: &Object<'_>, name: Option<&str>) -> Option<Ending> {
    let is_system = word(frame, "domain").as_deref() == Some("system");
    match (is_system, word(frame, "type").as_deref(), name) {
        (true, Some("done") | None, _) | (_, None, Some("done")) => Some(Ending::Over),
        (true, Some("error"), _) | (_, _, Some("error")) => Some(Ending::Failed),
        _ => None,
    }
}

/// A field under its documented name, or under the camelCase one that is seen in the wild.
trait EitherCase<'a> {
    fn name_of(&self, snake: &'static str, camel: &'static str) -> &'static str;
}

impl EitherCase<'_> for Object<'_> {
    fn name_of(&self, snake: &'static str, camel: &'static str) -> &'static str {
        if !self.has(snake) && self.has(camel) { camel } else { snake }
    }
}

pub(super) fn open(object: &mut Object<'_>, _name: Option<&str>) -> Result<Envelope, FieldError> {
    let meta = object.get("meta").and_then(Object::of);
    let run = meta.map(|meta| meta.get_id(meta.name_of("run_id", "runId"))).transpose()?.flatten();
    let thread = object.name_of("conversation_id", "conversationId");
    let starts = word(object, "domain").as_deref() != Some("system")
        || !matches!(word(object, "type").as_deref(), None | Some("done" | "error"));
    Ok(Envelope { thread: object.take_id(thread)?, run, time: None, starts, begins: false })
}

/// Reads a word that is upper case in the wild.
fn word(object: &Object<'_>, key: &str) -> Option<String> {
    object.get_str(key).map(|word| word.to_lowercase())
}

pub(super) fn decode(
    _state: &mut DecoderState,
    mut frame: Opened<'_>,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
    let whole = frame.whole();
    let mut meta = frame.object.take_object("meta")?;
    let residue = meta.as_mut().and_then(take_residue);
    if weave_residue(residue.as_ref(), weave)? {
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
        return Ok(weave.foreign(whole, frame.name)?);
    };
    let mut extra = payload.rest();
    for (name, raw) in frame.object.fields() {
        extra.set(format!("frame.{name}"), Json::from_raw(raw));
    }
    extra.add_inside("meta", meta.as_ref());
    if let Some(message_id) = named {
        extra.set(MESSAGE_ID, Json::string(&message_id));
    }
    weave_payload(said, extra, weave)
}

/// Takes what SSE name and meta say of an error's finality, if they say anything.
fn take_terminal(name: Option<&str>, meta: Option<&mut Object<'_>>) -> Option<bool> {
    let told = meta.and_then(|meta| meta.take("terminal")).and_then(|raw| match raw.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    });
    if name == Some("error") { Some(true) } else { told }
}

/// What a frame says.
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
                let slot = slot_event(&super::fields_of(payload));
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
            details: payload.take_present("detail").map(Json::from_raw),
            ..Default::default()
        })
    }
}

/// Reads a piece of text, and whether it is the whole.
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
    let schema = payload.take_object("schema")?.map(|schema| super::fields_of(&schema));
    let kind = if schema.as_ref().is_some_and(super::asks_for_approval) {
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

fn weave_payload(payload: FramePayload, mut extra: Extra, weave: &mut Weave<'_>) -> Result<(), DecodeError> {
    match payload {
        FramePayload::Thinking { id, content } => weave.thinking(id, content.into(), None, extra)?,
        FramePayload::WholeThinking { id, content } => weave.complete_thought(id, content, extra)?,
        FramePayload::Text { id, content } => weave.text(id, content.into(), None, extra)?,
        FramePayload::WholeText { id, content } => whole_text(id, &content, extra, weave)?,
        FramePayload::Called { id, called } => weave.called(id, called, extra)?,
        FramePayload::Finished { id, mut finished, error } => {
            finished.error = error.map(|error| read_error(error, &mut extra));
            weave.tool_finished(id, finished, extra)?;
        }
        FramePayload::Failed { error, summary } => {
            weave.fail(Some(error), RunFailed { summary, ..Default::default() }, extra)?;
        }
        FramePayload::Notice(notice) => weave.say(notice, extra)?,
        FramePayload::Status(state) => match state.as_str() {
            "running" if weave.is_pending() => weave.say(RunStarted::default(), extra)?,
            "suspended" => weave.say(RunSuspended::default(), extra)?,
            "resumed" => weave.say(RunResumed::default(), extra)?,
            _ => {
                if weave.is_pending() {
                    weave.imply(RunStarted::default())?;
                }
                weave.say(RunStatus { state }, extra)?;
            }
        },
        FramePayload::Completed(summary) => {
            weave.end_texts(false)?;
            weave.complete(RunCompleted { summary, ..Default::default() }, extra)?;
        }
        FramePayload::Cancelled { reason, summary } => weave.say(RunCancelled { reason, summary }, extra)?,
        FramePayload::Node { name, state, reason, error } => {
            let repeats_guard = state == "suspend"
                && weave.state.status == Status::Suspended
                && weave.state.current_step().is_some_and(|step| step.name == name)
                && reason.as_deref().is_none_or(|reason| reason == INTERACTION)
                && extra.is_empty();
            let error = error.map(|error| read_error(error, &mut extra));
            if let Some(reason) = reason {
                extra.set(REASON, Json::string(&reason));
            }
            match state.as_str() {
                "start" => weave.step_started(name, extra)?,
                "end" => weave.step_finished(name, error, extra)?,
                _ if repeats_guard => {}
                _ => {
                    extra.set(NODE_ID, Json::string(&name));
                    weave.say(RunStatus { state }, extra)?;
                }
            }
        }
        FramePayload::Asked(mut asked) => {
            let form_id = asked.interaction_id.clone();
            if weave.state.asked.contains(&form_id) {
                extra.set(FORM_ID, Json::string(&form_id));
            }
            weave.refer_to_call(&mut asked);
            weave.ask(asked, extra)?;
        }
        FramePayload::Withdrawn { form_id } => {
            let open = weave.state.questions.iter().rev().find(|question| is_form(&question.id, &form_id));
            let interaction_id = open.map_or(form_id.clone(), |question| question.id.clone());
            let decision = Decision::Cancelled;
            weave.say(InteractionResolved { interaction_id, decision, ..Default::default() }, extra)?;
        }
        FramePayload::Slot(event) => weave.slot(*event)?,
    }
    Ok(())
}

/// Reads an error, and keeps it as it came where the model would write it in another form, such as a text.
fn read_error(json: Json, extra: &mut Extra) -> ErrorInfo {
    let error = ErrorInfo::read_lenient(&json);
    let mut written = Vec::new();
    let mut object = ObjectWriter::begin(&mut written);
    super::write_error(&mut object, "error", &error);
    object.end();
    let source = Json::from_valid(&format!(r#"{{"error":{}}}"#, json.text()));
    if !Json::from_written(written).is_same_value(&source) {
        extra.set(ERROR, json);
    }
    error
}

/// Returns whether a question is asked by a form: one that is asked again has the form's id and a number.
fn is_form(id: &str, form_id: &str) -> bool {
    id == form_id || id.strip_prefix(form_id).is_some_and(|rest| rest.starts_with('.'))
}

/// A whole text is new, unless it says again what its pieces said.
fn whole_text(
    id: Option<String>,
    content: &str,
    extra: Extra,
    weave: &mut Weave<'_>,
) -> Result<(), DecodeError> {
    let Some(id) = id else {
        weave.whole_text(content, By::Producer, extra)?;
        return Ok(weave.end_texts(false)?);
    };
    let message_id = weave.state.text_id(&id).to_owned();
    let is_open = weave.state.texts.iter().any(|text| text.id == message_id);
    if is_open || weave.state.told.last_id.as_ref() == Some(&message_id) {
        let content = weave.named_text(&message_id, content, By::Producer)?;
        if content.is_some() {
            weave.say(TextFinished { message_id, content, ..Default::default() }, extra)?;
        }
    } else if !weave.is_told(content) {
        weave.text(Some(id), Cow::Borrowed(content), None, extra)?;
    }
    Ok(weave.end_texts(false)?)
}

// Encoding

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Encoder {
    /// The next index of the messages told last.
    indexes: Vec<(String, u64)>,
    /// Whether a frame has named the run.
    named: bool,
    /// Nodes that were told to wait.
    waiting: Vec<Waiting>,
    /// The node that the run's own resumption told to go on.
    resumed: Option<Waiting>,
    /// Whether the source has said that the run waits before it has asked anything.
    waits_early: bool,
    /// The piece told last.
    last: Option<Shown>,
    /// The text told last.
    last_text: Option<Shown>,
}

/// A node that waits, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Waiting {
    node: String,
    reason: Option<String>,
    /// Whether the run's own suspension told it, rather than the source.
    is_added: bool,
}

/// A message, and how it was shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Shown {
    id: String,
    shown: String,
    in_subagent: bool,
}

/// Messages whose index is remembered; a message that was silent for longer begins anew.
const REMEMBERED: usize = 16;

/// Returns the id that EasyFlow knows a message by: pieces of one message keep its id around a tool call.
fn message_id(id: &str) -> &str {
    let id = id.strip_suffix(THINKING).unwrap_or(id);
    match id.rsplit_once('#') {
        Some((base, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            base.strip_suffix(THINKING).unwrap_or(base)
        }
        _ => id,
    }
}

/// A frame that is about to be written.
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
        turn: &Turn<'_>,
        out: &mut Frames,
        payload: impl FnOnce(&mut ObjectWriter<'_>),
        meta: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let mut object = self.begin(turn, out);
        let mut inner = object.object("payload");
        payload(&mut inner);
        turn.write_own("", &mut inner);
        inner.end();
        let mut written = Vec::new();
        let mut inner = ObjectWriter::begin(&mut written);
        meta(&mut inner);
        turn.write_own("meta.", &mut inner);
        turn.write_residue(&mut inner);
        inner.end();
        if written.len() > 2 {
            object.key("meta").extend_from_slice(&written);
        }
        turn.write_own("frame.", &mut object);
        object.end();
        out.end(Some(Cow::Borrowed(self.sse)));
    }

    fn begin<'o>(&self, turn: &Turn<'_>, out: &'o mut Frames) -> ObjectWriter<'o> {
        let mut object = ObjectWriter::begin(out.begin());
        object.str("protocol", "easyflow-chat");
        object.str("version", "1.1");
        object.str("domain", self.domain);
        object.str("type", self.kind);
        object.str("conversation_id", &turn.ids.thread);
        match self.message {
            Some((id, index)) => {
                object.str("message_id", id);
                if let Some(index) = index {
                    object.u64("index", index);
                }
            }
            None => {
                object.opt_json("message_id", turn.own_field(MESSAGE_ID));
            }
        }
        object
    }
}

fn nothing(_: &mut ObjectWriter<'_>) {}

/// Writes the error of a call or a node; in its own dialect, as it came.
fn write_error(turn: &Turn<'_>, payload: &mut ObjectWriter<'_>, error: &ErrorInfo) {
    match turn.own_field(ERROR) {
        Some(own) => payload.json("error", own),
        None => super::write_error(payload, "error", error),
    }
}

impl Waiting {
    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(INTERACTION)
    }
}

/// Writes that a node waits or goes on because the run does.
fn node(turn: &Turn<'_>, out: &mut Frames, waiting: &Waiting, state: &str) {
    let outline = Outline::new("workflow", "status");
    let mut object = outline.begin(turn, out);
    let mut payload = object.object("payload");
    payload.str(NODE_ID, &waiting.node);
    payload.str("state", state);
    payload.str(REASON, waiting.reason());
    payload.end();
    if turn.has_residue() {
        let mut meta = object.object("meta");
        turn.write_residue(&mut meta);
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

    /// Returns the id to show a message under: its own where the reader would take it for the one before.
    fn shown_id(&self, turn: &Turn<'_>, id: &str) -> String {
        let is_text = |text: &&Shown| text.id == id || turn.track.continues(&text.id, id);
        let shown = match self.last_text.as_ref().filter(is_text) {
            Some(text) => text.shown.as_str(),
            None => message_id(id),
        };
        match &self.last {
            Some(last) if last.id == id => last.shown.clone(),
            // What happens outside a subagent ends no text in it.
            Some(last) if last.shown == shown && (last.in_subagent || turn.track.last.is_some()) => {
                let number = id.rsplit_once('#').map(|(_, number)| number.trim_end_matches(THINKING));
                number.map_or(shown.to_owned(), |number| format!("{shown}#{number}"))
            }
            _ => shown.to_owned(),
        }
    }

    fn piece(&mut self, turn: &Turn<'_>, out: &mut Frames, kind: &'static str, id: &str, content: &str) {
        // Of a message that the reader has in part, only pieces may follow.
        let is_whole = came_whole(turn, id) && !turn.track.begins_continuation(id);
        let key = if is_whole { "content" } else { "delta" };
        let shown = self.shown_id(turn, id);
        let index = self.next_index(&shown);
        let in_subagent = turn.event().subagent_run_id.is_some();
        self.last = Some(Shown { id: id.to_owned(), shown: shown.clone(), in_subagent });
        if kind == "message" {
            self.last_text.clone_from(&self.last);
        }
        Outline::new("llm", kind).of_message(&shown, Some(index)).write(
            turn,
            out,
            |payload| payload.str(key, content),
            nothing,
        );
    }

    /// Returns a state of the run; the first frame names the run.
    fn status(&mut self, turn: &Turn<'_>, out: &mut Frames, state: &str) {
        let names = !std::mem::replace(&mut self.named, true);
        Outline::new("system", "status").write(
            turn,
            out,
            |payload| payload.str("state", state),
            |meta| meta.opt_str("run_id", Some(&*turn.ids.run).filter(|_| names)),
        );
    }

    /// Returns that a step begins or ends.
    fn step(
        &mut self,
        turn: &Turn<'_>,
        out: &mut Frames,
        name: &str,
        state: &str,
        error: Option<&ErrorInfo>,
    ) {
        self.waiting.retain(|waiting| waiting.node != name);
        self.resumed = None;
        Outline::new("workflow", "status").write(
            turn,
            out,
            |payload| {
                payload.str("node_id", name);
                payload.str("state", state);
                if let Some(error) = error {
                    write_error(turn, payload, error);
                }
            },
            nothing,
        );
    }

    /// Returns that the innermost step waits, unless it was told so before.
    fn suspend_node(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let Some(step) = turn.track.steps.last() else { return };
        // A source that has said which of its nodes waits speaks for all of them.
        if turn.own && !self.waiting.is_empty() {
            return;
        }
        if self.waiting.iter().all(|waiting| waiting.node != step.name) {
            let waiting = Waiting { node: step.name.clone(), reason: None, is_added: true };
            node(turn, out, &waiting, "suspend");
            self.wait(waiting);
        }
    }

    /// Returns that the innermost step goes on, if it was told to wait.
    fn resume_node(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let Some(step) = turn.track.steps.last() else { return };
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.node == step.name) {
            let waiting = self.waiting.remove(at);
            node(turn, out, &waiting, "resume");
            self.resumed = Some(waiting);
        }
    }

    /// Returns that a run waits which its source said to wait before it asked.
    fn tell_early_wait(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        if std::mem::take(&mut self.waits_early) {
            turn.beside_event(|| {
                self.status(turn, out, "suspended");
                self.suspend_node(turn, out);
            });
        }
    }

    /// Returns what a source says of a node, once: where the run's own suspension or resumption has told it, another
    /// reason goes to the slot.
    fn node_status(&mut self, turn: &Turn<'_>, out: &mut Frames, name: &str, state: &str) {
        let reason = turn.event().extra.get(REASON).and_then(Json::as_string).map(Cow::into_owned);
        let says = Waiting { node: name.to_owned(), reason, is_added: false };
        let told = match state {
            "suspend" => self.waiting.iter_mut().find(|told| told.is_added && told.node == name),
            "resume" => self.resumed.as_mut().filter(|told| told.node == name),
            _ => None,
        };
        if let Some(told) = told {
            if says.reason.is_some() && says.reason() != told.reason() {
                told.reason = says.reason;
                self.slot(turn, out);
            }
            return;
        }
        match state {
            "suspend" => self.wait(says.clone()),
            "resume" => self.waiting.retain(|waiting| waiting.node != name),
            _ => {}
        }
        Outline::new("workflow", "status").write(
            turn,
            out,
            |payload| {
                payload.str("state", state);
                // In its own dialect, they are among the fields that the source said beside the state.
                if !turn.own {
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
        turn: &Turn<'_>,
        out: &mut Frames,
        error: &ErrorInfo,
        terminal: bool,
        summary: Option<&Summary>,
    ) {
        let domain = if error.domain.as_deref() == Some("business") { "business" } else { "system" };
        if error.kind.is_some() {
            turn.keep_whole();
        }
        let sse = if terminal { "error" } else { "message" };
        Outline::new(domain, "error").named(sse).write(
            turn,
            out,
            |payload| {
                payload.str("code", error.code.as_deref().unwrap_or("ERROR"));
                payload.str("message", &error.message);
                if domain == "system" || error.retryable.is_some() {
                    payload.bool("retryable", error.retryable.unwrap_or(false));
                }
                payload.opt_json("detail", error.details.as_ref());
            },
            |meta| {
                if terminal {
                    figures(turn, meta, summary);
                } else {
                    meta.bool("terminal", false);
                }
            },
        );
    }

    fn done(
        &self,
        turn: &Turn<'_>,
        out: &mut Frames,
        summary: Option<&Summary>,
        cancelled: Option<Option<&str>>,
    ) {
        Outline::new("system", "done").named("done").write(
            turn,
            out,
            |payload| payload.opt_str("reason", cancelled.flatten()),
            |meta| {
                if cancelled.is_some() {
                    meta.str("status", "cancelled");
                }
                figures(turn, meta, summary);
            },
        );
    }
}

fn figures(turn: &Turn<'_>, meta: &mut ObjectWriter<'_>, told: Option<&Summary>) {
    let all = turn.track.summary_with_usage(told, turn.record.at);
    let shown = if turn.own { told.cloned().unwrap_or_default() } else { all };
    for (name, value) in [
        ("prompt_tokens", shown.prompt_tokens),
        ("completion_tokens", shown.completion_tokens),
        (
            "total_tokens",
            shown.total_tokens.filter(|_| turn.own || shown.prompt_tokens.is_none() || sums_up(&shown)),
        ),
    ] {
        if let Some(value) = value {
            meta.u64(name, value);
        }
    }
    if let Some(latency) = shown.duration_ms {
        meta.f64("latency_ms", latency);
    }
    meta.str("run_id", &turn.ids.run);
}

/// Returns whether the total says more than prompt and completion together.
fn sums_up(summary: &Summary) -> bool {
    let parts = summary.prompt_tokens.unwrap_or(0).saturating_add(summary.completion_tokens.unwrap_or(0));
    summary.total_tokens != Some(parts)
}

/// Returns whether a text began and ended with its one piece in the same record.
fn came_whole(turn: &Turn<'_>, id: &str) -> bool {
    let (mut begun, mut pieces, mut ended) = (false, 0, false);
    for entry in &turn.record.entries {
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
    fn event(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let track = turn.track;
        turn.keep_usage();
        match &turn.event().body {
            Body::RunStarted(started) => {
                if started.message.is_some() || started.says_more() {
                    turn.keep_whole();
                }
                self.named = false;
                self.status(turn, out, "running");
                self.named = !turn.is_silent();
            }
            Body::RunStatus(status) => match turn.event().extra.get(NODE_ID).and_then(Json::as_string) {
                Some(node) => self.node_status(turn, out, &node, &status.state),
                None => self.status(turn, out, &status.state),
            },
            // A client of the document is suspended by a form: it is told of one that is still to come first.
            Body::RunSuspended(_)
                if turn.own && turn.entry.by == By::Producer && track.questions.is_empty() =>
            {
                self.waits_early = true;
                self.slot(turn, out);
            }
            Body::RunSuspended(_) => {
                self.status(turn, out, "suspended");
                self.suspend_node(turn, out);
            }
            Body::RunResumed(_) => {
                self.tell_early_wait(turn, out);
                self.status(turn, out, "resumed");
                self.resume_node(turn, out);
            }
            Body::StepStarted(started) => self.step(turn, out, &started.name, "start", None),
            Body::StepFinished(finished) => {
                if !track.ends_innermost(turn.event(), &finished.name) {
                    turn.keep_whole();
                }
                self.step(turn, out, &finished.name, "end", finished.error.as_ref())
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
                self.piece(turn, out, "message", &delta.message_id, &delta.content);
            }
            Body::TextFinished(finished) => {
                let told_aside = track.text(&finished.message_id).is_some_and(|text| text.aside && text.told);
                match turn.replacement(finished).filter(|_| !told_aside) {
                    Some(content) => {
                        turn.keep_whole();
                        self.piece(turn, out, "message", &finished.message_id, content);
                    }
                    None if told_aside || finished.says_more() => self.slot(turn, out),
                    None => {}
                }
            }
            Body::ThinkingStarted(_) => {}
            Body::ThinkingDelta(delta) => {
                if track.thought(&delta.message_id).is_none_or(|thought| thought.aside) {
                    return self.slot(turn, out);
                }
                self.piece(turn, out, "thinking", &delta.message_id, &delta.content)
            }
            Body::ThinkingFinished(finished) => {
                let told_aside =
                    track.thought(&finished.message_id).is_some_and(|thought| thought.aside && thought.told);
                if told_aside || finished.content.is_some() {
                    self.slot(turn, out);
                }
            }
            Body::ToolArgsStarted(_) | Body::ToolArgsDelta(_) | Body::ToolStarted(_) => {}
            Body::ToolCalled(called) => {
                if called.arguments_text.is_some()
                    || called.incomplete.is_some()
                    || called.description.is_some()
                {
                    turn.keep_whole();
                }
                let mut outline = Outline::new("tool", "tool_call");
                if let Some(id) = &called.message_id {
                    outline = outline.of_message(message_id(id), None);
                }
                outline.write(
                    turn,
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
                if finished.result.is_none() && !failed && !turn.own {
                    turn.keep_result(said);
                } else {
                    turn.keep_result_kind(finished, said);
                }
                Outline::new("tool", "tool_result").write(
                    turn,
                    out,
                    |payload| {
                        payload.str("tool_call_id", &finished.call_id);
                        payload.str("status", if failed { "error" } else { "success" });
                        match (&finished.result, failed) {
                            (Some(result), _) => turn.write_object_result(payload, result),
                            (None, false) if turn.own => payload.null("result"),
                            (None, false) => payload.json("result", &Json::empty_object()),
                            (None, true) => {}
                        }
                        match (&finished.error, failed) {
                            (Some(error), _) => write_error(turn, payload, error),
                            (None, true) if finished.result.is_none() => {
                                super::write_error(payload, "error", &ErrorInfo::message("failed"));
                            }
                            _ => {}
                        }
                    },
                    nothing,
                );
            }
            Body::InteractionRequested(asked) => {
                ask(turn, out, asked);
                self.tell_early_wait(turn, out);
            }
            Body::InteractionResolved(resolved) => {
                let plain = resolved.values.is_none() && resolved.reason.is_none() && resolved.by.is_none();
                let id = resolved.interaction_id.as_str();
                let newest = track.questions.iter().rev().find(|question| is_form(&question.id, id));
                let ends = turn.record.entries.iter().any(|entry| entry.event.body.is_terminal());
                let meant = ends || newest.is_none_or(|question| question.id == id);
                if resolved.decision != Decision::Cancelled || !plain || !meant {
                    return self.slot(turn, out);
                }
                let own = turn.own_field(FORM_ID);
                Outline::new("interaction", "form_cancel").write(
                    turn,
                    out,
                    |payload| match own {
                        Some(form_id) => payload.json("form_id", form_id),
                        None => payload.str("form_id", &resolved.interaction_id),
                    },
                    nothing,
                );
            }
            // A fatal notice is told by the failure that follows it: a client ends at the first error.
            Body::Notice(notice) if notice.level == Level::Error && notice.fatal != Some(true) => {
                self.error(turn, out, &notice.to_error(), false, None);
            }
            Body::Notice(notice) if notice.level != Level::Error && notice.fatal != Some(true) => {
                if notice.domain.is_some() || notice.details.is_some() || notice.kind.is_some() {
                    turn.keep_whole();
                }
                Outline::new("debug", "notice").write(
                    turn,
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
                    turn.keep_whole();
                }
                self.done(turn, out, completed.summary.as_ref(), None);
            }
            Body::RunFailed(failed) => self.error(turn, out, &failed.error, true, failed.summary.as_ref()),
            Body::RunCancelled(cancelled) => {
                self.done(turn, out, cancelled.summary.as_ref(), Some(cancelled.reason.as_deref()));
            }
            // Tokens are summed in the end's meta.
            Body::Usage(_) if !turn.full && !turn.own => {}
            Body::Foreign(foreign)
                if foreign.dialect == "easyflow-chat" && foreign.frame.is_object() && !turn.full =>
            {
                let mut object = ObjectWriter::begin(out.begin());
                let mut told = false;
                for (name, raw) in Object::of_json(&foreign.frame).iter().flat_map(Object::fields) {
                    if matches!(name, "conversation_id" | "conversationId") {
                        told = true;
                        object.str("conversation_id", &turn.ids.thread);
                    } else {
                        object.raw(name, raw.get());
                    }
                }
                if !told {
                    object.str("conversation_id", &turn.ids.thread);
                }
                object.end();
                out.end(Some(Cow::Borrowed("message")));
            }
            _ => self.slot(turn, out),
        }
    }

    fn write_slot(&mut self, turn: &Turn<'_>, out: &mut Frames) {
        let outline = Outline::new("debug", "runwire");
        let mut object = outline.begin(turn, out);
        turn.write_native(object.key("payload"));
        turn.told_in_slot();
        object.end();
        out.end(Some(Cow::Borrowed("message")));
    }
}

/// The schema of a form that has none.
const ANY_FORM: &str = r#"{"type":"object"}"#;

/// Returns whether a schema is one of those that stand for none.
fn says_no_schema(schema: Option<&Json>) -> bool {
    schema.is_some_and(|schema| matches!(schema.text(), ANY_FORM | super::APPROVAL_SCHEMA))
}

/// Asks by a form; an approval is a form with a boolean `approved`.
fn ask(turn: &Turn<'_>, out: &mut Frames, asked: &InteractionRequested) {
    let approval = asked.kind == InteractionKind::Approval;
    let own = turn.own_field(FORM_ID);
    let fits = asked.schema.as_ref().is_some_and(Json::is_object);
    let reads_as_approval = asked.schema.as_ref().map_or(approval, super::asks_for_approval);
    if approval != reads_as_approval
        || (asked.schema.is_some() && !fits)
        || says_no_schema(asked.schema.as_ref())
    {
        turn.keep_whole();
    }
    Outline::new("interaction", "form_request").write(
        turn,
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
                (_, _, true) => payload.raw("schema", super::APPROVAL_SCHEMA),
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
