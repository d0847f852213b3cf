//! Server-sent events as a reader needs them: with their ids, and only when they are whole.

use std::ops::Range;

/// Bytes of one event; a snapshot of a long conversation is one.
const EVENT_BYTES: usize = 64 << 20;

/// Cuts the bytes of a stream into events. What the end of a connection cuts off is never handed out.
#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: Vec<u8>,
    /// Where the event that is being read begins.
    start: usize,
    /// Where the line that is being read begins.
    line: usize,
    /// Bytes that are known to hold no line end.
    scanned: usize,
}

/// What stands between two blank lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// The cursor after this event.
    pub(super) id: Option<String>,
    /// The data; nothing in a sign of life.
    pub(super) data: Option<Vec<u8>>,
    /// How long to wait before connecting again, in milliseconds: the server is about to leave.
    pub(super) retry: Option<u64>,
    /// The event as it came, with its blank line.
    pub(super) raw: Vec<u8>,
}

/// An event is longer than anything the server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {EVENT_BYTES} bytes")]
pub(super) struct TooLong;

impl Events {
    /// Adds bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.buffer.drain(..self.start);
        self.line -= self.start;
        self.scanned -= self.start;
        self.start = 0;
        if self.buffer.len() + bytes.len() > EVENT_BYTES {
            return Err(TooLong);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes the next event that is whole.
    pub(super) fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        // From its first line again: an event is parsed once it is known to be whole.
        let end = self.find_end()?;
        let mut at = self.start;
        while at < end {
            let line = line_at(&self.buffer[..end], at);
            at = line.end + 1;
            event.read(trim_cr(&self.buffer[line]));
        }
        event.raw = self.buffer[self.start..end].to_vec();
        self.start = end;
        Some(event)
    }

    /// Finds where the event ends that is being read: after its blank line.
    fn find_end(&mut self) -> Option<usize> {
        loop {
            let at = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
            let Some(line_end) = at.map(|at| self.scanned + at) else {
                self.scanned = self.buffer.len();
                return None;
            };
            let is_blank = trim_cr(&self.buffer[self.line..line_end]).is_empty();
            self.line = line_end + 1;
            self.scanned = self.line;
            if is_blank {
                return Some(self.line);
            }
        }
    }
}

impl Event {
    fn read(&mut self, line: &[u8]) {
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"id" => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => self.retry = str::from_utf8(value).ok().and_then(|millis| millis.parse().ok()),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            _ => {}
        }
    }
}

fn line_at(bytes: &[u8], start: usize) -> Range<usize> {
    let end = bytes[start..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| start + at);
    start..end
}

fn trim_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] =
        b"id: 1-0\nevent: message\ndata: {\"a\":1}\n\n: keep-alive\nid: 2\n\nid: 3-0\r\ndata: x\r\ndata:\r\n\r\nid: 4-0\ndata: cut";

    fn expected() -> Vec<(Option<String>, Option<Vec<u8>>)> {
        let event = |id: &str, data: Option<&[u8]>| (Some(id.to_owned()), data.map(<[u8]>::to_vec));
        vec![event("1-0", Some(b"{\"a\":1}")), event("2", None), event("3-0", Some(b"x\n"))]
    }

    #[test]
    fn events_are_handed_out_whole_wherever_the_bytes_are_cut() {
        for size in 1..STREAM.len() {
            let (mut events, mut found, mut raw) = (Events::default(), Vec::new(), Vec::new());
            for piece in STREAM.chunks(size) {
                events.push(piece).unwrap();
                while let Some(event) = events.next() {
                    raw.extend_from_slice(&event.raw);
                    found.push((event.id, event.data));
                }
            }
            assert_eq!(found, expected(), "in pieces of {size}");
            assert_eq!(raw, STREAM[..STREAM.len() - b"id: 4-0\ndata: cut".len()]);
        }
    }

    #[test]
    fn a_server_that_leaves_says_when_to_come_back() {
        let mut events = Events::default();
        events.push(b"retry: 250\n\nretry: soon\n\n").unwrap();
        assert_eq!(events.next().map(|event| (event.retry, event.data)), Some((Some(250), None)));
        assert_eq!(events.next().map(|event| event.retry), Some(None));
    }

    #[test]
    fn an_event_without_an_end_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        let pushed = (0..=EVENT_BYTES >> 20).map(|_| {
            let pushed = events.push(&piece);
            assert_eq!(events.next(), None);
            pushed
        });
        assert_eq!(pushed.last(), Some(Err(TooLong)));
    }
}
