//! Checks the order of frames, which JSON Schema cannot express.
//!
//! One state machine serves all dialects. Each dialect's table (`dialect/<name>/document.rs` in the model) maps frames
//! to its terms: a run starts or ends, a part of it begins, continues or ends, a value grows.
//!
//! All memory is bounded. Once an id could not be remembered, an unknown one is no problem any more.

mod open;
mod run;

use std::borrow::Cow;

use runwire_model::dialect::Dialect;
use runwire_model::dialect::document::{
    ConstantRule, CounterRule, FieldLookup, FrameView, Growth, OrderRules, PartPhase, PartRule, ProducerRule,
    QuietEnd, RunNaming, RunPart, SecondBegin, UniqueIds,
};
use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::rule::Rule;
pub(super) use open::IdLimit;
use open::{LruMap, OpenIds, UsedIds, short};
use run::RunOrder;

/// Order state of one run, or of one session of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    dialect: Dialect,
    threads: LruMap<ThreadOrder>,
}

/// Order state of a thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ThreadOrder {
    /// Open calls: a run may leave one to the next.
    parts: OpenParts,
    used: UsedIds,
    counters: Counters,
    constant: Option<String>,
    runs: LruMap<RunOrder>,
}

impl Order {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, threads: LruMap::default() }
    }

    /// Returns the dialect.
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Checks the position of a frame in its stream.
    pub(super) fn check(&mut self, frame: &FrameView<'_>, id_limit: &IdLimit, findings: &mut Vec<Finding>) {
        let rules = &self.dialect.document().order;
        let thread = rules.life.thread.and_then(|pointer| frame.fields.text(pointer));
        let thread = self.threads.of(thread.as_deref());
        let word = (rules.word)(frame);
        let mut check = OrderCheck { rules, frame, word, id_limit, findings };
        check.event_name();
        thread.check(&mut check);
    }

    /// Returns true if a run is still open, for the end of the stream.
    pub(super) fn has_open_run(&self) -> bool {
        let rules = &self.dialect.document().order.life;
        self.threads.all().flat_map(|thread| thread.runs.all()).any(|run| run.is_open(rules))
    }

    /// Makes the state for the next run of the thread, which may answer calls that this one leaves open.
    pub(super) fn next(&self) -> Self {
        let last = self.threads.all().last();
        let carried = last.map(|thread| ThreadOrder {
            parts: thread.parts.clone(),
            used: thread.used.clone(),
            ..ThreadOrder::default()
        });
        Self {
            dialect: self.dialect,
            threads: carried.map(|thread| LruMap::with("", thread)).unwrap_or_default(),
        }
    }

    /// Switches to a profile of the dialect, which has the same parts.
    pub(super) fn refine(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        for thread in self.threads.all_mut() {
            let runs = thread.runs.all();
            let calls = runs.filter_map(|run| run.parts.get(RunPart::Arguments)).last().cloned();
            // Calls whose arguments are still to come have no result.
            thread.parts = calls.map(|calls| OpenParts::of(RunPart::Call, calls)).unwrap_or_default();
        }
    }
}

impl ThreadOrder {
    fn check(&mut self, check: &mut OrderCheck<'_, '_>) {
        let frame = check.frame;
        self.counters.check(check, |growth| growth != Growth::IncreasesEachFrame);
        let run = match check.rules.life.run {
            RunNaming::EachFrame(pointers) => {
                let id = pointers.iter().find_map(|pointer| frame.fields.text(pointer));
                let run = self.runs.of(id.as_deref());
                run.check_life(check, id.as_deref());
                run
            }
            RunNaming::OneAtATime { start } => {
                let starts = check.rules.life.starts.contains(&check.word);
                self.runs.of(None).check_life(check, None);
                match start.filter(|_| starts) {
                    Some(pointer) => self.runs.rename_last(&frame.fields.text(pointer).unwrap_or_default()),
                    None => self.runs.of(None),
                }
            }
        };
        if let Some(rule) = &check.rules.constant {
            check_constant(&mut self.constant, rule, check);
        }
        run.counters.check(check, |growth| growth == Growth::IncreasesEachFrame);
        let word = check.word;
        for rule in check.rules.parts.iter().filter(|rule| rule.word == word) {
            let parts = if rule.part == RunPart::Call { &mut self.parts } else { &mut run.parts };
            let used = if rule.unique == Some(UniqueIds::InThread) { &mut self.used } else { &mut run.used };
            check.part(rule, parts.get_mut(rule.part), used);
        }
        run.check_completeness(check);
    }
}

