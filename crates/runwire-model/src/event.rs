//! The canonical events: what can happen in a run, in one vocabulary.
//!
//! Every dialect is translated to these and from these. As JSON they are the `runwire` dialect
//! ([`crate::dialect`]). An event's [`Body`] says what happened; around it stand the step and the
//! subagent it happened in, and the fields that the model has no name for.

use serde_json::value::RawValue;

use crate::json::{Field, FieldError, FieldFault, Json, Object, ObjectWriter};

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Event {
    /// What happened.
    pub body: Body,
    /// The step it happened in; of `step.started` and `step.finished`, the step itself.
    pub step_id: Option<String>,
    /// The subagent it happened in.
    pub subagent_run_id: Option<String>,
    /// Fields of the source that the model has no name for.
    pub extra: Extra,
}

impl Event {
    /// Makes an event with nothing around its body.
    pub fn new(body: impl Into<Body>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// Reads an event from a frame of the `runwire` dialect whose envelope has been taken out.
    ///
    /// A type that this version does not know gives `None`.
    pub fn read(event_type: &str, mut object: Object<'_>) -> Result<Option<Self>, FieldError> {
        let Some(body) = Body::read(event_type, &mut object)? else { return Ok(None) };
        let step_id = object.take_id("step_id")?;
        let subagent_run_id = object.take_id("subagent_run_id")?;
        let kept = object.take_object("extra")?;
        let mut extra = object.rest();
        for (name, raw) in kept.iter().flat_map(Object::fields) {
            extra.set(name.to_owned(), Json::from_raw(raw));
        }
        Ok(Some(Self { body, step_id, subagent_run_id, extra }))
    }

    /// Writes type, payload and surroundings as fields of an object.
    pub fn write(&self, object: &mut ObjectWriter<'_>) {
        object.str("type", self.body.type_name());
        self.body.write(object);
        object.opt_str("step_id", self.step_id.as_deref());
        object.opt_str("subagent_run_id", self.subagent_run_id.as_deref());
        if !self.extra.is_empty() {
            let mut extra = object.object("extra");
            for (name, value) in self.extra.iter() {
                extra.json(name, value);
            }
            extra.end();
        }
    }

    /// Writes the event as an object without an envelope.
    pub fn to_json(&self) -> Json {
        let mut out = Vec::new();
        let mut object = ObjectWriter::begin(&mut out);
        self.write(&mut object);
        object.end();
        Json::from_written(out)
    }

    /// Reads what [`Event::write`] wrote into a store, whatever the length of its ids.
    pub fn from_stored(text: &str) -> Option<Self> {
        let mut object = Object::of_stored(text)?;
        let event_type = object.take_str("type").ok()?;
        Self::read(&event_type, object).ok().flatten()
    }

    /// Reads what [`Event::to_json`] wrote; an envelope around it is ignored.
    pub fn from_json(json: &Json) -> Option<Self> {
        let mut object = Object::of_json(json)?;
        for envelope in ["seq", "at", "thread_id", "run_id"] {
            object.take(envelope);
        }
        let event_type = object.take_str("type").ok()?;
        Self::read(&event_type, object).ok().flatten()
    }
}

/// Fields that the model has no name for, in the order they came.
///
/// A name with a dot (`metadata.trace`) says in which object of the source's envelope the field stood.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extra(Vec<(String, Json)>);

/// Fields up to which searching one by one is faster than an index.
const SMALL_EXTRA: usize = 16;

impl Extra {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Looks a field up.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Adds a field, or replaces it.
    pub fn set(&mut self, name: impl Into<String>, value: Json) {
        let name = name.into();
        match self.0.iter_mut().take(64).find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// Takes a field out.
    pub fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Keeps the fields that another event has with the same value.
    ///
    /// Takes time linear in the fields of both: a frame has room for a hundred thousand of them.
    pub(crate) fn retain_common(&mut self, other: &Self) {
        if self.0.len().min(other.0.len()) <= SMALL_EXTRA {
            self.0.retain(|(name, value)| other.get(name) == Some(value));
            return;
        }
        let mut values = std::collections::HashMap::with_capacity(other.0.len());
        for (name, value) in other.iter() {
            values.entry(name).or_insert(value);
        }
        self.0.retain(|(name, value)| values.get(name.as_str()) == Some(&value));
    }

    /// Keeps the fields that a function wants, which may change their values.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&str, &mut Json) -> bool) {
        self.0.retain_mut(|(name, value)| keep(name, value));
    }

