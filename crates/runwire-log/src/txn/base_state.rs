//! The messages and state of a thread before its oldest kept record.

use runwire_model::record::{ChatMessage, History};
use runwire_model::run::RunState;
use runwire_model::window::Window;
use serde::{Deserialize, Serialize};

/// The messages and state of a thread before its oldest kept record.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BaseState {
    pub(crate) messages: Vec<ChatMessage>,
    /// As JSON text, so that numbers keep their digits.
    pub(crate) state: Option<String>,
    /// The guard's state of the run before, where that run itself was not imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) guard: Option<RunState>,
}

impl BaseState {
    /// Copies messages and state out of a window.
    pub(crate) fn of(window: &Window) -> Self {
        let state = window.state().map(|state| state.text().to_owned());
        Self { messages: window.messages(), state, guard: None }
    }

    /// Makes a window that starts from this state.
    pub(crate) fn window(self) -> Window {
        Window::after(self.messages, self.state.and_then(|state| runwire_model::Json::parse(&state).ok()))
    }
}
