//! `runwire validate`: reports everything in a stream that breaks its dialect's document.
//!
//! Three layers, from the bytes up: what is no frame at all; what the document's JSON Schema forbids; and what
//! may not stand where it stands, by the rules about order and by the guard that every run passes.

mod report;
mod sessions;

use std::collections::HashSet;

use runwire_check::{Finding, Rule, Severity, Side, section_of};
use runwire_model::ErrorCode;
use runwire_model::convert::{ConvertProblem, Converter, Options};
use runwire_model::dialect::{DecodeError, Dialect, detect};
use runwire_model::framing::{Frame, FramingError, is_end_mark};
use runwire_model::json::Object;
use runwire_model::run::Refusal;

use crate::Verdict;
use crate::arguments::{DialectChoice, ValidateArguments};
use crate::ending;
use crate::failure::Failure;
use crate::hint;
use crate::input::FrameInput;
use crate::screen::Screen;
use report::FindingWriter;
use sessions::StreamSessions;

/// Checks a stream to its end.
pub(crate) fn run(arguments: &ValidateArguments) -> Result<Verdict, Failure> {
    let mut input = FrameInput::open(arguments.file.as_deref(), arguments.input_framing.named())?;
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
    checker: Option<StreamChecker>,
    /// Frames before the dialect was detected.
    waiting: Vec<UndecidedFrame>,
    report: FindingWriter,
    frames: u64,
    last_line: u64,
}

struct UndecidedFrame {
    line: u64,
    name: Option<String>,
    data: Vec<u8>,
    ambiguity: String,
}

/// Limits the frames before the dialect is detected.
const MAX_UNDECIDED_FRAMES: usize = 16;

impl Validation {
    fn new(arguments: &ValidateArguments) -> Self {
        let named = arguments.dialect.named();
        Self {
            named,
            checker: named.map(|dialect| StreamChecker::new(dialect, DialectChoice::Named(dialect))),
            waiting: Vec::new(),
            report: FindingWriter::new(arguments.json),
            frames: 0,
            last_line: 1,
        }
    }

    fn dialect(&self) -> Option<Dialect> {
        self.checker.as_ref().map(|checker| checker.dialect).or(self.named)
    }

    fn write_findings(&mut self, line: u64, findings: &[Finding]) -> Result<(), Failure> {
        let dialect = self.dialect();
        findings.iter().try_for_each(|finding| self.report.write(line, dialect, finding))
    }