    /// Lists the fields.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Adds the fields of another object of the envelope, its name and a dot before each.
    pub(crate) fn add_inside(&mut self, outer: &str, object: Option<&Object<'_>>) {
        for (name, raw) in object.into_iter().flat_map(Object::fields) {
            self.set(format!("{outer}.{name}"), Json::from_raw(raw));
        }
    }
}

/// A type that can stand in a field of an event.
trait EventField: Sized {
    fn take(object: &mut Object<'_>, key: &str) -> Result<Self, FieldError>;
    fn put(&self, key: &str, object: &mut ObjectWriter<'_>);
    /// How the docs write the field: `name`, or `name?` where it may be absent.
    fn documented(key: &str) -> String;
}

impl<T: Field> EventField for Option<T> {
    fn take(object: &mut Object<'_>, key: &str) -> Result<Self, FieldError> {
        object.take_opt(key)
    }

    fn put(&self, key: &str, object: &mut ObjectWriter<'_>) {
        if let Some(value) = self {
            value.write(key, object);
        }
    }

    fn documented(key: &str) -> String {
        format!("{key}?")
    }
}

macro_rules! required_fields {
    ($($type:ty),*) => {$(
        impl EventField for $type {
            fn take(object: &mut Object<'_>, key: &str) -> Result<Self, FieldError> {
                object.take_required(key)
            }

            fn put(&self, key: &str, object: &mut ObjectWriter<'_>) {
                self.write(key, object);
            }

            fn documented(key: &str) -> String {
                key.to_owned()
            }
        }
    )*};
}

required_fields!(
    String,
    u64,
    f64,
    bool,
    Vec<String>,
    ErrorInfo,
    ToolStatus,
    Level,
    InteractionKind,
    Decision
);

/// Any value is a value here, `null` too.
impl EventField for Json {
    fn take(object: &mut Object<'_>, key: &str) -> Result<Self, FieldError> {
        object.take_json(key)
    }

    fn put(&self, key: &str, object: &mut ObjectWriter<'_>) {
        object.json(key, self);
    }

    fn documented(key: &str) -> String {
        key.to_owned()
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$word_doc])* $variant),* }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// Reads the word on the wire.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl Field for $name {
            const EXPECTED: &'static str = concat!("one of", $(" ", $word),*);

            fn read(raw: &RawValue) -> Result<Self, FieldFault> {
                let word = String::read(raw).map_err(|_| FieldFault::Type(Self::EXPECTED))?;
                Self::from_word(&word)
                    .ok_or_else(|| FieldFault::Value(format!("must be {}, and is `{word}`", Self::EXPECTED)))
            }

            fn write(&self, key: &str, object: &mut ObjectWriter<'_>) {
                object.str(key, self.as_str());
            }
        }
    };
}

words! {
    /// How a tool call ended.
    ToolStatus {
        /// It did what it was asked to.
        #[default]
        Success = "success",
        /// It failed.
        Failure = "failure",
        /// It did a part of it.
        Partial = "partial",
    }
}

words! {
    /// How loud a notice is.
    Level {
        /// For those who debug the agent.
        Debug = "debug",
        /// Something to know of.
        Warning = "warning",
        /// Something went wrong.
        #[default]
        Error = "error",
    }
}

words! {
    /// What a person is asked for.
    InteractionKind {
        /// To fill in a form.
        #[default]
        Form = "form",
        /// To allow or forbid something.
        Approval = "approval",
    }
}

words! {
    /// What became of a question.
    Decision {
        /// The form was filled in.
        #[default]
        Submitted = "submitted",
        /// It was allowed.
        Approved = "approved",
        /// It was forbidden.
        Rejected = "rejected",
        /// It was withdrawn.
        Cancelled = "cancelled",
        /// Nobody answered in time.
        Expired = "expired",
    }
}

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            /// Fields that the model has no name for.
            #[cfg_attr(test, schemars(skip))]
            pub extra: Extra,
        }

        impl Field for $name {
            const EXPECTED: &'static str = "an object";

            fn read(raw: &RawValue) -> Result<Self, FieldFault> {
                let mut object = Object::of(raw).ok_or(FieldFault::Type(Self::EXPECTED))?;
                Ok(Self {
                    $($field: EventField::take(&mut object, stringify!($field)).map_err(FieldFault::Inside)?,)*
                    extra: object.rest(),
                })
            }

            fn write(&self, key: &str, object: &mut ObjectWriter<'_>) {
                let mut inner = object.object(key);
                $(self.$field.put(stringify!($field), &mut inner);)*
                for (name, value) in self.extra.iter() {
                    inner.json(name, value);
                }
                inner.end();
            }
        }
    )*};
}

