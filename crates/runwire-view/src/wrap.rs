//! Wraps text to a width: words break at spaces, Chinese between characters.

use unicode_segmentation::UnicodeSegmentation;

use super::measure::{fit, letter_max_width};
use super::sanitize::sanitize;

/// Limits the bytes of a line, as combining marks have no width.
const LINE_BYTES: usize = 16 << 10;

/// Columns between two tab stops.
const TAB: usize = 4;

/// The current line, filled character by character.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    /// Its text.
    pub(super) text: String,
    /// Its maximum width.
    max_width: usize,
    /// Offset of the last possible break.
    break_at: usize,
    /// Offset of the text after the indent.
    start: usize,
    /// Whether the line continues a full one.
    continues: bool,
}

/// The result of adding a character.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PushedCharacter {
    /// It was appended.
    Added,
    /// It was dropped.
    Dropped,
    /// The line was full, and the character is on the next one.
    Broken {
        /// The text of the full line.
        full: String,
        /// Whether a part of it moved to the next line.
        moved: bool,
    },
}

impl LineBuffer {
    /// Clears the line after a line end.
    pub(super) fn clear(&mut self) {
        *self = Self { text: std::mem::take(&mut self.text), ..Self::default() };
        self.text.clear();
    }

    /// Indents the empty line.
    pub(super) fn indent(&mut self, columns: usize) {
        self.text.extend(std::iter::repeat_n(' ', columns));
        self.max_width += columns;
        self.start = self.text.len();
        self.break_at = self.start;
    }

    /// Returns true if the line is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the number of spaces up to the next tab stop.
    pub(super) fn tab(&self, indent: usize) -> usize {
        TAB - self.max_width.saturating_sub(indent) % TAB
    }

    /// Adds a character that is not a line end.
    pub(super) fn push(&mut self, letter: char, width: usize, indent: usize) -> PushedCharacter {
        let letter = sanitize(letter);
        let takes = letter_max_width(letter);
        if self.text.len() + letter.len_utf8() > LINE_BYTES && takes == 0 {
            return PushedCharacter::Dropped;
        }
        let before = self.text.chars().next_back().filter(|_| self.text.len() > self.start);
        if before.is_some_and(|before| breaks_between(before, letter)) {
            self.break_at = self.text.len();
        }
        if self.max_width + takes <= width || self.text.len() == self.start {
            if letter == ' ' && self.continues && self.text.len() == self.start {
                return PushedCharacter::Dropped;
            }
            self.text.push(letter);
            self.max_width += takes;
            return PushedCharacter::Added;
        }
        if letter == ' ' {
            // Drop a space at the edge: a line end may follow.
            self.break_at = self.text.len();
            return PushedCharacter::Dropped;
        }
        let at = if self.break_at > self.start { self.break_at } else { self.hard_break(letter) };
        let rest = self.text.split_off(at);
        let full = std::mem::take(&mut self.text).trim_end().to_owned();
        let moved = !rest.is_empty();
        self.next_line(indent, &rest);
        self.text.push(letter);
        self.max_width += takes;
        PushedCharacter::Broken { full, moved }
    }

    fn next_line(&mut self, indent: usize, rest: &str) {
        self.clear();
        self.continues = true;
        self.indent(indent);
        self.text.push_str(rest);
        self.max_width += rest.chars().map(letter_max_width).sum::<usize>();
    }

    /// Returns the offset to break a line without spaces: before the character's grapheme.
    fn hard_break(&mut self, letter: char) -> usize {
        let end = self.text.len();
        self.text.push(letter);
        let last = self.text[self.start..].grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
        self.text.truncate(end);
        match self.start + last {
            // A single grapheme is wider than the line.
            at if at == self.start => end,
            at => at,
        }
    }
}

/// Returns true if a line may break between two characters.
fn breaks_between(before: char, after: char) -> bool {
    const JOINER: char = '\u{200d}';
    if before == ' ' {
        return after != ' ';
    }
    let joins = letter_max_width(after) == 0
        || matches!(after, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')
        || before == JOINER;
    let wide = letter_max_width(before) == 2 || letter_max_width(after) == 2;
    wide && !joins && !never_begins(after) && !never_ends(before)
}

/// Returns true if a line must not start with a character.
fn never_begins(letter: char) -> bool {
    "，。、；：？！）》」』】〉”’…—·℃%,.;:?!)]}".contains(letter)
}

/// Returns true if a line must not end with a character.
fn never_ends(letter: char) -> bool {
    "（《「『【〈“‘([{¥$".contains(letter)
}

/// Wraps a text to a width and a number of lines, with `…` if there are more.
pub(super) fn wrap(text: &str, width: usize, max: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line_buffer = LineBuffer::default();
    let mut letters = text.trim_end().chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' if letters.peek() == Some(&'\n') => {}
            '\n' => {
                lines.push(line_buffer.text.trim_end().to_owned());
                line_buffer.clear();
            }
            '\t' => {
                for _ in 0..line_buffer.tab(0) {
                    if let PushedCharacter::Broken { full, .. } = line_buffer.push(' ', width, 0) {
                        lines.push(full);
                    }
                }
            }
            letter => {
                if let PushedCharacter::Broken { full, .. } = line_buffer.push(letter, width, 0) {
                    lines.push(full);
                }
            }
        }
        if lines.len() > max {
            break;
        }
    }
    lines.push(line_buffer.text.trim_end().to_owned());
    if lines.len() > max {
        lines.truncate(max);
        if let Some(last) = lines.last_mut() {
            let longer = format!("{last} …");
            *last = fit(&longer, width).into_owned();
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::max_width;

    #[test]
    fn words_break_at_spaces_and_chinese_at_characters() {
        assert_eq!(wrap("the quick brown fox", 10, 9), ["the quick", "brown fox"]);
        assert_eq!(wrap("今天天气很好，出去走走", 10, 9), ["今天天气很", "好，出去走", "走"]);
        assert_eq!(wrap("今天天气好，出去", 10, 9), ["今天天气", "好，出去"]);
        assert_eq!(wrap("abcdefghijkl", 5, 9), ["abcde", "fghij", "kl"]);
    }

    #[test]
    fn a_family_a_flag_and_a_letter_with_its_marks_stay_whole() {
        for text in ["👨\u{200d}👩\u{200d}👧", "🇨🇳", "e\u{301}\u{302}", "👍🏽", "❤\u{fe0f}"]
        {
            for line in wrap(&text.repeat(9), 7, 99) {
                assert_eq!(line.replace(text, ""), "", "{line}");
                assert!(max_width(&line) <= 7, "{line}");
            }
        }
    }

    #[test]
    fn a_long_text_is_truncated_with_an_ellipsis() {
        assert_eq!(wrap("a\nb\nc\nd", 10, 2), ["a", "b …"]);
        assert_eq!(wrap("\tx", 10, 2), ["    x"]);
    }
}
