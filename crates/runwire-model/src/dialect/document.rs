//! Rules of a dialect's document beyond the JSON Schema: the names of event kinds, other accepted forms, and the order
//! of frames.
//!
//! A dialect fills these tables in; `runwire-check` applies them to frames.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Looks up fields of a frame.
pub trait FieldLookup {
    /// Returns the JSON text of the value that a JSON pointer leads to.
    fn json(&self, pointer: &str) -> Option<&str>;

    /// Returns the first key of the frame.
    fn first_key(&self) -> Option<&str>;

    /// Returns the string that a JSON pointer leads to.
    fn text(&self, pointer: &str) -> Option<Cow<'_, str>> {
        let json = self.json(pointer)?;
        let inner = json.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            serde_json::from_str(json).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// Returns the number that a JSON pointer leads to.
    fn number(&self, pointer: &str) -> Option<f64> {
        self.json(pointer).filter(|json| !json.starts_with('"'))?.parse().ok()
    }

    /// Returns whether a JSON pointer leads to a value.
    fn has(&self, pointer: &str) -> bool {
        self.json(pointer).is_some()
    }
}

/// A frame as the rules of a document see it.
#[derive(Clone, Copy)]
pub struct FrameView<'f> {
    /// The kind of event: its type, or what the dialect has in its place.
    pub kind: &'f str,
    /// The SSE event name.
    pub name: Option<&'f str>,
    /// Whether a producer sends it to the server, which adds the envelope and starts of canonical events.
    pub from_producer: bool,
    /// Its fields.
    pub fields: &'f dyn FieldLookup,
}

