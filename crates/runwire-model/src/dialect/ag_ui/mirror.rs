//! What the official client holds after the frames of a run, and how to give that to another client at once.
//!
//! The client's own rules are followed (`@ag-ui/client` 1.0.0, its reducer), frame by frame, so the snapshot is
//! what a full replay would have come to: which message a call belongs to, where a result stands, what a
//! `MESSAGES_SNAPSHOT` replaces.

use serde_json::value::RawValue;

use crate::dialect::Frames;
use crate::event::{Event, Extra};
use crate::json::{Json, Object, ObjectWriter};
use crate::patch;
use crate::record::ChatMessage;

/// A client that is given the frames of one run.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    messages: Vec<Message>,
    /// What has begun since the last `RUN_STARTED` and not ended, as it came.
    open: Vec<Open>,
    /// Frames that the client keeps nothing of, but an application may: `CUSTOM` and `RAW`.
    asides: Vec<Json>,
    /// Whether a `RUN_STARTED` has no end yet.
    active: bool,
    /// The last `RUN_FINISHED` or `RUN_ERROR`.
    end: Option<Json>,
}

/// A message as the client keeps it.
#[derive(Debug, Default)]
struct Message {
    id: String,
    role: String,
    content: Content,
    calls: Vec<Call>,
    more: Extra,
}

#[derive(Debug, Default)]
enum Content {
    #[default]
    None,
    Text(String),
    Other(Json),
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    more: Extra,
}

#[derive(Debug)]
struct Open {
    kind: PartKind,
    /// Its id, or the name of a step.
    id: String,
    /// Whose step it is: two may have one name.
    subagent: Option<String>,
    /// The frame that began it.
    start: Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Step,
    Subagent,
    Text,
    Span,
    Thought,
    Call,
}

impl Mirror {
    /// Makes a client with the messages of earlier runs.
    pub(crate) fn new(messages: Vec<ChatMessage>) -> Self {
        Self { messages: messages.into_iter().map(Message::of_chat).collect(), ..Self::default() }
    }

