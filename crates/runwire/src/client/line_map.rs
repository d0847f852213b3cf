//! Maps lines of an upload's body to lines of the input: keep-alive lines are only in the body.

use std::collections::VecDeque;

use runwire_model::framing::Framing;

/// Limits the remembered places. The server refuses a line soon after it arrives, so the newest are enough.
const MAX_PLACES: usize = 1024;

/// Maps lines of the body to lines of the input.
#[derive(Debug)]
pub(super) struct LineMap {
    framing: Framing,
    /// Complete lines of the input sent so far.
    lines: u64,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    /// Keep-alive lines sent so far.
    keep_alives: u64,
    /// Keep-alive lines before the remembered places.
    forgotten: u64,
    /// Places of keep-alive lines: the input lines before, and the keep-alive lines up to there.
    places: VecDeque<(u64, u64)>,
}

impl LineMap {
    /// Creates the map of an empty body.
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, lines: 0, after_cr: false, keep_alives: 0, forgotten: 0, places: VecDeque::new() }
    }

    /// Counts a chunk of the input.
    pub(super) fn input(&mut self, piece: &[u8]) {
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

    /// Counts a keep-alive line.
    pub(super) fn keep_alive(&mut self) {
        self.keep_alives += 1;
        match self.places.back_mut() {
            Some((lines, keep_alives)) if *lines == self.lines => *keep_alives = self.keep_alives,
            _ => self.places.push_back((self.lines, self.keep_alives)),
        }
        if self.places.len() > MAX_PLACES
            && let Some((_, keep_alives)) = self.places.pop_front()
        {
            self.forgotten = keep_alives;
        }
    }

    /// Returns the input line of a body line, both from 1.
    pub(super) fn input_line(&self, line: u64) -> u64 {
        let before = self.places.iter().rev().find(|(lines, keep_alives)| lines + keep_alives < line);
        line.saturating_sub(before.map_or(self.forgotten, |(_, keep_alives)| *keep_alives))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_lines_are_mapped_to_input_lines() {
        let mut map = LineMap::new(Framing::Ndjson);
        map.keep_alive();
        map.input(b"{}\n{}\n");
        map.keep_alive();
        map.keep_alive();
        map.input(b"{\r}\r\n{}");
        assert_eq!([2, 3, 6, 7].map(|line| map.input_line(line)), [1, 2, 3, 4]);
        let mut map = LineMap::new(Framing::Sse);
        for piece in ["data: a\r", "\n\r\r\n", "data: b\n"] {
            map.input(piece.as_bytes());
        }
        map.keep_alive();
        assert_eq!([1, 4, 6].map(|line| map.input_line(line)), [1, 4, 5]);
    }

    #[test]
    fn memory_is_bounded_with_a_keep_alive_after_each_line() {
        let mut map = LineMap::new(Framing::Ndjson);
        for _ in 0..10 * MAX_PLACES {
            map.keep_alive();
            map.input(b"{}\n");
        }
        assert!(map.places.len() <= MAX_PLACES);
        let last = 10 * MAX_PLACES as u64;
        assert_eq!(map.input_line(2 * last), last);
        assert_eq!(map.input_line(2 * (last - 100)), last - 100);
    }
}