/// Checks a value that all frames of a stream share.
fn check_constant(known: &mut Option<String>, rule: &ConstantRule, check: &mut OrderCheck<'_, '_>) {
    let Some(id) = check.frame.fields.text(rule.pointer) else { return };
    match known {
        Some(known) if *known != short(&id) => {
            let message = format!("is `{id}`; the stream is of the {} `{known}`", rule.noun);
            check
                .findings
                .push(Finding::problem(Rule::Changed, message).at(rule.pointer).section(rule.section));
        }
        Some(_) => {}
        None => *known = Some(short(&id).into_owned()),
    }
}

/// Check of one frame.
struct OrderCheck<'c, 'f> {
    rules: &'static OrderRules,
    frame: &'c FrameView<'f>,
    /// The word that identifies the frame in the rules.
    word: &'c str,
    id_limit: &'c IdLimit,
    findings: &'c mut Vec<Finding>,
}

impl OrderCheck<'_, '_> {
    fn event_name(&mut self) {
        let Some((rule, name)) = self.rules.event_name.as_ref().zip(self.frame.name) else { return };
        if let Some(message) = (rule.problem)(self.frame, name) {
            let finding = Finding::problem(Rule::BadEventName, message).field("event").section(rule.section);
            self.findings.push(finding);
        }
    }

    fn part(&mut self, rule: &PartRule, open: &mut OpenIds, used: &mut UsedIds) {
        if self.frame.from_producer && rule.from_producer == ProducerRule::Exempt {
            return;
        }
        let Some(id) = self.id(rule) else { return };
        let id = &*id;
        let finding = match rule.phase {
            PartPhase::Begins => {
                let is_new = rule.unique.is_none() || used.add(id, self.id_limit);
                let limit = match rule.again {
                    SecondBegin::Refused | SecondBegin::Ignored => 1,
                    SecondBegin::Nested(limit) => limit(id),
                };
                let begins =
                    open.open(id, limit, self.id_limit) || matches!(rule.again, SecondBegin::Ignored);
                match (begins, is_new) {
                    (false, _) => Some(already_open(rule.section, rule.pointer, rule.noun, id)),
                    (true, false) => Some(already_used(rule, id)),
                    (true, true) => None,
                }
            }
            PartPhase::GoesOn if self.frame.from_producer && rule.from_producer == ProducerRule::Begins => {
                open.open(id, 1, self.id_limit);
                None
            }
            PartPhase::GoesOn => (!open.has(id)).then(|| not_open(rule, id)),
            PartPhase::Ends => {
                let was_open = open.close(id);
                let is_quiet = match rule.quiet {
                    QuietEnd::Never => false,
                    QuietEnd::Always => true,
                    QuietEnd::With(pointer) => self.frame.fields.has(pointer),
                };
                (!was_open && !is_quiet).then(|| not_open(rule, id))
            }
        };
        self.findings.extend(finding.map(|finding| match rule.hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        }));
    }

    /// Returns the id of a frame's part.
    fn id(&self, rule: &PartRule) -> Option<Cow<'_, str>> {
        let fields = self.frame.fields;
        let mut pointers = rule.id.iter();
        if rule.has_number {
            return pointers.find_map(|pointer| fields.json(pointer)).map(Cow::Borrowed);
        }
        let id = pointers.find_map(|pointer| fields.text(pointer))?;
        Some(match rule.within.and_then(|pointer| fields.text(pointer)) {
            Some(around) => format!("{id} of {around}").into(),
            None => id,
        })
    }
}

