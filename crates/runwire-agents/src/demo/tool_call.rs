//! Emits the events of a scripted tool call, from the call to its result.

use runwire_model::Json;
use runwire_model::event::{
    ErrorInfo, ToolCalled, ToolFinished, ToolOutput, ToolProgress, ToolStarted, ToolStatus,
};
use serde_json::Value;

use super::script_writer::ScriptWriter;

/// A tool call without a result yet.
pub(super) struct ScriptToolCall {
    pub(super) id: String,
    pub(super) name: &'static str,
}

impl ScriptToolCall {
    /// Calls a tool.
    pub(super) fn call(
        t: &mut ScriptWriter,
        name: &'static str,
        arguments: &Value,
        description: String,
    ) -> Self {
        let call = Self { id: t.id("call"), name };
        call.emit(t, arguments, description);
        call
    }

    /// Emits the call, whose arguments may have been streamed before.
    pub(super) fn emit(&self, t: &mut ScriptWriter, arguments: &Value, description: String) {
        t.emit(ToolCalled {
            call_id: self.id.clone(),
            name: self.name.to_owned(),
            arguments: Json::from_value(arguments),
            description: Some(description),
            ..Default::default()
        });
    }

    pub(super) fn start(&self, t: &mut ScriptWriter) {
        t.emit(ToolStarted { call_id: self.id.clone(), name: Some(self.name.to_owned()) });
    }

    pub(super) fn progress(&self, t: &mut ScriptWriter, percent: i64, message: String) {
        let (call_id, progress) = (self.id.clone(), Some(percent as f64));
        t.emit(ToolProgress { call_id, progress, message: Some(message) });
    }

    pub(super) fn print(&self, t: &mut ScriptWriter, content: String) {
        t.emit(ToolOutput { call_id: self.id.clone(), name: Some(self.name.to_owned()), content });
    }

    pub(super) fn succeed(self, t: &mut ScriptWriter, result: &Value, millis: i64) {
        self.finish(t, ToolStatus::Success, Some(Json::from_value(result)), None, millis);
    }

    pub(super) fn fail(self, t: &mut ScriptWriter, error: ErrorInfo, millis: i64) {
        self.finish(t, ToolStatus::Failure, None, Some(error), millis);
    }

    fn finish(
        self,
        t: &mut ScriptWriter,
        status: ToolStatus,
        result: Option<Json>,
        error: Option<ErrorInfo>,
        millis: i64,
    ) {
        t.emit(ToolFinished {
            call_id: self.id,
            name: Some(self.name.to_owned()),
            status,
            result,
            error,
            duration_ms: Some(millis as f64),
            message_id: None,
        });
    }
}
