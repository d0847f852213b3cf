//! Segments: the encoded frames of consecutive records, shared by all readers of a feed.

use std::sync::OnceLock;

use bytes::Bytes;
use runwire_log::ReadFormat;
use runwire_model::dialect::{Dialect, Frames};
use runwire_model::framing::{Framing, write_frame};
use runwire_model::json::Json;

use super::cursor::FeedCursor;

/// The format in which a stream's frames are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamFormat {
    /// Server-sent events with `id`, `event` and `data`.
    Sse,
    /// One frame per line.
    Ndjson,
    /// One `{cursor, frame}` per line.
    NdjsonWithCursors,
    /// Bare text, for the `text` dialect.
    Plain,
}

/// The frames of the records in `after + 1..=upto`.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The `seq` before the first record.
    pub(crate) after: u64,
    /// The `seq` of the last record.
    pub(crate) upto: u64,
    /// Whether the run of the feed ends in this segment.
    pub(crate) ends: bool,
    frames: Vec<Span>,
    data: Vec<u8>,
    /// Whether the data is text rather than JSON.
    is_text: bool,
    /// The number of a record's first frame in cursors.
    first_frame: u32,
    rendered: [OnceLock<Rendered>; 4],
}

#[derive(Debug)]
struct Span {
    cursor: Option<FeedCursor>,
    /// The cursor of the frame, even where readers are not sent one.
    position: FeedCursor,
    name: Option<Box<str>>,
    end: usize,
}

/// All frames written in one format, concatenated.
#[derive(Debug)]
struct Rendered {
    bytes: Bytes,
    ends: Vec<usize>,
}

/// A frame of a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentFrame<'a> {
    pub(crate) cursor: Option<FeedCursor>,
    pub(crate) position: FeedCursor,
    pub(crate) name: Option<&'a str>,
    pub(crate) data: &'a [u8],
}

impl SegmentFrame<'_> {
    /// Returns true if the frame ends an AG-UI response.
    fn ends_response(&self) -> bool {
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
            rendered: Default::default(),
        }
    }

    /// Adds the frames of a record.
    pub(crate) fn push(&mut self, seq: u64, frames: &Frames) {
        for (frame, (name, data)) in (self.first_frame..).zip(frames.iter()) {
            self.push_frame(FeedCursor { seq, frame }, name, data);
        }
    }

    /// Adds a frame.
    pub(crate) fn push_frame(&mut self, cursor: FeedCursor, name: Option<&str>, data: &[u8]) {
        self.data.extend_from_slice(data);
        let (name, end) = (name.map(Into::into), self.data.len());
        self.frames.push(Span { cursor: Some(cursor), position: cursor, name, end });
    }

    /// Adds the frames of a snapshot: only the last has a cursor, which is after a whole record.
    pub(crate) fn push_snapshot(&mut self, seq: u64, frames: &Frames) {
        for (at, (name, data)) in frames.iter().enumerate() {
            self.push_frame(FeedCursor::after(seq), name, data);
            if let Some(span) = self.frames.last_mut().filter(|_| at + 1 < frames.len()) {
                span.cursor = None;
            }
        }
    }

    /// Estimates the memory of the segment: about twice the bytes of its frames.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + 2 * self.data.len() + self.frames.len() * (size_of::<Span>() + 48)
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Iterates over the frames after the first `skip`.
    pub(crate) fn frames(&self, skip: usize) -> impl Iterator<Item = SegmentFrame<'_>> {
        let mut from = skip.checked_sub(1).map_or(0, |last| self.frames[last].end);
        self.frames[skip..].iter().map(move |span| {
            let data = &self.data[from..span.end];
            from = span.end;
            SegmentFrame { cursor: span.cursor, position: span.position, name: span.name.as_deref(), data }
        })
    }

    /// Counts the frames at or before a cursor.
    pub(crate) fn frames_upto(&self, after: FeedCursor) -> usize {
        self.frames.partition_point(|span| span.position <= after)
    }

    /// Returns true if the last of the first `count` frames ends an AG-UI response.
    pub(crate) fn ends_response(&self, count: usize) -> bool {
        count
            .checked_sub(1)
            .is_some_and(|last| self.frames(last).next().is_some_and(|frame| frame.ends_response()))
    }

    /// Counts the frames up to and including the first one after `skip` that ends an AG-UI response.
    pub(crate) fn first_response_end(&self, skip: usize) -> usize {
        self.frames(skip).position(|frame| frame.ends_response()).map_or(self.len(), |at| skip + at + 1)
    }

    /// Returns the frames `from..to` in a format; each format is rendered once.
    pub(crate) fn bytes(&self, format: StreamFormat, from: usize, to: usize) -> Bytes {
        let rendered = self.rendered[format as usize].get_or_init(|| self.render(format));
        let start = |count: usize| count.checked_sub(1).map_or(0, |last| rendered.ends[last]);
        rendered.bytes.slice(start(from)..start(to))
    }

    fn render(&self, format: StreamFormat) -> Rendered {
        let mut out = Vec::with_capacity(self.data.len() + self.frames.len() * 32);
        let mut ends = Vec::with_capacity(self.frames.len());
        for frame in self.frames(0) {
            match format {
                StreamFormat::Sse => {
                    let id = frame.cursor.map(|cursor| cursor.to_string());
                    write_frame(Framing::Sse, &mut out, id.as_deref(), frame.name, frame.data);
                }
                StreamFormat::Plain => out.extend_from_slice(frame.data),
                StreamFormat::Ndjson if self.is_text => {
                    let text = Json::string(&String::from_utf8_lossy(frame.data));
                    write_frame(Framing::Ndjson, &mut out, None, None, text.text().as_bytes());
                }
                StreamFormat::Ndjson => write_frame(Framing::Ndjson, &mut out, None, None, frame.data),
                StreamFormat::NdjsonWithCursors => {
                    let line = self.with_cursor(frame);
                    write_frame(Framing::Ndjson, &mut out, None, None, &line);
                }
            }
            ends.push(out.len());
        }
        Rendered { bytes: out.into(), ends }
    }

    /// Writes `{cursor, frame}`; a frame of the `text` dialect is a string.
    pub(crate) fn with_cursor(&self, frame: SegmentFrame<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(frame.data.len() + 40);
        match frame.cursor {
            Some(cursor) => out.extend_from_slice(format!(r#"{{"cursor":"{cursor}","frame":"#).as_bytes()),
            None => out.extend_from_slice(br#"{"cursor":null,"frame":"#),
        }
        self.write_json(frame, &mut out);
        out.push(b'}');
        out
    }

    /// Appends a frame as JSON.
    pub(crate) fn write_json(&self, frame: SegmentFrame<'_>, out: &mut Vec<u8>) {
        if self.is_text {
            out.extend_from_slice(Json::string(&String::from_utf8_lossy(frame.data)).text().as_bytes());
        } else {
            out.extend_from_slice(frame.data);
        }
    }
}
