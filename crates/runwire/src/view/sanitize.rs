//! Text from a run that cannot drive the reader's terminal.
//!
//! Whatever a run says reaches the terminal through these functions: escape sequences, control characters
//! and characters that turn the direction of writing are shown as a replacement character.

use std::borrow::Cow;

/// Replaces a character that would act on a terminal.
pub(crate) fn tame(letter: char) -> char {
    if acts(letter) { char::REPLACEMENT_CHARACTER } else { letter }
}

/// Tells whether a character does something to a terminal, or to the text around it, instead of being seen.
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0001}')
}

/// Makes a text that stands on one line: line ends and tabs become a space.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for letter in text.replace("\r\n", "\n").chars() {
        line.push(if matches!(letter, '\n' | '\r' | '\t') { ' ' } else { tame(letter) });
    }
    Cow::Owned(line)
}

/// Cuts a text to a number of bytes at most, at a character's end.
pub(super) fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_shown_and_does_nothing() {
        assert_eq!(one_line("\x1b[2J\x07\u{9b}31m"), "\u{fffd}[2J\u{fffd}\u{fffd}31m");
        assert_eq!(one_line("safe\u{202e}exe.cod"), "safe\u{fffd}exe.cod");
        assert_eq!(one_line("a\r\nb\tc"), "a b c");
        assert_eq!(one_line("👨\u{200d}👩\u{200d}👧"), "👨\u{200d}👩\u{200d}👧");
    }

    #[test]
    fn a_cut_never_halves_a_character() {
        assert_eq!(cut("天气", 4), "天");
        assert_eq!(cut("天气", 6), "天气");
        assert_eq!(cut("天", 0), "");
    }
}