    /// Returns whether a response has begun that has not ended.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Applies a frame to the client; returns true for one with the sum of tokens so far.
    pub(crate) fn take(&mut self, data: &[u8]) -> bool {
        let Some(text) = std::str::from_utf8(data).ok() else { return false };
        let Ok(mut frame) = Object::parse_checked(text) else { return false };
        let kind = take_text(&mut frame, "type");
        let id = frame.get_str("messageId").unwrap_or_default().into_owned();
        match kind.as_str() {
            "RUN_STARTED" => {
                self.active = true;
                self.open.clear();
                let input = frame.get("input").and_then(Object::of);
                for message in messages_of(input.and_then(|mut input| input.take("messages"))) {
                    self.add(message);
                }
            }
            "RUN_FINISHED" | "RUN_ERROR" => {
                self.active = false;
                self.open.clear();
                self.end = Some(Json::from_valid(text));
                return frame.has("usage");
            }
            "STEP_STARTED" => self.begin(PartKind::Step, &frame, text),
            "STEP_FINISHED" => self.finish(PartKind::Step, &frame),
            "SUBAGENT_STARTED" => self.begin(PartKind::Subagent, &frame, text),
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => self.finish(PartKind::Subagent, &frame),
            "TEXT_MESSAGE_START" => {
                self.begin(PartKind::Text, &frame, text);
                let role = frame.get_str("role").map_or_else(|| "assistant".to_owned(), Into::into);
                self.start_message(id, role, &frame);
            }
            "REASONING_START" => self.begin(PartKind::Span, &frame, text),
            "REASONING_MESSAGE_START" => {
                self.begin(PartKind::Thought, &frame, text);
                self.start_message(id, "reasoning".to_owned(), &frame);
            }
            "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                if let Some(message) = self.message(&id) {
                    message.content.append(&frame.get_str("delta").unwrap_or_default());
                    merge_metadata(&mut message.more, &frame);
                }
            }
            "TEXT_MESSAGE_END" => self.end_message(PartKind::Text, &id, &frame),
            "REASONING_MESSAGE_END" => self.end_message(PartKind::Thought, &id, &frame),
            "REASONING_END" => self.finish(PartKind::Span, &frame),
            "TOOL_CALL_START" => {
                self.begin(PartKind::Call, &frame, text);
                self.start_call(&frame);
            }
            "TOOL_CALL_ARGS" | "TOOL_CALL_END" => {
                if kind == "TOOL_CALL_END" {
                    self.finish(PartKind::Call, &frame);
                }
                if let Some(call) = self.call(&frame.get_str("toolCallId").unwrap_or_default()) {
                    call.arguments.push_str(&frame.get_str("delta").unwrap_or_default());
                    merge_metadata(&mut call.more, &frame);
                }
            }
            "TOOL_CALL_RESULT" => self.result(id, &mut frame),
            "MESSAGES_SNAPSHOT" => self.replace(messages_of(frame.take("messages"))),
            "ACTIVITY_SNAPSHOT" => self.show_activity(id, &mut frame),
            "ACTIVITY_DELTA" => self.change_activity(&id, &mut frame),
            "REASONING_ENCRYPTED_VALUE" => self.encrypt(&mut frame),
            "CUSTOM" | "RAW" => self.asides.push(Json::from_valid(text)),
            _ => {}
        }
        false
    }

    /// Writes the frames that bring a fresh client to where this one is.
    ///
    /// `ids` are those of thread and run on the wire, `waits` says that people are asked something, and `events`
    /// are the run's own so far: a reader that decodes the snapshot takes them instead of what it shows.
    pub(crate) fn write(
        &self,
        out: &mut Frames,
        ids: [&str; 2],
        state: Option<&Json>,
        waits: bool,
        events: &[&Event],
    ) {
        if !self.active && self.end.is_none() {
            return;
        }
        write_start(out, ids);
        self.write_messages(out, events);
        if let Some(state) = state {
            write_plain(out, "STATE_SNAPSHOT", |object| object.json("snapshot", state));
        }
        self.asides.iter().for_each(|frame| retell(out, frame));
        // Where the agent went on while a person is asked, the question comes before what is open now.
        if let Some(end) = self.end.as_ref().filter(|_| !self.active || waits) {
            retell(out, end);
            if !self.active {
                return;
            }
            write_start(out, ids);
        }
        for open in &self.open {
            retell(out, &open.start);
            let call = self.calls().find(|call| open.kind == PartKind::Call && call.id == open.id);
            if let Some(call) = call.filter(|call| !call.arguments.is_empty()) {
                write_plain(out, "TOOL_CALL_ARGS", |object| {
                    object.str("toolCallId", &call.id);
                    object.str("delta", &call.arguments);
                    object.opt_str("subagentRunId", open.subagent.as_deref());
                });
            }
        }
    }

    fn write_messages(&self, out: &mut Frames, events: &[&Event]) {
        // A half-received call is told by its own frames.
        let is_whole = |call: &&Call| {
            !self.active || !self.open.iter().any(|open| open.kind == PartKind::Call && open.id == call.id)
        };
        let is_there = |message: &&Message| {
            message.calls.is_empty()
                || message.calls.iter().any(|call| is_whole(&call))
                || !matches!(message.content, Content::None)
        };
        let mut object = ObjectWriter::begin(out.begin());
        object.str("type", "MESSAGES_SNAPSHOT");
        object.array("messages", self.messages.iter().filter(is_there), |out, message| {
            message.write(out, message.calls.iter().filter(is_whole));
        });
        let mut metadata = object.object("metadata");
        metadata.array("runwire", events, |out, event| {
            let mut object = ObjectWriter::begin(out);
            event.write(&mut object);
            object.end();
        });
        metadata.end();
        object.end();
        out.end(None);
    }

    fn begin(&mut self, kind: PartKind, frame: &Object<'_>, text: &str) {
        let (id, subagent) = identity(kind, frame);
        self.open.push(Open { kind, id, subagent, start: Json::from_valid(text) });
    }

    fn finish(&mut self, kind: PartKind, frame: &Object<'_>) {
        let (id, subagent) = identity(kind, frame);
        let is_meant = |open: &Open| {
            open.kind == kind && open.id == id && (kind != PartKind::Step || open.subagent == subagent)
        };
        self.open.retain(|open| !is_meant(open));
    }

    fn start_message(&mut self, id: String, role: String, frame: &Object<'_>) {
        if self.message(&id).is_none() {
            let mut message = Message { id: id.clone(), role, ..Default::default() };
            message.content = Content::Text(String::new());
            for name in ["name", "subagentRunId"] {
                message.more.copy(name, frame.get(name));
            }
            self.messages.push(message);
        }
        if let Some(message) = self.message(&id) {
            merge_metadata(&mut message.more, frame);
        }
    }

    fn end_message(&mut self, kind: PartKind, id: &str, frame: &Object<'_>) {
        self.finish(kind, frame);
        if let Some(message) = self.message(id) {
            merge_metadata(&mut message.more, frame);
        }
    }

    /// Adds a call to the message that makes it, which may have to be made first.
    fn start_call(&mut self, frame: &Object<'_>) {
        let id = frame.get_str("toolCallId").unwrap_or_default().into_owned();
        let name = frame.get_str("toolCallName").unwrap_or_default().into_owned();
        if let Some(call) = self.call(&id) {
            call.name = name;
            return merge_metadata(&mut call.more, frame);
        }
        let parent = frame.get_str("parentMessageId").map(String::from);
        let known = parent.as_ref().and_then(|parent| self.messages.iter().position(|m| m.id == *parent));
        let at = match known.filter(|at| self.messages[*at].role == "assistant") {
            Some(at) => at,
            None => {
                let own = parent.filter(|_| known.is_none()).unwrap_or_else(|| id.clone());
                let mut message = Message { id: own, role: "assistant".into(), ..Default::default() };
                message.more.copy("subagentRunId", frame.get("subagentRunId"));
                self.messages.push(message);
                self.messages.len() - 1
            }
        };
        let mut call = Call { id, name, ..Default::default() };
        merge_metadata(&mut call.more, frame);
        self.messages[at].calls.push(call);
    }

    /// Puts a result after the message that called, and after the results that it already has.
    fn result(&mut self, id: String, frame: &mut Object<'_>) {
        let call_id = take_text(frame, "toolCallId");
        let mut message = Message { id, role: "tool".into(), ..Default::default() };
        message.content = Content::of(frame.take("content"));
        message.more.set("toolCallId", Json::string(&call_id));
        message.more.copy("subagentRunId", frame.get("subagentRunId"));
        merge_metadata(&mut message.more, frame);
        let calls = |message: &Message| message.calls.iter().any(|call| call.id == call_id);
        let owner = self.messages.iter().position(calls);
        let at = owner.map_or(self.messages.len(), |owner| {
            let results = self.messages[owner + 1..].iter().take_while(|message| message.role == "tool");
            owner + 1 + results.count()
        });
        self.messages.insert(at, message);
    }

    /// Replaces the messages. Thinking and activities stay if the list has none.
    fn replace(&mut self, list: Vec<Message>) {
        let has = |role: &str| list.iter().any(|message| message.role == role);
        let (has_thinking, has_activity) = (has("reasoning"), has("activity"));
        let mut list: Vec<Option<Message>> = list.into_iter().map(Some).collect();
        let mut messages = Vec::with_capacity(list.len());
        for message in self.messages.drain(..) {
            let stays = match message.role.as_str() {
                "reasoning" => !has_thinking,
                "activity" => !has_activity,
                _ => false,
            };
            let listed = list.iter_mut().find(|listed| listed.as_ref().is_some_and(|m| m.id == message.id));
            match listed.and_then(Option::take) {
                Some(listed) => messages.push(listed),
                None if stays => messages.push(message),
                None => {}
            }
        }
        messages.extend(list.into_iter().flatten());
        self.messages = messages;
    }

    fn show_activity(&mut self, id: String, frame: &mut Object<'_>) {
        let replaces = frame.get("replace").is_none_or(|replace| replace.get() != "false");
        let known = self.messages.iter().position(|message| message.id == id);
        if let Some(known) = known.filter(|_| !replaces) {
            return merge_metadata(&mut self.messages[known].more, frame);
        }
        let mut message = Message { id, role: "activity".into(), ..Default::default() };
        message.content = Content::of(frame.take("content"));
        message.more.copy("activityType", frame.get("activityType"));
        message.more.copy("subagentRunId", frame.get("subagentRunId"));
        merge_metadata(&mut message.more, frame);
        match known {
            Some(known) => self.messages[known] = message,
            None => self.messages.push(message),
        }
    }

    fn change_activity(&mut self, id: &str, frame: &mut Object<'_>) {
        let Some(message) = self.message(id).filter(|message| message.role == "activity") else { return };
        let (Content::Other(content), Some(patch)) = (&message.content, frame.take("patch")) else { return };
        if let Some(changed) = patch::apply(content, &Json::from_raw(patch)) {
            message.content = Content::Other(changed);
            message.more.copy("activityType", frame.get("activityType"));
        }
    }

    fn encrypt(&mut self, frame: &mut Object<'_>) {
        let id = take_text(frame, "entityId");
        let more = match take_text(frame, "subtype").as_str() {
            "tool-call" => self.call(&id).map(|call| &mut call.more),
            _ => self.message(&id).filter(|m| m.role != "activity").map(|message| &mut message.more),
        };
        if let Some(more) = more {
            more.copy("encryptedValue", frame.get("encryptedValue"));
        }
    }

    fn add(&mut self, message: Message) {
        if self.message(&message.id).is_none() {
            self.messages.push(message);
        }
    }

    fn message(&mut self, id: &str) -> Option<&mut Message> {
        self.messages.iter_mut().find(|message| message.id == id)
    }

    fn calls(&self) -> impl Iterator<Item = &Call> {
        self.messages.iter().flat_map(|message| &message.calls)
    }

    fn call(&mut self, id: &str) -> Option<&mut Call> {
        self.messages.iter_mut().flat_map(|message| &mut message.calls).find(|call| call.id == id)
    }
}

