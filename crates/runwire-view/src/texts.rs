//! Streams texts and thoughts.

use std::io::Write;

use runwire_model::event::TextFinished;
use serde_json::Value;

use super::line::PaintedLine;
use super::sanitize::{cut, one_line};
use super::style::Paint;
use super::value::{first_text, short, short_value};
use super::{Block, View};

/// Limits the open texts; the oldest are evicted.
const MAX_OPEN: usize = 4096;

/// Limits the points and actions shown after a text.
const LISTED: usize = 12;

/// Indent of a thought's further lines.
const INDENT: usize = 2;

/// The run and message of a line's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextSource {
    run: String,
    message: String,
    kind: Block,
}

/// An open text or thought.
#[derive(Debug)]
pub(super) struct StreamedText {
    source: TextSource,
    /// Its label: the speaker, or that it is a thought.
    label: Option<String>,
    shown: bool,
}

impl<W: Write> View<W> {
    /// Starts a text; one that is not the assistant's gets a label.
    pub(super) fn text_started(
        &mut self,
        run: &str,
        message: &str,
        role: Option<&str>,
        speaker: Option<&str>,
    ) {
        let label =
            role.filter(|role| *role != "assistant").or(speaker).map(|role| cut(role, 200).to_owned());
        self.open_text(run, message, Block::Text, label);
    }

    /// Starts a thought.
    pub(super) fn thinking_started(&mut self, run: &str, message: &str, stage: Option<&str>) {
        let stage = stage.map(|stage| format!(" ({})", cut(stage, 200))).unwrap_or_default();
        self.open_text(run, message, Block::Thought, Some(format!("thinking{stage}")));
    }

    fn open_text(&mut self, run: &str, message: &str, kind: Block, label: Option<String>) {
        if self.texts.len() >= MAX_OPEN {
            self.texts.remove(0);
        }
        let source = TextSource { run: run.to_owned(), message: message.to_owned(), kind };
        self.texts.push(StreamedText { source, label, shown: false });
    }

    /// Appends a piece of a text or a thought.
    pub(super) fn piece(&mut self, run: &str, message: &str, kind: Block, content: &str) {
        let is_it =
            |source: &TextSource| source.kind == kind && source.message == message && source.run == run;
        let goes_on = self.source.as_ref().is_some_and(is_it);
        // The view adds the empty line before a text.
        let content = if goes_on { content } else { content.trim_start_matches(['\n', '\r']) };
        if content.is_empty() {
            return;
        }
        let open = self.texts.iter_mut().rfind(|text| is_it(&text.source));
        let (label, is_first) = match open {
            Some(open) => (open.label.clone(), !std::mem::replace(&mut open.shown, true)),
            None => ((kind == Block::Thought).then(|| "thinking".to_owned()), true),
        };
        let (paint, indent) = if label.is_some() { (Paint::Dim, INDENT) } else { (Paint::Plain, 0) };
        if label.is_none() {
            self.open_run(run).has_text = true;
        }
        if !goes_on {
            self.draw_held();
            self.canvas.end_line();
            self.space_before(kind);
            self.source = Some(TextSource { run: run.to_owned(), message: message.to_owned(), kind });
            self.last = kind;
            if let Some(label) = label.filter(|_| is_first) {
                self.canvas.stream(&format!("{}: ", one_line(&label)), paint, 0);
            }
        }
        // Draw held lines where the line of text ends.
        match content.find('\n').filter(|_| !self.held.is_empty()) {
            None => self.canvas.stream(content, paint, indent),
            Some(end) => {
                self.canvas.stream(&content[..end], paint, indent);
                self.draw_held();
                self.piece(run, message, kind, &content[end..]);
            }
        }
    }

    /// Ends a text or a thought.
    pub(super) fn text_finished(&mut self, run: &str, message: &str, kind: Block, whole: Option<&str>) {
        let is_it =
            |source: &TextSource| source.kind == kind && source.message == message && source.run == run;
        let at = self.texts.iter().rposition(|text| is_it(&text.source));
        let open = at.map(|at| self.texts.remove(at));
        if let Some(whole) = whole {
            let replaces = open.as_ref().is_some_and(|open| open.shown);
            if replaces {
                self.lines(Block::Lines, vec![PaintedLine::of(Paint::Dim, "· rewritten:")]);
            }
            // A whole that was not streamed is drawn as one piece.
            self.texts.extend(open.map(|open| StreamedText { shown: replaces, ..open }));
            self.piece(run, message, kind, whole);
            if let Some(at) = self.texts.iter().rposition(|text| is_it(&text.source)) {
                self.texts.remove(at);
            }
        }
        if self.source.as_ref().is_some_and(is_it) {
            self.canvas.end_line();
            self.source = None;
            self.draw_held();
        }
    }

    /// Draws the points and actions at the end of a text.
    pub(super) fn text_said_more(&mut self, finished: &TextFinished) {
        let width = self.width();
        let mut lines = Vec::new();
        for (listed, sign, paint) in
            [(&finished.key_points, "• ", Paint::Plain), (&finished.suggested_actions, "→ ", Paint::Accent)]
        {
            let Some(Ok(Value::Array(items))) = listed.as_ref().map(runwire_model::Json::to_value) else {
                continue;
            };
            for item in items.iter().take(LISTED) {
                let named = first_text(item, &["title", "label", "text", "name", "content", "action"]);
                let text = named.map_or_else(|| short_value(item), str::to_owned);
                lines.push(PaintedLine::of(paint, sign).and(Paint::Plain, cut(&text, 400)).fitted(width));
            }
        }
        if let Some(error) = finished.error.as_ref().filter(|error| !error.is_null()) {
            lines.push(PaintedLine::of(Paint::Bad, "✗ ").and(Paint::Bad, &short(error)).fitted(width));
        }
        self.lines(Block::Lines, lines);
    }

    /// Drops the open texts of a run.
    pub(super) fn forget_texts(&mut self, run: &str) {
        self.texts.retain(|text| text.source.run != run);
    }
}
