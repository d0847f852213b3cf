//! Cuts byte streams into frames, and writes frames into streams.
//!
//! A framing knows where a frame begins and ends and nothing of its meaning: dialects read [`Frame::data`], and the
//! only other thing that passes between the two is the frame's name, which SSE alone carries.
//!
//! | framing | a frame is | signs of life |
//! |---|---|---|
//! | `ndjson` | a line | blank lines |
//! | `sse` | an event with at least one `data` line, read as the WHATWG standard says | comments, blank lines that end no event |
//! | `json` | an element of an array, or a value that stands alone; several may follow each other | none |
//!
//! Bytes may arrive cut anywhere, and the cuts never show in what comes out. No frame is longer than
//! [`limits::FRAME_BYTES`], and no more than that is kept beyond the bytes of the last push.

mod input;
mod json;
mod ndjson;
mod sse;

use crate::ErrorCode;
use crate::limits;
use input::Input;

/// A way to cut a byte stream into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// One frame a line.
    Ndjson,
    /// Server-sent events: `text/event-stream`.
    Sse,
    /// An array of frames, or frames one after another.
    Json,
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

impl Framing {
    /// Finds a framing by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Ndjson, Self::Sse, Self::Json].into_iter().find(|framing| framing.name() == name)
    }

    /// Returns the name that people write in options and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::Sse => "sse",
            Self::Json => "json",
        }
    }

    /// Guesses the framing from the first bytes of a stream; `None` asks for more of them.
    ///
    /// A stream that fits no framing counts as NDJSON, whose decoder then reports the bad line.
    ///
    /// ```
    /// use runwire_model::framing::Framing;
    ///
    /// assert_eq!(Framing::detect(b"event: message\n"), Some(Framing::Sse));
    /// assert_eq!(Framing::detect(b"eve"), None);
    /// ```
    pub fn detect(first_bytes: &[u8]) -> Option<Self> {
        let bytes = match first_bytes.strip_prefix(BOM) {
            Some(rest) => rest,
            None if BOM.starts_with(first_bytes) => return None,
            None => first_bytes,
        };
        let begin = bytes.iter().position(|byte| !is_space(*byte))?;
        let bytes = &bytes[begin..];
        match bytes[0] {
            b'{' | b'"' => Some(Self::Ndjson),
            b'[' => Some(Self::Json),
            _ if sse::OPENINGS.iter().any(|opening| bytes.starts_with(opening)) => Some(Self::Sse),
            _ if sse::OPENINGS.iter().any(|opening| opening.starts_with(bytes)) => None,
            _ => Some(Self::Ndjson),
        }
    }
}

const END_MARK: &[u8] = b"[DONE]";

/// Returns whether data is `[DONE]`, the end mark that many SSE servers write after their last event: it is no frame.
pub fn is_end_mark(data: &[u8]) -> bool {
    data.trim_ascii() == END_MARK
}

/// A frame of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The name that SSE carries as `event:`.
    pub name: Option<&'a str>,
    /// The frame's bytes, which no framing has looked into.
    pub data: &'a [u8],
    /// The line where the data begins, from 1.
    pub line: u64,
}

/// A reason why no frame could be cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A frame is longer than [`limits::FRAME_BYTES`]; it is skipped.
    #[error("the frame is longer than the {} bytes allowed", limits::FRAME_BYTES)]
    TooLong {
        /// The line where the frame begins.
        line: u64,
    },
    /// The name of an SSE event is longer than [`limits::ID_BYTES`]; the event is skipped.
    #[error("the event name is longer than the {} bytes allowed", limits::ID_BYTES)]
    NameTooLong {
        /// The line of the name.
        line: u64,
    },
    /// The values are not separated as in JSON, so the beginning of the next one is unknown.
    #[error("this is not JSON: {problem}")]
    NotJson {
        /// The line of the fault.
        line: u64,
        /// What is wrong.
        problem: &'static str,
    },
}

impl FramingError {
    /// Returns the line of the fault, from 1.
    pub fn line(&self) -> u64 {
        match self {
            Self::TooLong { line } | Self::NameTooLong { line } | Self::NotJson { line, .. } => *line,
        }
    }

    /// Returns the stable code of the fault.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::TooLong { .. } | Self::NameTooLong { .. } => ErrorCode::FrameTooLong,
            Self::NotJson { .. } => ErrorCode::NotJson,
        }
    }

    /// Returns whether frames may still follow.
    pub fn can_continue(&self) -> bool {
        match self {
            Self::TooLong { .. } | Self::NameTooLong { .. } => true,
            Self::NotJson { .. } => false,
        }
    }
}