impl Message {
    fn of_chat(chat: ChatMessage) -> Self {
        let calls = chat.tool_calls.into_iter();
        let calls: Vec<Call> =
            calls.map(|(id, name, arguments)| Call { id, name, arguments, ..Default::default() }).collect();
        let is_known = matches!(chat.role.as_str(), "user" | "assistant" | "tool" | "system" | "developer");
        let mut message = Self { id: chat.id, calls, ..Default::default() };
        message.role = if is_known { chat.role } else { "assistant".to_owned() };
        if !chat.content.is_empty() || message.calls.is_empty() {
            message.content = Content::Text(chat.content);
        }
        if let Some(call) = chat.tool_call_id {
            message.more.set("toolCallId", Json::string(&call));
        }
        message
    }

    fn read(mut object: Object<'_>) -> Self {
        let (id, role) = (take_text(&mut object, "id"), take_text(&mut object, "role"));
        let content = Content::of(object.take("content"));
        let calls = items(object.take("toolCalls")).into_iter().map(Call::read).collect();
        Self { id, role, content, calls, more: object.rest() }
    }

    fn write<'c>(&self, out: &mut Vec<u8>, calls: impl Iterator<Item = &'c Call>) {
        let mut object = ObjectWriter::begin(out);
        object.str("id", &self.id);
        object.str("role", &self.role);
        match &self.content {
            Content::None => {}
            Content::Text(text) => object.str("content", text),
            Content::Other(value) => object.json("content", value),
        }
        let mut calls = calls.peekable();
        if calls.peek().is_some() {
            object.array("toolCalls", calls, |out, call| call.write(out));
        }
        self.more.iter().for_each(|(name, value)| object.json(name, value));
        object.end();
    }
}

