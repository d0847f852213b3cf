//! The fold: a run's events gathered into the state of a message, as StreamingEngine's front end keeps it
//! (§3.1 of its document), with steps, questions, usage and status of our own.

use serde::Serialize;

use crate::event::{Body, Decision, ErrorInfo, Event, InteractionKind, Level, ToolStatus};
use crate::json::Json;
use crate::record::Record;
use crate::run::{Status, continues};
use crate::time::Timestamp;

/// A run as the person who watches it sees it.
///
/// ```
/// use runwire_model::event::{Event, TextDelta, TextStarted};
/// use runwire_model::fold::MessageState;
/// use runwire_model::Timestamp;
///
/// let mut message = MessageState::new("run-1");
/// message.apply(&Event::new(TextStarted { message_id: "m1".into(), role: None }), Timestamp(5));
/// message.apply(&Event::new(TextDelta { message_id: "m1".into(), content: "你好".into(), format: None }), Timestamp(6));
/// assert_eq!(message.main_content, "你好");
/// assert!(message.is_streaming);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessageState {
    /// The run's id, in a thread's list also `<run>#2` for its second part; of a person's message, its own.
    pub message_id: String,
    /// `assistant`, or `user` for a person's message.
    #[cfg_attr(test, schemars(extend("enum" = ["assistant", "user"])))]
    pub role: &'static str,
    /// All thinking, with a blank line between thoughts.
    pub thinking_content: String,
    /// All texts of the assistant, with a blank line between them, or the text of a person's message.
    pub main_content: String,
    /// The calls, in the order they were made.
    pub tool_calls: Vec<ToolCall>,
    /// The blocks of data, in the order they came.
    pub data_blocks: Vec<DataBlock>,
    /// Whether more may come.
    pub is_streaming: bool,
    /// Whether the run failed or reported a fatal error, even if it completed afterwards.
    pub has_error: bool,
    /// Message of that error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Errors and warnings that the run went on after, in the order they came.
    pub notices: Vec<NoticeState>,
    /// Ids and times.
    pub metadata: Metadata,
    /// The steps, in the order they began.
    pub steps: Vec<StepState>,
    /// The questions, in the order they were asked.
    pub interactions: Vec<InteractionState>,
    /// Tokens, summed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageState>,
    /// How far the run is.
    pub status: Status,
    #[serde(skip)]
    texts: Vec<Part>,
    #[serde(skip)]
    thoughts: Vec<Part>,
    #[serde(skip)]
    counted: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Part {
    id: String,
    content: String,
    assistant: bool,
    /// Whether it continues the text before it.
    continues: bool,
    /// The id by which another text continues it; none while it is open, and in subagents.
    continued_as: Option<String>,
}

/// How far a message has come: where it can be divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    texts: usize,
    thoughts: usize,
    tool_calls: usize,
    data_blocks: usize,
    notices: usize,
    steps: usize,
    interactions: usize,
}

/// A call.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Its id.
    pub tool_id: String,
    /// The tool.
    pub tool_name: String,
    /// What the call is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it was given.
    pub arguments: Json,
    /// What it was given, where that is no JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_text: Option<String>,
    /// `calling`, `completed` or `failed`.
    #[cfg_attr(test, schemars(extend("enum" = ["calling", "completed", "failed"])))]
    pub status: &'static str,
    /// How far it is, from 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number")]
    pub progress: Option<f64>,
    /// Message of its latest progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_message: Option<String>,
    /// What it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What it gave back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorState>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number")]
    pub duration_ms: Option<f64>,
}

/// What went wrong.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorState {
    /// What a person reads.
    pub message: String,
    /// The source's code for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// An error or a warning that the run went on after.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NoticeState {
    /// `error` or `warning`.
    pub level: Level,
    /// What a person reads.
    pub message: String,
    /// The source's code for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// A block of data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DataBlock {
    /// What it is.
    pub data_type: String,
    /// The data.
    pub data: Json,
    /// What is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The call it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
}

