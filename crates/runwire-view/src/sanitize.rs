//! Sanitizes untrusted text for the terminal.
//!
//! All text of a run reaches the terminal through these functions: control characters, escape sequences and characters
//! that change the writing direction become a replacement character.

use std::borrow::Cow;

/// Replaces a character that acts on a terminal.
pub fn sanitize(letter: char) -> char {
    if is_unsafe(letter) { char::REPLACEMENT_CHARACTER } else { letter }
}

/// Returns true if a character acts on the terminal or on the text around it.
fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0001}')
}

/// Sanitizes a text for one line: line ends and tabs become spaces.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for letter in text.replace("\r\n", "\n").chars() {
        line.push(if matches!(letter, '\n' | '\r' | '\t') { ' ' } else { sanitize(letter) });
    }
    Cow::Owned(line)
}

/// Truncates a text to a number of bytes, at a character boundary.
pub(super) fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_on_a_terminal_are_replaced() {
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
