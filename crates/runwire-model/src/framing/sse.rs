//! SSE: server-sent events, as in the WHATWG standard.
//!
//! Two things differ from a browser, because nothing may be lost silently: an event that the end of
//! the stream cuts off is still delivered, and one that is too long is an error. `id` and `retry` mean
//! nothing to a producer's stream and are ignored like unknown fields.

use std::ops::Range;

use super::input::Input;
use super::{Frame, FramingError};
use crate::limits;

/// How a line of an event stream may begin.
pub(super) const OPENINGS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];

/// Bytes of a line that are kept while its end is awaited: a longest frame and the field before it.
/// A longer line can only be a field that is ignored, a comment, or too long.
const LINE_BYTES: usize = limits::FRAME_BYTES + b"event: ".len();

/// Cuts events.
#[derive(Debug, Default)]
pub(super) struct Events {
    lines_ended: u64,
    beats: u64,
    /// Bytes of the input that are known to hold no line end.
    scanned: usize,
    /// The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    /// The line's beginning was read and is gone; what is left of it means nothing.
    skipping_line: bool,
    /// The event is at fault; what is left of it means nothing.
    skipping_event: bool,
    event: Gathered,
    /// The event is in the caller's hands and is forgotten at the next call.
    delivered: bool,
}

/// An event as far as it has been read; its buffers are used again for the next one.
#[derive(Debug, Default)]
struct Gathered {
    name: String,
    data: Vec<u8>,
    /// The first line of data, if there is any: an event may have data that is empty.
    data_line: Option<u64>,
}

impl Events {
    pub(super) fn beats(&self) -> u64 {
        self.beats
    }

    pub(super) fn begun(&self) -> u64 {
        self.lines_ended + u64::from(self.scanned > 0 || self.skipping_line)
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.event.data.capacity() + self.event.name.capacity()
    }

    pub(super) fn next<'a>(&'a mut self, input: &mut Input) -> Option<Result<Frame<'a>, FramingError>> {
        if std::mem::take(&mut self.delivered) {
            self.event.clear();
        }
        match self.gather(input)? {
            Err(error) => Some(Err(error)),
            Ok(line) => {
                self.delivered = true;
                let name = Some(self.event.name.as_str()).filter(|name| !name.is_empty());
                Some(Ok(Frame { name, data: &self.event.data, line }))
            }
        }
    }

    /// Reads lines until an event is complete, and returns the line of its data.
    fn gather(&mut self, input: &mut Input) -> Option<Result<u64, FramingError>> {
        while let Some(range) = self.take_line(input) {
            if range.is_empty() {
                match self.end_event() {
                    Some(line) => return Some(Ok(line)),
                    None => self.beats += 1,
                }
            } else if let Err(error) = self.read_field(input.taken(range)) {
                self.skipping_event = true;
                self.event.clear();
                return Some(Err(error));
            }
        }
        if input.has_ended() { self.end_event().map(Ok) } else { None }
    }

    /// Ends the event, and returns the line of its data if it has any.
    fn end_event(&mut self) -> Option<u64> {
        self.skipping_event = false;
        let line = self.event.data_line;
        if line.is_none() {
            self.event.clear();
        }
        line
    }

    /// Takes a complete line, or the beginning of one that is too long to wait for its end.
    fn take_line(&mut self, input: &mut Input) -> Option<Range<usize>> {
        loop {
            self.skip_lf_after_cr(input);
            let rest = input.rest();
            let found = memchr::memchr2(b'\n', b'\r', &rest[self.scanned..]).map(|at| self.scanned + at);
            let (length, taken) = match found {
                Some(end) => {
                    self.after_cr = rest[end] == b'\r';
                    (end, end + 1)
                }
                None if input.has_ended() && !rest.is_empty() => (rest.len(), rest.len()),
                None => return self.take_beginning(input),
            };
            self.lines_ended += 1;
            self.scanned = 0;
            let range = input.take(taken);
            if !std::mem::take(&mut self.skipping_line) {
                return Some(range.start..range.start + length);
            }
        }
    }

    fn skip_lf_after_cr(&mut self, input: &mut Input) {
        if let Some(first) = input.rest().first()
            && std::mem::take(&mut self.after_cr)
            && *first == b'\n'
        {
            input.take(1);
        }
    }

    /// Takes the available part of a line that is skipped, or that has become too long to keep.
    fn take_beginning(&mut self, input: &mut Input) -> Option<Range<usize>> {
        if !self.skipping_line && input.rest().len() <= LINE_BYTES {
            self.scanned = input.rest().len();
            return None;
        }
        self.scanned = 0;
        let range = input.take_all();
        let first = !std::mem::replace(&mut self.skipping_line, true);
        first.then_some(range)
    }

    /// Reads a line that is not blank.
    fn read_field(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"" => self.beats += 1,
            _ if self.skipping_event => {}
            b"data" => self.event.add_data(value, self.begun())?,
            b"event" => self.event.set_name(value, self.begun())?,
            _ => {}
        }
        Ok(())
    }
}

