//! NDJSON: one frame a line.

use std::ops::Range;

use super::input::Input;
use super::{Frame, FramingError, is_space};
use crate::limits;

/// Cuts lines.
///
/// Line ends are LF; a CR before it belongs to it, and a CR anywhere else is data. Lines of white
/// space alone are beats. A line that is too long is reported as soon as that is known.
#[derive(Debug, Default)]
pub(super) struct Lines {
    ended: u64,
    beats: u64,
    /// Bytes of the input that are known to hold no line end.
    scanned: usize,
    /// The line's beginning was too long and is gone.
    skipping: bool,
}

impl Lines {
    pub(super) fn beats(&self) -> u64 {
        self.beats
    }

    pub(super) fn begun(&self) -> u64 {
        self.ended + u64::from(self.scanned > 0 || self.skipping)
    }

    pub(super) fn next<'a>(&mut self, input: &'a mut Input) -> Option<Result<Frame<'a>, FramingError>> {
        let cut = self.cut(input)?;
        Some(cut.map(|range| Frame { name: None, data: input.taken(range), line: self.begun() }))
    }

    fn cut(&mut self, input: &mut Input) -> Option<Result<Range<usize>, FramingError>> {
        loop {
            let Some(range) = self.take_line(input) else {
                return self.give_up_a_long_line(input).map(Err);
            };
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let line = input.taken(range.clone());
            if line.len() > limits::FRAME_BYTES {
                return Some(Err(FramingError::TooLong { line: self.ended }));
            }
            if !line.iter().all(|byte| is_space(*byte)) {
                return Some(Ok(range));
            }
            self.beats += 1;
        }
    }

    /// Takes a complete line without its line end.
    fn take_line(&mut self, input: &mut Input) -> Option<Range<usize>> {
        let rest = input.rest();
        let found = memchr::memchr(b'\n', &rest[self.scanned..]).map(|at| self.scanned + at);
        let (end, taken) = match found {
            Some(end) => (end, end + 1),
            None if input.has_ended() && !rest.is_empty() => (rest.len(), rest.len()),
            None => {
                self.scanned = rest.len();
                return None;
            }
        };
        let end = end - usize::from(rest[..end].ends_with(b"\r"));
        self.ended += 1;
        self.scanned = 0;
        let range = input.take(taken);
        Some(range.start..range.start + end)
    }

    /// Drops the beginning of a line that is too long to be a frame, and reports it once.
    fn give_up_a_long_line(&mut self, input: &mut Input) -> Option<FramingError> {
        let rest = input.rest();
        // A CR at the very end may belong to the line end.
        let length = rest.len() - usize::from(rest.ends_with(b"\r"));
        if !self.skipping && length <= limits::FRAME_BYTES {
            return None;
        }
        input.take_all();
        self.scanned = 0;
        let first = !std::mem::replace(&mut self.skipping, true);
        first.then(|| FramingError::TooLong { line: self.begun() })
    }
}

/// Writes a line. A line end inside the data can only be JSON's white space, so a space replaces it.
pub(super) fn write(out: &mut Vec<u8>, data: &[u8]) {
    let from = out.len();
    out.extend_from_slice(data);
    let mut at = from;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &out[at..]) {
        at += found;
        out[at] = b' ';
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Cut, beats, cut_endless, cuts, frame, take_all};
    use super::super::{Framing, Unframer};
    use super::*;

    fn lines(bytes: &str) -> Vec<Cut> {
        cuts(Framing::Ndjson, bytes)
    }

    #[test]
    fn each_line_is_a_frame_and_knows_its_number() {
        assert_eq!(lines("{\"a\":1}\n\n{\"b\":2}\r\n"), [frame("{\"a\":1}", 1), frame("{\"b\":2}", 3)]);
    }

    #[test]
    fn the_last_line_counts_without_its_line_end() {
        assert_eq!(lines("{}\n{\"a\":1}"), [frame("{}", 1), frame("{\"a\":1}", 2)]);
        assert_eq!(lines("{}\r"), [frame("{}", 1)]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_at_the_start_alone() {
        assert_eq!(lines("\u{feff}{}\n\u{feff}{}"), [frame("{}", 1), frame("\u{feff}{}", 2)]);
    }

    #[test]
    fn a_carriage_return_inside_a_line_is_data() {
        assert_eq!(lines("a\rb\r\n\rc\r\r\n"), [frame("a\rb", 1), frame("\rc\r", 2)]);
    }

    #[test]
    fn white_space_around_a_frame_stays_so_that_columns_are_right() {
        assert_eq!(lines("  {} \n"), [frame("  {} ", 1)]);
    }

    #[test]
    fn lines_of_white_space_are_beats() {
        assert_eq!(beats(Framing::Ndjson, "\n \t\n{}\n\r\n\r\r\n "), 5);
    }

    #[test]
    fn lines_are_counted_when_they_begin() {
        let mut unframer = Unframer::new(Framing::Ndjson);
        let mut line_after = |bytes: &[u8]| {
            unframer.push(bytes);
            take_all(&mut unframer);
            unframer.line()
        };
        assert_eq!([line_after(b""), line_after(b"{"), line_after(b"}\n"), line_after(b"\n{")], [0, 1, 1, 3]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let long = "x".repeat(limits::FRAME_BYTES + 1);
        let too_long = Cut::Error(FramingError::TooLong { line: 2 });
        assert_eq!(lines(&format!("{{}}\n{long}\n[]\n")), [frame("{}", 1), too_long, frame("[]", 3)]);
    }

    #[test]
    fn an_endless_line_is_reported_at_once_and_takes_no_memory() {
        for piece in ["x", " ", "\r"] {
            let (mut unframer, cuts) = cut_endless(Framing::Ndjson, "{}\n", piece);
            assert_eq!(cuts, [frame("{}", 1), Cut::Error(FramingError::TooLong { line: 2 })]);
            unframer.push(b"\n{}\n");
            assert_eq!(take_all(&mut unframer), [frame("{}", 3)]);
        }
    }

    #[test]
    fn endless_blank_lines_take_no_memory() {
        let (unframer, cuts) = cut_endless(Framing::Ndjson, "", " \r\n");
        assert_eq!(cuts, []);
        assert!(unframer.beats() > 1_000_000);
    }

    #[test]
    fn a_written_frame_is_one_line() {
        let mut out = b"{}\n".to_vec();
        write(&mut out, b"{\n\"a\":\r\n1\r}\n");
        assert_eq!(String::from_utf8_lossy(&out), "{}\n{ \"a\":  1 } \n");
    }
}