    fn no_frame(&mut self, error: &FramingError) -> Result<(), Failure> {
        let mut finding = Finding::problem(Rule::Refused(error.code()), error.to_string())
            .maybe_hint(hint::for_code(error.code()));
        finding.section = self.dialect().map(|dialect| dialect.frames_section().to_owned());
        if !error.can_continue() {
            finding.message = format!("{}; the rest of the stream cannot be read", finding.message);
        }
        self.write_findings(error.line(), &[finding])
    }

    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Failure> {
        self.frames += 1;
        self.last_line = frame.line;
        if is_end_mark(frame.data) {
            return self.write_findings(
                frame.line,
                &[Finding::note(Rule::DoneMarker, "`[DONE]` is no event of any dialect")],
            );
        }
        let object = match Object::parse(frame.data) {
            Ok(object) => object,
            Err(fault) => {
                let mut finding = Finding::problem(Rule::Refused(fault.code()), fault.to_string())
                    .maybe_hint(hint::for_code(fault.code()));
                finding.section = self.dialect().map(|dialect| dialect.frames_section().to_owned());
                return self.write_findings(frame.line, &[finding]);
            }
        };
        if self.checker.is_none() {
            match detect(&object) {
                Ok(dialect) => self.detected(dialect)?,
                Err(ambiguous) if self.waiting.len() < MAX_UNDECIDED_FRAMES => {
                    self.waiting.push(UndecidedFrame {
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
        self.check(frame)
    }

    fn detected(&mut self, dialect: Dialect) -> Result<(), Failure> {
        self.checker = Some(StreamChecker::new(dialect, DialectChoice::Auto));
        for waiting in std::mem::take(&mut self.waiting) {
            self.check(Frame { name: waiting.name.as_deref(), data: &waiting.data, line: waiting.line })?;
        }
        Ok(())
    }

    fn check(&mut self, frame: Frame<'_>) -> Result<(), Failure> {
        let Some(checker) = &mut self.checker else { return Ok(()) };
        let findings = checker.check(frame);
        self.write_findings(frame.line, &findings)
    }

    fn end(&mut self) -> Result<(), Failure> {
        if let Some(first) = self.waiting.first() {
            let finding =
                Finding::problem(Rule::Refused(ErrorCode::DialectAmbiguous), first.ambiguity.clone())
                    .hint("name it with --dialect");
            let line = first.line;
            self.write_findings(line, &[finding])?;
        }
        if self.checker.as_ref().is_some_and(StreamChecker::has_open_run) {
            let message = "the stream ends before the run does; a reader would be told that it failed";
            self.write_findings(self.last_line, &[Finding::note(Rule::StreamEnded, message)])?;
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

/// Checks the frames of one dialect, separately for each session.
struct StreamChecker {
    dialect: Dialect,
    source: DialectChoice,
    sessions: StreamSessions,
    /// Notes that were reported.
    noted: HashSet<String>,
}

/// Limits the notes that are reported.
const MAX_NOTES: usize = 64;

impl StreamChecker {
    fn new(dialect: Dialect, source: DialectChoice) -> Self {
        Self { dialect, source, sessions: StreamSessions::new(dialect), noted: HashSet::new() }
    }

    fn has_open_run(&self) -> bool {
        self.sessions.all().any(|session| session.state.has_open_run())
    }

    fn check(&mut self, frame: Frame<'_>) -> Vec<Finding> {
        let session = self.sessions.of(frame);
        let refused = session.converter.push(frame.line, frame.name, frame.data, &mut |_| {}).err();
        // A stream may turn out to be of a profile of its dialect, unless the person has decided.
        if let (DialectChoice::Auto, Some(dialect)) = (self.source, session.converter.dialect()) {
            session.state.follow(dialect);
        }
        let dialect = session.state.dialect();
        let checked = runwire_check::CheckedFrame { name: frame.name, data: frame.data };
        let mut findings = session.state.check(checked, 0, Side::Reader);
        if let Some(error) = refused {
            add_refusal(dialect, &error.problem, checked, &mut findings);
        }
        self.follow(dialect);
        findings.retain(|finding| self.is_new(finding));
        findings
    }

    /// Switches all sessions to the dialect that was detected in one of them.
    fn follow(&mut self, dialect: Dialect) {
        if self.dialect != dialect {
            self.dialect = dialect;
            self.sessions.follow(dialect);
        }
    }

    /// Returns true if a finding is new; notes about a type of event are reported once.
    fn is_new(&mut self, finding: &Finding) -> bool {
        !matches!(finding.rule, Rule::Legacy | Rule::UnknownType)
            || (self.noted.len() < MAX_NOTES && self.noted.insert(finding.message.clone()))
    }
}

/// Adds the refusal of the decoder or the guard, unless it was reported already.
fn add_refusal(
    dialect: Dialect,
    problem: &ConvertProblem,
    frame: runwire_check::CheckedFrame<'_>,
    findings: &mut Vec<Finding>,
) {
    let field = match problem {
        ConvertProblem::Decode(DecodeError::Refused(Refusal::RunClosed(status))) => {
            let again = ending::repeats_the_end(dialect, frame.name, frame.data, *status);
            let after_end = findings.iter_mut().find(|finding| finding.rule == Rule::AfterEnd);
            match after_end {
                Some(after_end) if again => {
                    after_end.severity = Severity::Note;
                    return;
                }
                Some(_) => return,
                None => None,
            }
        }
        // The schema has said it, and better.
        ConvertProblem::Decode(DecodeError::Field(_))
            if findings.iter().any(|finding| finding.pointer.is_some()) =>
        {
            return;
        }
        ConvertProblem::Decode(DecodeError::Field(error)) => Some(error.field.clone()),
        _ => None,
    };
    let message = match problem {
        ConvertProblem::Decode(DecodeError::Field(error)) => error.problem.clone(),
        other => other.to_string(),
    };
    let finding = Finding::problem(Rule::Refused(problem.code()), message);
    findings.push(Finding { field, section: section_of(dialect, frame), ..finding });
}

/// Creates a converter whose only use is to find refused frames.
fn converter(dialect: Dialect) -> Converter {
    Converter::new(Options { from: Some(dialect), ..Options::to(Dialect::Runwire) })
}