/// Open parts of a run or thread, by kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct OpenParts(Vec<(RunPart, OpenIds)>);

impl OpenParts {
    fn of(part: RunPart, ids: OpenIds) -> Self {
        Self(vec![(part, ids)])
    }

    fn get(&self, part: RunPart) -> Option<&OpenIds> {
        self.0.iter().find(|(known, _)| *known == part).map(|(_, ids)| ids)
    }

    fn get_mut(&mut self, part: RunPart) -> &mut OpenIds {
        let at = self.0.iter().position(|(known, _)| *known == part).unwrap_or_else(|| {
            self.0.push((part, OpenIds::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

/// Last values of counters of a run or thread, in the order of the rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Counters(Vec<LruMap<Option<CounterValue>>>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum CounterValue {
    Number(f64),
    Time(String),
}

/// Limits the texts that are compared as times.
const TIME_BYTES: usize = 64;

impl Counters {
    fn check(&mut self, check: &mut OrderCheck<'_, '_>, is_kept_here: impl Fn(Growth) -> bool) {
        let kept_here = check.rules.counters.iter().filter(|rule| is_kept_here(rule.growth));
        for (at, rule) in kept_here.enumerate() {
            let Some(value) = CounterValue::of(check.frame.fields, rule) else { continue };
            if self.0.len() <= at {
                self.0.resize(at + 1, LruMap::default());
            }
            let within = rule.within.map(|pointer| check.frame.fields.text(pointer).unwrap_or_default());
            if let Some(last) = self.0[at].of(within.as_deref()).replace(value.clone())
                && let Some(message) = value.problem_after(&last, rule.growth)
            {
                let finding = Finding::problem(Rule::NotIncreasing, message).at(rule.pointer);
                check.findings.push(finding.section(rule.section));
            }
        }
    }
}

impl CounterValue {
    fn of(fields: &dyn FieldLookup, rule: &CounterRule) -> Option<Self> {
        match rule.growth {
            Growth::TimeNeverDecreases => {
                let time = fields.text(rule.pointer).filter(|time| time.len() <= TIME_BYTES)?;
                Some(Self::Time(time.into_owned()))
            }
            Growth::IncreasesEachFrame | Growth::NeverDecreases => {
                fields.number(rule.pointer).map(Self::Number)
            }
        }
    }

    /// Returns the problem of a value after the last one.
    fn problem_after(&self, last: &Self, growth: Growth) -> Option<String> {
        match (self, last) {
            (Self::Number(value), Self::Number(last)) if growth == Growth::IncreasesEachFrame => {
                (value <= last).then(|| format!("is {value} after {last}; it grows with every frame"))
            }
            (Self::Number(value), Self::Number(last)) => (value < last)
                .then(|| format!("is {value} after {last}; it never goes backwards in a thread")),
            // Times of one form compare as their text does.
            (Self::Time(value), Self::Time(last)) => (value.len() == last.len() && value < last)
                .then(|| format!("is {value} after {last}; time never goes backwards in a thread")),
            _ => None,
        }
    }
}

/// A part that ends or goes on without having begun.
fn not_open(rule: &PartRule, id: &str) -> Finding {
    let message = format!("no {} `{id}` is open here", rule.noun);
    Finding::problem(Rule::NotOpen, message).at(rule.pointer).section(rule.section)
}

/// A part that begins while it is open.
fn already_open(section: &str, pointer: &str, noun: &str, id: &str) -> Finding {
    Finding::problem(Rule::AlreadyOpen, format!("the {noun} `{id}` is open already"))
        .at(pointer)
        .section(section)
}

/// A part that begins with an id which another one had.
fn already_used(rule: &PartRule, id: &str) -> Finding {
    let message = format!("`{id}` was used for another {} before", rule.noun);
    let finding = Finding::problem(Rule::AlreadyUsed, message).at(rule.pointer).section(rule.section);
    finding.hint(format!("each {} has an id of its own", rule.noun))
}
