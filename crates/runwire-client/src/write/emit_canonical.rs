//! `emit_*` methods for canonical events that StreamingEngine's document has no method for.

use runwire_model::event::{
    ActivityPatched, ActivitySnapshot, Checkpoint, Custom, Decision, ErrorInfo, Event, InteractionResolved,
    Level, MessagesSnapshot, Metrics, Notice, RunStarted, RunStatus, StatePatched, StateSnapshot,
    StateUpdated, StepFinished, StepStarted, SubagentFailed, SubagentFinished, SubagentStarted, TextDelta,
    TextFinished, TextStarted, ThinkingDelta, ThinkingFinished, ThinkingStarted, ToolArgsDelta,
    ToolArgsStarted, ToolOutput, ToolStarted, Usage,
};

use super::emission::{Emission, check_id};
use super::enums::{Format, Stage};
use super::state::PendingAck;
use super::value::{InteractionRequest, IntoJson};
use super::{EmitError, StreamingEngine};

impl StreamingEngine {
    /// Emits any canonical event. Without a `step_id` it belongs to the innermost open step.
    pub async fn emit(&self, event: impl Into<Event>) -> Result<PendingAck, EmitError> {
        self.emit_emission(Emission::Event(Box::new(event.into()))).await
    }

    /// Emits the start of the run, with its input and agent; instead of a session's start.
    pub async fn emit_run_started(&self, started: RunStarted) -> Result<PendingAck, EmitError> {
        self.emit(started).await
    }

    /// Emits a status: `initializing`, `running`, or one of the agent's own.
    pub async fn emit_status(&self, state: impl Into<String>) -> Result<PendingAck, EmitError> {
        self.emit(RunStatus { state: state.into() }).await
    }

    // Steps

    /// Emits the start of a step; what follows belongs to it.
    pub async fn emit_step_start(
        &self,
        step_id: impl Into<String>,
        name: impl Into<String>,
    ) -> Result<PendingAck, EmitError> {
        let mut event = Event::new(StepStarted { name: name.into() });
        event.step_id = Some(step_id.into());
        self.emit(event).await
    }

    /// Emits the end of a step, with the error if it failed.
    pub async fn emit_step_end(
        &self,
        step_id: impl Into<String>,
        name: impl Into<String>,
        error: impl Into<Option<String>>,
    ) -> Result<PendingAck, EmitError> {
        let mut event =
            Event::new(StepFinished { name: name.into(), error: error.into().map(ErrorInfo::message) });
        event.step_id = Some(step_id.into());
        self.emit(event).await
    }

    // Texts and thoughts with ids

    /// Starts a text with an id, for answers of several messages; the default `role` is `assistant`.
    pub async fn emit_text_start(
        &self,
        message_id: impl Into<String>,
        role: impl Into<Option<String>>,
    ) -> Result<PendingAck, EmitError> {
        self.emit(TextStarted { message_id: message_id.into(), role: role.into() }).await
    }

    /// Emits a piece of a text.
    pub async fn emit_text(
        &self,
        message_id: impl Into<String>,
        content: impl Into<String>,
        format: impl Into<Option<Format>>,
    ) -> Result<PendingAck, EmitError> {
        let format = format.into().map(|format| format.as_str().to_owned());
        self.emit(TextDelta { message_id: message_id.into(), content: content.into(), format }).await
    }

    /// Ends a text.
    pub async fn emit_text_end(&self, message_id: impl Into<String>) -> Result<PendingAck, EmitError> {
        self.emit(TextFinished { message_id: message_id.into(), ..Default::default() }).await
    }

    /// Starts a thought with an id.
    pub async fn emit_thought_start(
        &self,
        message_id: impl Into<String>,
        stage: impl Into<Option<Stage>>,
    ) -> Result<PendingAck, EmitError> {
        self.emit(ThinkingStarted { message_id: message_id.into(), stage: word(stage.into()) }).await
    }

