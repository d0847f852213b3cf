//! What the document has no method for: the rest of the canonical model, in the same manner.

use runwire_model::event::{
    ActivityPatched, ActivitySnapshot, Checkpoint, Custom, Decision, ErrorInfo, Event, InteractionResolved,
    Level, MessagesSnapshot, Metrics, Notice, RunStarted, RunStatus, StatePatched, StateSnapshot,
    StateUpdated, StepFinished, StepStarted, SubagentFailed, SubagentFinished, SubagentStarted, TextDelta,
    TextFinished, TextStarted, ThinkingDelta, ThinkingFinished, ThinkingStarted, ToolArgsDelta,
    ToolArgsStarted, ToolOutput, ToolStarted, Usage,
};

use super::frame::{Says, check_id};
use super::state::Sent;
use super::value::{IntoJson, Question};
use super::words::{Format, Stage};
use super::{EmitError, StreamingEngine};

impl StreamingEngine {
    /// Says any event of the canonical model. One that names no step happens in the innermost open one.
    pub async fn emit(&self, event: impl Into<Event>) -> Result<Sent, EmitError> {
        self.say(Says::Event(Box::new(event.into()))).await
    }

    /// Says that the run begins, with what was asked, by which agent; instead of a session's start.
    pub async fn emit_run_started(&self, started: RunStarted) -> Result<Sent, EmitError> {
        self.emit(started).await
    }

    /// Says how far the run is: `initializing`, `running`, or a word of the agent's own.
    pub async fn emit_status(&self, state: impl Into<String>) -> Result<Sent, EmitError> {
        self.emit(RunStatus { state: state.into() }).await
    }

    // Steps

    /// Says that a step begins. What follows happens in it.
    pub async fn emit_step_start(
        &self,
        step_id: impl Into<String>,
        name: impl Into<String>,
    ) -> Result<Sent, EmitError> {
        let mut event = Event::new(StepStarted { name: name.into() });
        event.step_id = Some(step_id.into());
        self.emit(event).await
    }

    /// Says that a step is over, and why it failed, if it did.
    pub async fn emit_step_end(
        &self,
        step_id: impl Into<String>,
        name: impl Into<String>,
        error: impl Into<Option<String>>,
    ) -> Result<Sent, EmitError> {
        let mut event =
            Event::new(StepFinished { name: name.into(), error: error.into().map(ErrorInfo::message) });
        event.step_id = Some(step_id.into());
        self.emit(event).await
    }

    // Texts and thoughts that have ids of their own

    /// Begins a text of its own id, for answers of several messages; `role` is the assistant's unless said.
    pub async fn emit_text_start(
        &self,
        message_id: impl Into<String>,
        role: impl Into<Option<String>>,
    ) -> Result<Sent, EmitError> {
        self.emit(TextStarted { message_id: message_id.into(), role: role.into() }).await
    }

    /// Says a piece of the text of an id.
    pub async fn emit_text(
        &self,
        message_id: impl Into<String>,
        content: impl Into<String>,
        format: impl Into<Option<Format>>,
    ) -> Result<Sent, EmitError> {
        let format = format.into().map(|format| format.as_str().to_owned());
        self.emit(TextDelta { message_id: message_id.into(), content: content.into(), format }).await
    }

    /// Ends the text of an id.
    pub async fn emit_text_end(&self, message_id: impl Into<String>) -> Result<Sent, EmitError> {
        self.emit(TextFinished { message_id: message_id.into(), ..Default::default() }).await
    }

    /// Begins a thought of its own id.
    pub async fn emit_thought_start(
        &self,
        message_id: impl Into<String>,
        stage: impl Into<Option<Stage>>,
    ) -> Result<Sent, EmitError> {
        self.emit(ThinkingStarted { message_id: message_id.into(), stage: word(stage.into()) }).await
    }

