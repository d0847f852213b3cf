//! `runwire validate`: everything in a stream that breaks its dialect's document.
//!
//! Three layers, from the bytes up: what is no frame at all; what the document's JSON Schema forbids; and what
//! may not stand where it stands, by the rules about order and by the guard that every run passes.

mod explain;
mod finding;
mod keys;
mod order;
mod schema;

use std::collections::HashSet;

use runwire_model::convert::{Converter, Options, Problem};
use runwire_model::dialect::{DecodeError, Dialect, detect};
use runwire_model::framing::{Frame, FramingError};
use runwire_model::json::Object;
use runwire_model::run::Refusal;
use serde::Deserialize;
use serde_json::Value;

use crate::Verdict;
use crate::arguments::{Source, ValidateArguments};
use crate::ending;
use crate::failure::Failure;
use crate::hint;
use crate::input::Input;
use crate::nearest::nearest;
use crate::screen::Screen;
use finding::{Finding, Report, Severity};
use order::{Rules, Seen};
use schema::Schema;

/// Checks a stream to its end.
pub(crate) fn run(arguments: &ValidateArguments) -> Result<Verdict, Failure> {
    let mut input = Input::open(arguments.file.as_deref(), arguments.input_framing.named())?;
    let screen = Screen::new(input.size());
    let mut validation = Validation::new(arguments);
    loop {
        while let Some(cut) = input.next() {
            match cut {
                Ok(frame) => validation.frame(frame)?,
                Err(error) => validation.no_frame(&error)?,
            }
        }
        screen.advance(input.bytes_read());
        validation.report.flush()?;
        if !input.fill()? {
            break;
        }
    }
    validation.end()?;
    screen.finish();
    screen.summary(validation.summary());
    Ok(if validation.report.problems == 0 { Verdict::Fine } else { Verdict::HasProblems })
}

struct Validation {
    named: Option<Dialect>,
    judge: Option<Judge>,
    /// Frames that came before the dialect was known.
    waiting: Vec<Waiting>,
    report: Report,
    frames: u64,
    last_line: u64,
}

struct Waiting {
    line: u64,
    name: Option<String>,
    data: Vec<u8>,
    ambiguity: String,
}

/// Frames that may come before the dialect is known.
const WAITING: usize = 16;

impl Validation {
    fn new(arguments: &ValidateArguments) -> Self {
        let named = arguments.dialect.named();
        Self {
            named,
            judge: named.map(|dialect| Judge::new(dialect, Source::Named(dialect))),
            waiting: Vec::new(),
            report: Report::new(arguments.json),
            frames: 0,
            last_line: 1,
        }
    }

    fn dialect(&self) -> Option<Dialect> {
        self.judge.as_ref().map(|judge| judge.dialect).or(self.named)
    }

    fn tell(&mut self, line: u64, findings: &[Finding]) -> Result<(), Failure> {
        let dialect = self.dialect();
        findings.iter().try_for_each(|finding| self.report.write(line, dialect, finding))
    }

    fn no_frame(&mut self, error: &FramingError) -> Result<(), Failure> {
        let mut finding =
            Finding::problem(error.code(), error.to_string()).maybe_hint(hint::for_code(error.code()));
        finding.section = self.dialect().map(|dialect| frames_section(dialect).to_owned());
        if !error.can_continue() {
            finding.message = format!("{}; the rest of the stream cannot be read", finding.message);
        }
        self.tell(error.line(), &[finding])
    }

    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Failure> {
        self.frames += 1;
        self.last_line = frame.line;
        if ending::is_done_marker(frame.data) {
            return self
                .tell(frame.line, &[Finding::note("done_marker", "`[DONE]` is no event of any dialect")]);
        }
        let object = match Object::parse(frame.data) {
            Ok(object) => object,
            Err(fault) => {
                let mut finding = Finding::problem(fault.code(), fault.to_string())
                    .maybe_hint(hint::for_code(fault.code()));
                finding.section = self.dialect().map(|dialect| frames_section(dialect).to_owned());
                return self.tell(frame.line, &[finding]);
            }
        };
        if self.judge.is_none() {
            match detect(&object) {
                Ok(dialect) => self.detected(dialect)?,
                Err(ambiguous) if self.waiting.len() < WAITING => {
                    self.waiting.push(Waiting {
                        line: frame.line,
                        name: frame.name.map(str::to_owned),
                        data: frame.data.to_owned(),
                        ambiguity: ambiguous.to_string(),
                    });
                    return Ok(());
                }
                // What could not be told from so many frames will not be told from more.
                Err(_) => return Ok(()),
            }
        }
        self.judge(frame)
    }

    fn detected(&mut self, dialect: Dialect) -> Result<(), Failure> {
        self.judge = Some(Judge::new(dialect, Source::Auto));
        for waiting in std::mem::take(&mut self.waiting) {
            self.judge(Frame { name: waiting.name.as_deref(), data: &waiting.data, line: waiting.line })?;
        }
        Ok(())
    }

