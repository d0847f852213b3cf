//! Checks frames against their dialect's document, for `runwire validate` and the server.
//!
//! Two layers: the document's JSON Schema, and the order of frames. The state of the second between two frames is a
//! [`CheckState`], which is small, bounded and stored with its run.

mod explain;
mod finding;
mod keys;
pub mod limits;
mod members;
pub mod nearest;
mod order;
mod quick_check;
mod rule;
mod schema;
mod typo;

use std::borrow::Cow;

use runwire_model::dialect::document::{FrameView, KindHint, OtherForm};
use runwire_model::dialect::{Dialect, detect};
use runwire_model::json::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use finding::{Finding, Severity};
pub use rule::Rule;

use crate::nearest::nearest;
use members::{FrameMembers, NoVisitor};
use order::{IdLimit, Order};
use quick_check::QuickCheck;
use schema::Schema;

/// The side whose frames are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A producer's frames on their way to the server, which adds the envelope and the starts of canonical events.
    Producer,
    /// A whole stream, as readers see it.
    Reader,
}

/// A frame that is one JSON object within the limits of the model.
#[derive(Debug, Clone, Copy)]
pub struct CheckedFrame<'a> {
    /// SSE event name.
    pub name: Option<&'a str>,
    /// Its bytes.
    pub data: &'a [u8],
}

/// Members of a frame, and the result of its quick check. Depends on the frame alone, not on those before it.
pub struct FrameScan<'a> {
    dialect: Dialect,
    side: Side,
    text: &'a str,
    members: FrameMembers<'a>,
    /// The kind whose schema the frame certainly keeps to.
    sure_of: Option<Cow<'a, str>>,
}

impl<'a> FrameScan<'a> {
    /// Scans a parsed frame.
    pub fn of(dialect: Dialect, side: Side, object: &Object<'a>, text: &'a str) -> Option<Self> {
        let kind = kind_of(dialect.document().kind_hint, object);
        let mut scan = Self::scan(dialect, side, text, kind, |members, visitor| match visitor {
            Some(visitor) => {
                let root = visitor.root();
                members::walk_object(object, members, visitor, root)
            }
            None => members::walk_object(object, members, &mut NoVisitor, ()),
        })?;
        scan.sure_of.take_if(|_| object.has_duplicate_keys());
        Some(scan)
    }

    fn of_text(dialect: Dialect, side: Side, text: &'a str) -> Option<Self> {
        // The kind decides which part of the schema applies.
        let kind = peek_kind(dialect.document().kind_hint, text);
        Self::scan(dialect, side, text, kind, |members, visitor| match visitor {
            Some(visitor) => {
                let root = visitor.root();
                members::walk(text, members, visitor, root)
            }
            None => members::walk(text, members, &mut NoVisitor, ()),
        })
    }

    fn scan(
        dialect: Dialect,
        side: Side,
        text: &'a str,
        kind: Option<Cow<'a, str>>,
        walk: impl FnOnce(&mut FrameMembers<'a>, Option<&mut QuickCheck<'static, 'a>>) -> bool,
    ) -> Option<Self> {
        let mut members = FrameMembers::new();
        let schema = Schema::of(dialect, side);
        let mut check = kind.as_deref().and_then(|kind| schema.quick_check(kind));
        let is_walked = walk(&mut members, check.as_mut());
        if check.is_none() && !is_walked {
            return None;
        }
        let sure_of = kind.filter(|_| is_walked && check.is_some_and(|check| check.is_sure()));
        Some(Self { dialect, side, text, members, sure_of })
    }

    /// Returns the dialect that it was scanned as.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }
}

/// State of the order check of one run, or of one session of a stream.
///
/// It holds ids and counters, no text, and its size is bounded by [`limits`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckState {
    /// Hash of the last frame's writer.
    writer: u64,
    /// Whether earlier frames were not checked, so that an unknown id proves nothing.
    joined: bool,
    /// Whether the memory limit was reported.
    #[serde(default)]
    is_full: bool,
    order: Order,
}

impl CheckState {
    /// Makes the state for the first frame of a run.
    pub fn new(dialect: Dialect) -> Self {
        Self { writer: 0, joined: false, is_full: false, order: Order::new(dialect) }
    }

    /// Makes the state for the middle of a run: findings that depend on earlier frames are dropped.
    pub fn joined(dialect: Dialect) -> Self {
        Self { joined: true, ..Self::new(dialect) }
    }

