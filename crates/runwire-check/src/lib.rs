//! Checks frames against their dialect's document: `runwire validate` and the server's own check are this.
//!
//! Two layers: what the document's JSON Schema forbids, and what may not stand where it stands. What the second
//! remembers between two frames is a [`CheckState`], which is small, bounded and stored with its run.

mod explain;
mod finding;
mod keys;
pub mod limits;
mod members;
pub mod nearest;
mod order;
mod quick;
mod schema;
mod typo;

use std::borrow::Cow;

use runwire_model::dialect::{Dialect, detect};
use runwire_model::json::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use finding::{Finding, Severity};
pub use order::AFTER_END;

use crate::nearest::nearest;
use members::{Blind, FrameMembers};
use order::{Memory, Order, Seen};
use schema::Schema;

/// The code of the note that the check has reached the limit of its memory. It stands once in a run, and no document is
/// broken by it.
pub const UNJUDGED: &str = "unjudged";

/// Whose frames are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A producer's, on their way to the server, which adds the envelope and the starts of canonical events itself.
    Producer,
    /// A whole stream, as readers see it.
    Reader,
}

/// A frame that is one JSON object within the limits of the model.
#[derive(Debug, Clone, Copy)]
pub struct CheckedFrame<'a> {
    /// The name that SSE carried.
    pub name: Option<&'a str>,
    /// Its bytes.
    pub data: &'a [u8],
}

/// What the order rules remember of the frames of one run, or of one session of a stream.
///
/// It holds ids and counters, no text, and its size is bounded by [`limits`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckState {
    /// Who wrote the last frame, as a hash.
    writer: u64,
    /// Whether frames came before that were not checked, so that an unknown id proves nothing.
    joined: bool,
    /// Whether it was told that not all ids could be remembered.
    #[serde(default)]
    is_full: bool,
    order: Order,
}

impl CheckState {
    /// Begins with the first frame of a run.
    pub fn new(dialect: Dialect) -> Self {
        Self { writer: 0, joined: false, is_full: false, order: Order::new(dialect) }
    }

    /// Begins in the middle of a run: nothing is held against it that may have come before.
    pub fn joined(dialect: Dialect) -> Self {
        Self { joined: true, ..Self::new(dialect) }
    }

