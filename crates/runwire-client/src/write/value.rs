//! Argument types of `emit_*` methods: JSON values, tool results, interaction requests.

use runwire_model::Json;
use runwire_model::event::{InteractionKind, InteractionRequested};

/// A value that can be sent as JSON.
///
/// Floating-point numbers and structs do not implement it: `serde_json` would silently write a number that is not
/// finite as `null`. Use `serde_json::json!` or `serde_json::to_value`.
pub trait IntoJson {
    /// Converts the value to JSON.
    fn into_json(self) -> Json;
}

impl IntoJson for Json {
    fn into_json(self) -> Json {
        self
    }
}

impl IntoJson for &Json {
    fn into_json(self) -> Json {
        self.clone()
    }
}

impl IntoJson for serde_json::Value {
    fn into_json(self) -> Json {
        Json::from_value(&self)
    }
}

impl IntoJson for &serde_json::Value {
    fn into_json(self) -> Json {
        Json::from_value(self)
    }
}

impl IntoJson for &str {
    fn into_json(self) -> Json {
        Json::string(self)
    }
}

impl IntoJson for String {
    fn into_json(self) -> Json {
        Json::string(&self)
    }
}

/// The status, result and duration of a tool call.
///
/// ```
/// use runwire_client::write::{ToolEnd, ToolStatus};
///
/// let end = ToolEnd::success().result(serde_json::json!({"rows": 3})).duration_ms(150.0);
/// assert_eq!(end.status(), ToolStatus::Success);
/// assert_eq!(ToolEnd::failed("no such table").code("NO_TABLE").status(), ToolStatus::Failed);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEnd {
    pub(super) status: super::ToolStatus,
    pub(super) result: Option<Json>,
    pub(super) error: Option<(String, Option<String>)>,
    pub(super) duration_ms: Option<f64>,
}

impl ToolEnd {
    /// Returns the end of a successful call.
    pub fn success() -> Self {
        Self { status: super::ToolStatus::Success, result: None, error: None, duration_ms: None }
    }

    /// Returns the end of a failed call, with a message for people.
    pub fn failed(message: impl Into<String>) -> Self {
        let error = Some((message.into(), None));
        Self { status: super::ToolStatus::Failed, result: None, error, duration_ms: None }
    }

    /// Sets the tool's result.
    pub fn result(mut self, result: impl IntoJson) -> Self {
        self.result = Some(result.into_json());
        self
    }

    /// Sets the error code of a failed call.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        if let Some((_, known)) = &mut self.error {
            *known = Some(code.into());
        }
        self
    }

    /// Sets the duration.
    pub fn duration_ms(mut self, duration_ms: f64) -> Self {
        self.duration_ms = Some(duration_ms);
        self
    }

    /// Returns the status.
    pub fn status(&self) -> super::ToolStatus {
        self.status
    }
}

/// A request for an interaction with a person: a form or an approval.
///
/// ```
/// use runwire_client::write::InteractionRequest;
///
/// let schema = serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// let form = InteractionRequest::form("q1", schema).title("Where to?");
/// let approval =
///     InteractionRequest::approval("q2").about_tool("c1", "delete_file", serde_json::json!({"path": "a"}));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct InteractionRequest(pub(super) InteractionRequested);

impl InteractionRequest {
    /// Requests a form that a JSON Schema describes.
    pub fn form(interaction_id: impl Into<String>, schema: impl IntoJson) -> Self {
        Self(InteractionRequested {
            interaction_id: interaction_id.into(),
            kind: InteractionKind::Form,
            schema: Some(schema.into_json()),
            ..Default::default()
        })
    }

    /// Requests an approval.
    pub fn approval(interaction_id: impl Into<String>) -> Self {
        Self(InteractionRequested {
            interaction_id: interaction_id.into(),
            kind: InteractionKind::Approval,
            ..Default::default()
        })
    }

    /// Sets the title.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.title = Some(title.into());
        self
    }

    /// Sets the description: the question itself.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.0.description = Some(description.into());
        self
    }

    /// Sets the reason.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.0.reason = Some(reason.into());
        self
    }

    /// Sets the UI hints of the form.
    pub fn ui(mut self, ui: impl IntoJson) -> Self {
        self.0.ui = Some(ui.into_json());
        self
    }

    /// Sets the tool call that needs approval.
    pub fn about_tool(
        mut self,
        tool_id: impl Into<String>,
        tool_name: impl Into<String>,
        arguments: impl IntoJson,
    ) -> Self {
        self.0.call_id = Some(tool_id.into());
        self.0.name = Some(tool_name.into());
        self.0.arguments = Some(arguments.into_json());
        self
    }

    /// Sets the expiry.
    pub fn expires_at(mut self, at: runwire_model::Timestamp) -> Self {
        self.0.expires_at = Some(at.to_string());
        self
    }
}
