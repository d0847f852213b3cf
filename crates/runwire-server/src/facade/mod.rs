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

pub(crate) mod ag_ui;
pub(crate) mod agio;
mod answers;
pub(crate) mod easyflow;
mod error_frame;
pub(crate) mod loom;
pub(crate) mod social_app;
pub(crate) mod start_run;
pub(crate) mod streaming_engine;

use runwire_log::ReadFormat;
use runwire_model::dialect::{Dialect, EncoderOptions, Slots};

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
    /// Lists the settings of all façades, each with its name in the configuration.
    pub fn settings(&mut self) -> [(&'static str, &mut Slots); 6] {
        [
            ("slots.ag_ui", &mut self.ag_ui),
            ("slots.agio", &mut self.agio),
            ("slots.easyflow_chat", &mut self.easyflow_chat),
            ("slots.loom", &mut self.loom),
            ("slots.social_app", &mut self.social_app),
            ("slots.streaming_engine", &mut self.streaming_engine),
        ]
    }

    /// Returns the encoding of a dialect's façade.
    pub(crate) fn form(&self, dialect: Dialect) -> ReadFormat {
        let slots = match dialect {
            Dialect::AgUi => self.ag_ui,
            Dialect::Agio => self.agio,
            Dialect::EasyflowChat => self.easyflow_chat,
            Dialect::Loom => self.loom,
            Dialect::SocialApp => self.social_app,
            Dialect::StreamingEngine => self.streaming_engine,
            _ => Slots::default(),
        };
        ReadFormat::with(dialect, EncoderOptions { slots, ..EncoderOptions::default() })
    }
}
