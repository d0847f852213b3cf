//! How many columns a text takes.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Counts the columns that a text takes on a terminal that joins emoji: the measure to align by.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Counts the columns that a text takes at most: the measure to stay within.
///
/// Terminals differ on joined emoji: a family of three takes two columns on one and six on another. A line
/// that must not wrap is measured by whichever is wider.
pub(crate) fn room(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(|cluster| cluster.width().max(cluster.chars().map(letter_room).sum())).sum()
}

/// Counts the columns that one more character takes at most.
pub(super) fn letter_room(letter: char) -> usize {
    match letter {
        // It asks for the emoji's form of the character before, which is wider.
        '\u{fe0f}' => 1,
        letter => letter.width().unwrap_or(0),
    }
}

/// Cuts a text to a width, with `…` where something is missing.
pub(crate) fn fit(text: &str, most: usize) -> Cow<'_, str> {
    fit_by(text, most, width)
}

/// Cuts a text to the room it may take, with `…` where something is missing.
pub(super) fn fit_room(text: &str, most: usize) -> Cow<'_, str> {
    fit_by(text, most, room)
}

fn fit_by(text: &str, most: usize, measure: fn(&str) -> usize) -> Cow<'_, str> {
    if text.len() <= most || measure(text) <= most {
        return Cow::Borrowed(text);
    }
    if most == 0 {
        return Cow::Borrowed("");
    }
    let mut end = 0;
    let mut taken = 1;
    for (at, cluster) in text.grapheme_indices(true) {
        taken += measure(cluster);
        if taken > most {
            break;
        }
        end = at + cluster.len();
    }
    Cow::Owned(format!("{}…", text[..end].trim_end()))
}

/// Adds spaces up to a width, before the text or after it.
pub(crate) fn pad(text: &str, to: usize, right: bool) -> String {
    let spaces = " ".repeat(to.saturating_sub(width(text)));
    if right { spaces + text } else { text.to_owned() + &spaces }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: &str = "👨\u{200d}👩\u{200d}👧";

    #[test]
    fn chinese_and_emoji_take_two_columns() {
        assert_eq!(width("天气"), 4);
        assert_eq!(width("🍵"), 2);
        assert_eq!(width(FAMILY), 2);
        assert_eq!(width("🇨🇳"), 2);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(width("❤\u{fe0f}"), 2);
    }

    #[test]
    fn a_joined_emoji_has_room_on_a_terminal_that_does_not_join_it() {
        assert_eq!(room(FAMILY), 6);
        assert_eq!(room("🇨🇳"), 2);
        assert_eq!(room("❤\u{fe0f}"), 2);
    }

    #[test]
    fn a_text_is_cut_between_what_a_person_takes_for_characters() {
        assert_eq!(fit("天气很好", 7), "天气很…");
        assert_eq!(fit("天气很好", 8), "天气很好");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(fit("🇨🇳🇫🇷", 3), "🇨🇳…");
        assert_eq!(fit(&format!("a{FAMILY}bc"), 4), format!("a{FAMILY}…"));
        assert_eq!(fit_room(&format!("a{FAMILY}bc"), 7), "a…");
        assert_eq!(pad("天", 4, true), "  天");
    }
}