    /// Emits a piece of a thought.
    pub async fn emit_thought(
        &self,
        message_id: impl Into<String>,
        content: impl Into<String>,
        stage: impl Into<Option<Stage>>,
    ) -> Result<PendingAck, EmitError> {
        let (message_id, content) = (message_id.into(), content.into());
        self.emit(ThinkingDelta { message_id, content, stage: word(stage.into()) }).await
    }

    /// Ends a thought.
    pub async fn emit_thought_end(&self, message_id: impl Into<String>) -> Result<PendingAck, EmitError> {
        self.emit(ThinkingFinished { message_id: message_id.into(), content: None }).await
    }

    // Tools

    /// Emits the start of a tool call's streamed arguments.
    pub async fn emit_tool_arguments_start(
        &self,
        tool_id: impl Into<String>,
        tool_name: impl Into<Option<String>>,
    ) -> Result<PendingAck, EmitError> {
        let (call_id, name) = (tool_id.into(), tool_name.into());
        self.emit(ToolArgsStarted { call_id, name, message_id: None }).await
    }

    /// Emits a piece of the JSON text of a call's arguments; the call itself is
    /// [`emit_tool_call_start`](Self::emit_tool_call_start) under the same id.
    pub async fn emit_tool_arguments(
        &self,
        tool_id: impl Into<String>,
        delta: impl Into<String>,
    ) -> Result<PendingAck, EmitError> {
        self.emit(ToolArgsDelta { call_id: tool_id.into(), delta: delta.into() }).await
    }

    /// Emits that a called tool has started to work.
    pub async fn emit_tool_working(&self, tool_id: impl Into<String>) -> Result<PendingAck, EmitError> {
        self.emit(ToolStarted { call_id: tool_id.into(), name: None }).await
    }

    /// Emits output of a tool.
    pub async fn emit_tool_output(
        &self,
        tool_id: impl Into<String>,
        content: impl Into<String>,
    ) -> Result<PendingAck, EmitError> {
        self.emit(ToolOutput { call_id: tool_id.into(), name: None, content: content.into() }).await
    }

    // Interactions

    /// Requests an interaction, which suspends the run; the answer arrives as a [`Signal`](super::Signal).
    pub async fn emit_interaction(&self, question: InteractionRequest) -> Result<PendingAck, EmitError> {
        self.emit(question.0).await
    }

    /// Withdraws an interaction.
    pub async fn emit_interaction_withdrawn(
        &self,
        interaction_id: impl Into<String>,
        reason: impl Into<Option<String>>,
    ) -> Result<PendingAck, EmitError> {
        self.emit(InteractionResolved {
            interaction_id: interaction_id.into(),
            decision: Decision::Cancelled,
            reason: reason.into(),
            ..Default::default()
        })
        .await
    }

    // The thread's state and messages

    /// Emits a snapshot of the thread's state.
    pub async fn emit_state(&self, state: impl IntoJson) -> Result<PendingAck, EmitError> {
        self.emit(StateSnapshot { state: state.into_json() }).await
    }

    /// Emits the state after a step.
    pub async fn emit_state_update(
        &self,
        step: impl Into<String>,
        state: impl IntoJson,
    ) -> Result<PendingAck, EmitError> {
        self.emit(StateUpdated { step: step.into(), state: state.into_json() }).await
    }

    /// Emits a change of the state as a JSON Patch (RFC 6902).
    pub async fn emit_state_patch(&self, patch: impl IntoJson) -> Result<PendingAck, EmitError> {
        self.emit(StatePatched { patch: patch.into_json() }).await
    }

    /// Emits a snapshot of the thread's messages.
    pub async fn emit_messages(&self, messages: impl IntoJson) -> Result<PendingAck, EmitError> {
        self.emit(MessagesSnapshot { messages: messages.into_json() }).await
    }

    /// Emits a checkpoint that the agent can return to.
    pub async fn emit_checkpoint(&self, checkpoint: Checkpoint) -> Result<PendingAck, EmitError> {
        self.emit(checkpoint).await
    }

    // Activities and subagents

