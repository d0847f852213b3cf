//! The methods of StreamingEngine's document, in its order.

use runwire_model::Json;
use runwire_model::event::Summary;

use super::frame::Says;
use super::state::Sent;
use super::value::{IntoJson, ToolEnd};
use super::words::{DataType, ErrorType, Format, SessionStatus, Stage};
use super::{EmitError, StreamingEngine};

impl StreamingEngine {
    /// Says that the session begins, before anything else is said.
    ///
    /// On a server a new run joins the thread of that id, unless [`EngineBuilder::thread`](super::EngineBuilder::thread)
    /// names another; a run that lives elsewhere already refuses it with `run_exists`.
    pub async fn emit_session_start(&self, session_id: impl Into<String>) -> Result<Sent, EmitError> {
        self.say(Says::SessionStart { session_id: session_id.into() }).await
    }

    /// Says a piece of the agent's thinking.
    pub async fn emit_thinking(
        &self,
        content: impl Into<String>,
        stage: impl Into<Option<Stage>>,
    ) -> Result<Sent, EmitError> {
        self.say(Says::Thinking { content: content.into(), stage: stage.into() }).await
    }

    /// Says that a tool is called, what for, and what it is given: an object.
    pub async fn emit_tool_call_start(
        &self,
        tool_id: impl Into<String>,
        tool_name: impl Into<String>,
        description: impl Into<String>,
        arguments: impl IntoJson,
    ) -> Result<Sent, EmitError> {
        let description = Some(description.into()).filter(|description| !description.is_empty());
        let (tool_id, tool_name) = (tool_id.into(), tool_name.into());
        self.say(Says::ToolCallStart { tool_id, tool_name, description, arguments: arguments.into_json() })
            .await
    }

    /// Says how far a tool is, from 0 to 100, and what it is doing.
    pub async fn emit_tool_call_progress(
        &self,
        tool_id: impl Into<String>,
        progress: f64,
        message: impl Into<String>,
    ) -> Result<Sent, EmitError> {
        let (tool_id, message) = (tool_id.into(), message.into());
        self.say(Says::ToolCallProgress { tool_id, progress, message }).await
    }

    /// Says that a call is over: how it ended, what it gave back, how long it took.
    pub async fn emit_tool_call_end(
        &self,
        tool_id: impl Into<String>,
        end: ToolEnd,
    ) -> Result<Sent, EmitError> {
        self.say(Says::ToolCallEnd { tool_id: tool_id.into(), end }).await
    }

    /// Says a piece of the answer; `is_complete` ends it.
    pub async fn emit_content(
        &self,
        content: impl Into<String>,
        format: Format,
        is_complete: bool,
    ) -> Result<Sent, EmitError> {
        self.say(Says::Content { content: content.into(), format, is_complete }).await
    }

    /// Shows a block of data: a table, a chart, an image.
    pub async fn emit_data(
        &self,
        data_type: DataType,
        data: impl IntoJson,
        metadata: impl Into<Option<Json>>,
    ) -> Result<Sent, EmitError> {
        self.say(Says::Data { data_type, data: data.into_json(), metadata: metadata.into() }).await
    }

    /// Says that something went wrong. What is not recoverable is what the run fails with, if it then ends in
    /// [`SessionStatus::Error`].
    pub async fn emit_error(
        &self,
        error_type: ErrorType,
        message: impl Into<String>,
        details: impl Into<Option<Json>>,
        recoverable: bool,
    ) -> Result<Sent, EmitError> {
        let (message, details) = (message.into(), details.into());
        self.say(Says::Error { error_type, message, details, recoverable }).await
    }

    /// Says that the session is over; nothing may follow.
    pub async fn emit_session_end(
        &self,
        status: SessionStatus,
        summary: impl Into<Option<Summary>>,
    ) -> Result<Sent, EmitError> {
        self.say(Says::SessionEnd { status, summary: summary.into() }).await
    }
}