/// Cuts pushed bytes into frames.
///
/// After each push, and after [`Unframer::finish`], take frames until there are none: only what has
/// been taken can be forgotten.
///
/// ```
/// use runwire_model::framing::{Framing, Unframer};
///
/// let mut unframer = Unframer::new(Framing::Sse);
/// unframer.push(b"event: greeting\ndata: hel");
/// assert!(unframer.next().is_none());
/// unframer.push(b"lo\n\n");
/// let frame = unframer.next().unwrap().unwrap();
/// assert_eq!((frame.name, frame.data, frame.line), (Some("greeting"), &b"hello"[..], 2));
/// ```
#[derive(Debug)]
pub struct Unframer {
    input: Input,
    cutter: Cutter,
}

#[derive(Debug)]
enum Cutter {
    Lines(ndjson::Lines),
    Events(sse::Events),
    Values(json::Values),
}

impl Unframer {
    /// Begins a stream.
    pub fn new(framing: Framing) -> Self {
        let cutter = match framing {
            Framing::Ndjson => Cutter::Lines(ndjson::Lines::default()),
            Framing::Sse => Cutter::Events(sse::Events::default()),
            Framing::Json => Cutter::Values(json::Values::default()),
        };
        Self { input: Input::default(), cutter }
    }

    /// Adds bytes, cut anywhere; after the end of the stream they are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        self.input.push(bytes);
    }

    /// Takes the next frame; `None` means that more bytes are needed, or that the stream is over.
    // A frame borrows from the unframer, which `Iterator` has no way to say.
    #[expect(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Result<Frame<'_>, FramingError>> {
        if !self.input.is_past_bom() {
            return None;
        }
        match &mut self.cutter {
            Cutter::Lines(lines) => lines.next(&mut self.input),
            Cutter::Events(events) => events.next(&mut self.input),
            Cutter::Values(values) => values.next(&mut self.input),
        }
    }

    /// Marks the end of the stream.
    ///
    /// Producers are cut off, and nothing may be lost silently: a last line without its line end and
    /// an SSE event without its blank line are frames like any other, and a JSON array that is not
    /// closed is an error after its last whole element.
    pub fn finish(&mut self) {
        self.input.end();
    }

    /// Returns the number of bytes that are in no frame yet.
    pub fn buffered(&self) -> usize {
        self.input.len()
    }

    /// Counts the signs of life so far: blank lines, but for those that end an SSE event, and SSE comments.
    pub fn beats(&self) -> u64 {
        match &self.cutter {
            Cutter::Lines(lines) => lines.beats(),
            Cutter::Events(events) => events.beats(),
            Cutter::Values(_) => 0,
        }
    }

    /// Counts the lines begun so far, of the bytes that [`Unframer::next`] has looked at.
    pub fn line(&self) -> u64 {
        match &self.cutter {
            Cutter::Lines(lines) => lines.begun(),
            Cutter::Events(events) => events.begun(),
            Cutter::Values(values) => values.begun(),
        }
    }
}

/// Appends a frame to a stream; `id` and `name` are for SSE, and the other framings drop them.
///
/// [`Framing::Json`] writes frames one after another like NDJSON: an array's brackets and commas are
/// the caller's.
pub fn write_frame(framing: Framing, out: &mut Vec<u8>, id: Option<&str>, name: Option<&str>, data: &[u8]) {
    match framing {
        Framing::Ndjson | Framing::Json => ndjson::write(out, data),
        Framing::Sse => sse::write(out, id, name, data),
    }
}

