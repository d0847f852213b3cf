//! The rules about the order of frames, one file a dialect: what JSON Schema cannot say.
//!
//! Everything that is remembered is bounded, and what was not remembered is told once and never held against the
//! stream.

mod ag_ui;
mod agio;
mod easyflow_chat;
mod loom;
mod open;
mod runwire;
mod social_app;
mod streaming_engine;

use std::borrow::Cow;

use runwire_model::dialect::Dialect;
use serde::{Deserialize, Serialize};

use crate::Side;
use crate::finding::Finding;
use crate::members::FrameMembers;
pub(super) use open::Memory;

/// A frame as the rules see it.
pub(super) struct Seen<'a> {
    /// The kind of event: its type, or what the dialect has in its place.
    pub(super) kind: &'a str,
    /// The name that SSE carried.
    pub(super) name: Option<&'a str>,
    pub(super) members: &'a FrameMembers<'a>,
    pub(super) side: Side,
    /// What may be remembered of it.
    pub(super) memory: &'a Memory,
}

impl<'a> Seen<'a> {
    /// Looks up a string by the names on the way to it.
    fn text(&self, path: &[&str]) -> Option<Cow<'a, str>> {
        self.members.text(path)
    }

    /// Looks up a number by the names on the way to it.
    fn number(&self, path: &[&str]) -> Option<f64> {
        self.at(path).filter(|json| !json.starts_with('"')).and_then(|json| json.parse().ok())
    }

    /// Looks up a value's JSON text by the names on the way to it.
    fn at(&self, path: &[&str]) -> Option<&'a str> {
        self.members.at(path)
    }
}

/// What the rules of a dialect remember of the frames of one run, or of one session of a stream.
///
/// It is stored by the variant's place, so new ones go to the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each open run; boxes would cost an allocation a load"
)]
pub(crate) enum Order {
    Loom(loom::Loom),
    StreamingEngine(streaming_engine::StreamingEngineOrder),
    Agio(agio::Agio),
    AgUi(ag_ui::AgUi),
    SocialApp(social_app::SocialApp),
    EasyflowChat(easyflow_chat::EasyflowChat),
    Runwire(runwire::Runwire),
}

/// The code of a frame that comes after the end of its run.
pub const AFTER_END: &str = "after_end";
/// The code of a frame that comes before the one that opens its run.
pub(super) const NOT_STARTED: &str = "not_started";
/// The code of a thing that ends or goes on without having begun.
pub(super) const NOT_OPEN: &str = "not_open";
/// The code of a thing that begins while it is open.
pub(super) const ALREADY_OPEN: &str = "already_open";
/// The code of a number that must grow and does not.
pub(super) const NOT_INCREASING: &str = "not_increasing";

