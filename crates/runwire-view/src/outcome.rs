//! Draws errors, notices and the end of a run; keeps a run's counters.

use runwire_model::event::{ErrorInfo, Level, Notice, Summary};
use runwire_model::{Json, Timestamp};

use super::line::PaintedLine;
use super::measure::max_width;
use super::sanitize::cut;
use super::style::Paint;
use super::value::{counted, short, source_span, span};
use super::wrap::wrap;

/// Limits the lines of an error.
const ERROR_LINES: usize = 8;

/// The state of an open run.
#[derive(Debug, Default)]
pub(super) struct OpenRun {
    pub(super) run: String,
    pub(super) started: Option<Timestamp>,
    /// Whether a text of the assistant was shown.
    pub(super) has_text: bool,
    /// The last thoughts of a tree, truncated.
    pub(super) thoughts: Vec<String>,
    /// The open interactions, with their titles.
    pub(super) interactions: Vec<(String, Option<String>)>,
    /// The last error that was shown.
    pub(super) last_error: String,
    calls: u64,
    tokens: u64,
}

impl OpenRun {
    /// Creates the state of a run.
    pub(super) fn new(run: &str) -> Self {
        Self { run: run.to_owned(), ..Self::default() }
    }

    /// Counts a call.
    pub(super) fn count_call(&mut self) {
        self.calls += 1;
    }

    /// Counts the tokens of a model call.
    pub(super) fn count_tokens(&mut self, prompt: Option<u64>, completion: Option<u64>, total: Option<u64>) {
        let sum = prompt.unwrap_or(0).saturating_add(completion.unwrap_or(0));
        self.tokens = self.tokens.saturating_add(total.unwrap_or(sum));
    }

    /// Remembers an error, and returns true if it differs from the last one.
    pub(super) fn is_new_error(&mut self, message: &str) -> bool {
        let message = cut(message, 400);
        let is_new_error = self.last_error != message;
        message.clone_into(&mut self.last_error);
        is_new_error
    }

    /// Formats duration, tokens and calls.
    fn figures(&self, summary: Option<&Summary>, at: Timestamp) -> String {
        let own = summary.and_then(|summary| summary.duration_ms).and_then(source_span);
        let measured = self.started.map(|started| at.since(started)).filter(|millis| *millis > 0);
        let duration = own.or_else(|| measured.map(span));
        let tokens = Some(self.tokens).filter(|tokens| *tokens > 0).or_else(|| {
            let summary = summary?;
            let sum =
                summary.prompt_tokens.unwrap_or(0).saturating_add(summary.completion_tokens.unwrap_or(0));
            summary.total_tokens.or(Some(sum)).filter(|tokens| *tokens > 0)
        });
        let calls = summary.and_then(|summary| summary.tool_calls).unwrap_or(self.calls);
        let tokens = tokens.map(|tokens| counted(tokens, "token"));
        let calls = (calls > 0).then(|| counted(calls, "tool call"));
        [duration, tokens, calls].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// Returns the lines of the run's end.
    pub(super) fn closing(
        &self,
        end: RunEnd<'_>,
        summary: Option<&Summary>,
        at: Timestamp,
        width: usize,
    ) -> Vec<PaintedLine> {
        let (paint, word) = match end {
            RunEnd::Completed => (Paint::Good, "✓ completed"),
            RunEnd::Failed(_) => (Paint::Bad, "✗ failed"),
            RunEnd::Cancelled(_) => (Paint::Warn, "■ cancelled"),
        };
        let figures = self.figures(summary, at);
        let mut line = PaintedLine::of(paint, word);
        let mut lines = Vec::new();
        if max_width(&figures) + max_width(word) + 2 > width {
            lines.push(std::mem::take(&mut line));
        }
        if !figures.is_empty() {
            line.push(Paint::Dim, &format!("  {figures}"));
        }
        lines.push(line.fitted(width));
        if let RunEnd::Cancelled(Some(reason)) = end {
            for text in wrap(cut(reason, 2000), width.saturating_sub(2), ERROR_LINES) {
                lines.push(PaintedLine::of(Paint::Plain, "  ").and(Paint::Plain, &text));
            }
        }
        if let RunEnd::Failed(error) = end {
            let error_lines = ErrorLines::of(error);
            lines.extend(error_lines.lines("  ", Paint::Bad, width));
        }
        lines
    }
}

/// The end of a run.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunEnd<'e> {
    /// It completed.
    Completed,
    /// It failed.
    Failed(&'e ErrorInfo),
    /// It was cancelled.
    Cancelled(Option<&'e str>),
}

/// Draws a notice.
pub(super) fn notice(notice: &Notice, width: usize) -> Vec<PaintedLine> {
    let (paint, sign) = match notice.level {
        Level::Debug => (Paint::Dim, "· "),
        Level::Warning => (Paint::Warn, "! "),
        Level::Error => (Paint::Bad, "✗ "),
    };
    let error = notice.to_error();
    ErrorLines::of(&error).lines(sign, paint, width)
}

/// Formats an error on one line, with its code.
pub(super) fn in_short(error: &ErrorInfo) -> String {
    let message = cut(error.message.trim(), 2000);
    match &error.code {
        Some(code) if code != message => format!("{message} [{code}]"),
        _ => message.to_owned(),
    }
}

/// The parts of an error that are drawn.
struct ErrorLines {
    message: String,
    hint: Option<String>,
    rest: Vec<String>,
}

impl ErrorLines {
    fn of(error: &ErrorInfo) -> Self {
        let details = error.details.as_ref().filter(|details| !details.is_null());
        let hint = error.extra.get("hint").map(short).or_else(|| {
            let hint = details?.to_value().ok()?.get("hint")?.as_str()?.to_owned();
            Some(cut(&hint, 2000).to_owned())
        });
        let mut rest = Vec::new();
        rest.extend(error.kind.clone().filter(|kind| Some(kind) != error.code.as_ref()));
        if error.retryable == Some(true) {
            rest.push("can be tried again".to_owned());
        }
        rest.extend(details.filter(|_| hint.is_none()).map(Json::text).map(|text| cut(text, 400).to_owned()));
        Self { message: in_short(error), hint, rest }
    }

    fn lines(&self, sign: &str, paint: Paint, width: usize) -> Vec<PaintedLine> {
        let inner = width.saturating_sub(2);
        let mut lines = Vec::new();
        for (at, text) in wrap(&self.message, inner, ERROR_LINES).iter().enumerate() {
            lines.push(PaintedLine::of(paint, if at == 0 { sign } else { "  " }).and(paint, text));
        }
        if let Some(hint) = &self.hint {
            for text in wrap(&format!("hint: {hint}"), inner, ERROR_LINES) {
                lines.push(PaintedLine::of(Paint::Plain, "  ").and(Paint::Accent, &text));
            }
        }
        let rest = self.rest.join(" · ");
        let beside = lines.last().map_or(width, PaintedLine::max_width) + 2 + max_width(&rest);
        if let ([line], true) = (lines.as_mut_slice(), beside <= width && !rest.is_empty()) {
            line.push(Paint::Dim, &format!("  {rest}"));
        } else if !rest.is_empty() {
            lines.push(PaintedLine::of(Paint::Dim, "  ").and(Paint::Dim, &rest).fitted(width));
        }
        lines
    }
}
