//! Façades: endpoints of other systems, so that their front ends work here unchanged.
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
//! Closing a stream does not stop its run.

mod ag_ui;
mod agio;
mod answers;
pub(crate) mod easyflow;
mod error_frame;
mod loom;
pub(crate) mod social_app;
pub(crate) mod start_run;
mod streaming_engine;

use std::sync::Arc;

use axum::Router;
use runwire_log::ReadFormat;
use runwire_model::dialect::{Dialect, EncoderOptions, Slots};

use crate::AppState;

/// Configuration of façades: the extension frames that each of them sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facades {
    /// AG-UI's.
    pub ag_ui: Slots,
    /// Agio's. Its document has debug events, which these are, in debug mode only.
    pub agio: Slots,
    /// EasyFlow's.
    pub easyflow_chat: Slots,
    /// Loom's.
    pub loom: Slots,
    /// social-app's.
    pub social_app: Slots,
    /// StreamingEngine's.
    pub streaming_engine: Slots,
}

impl Default for Facades {
    fn default() -> Self {
        let all = Slots::All;
        Self {
            ag_ui: all,
            agio: Slots::Asks,
            easyflow_chat: all,
            loom: all,
            social_app: all,
            streaming_engine: all,
        }
    }
}

impl Facades {
    /// Returns the encoding of a dialect's façade.
    pub(crate) fn form(&self, dialect: Dialect) -> ReadFormat {
        let slots = match dialect {
            Dialect::AgUi => self.ag_ui,
            Dialect::Agio => self.agio,
            Dialect::EasyflowChat => self.easyflow_chat,
            Dialect::Loom => self.loom,
            Dialect::SocialApp => self.social_app,
            Dialect::StreamingEngine => self.streaming_engine,
            Dialect::Runwire | Dialect::LoomExport | Dialect::Text => Slots::default(),
        };
        ReadFormat::with(dialect, EncoderOptions { slots, ..EncoderOptions::default() })
    }
}

pub(crate) fn routes() -> Router<Arc<AppState>> {
    Router::new()
        .merge(social_app::routes())
        .merge(agio::routes())
        .merge(ag_ui::routes())
        .merge(streaming_engine::routes())
        .merge(easyflow::routes())
        .merge(loom::routes())
}