    /// Makes the state for the next run of the thread, which may answer calls that this one leaves open.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { writer: 0, joined: self.joined, is_full: false, order: self.order.next() }
    }

    /// Returns the dialect whose document is applied.
    pub fn dialect(&self) -> Dialect {
        self.order.dialect()
    }

    /// Switches to another dialect: a profile keeps the state, any other dialect begins in the middle.
    pub fn follow(&mut self, dialect: Dialect) {
        match (self.dialect(), dialect) {
            (known, new) if known == new => {}
            (known, new) if known.refinement() == Some(new) => self.order.refine(new),
            _ => *self = Self::joined(dialect),
        }
    }

    /// Returns true if a run is still open, for the end of a stream.
    pub fn has_open_run(&self) -> bool {
        self.order.has_open_run()
    }

    /// Checks a frame, and adds it to the state.
    ///
    /// `writer` is any number that changes when another writer continues the run, or the same one after a person's
    /// answer: its counters may start anew, and it may start the run again.
    pub fn check(&mut self, frame: CheckedFrame<'_>, writer: u64, side: Side) -> Vec<Finding> {
        let Ok(text) = std::str::from_utf8(frame.data) else { return Vec::new() };
        match FrameScan::of_text(self.dialect(), side, text) {
            Some(scan) => self.check_scanned(&scan, frame.name, writer),
            None => Vec::new(),
        }
    }

    /// Checks a frame that was scanned as one of this dialect: see [`CheckState::check`].
    pub fn check_scanned(&mut self, scan: &FrameScan<'_>, name: Option<&str>, writer: u64) -> Vec<Finding> {
        let dialect = self.dialect();
        let schema = Schema::of(dialect, scan.side);
        let actual = (dialect.document().kind)(&scan.members, name);
        let view = FrameView {
            kind: &actual,
            name,
            from_producer: scan.side == Side::Producer,
            fields: &scan.members,
        };
        let is_sure = scan.sure_of.as_ref().is_some_and(|kind| *kind == actual);
        let mut findings = Vec::new();
        if !is_sure {
            self.check_shape(schema, scan.text.as_bytes(), &view, &mut findings);
        }
        let id_limit = IdLimit::of(scan.side);
        let mut misplaced = Vec::new();
        self.order.check(&view, &id_limit, &mut misplaced);
        let goes_on = std::mem::replace(&mut self.writer, writer) == writer;
        findings.extend(misplaced.into_iter().filter(|finding| self.holds(finding, goes_on)));
        findings.truncate(limits::FINDINGS_OF_FRAME);
        if id_limit.was_reached() && !std::mem::replace(&mut self.is_full, true) {
            findings.push(unjudged(id_limit.ids()));
        }
        findings
    }

    /// Returns true if a finding about the order holds, given what is known of earlier frames.
    fn holds(&self, finding: &Finding, goes_on: bool) -> bool {
        match finding.rule {
            Rule::NotStarted | Rule::NotOpen => !self.joined,
            Rule::NotIncreasing | Rule::AlreadyOpen => goes_on,
            _ => true,
        }
    }

    fn check_shape(&self, schema: &Schema, data: &[u8], frame: &FrameView<'_>, findings: &mut Vec<Finding>) {
        let Some(value) = parse(data) else { return };
        if let Some(key) = keys::doubled(data) {
            let message = "stands twice; some readers take the first value, Runwire the last";
            let finding = Finding::problem(Rule::DoubledKey, message).at(&key);
            findings.push(finding.section(self.dialect().frames_section()));
        }
        let kind = frame.kind;
        match (self.dialect().document().form)(frame) {
            Some(OtherForm::Legacy { section, message }) => {
                findings.push(Finding::note(Rule::Legacy, format!("`{kind}` {message}")).section(section));
            }
            Some(OtherForm::NoEnvelope { section, message }) => {
                findings.push(Finding::problem(Rule::NoEnvelope, message).section(section));
            }
            None if !schema.knows(kind) && !kind.is_empty() => {
                let broken = schema.check(kind, &value);
                findings.push(self.unknown(schema, kind, data, !broken.is_empty()));
                findings.extend(broken);
            }
            None | Some(OtherForm::Undescribed) => findings.extend(self.check_schema(schema, kind, &value)),
        }
    }

    fn check_schema(&self, schema: &Schema, kind: &str, value: &Value) -> Vec<Finding> {
        let left_out = self.dialect().document().left_out;
        let mut findings = schema.check(kind, value);
        for finding in &mut findings {
            let field = finding.field.as_deref().unwrap_or_default();
            if finding.rule == Rule::MissingField && left_out.contains(&(kind, field)) {
                finding.severity = Severity::Note;
                finding.hint = Some("the document's own example leaves it out, so it is accepted".to_owned());
            }
        }
        findings
    }

    /// Reports an unknown type: the document allows new ones, but no typos of its own.
    fn unknown(&self, schema: &Schema, kind: &str, data: &[u8], breaks_schema: bool) -> Finding {
        let known: Vec<&str> = schema.kinds().iter().map(String::as_str).collect();
        let rules = self.dialect().document();
        // A frame in the dialect's own envelope is not another's.
        let may_be_another = breaks_schema || !rules.has_envelope;
        let other = || {
            let dialect = detect(&Object::parse(data).ok()?).ok()?;
            let differs = may_be_another && !is_same_family(dialect, self.dialect());
            differs.then(|| format!("the frame looks like {dialect}; a stream has one dialect"))
        };
        let message = format!("`{kind}` is no event of the document; it is handed on as `foreign`");
        match (other(), nearest(kind, &known)) {
            (Some(other), _) => Finding::note(Rule::UnknownType, message).hint(other),
            (None, Some(near)) => {
                let finding = Finding::problem(Rule::LikelyTypo, message).at(rules.kind_pointer);
                finding.section(self.dialect().frames_section()).hint(format!("is `{near}` meant?"))
            }
            (None, None) => Finding::note(Rule::UnknownType, message),
        }
    }
}