    /// Begins the next run of the same thread, which may answer calls that this one leaves open.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { writer: 0, joined: self.joined, is_full: false, order: self.order.next() }
    }

    /// Returns the dialect whose document is applied.
    pub fn dialect(&self) -> Dialect {
        self.order.dialect()
    }

    /// Goes over to another dialect: AG-UI may turn out to be social-app's, anything else begins in the middle.
    pub fn follow(&mut self, dialect: Dialect) {
        match (self.dialect(), dialect) {
            (known, new) if known == new => {}
            (Dialect::AgUi, Dialect::SocialApp) => {
                let order = std::mem::replace(&mut self.order, Order::new(dialect));
                self.order = order.into_social_app();
            }
            _ => *self = Self::joined(dialect),
        }
    }

    /// Returns whether a run is still open, for the end of a stream.
    pub fn has_open_run(&self) -> bool {
        self.order.has_open_run()
    }

    /// Lists what a frame breaks, and remembers the frame.
    ///
    /// The writer is any number that changes where another one goes on with the run, or the same one after a person's
    /// answer: it may count from the start, and say again that the run begins.
    pub fn check(&mut self, frame: CheckedFrame<'_>, writer: u64, side: Side) -> Vec<Finding> {
        let Ok(text) = std::str::from_utf8(frame.data) else { return Vec::new() };
        let dialect = self.dialect();
        let schema = Schema::of(dialect, side);
        let mut members = FrameMembers::new();
        // The kind decides which part of the schema applies.
        let kind = peek_kind(dialect, text);
        let kind = kind.and_then(|kind| schema.look(&kind).map(|look| (kind, look)));
        let (kind, is_sure) = match kind {
            Some((kind, mut look)) => {
                let root = look.root();
                let walked = members::walk(text, &mut members, &mut look, root);
                (Some(kind), walked && look.is_sure())
            }
            None if members::walk(text, &mut members, &mut Blind, ()) => (None, false),
            None => return Vec::new(),
        };
        let actual = kind_of(dialect, frame.name, &members);
        let is_sure = is_sure && kind.is_some_and(|kind| kind == actual);
        let mut findings = Vec::new();
        if !is_sure {
            self.check_shape(schema, frame, &actual, &members, &mut findings);
        }
        let memory = Memory::of(side);
        let seen = Seen { kind: &actual, name: frame.name, members: &members, side, memory: &memory };
        let mut misplaced = Vec::new();
        self.order.check(&seen, &mut misplaced);
        let goes_on = std::mem::replace(&mut self.writer, writer) == writer;
        findings.extend(misplaced.into_iter().filter(|finding| self.holds(finding, goes_on)));
        findings.truncate(limits::FINDINGS_OF_FRAME);
        if memory.is_full() && !std::mem::replace(&mut self.is_full, true) {
            findings.push(unjudged(memory.ids()));
        }
        findings
    }

    /// Returns whether a finding about the order holds with what is known of the frames before.
    fn holds(&self, finding: &Finding, goes_on: bool) -> bool {
        match finding.code {
            order::NOT_STARTED | order::NOT_OPEN => !self.joined,
            order::NOT_INCREASING | order::ALREADY_OPEN => goes_on,
            _ => true,
        }
    }

    fn check_shape(
        &self,
        schema: &Schema,
        frame: CheckedFrame<'_>,
        kind: &str,
        members: &FrameMembers<'_>,
        findings: &mut Vec<Finding>,
    ) {
        let Some(value) = parse(frame.data) else { return };
        if let Some(key) = keys::doubled(frame.data) {
            let message = "stands twice; some readers take the first value, Runwire the last";
            let finding = Finding::problem("doubled_key", message).at(&key);
            findings.push(finding.section(self.dialect().frames_section()));
        }
        match self.form(schema, frame.name, kind, members) {
            Shape::Documented => findings.extend(self.check_schema(schema, kind, &value)),
            Shape::Legacy(section, what) => {
                findings.push(Finding::note("legacy", format!("`{kind}` {what}")).section(section));
            }
            Shape::DataAlone => {
                let message = "the frame holds only the event's data; the document's has type, run_id, timestamp and data";
                findings.push(Finding::problem("no_envelope", message).section("统一事件模型"));
            }
            Shape::Unknown => {
                let broken = schema.check(kind, &value);
                findings.push(self.unknown(schema, kind, frame.data, !broken.is_empty()));
                findings.extend(broken);
            }
        }
    }

    /// Returns which part of the document, if any, a frame is of.
    fn form(&self, schema: &Schema, name: Option<&str>, kind: &str, members: &FrameMembers<'_>) -> Shape {
        let has = |key: &str| members.at(&[key]).is_some();
        match self.dialect() {
            Dialect::StreamingEngine if !has("metadata") && LEGACY_EVENTS.contains(&kind) => {
                Shape::Legacy("§6", "is of the legacy form, which is still read")
            }
            Dialect::Agio if name.is_some() && !has("type") => Shape::DataAlone,
            Dialect::AgUi if kind.starts_with("THINKING_") => {
                Shape::Legacy("BaseEvent", "is retired, and still read as REASONING_*")
            }
            Dialect::AgUi if CHUNKS.contains(&kind) => Shape::Documented,
            _ if schema.knows(kind) || kind.is_empty() => Shape::Documented,
            _ => Shape::Unknown,
        }
    }

    fn check_schema(&self, schema: &Schema, kind: &str, value: &Value) -> Vec<Finding> {
        let mut findings = schema.check(kind, value);
        for finding in &mut findings {
            let field = finding.field.as_deref().unwrap_or_default();
            if finding.code == "missing_field" && LEFT_OUT.contains(&(self.dialect(), kind, field)) {
                finding.severity = Severity::Note;
                finding.hint = Some("the document's own example leaves it out, so it is accepted".to_owned());
            }
        }
        findings
    }

    /// Reports a type that the document has not: it allows new ones, but not slips of its own.
    fn unknown(&self, schema: &Schema, kind: &str, data: &[u8], breaks_schema: bool) -> Finding {
        let known: Vec<&str> = schema.kinds().iter().map(String::as_str).collect();
        // A frame in the dialect's own envelope is not another's; Loom's may have none.
        let may_be_another = breaks_schema || self.dialect() == Dialect::Loom;
        let other = || {
            let dialect = detect(&Object::parse(data).ok()?).ok()?;
            let differs = may_be_another && !is_same_family(dialect, self.dialect());
            differs.then(|| format!("the frame looks like {dialect}; a stream has one dialect"))
        };
        let message = format!("`{kind}` is no event of the document; it is handed on as `foreign`");
        match (other(), nearest(kind, &known)) {
            (Some(other), _) => Finding::note("unknown_type", message).hint(other),
            (None, Some(near)) => {
                let pointer = if self.dialect() == Dialect::LoomExport { "" } else { "/type" };
                let finding = Finding::problem("likely_typo", message).at(pointer);
                finding.section(self.dialect().frames_section()).hint(format!("is `{near}` meant?"))
            }
            (None, None) => Finding::note("unknown_type", message),
        }
    }
}

