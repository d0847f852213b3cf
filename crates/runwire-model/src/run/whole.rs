//! Whole texts: an answer that a source repeats at the end, or sends for the first time there.
//!
//! Most clients can only append, so a whole text never takes back what readers have seen. It is compared with the run's
//! texts, without white space, and adds what is new:
//!
//! - equal to a message, or to the last messages joined: nothing;
//! - a beginning of the last message, or of all messages joined: nothing, it was cut short;
//! - beginning with the last messages joined, as many as possible: the rest continues the last message;
//! - anything else: a message of its own.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::state::RunState;
use super::texts::{RunText, continued, join};
use crate::limits;
use crate::record::History;

/// Policy for a whole text that differs from the run's texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WholePolicy {
    /// Its new part is added.
    #[default]
    Add,
    /// It is ignored if the run has any text.
    Ignore,
    /// It replaces the last message, for agents that edit their answer at the end; one that only goes on is added.
    Replace,
}

impl WholePolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Add, Self::Ignore, Self::Replace];

    /// Returns the policy's name in queries and configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Ignore => "ignore",
            Self::Replace => "replace",
        }
    }

    /// Finds a policy by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// The texts of a run that its producer has called its whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnswerTexts {
    /// The id of the first one; without one it is the run's first text.
    first: Option<String>,
    /// The id of the last one.
    last: String,
    /// The id of the run's last text then: with another one the answer has gone on.
    run_last: String,
}

/// Comparison of a whole text with the run's texts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WholeComparison<'w> {
    /// It adds nothing.
    Known,
    /// The run has no text.
    First,
    /// It adds this rest to the last message.
    Rest(&'w str),
    /// All of it is new.
    New,
}

/// Comparison of a whole text with the pieces of the message that it names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NamedComparison<'w> {
    /// It adds nothing.
    Known,
    /// It adds this rest to the last piece.
    Rest(&'w str),
    /// This part of it replaces the last piece.
    Replaced(&'w str),
}

/// A whole text and its digest.
pub(crate) struct WholeText<'w> {
    text: &'w str,
    digest: Digest,
}

impl<'w> WholeText<'w> {
    pub(crate) fn new(text: &'w str) -> Self {
        Self { text, digest: Digest::without_whitespace(text) }
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &'w str {
        self.text
    }

    /// Returns true if the digest is that of the text.
    pub(crate) fn is(&self, streamed: Digest) -> bool {
        self.digest == streamed
    }

    /// Splits the text after the first `len` bytes that are not white space.
    fn after(&self, len: u64) -> Option<(&'w str, &'w str)> {
        let mut left = usize::try_from(len).ok()?;
        for (at, character) in self.text.char_indices().filter(|(_, character)| !character.is_whitespace()) {
            if left == 0 {
                break;
            }
            left = left.checked_sub(character.len_utf8())?;
            if left == 0 {
                return Some(self.text.split_at(at + character.len_utf8()));
            }
        }
        None
    }

    /// Returns the rest of the text after a beginning with this digest.
    pub(crate) fn rest_after(&self, streamed: Digest) -> Option<&'w str> {
        let (head, rest) = self.after(streamed.len).filter(|_| streamed.len > 0)?;
        (Digest::without_whitespace(head) == streamed).then_some(rest)
    }
}

