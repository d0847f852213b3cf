//! The texts of a run, and how they read when they are joined.

use crate::event::{Body, Event};

/// A text of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunText {
    /// Its message's id.
    pub id: String,
    /// Its content.
    pub content: String,
}

/// Collects the assistant's texts of a run outside subagents, in the order in which they began.
#[derive(Debug, Clone, Default)]
pub struct RunTexts {
    texts: Vec<RunText>,
}

impl RunTexts {
    /// Adds the next event of the run.
    pub fn absorb(&mut self, event: &Event) {
        match &event.body {
            Body::TextStarted(started) if !started.is_not_assistant() && event.subagent_run_id.is_none() => {
                self.texts.push(RunText { id: started.message_id.clone(), content: String::new() });
            }
            Body::TextDelta(delta) => {
                if let Some(text) = self.find(&delta.message_id) {
                    text.content.push_str(&delta.content);
                }
            }
            Body::TextFinished(finished) => {
                if let (Some(content), Some(text)) = (&finished.content, self.find(&finished.message_id)) {
                    text.content.clone_from(content);
                }
            }
            _ => {}
        }
    }

    fn find(&mut self, id: &str) -> Option<&mut RunText> {
        self.texts.iter_mut().rfind(|text| text.id == id)
    }

    /// Returns the texts.
    pub fn as_slice(&self) -> &[RunText] {
        &self.texts
    }

    /// Returns the texts.
    pub fn into_vec(self) -> Vec<RunText> {
        self.texts
    }

    /// Returns the bytes of the texts.
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(|text| text.content.len()).sum()
    }
}

/// Joins texts, each with its id: with a blank line between two messages, and with nothing between a message
/// and its continuation. Empty texts are left out.
pub fn join<'t>(texts: impl Iterator<Item = (&'t str, &'t str)>) -> String {
    let mut joined = String::new();
    let mut previous: Option<&str> = None;
    for (id, content) in texts.filter(|(_, content)| !content.is_empty()) {
        if previous.is_some_and(|previous| !continues(previous, id)) {
            joined.push_str("\n\n");
        }
        joined.push_str(content);
        previous = Some(id);
    }
    joined
}

/// Returns whether a message continues the one before it: `m1#2` after `m1`, `m1#3` after `m1#2`.
pub fn continues(previous: &str, id: &str) -> bool {
    continued(id).is_some_and(|base| previous == base || continued(previous) == Some(base))
}

/// Returns the id of the message that an id such as `m1#2` continues: `m1`.
pub(crate) fn continued(id: &str) -> Option<&str> {
    let (base, number) = id.rsplit_once('#')?;
    number.parse::<u32>().is_ok_and(|number| number >= 2).then_some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continuation_is_joined_without_a_blank_line() {
        let texts = [("m1", "I don't"), ("m1#2", " know"), ("m2", "Sorry"), ("m3#2", ""), ("m1#3", "!")];
        assert_eq!(join(texts.into_iter()), "I don't know\n\nSorry\n\n!");
        assert!(continues("m1#2", "m1#3"));
        assert!(!continues("m1", "m1#1"));
        assert!(!continues("m1", "m10#2"));
    }
}
