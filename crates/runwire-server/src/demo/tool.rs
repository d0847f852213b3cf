//! A tool call of a script, from its call to its result.

use runwire_model::Json;
use runwire_model::event::{
    ErrorInfo, ToolCalled, ToolFinished, ToolOutput, ToolProgress, ToolStarted, ToolStatus,
};
use serde_json::Value;

use super::teller::Teller;

/// A call that was made and waits for its result.
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: &'static str,
}

impl Call {
    /// Calls a tool.
    pub(super) fn make(t: &mut Teller, name: &'static str, arguments: &Value, description: String) -> Self {
        let call = Self { id: t.id("call"), name };
        call.tell(t, arguments, description);
        call
    }

    /// Tells the call, whose arguments may have been told in pieces before.
    pub(super) fn tell(&self, t: &mut Teller, arguments: &Value, description: String) {
        t.emit(ToolCalled {
            call_id: self.id.clone(),
            name: self.name.to_owned(),
            arguments: Json::from_value(arguments),
            description: Some(description),
            ..Default::default()
        });
    }

    pub(super) fn start(&self, t: &mut Teller) {
        t.emit(ToolStarted { call_id: self.id.clone(), name: Some(self.name.to_owned()) });
    }

    pub(super) fn progress(&self, t: &mut Teller, percent: i64, message: String) {
        let (call_id, progress) = (self.id.clone(), Some(percent as f64));
        t.emit(ToolProgress { call_id, progress, message: Some(message) });
    }

    pub(super) fn print(&self, t: &mut Teller, content: String) {
        t.emit(ToolOutput { call_id: self.id.clone(), name: Some(self.name.to_owned()), content });
    }

    pub(super) fn succeed(self, t: &mut Teller, result: &Value, millis: i64) {
        self.finish(t, ToolStatus::Success, Some(Json::from_value(result)), None, millis);
    }

    pub(super) fn fail(self, t: &mut Teller, error: ErrorInfo, millis: i64) {
        self.finish(t, ToolStatus::Failure, None, Some(error), millis);
    }

    fn finish(
        self,
        t: &mut Teller,
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