/// The rules of a dialect's document.
pub struct DocumentRules {
    /// Returns the kind of event that a frame is.
    pub kind: for<'f> fn(&'f dyn FieldLookup, Option<&'f str>) -> Cow<'f, str>,
    /// Probable location of the kind.
    pub kind_hint: KindHint,
    /// JSON pointer to the kind.
    pub kind_pointer: &'static str,
    /// Returns the form of a frame that the schema does not describe.
    pub form: fn(&FrameView<'_>) -> Option<OtherForm>,
    /// Required fields that the document's own examples leave out: kind, and path of the field.
    pub left_out: &'static [(&'static str, &'static str)],
    /// Whether all frames share an envelope, so that an unknown kind inside it is not another dialect's.
    pub has_envelope: bool,
    /// Relaxes the schema for frames of producers.
    pub relax_for_producers: fn(&mut Value),
    /// The order of frames.
    pub order: OrderRules,
}

impl DocumentRules {
    /// The rules of a document whose frames have a `type`, with an order.
    pub const fn with_order(order: OrderRules) -> Self {
        Self {
            kind: |fields, _| fields.text("/type").unwrap_or_default(),
            kind_hint: KindHint::Type,
            kind_pointer: "/type",
            form: |_| None,
            left_out: &[],
            has_envelope: true,
            relax_for_producers: |_| {},
            order,
        }
    }
}

/// Probable location of a frame's kind, for a quick look at few of its bytes.
#[derive(Debug, Clone, Copy)]
pub enum KindHint {
    /// In `type`.
    Type,
    /// In `type`; a frame without it is of this kind.
    TypeOr(&'static str),
    /// In two fields, with a slash between them.
    Pair([&'static str; 2]),
    /// No fixed location.
    Unknown,
}

/// A form of frames that the schema does not describe.
#[derive(Debug, Clone, Copy)]
pub enum OtherForm {
    /// An older form that is still read.
    Legacy {
        /// Section that allows it.
        section: &'static str,
        /// What it is, after its kind.
        message: &'static str,
    },
    /// The data of an event without the document's envelope.
    NoEnvelope {
        /// Section about the envelope.
        section: &'static str,
        /// What is missing.
        message: &'static str,
    },
    /// An event of the document that the schema leaves out.
    Undescribed,
}

/// Rules of the order of frames.
pub struct OrderRules {
    /// Returns the word that identifies a frame in the tables below, if it is not the kind.
    pub word: for<'f> fn(&FrameView<'f>) -> &'f str,
    /// The life of a run.
    pub life: LifeRules,
    /// Rules of the parts of a run, which begin, continue and end within it.
    pub parts: &'static [PartRule],
    /// Values that grow.
    pub counters: &'static [CounterRule],
    /// A value that all frames share.
    pub constant: Option<ConstantRule>,
    /// Rule of SSE event names.
    pub event_name: Option<EventNameRule>,
}

impl OrderRules {
    /// Makes the rules of frames that are identified by their kind, without counters and constants.
    pub const fn new(life: LifeRules, parts: &'static [PartRule]) -> Self {
        Self { word: |frame| frame.kind, life, parts, counters: &[], constant: None, event_name: None }
    }
}

/// The rules about the start and the end of a run.
pub struct LifeRules {
    /// JSON pointer to the thread's id, where a stream holds several threads.
    pub thread: Option<&'static str>,
    /// How frames name their run.
    pub run: RunNaming,
    /// Section about starts and ends.
    pub section: &'static str,
    /// Words that start a run.
    pub starts: &'static [&'static str],
    /// The frame that must be first, and the section that requires it.
    pub first: Option<(&'static str, &'static str)>,
    /// Returns true if another frame may be first.
    pub may_be_first: fn(&FrameView<'_>) -> bool,
    /// Meaning of a start while the run is open.
    pub second_start: SecondStart,
    /// Whether a run without a start is not open.
    pub needs_start: bool,
    /// Words that end a run, each with the name of that end.
    pub ends: &'static [(&'static str, &'static str)],
    /// Words that may start the next run after an end.
    pub restarts: &'static [&'static str],
    /// Words that may follow an end, each after the name of that end.
    pub may_follow: &'static [(&'static str, &'static str)],
    /// Hint for frames after an end.
    pub after_end: &'static str,
    /// Parts that must have ended before the run does.
    pub completeness: Option<CompletenessRule>,
}

impl LifeRules {
    /// Makes the rules of runs that these words start and end.
    pub const fn new(
        section: &'static str,
        starts: &'static [&'static str],
        ends: &'static [(&'static str, &'static str)],
        after_end: &'static str,
    ) -> Self {
        Self {
            thread: None,
            run: RunNaming::OneAtATime { start: None },
            section,
            starts,
            first: None,
            may_be_first: |_| false,
            second_start: SecondStart::Ignored,
            needs_start: false,
            ends,
            restarts: starts,
            may_follow: &[],
            after_end,
            completeness: None,
        }
    }
}

/// How frames name their run.
#[derive(Debug, Clone, Copy)]
pub enum RunNaming {
    /// Every frame, at the first of these JSON pointers that leads to a string. One without belongs to the run of the
    /// frame before.
    EachFrame(&'static [&'static str]),
    /// At most the start, at this JSON pointer: a stream has one run at a time.
    OneAtATime {
        /// JSON pointer in the frame that starts a run.
        start: Option<&'static str>,
    },
}

/// Meaning of the start of a run while the run is open.
#[derive(Debug, Clone, Copy)]
pub enum SecondStart {
    /// Nothing.
    Ignored,
    /// The next run begins.
    Restarts,
    /// The next run begins, and the start is a problem.
    RestartsWrongly {
        /// Section about it.
        section: &'static str,
        /// What is wrong.
        message: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// The start is a problem.
    Refused {
        /// Section about it.
        section: &'static str,
        /// The document's word for a run.
        noun: &'static str,
        /// JSON pointer to its name.
        pointer: &'static str,
    },
}

/// The parts that must have ended before a run ends.
pub struct CompletenessRule {
    /// Word of the end.
    pub word: &'static str,
    /// Section about it.
    pub section: &'static str,
    /// What to do instead.
    pub hint: &'static str,
    /// The parts, each with its plural.
    pub parts: &'static [(RunPart, &'static str)],
}

/// What begins, goes on and ends within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPart {
    /// A message.
    Text,
    /// A thought.
    Thinking,
    /// A span around thoughts.
    ThinkingSpan,
    /// A step, or a node of a graph.
    Step,
    /// A call whose arguments are being streamed.
    Arguments,
    /// A call without a result. A run may leave it to the next one of the thread.
    Call,
    /// A request to a person.
    Interaction,
    /// A subagent.
    Subagent,
}