impl Gathered {
    fn clear(&mut self) {
        self.name.clear();
        self.data.clear();
        self.data_line = None;
    }

    fn add_data(&mut self, value: &[u8], line: u64) -> Result<(), FramingError> {
        let joint = usize::from(self.data_line.is_some());
        let begins = *self.data_line.get_or_insert(line);
        if self.data.len() + joint + value.len() > limits::FRAME_BYTES {
            return Err(FramingError::TooLong { line: begins });
        }
        if joint == 1 {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn set_name(&mut self, value: &[u8], line: u64) -> Result<(), FramingError> {
        if value.len() > limits::ID_BYTES {
            return Err(FramingError::NameTooLong { line });
        }
        self.name.clear();
        self.name.push_str(&String::from_utf8_lossy(value));
        Ok(())
    }
}

/// Writes an event with a `data` line for each line of the data.
pub(super) fn write(out: &mut Vec<u8>, id: Option<&str>, name: Option<&str>, data: &[u8]) {
    if let Some(id) = id {
        write_field(out, b"id: ", id);
    }
    if let Some(name) = name {
        write_field(out, b"event: ", name);
    }
    let mut rest = data;
    loop {
        out.extend_from_slice(b"data: ");
        let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else { break };
        out.extend_from_slice(&rest[..end]);
        out.push(b'\n');
        rest = rest[end..].strip_prefix(b"\r\n").unwrap_or(&rest[end + 1..]);
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(b"\n\n");
}

/// Writes a field without the characters that would end it, or that make readers ignore an id.
fn write_field(out: &mut Vec<u8>, field: &[u8], value: &str) {
    out.extend_from_slice(field);
    out.extend(value.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n' | b'\0')));
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::super::Framing;
    use super::super::tests::{Cut, beats, cut_endless, cuts, frame, named, take_all};
    use super::*;

    fn events(bytes: impl AsRef<[u8]>) -> Vec<Cut> {
        cuts(Framing::Sse, bytes)
    }

    fn written(id: Option<&str>, name: Option<&str>, data: &str) -> String {
        let mut out = Vec::new();
        write(&mut out, id, name, data.as_bytes());
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn an_event_carries_its_name_and_the_line_of_its_data() {
        assert_eq!(
            events(": hi\nevent: step\nid: 1\ndata: {}\n\ndata: []\n\n"),
            [named("step", "{}", 4), frame("[]", 6)]
        );
    }

    #[test]
    fn lines_end_in_lf_cr_or_both() {
        let expected = [frame("a\nb", 1), frame("c", 4)];
        for end in ["\n", "\r", "\r\n"] {
            let text = "data: a\ndata: b\n\ndata: c\n\n".replace('\n', end);
            assert_eq!(events(text), expected, "{end:?}");
        }
    }

    #[test]
    fn an_event_that_ends_in_cr_is_delivered_without_waiting_for_an_lf() {
        let mut unframer = super::super::Unframer::new(Framing::Sse);
        unframer.push(b"data: a\r\n\r");
        assert_eq!(take_all(&mut unframer), [frame("a", 1)]);
        unframer.push(b"\ndata: b\n\n");
        assert_eq!(take_all(&mut unframer), [frame("b", 3)]);
    }

    #[test]
    fn data_lines_are_joined_and_lose_one_leading_space() {
        assert_eq!(events("data:a\ndata:  b\ndata\ndata: \n\n"), [frame("a\n b\n\n", 1)]);
    }

    #[test]
    fn data_that_is_empty_is_data() {
        assert_eq!(events("data\n\ndata:\n\n"), [frame("", 1), frame("", 3)]);
    }

    #[test]
    fn an_event_without_data_is_not_delivered_and_leaves_no_name_behind() {
        assert_eq!(events("event: lost\nid: 1\n\ndata: a\n\n"), [frame("a", 4)]);
    }

    #[test]
    fn the_last_name_wins_and_an_empty_one_is_none() {
        assert_eq!(
            events("event: a\nevent: b\ndata: 1\n\nevent: a\nevent:\ndata: 2\n\n"),
            [named("b", "1", 3), frame("2", 7)]
        );
    }

    #[test]
    fn id_retry_and_unknown_fields_are_ignored() {
        assert_eq!(events("id: 1\nretry: x\nData: no\ndata : no\ndatum\n{\ndata: a\n\n"), [frame("a", 7)]);
    }

    #[test]
    fn comments_are_beats_also_inside_an_event() {
        assert_eq!(beats(Framing::Sse, ":\n: hi\ndata: a\n:\n\n"), 3);
    }

    #[test]
    fn blank_lines_that_end_no_event_are_beats() {
        assert_eq!(beats(Framing::Sse, "\ndata: a\n\n\r\nid: 1\n\n"), 3);
    }

    #[test]
    fn the_habit_of_ending_with_done_is_a_frame_for_the_decoder_to_judge() {
        assert_eq!(events("data: [DONE]\n\n"), [frame("[DONE]", 1)]);
    }

    #[test]
    fn an_event_that_is_cut_off_is_still_delivered() {
        assert_eq!(events("data: a"), [frame("a", 1)]);
        assert_eq!(events("event: x\ndata: a\nda"), [named("x", "a", 2)]);
    }

    #[test]
    fn a_name_that_is_not_utf8_keeps_what_can_be_read() {
        assert_eq!(events(b"event: a\xff\ndata: b\n\n"), [named("a\u{fffd}", "b", 2)]);
    }

    #[test]
    fn an_event_that_is_too_long_is_skipped_to_its_end() {
        let long = "x".repeat(limits::FRAME_BYTES);
        assert_eq!(
            events(format!("event: a\ndata: {long}\ndata: y\nevent: b\ndata: z\n\ndata: ok\n\n")),
            [Cut::Error(FramingError::TooLong { line: 2 }), frame("ok", 7)]
        );
    }

    #[test]
    fn a_name_that_is_too_long_is_an_error_and_its_event_is_skipped() {
        let name = "n".repeat(limits::ID_BYTES);
        assert_eq!(
            events(format!("event: {name}\ndata: a\n\nevent: {name}n\ndata: b\n\ndata: c")),
            [named(&name, "a", 2), Cut::Error(FramingError::NameTooLong { line: 4 }), frame("c", 7)]
        );
    }

    #[test]
    fn an_endless_line_of_data_is_reported_at_once_and_takes_no_memory() {
        let (mut unframer, cuts) = cut_endless(Framing::Sse, "event: a\ndata: ", "x");
        assert_eq!(cuts, [Cut::Error(FramingError::TooLong { line: 2 })]);
        unframer.push(b"\ndata: more\n\ndata: ok\n\n");
        assert_eq!(take_all(&mut unframer), [frame("ok", 5)]);
    }

    #[test]
    fn an_endless_event_is_reported_once_and_takes_no_memory() {
        for piece in ["data: x\n", "data\r\n", "data:\r"] {
            let (mut unframer, cuts) = cut_endless(Framing::Sse, "event: a\n", piece);
            assert_eq!(cuts, [Cut::Error(FramingError::TooLong { line: 2 })]);
            unframer.push(b"\n\ndata: ok\n\n");
            assert!(matches!(&take_all(&mut unframer)[..], [Cut::Frame(None, data, _)] if data == "ok"));
        }
    }

    #[test]
    fn endless_comments_blanks_and_ignored_fields_are_no_fault_and_take_no_memory() {
        for (opening, piece) in [(":", "x"), ("id: ", "x"), ("", "x: y\n"), ("", "\r\n")] {
            let (mut unframer, cuts) = cut_endless(Framing::Sse, opening, piece);
            assert_eq!(cuts, []);
            unframer.push(b"\ndata: ok\n\n");
            assert!(matches!(&take_all(&mut unframer)[..], [Cut::Frame(None, data, _)] if data == "ok"));
        }
    }

    #[test]
    fn an_event_is_written_with_id_name_data_and_a_blank_line() {
        assert_eq!(written(Some("7-0"), Some("step"), "{}"), "id: 7-0\nevent: step\ndata: {}\n\n");
        assert_eq!(written(None, None, ""), "data: \n\n");
    }

    #[test]
    fn each_line_of_the_data_gets_a_data_line() {
        let out = written(None, None, "a\nb\r\nc\rd\n\n");
        assert_eq!(out, "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: \n\n");
        assert_eq!(events(out), [frame("a\nb\nc\nd\n\n", 1)]);
    }

    #[test]
    fn an_id_or_a_name_cannot_smuggle_in_a_field() {
        let out = written(Some("1\ndata: x\r\n\r\n\0"), Some("a\rdata: y\n\nb"), "{}");
        assert_eq!(out, "id: 1data: x\nevent: adata: yb\ndata: {}\n\n");
    }
}