impl Order {
    pub(super) fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Loom => Self::Loom(loom::Loom::typed()),
            Dialect::LoomExport => Self::Loom(loom::Loom::export()),
            Dialect::StreamingEngine => Self::StreamingEngine(Default::default()),
            Dialect::Agio => Self::Agio(Default::default()),
            Dialect::AgUi => Self::AgUi(Default::default()),
            Dialect::SocialApp => Self::SocialApp(Default::default()),
            Dialect::EasyflowChat => Self::EasyflowChat(Default::default()),
            Dialect::Runwire | Dialect::Text => Self::Runwire(Default::default()),
        }
    }

    /// Returns the dialect whose rules these are.
    pub(super) fn dialect(&self) -> Dialect {
        match self {
            Self::Loom(rules) if rules.is_export() => Dialect::LoomExport,
            Self::Loom(_) => Dialect::Loom,
            Self::StreamingEngine(_) => Dialect::StreamingEngine,
            Self::Agio(_) => Dialect::Agio,
            Self::AgUi(_) => Dialect::AgUi,
            Self::SocialApp(_) => Dialect::SocialApp,
            Self::EasyflowChat(_) => Dialect::EasyflowChat,
            Self::Runwire(_) => Dialect::Runwire,
        }
    }

    /// Checks that a frame may stand where it stands.
    pub(super) fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>) {
        match self {
            Self::Loom(rules) => rules.check(frame, findings),
            Self::StreamingEngine(rules) => rules.check(frame, findings),
            Self::Agio(rules) => rules.check(frame, findings),
            Self::AgUi(rules) => rules.check(frame, findings),
            Self::SocialApp(rules) => rules.check(frame, findings),
            Self::EasyflowChat(rules) => rules.check(frame, findings),
            Self::Runwire(rules) => rules.check(frame, findings),
        }
    }

    /// Returns whether a run is still open, for the end of the stream.
    pub(super) fn has_open_run(&self) -> bool {
        match self {
            Self::Loom(rules) => rules.has_open_run(),
            Self::StreamingEngine(rules) => rules.has_open_run(),
            Self::Agio(rules) => rules.has_open_run(),
            Self::AgUi(rules) => rules.has_open_run(),
            Self::SocialApp(rules) => rules.has_open_run(),
            Self::EasyflowChat(rules) => rules.has_open_run(),
            Self::Runwire(rules) => rules.has_open_run(),
        }
    }

    /// Makes the rules for the next run of the thread, which may answer calls that this one leaves open.
    pub(super) fn next(&self) -> Self {
        match self {
            Self::Loom(rules) => Self::Loom(rules.next()),
            Self::StreamingEngine(rules) => Self::StreamingEngine(rules.next()),
            Self::Agio(rules) => Self::Agio(rules.next()),
            Self::AgUi(_) => Self::AgUi(Default::default()),
            Self::SocialApp(rules) => Self::SocialApp(rules.next()),
            Self::EasyflowChat(_) => Self::EasyflowChat(Default::default()),
            Self::Runwire(rules) => Self::Runwire(rules.next()),
        }
    }

    /// Goes over to social-app's rules, where frames of AG-UI turn out to be of its profile.
    pub(super) fn into_social_app(self) -> Self {
        match self {
            Self::AgUi(rules) => Self::SocialApp(rules.into()),
            other => other,
        }
    }
}

/// A thing that ends or goes on without having begun.
fn not_open(section: &str, pointer: &str, what: &str, id: &str) -> Finding {
    Finding::problem(NOT_OPEN, format!("no {what} `{id}` is open here")).at(pointer).section(section)
}

/// A thing that begins while it is open.
fn already_open(section: &str, pointer: &str, what: &str, id: &str) -> Finding {
    Finding::problem(ALREADY_OPEN, format!("the {what} `{id}` is open already")).at(pointer).section(section)
}

/// A run that begins while it is open; without an id, it is the one run of the stream.
fn run_already_open(section: &str, what: &str, id: Option<&str>, pointer: &str) -> Finding {
    match id.filter(|id| !id.is_empty()) {
        Some(id) => already_open(section, pointer, what, id),
        None => Finding::problem(ALREADY_OPEN, "a run is open already, and this frame names no other")
            .at("/type")
            .section(section)
            .hint("end the run before the next one begins, or name each run in its frames"),
    }
}

/// A frame after the end of its run.
fn after_end(section: &str, kind: &str, ended_by: &str, instead: &str) -> Finding {
    Finding::problem(AFTER_END, format!("`{kind}` comes after the run's end (`{ended_by}`)"))
        .section(section)
        .hint(instead)
}

/// A number that must grow and does not.
fn not_increasing(section: &str, pointer: &str, number: f64, last: f64) -> Finding {
    let message = format!("is {number} after {last}; it grows with every frame");
    Finding::problem(NOT_INCREASING, message).at(pointer).section(section)
}

/// A frame that stands before the one that must be first.
fn not_first(section: &str, kind: &str, first: &str) -> Finding {
    Finding::problem(NOT_STARTED, format!("`{kind}` comes before `{first}`, which opens the run"))
        .section(section)
}