    fn judge(&mut self, frame: Frame<'_>) -> Result<(), Failure> {
        let Some(judge) = &mut self.judge else { return Ok(()) };
        let findings = judge.judge(frame);
        self.tell(frame.line, &findings)
    }

    fn end(&mut self) -> Result<(), Failure> {
        if let Some(first) = self.waiting.first() {
            let finding =
                Finding::problem("dialect_ambiguous", first.ambiguity.clone()).hint("name it with --dialect");
            let line = first.line;
            self.tell(line, &[finding])?;
        }
        if self.judge.as_ref().is_some_and(|judge| judge.rules.has_open_run()) {
            let message = "the stream ends before the run does; a reader would be told that it failed";
            self.tell(self.last_line, &[Finding::note("stream_ended", message)])?;
        }
        self.report.flush()
    }

    fn summary(&self) -> String {
        let counted = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let dialect = self.dialect().map_or("unknown dialect", Dialect::name);
        let frames = counted(self.frames, "frame");
        let problems = counted(self.report.problems, "problem");
        match self.report.notes {
            0 => format!("{dialect}: {frames}, {problems}"),
            notes => format!("{dialect}: {frames}, {problems}, {}", counted(notes, "note")),
        }
    }
}

/// Judges the frames of one dialect.
struct Judge {
    dialect: Dialect,
    source: Source,
    schema: Schema,
    rules: Box<dyn Rules>,
    /// The rules of social-app, which see what AG-UI's see until the stream shows whose it is.
    profile: Option<Box<dyn Rules>>,
    converter: Converter,
    /// Kinds of event that have been noted once.
    noted: HashSet<String>,
}

/// Kinds of event that are noted; more than that would be noise.
const NOTED: usize = 64;

impl Judge {
    fn new(dialect: Dialect, source: Source) -> Self {
        let options = Options { from: Some(dialect), ..Options::to(Dialect::Runwire) };
        let may_turn_out = source == Source::Auto && dialect == Dialect::AgUi;
        Self {
            dialect,
            source,
            schema: Schema::of(dialect),
            rules: order::rules(dialect),
            profile: may_turn_out.then(|| order::rules(Dialect::SocialApp)),
            converter: Converter::new(options),
            noted: HashSet::new(),
        }
    }

    fn judge(&mut self, frame: Frame<'_>) -> Vec<Finding> {
        let refused = self.converter.push(frame.line, frame.name, frame.data, &mut |_| {}).err();
        self.follow_the_decoder();
        let Some(value) = parse(frame.data) else { return Vec::new() };
        let mut findings = Vec::new();
        if let Some(key) = keys::doubled(frame.data) {
            let message = "stands twice; some readers take the first value, Runwire the last";
            let finding = Finding::problem("doubled_key", message).field(key);
            findings.push(finding.section(frames_section(self.dialect)));
        }
        let kind = kind_of(self.dialect, frame.name, &value);
        self.check_shape(frame, &kind, &value, &mut findings);
        let breaks_schema = !findings.is_empty();
        let seen = Seen { kind: &kind, name: frame.name, value: &value };
        self.rules.check(&seen, &mut findings);
        if let Some(profile) = &mut self.profile {
            profile.check(&seen, &mut Vec::new());
        }
        if let Some(error) = refused {
            self.add_refusal(&error.problem, frame, &kind, breaks_schema, &mut findings);
        }
        findings
    }

    /// Goes from AG-UI to social-app's profile where the stream shows it, unless the person has decided.
    fn follow_the_decoder(&mut self) {
        let Some(dialect) = self.converter.dialect() else { return };
        if self.source == Source::Auto && dialect != self.dialect {
            self.dialect = dialect;
            self.schema = Schema::of(dialect);
            self.rules = self.profile.take().unwrap_or_else(|| order::rules(dialect));
        }
    }

    fn check_shape(&mut self, frame: Frame<'_>, kind: &str, value: &Value, findings: &mut Vec<Finding>) {
        match self.form(frame.name, kind, value) {
            Shape::Documented => findings.extend(self.check_schema(kind, value)),
            Shape::Legacy(section, what) => {
                if self.is_new(kind) {
                    findings.push(Finding::note("legacy", format!("`{kind}` {what}")).section(section));
                }
            }
            Shape::DataAlone => {
                let message = "the frame holds only the event's data; the document's has type, run_id, timestamp and data";
                findings.push(Finding::problem("no_envelope", message).section("统一事件模型"));
            }
            Shape::Unknown => {
                let broken = self.schema.check(value);
                if self.is_new(kind) {
                    findings.push(self.unknown(kind, frame.data, !broken.is_empty()));
                }
                findings.extend(broken);
            }
        }
    }

    /// Tells which part of the document, if any, a frame is of.
    fn form(&self, name: Option<&str>, kind: &str, value: &Value) -> Shape {
        let has = |key: &str| value.get(key).is_some();
        match self.dialect {
            Dialect::StreamingEngine if !has("metadata") && LEGACY_EVENTS.contains(&kind) => {
                Shape::Legacy("§6", "is of the legacy form, which is still read")
            }
            Dialect::Agio if name.is_some() && !has("type") => Shape::DataAlone,
            Dialect::AgUi if kind.starts_with("THINKING_") => {
                Shape::Legacy("BaseEvent", "is retired, and still read as REASONING_*")
            }
            Dialect::AgUi if CHUNKS.contains(&kind) => Shape::Documented,
            _ if self.schema.knows(kind) || kind.is_empty() => Shape::Documented,
            _ => Shape::Unknown,
        }
    }

