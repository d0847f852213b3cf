//! Lines filled to a width: words break at spaces, Chinese at characters.

use unicode_segmentation::UnicodeSegmentation;

use super::clean::tame;
use super::measure::{fit, letter_room};

/// A line keeps no more bytes than this: marks without a width cannot make it grow.
const LINE_BYTES: usize = 16 << 10;

/// Columns between two tab stops.
const TAB: usize = 4;

/// A line that is being filled, character by character.
#[derive(Debug, Default)]
pub(super) struct Filling {
    /// What stands on the line.
    pub(super) text: String,
    /// The columns it takes at most.
    room: usize,
    /// Where the line may be broken, as a place in the text.
    break_at: usize,
    /// Where what was streamed begins, after the indent.
    start: usize,
    /// Whether the line goes on from one that was full.
    continues: bool,
}

/// What became of a character.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// It stands at the line's end.
    Added,
    /// It is left out.
    Dropped,
    /// The line was full: it ends as told, and the character is on the next one.
    Broken {
        /// What stays on the full line.
        full: String,
        /// Whether something was taken from its end to the next line.
        moved: bool,
    },
}

impl Filling {
    /// Empties the line, for what comes after a line end.
    pub(super) fn clear(&mut self) {
        *self = Self { text: std::mem::take(&mut self.text), ..Self::default() };
        self.text.clear();
    }

    /// Begins the line with spaces.
    pub(super) fn indent(&mut self, columns: usize) {
        self.text.extend(std::iter::repeat_n(' ', columns));
        self.room += columns;
        self.start = self.text.len();
        self.break_at = self.start;
    }

    /// Tells whether nothing stands on the line.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Counts the spaces up to the next tab stop.
    pub(super) fn tab(&self, indent: usize) -> usize {
        TAB - self.room.saturating_sub(indent) % TAB
    }

    /// Takes a character, which is no line end.
    pub(super) fn push(&mut self, letter: char, width: usize, indent: usize) -> Filled {
        let letter = tame(letter);
        let takes = letter_room(letter);
        if self.text.len() + letter.len_utf8() > LINE_BYTES && takes == 0 {
            return Filled::Dropped;
        }
        let before = self.text.chars().next_back().filter(|_| self.text.len() > self.start);
        if before.is_some_and(|before| breaks_between(before, letter)) {
            self.break_at = self.text.len();
        }
        if self.room + takes <= width || self.text.len() == self.start {
            if letter == ' ' && self.continues && self.text.len() == self.start {
                return Filled::Dropped;
            }
            self.text.push(letter);
            self.room += takes;
            return Filled::Added;
        }
        if letter == ' ' {
            // The line ends here if a word follows; a line end may come first.
            self.break_at = self.text.len();
            return Filled::Dropped;
        }
        let at = if self.break_at > self.start { self.break_at } else { self.hard_break(letter) };
        let rest = self.text.split_off(at);
        let full = std::mem::take(&mut self.text).trim_end().to_owned();
        let moved = !rest.is_empty();
        self.next_line(indent, &rest);
        self.text.push(letter);
        self.room += takes;
        Filled::Broken { full, moved }
    }

    fn next_line(&mut self, indent: usize, rest: &str) {
        self.clear();
        self.continues = true;
        self.indent(indent);
        self.text.push_str(rest);
        self.room += rest.chars().map(letter_room).sum::<usize>();
    }

    /// Finds where a line without a better place breaks: before the cluster that the character belongs to.
    fn hard_break(&mut self, letter: char) -> usize {
        let end = self.text.len();
        self.text.push(letter);
        let last = self.text[self.start..].grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
        self.text.truncate(end);
        match self.start + last {
            // The one cluster that the line holds is wider than the line.
            at if at == self.start => end,
            at => at,
        }
    }
}

/// Tells whether a line may end between two characters.
fn breaks_between(before: char, after: char) -> bool {
    const JOINER: char = '\u{200d}';
    if before == ' ' {
        return after != ' ';
    }
    let joins = letter_room(after) == 0
        || matches!(after, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')
        || before == JOINER;
    let wide = letter_room(before) == 2 || letter_room(after) == 2;
    wide && !joins && !never_begins(after) && !never_ends(before)
}

/// Tells whether a character does not stand at the beginning of a line.
fn never_begins(letter: char) -> bool {
    "，。、；：？！）》」』】〉”’…—·℃%,.;:?!)]}".contains(letter)
}

/// Tells whether a character does not stand at the end of a line.
fn never_ends(letter: char) -> bool {
    "（《「『【〈“‘([{¥$".contains(letter)
}

/// Wraps a text to lines of a width at most; so many of them at most, and `…` where there is more.
pub(super) fn wrap(text: &str, width: usize, most: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut filling = Filling::default();
    let mut letters = text.trim_end().chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' if letters.peek() == Some(&'\n') => {}
            '\n' => {
                lines.push(filling.text.trim_end().to_owned());
                filling.clear();
            }
            '\t' => {
                for _ in 0..filling.tab(0) {
                    if let Filled::Broken { full, .. } = filling.push(' ', width, 0) {
                        lines.push(full);
                    }
                }
            }
            letter => {
                if let Filled::Broken { full, .. } = filling.push(letter, width, 0) {
                    lines.push(full);
                }
            }
        }
        if lines.len() > most {
            break;
        }
    }
    lines.push(filling.text.trim_end().to_owned());
    if lines.len() > most {
        lines.truncate(most);
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
    use crate::view::measure::room;

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
                assert!(room(&line) <= 7, "{line}");
            }
        }
    }

    #[test]
    fn a_text_of_many_lines_is_cut_with_a_sign() {
        assert_eq!(wrap("a\nb\nc\nd", 10, 2), ["a", "b …"]);
        assert_eq!(wrap("\tx", 10, 2), ["    x"]);
    }
}