/// Returns whether a byte is white space in JSON.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Framing; 3] = [Framing::Ndjson, Framing::Sse, Framing::Json];

    /// A frame or an error, in a form that outlives the unframer.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(super) enum Cut {
        Frame(Option<String>, String, u64),
        Error(FramingError),
    }

    pub(super) fn frame(data: &str, line: u64) -> Cut {
        Cut::Frame(None, data.to_owned(), line)
    }

    pub(super) fn named(name: &str, data: &str, line: u64) -> Cut {
        Cut::Frame(Some(name.to_owned()), data.to_owned(), line)
    }

    pub(super) fn take_all(unframer: &mut Unframer) -> Vec<Cut> {
        let mut cuts = Vec::new();
        while let Some(next) = unframer.next() {
            cuts.push(match next {
                Ok(frame) => Cut::Frame(
                    frame.name.map(str::to_owned),
                    String::from_utf8_lossy(frame.data).into_owned(),
                    frame.line,
                ),
                Err(error) => Cut::Error(error),
            });
        }
        cuts
    }

    /// Reads a whole stream that arrives in the given pieces: its frames, beats and lines.
    fn read<'a>(framing: Framing, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Cut>, u64, u64) {
        let mut unframer = Unframer::new(framing);
        let mut cuts = Vec::new();
        for piece in pieces {
            unframer.push(piece);
            cuts.extend(take_all(&mut unframer));
        }
        unframer.finish();
        cuts.extend(take_all(&mut unframer));
        assert_eq!(take_all(&mut unframer), [], "a stream that is over stays over");
        (cuts, unframer.beats(), unframer.line())
    }

    /// Reads a stream in one piece.
    pub(super) fn cuts(framing: Framing, bytes: impl AsRef<[u8]>) -> Vec<Cut> {
        read(framing, [bytes.as_ref()]).0
    }

    pub(super) fn beats(framing: Framing, bytes: &str) -> u64 {
        read(framing, [bytes.as_bytes()]).1
    }

    /// Pushes a piece over and over, asserts that little is kept, and returns what was cut.
    pub(super) fn cut_endless(framing: Framing, opening: &str, piece: &str) -> (Unframer, Vec<Cut>) {
        let mut unframer = Unframer::new(framing);
        unframer.push(opening.as_bytes());
        let mut cuts = Vec::new();
        let piece = piece.repeat((1 << 16) / piece.len());
        let limit = 3 * (limits::FRAME_BYTES + piece.len());
        for _ in 0..8 * limits::FRAME_BYTES / piece.len() {
            unframer.push(piece.as_bytes());
            cuts.extend(take_all(&mut unframer));
            assert!(unframer.input.rest().len() <= limits::FRAME_BYTES + 8);
            let gathered = match &unframer.cutter {
                Cutter::Events(events) => events.capacity(),
                Cutter::Lines(_) | Cutter::Values(_) => 0,
            };
            assert!(unframer.input.capacity() + gathered <= limit);
        }
        (unframer, cuts)
    }

    const CUTTING: [(Framing, &str); 13] = [
        (
            Framing::Ndjson,
            "\u{feff}{\"a\":\"é漢🦀\"}\r\n\r\n  \t\n{\"b\":\"x\ry\"}\n\n\r{\"c\":1}\r\r\n{\"last\":\"ü\"}",
        ),
        (Framing::Ndjson, "{}\n\u{feff}{}\n"),
        (Framing::Ndjson, "no json\r"),
        (Framing::Ndjson, ""),
        (
            Framing::Sse,
            "\u{feff}: hi\r\nevent: naïve🦀\r\ndata: {\"a\":\"é漢🦀\"}\r\n\r\ndata:one\r\
             data:  two\r\rid: 7\nretry: 5\nevent:x\n\ndata\n\n:\ndata: [DONE]\n\n\r\n\n\rfoo: bar\nda: ta\ndata: cut ü",
        ),
        (Framing::Sse, "data: a\r\n\r\n\r\ndata: b\r\r\n\rdata: c\n\n\ndata: d\r\n\n"),
        (Framing::Sse, "\u{feff}\u{feff}data: a\n\ndata: b\r"),
        (
            Framing::Json,
            "\u{feff}\r\n [\r\n{\"a\":\"é漢🦀\",\r\n\"b\":[\"]\",{}]},\n\n \
             \"x\\\"\\\\,]\" , -1.5e3,null\n,[1,\n2]]\n",
        ),
        (Framing::Json, "{\n}{\"\\u00e9\":\"\n\"}[{}]\n\n{}12 true\"s\"\n7"),
        (Framing::Json, "[{}\n,{},\n\n{\"a"),
        (Framing::Json, "[{} {}, 1]"),
        (Framing::Json, "[]"),
        (Framing::Json, " {\"a\":\"\\"),
    ];

    #[test]
    fn where_the_bytes_are_cut_never_shows() {
        for (framing, sample) in CUTTING {
            let whole = read(framing, [sample.as_bytes()]);
            for size in 1..=3 {
                assert_eq!(read(framing, sample.as_bytes().chunks(size)), whole, "{size} of {sample:?}");
            }
            for at in 0..=sample.len() {
                let (head, tail) = sample.as_bytes().split_at(at);
                assert_eq!(read(framing, [head, tail]), whole, "{at} of {sample:?}");
            }
        }
    }

    #[test]
    fn where_the_bytes_are_cut_does_not_decide_what_is_too_long() {
        let long = |bytes: usize| "x".repeat(bytes);
        let limit = limits::FRAME_BYTES;
        let samples = [
            (
                Framing::Ndjson,
                format!("{}\r\n{}\n{}\r\r\nok", long(limit), long(limit + 1), long(limit - 1)),
                1,
            ),
            (Framing::Ndjson, format!("ok\n{}\n{}", " ".repeat(limit + 1), long(limit + 1)), 2),
            (
                Framing::Sse,
                format!("data: {}\n\ndata:{}\ndata: 1\n\ndata: ok", long(limit), long(limit + 1)),
                1,
            ),
            (Framing::Sse, format!("data: {}\ndata\n\n:{}\ndata: ok", long(limit), long(limit + 9)), 1),
            (Framing::Sse, format!("data: 1\nevent:{}\ndata: 2\n\ndata: ok", long(limit + 9)), 1),
            (Framing::Sse, format!("data: ok\nid: {}", long(limit + 9)), 0),
            (Framing::Json, format!("[\"{}\",\n\"{}\",\"ok\"]", long(limit - 1), long(limit - 2)), 1),
            (Framing::Json, format!("\"ok\" 1{}", "2".repeat(limit)), 1),
        ];
        for (framing, sample, errors) in samples {
            let whole = read(framing, [sample.as_bytes()]);
            assert_eq!(whole.0.iter().filter(|cut| matches!(cut, Cut::Error(_))).count(), errors);
            assert!(whole.0.iter().any(|cut| matches!(cut, Cut::Frame(_, data, _) if data.contains("ok"))));
            for size in [997, 65_536, limit, limit + 1, limit + 5] {
                assert!(read(framing, sample.as_bytes().chunks(size)) == whole, "{framing:?} by {size}");
            }
        }
    }

    #[test]
    fn the_bytes_of_a_bom_that_never_becomes_one_are_data() {
        for (bytes, text) in
            [(&b"\xef"[..], "\u{fffd}"), (b"\xef\xbb", "\u{fffd}"), (b"\xef\xbbx", "\u{fffd}x")]
        {
            assert_eq!(cuts(Framing::Ndjson, bytes), [frame(text, 1)]);
        }
    }

    #[test]
    fn nothing_comes_of_nothing() {
        for framing in ALL {
            for bytes in ["", "\u{feff}", "\n\n", " \r\n"] {
                assert_eq!(cuts(framing, bytes), [], "{framing:?} {bytes:?}");
            }
        }
    }

    #[test]
    fn bytes_after_the_end_are_ignored() {
        for framing in ALL {
            let mut unframer = Unframer::new(framing);
            unframer.finish();
            unframer.push(b"data: {}\n\n");
            assert_eq!(take_all(&mut unframer), []);
        }
    }

    #[test]
    fn one_huge_push_does_not_hold_its_memory_for_ever() {
        for framing in ALL {
            let mut unframer = Unframer::new(framing);
            unframer.push("                               \n".repeat(limits::FRAME_BYTES / 8).as_bytes());
            take_all(&mut unframer);
            unframer.push(b"\n");
            assert!(unframer.input.capacity() <= 2 * limits::FRAME_BYTES);
        }
    }

    #[test]
    fn names_of_framings_read_back() {
        for framing in ALL {
            assert_eq!(Framing::from_name(framing.name()), Some(framing));
        }
        assert_eq!(Framing::from_name("SSE"), None);
    }

    #[test]
    fn the_first_bytes_tell_the_framing() {
        let expected = [
            (
                Framing::Ndjson,
                &["{", "\"", "\u{feff} \r\n{", "<html>", "error: no", "12", "database", "\u{e9}"][..],
            ),
            (Framing::Json, &["[", "\u{feff}\n["]),
            (Framing::Sse, &["data:", "event:x", "id: 1", "retry:", ":", ": hi", "\u{feff}\n\ndata: {}"]),
        ];
        for (framing, openings) in expected {
            for opening in openings {
                assert_eq!(Framing::detect(opening.as_bytes()), Some(framing), "{opening:?}");
            }
        }
    }

    #[test]
    fn bytes_that_leave_the_framing_open_ask_for_more() {
        for opening in
            [&b""[..], b"\xef", b"\xef\xbb", b"\xef\xbb\xbf", b" \n", b"d", b"data", b"\r\nev", b"r", b"i"]
        {
            assert_eq!(Framing::detect(opening), None, "{opening:?}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for framing in ALL {
            let mut out = Vec::new();
            write_frame(framing, &mut out, Some("3-0"), Some("step"), "{\"a\":\"é\"}".as_bytes());
            write_frame(framing, &mut out, None, None, b"{}");
            let read: Vec<_> = cuts(framing, &out)
                .into_iter()
                .map(|cut| match cut {
                    Cut::Frame(name, data, _) => (name, data),
                    Cut::Error(error) => panic!("{error}"),
                })
                .collect();
            let name = (framing == Framing::Sse).then(|| "step".to_owned());
            assert_eq!(read, [(name, "{\"a\":\"é\"}".to_owned()), (None, "{}".to_owned())]);
        }
    }

    #[test]
    fn an_error_tells_its_line_its_code_and_whether_the_stream_goes_on() {
        let facts = |error: FramingError| (error.line(), error.code(), error.can_continue());
        assert_eq!(facts(FramingError::TooLong { line: 3 }), (3, ErrorCode::FrameTooLong, true));
        assert_eq!(facts(FramingError::NameTooLong { line: 4 }), (4, ErrorCode::FrameTooLong, true));
        assert_eq!(facts(FramingError::NotJson { line: 5, problem: "" }), (5, ErrorCode::NotJson, false));
    }
}