parts! {
    /// What went wrong.
    ErrorInfo {
        /// The source's code for it.
        code: Option<String>,
        /// The kind of error (`validation`, `timeout`, the class of an exception).
        kind: Option<String>,
        /// Whose error it is: `system` or `business`.
        domain: Option<String>,
        /// What a person reads.
        message: String,
        /// Whether trying again may help.
        retryable: Option<bool>,
        /// Anything else that is known.
        details: Option<Json>,
    }

    /// The figures of a whole run.
    Summary {
        /// Tokens of all prompts.
        prompt_tokens: Option<u64>,
        /// Tokens of all completions.
        completion_tokens: Option<u64>,
        /// Tokens in all.
        total_tokens: Option<u64>,
        /// How long it took.
        duration_ms: Option<f64>,
        /// How many steps it had.
        steps: Option<u64>,
        /// How many tools were called.
        tool_calls: Option<u64>,
        /// How long the first text took.
        response_latency_ms: Option<f64>,
    }
}

impl ErrorInfo {
    /// Makes an error of which only the message is known.
    pub fn message(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Reads an error that a source tells as a text or as an object of its own.
    pub fn read_lenient(json: &Json) -> Self {
        let Some(mut object) = Object::of_json(json) else { return Self::message(json.text_form()) };
        let mut text = |key| object.take_opt_str(key).ok().flatten().map(std::borrow::Cow::into_owned);
        let (kind, domain, message) = (text("kind"), text("domain"), text("message"));
        let code = object.take_id("code").ok().flatten();
        let retryable = object.take_opt("retryable").ok().flatten();
        let details = object.take_present("details").map(Json::from_raw);
        let message = message.or_else(|| code.clone()).unwrap_or_else(|| "failed".to_owned());
        Self { code, kind, domain, message, retryable, details, extra: object.rest() }
    }

    /// Makes an error with a code.
    pub fn coded(code: &str, message: impl Into<String>) -> Self {
        Self { code: Some(code.to_owned()), message: message.into(), ..Self::default() }
    }
}

impl Foreign {
    /// Writes a frame that cannot be taken as one of its dialect as an event of the canonical dialect.
    ///
    /// Bytes that are no JSON object become a string.
    pub fn canonical_frame(dialect: &str, name: Option<&str>, data: &[u8]) -> String {
        let text = String::from_utf8_lossy(data);
        let frame = match Object::parse(data) {
            Ok(_) => text.into_owned(),
            Err(_) => serde_json::Value::from(text).to_string(),
        };
        let name = name.map(|name| format!(r#","name":{}"#, serde_json::Value::from(name)));
        let name = name.unwrap_or_default();
        format!(r#"{{"type":"foreign","dialect":"{dialect}","frame":{frame}{name}}}"#)
    }
}

/// One row of the vocabulary, for docs and checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventType {
    /// The type on the wire.
    pub name: &'static str,
    /// What it says, in a sentence.
    pub meaning: String,
    /// The fields of its payload, `?` after those that may be absent.
    pub fields: Vec<String>,
}

macro_rules! events {
    ($($(#[doc = $doc:literal])* $name:ident = $type_name:literal { $($(#[doc = $field_doc:literal])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, PartialEq, Default)]
            #[cfg_attr(test, derive(schemars::JsonSchema))]
            pub struct $name { $($(#[doc = $field_doc])* pub $field: $type),* }

            impl From<$name> for Body {
                fn from(body: $name) -> Self {
                    Self::$name(body)
                }
            }

            impl From<$name> for Event {
                fn from(body: $name) -> Self {
                    Self::new(body)
                }
            }
        )*

        /// What an event says. There will be more to say.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Body { $($(#[doc = $doc])* $name($name)),* }

        impl Body {
            /// Every type on the wire, in the order of the vocabulary.
            pub const TYPES: &'static [&'static str] = &[$($type_name),*];

            /// Returns the type on the wire.
            pub fn type_name(&self) -> &'static str {
                match self { $(Self::$name(_) => $type_name),* }
            }

            fn read(type_name: &str, object: &mut Object<'_>) -> Result<Option<Self>, FieldError> {
                Ok(Some(match type_name {
                    $($type_name => Self::$name($name {
                        $($field: EventField::take(object, stringify!($field))?),*
                    }),)*
                    _ => return Ok(None),
                }))
            }

            #[allow(unused_variables)]
            fn write(&self, object: &mut ObjectWriter<'_>) {
                match self {
                    $(Self::$name(body) => { $(body.$field.put(stringify!($field), object);)* })*
                }
            }

            /// Describes every event as JSON Schema: its type on the wire, its name here, its payload.
            #[cfg(test)]
            pub(crate) fn schemas(
                generator: &mut schemars::SchemaGenerator,
            ) -> Vec<(&'static str, &'static str, schemars::Schema)> {
                use schemars::JsonSchema as _;
                vec![$(($type_name, stringify!($name), $name::json_schema(generator))),*]
            }

            /// Describes the whole vocabulary.
            pub fn vocabulary() -> Vec<EventType> {
                vec![$(EventType {
                    name: $type_name,
                    meaning: [$($doc),*].concat().trim().to_owned(),
                    fields: vec![$(<$type as EventField>::documented(stringify!($field))),*],
                }),*]
            }
        }
    };
}

events! {
    /// The run begins.
    RunStarted = "run.started" {
        /// What the person asked.
        message: Option<String>,
        /// The id of the person's message.
        message_id: Option<String>,
        /// Which agent runs.
        agent: Option<String>,
        /// The whole input, in the source's form.
        input: Option<Json>,
        /// The run that this one goes on from.
        parent_run_id: Option<String>,
    }
    /// The run came to its end.
    RunCompleted = "run.completed" {
        /// The whole answer, where the source says it.
        reply: Option<String>,
        /// A result beside the text.
        result: Option<Json>,
        /// The run's figures.
        summary: Option<Summary>,
    }
    /// The run failed.
    RunFailed = "run.failed" {
        /// Why.
        error: ErrorInfo,
        /// The run's figures.
        summary: Option<Summary>,
    }
    /// The run was cancelled.
    RunCancelled = "run.cancelled" {
        /// Why.
        reason: Option<String>,
        /// The run's figures.
        summary: Option<Summary>,
    }
    /// The run waits for a person.
    RunSuspended = "run.suspended" {
        /// Why.
        reason: Option<String>,
        /// The questions it waits for.
        interaction_ids: Vec<String>,
    }
    /// The run goes on.
    RunResumed = "run.resumed" {
        /// Why.
        reason: Option<String>,
        /// The questions that were answered.
        interaction_ids: Vec<String>,
    }
    /// Somebody asked the run to stop.
    RunCancelRequested = "run.cancel_requested" {
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Option<String>,
    }
    /// The run says how far it is.
    RunStatus = "run.status" {
        /// `initializing`, `running`, or the source's own word.
        state: String,
    }
    /// A step begins.
    StepStarted = "step.started" {
        /// Its name.
        name: String,
    }
    /// A step ends.
    StepFinished = "step.finished" {
        /// Its name.
        name: String,
        /// Why it failed, if it did.
        error: Option<ErrorInfo>,
    }
    /// A text begins.
    TextStarted = "text.started" {
        /// Which message it is.
        message_id: String,
        /// Whose text it is; the assistant's unless said.
        role: Option<String>,
    }
    /// A piece of a text.
    TextDelta = "text.delta" {
        /// Which message it belongs to.
        message_id: String,
        /// The piece.
        content: String,
        /// `markdown`, `text` or `html`.
        format: Option<String>,
    }
    /// A text is complete.
    TextFinished = "text.finished" {
        /// Which message it is.
        message_id: String,
        /// The whole text, only where it replaces the pieces.
        content: Option<String>,
        /// `success`, `partial_success` or `failed`.
        status: Option<String>,
        /// What kind of answer it is.
        result_type: Option<String>,
        /// Its main points.
        key_points: Option<Json>,
        /// What the person could do next.
        suggested_actions: Option<Json>,
        /// What to draw.
        ui_schema: Option<Json>,
        /// What went wrong, in the source's form.
        error: Option<Json>,
    }
    /// Thinking begins.
    ThinkingStarted = "thinking.started" {
        /// Which thought it is.
        message_id: String,
        /// Which kind of thinking.
        stage: Option<String>,
    }
    /// A piece of thinking.
    ThinkingDelta = "thinking.delta" {
        /// Which thought it belongs to.
        message_id: String,
        /// The piece.
        content: String,
        /// Which kind of thinking.
        stage: Option<String>,
    }
    /// A thought is complete.
    ThinkingFinished = "thinking.finished" {
        /// Which thought it is.
        message_id: String,
        /// The whole thought, only where it replaces the pieces.
        content: Option<String>,
    }
    /// The arguments of a call begin to arrive.
    ToolArgsStarted = "tool.args_started" {
        /// Which call.
        call_id: String,
        /// The tool, once it is known.
        name: Option<String>,
        /// The message that calls it.
        message_id: Option<String>,
    }
    /// A piece of the arguments' JSON text.
    ToolArgsDelta = "tool.args_delta" {
        /// Which call.
        call_id: String,
        /// The piece.
        delta: String,
    }
    /// A tool is called.
    ToolCalled = "tool.called" {
        /// Which call.
        call_id: String,
        /// The tool.
        name: String,
        /// What it is given: always an object.
        arguments: Json,
        /// The arguments as text, where they are no JSON object.
        arguments_text: Option<String>,
        /// Whether the call was cut off before its arguments were whole.
        incomplete: Option<bool>,
        /// What the call is for, for people.
        description: Option<String>,
        /// The message that calls it.
        message_id: Option<String>,
    }
    /// The tool begins to work.
    ToolStarted = "tool.started" {
        /// Which call.
        call_id: String,
        /// The tool.
        name: Option<String>,
    }
    /// How far the tool is.
    ToolProgress = "tool.progress" {
        /// Which call.
        call_id: String,
        /// From 0 to 100.
        progress: Option<f64>,
        /// What it is doing.
        message: Option<String>,
    }
    /// Something the tool printed.
    ToolOutput = "tool.output" {
        /// Which call.
        call_id: String,
        /// The tool.
        name: Option<String>,
        /// What it printed.
        content: String,
    }
    /// The call is over.
    ToolFinished = "tool.finished" {
        /// Which call.
        call_id: String,
        /// The tool.
        name: Option<String>,
        /// How it ended.
        status: ToolStatus,
        /// What it gave back.
        result: Option<Json>,
        /// What went wrong.
        error: Option<ErrorInfo>,
        /// How long it took.
        duration_ms: Option<f64>,
        /// The message that carries the result.
        message_id: Option<String>,
    }
    /// A person is asked.
    InteractionRequested = "interaction.requested" {
        /// Which question.
        interaction_id: String,
        /// A form or an approval.
        kind: InteractionKind,
        /// The question's title.
        title: Option<String>,
        /// The question.
        description: Option<String>,
        /// The answer's JSON Schema.
        schema: Option<Json>,
        /// Texts of the form.
        ui: Option<Json>,
        /// The call it is about.
        call_id: Option<String>,
        /// The tool it is about.
        name: Option<String>,
        /// What the tool would be given.
        arguments: Option<Json>,
        /// Why it is asked.
        reason: Option<String>,
        /// When it is too late to answer.
        expires_at: Option<String>,
    }
    /// A question is settled.
    InteractionResolved = "interaction.resolved" {
        /// Which question.
        interaction_id: String,
        /// How.
        decision: Decision,
        /// What the person filled in.
        values: Option<Json>,
        /// Why.
        reason: Option<String>,
        /// Who.
        by: Option<String>,
    }
    /// The whole state of the thread.
    StateSnapshot = "state.snapshot" {
        /// The state.
        state: Json,
    }
    /// The state as a step left it.
    StateUpdated = "state.updated" {
        /// The step's name.
        step: String,
        /// The state.
        state: Json,
    }
    /// A change of the state.
    StatePatched = "state.patched" {
        /// The change, as a JSON Patch (RFC 6902).
        patch: Json,
    }
    /// All messages of the thread.
    MessagesSnapshot = "messages.snapshot" {
        /// The messages.
        messages: Json,
    }
    /// A place that the agent can go back to.
    Checkpoint = "checkpoint" {
        /// Its id.
        checkpoint_id: Option<Json>,
        /// When it was made.
        timestamp: Option<Json>,
        /// After which step.
        step: Option<Json>,
        /// The state.
        state: Option<Json>,
        /// The source's thread id.
        thread: Option<Json>,
        /// Its namespace.
        checkpoint_ns: Option<Json>,
    }
    /// A thought tree grows.
    TotExpanded = "tot.expanded" {
        /// The new thoughts.
        candidates: Json,
    }
    /// The thoughts of a tree are judged.
    TotEvaluated = "tot.evaluated" {
        /// Which was chosen, from 0.
        chosen: Json,
        /// The score of each.
        scores: Json,
    }
    /// A thought tree goes back.
    TotBacktracked = "tot.backtracked" {
        /// Why.
        reason: Option<String>,
        /// To which depth.
        to_depth: Json,
    }
    /// A thought graph is laid out.
    GotPlanned = "got.planned" {
        /// How many nodes it has.
        node_count: Option<Json>,
        /// How many edges it has.
        edge_count: Option<Json>,
        /// Its nodes.
        node_ids: Option<Json>,
    }
    /// A node of a thought graph begins.
    GotNodeStarted = "got.node_started" {
        /// Which node.
        node_id: String,
    }
    /// A node of a thought graph is done.
    GotNodeCompleted = "got.node_completed" {
        /// Which node.
        node_id: String,
        /// What it found.
        result_summary: Option<String>,
    }
    /// A node of a thought graph failed.
    GotNodeFailed = "got.node_failed" {
        /// Which node.
        node_id: String,
        /// Why.
        error: String,
    }
    /// A thought graph grows.
    GotExpanded = "got.expanded" {
        /// The node it grows from.
        node_id: String,
        /// The new nodes.
        nodes_added: Option<Json>,
        /// The new edges.
        edges_added: Option<Json>,
    }
    /// A block of data: a table, a chart, an image.
    Data = "data" {
        /// What it is.
        data_type: String,
        /// The data.
        data: Json,
        /// What is known of it.
        metadata: Option<Json>,
        /// The call it comes from.
        call_id: Option<String>,
    }
    /// An activity is shown.
    ActivitySnapshot = "activity.snapshot" {
        /// Which message.
        message_id: String,
        /// What kind of activity.
        activity_type: String,
        /// What it shows.
        content: Json,
        /// Whether it replaces what was shown.
        replace: Option<bool>,
    }
    /// A shown activity changes.
    ActivityPatched = "activity.patched" {
        /// Which message.
        message_id: String,
        /// What kind of activity.
        activity_type: String,
        /// The change, as a JSON Patch (RFC 6902).
        patch: Json,
    }
    /// A subagent begins.
    SubagentStarted = "subagent.started" {
        /// Its name.
        name: Option<String>,
    }
    /// A subagent is done.
    SubagentFinished = "subagent.finished" {
        /// What it gave back.
        result: Option<Json>,
    }
    /// A subagent failed.
    SubagentFailed = "subagent.failed" {
        /// Why.
        message: String,
        /// The source's code for it.
        code: Option<String>,
    }
    /// The tokens of one model call.
    Usage = "usage" {
        /// Of the prompt.
        prompt_tokens: Option<u64>,
        /// Of the completion.
        completion_tokens: Option<u64>,
        /// In all.
        total_tokens: Option<u64>,
    }
    /// Figures of any kind.
    Metrics = "metrics" {
        /// The figures.
        figures: Json,
    }
    /// Something to know of that does not by itself end the run.
    Notice = "notice" {
        /// How loud.
        level: Level,
        /// Whose: `system` or `business`.
        domain: Option<String>,
        /// The source's code for it.
        code: Option<String>,
        /// The kind of error.
        kind: Option<String>,
        /// What a person reads.
        message: String,
        /// Whether trying again may help.
        retryable: Option<bool>,
        /// Whether the run cannot go on.
        fatal: Option<bool>,
        /// Anything else that is known.
        details: Option<Json>,
    }
    /// Something of the agent's own.
    Custom = "custom" {
        /// Its name.
        name: Option<String>,
        /// Its value.
        value: Json,
    }
    /// A frame of a type that its dialect does not define, as it came.
    Foreign = "foreign" {
        /// The dialect it came in.
        dialect: String,
        /// The frame.
        frame: Json,
        /// The name that SSE carried for it.
        name: Option<String>,
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::Custom(Custom::default())
    }
}

impl Body {
    /// Returns whether the event ends its run.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::RunCompleted(_) | Self::RunFailed(_) | Self::RunCancelled(_))
    }
}

impl TextStarted {
    /// Returns whether the text is not the assistant's.
    pub fn is_not_assistant(&self) -> bool {
        self.role.as_deref().is_some_and(|role| role != "assistant")
    }
}

impl Notice {
    /// Returns the error that a run fails with when this notice was its last word.
    pub fn to_error(&self) -> ErrorInfo {
        ErrorInfo {
            code: self.code.clone(),
            kind: self.kind.clone(),
            domain: self.domain.clone(),
            message: self.message.clone(),
            retryable: self.retryable,
            details: self.details.clone(),
            extra: Extra::default(),
        }
    }
}

impl RunStarted {
    /// Returns whether the start says more than what the person asked.
    pub fn says_more(&self) -> bool {
        self.message_id.is_some()
            || self.agent.is_some()
            || self.input.is_some()
            || self.parent_run_id.is_some()
    }
}

impl TextFinished {
    /// Returns whether the end says more of the text than that it is complete.
    pub fn says_more(&self) -> bool {
        self.result_type.is_some()
            || self.key_points.is_some()
            || self.suggested_actions.is_some()
            || self.ui_schema.is_some()
            || self.error.is_some()
    }
}

impl ToolFinished {
    /// Returns the text form of what the call gave back: a failed call's error, else its result.
    pub fn text_form(&self) -> Option<std::borrow::Cow<'_, str>> {
        let error = self.error.as_ref().map(|error| error.message.as_str().into());
        let result = self.result.as_ref().map(Json::text_form);
        if self.status == ToolStatus::Failure { error.or(result) } else { result.or(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_reads_back_as_it_was_written() {
        let mut event = Event::new(ToolFinished {
            call_id: "c1".into(),
            status: ToolStatus::Failure,
            error: Some(ErrorInfo::coded("E1", "坏了")),
            duration_ms: Some(1.5),
            ..Default::default()
        });
        event.step_id = Some("act.1".into());
        event.extra.set("metadata.trace", Json::parse("[1, 2.50]").unwrap());
        let json = event.to_json();
        assert_eq!(
            json.text(),
            r#"{"type":"tool.finished","call_id":"c1","status":"failure","error":{"code":"E1","message":"坏了"},"duration_ms":1.5,"step_id":"act.1","extra":{"metadata.trace":[1, 2.50]}}"#
        );
        assert_eq!(Event::from_json(&json), Some(event));
    }

    #[test]
    fn an_unknown_field_is_kept_and_a_wrong_one_is_named() {
        let json = Json::parse(r#"{"type":"usage","total_tokens":3,"cached":1}"#).unwrap();
        assert_eq!(Event::from_json(&json).unwrap().extra.get("cached").unwrap().text(), "1");
        let object = Object::parse(br#"{"call_id":"c","status":"odd"}"#).unwrap();
        let error = Event::read("tool.finished", object).unwrap_err();
        assert_eq!(error.to_string(), "field `status`: must be one of success failure partial, and is `odd`");
    }

    #[test]
    fn common_fields_are_those_with_the_same_name_and_value() {
        let extra = |fields: &[(&str, &str)]| {
            let parsed = |(name, value): &(&str, &str)| ((*name).to_owned(), Json::parse(value).unwrap());
            Extra(fields.iter().map(parsed).collect())
        };
        // Beyond the size that is searched field by field, too.
        for more in [0, 2 * SMALL_EXTRA] {
            let mut one = extra(&[("a", "1"), ("b", "2"), ("c", "3")]);
            let mut other = extra(&[("c", "3"), ("b", "7"), ("a", "1"), ("a", "9"), ("d", "4")]);
            let numbered =
                |side: &str| -> Vec<_> { (0..more).map(|n| (format!("{side}{n}"), Json::null())).collect() };
            one.0.extend(numbered("one"));
            other.0.extend(numbered("other"));
            one.retain_common(&other);
            assert_eq!(one, extra(&[("a", "1"), ("c", "3")]));
        }
    }

    /// Comparing each field with each would take 10¹¹ comparisons here.
    #[test]
    fn common_fields_of_many_are_found_in_linear_time() {
        let many = || Extra((0..500_000).map(|n| (format!("field-{n}"), Json::null())).collect());
        let (mut one, other) = (many(), many());
        one.retain_common(&other);
        assert_eq!(one.0.len(), 500_000);
    }
}