/// Ids and times.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The run's id.
    pub request_id: String,
    /// When the run began, in milliseconds since the epoch.
    pub start_time: u64,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<u64>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StepState {
    /// Its id.
    pub step_id: String,
    /// Its name.
    pub name: String,
    /// `running`, `completed` or `failed`.
    #[cfg_attr(test, schemars(extend("enum" = ["running", "completed", "failed"])))]
    pub status: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InteractionState {
    /// Its id.
    pub interaction_id: String,
    /// A form or an approval.
    pub kind: InteractionKind,
    /// `open`, or what became of it.
    #[cfg_attr(test, schemars(extend("enum" = ["open", "submitted", "approved", "rejected", "cancelled", "expired"])))]
    pub status: &'static str,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The answer's JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json>,
    /// Texts of the form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ui: Option<Json>,
    /// The call it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// What the person filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Json>,
    /// Why it was settled so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Tokens, summed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UsageState {
    /// Of all prompts.
    pub prompt_tokens: u64,
    /// Of all completions.
    pub completion_tokens: u64,
    /// In all.
    pub total_tokens: u64,
}

impl MessageState {
    /// Makes the state of a run that nothing was written to.
    pub fn new(run_id: impl Into<String>) -> Self {
        let run_id = run_id.into();
        Self {
            message_id: run_id.clone(),
            role: "assistant",
            thinking_content: String::new(),
            main_content: String::new(),
            tool_calls: Vec::new(),
            data_blocks: Vec::new(),
            is_streaming: true,
            has_error: false,
            error_message: None,
            notices: Vec::new(),
            metadata: Metadata { request_id: run_id, ..Metadata::default() },
            steps: Vec::new(),
            interactions: Vec::new(),
            usage: None,
            status: Status::Pending,
            texts: Vec::new(),
            thoughts: Vec::new(),
            counted: false,
        }
    }

    /// Makes the state of a message that a person wrote into a run.
    pub fn of_user(
        message_id: impl Into<String>,
        run_id: impl Into<String>,
        content: impl Into<String>,
        at: Timestamp,
    ) -> Self {
        let mut message = Self::new(run_id);
        message.message_id = message_id.into();
        message.role = "user";
        message.main_content = content.into();
        message.metadata.start_time = at.0;
        message.end(Status::Completed, None, at);
        message
    }

    /// Returns how far the message has come.
    pub fn extent(&self) -> Extent {
        Extent {
            texts: self.texts.len(),
            thoughts: self.thoughts.len(),
            tool_calls: self.tool_calls.len(),
            data_blocks: self.data_blocks.len(),
            notices: self.notices.len(),
            steps: self.steps.len(),
            interactions: self.interactions.len(),
        }
    }

    /// Divides the message into what began before an extent and what began after it, at a time.
    ///
    /// A part that shows nothing is left out, but for a second one that more may come of. What is true of the whole run
    /// stands in the second part: status, error and tokens.
    pub fn divide(mut self, at: &Extent, time: Timestamp) -> (Option<Self>, Option<Self>) {
        if !self.shows(&Extent::default(), at) {
            return (None, Some(self));
        }
        if !self.shows(at, &self.extent()) && !self.is_streaming {
            return (Some(self), None);
        }
        let mut second = Self {
            message_id: self.message_id.clone(),
            texts: split(&mut self.texts, at.texts),
            thoughts: split(&mut self.thoughts, at.thoughts),
            tool_calls: split(&mut self.tool_calls, at.tool_calls),
            data_blocks: split(&mut self.data_blocks, at.data_blocks),
            notices: split(&mut self.notices, at.notices),
            steps: split(&mut self.steps, at.steps),
            interactions: split(&mut self.interactions, at.interactions),
            is_streaming: self.is_streaming,
            status: self.status,
            has_error: std::mem::take(&mut self.has_error),
            error_message: self.error_message.take(),
            usage: self.usage.take(),
            counted: self.counted,
            ..Self::new(&self.metadata.request_id)
        };
        (second.metadata.start_time, second.metadata.end_time) = (time.0, self.metadata.end_time);
        self.end(Status::Completed, None, time);
        for message in [&mut self, &mut second] {
            message.main_content = joined(&message.texts);
            message.thinking_content = joined(&message.thoughts);
        }
        (Some(self), Some(second))
    }

    /// Returns whether a person sees anything of what began between two extents.
    fn shows(&self, from: &Extent, to: &Extent) -> bool {
        let shown = |parts: &[Part], from: usize, to: usize| {
            parts.iter().take(to).skip(from).any(|part| part.assistant && !part.content.is_empty())
        };
        shown(&self.texts, from.texts, to.texts)
            || shown(&self.thoughts, from.thoughts, to.thoughts)
            || from.tool_calls < to.tool_calls
            || from.data_blocks < to.data_blocks
            || from.interactions < to.interactions
    }

    /// Takes in a record of the run.
    pub fn apply_record(&mut self, record: &Record) {
        for entry in &record.entries {
            self.apply(&entry.event, record.at);
        }
    }

    /// Takes in an event.
    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        if self.status == Status::Pending {
            self.status = Status::Running;
            self.metadata.start_time = at.0;
        }
        match &event.body {
            Body::TextStarted(started) => {
                let assistant = started.role.as_deref().is_none_or(|role| role == "assistant");
                let before = self.texts.iter().rfind(|text| text.assistant && !text.content.is_empty());
                let before = before.and_then(|text| text.continued_as.as_deref());
                let is_outside = event.subagent_run_id.is_none();
                self.texts.push(Part {
                    id: started.message_id.clone(),
                    content: String::new(),
                    assistant,
                    continues: is_outside && before.is_some_and(|id| continues(id, &started.message_id)),
                    continued_as: None,
                });
            }
            Body::TextDelta(delta) => {
                // Most pieces go on with the last text, which ends what was joined before.
                let last = self.texts.iter().rposition(|text| text.id == delta.message_id);
                let Some(at) = last else { return };
                let begins = self.texts[at].content.is_empty();
                self.texts[at].content.push_str(&delta.content);
                let newest =
                    self.texts[at + 1..].iter().all(|text| text.content.is_empty() || !text.assistant);
                if self.texts[at].assistant && newest && !begins {
                    self.main_content.push_str(&delta.content);
                } else {
                    self.main_content = joined(&self.texts);
                }
            }
            Body::TextFinished(finished) => {
                let text = self.texts.iter_mut().rfind(|text| text.id == finished.message_id);
                if let Some(text) = text {
                    if event.subagent_run_id.is_none() {
                        text.continued_as = Some(text.id.clone());
                    }
                    if let Some(content) = &finished.content {
                        text.content.clone_from(content);
                    }
                }
                if finished.content.is_some() {
                    self.main_content = joined(&self.texts);
                }
            }
            Body::ThinkingStarted(started) => {
                self.thoughts.push(Part {
                    id: started.message_id.clone(),
                    content: String::new(),
                    assistant: true,
                    continues: false,
                    continued_as: None,
                });
            }
            Body::ThinkingDelta(delta) => {
                if let Some(thought) =
                    self.thoughts.iter_mut().rfind(|thought| thought.id == delta.message_id)
                {
                    thought.content.push_str(&delta.content);
                }
                self.thinking_content = joined(&self.thoughts);
            }
            Body::ThinkingFinished(finished) => {
                if let Some(content) = &finished.content {
                    if let Some(thought) =
                        self.thoughts.iter_mut().rfind(|thought| thought.id == finished.message_id)
                    {
                        thought.content.clone_from(content);
                    }
                    self.thinking_content = joined(&self.thoughts);
                }
            }
            Body::ToolCalled(called) => self.tool_calls.push(ToolCall {
                tool_id: called.call_id.clone(),
                tool_name: called.name.clone(),
                description: called.description.clone(),
                arguments: called.arguments.clone(),
                arguments_text: called.arguments_text.clone(),
                status: "calling",
                ..ToolCall::default()
            }),
            Body::ToolProgress(progress) => {
                if let Some(call) = self.call(&progress.call_id) {
                    call.progress = progress.progress;
                    // Dialects whose progress always has a message leave it empty.
                    call.progress_message = progress.message.clone().filter(|message| !message.is_empty());
                }
            }
            Body::ToolOutput(output) => {
                if let Some(call) = self.call(&output.call_id) {
                    call.output.get_or_insert_default().push_str(&output.content);
                }
            }
            Body::ToolFinished(finished) => {
                if let Some(call) = self.call(&finished.call_id) {
                    call.status = if finished.status == ToolStatus::Failure { "failed" } else { "completed" };
                    call.result.clone_from(&finished.result);
                    call.error = finished.error.as_ref().map(ErrorState::of);
                    call.duration_ms = finished.duration_ms;
                }
            }
            Body::Data(block) => self.data_blocks.push(DataBlock {
                data_type: block.data_type.clone(),
                data: block.data.clone(),
                metadata: block.metadata.clone(),
                tool_id: block.call_id.clone(),
            }),
            Body::StepStarted(started) => self.steps.push(StepState {
                step_id: event.step_id.clone().unwrap_or_default(),
                name: started.name.clone(),
                status: "running",
                error: None,
            }),
            Body::StepFinished(finished) => {
                let id = event.step_id.as_deref().unwrap_or_default();
                if let Some(step) =
                    self.steps.iter_mut().rfind(|step| step.step_id == id && step.status == "running")
                {
                    step.error = finished.error.as_ref().map(|error| error.message.clone());
                    step.status = if step.error.is_some() { "failed" } else { "completed" };
                }
            }
            Body::InteractionRequested(asked) => self.interactions.push(InteractionState {
                interaction_id: asked.interaction_id.clone(),
                kind: asked.kind,
                status: "open",
                title: asked.title.clone(),
                description: asked.description.clone(),
                schema: asked.schema.clone(),
                ui: asked.ui.clone(),
                tool_id: asked.call_id.clone(),
                values: None,
                reason: None,
            }),
            Body::InteractionResolved(resolved) => {
                let asked = self
                    .interactions
                    .iter_mut()
                    .rfind(|asked| asked.interaction_id == resolved.interaction_id);
                if let Some(asked) = asked {
                    asked.status = Decision::as_str(resolved.decision);
                    asked.values.clone_from(&resolved.values);
                    asked.reason.clone_from(&resolved.reason);
                }
            }
            Body::Usage(usage) => {
                self.counted = true;
                self.count(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens);
            }
            Body::RunSuspended(_) => self.status = Status::Suspended,
            Body::RunResumed(_) => self.status = Status::Running,
            Body::RunCompleted(completed) => self.end(Status::Completed, completed.summary.as_ref(), at),
            Body::Notice(notice) if notice.fatal == Some(true) => self.fail(&notice.message),
            Body::Notice(notice) if notice.level != Level::Debug => self.notices.push(NoticeState {
                level: notice.level,
                message: notice.message.clone(),
                code: notice.code.clone(),
            }),
            Body::RunFailed(failed) => {
                self.fail(&failed.error.message);
                self.end(Status::Failed, failed.summary.as_ref(), at);
            }
            Body::RunCancelled(cancelled) => self.end(Status::Cancelled, cancelled.summary.as_ref(), at),
            _ => {}
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.tool_calls.iter_mut().rfind(|call| call.tool_id == id)
    }

    fn fail(&mut self, message: &str) {
        self.has_error = true;
        self.error_message = Some(message.to_owned());
    }

    fn count(&mut self, prompt: Option<u64>, completion: Option<u64>, total: Option<u64>) {
        let usage = self.usage.get_or_insert_default();
        let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
        usage.prompt_tokens = usage.prompt_tokens.saturating_add(prompt);
        usage.completion_tokens = usage.completion_tokens.saturating_add(completion);
        let total = total.unwrap_or(prompt.saturating_add(completion));
        usage.total_tokens = usage.total_tokens.saturating_add(total);
    }

    /// Ends the run. Where no model call told its tokens, the summary does.
    fn end(&mut self, status: Status, summary: Option<&crate::event::Summary>, at: Timestamp) {
        self.status = status;
        self.is_streaming = false;
        self.metadata.end_time = Some(at.0);
        let Some(summary) = summary.filter(|_| !self.counted) else { return };
        let tokens = [summary.prompt_tokens, summary.completion_tokens, summary.total_tokens];
        if tokens.into_iter().flatten().any(|tokens| tokens > 0) {
            self.count(summary.prompt_tokens, summary.completion_tokens, summary.total_tokens);
        }
    }
}

impl ErrorState {
    fn of(error: &ErrorInfo) -> Self {
        Self { message: error.message.clone(), code: error.code.clone() }
    }
}

/// Writes a number without a fraction as a whole number, as the events do.
fn number<S: serde::Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) if value.fract() == 0.0 && value.abs() < 9e15 => serializer.serialize_i64(*value as i64),
        Some(value) => serializer.serialize_f64(*value),
        None => serializer.serialize_none(),
    }
}

