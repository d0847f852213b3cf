//! Texts and thoughts, as they come.

use std::io::Write;

use runwire_model::event::TextFinished;
use serde_json::Value;

use super::clean::{cut, one_line};
use super::line::Line;
use super::style::Paint;
use super::value::{first_text, short, short_value};
use super::{Block, View};

/// The texts that can be open at a time; beyond, the oldest are forgotten.
const OPEN: usize = 4096;

/// The points and actions that are shown after a text.
const LISTED: usize = 12;

/// Columns that the further lines of a thought are set in.
const INDENT: usize = 2;

/// Whose text a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    run: String,
    message: String,
    kind: Block,
}

/// A text or a thought that has begun and not ended.
#[derive(Debug)]
pub(super) struct OpenText {
    source: Source,
    /// What stands before it: whose text it is, or that it is a thought.
    label: Option<String>,
    shown: bool,
}

impl<W: Write> View<W> {
    /// Begins a text; what is not the assistant's gets a label.
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

    /// Begins a thought.
    pub(super) fn thinking_started(&mut self, run: &str, message: &str, stage: Option<&str>) {
        let stage = stage.map(|stage| format!(" ({})", cut(stage, 200))).unwrap_or_default();
        self.open_text(run, message, Block::Thought, Some(format!("thinking{stage}")));
    }

    fn open_text(&mut self, run: &str, message: &str, kind: Block, label: Option<String>) {
        if self.texts.len() >= OPEN {
            self.texts.remove(0);
        }
        let source = Source { run: run.to_owned(), message: message.to_owned(), kind };
        self.texts.push(OpenText { source, label, shown: false });
    }

    /// Goes on with a text or a thought.
    pub(super) fn piece(&mut self, run: &str, message: &str, kind: Block, content: &str) {
        let is_it = |source: &Source| source.kind == kind && source.message == message && source.run == run;
        let goes_on = self.source.as_ref().is_some_and(is_it);
        // The empty line before a text is the view's affair.
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
            self.tally(run).has_text = true;
        }
        if !goes_on {
            self.settle_held();
            self.canvas.end_line();
            self.space_before(kind);
            self.source = Some(Source { run: run.to_owned(), message: message.to_owned(), kind });
            self.last = kind;
            if let Some(label) = label.filter(|_| is_first) {
                self.canvas.stream(&format!("{}: ", one_line(&label)), paint, 0);
            }
        }
        // Lines that waited stand where the text's line ends.
        match content.find('\n').filter(|_| !self.held.is_empty()) {
            None => self.canvas.stream(content, paint, indent),
            Some(end) => {
                self.canvas.stream(&content[..end], paint, indent);
                self.settle_held();
                self.piece(run, message, kind, &content[end..]);
            }
        }
    }

    /// Ends a text or a thought.
    pub(super) fn text_finished(&mut self, run: &str, message: &str, kind: Block, whole: Option<&str>) {
        let is_it = |source: &Source| source.kind == kind && source.message == message && source.run == run;
        let at = self.texts.iter().rposition(|text| is_it(&text.source));
        let open = at.map(|at| self.texts.remove(at));
        if let Some(whole) = whole {
            let replaces = open.as_ref().is_some_and(|open| open.shown);
            if replaces {
                self.lines(Block::Lines, vec![Line::of(Paint::Dim, "· rewritten:")]);
            }
            // It is drawn as one piece, under the name it had.
            self.texts.extend(open.map(|open| OpenText { shown: replaces, ..open }));
            self.piece(run, message, kind, whole);
            if let Some(at) = self.texts.iter().rposition(|text| is_it(&text.source)) {
                self.texts.remove(at);
            }
        }
        if self.source.as_ref().is_some_and(is_it) {
            self.canvas.end_line();
            self.source = None;
            self.settle_held();
        }
    }

    /// Shows what the end of a text says beside that it is complete.
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
                lines.push(Line::of(paint, sign).and(Paint::Plain, cut(&text, 400)).fitted(width));
            }
        }
        if let Some(error) = finished.error.as_ref().filter(|error| !error.is_null()) {
            lines.push(Line::of(Paint::Bad, "✗ ").and(Paint::Bad, &short(error)).fitted(width));
        }
        self.lines(Block::Lines, lines);
    }

    /// Forgets what a run left open.
    pub(super) fn forget_texts(&mut self, run: &str) {
        self.texts.retain(|text| text.source.run != run);
    }
}
