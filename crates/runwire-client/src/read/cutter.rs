//! Server-sent events as a reader needs them: with their ids, and only when they are whole.

use bytes::{Bytes, BytesMut};

use super::cursor::Cursor;

/// Bytes of one event; a snapshot of a long conversation is one.
pub(super) const EVENT_BYTES: usize = 64 << 20;

/// Cuts the bytes of a stream into events. What the end of a connection cuts off is never handed out.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    /// Begins with the event that is being read.
    buffer: BytesMut,
    /// Where the line that is being read begins.
    line: usize,
    /// Bytes that are known to hold no line end.
    scanned: usize,
}

/// What stands between two blank lines. Texts are parts of what came in, and not copied.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The cursor after this event.
    pub(super) id: Option<Cursor>,
    /// The frame's name.
    pub(super) name: Option<Bytes>,
    /// The data; nothing in a sign of life.
    pub(super) data: Option<Bytes>,
    /// How long to wait before connecting again, in milliseconds: the server is about to leave.
    pub(super) retry: Option<u64>,
    /// Whether everything up to now has been sent.
    pub(super) is_caught_up: bool,
    /// Whether the run has ended and everything of it was sent.
    pub(super) is_end: bool,
}

/// Says what no server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("an event has more than {EVENT_BYTES} bytes")]
    TooLong,
    #[error("an event's id is no cursor")]
    OddId,
}

impl Cutter {
    /// Adds bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.buffer.len() + bytes.len() > EVENT_BYTES {
            return Err(Fault::TooLong);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes the next event that is whole.
    pub(super) fn next(&mut self) -> Result<Option<Block>, Fault> {
        let Some(end) = self.find_end() else { return Ok(None) };
        // An event is parsed once it is known to be whole.
        let event = self.buffer.split_to(end).freeze();
        (self.line, self.scanned) = (0, 0);
        let mut block = Block::default();
        let mut at = 0;
        while at < end {
            let line_end = memchr::memchr(b'\n', &event[at..]).map_or(end, |length| at + length);
            block.read(&event, at, line_end)?;
            at = line_end + 1;
        }
        Ok(Some(block))
    }

    /// Finds where the event ends that is being read: after its blank line.
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

impl Block {
    /// Reads the line of an event between two places.
    fn read(&mut self, event: &Bytes, start: usize, end: usize) -> Result<(), Fault> {
        let end = if event[start..end].ends_with(b"\r") { end - 1 } else { end };
        let line = &event[start..end];
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut value_start = (start + colon + 1).min(end);
        if event[value_start..end].starts_with(b" ") {
            value_start += 1;
        }
        let value = || event.slice(value_start..end);
        let text = &event[value_start..end];
        match &line[..colon] {
            b"id" if !text.is_empty() => self.id = Some(Cursor::parse(text).ok_or(Fault::OddId)?),
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

    fn expected() -> Vec<Block> {
        let block = |id: &str, data: Option<&'static str>| Block {
            id: id.parse().ok(),
            data: data.map(Bytes::from),
            ..Block::default()
        };
        vec![
            Block { name: Some("message".into()), ..block("1-0", Some("{\"a\":1}")) },
            block("2", None),
            block("3-0", Some("x\n")),
            Block { is_caught_up: true, ..Block::default() },
        ]
    }

    #[test]
    fn events_are_handed_out_whole_wherever_the_bytes_are_cut() {
        for size in 1..STREAM.len() {
            let (mut cutter, mut found) = (Cutter::default(), Vec::new());
            for piece in STREAM.chunks(size) {
                cutter.push(piece).unwrap();
                while let Some(block) = cutter.next().unwrap() {
                    found.push(block);
                }
            }
            assert_eq!(found, expected(), "in pieces of {size}");
        }
    }

    #[test]
    fn a_server_that_leaves_says_when_to_come_back() {
        let mut cutter = Cutter::default();
        cutter.push(b"retry: 250\n\nretry: soon\n\n").unwrap();
        let mut retry = || cutter.next().unwrap().map(|block| (block.retry, block.data));
        assert_eq!(retry(), Some((Some(250), None)));
        assert_eq!(retry(), Some((None, None)));
        assert_eq!(retry(), None);
    }

    #[test]
    fn what_no_server_sends_is_refused() {
        let mut cutter = Cutter::default();
        cutter.push(b"id: soon\ndata: x\n\n").unwrap();
        assert_eq!(cutter.next(), Err(Fault::OddId));
        let mut cutter = Cutter::default();
        let piece = vec![b'x'; 1 << 20];
        let pushed = (0..=EVENT_BYTES >> 20).map(|_| {
            let pushed = cutter.push(&piece);
            assert_eq!(cutter.next(), Ok(None));
            pushed
        });
        assert_eq!(pushed.last(), Some(Err(Fault::TooLong)));
    }
}