/// Returns that from here on not everything is found.
fn unjudged(ids: usize) -> Finding {
    let message = format!(
        "there are more than {ids} ids of one kind to remember; from here on the check may miss an end without a \
         start and an id that is used again"
    );
    Finding::note(UNJUDGED, message)
}

/// What a frame is, measured by its dialect's document.
enum Shape {
    Documented,
    /// An older form: the section that allows it, and what to say.
    Legacy(&'static str, &'static str),
    /// Agio's data without its envelope, as some servers send it over SSE.
    DataAlone,
    Unknown,
}

const LEGACY_EVENTS: &[&str] =
    &["token", "tool_call", "tool_result", "thinking", "final_answer", "dataframe_data", "done", "error"];

/// Fields that a document's rules ask for and its examples leave out.
const LEFT_OUT: &[(Dialect, &str, &str)] = &[
    (Dialect::StreamingEngine, "session_start", "metadata.request_id"),
    (Dialect::EasyflowChat, "system/done", "payload"),
];

/// Official events that are read and never written, so that the schema does not describe them.
const CHUNKS: &[&str] = &["TEXT_MESSAGE_CHUNK", "TOOL_CALL_CHUNK", "REASONING_MESSAGE_CHUNK"];

/// Returns the kind of event that a frame is: its type, or what the dialect has in its place.
fn kind_of<'a>(dialect: Dialect, name: Option<&'a str>, members: &FrameMembers<'a>) -> Cow<'a, str> {
    let text = |key: &str| members.text(&[key]);
    match dialect {
        Dialect::EasyflowChat => match (text("domain"), text("type")) {
            (Some(domain), Some(kind)) => format!("{domain}/{kind}").to_lowercase().into(),
            // In the wild the end of a stream has no type.
            (Some(domain), None) if domain.eq_ignore_ascii_case("system") => "system/done".into(),
            (domain, kind) => domain.or(kind).unwrap_or_default(),
        },
        Dialect::LoomExport => members.keys().next().unwrap_or_default().to_owned().into(),
        Dialect::Loom if members.at(&["type"]).is_none() && members.at(&["reply"]).is_some() => {
            "reply".into()
        }
        Dialect::Agio => text("type").or(name.map(Cow::Borrowed)).unwrap_or_default(),
        _ => text("type").unwrap_or_default(),
    }
}

/// Returns the probable kind of a frame by a look at few of its bytes; [`kind_of`] decides.
fn peek_kind(dialect: Dialect, text: &str) -> Option<Cow<'_, str>> {
    match dialect {
        Dialect::EasyflowChat => {
            let [domain, kind] =
                members::peek(text, ["domain", "type"]).map(|json| json.and_then(members::unquoted));
            Some(format!("{}/{}", domain?, kind?).into())
        }
        Dialect::LoomExport => None,
        _ => match members::peek(text, ["type", "type"]) {
            [Some(kind), _] => members::unquoted(kind),
            _ if dialect == Dialect::Loom => Some("reply".into()),
            _ => None,
        },
    }
}

/// Returns whether frames of two dialects can look alike.
fn is_same_family(one: Dialect, other: Dialect) -> bool {
    let is_ag_ui = |dialect| matches!(dialect, Dialect::AgUi | Dialect::SocialApp);
    one == other || (is_ag_ui(one) && is_ag_ui(other))
}

/// Returns the section of a document that describes a frame.
pub fn section_of(dialect: Dialect, frame: CheckedFrame<'_>) -> Option<String> {
    let text = std::str::from_utf8(frame.data).ok()?;
    let mut members = FrameMembers::default();
    members::walk(text, &mut members, &mut Blind, ());
    Schema::of(dialect, Side::Reader).section_of_kind(&kind_of(dialect, frame.name, &members))
}

fn parse(data: &[u8]) -> Option<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(data);
    // The frame's nesting has been checked before.
    deserializer.disable_recursion_limit();
    Value::deserialize(&mut deserializer).ok()
}
