//! Frames of neighbouring records, encoded once and shared by all readers of a dialect.

use std::sync::OnceLock;

use bytes::Bytes;
use runwire_log::ReadFormat;
use runwire_model::dialect::{Dialect, Frames};
use runwire_model::framing::{Framing, write_frame};
use runwire_model::json::Json;

use super::cursor::Cursor;

/// How frames are written to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `id`, `event` and `data`.
    Sse,
    /// One frame a line.
    Ndjson,
    /// One `{cursor, frame}` a line.
    NdjsonWithCursors,
    /// The text alone, of the `text` dialect.
    Plain,
}

/// The frames that the records after one `seq` up to another became.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The record before the first.
    pub(crate) after: u64,
    /// The last record.
    pub(crate) upto: u64,
    /// Whether the run that is read ends with it.
    pub(crate) ends: bool,
    frames: Vec<Span>,
    data: Vec<u8>,
    /// Whether the data is text rather than JSON.
    is_text: bool,
    /// The number of a record's first frame in cursors.
    first_frame: u32,
    shapes: [OnceLock<Rendered>; 4],
}

#[derive(Debug)]
struct Span {
    cursor: Option<Cursor>,
    /// Where the frame lies: its cursor, also where readers are not told it.
    place: Cursor,
    name: Option<Box<str>>,
    end: usize,
}

/// The frames in one shape, one after the other.
#[derive(Debug)]
struct Rendered {
    bytes: Bytes,
    ends: Vec<usize>,
}

/// A frame of a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameOut<'a> {
    pub(crate) cursor: Option<Cursor>,
    pub(crate) place: Cursor,
    pub(crate) name: Option<&'a str>,
    pub(crate) data: &'a [u8],
}

impl FrameOut<'_> {
    /// Tells whether the frame ends an AG-UI response.
    fn is_end(&self) -> bool {
        [&br#"{"type":"RUN_FINISHED""#[..], br#"{"type":"RUN_ERROR""#]
            .iter()
            .any(|end| self.data.starts_with(end))
    }
}

impl Segment {
    pub(crate) fn begin(after: u64, form: Option<ReadFormat>) -> Self {
        Self {
            after,
            upto: after,
            ends: false,
            frames: Vec::new(),
            data: Vec::new(),
            is_text: form.is_some_and(|form| form.dialect == Dialect::Text),
            first_frame: form.map_or(0, ReadFormat::first_frame),
            shapes: Default::default(),
        }
    }

    /// Adds the frames that a record became.
    pub(crate) fn push(&mut self, seq: u64, frames: &Frames) {
        for (frame, (name, data)) in (self.first_frame..).zip(frames.iter()) {
            self.push_frame(Cursor { seq, frame }, name, data);
        }
    }

    /// Adds a frame.
    pub(crate) fn push_frame(&mut self, cursor: Cursor, name: Option<&str>, data: &[u8]) {
        self.data.extend_from_slice(data);
        let (name, end) = (name.map(Into::into), self.data.len());
        self.frames.push(Span { cursor: Some(cursor), place: cursor, name, end });
    }

    /// Adds frames that tell the present: only the last has a cursor, which is after a whole record.
    pub(crate) fn push_present(&mut self, seq: u64, frames: &Frames) {
        for (at, (name, data)) in frames.iter().enumerate() {
            self.push_frame(Cursor::after(seq), name, data);
            if let Some(span) = self.frames.last_mut().filter(|_| at + 1 < frames.len()) {
                span.cursor = None;
            }
        }
    }

    /// Counts the bytes that the segment holds, about twice what its frames have.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + 2 * self.data.len() + self.frames.len() * (size_of::<Span>() + 48)
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Lists the frames after the first `skip`.
    pub(crate) fn frames(&self, skip: usize) -> impl Iterator<Item = FrameOut<'_>> {
        let mut from = skip.checked_sub(1).map_or(0, |last| self.frames[last].end);
        self.frames[skip..].iter().map(move |span| {
            let data = &self.data[from..span.end];
            from = span.end;
            FrameOut { cursor: span.cursor, place: span.place, name: span.name.as_deref(), data }
        })
    }

    /// Counts the frames that lie at or before a place.
    pub(crate) fn skip(&self, after: Cursor) -> usize {
        self.frames.partition_point(|span| span.place <= after)
    }

    /// Tells whether the last frame of the first `count` ends an AG-UI response.
    pub(crate) fn finishes(&self, count: usize) -> bool {
        count.checked_sub(1).is_some_and(|last| self.frames(last).next().is_some_and(|frame| frame.is_end()))
    }

    /// Counts the frames up to the first, after the first `skip`, that ends an AG-UI response.
    pub(crate) fn upto_end(&self, skip: usize) -> usize {
        self.frames(skip).position(|frame| frame.is_end()).map_or(self.len(), |at| skip + at + 1)
    }

    /// Hands out the frames from one to another as they go over the wire.
    pub(crate) fn bytes(&self, shape: Shape, from: usize, to: usize) -> Bytes {
        let rendered = self.shapes[shape as usize].get_or_init(|| self.render(shape));
        let start = |count: usize| count.checked_sub(1).map_or(0, |last| rendered.ends[last]);
        rendered.bytes.slice(start(from)..start(to))
    }

    fn render(&self, shape: Shape) -> Rendered {
        let mut out = Vec::with_capacity(self.data.len() + self.frames.len() * 32);
        let mut ends = Vec::with_capacity(self.frames.len());
        for frame in self.frames(0) {
            match shape {
                Shape::Sse => {
                    let id = frame.cursor.map(|cursor| cursor.to_string());
                    write_frame(Framing::Sse, &mut out, id.as_deref(), frame.name, frame.data);
                }
                Shape::Plain => out.extend_from_slice(frame.data),
                Shape::Ndjson if self.is_text => {
                    let text = Json::string(&String::from_utf8_lossy(frame.data));
                    write_frame(Framing::Ndjson, &mut out, None, None, text.text().as_bytes());
                }
                Shape::Ndjson => write_frame(Framing::Ndjson, &mut out, None, None, frame.data),
                Shape::NdjsonWithCursors => {
                    let line = self.with_cursor(frame);
                    write_frame(Framing::Ndjson, &mut out, None, None, &line);
                }
            }
            ends.push(out.len());
        }
        Rendered { bytes: out.into(), ends }
    }

    /// Writes `{cursor, frame}`; a frame of text is a string.
    pub(crate) fn with_cursor(&self, frame: FrameOut<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(frame.data.len() + 40);
        match frame.cursor {
            Some(cursor) => out.extend_from_slice(format!(r#"{{"cursor":"{cursor}","frame":"#).as_bytes()),
            None => out.extend_from_slice(br#"{"cursor":null,"frame":"#),
        }
        self.write_json(frame, &mut out);
        out.push(b'}');
        out
    }

    /// Writes a frame where JSON is expected.
    pub(crate) fn write_json(&self, frame: FrameOut<'_>, out: &mut Vec<u8>) {
        if self.is_text {
            out.extend_from_slice(Json::string(&String::from_utf8_lossy(frame.data)).text().as_bytes());
        } else {
            out.extend_from_slice(frame.data);
        }
    }
}