/// Makes the note that from here on not everything is found.
fn unjudged(ids: usize) -> Finding {
    let message = format!(
        "there are more than {ids} ids of one kind to remember; from here on the check may miss an end without a \
         start and an id that is used again"
    );
    Finding::note(Rule::Unjudged, message)
}

/// Returns the probable kind of a frame from few of its bytes; [`DocumentRules::kind`] decides.
///
/// [`DocumentRules::kind`]: runwire_model::dialect::document::DocumentRules::kind
fn peek_kind(hint: KindHint, text: &str) -> Option<Cow<'_, str>> {
    let peek = |keys: [&str; 2]| members::peek(text, keys);
    match hint {
        KindHint::Type => members::unquoted(peek(["type", "type"])[0]?),
        KindHint::TypeOr(other) => match peek(["type", "type"]) {
            [Some(kind), _] => members::unquoted(kind),
            _ => Some(other.into()),
        },
        KindHint::Pair(keys) => {
            let [first, second] = peek(keys).map(|json| json.and_then(members::unquoted));
            Some(format!("{}/{}", first?, second?).into())
        }
        KindHint::Unknown => None,
    }
}

/// Returns the probable kind of a parsed frame.
fn kind_of<'a>(hint: KindHint, object: &Object<'a>) -> Option<Cow<'a, str>> {
    let text = |key: &str| members::unquoted(object.get(key)?.get());
    match hint {
        KindHint::Type => text("type"),
        KindHint::TypeOr(other) if !object.has("type") => Some(other.into()),
        KindHint::TypeOr(_) => text("type"),
        KindHint::Pair([first, second]) => Some(format!("{}/{}", text(first)?, text(second)?).into()),
        KindHint::Unknown => None,
    }
}

/// Returns true if frames of two dialects can look alike.
fn is_same_family(one: Dialect, other: Dialect) -> bool {
    one == other || one.refinement() == Some(other) || other.refinement() == Some(one)
}

/// Returns the section of a document that describes a frame.
pub fn section_of(dialect: Dialect, frame: CheckedFrame<'_>) -> Option<String> {
    let text = std::str::from_utf8(frame.data).ok()?;
    let mut members = FrameMembers::default();
    members::walk(text, &mut members, &mut NoVisitor, ());
    Schema::of(dialect, Side::Reader).section_of_kind(&(dialect.document().kind)(&members, frame.name))
}

fn parse(data: &[u8]) -> Option<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(data);
    // The frame's nesting has been checked before.
    deserializer.disable_recursion_limit();
    Value::deserialize(&mut deserializer).ok()
}
