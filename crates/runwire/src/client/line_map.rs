//! The signs of life in a body: lines to the server, and none of the input.

use std::collections::VecDeque;

use runwire_model::framing::Framing;

/// Places of signs that are remembered. The server refuses a line soon after it has come, so the newest are enough.
const REMEMBERED: usize = 1024;

/// Tells which line of the input a line of the body is.
#[derive(Debug)]
pub(super) struct Beats {
    framing: Framing,
    /// Lines of the input that were sent whole.
    lines: u64,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    /// Signs so far.
    beats: u64,
    /// Signs before those that are remembered.
    forgotten: u64,
    /// After how many lines of the input signs were sent, and how many there were then.
    places: VecDeque<(u64, u64)>,
}

impl Beats {
    /// Begins a body.
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, lines: 0, after_cr: false, beats: 0, forgotten: 0, places: VecDeque::new() }
    }

    /// Notes that a piece of the input is sent.
    pub(super) fn sent(&mut self, piece: &[u8]) {
        for byte in piece {
            let ends = match (byte, self.framing) {
                (b'\n', Framing::Sse) => !self.after_cr,
                (b'\n', _) | (b'\r', Framing::Sse) => true,
                _ => false,
            };
            self.lines += u64::from(ends);
            self.after_cr = *byte == b'\r';
        }
    }

    /// Notes that a sign of life is sent, which is a line of its own.
    pub(super) fn beat(&mut self) {
        self.beats += 1;
        match self.places.back_mut() {
            Some((lines, beats)) if *lines == self.lines => *beats = self.beats,
            _ => self.places.push_back((self.lines, self.beats)),
        }
        if self.places.len() > REMEMBERED
            && let Some((_, beats)) = self.places.pop_front()
        {
            self.forgotten = beats;
        }
    }

    /// Tells the line of the input that is this line of the body, both from 1.
    pub(super) fn in_input(&self, line: u64) -> u64 {
        let before = self.places.iter().rev().find(|(lines, beats)| lines + beats < line);
        line.saturating_sub(before.map_or(self.forgotten, |(_, beats)| *beats))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_body_is_told_as_the_line_of_the_input() {
        let mut beats = Beats::new(Framing::Ndjson);
        beats.beat();
        beats.sent(b"{}\n{}\n");
        beats.beat();
        beats.beat();
        beats.sent(b"{\r}\r\n{}");
        assert_eq!([2, 3, 6, 7].map(|line| beats.in_input(line)), [1, 2, 3, 4]);
        let mut beats = Beats::new(Framing::Sse);
        for piece in ["data: a\r", "\n\r\r\n", "data: b\n"] {
            beats.sent(piece.as_bytes());
        }
        beats.beat();
        assert_eq!([1, 4, 6].map(|line| beats.in_input(line)), [1, 4, 5]);
    }

    #[test]
    fn a_body_that_is_silent_between_all_its_lines_takes_no_memory() {
        let mut beats = Beats::new(Framing::Ndjson);
        for _ in 0..10 * REMEMBERED {
            beats.beat();
            beats.sent(b"{}\n");
        }
        assert!(beats.places.len() <= REMEMBERED);
        let last = 10 * REMEMBERED as u64;
        assert_eq!(beats.in_input(2 * last), last);
        assert_eq!(beats.in_input(2 * (last - 100)), last - 100);
    }
}
