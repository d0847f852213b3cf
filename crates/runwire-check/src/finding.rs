//! Findings of a check.

use crate::limits;
use crate::rule::Rule;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The frame breaks its document.
    Problem,
    /// It is allowed, and worth knowing.
    Note,
}

/// A finding in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The rule that it is about.
    pub rule: Rule,
    /// The field at fault, with dots between the levels.
    pub field: Option<String>,
    /// The field at fault as a JSON pointer (RFC 6901), where it is part of the frame.
    pub pointer: Option<String>,
    /// The section of the dialect's document.
    pub section: Option<String>,
    /// The problem, and what is expected.
    pub message: String,
    /// Hint at a fix.
    pub hint: Option<String>,
}

impl Finding {
    /// Makes a finding of a frame that breaks its document.
    pub fn problem(rule: Rule, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Problem,
            rule,
            field: None,
            pointer: None,
            section: None,
            message: cut(message.into()),
            hint: None,
        }
    }

    /// Makes a note.
    pub fn note(rule: Rule, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::problem(rule, message) }
    }

    /// Returns true if the frame breaks its document.
    pub fn is_problem(&self) -> bool {
        self.severity == Severity::Problem
    }

    /// Sets a field that is not part of the frame's JSON.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(cut(field.into()));
        self
    }

    /// Sets the field by its JSON pointer.
    #[must_use]
    pub fn at(mut self, pointer: &str) -> Self {
        self.field = Some(cut(dotted(pointer)));
        self.pointer = Some(cut(pointer.to_owned()));
        self
    }

    /// Sets the section of the document.
    #[must_use]
    pub fn section(mut self, section: impl Into<String>) -> Self {
        self.section = Some(section.into());
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.maybe_hint(Some(hint))
    }

    /// Sets the hint, if there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(|hint| cut(hint.into()));
        self
    }
}

/// Truncates a text that quotes too much of its frame.
fn cut(mut text: String) -> String {
    if text.len() > limits::FINDING_BYTES {
        text.truncate(text.floor_char_boundary(limits::FINDING_BYTES));
        text.push('…');
    }
    text
}

/// Writes a JSON pointer in the form of a path: `data.items[0].id`.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        if segment.parse::<usize>().is_ok() {
            path = format!("{path}[{segment}]");
        } else if path.is_empty() {
            path = segment;
        } else {
            path = format!("{path}.{segment}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_told_as_people_write_paths() {
        let finding = Finding::problem(Rule::BadValue, "x").at("/data/items/0/a~1b");
        assert_eq!(finding.field.as_deref(), Some("data.items[0].a/b"));
        assert_eq!(finding.pointer.as_deref(), Some("/data/items/0/a~1b"));
    }
}