    /// Says a piece of the thought of an id.
    pub async fn emit_thought(
        &self,
        message_id: impl Into<String>,
        content: impl Into<String>,
        stage: impl Into<Option<Stage>>,
    ) -> Result<Sent, EmitError> {
        let (message_id, content) = (message_id.into(), content.into());
        self.emit(ThinkingDelta { message_id, content, stage: word(stage.into()) }).await
    }

    /// Ends the thought of an id.
    pub async fn emit_thought_end(&self, message_id: impl Into<String>) -> Result<Sent, EmitError> {
        self.emit(ThinkingFinished { message_id: message_id.into(), content: None }).await
    }

    // Tools

    /// Says that the arguments of a call begin to arrive.
    pub async fn emit_tool_arguments_start(
        &self,
        tool_id: impl Into<String>,
        tool_name: impl Into<Option<String>>,
    ) -> Result<Sent, EmitError> {
        let (call_id, name) = (tool_id.into(), tool_name.into());
        self.emit(ToolArgsStarted { call_id, name, message_id: None }).await
    }

    /// Says a piece of the JSON text of a call's arguments; the call itself is
    /// [`emit_tool_call_start`](Self::emit_tool_call_start) under the same id.
    pub async fn emit_tool_arguments(
        &self,
        tool_id: impl Into<String>,
        delta: impl Into<String>,
    ) -> Result<Sent, EmitError> {
        self.emit(ToolArgsDelta { call_id: tool_id.into(), delta: delta.into() }).await
    }

    /// Says that a tool that was called begins to work.
    pub async fn emit_tool_working(&self, tool_id: impl Into<String>) -> Result<Sent, EmitError> {
        self.emit(ToolStarted { call_id: tool_id.into(), name: None }).await
    }

    /// Says something that a tool printed.
    pub async fn emit_tool_output(
        &self,
        tool_id: impl Into<String>,
        content: impl Into<String>,
    ) -> Result<Sent, EmitError> {
        self.emit(ToolOutput { call_id: tool_id.into(), name: None, content: content.into() }).await
    }

    // Questions

    /// Asks a person, which suspends the run; the answer is a [`Signal`](super::Signal).
    pub async fn emit_question(&self, question: Question) -> Result<Sent, EmitError> {
        self.emit(question.0).await
    }

    /// Withdraws a question.
    pub async fn emit_question_withdrawn(
        &self,
        interaction_id: impl Into<String>,
        reason: impl Into<Option<String>>,
    ) -> Result<Sent, EmitError> {
        self.emit(InteractionResolved {
            interaction_id: interaction_id.into(),
            decision: Decision::Cancelled,
            reason: reason.into(),
            ..Default::default()
        })
        .await
    }

    // The thread's state and messages

    /// Says the whole state of the thread.
    pub async fn emit_state(&self, state: impl IntoJson) -> Result<Sent, EmitError> {
        self.emit(StateSnapshot { state: state.into_json() }).await
    }

    /// Says the state as a step of that name left it.
    pub async fn emit_state_update(
        &self,
        step: impl Into<String>,
        state: impl IntoJson,
    ) -> Result<Sent, EmitError> {
        self.emit(StateUpdated { step: step.into(), state: state.into_json() }).await
    }

    /// Changes the state by a JSON Patch (RFC 6902).
    pub async fn emit_state_patch(&self, patch: impl IntoJson) -> Result<Sent, EmitError> {
        self.emit(StatePatched { patch: patch.into_json() }).await
    }

    /// Says all messages of the thread.
    pub async fn emit_messages(&self, messages: impl IntoJson) -> Result<Sent, EmitError> {
        self.emit(MessagesSnapshot { messages: messages.into_json() }).await
    }

    /// Says that the agent can go back to here.
    pub async fn emit_checkpoint(&self, checkpoint: Checkpoint) -> Result<Sent, EmitError> {
        self.emit(checkpoint).await
    }

    // Activities and subagents

