//! The rules about the order of frames, one file a dialect: what JSON Schema cannot say.
//!
//! Everything that is remembered is bounded, and what was forgotten is never held against the stream.

mod ag_ui;
mod agio;
mod easyflow_chat;
mod loom;
mod open;
mod runwire;
mod social_app;
mod streaming_engine;

use runwire_model::dialect::Dialect;
use serde_json::Value;

use super::finding::Finding;

/// A frame as the rules see it.
pub(super) struct Seen<'a> {
    /// The kind of event: its type, or what the dialect has in its place.
    pub(super) kind: &'a str,
    /// The name that SSE carried.
    pub(super) name: Option<&'a str>,
    pub(super) value: &'a Value,
}

impl<'a> Seen<'a> {
    /// Looks up a string by the names on the way to it.
    fn text(&self, path: &[&str]) -> Option<&'a str> {
        self.at(path).and_then(Value::as_str)
    }

    /// Looks up a number by the names on the way to it.
    fn number(&self, path: &[&str]) -> Option<f64> {
        self.at(path).and_then(Value::as_f64)
    }

    fn at(&self, path: &[&str]) -> Option<&'a Value> {
        path.iter().try_fold(self.value, |value, key| value.get(key))
    }
}

/// The rules of one dialect.
pub(super) trait Rules {
    /// Checks that a frame may stand where it stands.
    fn check(&mut self, frame: &Seen<'_>, findings: &mut Vec<Finding>);

    /// Tells whether a run is still open, for the end of the stream.
    fn has_open_run(&self) -> bool;
}

/// The code of a frame that comes after the end of its run.
pub(super) const AFTER_END: &str = "after_end";

/// Makes the rules of a dialect.
pub(super) fn rules(dialect: Dialect) -> Box<dyn Rules> {
    match dialect {
        Dialect::Loom => Box::new(loom::Loom::typed()),
        Dialect::LoomExport => Box::new(loom::Loom::export()),
        Dialect::StreamingEngine => Box::new(streaming_engine::StreamingEngine::default()),
        Dialect::Agio => Box::new(agio::Agio::default()),
        Dialect::AgUi => Box::new(ag_ui::AgUi::default()),
        Dialect::SocialApp => Box::new(social_app::SocialApp::default()),
        Dialect::EasyflowChat => Box::new(easyflow_chat::EasyflowChat::default()),
        Dialect::Runwire | Dialect::Text => Box::new(runwire::Runwire::default()),
    }
}

/// A thing that ends or goes on without having begun.
fn not_open(section: &str, field: &str, what: &str, id: &str) -> Finding {
    Finding::problem("not_open", format!("no {what} `{id}` is open here")).field(field).section(section)
}

/// A thing that begins while it is open.
fn already_open(section: &str, field: &str, what: &str, id: &str) -> Finding {
    Finding::problem("already_open", format!("the {what} `{id}` is open already"))
        .field(field)
        .section(section)
}

/// A frame after the end of its run.
fn after_end(section: &str, kind: &str, ended_by: &str, instead: &str) -> Finding {
    Finding::problem(AFTER_END, format!("`{kind}` comes after the run's end (`{ended_by}`)"))
        .section(section)
        .hint(instead)
}

/// A number that must grow and does not.
fn not_increasing(section: &str, field: &str, number: f64, last: f64) -> Finding {
    let message = format!("is {number} after {last}; it grows with every frame");
    Finding::problem("not_increasing", message).field(field).section(section)
}

/// A frame that stands before the one that must be first.
fn not_first(section: &str, kind: &str, first: &str) -> Finding {
    Finding::problem("not_started", format!("`{kind}` comes before `{first}`, which opens the run"))
        .section(section)
}
