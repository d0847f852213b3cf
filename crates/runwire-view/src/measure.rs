//! Measures and truncates text by terminal columns.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the width of a text on a terminal that joins emoji; used to align.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Returns the maximum width of a text on any terminal; used to stay within a width.
///
/// Terminals differ on joined emoji: a family of three takes two columns on one and six on another.
pub fn max_width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(|cluster| cluster.width().max(cluster.chars().map(letter_max_width).sum())).sum()
}

/// Returns the maximum width of a character.
pub(super) fn letter_max_width(letter: char) -> usize {
    match letter {
        // The variation selector makes the character before it wider.
        '\u{fe0f}' => 1,
        letter => letter.width().unwrap_or(0),
    }
}

/// Truncates a text to a width, with `…`.
pub fn fit(text: &str, max: usize) -> Cow<'_, str> {
    fit_by(text, max, width)
}

/// Truncates a text to a maximum width, with `…`.
pub(super) fn fit_max_width(text: &str, max: usize) -> Cow<'_, str> {
    fit_by(text, max, max_width)
}

fn fit_by(text: &str, max: usize, measure: fn(&str) -> usize) -> Cow<'_, str> {
    if text.len() <= max || measure(text) <= max {
        return Cow::Borrowed(text);
    }
    if max == 0 {
        return Cow::Borrowed("");
    }
    let mut end = 0;
    let mut taken = 1;
    for (at, cluster) in text.grapheme_indices(true) {
        taken += measure(cluster);
        if taken > max {
            break;
        }
        end = at + cluster.len();
    }
    Cow::Owned(format!("{}…", text[..end].trim_end()))
}

/// Pads a text to a width, on the left or on the right.
pub fn pad(text: &str, to: usize, right: bool) -> String {
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
    fn the_maximum_width_covers_terminals_that_do_not_join_emoji() {
        assert_eq!(max_width(FAMILY), 6);
        assert_eq!(max_width("🇨🇳"), 2);
        assert_eq!(max_width("❤\u{fe0f}"), 2);
    }

    #[test]
    fn a_text_is_truncated_between_graphemes() {
        assert_eq!(fit("天气很好", 7), "天气很…");
        assert_eq!(fit("天气很好", 8), "天气很好");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(fit("🇨🇳🇫🇷", 3), "🇨🇳…");
        assert_eq!(fit(&format!("a{FAMILY}bc"), 4), format!("a{FAMILY}…"));
        assert_eq!(fit_max_width(&format!("a{FAMILY}bc"), 7), "a…");
        assert_eq!(pad("天", 4, true), "  天");
    }
}