    /// Emits a snapshot of an activity.
    pub async fn emit_activity(
        &self,
        message_id: impl Into<String>,
        activity_type: impl Into<String>,
        content: impl IntoJson,
        replace: bool,
    ) -> Result<PendingAck, EmitError> {
        self.emit(ActivitySnapshot {
            message_id: message_id.into(),
            activity_type: activity_type.into(),
            content: content.into_json(),
            replace: Some(replace),
        })
        .await
    }

    /// Emits a change of an activity as a JSON Patch (RFC 6902).
    pub async fn emit_activity_patch(
        &self,
        message_id: impl Into<String>,
        activity_type: impl Into<String>,
        patch: impl IntoJson,
    ) -> Result<PendingAck, EmitError> {
        let (message_id, activity_type) = (message_id.into(), activity_type.into());
        self.emit(ActivityPatched { message_id, activity_type, patch: patch.into_json() }).await
    }

    /// Emits the start of a subagent. [Emit](Self::emit) its events with its `subagent_run_id`.
    pub async fn emit_subagent_start(
        &self,
        subagent_run_id: impl Into<String>,
        name: impl Into<Option<String>>,
    ) -> Result<PendingAck, EmitError> {
        self.in_subagent(subagent_run_id.into(), SubagentStarted { name: name.into() }.into()).await
    }

    /// Emits the end of a subagent, with its result.
    pub async fn emit_subagent_end(
        &self,
        subagent_run_id: impl Into<String>,
        result: impl Into<Option<runwire_model::Json>>,
    ) -> Result<PendingAck, EmitError> {
        self.in_subagent(subagent_run_id.into(), SubagentFinished { result: result.into() }.into()).await
    }

    /// Emits the failure of a subagent.
    pub async fn emit_subagent_failed(
        &self,
        subagent_run_id: impl Into<String>,
        message: impl Into<String>,
        code: impl Into<Option<String>>,
    ) -> Result<PendingAck, EmitError> {
        let failed = SubagentFailed { message: message.into(), code: code.into() };
        self.in_subagent(subagent_run_id.into(), failed.into()).await
    }

    async fn in_subagent(&self, subagent_run_id: String, mut event: Event) -> Result<PendingAck, EmitError> {
        check_id("subagent_run_id", &subagent_run_id)?;
        event.subagent_run_id = Some(subagent_run_id);
        self.emit(event).await
    }

    // Metrics, notices, custom events

    /// Emits the tokens of one model call.
    pub async fn emit_usage(
        &self,
        prompt_tokens: u64,
        completion_tokens: u64,
    ) -> Result<PendingAck, EmitError> {
        self.emit(Usage {
            prompt_tokens: Some(prompt_tokens),
            completion_tokens: Some(completion_tokens),
            total_tokens: Some(prompt_tokens.saturating_add(completion_tokens)),
        })
        .await
    }

    /// Emits metrics of any kind.
    pub async fn emit_metrics(&self, metrics: impl IntoJson) -> Result<PendingAck, EmitError> {
        self.emit(Metrics { figures: metrics.into_json() }).await
    }

    /// Emits a notice that does not end the run.
    pub async fn emit_notice(
        &self,
        level: Level,
        message: impl Into<String>,
        code: impl Into<Option<String>>,
    ) -> Result<PendingAck, EmitError> {
        self.emit(Notice { level, message: message.into(), code: code.into(), ..Default::default() }).await
    }

    /// Emits a custom event.
    pub async fn emit_custom(
        &self,
        name: impl Into<String>,
        value: impl IntoJson,
    ) -> Result<PendingAck, EmitError> {
        self.emit(Custom { name: Some(name.into()), value: value.into_json() }).await
    }

    /// Ends the run as failed; nothing may follow.
    pub async fn emit_run_failed(&self, error: ErrorInfo) -> Result<PendingAck, EmitError> {
        self.emit(runwire_model::event::RunFailed { error, summary: None }).await
    }
}

fn word(stage: Option<Stage>) -> Option<String> {
    stage.map(|stage| stage.as_str().to_owned())
}