    fn check_schema(&self, kind: &str, value: &Value) -> Vec<Finding> {
        let mut findings = self.schema.check(value);
        for finding in &mut findings {
            let field = finding.field.as_deref().unwrap_or_default();
            if finding.code == "missing_field" && LEFT_OUT.contains(&(self.dialect, kind, field)) {
                finding.severity = Severity::Note;
                finding.hint = Some("the document's own example leaves it out, so it is accepted".to_owned());
            }
        }
        findings
    }

    fn unknown(&self, kind: &str, data: &[u8], breaks_schema: bool) -> Finding {
        let message = format!("`{kind}` is no event of the document; it is handed on as `foreign`");
        let known: Vec<&str> = self.schema.kinds().iter().map(String::as_str).collect();
        let near = || nearest(kind, &known).map(|near| format!("is `{near}` meant?"));
        // A frame in the dialect's own envelope is not another's; Loom's may have none.
        let may_be_another = breaks_schema || self.dialect == Dialect::Loom;
        let other = || {
            let dialect = detect(&Object::parse(data).ok()?).ok()?;
            let differs = may_be_another && !is_same_family(dialect, self.dialect);
            differs.then(|| format!("the frame looks like {dialect}; a stream has one dialect"))
        };
        Finding::note("unknown_type", message).maybe_hint(other().or_else(near))
    }

    fn is_new(&mut self, kind: &str) -> bool {
        self.noted.len() < NOTED && kind.len() <= 256 && self.noted.insert(kind.to_owned())
    }

    /// Adds what the decoder and the guard say, where it was not said before.
    fn add_refusal(
        &self,
        problem: &Problem,
        frame: Frame<'_>,
        kind: &str,
        breaks_schema: bool,
        findings: &mut Vec<Finding>,
    ) {
        let field = match problem {
            Problem::Decode(DecodeError::Refused(Refusal::RunClosed(status))) => {
                let again = ending::says_the_end_again(self.dialect, frame.name, frame.data, *status);
                let told = findings.iter_mut().find(|finding| finding.code == order::AFTER_END);
                match told {
                    Some(told) if again => {
                        told.severity = Severity::Note;
                        return;
                    }
                    Some(_) => return,
                    None => None,
                }
            }
            Problem::Decode(DecodeError::Field(_)) if breaks_schema => return,
            Problem::Decode(DecodeError::Field(error)) => Some(error.field.clone()),
            _ => None,
        };
        let message = match problem {
            Problem::Decode(DecodeError::Field(error)) => error.problem.clone(),
            other => other.to_string(),
        };
        let finding = Finding::problem(problem.code(), message);
        findings.push(Finding { field, section: self.schema.section_of_kind(kind), ..finding });
    }
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

/// Tells the kind of event that a frame is: its type, or what the dialect has in its place.
fn kind_of(dialect: Dialect, name: Option<&str>, value: &Value) -> String {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    match dialect {
        Dialect::EasyflowChat => match (text("domain"), text("type")) {
            (Some(domain), Some(kind)) => format!("{domain}/{kind}").to_lowercase(),
            // In the wild the end of a stream has no type.
            (Some(domain), None) if domain.eq_ignore_ascii_case("system") => "system/done".to_owned(),
            (domain, kind) => domain.or(kind).unwrap_or_default().to_owned(),
        },
        Dialect::LoomExport => {
            value.as_object().and_then(|object| object.keys().next()).cloned().unwrap_or_default()
        }
        Dialect::Loom if value.get("type").is_none() && value.get("reply").is_some() => "reply".to_owned(),
        Dialect::Agio => text("type").or(name).unwrap_or_default().to_owned(),
        _ => text("type").unwrap_or_default().to_owned(),
    }
}

/// Tells whether frames of two dialects can look alike.
fn is_same_family(one: Dialect, other: Dialect) -> bool {
    let is_ag_ui = |dialect| matches!(dialect, Dialect::AgUi | Dialect::SocialApp);
    one == other || (is_ag_ui(one) && is_ag_ui(other))
}

/// Tells where a document speaks of frames as such.
fn frames_section(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Loom | Dialect::LoomExport => "§3",
        Dialect::StreamingEngine => "§1.2",
        Dialect::Agio => "统一事件模型",
        Dialect::AgUi => "BaseEvent",
        Dialect::SocialApp | Dialect::EasyflowChat => "§2",
        Dialect::Runwire | Dialect::Text => "§4",
    }
}

fn parse(data: &[u8]) -> Option<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(data);
    // The frame's nesting has been checked before.
    deserializer.disable_recursion_limit();
    Value::deserialize(&mut deserializer).ok()
}