impl Call {
    fn read(mut object: Object<'_>) -> Self {
        object.take("type");
        let mut function = object.take("function").and_then(Object::of).unwrap_or_default();
        Self {
            id: take_text(&mut object, "id"),
            name: take_text(&mut function, "name"),
            arguments: take_text(&mut function, "arguments"),
            more: object.rest(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::begin(out);
        object.str("id", &self.id);
        object.str("type", "function");
        let mut function = object.object("function");
        function.str("name", &self.name);
        function.str("arguments", &self.arguments);
        function.end();
        self.more.iter().for_each(|(name, value)| object.json(name, value));
        object.end();
    }
}

impl Content {
    fn of(raw: Option<&RawValue>) -> Self {
        let Some(json) = raw.map(Json::from_raw) else { return Self::None };
        match json.as_string() {
            Some(text) => Self::Text(text.into_owned()),
            None => Self::Other(json),
        }
    }

    fn append(&mut self, more: &str) {
        match self {
            Self::Text(text) => text.push_str(more),
            _ => *self = Self::Text(more.to_owned()),
        }
    }
}

impl Extra {
    fn copy(&mut self, name: &str, raw: Option<&RawValue>) {
        if let Some(raw) = raw {
            self.set(name, Json::from_raw(raw));
        }
    }
}

/// Returns what begins or ends: its id or name, and the subagent it is in.
fn identity(kind: PartKind, frame: &Object<'_>) -> (String, Option<String>) {
    let key = match kind {
        PartKind::Step => "stepName",
        PartKind::Subagent => "subagentRunId",
        PartKind::Call => "toolCallId",
        PartKind::Text | PartKind::Span | PartKind::Thought => "messageId",
    };
    let text = |key| frame.get_str(key).map(String::from);
    (text(key).unwrap_or_default(), text("subagentRunId"))
}

fn take_text(object: &mut Object<'_>, key: &str) -> String {
    object.take_opt_str(key).ok().flatten().unwrap_or_default().into_owned()
}

fn items<'a>(raw: Option<&'a RawValue>) -> Vec<Object<'a>> {
    let items = raw.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
    items.unwrap_or_default().into_iter().filter_map(Object::of).collect()
}

