//! JSON: an array whose elements are the frames, or values that follow each other.

use std::ops::Range;

use super::input::Input;
use super::{END_MARK, Frame, FramingError, is_space};
use crate::limits;

/// Cuts values.
///
/// Parses only as much JSON as it takes to find where a value ends: strings, their escapes, and the depth of brackets.
/// The decoder checks that a value is valid and an object. Bytes between the values are checked here, and an error
/// there is final: where the next value begins would be a guess. An end mark is skipped: it is no array.
#[derive(Debug, Default)]
pub(super) struct Values {
    position: ArrayPosition,
    /// The value that has begun.
    value: Option<Value>,
    /// Bytes of the value that were scanned.
    scanned: usize,
    newlines: u64,
    /// The last byte read was no newline.
    mid_line: bool,
}

/// Position of the next byte that belongs to no frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ArrayPosition {
    #[default]
    Outside,
    AfterBracket,
    AfterElement,
    AfterComma,
}

#[derive(Debug)]
struct Value {
    line: u64,
    scalar: bool,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the value was too long: its bytes were dropped, and its end is searched for.
    skipped: bool,
}

impl Values {
    /// Counts the lines that have begun.
    pub(super) fn begun(&self) -> u64 {
        self.newlines + u64::from(self.mid_line)
    }

    pub(super) fn next<'a>(&mut self, input: &'a mut Input) -> Option<Result<Frame<'a>, FramingError>> {
        let cut = self.cut(input)?;
        if cut.as_ref().is_err_and(|error| !error.can_continue()) {
            input.abandon();
            *self = Self { newlines: self.newlines, mid_line: self.mid_line, ..Self::default() };
        }
        Some(cut.map(|(range, line)| Frame { name: None, data: input.taken(range), line }))
    }

    fn cut(&mut self, input: &mut Input) -> Option<Result<(Range<usize>, u64), FramingError>> {
        loop {
            if let Some(value) = self.value.take() {
                match self.read_value(value, input) {
                    Read::Frame(range, line) => return Some(Ok((range, line))),
                    Read::Nothing => {}
                    Read::Error(error) => return Some(Err(error)),
                    Read::NeedsMore => return None,
                }
            }
            self.skip_space(input);
            let Some(&byte) = input.rest().first() else {
                return if input.has_ended() { self.unclosed().map(Err) } else { None };
            };
            if self.position == ArrayPosition::Outside && byte == b'[' {
                let rest = input.rest();
                if rest.starts_with(END_MARK) {
                    self.mid_line = true;
                    input.take(END_MARK.len());
                    continue;
                }
                if END_MARK.starts_with(rest) && !input.has_ended() {
                    return None;
                }
            }
            if let Err(problem) = self.step(byte, input) {
                return Some(Err(FramingError::NotJson { line: self.newlines + 1, problem }));
            }
        }
    }

    fn skip_space(&mut self, input: &mut Input) {
        let rest = input.rest();
        let length = rest.iter().position(|byte| !is_space(*byte)).unwrap_or(rest.len());
        self.count_lines(&rest[..length]);
        input.take(length);
    }

    /// Goes past a bracket or a comma, or begins a value.
    fn step(&mut self, byte: u8, input: &mut Input) -> Result<(), &'static str> {
        self.position = match (self.position, byte) {
            (ArrayPosition::Outside, b'[') => ArrayPosition::AfterBracket,
            (ArrayPosition::AfterBracket | ArrayPosition::AfterElement, b']') => ArrayPosition::Outside,
            (ArrayPosition::AfterElement, b',') => ArrayPosition::AfterComma,
            (ArrayPosition::AfterElement, _) => return Err("after an element, `,` or `]` is expected"),
            (_, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.value = Some(Value::begin(byte, self.newlines + 1));
                return Ok(());
            }
            (ArrayPosition::Outside, _) => return Err("an object or an array of objects is expected"),
            (ArrayPosition::AfterBracket, _) => return Err("an element or `]` is expected"),
            (ArrayPosition::AfterComma, _) => return Err("after a comma, an element is expected"),
        };
        self.mid_line = true;
        input.take(1);
        Ok(())
    }

    fn read_value(&mut self, mut value: Value, input: &mut Input) -> Read {
        let whole = self.scan_value(&mut value, input);
        let (line, skipped_before) = (value.line, value.skipped);
        value.skipped |= self.scanned > limits::FRAME_BYTES;
        let skipped = value.skipped;
        let range = if whole || skipped { input.take(std::mem::take(&mut self.scanned)) } else { 0..0 };
        if !whole {
            self.value = Some(value);
        } else if self.position != ArrayPosition::Outside {
            self.position = ArrayPosition::AfterElement;
        }
        if skipped && !skipped_before {
            Read::Error(FramingError::TooLong { line })
        } else if whole {
            if skipped { Read::Nothing } else { Read::Frame(range, line) }
        } else if input.has_ended() {
            let problem = "the stream ends inside the value that begins here";
            Read::Error(FramingError::NotJson { line, problem })
        } else {
            Read::NeedsMore
        }
    }

    /// Scans the available part of the value, and returns true at its end.
    fn scan_value(&mut self, value: &mut Value, input: &Input) -> bool {
        let new = &input.rest()[self.scanned..];
        let end = value.find_end(new);
        let read = &new[..end.unwrap_or(new.len())];
        self.count_lines(read);
        self.scanned += read.len();
        // Nothing but the end of the stream can end a last number that stands alone.
        end.is_some() || (input.has_ended() && value.scalar && self.position == ArrayPosition::Outside)
    }

    fn unclosed(&self) -> Option<FramingError> {
        let problem = "the stream ends before the array is closed";
        (self.position != ArrayPosition::Outside)
            .then(|| FramingError::NotJson { line: self.begun(), problem })
    }

    fn count_lines(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
            self.mid_line = *last != b'\n';
        }
    }
}

