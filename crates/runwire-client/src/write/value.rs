//! What `emit_*` methods take beside plain texts and numbers.

use runwire_model::Json;
use runwire_model::event::{InteractionKind, InteractionRequested};

/// A value that can be sent as JSON.
///
/// There is none for floating-point numbers and structs: `serde_json` writes what is not finite as `null`, and
/// nothing may be changed silently. `serde_json::json!` and `serde_json::to_value` make one of anything.
pub trait IntoJson {
    /// Takes the value's JSON text.
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

/// What a tool gave back, or why it did not.
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
    /// Begins the end of a call that did what it was asked to.
    pub fn success() -> Self {
        Self { status: super::ToolStatus::Success, result: None, error: None, duration_ms: None }
    }

    /// Begins the end of a call that failed, with what a person reads.
    pub fn failed(message: impl Into<String>) -> Self {
        let error = Some((message.into(), None));
        Self { status: super::ToolStatus::Failed, result: None, error, duration_ms: None }
    }

    /// Adds what the tool gave back.
    pub fn result(mut self, result: impl IntoJson) -> Self {
        self.result = Some(result.into_json());
        self
    }

    /// Adds the code of the error; does nothing to a success.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        if let Some((_, known)) = &mut self.error {
            *known = Some(code.into());
        }
        self
    }

    /// Adds how long the call took.
    pub fn duration_ms(mut self, duration_ms: f64) -> Self {
        self.duration_ms = Some(duration_ms);
        self
    }

    /// Tells how the call ended.
    pub fn status(&self) -> super::ToolStatus {
        self.status
    }
}

/// A question to a person: a form to fill in, or something to allow.
///
/// ```
/// use runwire_client::write::Question;
///
/// let schema = serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// let form = Question::form("q1", schema).title("Where to?");
/// let approval = Question::approval("q2").about_tool("c1", "delete_file", serde_json::json!({"path": "a"}));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Question(pub(super) InteractionRequested);

impl Question {
    /// Asks a person to fill in a form that a JSON Schema describes.
    pub fn form(interaction_id: impl Into<String>, schema: impl IntoJson) -> Self {
        Self(InteractionRequested {
            interaction_id: interaction_id.into(),
            kind: InteractionKind::Form,
            schema: Some(schema.into_json()),
            ..Default::default()
        })
    }

    /// Asks a person to allow or forbid something.
    pub fn approval(interaction_id: impl Into<String>) -> Self {
        Self(InteractionRequested {
            interaction_id: interaction_id.into(),
            kind: InteractionKind::Approval,
            ..Default::default()
        })
    }

    /// Adds a title.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.title = Some(title.into());
        self
    }

    /// Adds the question in words.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.0.description = Some(description.into());
        self
    }

    /// Adds why it is asked.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.0.reason = Some(reason.into());
        self
    }

    /// Adds the texts of the form.
    pub fn ui(mut self, ui: impl IntoJson) -> Self {
        self.0.ui = Some(ui.into_json());
        self
    }

    /// Says which call it is about, and what its tool would be given.
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

    /// Says when it is too late to answer.
    pub fn expires_at(mut self, at: runwire_model::Timestamp) -> Self {
        self.0.expires_at = Some(at.to_string());
        self
    }
}
