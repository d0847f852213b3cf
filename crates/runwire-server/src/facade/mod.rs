//! Façades: existing front ends of other systems work here unchanged.
//!
//! | module | system |
//! |---|---|
//! | `social_app` | social-app: a thread's events and history |
//! | `agio` | Agio: a run that is started and streamed, and a run's stored events |
//! | `ag_ui` | AG-UI: run, resume, attach |
//! | `streaming_engine` | StreamingEngine: chat |
//! | `easyflow` | EasyFlow: chat, attach, the answer to a form, over HTTP and a WebSocket |
//! | `loom` | Loom's WebSocket |
//!
//! Leaving is not stopping: whoever closes a stream here leaves a run that goes on.

mod ag_ui;
mod agio;
mod answers;
pub(crate) mod easyflow;
mod loom;
mod refusal;
pub(crate) mod social_app;
pub(crate) mod start;
mod streaming_engine;

use std::sync::Arc;

use axum::Router;

use crate::Wire;

pub(crate) fn routes() -> Router<Arc<Wire>> {
    Router::new()
        .merge(social_app::routes())
        .merge(agio::routes())
        .merge(ag_ui::routes())
        .merge(streaming_engine::routes())
        .merge(easyflow::routes())
        .merge(loom::routes())
}