/// Result of reading on in a value.
enum Read {
    Frame(Range<usize>, u64),
    /// The end of a value that was reported before.
    Nothing,
    Error(FramingError),
    NeedsMore,
}

impl Value {
    fn begin(byte: u8, line: u64) -> Self {
        let scalar = !matches!(byte, b'{' | b'[' | b'"');
        Self { line, scalar, depth: 0, in_string: false, escaped: false, skipped: false }
    }

    /// Scans on in the value and returns where it ends, if it does.
    fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.scalar {
            return bytes.iter().position(|byte| is_space(*byte) || b",:[]{}\"".contains(byte));
        }
        let mut at = 0;
        while at < bytes.len() {
            at += if self.in_string { self.read_string(&bytes[at..]) } else { self.read_mark(bytes[at]) };
            if self.depth == 0 && !self.in_string {
                return Some(at);
            }
        }
        None
    }

    /// Scans to the end of the string, or past its next escape, and returns how far.
    fn read_string(&mut self, bytes: &[u8]) -> usize {
        if std::mem::take(&mut self.escaped) {
            return 1;
        }
        let Some(found) = memchr::memchr2(b'"', b'\\', bytes) else { return bytes.len() };
        self.escaped = bytes[found] == b'\\';
        self.in_string = self.escaped;
        found + 1
    }

    /// Reads a byte outside strings.
    fn read_mark(&mut self, byte: u8) -> usize {
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            // Which bracket closes which is the decoder's to check.
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Cut, cut_endless, cuts, frame, take_all};
    use super::super::{Framing, Unframer};
    use super::*;

    fn values(bytes: &str) -> Vec<Cut> {
        cuts(Framing::Json, bytes)
    }

    fn not_json(line: u64, problem: &'static str) -> Cut {
        Cut::Error(FramingError::NotJson { line, problem })
    }

    #[test]
    fn one_object_is_one_frame() {
        assert_eq!(values("\n{\"a\":\n{}}\n"), [frame("{\"a\":\n{}}", 2)]);
    }

    #[test]
    fn each_element_of_an_array_is_a_frame_with_its_own_bytes_and_line() {
        assert_eq!(
            values("[\n  {\"a\": 1,\n   \"b\": []},\r\n\r\n  {} , {\"c\":\t2}\n]\n"),
            [frame("{\"a\": 1,\n   \"b\": []}", 2), frame("{}", 5), frame("{\"c\":\t2}", 5)]
        );
    }

    #[test]
    fn objects_and_arrays_may_follow_each_other() {
        assert_eq!(
            values("{\"a\":1}{\"b\":2}\n[{}]\n[]{}"),
            [frame("{\"a\":1}", 1), frame("{\"b\":2}", 1), frame("{}", 2), frame("{}", 3)]
        );
    }

    #[test]
    fn an_end_mark_is_passed_over() {
        assert_eq!(values("[DONE]"), []);
        assert_eq!(values(" [DONE]\n"), []);
        assert_eq!(values("{}\n[DONE]\n{}"), [frame("{}", 1), frame("{}", 3)]);
        let problem = "an element or `]` is expected";
        assert_eq!(values("[DON]"), [not_json(1, problem)]);
        assert_eq!(values("[ DONE]"), [not_json(1, problem)]);
    }

    #[test]
    fn brackets_quotes_and_commas_inside_strings_end_nothing() {
        for value in [r#"{"}":"]\"},{"}"#, r#"{"a":"\\"}"#, r#"{"a":"\\\"["}"#, r#""\"}],\\""#] {
            assert_eq!(values(&format!("[{value},{value}]")), [frame(value, 1), frame(value, 1)]);
        }
    }

    #[test]
    fn elements_that_are_no_objects_are_left_to_the_decoder() {
        assert_eq!(
            values("[1, \"a\",null\n,[[2]],-0.5e+3,nonsense,{]]"),
            [
                frame("1", 1),
                frame("\"a\"", 1),
                frame("null", 1),
                frame("[[2]]", 2),
                frame("-0.5e+3", 2),
                frame("nonsense", 2),
                frame("{]", 2),
            ]
        );
    }

    #[test]
    fn a_number_that_stands_alone_ends_with_the_stream() {
        assert_eq!(values("{}\n12"), [frame("{}", 1), frame("12", 2)]);
    }

    #[test]
    fn an_array_that_is_not_closed_is_an_error_after_its_whole_elements() {
        let unclosed = |line| not_json(line, "the stream ends before the array is closed");
        assert_eq!(values("[{}\n,{}\n"), [frame("{}", 1), frame("{}", 2), unclosed(2)]);
        assert_eq!(values("[{},"), [frame("{}", 1), unclosed(1)]);
        assert_eq!(values("["), [unclosed(1)]);
    }

    #[test]
    fn a_value_that_is_cut_off_is_an_error_and_no_frame() {
        let inside = |line| not_json(line, "the stream ends inside the value that begins here");
        assert_eq!(values("{}\n{\"a\":\n"), [frame("{}", 1), inside(2)]);
        assert_eq!(values("[{},\n12"), [frame("{}", 1), inside(2)]);
        assert_eq!(values("\"a\\\""), [inside(1)]);
    }

    #[test]
    fn a_fault_between_the_values_ends_the_stream() {
        let after_element = "after an element, `,` or `]` is expected";
        let after_comma = "after a comma, an element is expected";
        let outside = "an object or an array of objects is expected";
        let faults = [
            ("[{}\n{},{}]", vec![frame("{}", 1), not_json(2, after_element)]),
            ("[{}}", vec![frame("{}", 1), not_json(1, after_element)]),
            ("[{},\n]", vec![frame("{}", 1), not_json(2, after_comma)]),
            ("[{},,{}]", vec![frame("{}", 1), not_json(1, after_comma)]),
            ("[,{}]", vec![not_json(1, "an element or `]` is expected")]),
            ("[}", vec![not_json(1, "an element or `]` is expected")]),
            ("{},{}", vec![frame("{}", 1), not_json(1, outside)]),
            ("\n\n<html>", vec![not_json(3, outside)]),
            ("[]]", vec![not_json(1, outside)]),
        ];
        for (text, expected) in faults {
            assert_eq!(values(text), expected, "{text}");
        }
    }

    #[test]
    fn after_a_fault_nothing_is_read_or_kept() {
        let mut unframer = Unframer::new(Framing::Json);
        unframer.push(b"?[{}]");
        assert_eq!(take_all(&mut unframer).len(), 1);
        unframer.push(b"[{}]");
        unframer.finish();
        assert_eq!(take_all(&mut unframer), []);
        assert_eq!(unframer.input.capacity(), 0);
    }

    #[test]
    fn an_element_that_is_too_long_is_skipped_and_the_next_is_read() {
        let long = "x\n".repeat(limits::FRAME_BYTES / 2);
        assert_eq!(
            values(&format!("[{{}},\n[\"{long}\"],\n{{}}]")),
            [
                frame("{}", 1),
                Cut::Error(FramingError::TooLong { line: 2 }),
                frame("{}", 3 + limits::FRAME_BYTES as u64 / 2)
            ]
        );
    }

    #[test]
    fn an_endless_value_is_reported_at_once_and_takes_no_memory() {
        for (opening, piece, ending) in
            [("{\"a\":\"", "x", "\"}"), ("[", "[", ""), ("[1", "1", ""), ("\"", "\\\"", "\"")]
        {
            let (mut unframer, cuts) = cut_endless(Framing::Json, opening, piece);
            assert_eq!(cuts, [Cut::Error(FramingError::TooLong { line: 1 })], "{opening}");
            if !ending.is_empty() {
                unframer.push(ending.as_bytes());
                unframer.push(b"\n{}");
                assert_eq!(take_all(&mut unframer), [frame("{}", 2)]);
            }
        }
    }

    #[test]
    fn endless_white_space_and_endless_arrays_take_no_memory() {
        for piece in [" ", "\n", " \r\n\t", "[]"] {
            assert_eq!(cut_endless(Framing::Json, "", piece).1, []);
        }
    }
}
