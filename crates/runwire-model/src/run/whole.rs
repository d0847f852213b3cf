//! Whole texts: an answer that a source says again at the end, or for the first time.
//!
//! Most clients can only append, so a whole never takes back what readers have seen. It is compared with what
//! the run has told, white space left out, and adds what is new:
//!
//! - equal to a message, or to the last messages joined: nothing;
//! - a beginning of the last message, or of all messages joined: nothing, it was cut short;
//! - beginning with the last messages joined, as many as possible: the rest continues the last message;
//! - anything else: a message of its own.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::state::RunState;
use crate::limits;
use crate::record::Earlier;

/// What becomes of a whole text that differs from what the run has told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WholePolicy {
    /// What is new in it is added.
    #[default]
    Add,
    /// It is ignored where the run has told any text.
    Ignore,
    /// It replaces the last message, for agents that edit their answer at the end.
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

/// What a whole text says beyond what the run has told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Compared<'w> {
    /// Nothing.
    Told,
    /// The run has told no text.
    First,
    /// This, after the last message.
    Rest(&'w str),
    /// All of it.
    New,
}

/// A whole text and its digest.
pub(crate) struct Whole<'w> {
    text: &'w str,
    digest: Digest,
}

impl<'w> Whole<'w> {
    pub(crate) fn new(text: &'w str) -> Self {
        Self { text, digest: Digest::without_whitespace(text) }
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &'w str {
        self.text
    }

    /// Returns whether the text is a told one.
    pub(crate) fn is(&self, told: Digest) -> bool {
        self.digest == told
    }

    /// Returns what follows the first `len` bytes that are no white space.
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

    /// Returns what is left of the text where it begins with a told one.
    pub(crate) fn rest_after(&self, told: Digest) -> Option<&'w str> {
        let (head, rest) = self.after(told.len).filter(|_| told.len > 0)?;
        (Digest::without_whitespace(head) == told).then_some(rest)
    }
}

impl RunState {
    /// Compares a whole text with what the run has told.
    pub(crate) fn compare<'w>(&mut self, whole: &Whole<'w>, earlier: &dyn Earlier) -> Compared<'w> {
        let told = &self.told;
        if told.is_empty() {
            return Compared::First;
        }
        if !told.mixed {
            if [told.last, told.all()].contains(&whole.digest) {
                return Compared::Told;
            }
            if let Some(rest) = whole.rest_after(told.all()) {
                return Compared::Rest(self.without_trailing(rest));
            }
        }
        // Digests are kept of the last message and of all; anything else is looked up.
        if self.told.compared > limits::RUN_COMPARED_BYTES {
            return Compared::New;
        }
        self.told.compared += self.text_bytes;
        let texts: Vec<String> = earlier.run_texts().iter().map(|text| words(&text.content)).collect();
        let text = words(whole.text);
        let is_beginning = |told: &str| told.starts_with(&text);
        let equals = |told: &String| *told == text;
        if texts.iter().any(equals)
            || texts.last().is_some_and(|last| is_beginning(last))
            || is_beginning(&texts.concat())
        {
            return Compared::Told;
        }
        match longest_tail(&texts, &text) {
            Some(len) if len == text.len() => Compared::Told,
            Some(len) => {
                let rest = whole.after(len as u64).map_or("", |(_, rest)| rest);
                Compared::Rest(self.without_trailing(rest))
            }
            None => Compared::New,
        }
    }

    /// Leaves out the white space that the last message ends with.
    pub(crate) fn without_trailing<'w>(&self, rest: &'w str) -> &'w str {
        let trailing = self.told.trailing;
        let len = usize::try_from(trailing.len).unwrap_or(usize::MAX);
        match rest.split_at_checked(len) {
            Some((head, rest)) if Digest::of(head) == trailing => rest,
            _ => rest,
        }
    }
}

/// Returns the length of the most last texts that a text begins with.
///
/// By digests, because each text would have to be compared as often as there are texts after it.
fn longest_tail(texts: &[String], text: &str) -> Option<usize> {
    let (mut tail, mut head) = (Digest::default(), Digest::default());
    let (mut hashed, mut longest) = (0, None);
    for told in texts.iter().rev().filter(|told| !told.is_empty()) {
        tail = Digest::of(told).then(tail);
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

/// Leaves out the white space of a text.
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
        let whole = Whole::new(" It is\n sunny  today.");
        assert_eq!(whole.rest_after(Digest::without_whitespace("Itis sunny")), Some("  today."));
        assert_eq!(whole.rest_after(Digest::without_whitespace("It was")), None);
        assert_eq!(whole.rest_after(Digest::default()), None);
    }
}
