//! `runwire convert`: converts a stream from one dialect to another.

use std::ops::ControlFlow;

use runwire_model::Body;
use runwire_model::convert::{ConvertError, ConvertProblem, Converted, Converter, Options};
use runwire_model::dialect::{DecodeError, Dialect};
use runwire_model::framing::{Frame, FramingError, is_end_mark};
use runwire_model::run::{Authority, Refusal, Status};

use crate::Verdict;
use crate::arguments::{ConvertArguments, OutputFraming};
use crate::convert_output::{ConvertFormat, ConvertOutput};
use crate::ending;
use crate::failure::Failure;
use crate::hint;
use crate::input::FrameInput;
use crate::screen::Screen;

/// Converts a stream until its end, or until an invalid frame.
pub(crate) fn run(arguments: &ConvertArguments) -> Result<Verdict, Failure> {
    let mut input = FrameInput::open(arguments.file.as_deref(), arguments.input_framing.named())?;
    let mut conversion = Conversion::new(arguments, Screen::new(input.size()));
    // A reader of a live stream must see each frame before the next one comes; a file comes at once.
    let is_live = input.size().is_none();
    'stream: loop {
        while let Some(cut) = input.next() {
            let flow = match cut {
                Ok(frame) => conversion.convert(frame),
                Err(error) => conversion.skip(&error),
            };
            conversion.output.write_batch()?;
            if flow.is_break() {
                break 'stream;
            }
        }
        conversion.screen.advance(input.bytes_read());
        if is_live {
            conversion.output.flush()?;
        }
        if !input.fill()? {
            break;
        }
    }
    conversion.finish()
}

struct Conversion {
    converter: Converter,
    output: ConvertOutput,
    screen: Screen,
    keep_going: bool,
    frames: u64,
    has_problems: bool,
    unknown: Unknown,
}

/// Frames of unknown type, which are handed on as `foreign`.
#[derive(Default)]
struct Unknown {
    count: u64,
    first_line: u64,
}

impl Conversion {
    fn new(arguments: &ConvertArguments, screen: Screen) -> Self {
        let authority = if arguments.trusted { Authority::Server } else { Authority::Producer };
        let options = Options {
            from: arguments.from.named(),
            to: arguments.to,
            fidelity: arguments.fidelity.into(),
            slots: arguments.slots.into(),
            authority,
            thread: arguments.thread.clone(),
            run: arguments.run.clone(),
        };
        let format = match (arguments.to, arguments.framing) {
            (_, Some(OutputFraming::Sse)) => ConvertFormat::Sse,
            (Dialect::Text, None) => ConvertFormat::PlainText,
            (Dialect::Text, Some(OutputFraming::Ndjson)) => ConvertFormat::JsonStrings,
            (_, None | Some(OutputFraming::Ndjson)) => ConvertFormat::Ndjson,
        };
        let output = ConvertOutput::new(format, options.encoder().first_frame(options.to));
        Self {
            converter: Converter::new(options),
            output,
            screen,
            keep_going: arguments.keep_going,
            frames: 0,
            has_problems: false,
            unknown: Unknown::default(),
        }
    }

    fn convert(&mut self, frame: Frame<'_>) -> ControlFlow<()> {
        self.frames += 1;
        if is_end_mark(frame.data) {
            self.screen.note(format_args!("line {}: `[DONE]` is no event and is passed over", frame.line));
            return ControlFlow::Continue(());
        }
        let (output, unknown) = (&mut self.output, &mut self.unknown);
        let result = self.converter.push(frame.line, frame.name, frame.data, &mut |converted| {
            unknown.count(&converted, frame.line);
            output.push(&converted);
        });
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.meet(&error, frame),
        }
    }

    /// Decides what a frame that could not be converted means for the rest of the stream.
    fn meet(&mut self, error: &ConvertError, frame: Frame<'_>) -> ControlFlow<()> {
        if let Some(status) = closed(&error.problem) {
            let dialect = self.converter.dialect().unwrap_or(Dialect::Runwire);
            if ending::repeats_the_end(dialect, frame.name, frame.data, status) {
                let already = format_args!(
                    "line {}: says the end of a run that is {} again",
                    error.line,
                    status.as_str()
                );
                self.screen.note(already);
            } else {
                self.report(error, "the frame is left out");
            }
            return ControlFlow::Continue(());
        }
        let can_continue = matches!(error.problem, ConvertProblem::Decode(_));
        if !self.keep_going || !can_continue {
            self.report(error, "the conversion stops here");
            return ControlFlow::Break(());
        }
        let output = &mut self.output;
        let is_handed_on = self.converter.push_foreign(frame.data, &mut |converted| output.push(&converted));
        self.report(
            error,
            if is_handed_on { "the frame is handed on as `foreign`" } else { "the frame is left out" },
        );
        ControlFlow::Continue(())
    }

    /// Meets bytes that are no frame.
    fn skip(&mut self, error: &FramingError) -> ControlFlow<()> {
        let goes_on = self.keep_going && error.can_continue();
        let outcome = if goes_on { "the frame is left out" } else { "the conversion stops here" };
        self.has_problems = true;
        let line = error.line();
        let hint = hint::for_code(error.code());
        self.screen.problem(format_args!("line {line}: {error} [{}]", error.code()), outcome, hint);
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn report(&mut self, error: &ConvertError, outcome: &str) {
        self.has_problems = true;
        let code = error.problem.code();
        self.screen.problem(format_args!("{error} [{code}]"), outcome, hint::for_code(code));
    }

    /// Ends the runs that are open, so that their readers get an end.
    fn finish(mut self) -> Result<Verdict, Failure> {
        let output = &mut self.output;
        let finished = self.converter.finish(&mut |converted| output.push(&converted));
        if let Err(error) = finished
            && !self.has_problems
        {
            self.report(&error, "nothing is converted");
        }
        self.output.finish()?;
        self.screen.finish();
        if self.frames == 0 && !self.has_problems {
            self.screen.note_to_a_person("the input has no frames, so there is no output");
        }
        self.unknown.note(&self.screen);
        Ok(if self.has_problems { Verdict::HasProblems } else { Verdict::Fine })
    }
}

impl Unknown {
    fn count(&mut self, converted: &Converted<'_>, line: u64) {
        let source = converted.record.dialect.map(Dialect::name);
        let is_foreign = converted.record.entries.iter().any(
            |entry| matches!(&entry.event.body, Body::Foreign(foreign) if source == Some(&foreign.dialect)),
        );
        if is_foreign {
            if self.count == 0 {
                self.first_line = line;
            }
            self.count += 1;
        }
    }

    fn note(&self, screen: &Screen) {
        let Self { count, first_line } = self;
        let why = "its type is unknown, or only the server may say it (--trusted)";
        match count {
            0 => {}
            1 => screen.note(format_args!("line {first_line}: handed on as `foreign`: {why}")),
            _ => screen.note(format_args!(
                "line {first_line}, and {} more: handed on as `foreign`: {why}",
                count - 1
            )),
        }
    }
}

fn closed(problem: &ConvertProblem) -> Option<Status> {
    match problem {
        ConvertProblem::Decode(DecodeError::Refused(Refusal::RunClosed(status))) => Some(*status),
        _ => None,
    }
}