    /// Shows an activity.
    pub async fn emit_activity(
        &self,
        message_id: impl Into<String>,
        activity_type: impl Into<String>,
        content: impl IntoJson,
        replace: bool,
    ) -> Result<Sent, EmitError> {
        self.emit(ActivitySnapshot {
            message_id: message_id.into(),
            activity_type: activity_type.into(),
            content: content.into_json(),
            replace: Some(replace),
        })
        .await
    }

    /// Changes a shown activity by a JSON Patch (RFC 6902).
    pub async fn emit_activity_patch(
        &self,
        message_id: impl Into<String>,
        activity_type: impl Into<String>,
        patch: impl IntoJson,
    ) -> Result<Sent, EmitError> {
        let (message_id, activity_type) = (message_id.into(), activity_type.into());
        self.emit(ActivityPatched { message_id, activity_type, patch: patch.into_json() }).await
    }

    /// Says that a subagent begins. What happens in it is [emitted](Self::emit) with its `subagent_run_id`.
    pub async fn emit_subagent_start(
        &self,
        subagent_run_id: impl Into<String>,
        name: impl Into<Option<String>>,
    ) -> Result<Sent, EmitError> {
        self.in_subagent(subagent_run_id.into(), SubagentStarted { name: name.into() }.into()).await
    }

    /// Says that a subagent is done, and what it gave back.
    pub async fn emit_subagent_end(
        &self,
        subagent_run_id: impl Into<String>,
        result: impl Into<Option<runwire_model::Json>>,
    ) -> Result<Sent, EmitError> {
        self.in_subagent(subagent_run_id.into(), SubagentFinished { result: result.into() }.into()).await
    }

    /// Says that a subagent failed.
    pub async fn emit_subagent_failed(
        &self,
        subagent_run_id: impl Into<String>,
        message: impl Into<String>,
        code: impl Into<Option<String>>,
    ) -> Result<Sent, EmitError> {
        let failed = SubagentFailed { message: message.into(), code: code.into() };
        self.in_subagent(subagent_run_id.into(), failed.into()).await
    }

    async fn in_subagent(&self, subagent_run_id: String, mut event: Event) -> Result<Sent, EmitError> {
        check_id("subagent_run_id", &subagent_run_id)?;
        event.subagent_run_id = Some(subagent_run_id);
        self.emit(event).await
    }

    // Figures and the rest

    /// Says the tokens of one model call.
    pub async fn emit_usage(&self, prompt_tokens: u64, completion_tokens: u64) -> Result<Sent, EmitError> {
        self.emit(Usage {
            prompt_tokens: Some(prompt_tokens),
            completion_tokens: Some(completion_tokens),
            total_tokens: Some(prompt_tokens.saturating_add(completion_tokens)),
        })
        .await
    }

    /// Says figures of any kind.
    pub async fn emit_metrics(&self, figures: impl IntoJson) -> Result<Sent, EmitError> {
        self.emit(Metrics { figures: figures.into_json() }).await
    }

    /// Says something to know of that does not end the run.
    pub async fn emit_notice(
        &self,
        level: Level,
        message: impl Into<String>,
        code: impl Into<Option<String>>,
    ) -> Result<Sent, EmitError> {
        self.emit(Notice { level, message: message.into(), code: code.into(), ..Default::default() }).await
    }

    /// Says something of the agent's own.
    pub async fn emit_custom(
        &self,
        name: impl Into<String>,
        value: impl IntoJson,
    ) -> Result<Sent, EmitError> {
        self.emit(Custom { name: Some(name.into()), value: value.into_json() }).await
    }

    /// Ends the run as failed, with everything that is known of why; nothing may follow.
    pub async fn emit_run_failed(&self, error: ErrorInfo) -> Result<Sent, EmitError> {
        self.emit(runwire_model::event::RunFailed { error, summary: None }).await
    }
}

fn word(stage: Option<Stage>) -> Option<String> {
    stage.map(|stage| stage.as_str().to_owned())
}