impl RunState {
    /// Compares a whole text with the run's texts.
    pub(crate) fn compare<'w>(
        &mut self,
        whole: &WholeText<'w>,
        history: &dyn History,
    ) -> WholeComparison<'w> {
        let digests = &self.text_digests;
        if digests.is_empty() {
            return WholeComparison::First;
        }
        if !digests.mixed {
            if [digests.last, digests.all()].contains(&whole.digest) {
                return WholeComparison::Known;
            }
            if let Some(rest) = whole.rest_after(digests.all()) {
                return WholeComparison::Rest(self.without_trailing(rest));
            }
        }
        // Digests are kept of the last message and of all; anything else is looked up.
        if self.text_digests.compared > limits::RUN_COMPARED_BYTES {
            return WholeComparison::New;
        }
        self.text_digests.compared += self.text_bytes;
        let texts: Vec<String> = history.run_texts().iter().map(|text| words(&text.content)).collect();
        let text = words(whole.text);
        let is_beginning = |streamed: &str| streamed.starts_with(&text);
        let equals = |streamed: &String| *streamed == text;
        if texts.iter().any(equals)
            || texts.last().is_some_and(|last| is_beginning(last))
            || is_beginning(&texts.concat())
        {
            return WholeComparison::Known;
        }
        match longest_tail(&texts, &text) {
            Some(len) if len == text.len() => WholeComparison::Known,
            Some(len) => {
                let rest = whole.after(len as u64).map_or("", |(_, rest)| rest);
                WholeComparison::Rest(self.without_trailing(rest))
            }
            None => WholeComparison::New,
        }
    }

    /// Finds the texts of the run that a whole text repeats or continues; `None` if it is new.
    pub(crate) fn texts_of(&mut self, whole: &WholeText<'_>, history: &dyn History) -> Option<AnswerTexts> {
        let digests = &self.text_digests;
        let run_last = digests.last_id.clone()?;
        let texts = |first: Option<&str>, last: &str| {
            let (first, last) = (first.map(str::to_owned), last.to_owned());
            Some(AnswerTexts { first, last, run_last: run_last.clone() })
        };
        if !digests.mixed {
            if whole.digest == digests.all() || whole.rest_after(digests.all()).is_some() {
                return texts(None, &run_last);
            }
            if whole.digest == digests.last {
                return texts(Some(&run_last), &run_last);
            }
        }
        if digests.compared > limits::RUN_COMPARED_BYTES {
            return None;
        }
        self.text_digests.compared += self.text_bytes;
        let known = history.run_texts();
        let contents: Vec<String> = known.iter().map(|text| words(&text.content)).collect();
        let text = words(whole.text);
        let same = contents.iter().rposition(|streamed| *streamed == text);
        let begun = || contents.last().filter(|last| last.starts_with(&text)).map(|_| contents.len() - 1);
        if let Some(at) = same.or_else(begun) {
            return texts(Some(&known[at].id), &known[at].id);
        }
        if contents.concat().starts_with(&text) {
            return texts(None, &run_last);
        }
        let mut left = longest_tail(&contents, &text)?;
        let mut tail = known.iter().zip(&contents).rev().filter(|(_, streamed)| !streamed.is_empty());
        let (first, _) = tail.find(|(_, streamed)| {
            left = left.saturating_sub(streamed.len());
            left == 0
        })?;
        texts(Some(&first.id), &run_last)
    }

    /// Returns the pieces of a message of the run outside subagents: a tool call, a thought and a step divide it.
    pub(crate) fn pieces_of(&mut self, id: &str, history: &dyn History) -> Vec<RunText> {
        if self.text_digests.compared > limits::RUN_COMPARED_BYTES {
            return Vec::new();
        }
        self.text_digests.compared += self.text_bytes;
        let mut pieces = history.run_texts();
        pieces.retain(|text| text.id == id || continued(&text.id) == Some(id));
        pieces
    }

    /// Strips the white space that the last message already ends with.
    pub(crate) fn without_trailing<'w>(&self, rest: &'w str) -> &'w str {
        let trailing = self.text_digests.trailing;
        let len = usize::try_from(trailing.len).unwrap_or(usize::MAX);
        match rest.split_at_checked(len) {
            Some((head, rest)) if Digest::of(head) == trailing => rest,
            _ => rest,
        }
    }
}

impl AnswerTexts {
    /// Returns the answer after its whole was added to the run: it goes up to the last text, or is that text.
    pub(crate) fn after_whole(answer: Option<Self>, run_last: Option<&String>) -> Option<Self> {
        let run_last = run_last?.clone();
        Some(match answer {
            Some(answer) if answer.last == answer.run_last => {
                Self { last: run_last.clone(), run_last, ..answer }
            }
            Some(answer) => Self { run_last, ..answer },
            None => Self { first: Some(run_last.clone()), last: run_last.clone(), run_last },
        })
    }