/// Takes the items from a place on out of a list.
fn split<T>(list: &mut Vec<T>, at: usize) -> Vec<T> {
    list.split_off(at.min(list.len()))
}

fn joined(parts: &[Part]) -> String {
    let mut joined = String::new();
    for part in parts.iter().filter(|part| part.assistant && !part.content.is_empty()) {
        if !joined.is_empty() && !part.continues {
            joined.push_str("\n\n");
        }
        joined.push_str(&part.content);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{
        Notice, RunCompleted, TextDelta, TextStarted, ToolCalled, ToolFinished, ToolProgress,
    };

    fn notice(level: Level, message: &str, fatal: Option<bool>) -> Event {
        Event::new(Notice { level, message: message.into(), fatal, ..Default::default() })
    }

    fn folded(events: impl IntoIterator<Item = Event>) -> MessageState {
        let mut message = MessageState::new("run-1");
        events.into_iter().for_each(|event| message.apply(&event, Timestamp(1)));
        message
    }

    #[test]
    fn a_fatal_error_is_shown_at_once_and_stays() {
        let fatal = notice(Level::Error, "no answer", Some(true));
        let message = folded([fatal.clone()]);
        assert_eq!((message.has_error, message.error_message.as_deref()), (true, Some("no answer")));
        assert!(message.is_streaming && message.notices.is_empty());
        let message = folded([fatal, Event::new(RunCompleted::default())]);
        assert_eq!(
            (message.status, message.error_message.as_deref()),
            (Status::Completed, Some("no answer"))
        );
    }

    #[test]
    fn errors_and_warnings_that_the_run_went_on_after_are_notices() {
        let message = folded([
            notice(Level::Error, "trying again", Some(false)),
            notice(Level::Warning, "slow", None),
            notice(Level::Debug, "took 3 s", None),
        ]);
        assert!(!message.has_error);
        let notices: Vec<_> = message.notices.iter().map(|notice| (notice.level, &*notice.message)).collect();
        assert_eq!(notices, [(Level::Error, "trying again"), (Level::Warning, "slow")]);
    }

    /// A message that says "one" and calls a tool, how far it had come then, and the same after `events`.
    fn divided(events: impl IntoIterator<Item = Event>) -> (Option<MessageState>, Option<MessageState>) {
        let called = ToolCalled { call_id: "c".into(), ..Default::default() };
        let mut message = folded(text("m1", "one").into_iter().chain([Event::new(called)]));
        let extent = message.extent();
        events.into_iter().for_each(|event| message.apply(&event, Timestamp(9)));
        message.divide(&extent, Timestamp(5))
    }

    fn text(id: &str, content: &str) -> [Event; 2] {
        let delta = TextDelta { message_id: id.into(), content: content.into(), format: None };
        [Event::new(TextStarted { message_id: id.into(), role: None }), Event::new(delta)]
    }

    #[test]
    fn a_message_is_divided_by_where_its_parts_began() {
        let result = ToolFinished { call_id: "c".into(), ..Default::default() };
        let ended = [Event::new(result), Event::new(RunCompleted::default())];
        let (first, second) = divided(text("m2", "two").into_iter().chain(ended));
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_eq!((&*first.main_content, &*second.main_content), ("one", "two"));
        assert_eq!((first.tool_calls[0].status, second.tool_calls.len()), ("completed", 0));
        let times = |message: &MessageState| (message.metadata.start_time, message.metadata.end_time);
        assert_eq!((times(&first), times(&second)), ((1, Some(5)), (5, Some(9))));
    }

    #[test]
    fn a_part_that_shows_nothing_is_left_out_unless_more_may_come() {
        let (first, second) = divided([Event::new(RunCompleted::default())]);
        assert_eq!((first.unwrap().status, second), (Status::Completed, None));
        let (first, second) = divided([]);
        let second = second.unwrap();
        assert_eq!((first.unwrap().is_streaming, second.is_streaming), (false, true));
        assert_eq!((&*second.main_content, second.status), ("", Status::Running));
        let (first, second) = folded(text("m1", "one")).divide(&Extent::default(), Timestamp(5));
        assert_eq!((first, &*second.unwrap().main_content), (None, "one"));
    }

    #[test]
    fn a_call_keeps_what_it_said_of_its_progress_last() {
        let progress = |message: &str| {
            let message = Some(message.to_owned());
            Event::new(ToolProgress { call_id: "c".into(), progress: Some(40.0), message })
        };
        let called = Event::new(ToolCalled { call_id: "c".into(), ..Default::default() });
        let message = folded([called.clone(), progress("connecting"), progress("reading")]);
        assert_eq!(message.tool_calls[0].progress_message.as_deref(), Some("reading"));
        assert_eq!(folded([called, progress("reading"), progress("")]).tool_calls[0].progress_message, None);
    }
}