fn messages_of(raw: Option<&RawValue>) -> Vec<Message> {
    items(raw).into_iter().map(Message::read).collect()
}

/// Adds a frame's metadata to what it builds, key by key; a residue is for readers that decode.
fn merge_metadata(more: &mut Extra, frame: &Object<'_>) {
    let Some(added) = frame.get("metadata").and_then(Object::of) else { return };
    let mut merged = Extra::default();
    let before = more.get("metadata").cloned();
    for object in before.as_ref().and_then(Object::of_json).iter().chain([&added]) {
        for (name, raw) in object.fields().filter(|(name, _)| *name != "runwire") {
            merged.set(name, Json::from_raw(raw));
        }
    }
    if merged.is_empty() {
        return;
    }
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    merged.iter().for_each(|(name, value)| object.json(name, value));
    object.end();
    more.set("metadata", Json::from_written(out));
}

fn write_start(out: &mut Frames, [thread, run]: [&str; 2]) {
    write_plain(out, "RUN_STARTED", |object| {
        object.str("threadId", thread);
        object.str("runId", run);
    });
}

/// Writes a frame that a reader who decodes it must not take for an event.
fn write_plain(out: &mut Frames, kind: &str, fields: impl FnOnce(&mut ObjectWriter<'_>)) {
    let mut object = ObjectWriter::begin(out.begin());
    object.str("type", kind);
    fields(&mut object);
    let mut metadata = object.object("metadata");
    metadata.raw("runwire", "[]");
    metadata.end();
    object.end();
    out.end(None);
}

/// Writes a frame again, for clients alone.
fn retell(out: &mut Frames, frame: &Json) {
    let mut source = Object::of_json(frame).unwrap_or_default();
    let metadata = source.take("metadata").and_then(Object::of).unwrap_or_default();
    let mut object = ObjectWriter::begin(out.begin());
    source.fields().for_each(|(name, raw)| object.raw(name, raw.get()));
    let mut inner = object.object("metadata");
    for (name, raw) in metadata.fields().filter(|(name, _)| *name != "runwire") {
        inner.raw(name, raw.get());
    }
    inner.raw("runwire", "[]");
    inner.end();
    object.end();
    out.end(None);
}
