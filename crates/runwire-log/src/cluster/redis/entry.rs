//! The format of entries in Redis, and the names of their streams and channels.

use std::sync::Arc;

use bytes::Bytes;
use redis::Value;

/// An entry to publish: the records of one thread in one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedEntry {
    /// The number of the thread in the store.
    pub thread: i64,
    /// The first record.
    pub first: u64,
    /// The last record.
    pub last: u64,
    /// The encoded records.
    pub body: Bytes,
}

/// A received entry, of another node or this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedEntry {
    /// The number of the thread in the store.
    pub thread: i64,
    /// The first record.
    pub first: u64,
    /// The last record.
    pub last: u64,
    /// The encoded records; `None` where they must be read from the store.
    pub body: Option<Bytes>,
}

/// The names of streams and channels in Redis.
#[derive(Debug, Clone)]
pub(super) struct RedisKeys {
    prefix: Arc<str>,
    echo: Arc<str>,
}

impl RedisKeys {
    pub(super) fn new(generation: &str) -> Self {
        let prefix = format!("runwire:{generation}:");
        let echo = format!("{prefix}echo:{}", uuid::Uuid::now_v7());
        Self { prefix: prefix.into(), echo: echo.into() }
    }

    /// Returns the name of a thread's stream and channel.
    pub(super) fn of(&self, thread: i64) -> String {
        format!("{}{thread}", self.prefix)
    }

    /// Parses the thread out of a name.
    pub(super) fn thread(&self, name: &[u8]) -> Option<i64> {
        std::str::from_utf8(name).ok()?.strip_prefix(&*self.prefix)?.parse().ok()
    }

    /// Returns the channel on which this node measures its round trip.
    pub(super) fn echo(&self) -> &str {
        &self.echo
    }
}

/// Encodes an entry as a channel message.
pub(super) fn message(first: u64, last: u64, body: Option<&[u8]>) -> Vec<u8> {
    let mut message = format!("{first} {last}").into_bytes();
    if let Some(body) = body {
        message.push(b'\n');
        message.extend_from_slice(body);
    }
    message
}

impl ReceivedEntry {
    /// Decodes a channel message; returns `None` if it is malformed.
    pub(super) fn from_message(thread: i64, message: Vec<u8>) -> Option<Self> {
        let message = Bytes::from(message);
        let end = memchr::memchr(b'\n', &message);
        let range = std::str::from_utf8(&message[..end.unwrap_or(message.len())]).ok()?;
        let (first, last) = range.split_once(' ')?;
        Self::new(thread, first, last, end.map(|end| message.slice(end + 1..)))
    }

    /// Decodes a stream entry: its id, and alternating field names and values.
    pub(super) fn from_stream(thread: i64, id: &[u8], fields: Vec<Value>) -> Option<Self> {
        let last = std::str::from_utf8(id).ok()?.split_once('-')?.0;
        let (mut first, mut body) = (None, None);
        let mut fields = fields.into_iter();
        while let (Some(Value::BulkString(name)), Some(Value::BulkString(value))) =
            (fields.next(), fields.next())
        {
            match &name[..] {
                b"first" => first = String::from_utf8(value).ok(),
                b"body" => body = Some(Bytes::from(value)),
                _ => {}
            }
        }
        Self::new(thread, &first?, last, body)
    }

    fn new(thread: i64, first: &str, last: &str, body: Option<Bytes>) -> Option<Self> {
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        (0 < first && first <= last).then_some(Self { thread, first, last, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for body in [None, Some(&b""[..]), Some(b"a\nb \0\xff")] {
            let entry = ReceivedEntry::from_message(7, message(3, 5, body)).unwrap();
            let body = body.map(Bytes::from_static);
            assert_eq!(entry, ReceivedEntry { thread: 7, first: 3, last: 5, body });
        }
    }

    #[test]
    fn a_malformed_message_is_ignored() {
        for garbage in ["", " ", "1", "1 ", "0 1\nx", "2 1", "-1 3", "a b", "1 2 3", "1 99999999999999999999"]
        {
            assert_eq!(ReceivedEntry::from_message(7, garbage.into()), None, "{garbage}");
        }
        assert_eq!(ReceivedEntry::from_message(7, vec![0xff, 0xfe]), None);
    }

    #[test]
    fn a_malformed_entry_is_ignored() {
        let text = |text: &str| Value::BulkString(text.into());
        let entry = |id: &str, fields| ReceivedEntry::from_stream(7, id.as_bytes(), fields);
        assert!(entry("5-0", vec![text("first"), text("3")]).is_some());
        assert!(entry("5-0", vec![text("other"), text("x"), text("first"), text("3")]).is_some());
        assert_eq!(entry("5-0", vec![]), None);
        assert_eq!(entry("5-0", vec![text("first")]), None);
        assert_eq!(entry("5-0", vec![text("first"), text("6")]), None);
        assert_eq!(entry("5", vec![text("first"), text("3")]), None);
        assert_eq!(entry("x-0", vec![text("first"), text("3")]), None);
        assert_eq!(entry("5-0", vec![Value::Nil, Value::Int(3)]), None);
    }

    #[test]
    fn a_name_means_its_thread_and_no_other_generation() {
        let keys = RedisKeys::new("g1");
        assert_eq!(keys.of(-4), "runwire:g1:-4");
        assert_eq!(keys.thread(b"runwire:g1:-4"), Some(-4));
        for other in ["runwire:g2:4", "runwire:g1:", "runwire:g1:x", keys.echo(), ""] {
            assert_eq!(keys.thread(other.as_bytes()), None, "{other}");
        }
    }
}