    /// Joins the texts, unless they are all texts of the run, or the run has gone on.
    pub(crate) fn join(&self, run_last: Option<&String>, history: &dyn History) -> Option<String> {
        let first = self.first.as_ref().filter(|_| run_last == Some(&self.run_last))?;
        let texts = history.run_texts();
        let first = texts
            .iter()
            .position(|text| text.id == *first)
            .filter(|first| *first > 0 || self.last != self.run_last)?;
        let last = texts.iter().rposition(|text| text.id == self.last)?;
        let answer = texts.get(first..=last)?;
        Some(join(answer.iter().map(|text| (text.id.as_str(), text.content.as_str()))))
    }
}

/// Compares a whole text with the pieces of the message that it names.
///
/// It replaces only what differs; a single piece that is open is also replaced by a beginning of it.
pub(crate) fn compare_pieces<'w>(
    pieces: &[RunText],
    whole: &WholeText<'w>,
    is_open: bool,
) -> NamedComparison<'w> {
    let contents: Vec<String> = pieces.iter().map(|piece| words(&piece.content)).collect();
    let text = words(whole.text);
    let joined = contents.concat();
    let after = |len: usize| whole.after(len as u64).map_or(whole.text, |(_, rest)| rest);
    let is_beginning =
        joined.starts_with(&text) || contents.last().is_some_and(|last| last.starts_with(&text));
    if contents.contains(&text) || joined == text || (is_beginning && (pieces.len() > 1 || !is_open)) {
        return NamedComparison::Known;
    }
    let last = pieces.last().map_or("", |last| &last.content);
    let trailing = &last[last.trim_end().len()..];
    match longest_tail(&contents, &text) {
        Some(len) if len == text.len() => NamedComparison::Known,
        Some(len) => {
            let rest = after(len);
            NamedComparison::Rest(rest.strip_prefix(trailing).unwrap_or(rest))
        }
        None if joined.is_empty() => NamedComparison::Rest(whole.text),
        None => {
            let before_last = contents.iter().take(contents.len().saturating_sub(1));
            let head = before_last.fold((0, true), |(len, fits), piece| match text.get(len..) {
                Some(rest) if fits && rest.starts_with(piece.as_str()) => (len + piece.len(), true),
                _ => (len, false),
            });
            NamedComparison::Replaced(after(head.0))
        }
    }
}

/// Returns the length of the longest run of last texts that a text begins with.
///
/// Compares digests, because each text would have to be compared as often as there are texts after it.
fn longest_tail(texts: &[String], text: &str) -> Option<usize> {
    let (mut tail, mut head) = (Digest::default(), Digest::default());
    let (mut hashed, mut longest) = (0, None);
    for streamed in texts.iter().rev().filter(|streamed| !streamed.is_empty()) {
        tail = Digest::of(streamed).then(tail);
        let len = tail.len as usize;
        // Of texts that are cut inside a character, none is the beginning.
        let Some(more) = text.get(hashed..len) else { continue };
        head = head.then(Digest::of(more));
        hashed = len;
        if head == tail {
            longest = Some(len);
        }
    }
    longest
}

/// Removes the white space of a text.
fn words(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_tail_of_messages_is_found() {
        let tail = |texts: &[&str], text: &str| {
            longest_tail(&texts.iter().map(|text| words(text)).collect::<Vec<_>>(), text)
        };
        assert_eq!(tail(&["a", "b", "c"], "bcd"), Some(2));
        assert_eq!(tail(&["a", "a", "a"], "aaab"), Some(3));
        assert_eq!(tail(&["a", "", "b"], "ab"), Some(2));
        assert_eq!(tail(&["a", "b"], "ax"), None);
        assert_eq!(tail(&["天", "气"], "气象"), Some("气".len()));
        assert_eq!(tail(&["abc", "é"], "天"), None);
    }

    #[test]
    fn white_space_does_not_count() {
        let whole = WholeText::new(" It is\n sunny  today.");
        assert_eq!(whole.rest_after(Digest::without_whitespace("Itis sunny")), Some("  today."));
        assert_eq!(whole.rest_after(Digest::without_whitespace("It was")), None);
        assert_eq!(whole.rest_after(Digest::default()), None);
    }
}
