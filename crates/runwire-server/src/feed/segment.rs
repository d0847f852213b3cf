//! Segments: the encoded frames of consecutive records, shared by all readers of a feed.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use runwire_log::ReadFormat;
use runwire_model::dialect::{Dialect, Frames};
use runwire_model::framing::{Framing, write_frame};
use runwire_model::json::Json;

use super::cursor::FeedCursor;
use crate::memory_budget::{self, MemoryShare};

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
    dialect: Option<Dialect>,
    /// The number of a record's first frame in cursors.
    first_frame: u32,
    rendered: [OnceLock<Rendered>; 4],
    /// The share of the memory budget of a page that one reader has for itself.
    share: Option<Arc<MemoryShare>>,
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
    /// The frames; those of SSE with the lines of an HTTP chunk around them.
    bytes: Bytes,
    /// Where the length line of the chunk begins, and where the frames begin.
    starts: (usize, usize),
    ends: Vec<usize>,
}

/// Bytes of the longest length line of an HTTP chunk.
const CHUNK_LINE_BYTES: usize = 18;

/// Makes an HTTP chunk of some bytes.
pub(crate) fn http_chunk(bytes: &[u8]) -> Bytes {
    [format!("{:X}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat().into()
}

/// A frame of a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentFrame<'a> {
    pub(crate) cursor: Option<FeedCursor>,
    pub(crate) position: FeedCursor,
    pub(crate) name: Option<&'a str>,
    pub(crate) data: &'a [u8],
}

impl Segment {
    pub(crate) fn begin(after: u64, form: Option<ReadFormat>) -> Self {
        Self {
            after,
            upto: after,
            ends: false,
            frames: Vec::new(),
            data: Vec::new(),
            dialect: form.map(|form| form.dialect),
            first_frame: form.map_or(0, ReadFormat::first_frame),
            rendered: Default::default(),
            share: None,
        }
    }

    /// Keeps a share of the memory budget until the last byte is sent.
    pub(crate) fn holding(self, share: MemoryShare) -> Self {
        Self { share: Some(Arc::new(share)), ..self }
    }

    /// Makes bytes that were made of it keep its share, too.
    pub(crate) fn hold(&self, bytes: Bytes) -> Bytes {
        match &self.share {
            Some(share) => memory_budget::hold(bytes, share.clone()),
            None => bytes,
        }
    }

    /// Returns the share of the memory budget that it keeps.
    pub(crate) fn share(&self) -> Option<Arc<MemoryShare>> {
        self.share.clone()
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

    /// Returns true if the last of the first `count` frames ends a response.
    pub(crate) fn ends_response(&self, count: usize) -> bool {
        let last = count.checked_sub(1).and_then(|last| self.frames(last).next());
        last.is_some_and(|frame| self.is_response_end(&frame))
    }

    /// Counts the frames up to and including the first one after `skip` that ends a response.
    pub(crate) fn first_response_end(&self, skip: usize) -> usize {
        let end = self.frames(skip).position(|frame| self.is_response_end(&frame));
        end.map_or(self.len(), |at| skip + at + 1)
    }

    fn is_response_end(&self, frame: &SegmentFrame<'_>) -> bool {
        self.dialect.is_some_and(|dialect| dialect.ends_response(frame.data))
    }

    /// Returns the frames `from..to` in a format; each format is rendered once.
    pub(crate) fn bytes(&self, format: StreamFormat, from: usize, to: usize) -> Bytes {
        let rendered = self.rendered(format);
        let start = |count: usize| count.checked_sub(1).map_or(rendered.starts.1, |last| rendered.ends[last]);
        rendered.bytes.slice(start(from)..start(to))
    }

    /// Returns all frames as server-sent events in one HTTP chunk, which is made once; empty if there are none.
    pub(crate) fn sse_chunk(&self) -> Bytes {
        if self.len() == 0 {
            return Bytes::new();
        }
        let rendered = self.rendered(StreamFormat::Sse);
        rendered.bytes.slice(rendered.starts.0..)
    }

    /// Returns the `seq` of the last frame's cursor, if readers are sent one.
    pub(crate) fn last_sent_seq(&self) -> Option<u64> {
        self.frames.last().and_then(|span| span.cursor).map(|cursor| cursor.seq)
    }

    /// Returns one segment in place of this and the next, if neither has frames.
    pub(super) fn without_frames_upto(&self, next: &Self) -> Option<Self> {
        let is_empty = |segment: &Self| segment.len() == 0 && !segment.ends;
        let (dialect, first_frame) = (self.dialect, self.first_frame);
        (is_empty(self) && is_empty(next)).then(|| Self {
            upto: next.upto,
            dialect,
            first_frame,
            ..Self::begin(self.after, None)
        })
    }

    fn rendered(&self, format: StreamFormat) -> &Rendered {
        self.rendered[format as usize].get_or_init(|| self.render(format))
    }

    fn render(&self, format: StreamFormat) -> Rendered {
        let mut out = Vec::with_capacity(self.data.len() + self.frames.len() * 32);
        let mut ends = Vec::with_capacity(self.frames.len());
        let is_chunk = format == StreamFormat::Sse;
        if is_chunk {
            // Room for the length line, which ends where the frames begin.
            out.resize(CHUNK_LINE_BYTES, 0);
        }
        let begin = out.len();
        for frame in self.frames(0) {
            match format {
                StreamFormat::Sse => {
                    let id = frame.cursor.map(|cursor| cursor.to_string());
                    write_frame(Framing::Sse, &mut out, id.as_deref(), frame.name, frame.data);
                }
                StreamFormat::Plain => out.extend_from_slice(frame.data),
                StreamFormat::Ndjson if self.dialect == Some(Dialect::Text) => {
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
        let mut line_begins = begin;
        if is_chunk {
            let line = format!("{:X}\r\n", out.len() - begin);
            line_begins -= line.len();
            out[line_begins..begin].copy_from_slice(line.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        let bytes = match &self.share {
            Some(share) => memory_budget::hold(out, share.clone()),
            None => out.into(),
        };
        Rendered { bytes, starts: (line_begins, begin), ends }
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
        if self.dialect == Some(Dialect::Text) {
            out.extend_from_slice(Json::string(&String::from_utf8_lossy(frame.data)).text().as_bytes());
        } else {
            out.extend_from_slice(frame.data);
        }
    }
}
