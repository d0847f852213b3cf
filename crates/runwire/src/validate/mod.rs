//! `runwire validate`: everything in a stream that breaks its dialect's document.
//!
//! Three layers, from the bytes up: what is no frame at all; what the document's JSON Schema forbids; and what
//! may not stand where it stands, by the rules about order and by the guard that every run passes.

mod report;
mod sessions;

use std::collections::HashSet;

use runwire_check::{AFTER_END, Finding, Severity, Side, section_of};
use runwire_model::convert::{Converter, Options, Problem};
use runwire_model::dialect::{DecodeError, Dialect, detect};
use runwire_model::framing::{Frame, FramingError, is_end_mark};
use runwire_model::json::Object;
use runwire_model::run::Refusal;

use crate::Verdict;
use crate::arguments::{Source, ValidateArguments};
use crate::ending;
use crate::failure::Failure;
use crate::hint;
use crate::input::Input;
use crate::screen::Screen;
use report::Report;
use sessions::Sessions;

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
        finding.section = self.dialect().map(|dialect| dialect.frames_section().to_owned());
        if !error.can_continue() {
            finding.message = format!("{}; the rest of the stream cannot be read", finding.message);
        }
        self.tell(error.line(), &[finding])
    }

    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Failure> {
        self.frames += 1;
        self.last_line = frame.line;
        if is_end_mark(frame.data) {
            return self
                .tell(frame.line, &[Finding::note("done_marker", "`[DONE]` is no event of any dialect")]);
        }
        let object = match Object::parse(frame.data) {
            Ok(object) => object,
            Err(fault) => {
                let mut finding = Finding::problem(fault.code(), fault.to_string())
                    .maybe_hint(hint::for_code(fault.code()));
                finding.section = self.dialect().map(|dialect| dialect.frames_section().to_owned());
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
        if self.judge.as_ref().is_some_and(Judge::has_open_run) {
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

/// Judges the frames of one dialect, those of each session by themselves.
struct Judge {
    dialect: Dialect,
    source: Source,
    sessions: Sessions,
    /// Notes that were told once.
    noted: HashSet<String>,
}

/// Notes that are told; more than that would be noise.
const NOTED: usize = 64;

impl Judge {
    fn new(dialect: Dialect, source: Source) -> Self {
        Self { dialect, source, sessions: Sessions::new(dialect), noted: HashSet::new() }
    }

    fn has_open_run(&self) -> bool {
        self.sessions.all().any(|session| session.state.has_open_run())
    }

    fn judge(&mut self, frame: Frame<'_>) -> Vec<Finding> {
        let session = self.sessions.of(frame);
        let refused = session.converter.push(frame.line, frame.name, frame.data, &mut |_| {}).err();
        // AG-UI turns out to be social-app's where the stream shows it, unless the person has decided.
        if let (Source::Auto, Some(dialect)) = (self.source, session.converter.dialect()) {
            session.state.follow(dialect);
        }
        let dialect = session.state.dialect();
        let checked = runwire_check::Frame { name: frame.name, data: frame.data };
        let mut findings = session.state.check(checked, 0, Side::Reader);
        if let Some(error) = refused {
            add_refusal(dialect, &error.problem, checked, &mut findings);
        }
        self.follow(dialect);
        findings.retain(|finding| self.is_news(finding));
        findings
    }

    /// Lets all sessions go on in the dialect that one of them has turned out to speak.
    fn follow(&mut self, dialect: Dialect) {
        if self.dialect != dialect {
            self.dialect = dialect;
            self.sessions.follow(dialect);
        }
    }

    /// Tells whether a finding is to be told; notes about a kind of event are told once.
    fn is_news(&mut self, finding: &Finding) -> bool {
        !matches!(finding.code, "legacy" | "unknown_type")
            || (self.noted.len() < NOTED && self.noted.insert(finding.message.clone()))
    }
}

/// Adds what the decoder and the guard say, where it was not said before.
fn add_refusal(
    dialect: Dialect,
    problem: &Problem,
    frame: runwire_check::Frame<'_>,
    findings: &mut Vec<Finding>,
) {
    let field = match problem {
        Problem::Decode(DecodeError::Refused(Refusal::RunClosed(status))) => {
            let again = ending::says_the_end_again(dialect, frame.name, frame.data, *status);
            let told = findings.iter_mut().find(|finding| finding.code == AFTER_END);
            match told {
                Some(told) if again => {
                    told.severity = Severity::Note;
                    return;
                }
                Some(_) => return,
                None => None,
            }
        }
        // The schema has said it, and better.
        Problem::Decode(DecodeError::Field(_))
            if findings.iter().any(|finding| finding.pointer.is_some()) =>
        {
            return;
        }
        Problem::Decode(DecodeError::Field(error)) => Some(error.field.clone()),
        _ => None,
    };
    let message = match problem {
        Problem::Decode(DecodeError::Field(error)) => error.problem.clone(),
        other => other.to_string(),
    };
    let finding = Finding::problem(problem.code(), message);
    findings.push(Finding { field, section: section_of(dialect, frame), ..finding });
}

/// Makes a converter that only shows which frames would be refused.
fn converter(dialect: Dialect) -> Converter {
    Converter::new(Options { from: Some(dialect), ..Options::to(Dialect::Runwire) })
}
