//! The `emit_*` methods of StreamingEngine's document, in its order.

use runwire_model::Json;
use runwire_model::event::Summary;

use super::emission::Emission;
use super::enums::{DataType, ErrorType, Format, SessionStatus, Stage};
use super::state::PendingAck;
use super::value::{IntoJson, ToolEnd};
use super::{EmitError, StreamingEngine};

impl StreamingEngine {
    /// Emits the start of the session, before anything else.
    ///
    /// On a server a new run joins the thread of that id, unless [`EngineBuilder::thread`](super::EngineBuilder::thread)
    /// names another; a run that exists in another thread refuses it with `run_exists`.
    pub async fn emit_session_start(&self, session_id: impl Into<String>) -> Result<PendingAck, EmitError> {
        self.emit_emission(Emission::SessionStart { session_id: session_id.into() }).await
    }

    /// Emits a piece of the agent's thinking.
    pub async fn emit_thinking(
        &self,
        content: impl Into<String>,
        stage: impl Into<Option<Stage>>,
    ) -> Result<PendingAck, EmitError> {
        self.emit_emission(Emission::Thinking { content: content.into(), stage: stage.into() }).await
    }

    /// Emits a tool call with its description and arguments (an object).
    pub async fn emit_tool_call_start(
        &self,
        tool_id: impl Into<String>,
        tool_name: impl Into<String>,
        description: impl Into<String>,
        arguments: impl IntoJson,
    ) -> Result<PendingAck, EmitError> {
        let description = Some(description.into()).filter(|description| !description.is_empty());
        let (tool_id, tool_name) = (tool_id.into(), tool_name.into());
        self.emit_emission(Emission::ToolCallStart {
            tool_id,
            tool_name,
            description,
            arguments: arguments.into_json(),
        })
        .await
    }

    /// Emits the progress of a tool, from 0 to 100, with a message.
    pub async fn emit_tool_call_progress(
        &self,
        tool_id: impl Into<String>,
        progress: f64,
        message: impl Into<String>,
    ) -> Result<PendingAck, EmitError> {
        let (tool_id, message) = (tool_id.into(), message.into());
        self.emit_emission(Emission::ToolCallProgress { tool_id, progress, message }).await
    }

    /// Emits the end of a tool call with its status, result and duration.
    pub async fn emit_tool_call_end(
        &self,
        tool_id: impl Into<String>,
        end: ToolEnd,
    ) -> Result<PendingAck, EmitError> {
        self.emit_emission(Emission::ToolCallEnd { tool_id: tool_id.into(), end }).await
    }

    /// Emits a piece of the answer; `is_complete` ends it.
    pub async fn emit_content(
        &self,
        content: impl Into<String>,
        format: Format,
        is_complete: bool,
    ) -> Result<PendingAck, EmitError> {
        self.emit_emission(Emission::Content { content: content.into(), format, is_complete }).await
    }

    /// Emits a block of data: a table, a chart, an image.
    pub async fn emit_data(
        &self,
        data_type: DataType,
        data: impl IntoJson,
        metadata: impl Into<Option<Json>>,
    ) -> Result<PendingAck, EmitError> {
        self.emit_emission(Emission::Data { data_type, data: data.into_json(), metadata: metadata.into() })
            .await
    }

    /// Emits an error. The last one that is not recoverable is the run's error if it ends in
    /// [`SessionStatus::Error`].
    pub async fn emit_error(
        &self,
        error_type: ErrorType,
        message: impl Into<String>,
        details: impl Into<Option<Json>>,
        recoverable: bool,
    ) -> Result<PendingAck, EmitError> {
        let (message, details) = (message.into(), details.into());
        self.emit_emission(Emission::Error { error_type, message, details, recoverable }).await
    }

    /// Emits the end of the session; nothing may follow.
    pub async fn emit_session_end(
        &self,
        status: SessionStatus,
        summary: impl Into<Option<Summary>>,
    ) -> Result<PendingAck, EmitError> {
        self.emit_emission(Emission::SessionEnd { status, summary: summary.into() }).await
    }
}