/// Phase of a part that a frame stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartPhase {
    /// The part begins.
    Begins,
    /// The part continues: it must have begun.
    GoesOn,
    /// The part ends: it must have begun.
    Ends,
}

/// Meaning of one kind of frame for a part.
#[derive(Clone, Copy)]
pub struct PartRule {
    /// Word of the frame.
    pub word: &'static str,
    /// The part.
    pub part: RunPart,
    /// The phase that the frame stands for.
    pub phase: PartPhase,
    /// The document's word for the part.
    pub noun: &'static str,
    /// JSON pointers to the id; the first that leads to a value counts.
    pub id: &'static [&'static str],
    /// JSON pointer for findings.
    pub pointer: &'static str,
    /// Section that describes the frame.
    pub section: &'static str,
    /// Whether the id is a number.
    pub has_number: bool,
    /// JSON pointer to the id of the scope of the part's ids.
    pub within: Option<&'static str>,
    /// Meaning of a second begin while the part is open.
    pub again: SecondBegin,
    /// Whether an id may be used only once.
    pub unique: Option<UniqueIds>,
    /// Whether an end without a begin is allowed.
    pub quiet: QuietEnd,
    /// How the rule applies to frames of producers.
    pub from_producer: ProducerRule,
    /// Hint for findings.
    pub hint: Option<&'static str>,
}

impl PartRule {
    /// Makes a rule without exceptions.
    pub const fn new(
        word: &'static str,
        phase: PartPhase,
        part: RunPart,
        noun: &'static str,
        id: &'static [&'static str],
        section: &'static str,
    ) -> Self {
        Self {
            word,
            part,
            phase,
            noun,
            id,
            pointer: id[0],
            section,
            has_number: false,
            within: None,
            again: SecondBegin::Refused,
            unique: None,
            quiet: QuietEnd::Never,
            from_producer: ProducerRule::Same,
            hint: None,
        }
    }
}

/// Meaning of a second begin of a part while it is open.
#[derive(Debug, Clone, Copy)]
pub enum SecondBegin {
    /// It is a problem.
    Refused,
    /// Nothing.
    Ignored,
    /// The part is open once more, up to as many times as this returns for its id.
    Nested(fn(&str) -> usize),
}

/// Scope in which an id may be used only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UniqueIds {
    /// In a run.
    InRun,
    /// In a thread.
    InThread,
}

/// When an end without a begin is allowed.
#[derive(Debug, Clone, Copy)]
pub enum QuietEnd {
    /// Never.
    Never,
    /// Always.
    Always,
    /// If this JSON pointer leads to a value.
    With(&'static str),
}

/// How a rule applies to frames of producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProducerRule {
    /// Like any other frame.
    Same,
    /// Not at all: people do it, and frames of producers do not show it.
    Exempt,
    /// A continued part has begun: the guard adds its start.
    Begins,
}

/// Rule of a value that grows.
pub struct CounterRule {
    /// JSON pointer to the value.
    pub pointer: &'static str,
    /// Section about it.
    pub section: &'static str,
    /// How it grows.
    pub growth: Growth,
    /// JSON pointer to the id of the scope that it counts in, if it is not the run.
    pub within: Option<&'static str>,
}

/// How a value grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// A number, with every frame of a run.
    IncreasesEachFrame,
    /// A number that never decreases in a thread.
    NeverDecreases,
    /// A time, as text, that never gets earlier in a thread.
    TimeNeverDecreases,
}

/// Rule of a value that all frames of a stream share.
pub struct ConstantRule {
    /// JSON pointer to the value.
    pub pointer: &'static str,
    /// Section about it.
    pub section: &'static str,
    /// The document's word for it.
    pub noun: &'static str,
}

/// Rule of SSE event names.
pub struct EventNameRule {
    /// Section about them.
    pub section: &'static str,
    /// Returns the problem of a frame's name.
    pub problem: fn(&FrameView<'_>, &str) -> Option<String>,
}
