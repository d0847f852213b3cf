//! Incremental parser of server-sent events; it returns complete events with their ids.

use bytes::{Bytes, BytesMut};

use super::cursor::Cursor;

/// Limits the bytes of one event; the snapshot of a long conversation is one event.
pub(super) const MAX_EVENT_BYTES: usize = 64 << 20;

/// Parses the bytes of a connection into events. It never returns an event that the connection's end cut off.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    /// Starts with the current event.
    buffer: BytesMut,
    /// Start of the current line.
    line: usize,
    /// Bytes already searched for a line end.
    scanned: usize,
}

/// One event. Its fields are slices of the received bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The cursor after this event.
    pub(super) id: Option<Cursor>,
    /// The frame's name.
    pub(super) name: Option<Bytes>,
    /// The data; `None` in a keep-alive.
    pub(super) data: Option<Bytes>,
    /// Delay before reconnecting, in milliseconds: the server is shutting down.
    pub(super) retry: Option<u64>,
    /// Whether everything up to now has been sent.
    pub(super) is_caught_up: bool,
    /// Whether the run has ended and everything of it was sent.
    pub(super) is_end: bool,
}

/// Why a stream cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SseError {
    #[error("an event has more than {MAX_EVENT_BYTES} bytes")]
    TooLong,
    #[error("an event's id is no cursor")]
    InvalidId,
}

impl SseParser {
    /// Buffers received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        if self.buffer.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(SseError::TooLong);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the next complete event.
    pub(super) fn next(&mut self) -> Result<Option<SseEvent>, SseError> {
        let Some(end) = self.find_end() else { return Ok(None) };
        // Only a complete event is parsed.
        let bytes = self.buffer.split_to(end).freeze();
        (self.line, self.scanned) = (0, 0);
        let mut event = SseEvent::default();
        let mut at = 0;
        while at < end {
            let line_end = memchr::memchr(b'\n', &bytes[at..]).map_or(end, |length| at + length);
            event.read(&bytes, at, line_end)?;
            at = line_end + 1;
        }
        Ok(Some(event))
    }

    /// Returns the end of the current event: after its blank line.
    fn find_end(&mut self) -> Option<usize> {
        loop {
            let Some(length) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                return None;
            };
            let line_end = self.scanned + length;
            let is_blank = matches!(&self.buffer[self.line..line_end], b"" | b"\r");
            self.line = line_end + 1;
            self.scanned = self.line;
            if is_blank {
                return Some(self.line);
            }
        }
    }
}

impl SseEvent {
    /// Parses the line of an event between two offsets.
    fn read(&mut self, bytes: &Bytes, start: usize, end: usize) -> Result<(), SseError> {
        let end = if bytes[start..end].ends_with(b"\r") { end - 1 } else { end };
        let line = &bytes[start..end];
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut value_start = (start + colon + 1).min(end);
        if bytes[value_start..end].starts_with(b" ") {
            value_start += 1;
        }
        let value = || bytes.slice(value_start..end);
        let text = &bytes[value_start..end];
        match &line[..colon] {
            b"id" if !text.is_empty() => self.id = Some(Cursor::parse(text).ok_or(SseError::InvalidId)?),
            b"event" => self.name = Some(value()),
            b"data" => {
                self.data = Some(match self.data.take() {
                    Some(before) => [&before[..], b"\n", text].concat().into(),
                    None => value(),
                });
            }
            b"retry" => self.retry = str::from_utf8(text).ok().and_then(|millis| millis.parse().ok()),
            b"" if text == b"caught-up" => self.is_caught_up = true,
            b"" if text == b"end" => self.is_end = true,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"id: 1-0\nevent: message\ndata: {\"a\":1}\n\n: keep-alive\nid: 2\n\n\
        id: 3-0\r\ndata: x\r\ndata:\r\n\r\n: caught-up\n\nid: 4-0\ndata: cut";

    fn expected() -> Vec<SseEvent> {
        let event = |id: &str, data: Option<&'static str>| SseEvent {
            id: id.parse().ok(),
            data: data.map(Bytes::from),
            ..SseEvent::default()
        };
        vec![
            SseEvent { name: Some("message".into()), ..event("1-0", Some("{\"a\":1}")) },
            event("2", None),
            event("3-0", Some("x\n")),
            SseEvent { is_caught_up: true, ..SseEvent::default() },
        ]
    }

    #[test]
    fn events_are_complete_wherever_the_bytes_are_split() {
        for size in 1..STREAM.len() {
            let (mut sse_parser, mut found) = (SseParser::default(), Vec::new());
            for piece in STREAM.chunks(size) {
                sse_parser.push(piece).unwrap();
                while let Some(event) = sse_parser.next().unwrap() {
                    found.push(event);
                }
            }
            assert_eq!(found, expected(), "in pieces of {size}");
        }
    }

    #[test]
    fn a_server_that_shuts_down_says_when_to_reconnect() {
        let mut sse_parser = SseParser::default();
        sse_parser.push(b"retry: 250\n\nretry: soon\n\n").unwrap();
        let mut retry = || sse_parser.next().unwrap().map(|event| (event.retry, event.data));
        assert_eq!(retry(), Some((Some(250), None)));
        assert_eq!(retry(), Some((None, None)));
        assert_eq!(retry(), None);
    }

    #[test]
    fn invalid_ids_and_too_long_events_are_refused() {
        let mut sse_parser = SseParser::default();
        sse_parser.push(b"id: soon\ndata: x\n\n").unwrap();
        assert_eq!(sse_parser.next(), Err(SseError::InvalidId));
        let mut sse_parser = SseParser::default();
        let piece = vec![b'x'; 1 << 20];
        let pushed = (0..=MAX_EVENT_BYTES >> 20).map(|_| {
            let pushed = sse_parser.push(&piece);
            assert_eq!(sse_parser.next(), Ok(None));
            pushed
        });
        assert_eq!(pushed.last(), Some(Err(SseError::TooLong)));
    }
}
