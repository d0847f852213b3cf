//! Stored records, and their binary encoding.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use runwire_model::Timestamp;
use runwire_model::dialect::Dialect;
use runwire_model::event::{Body, Event};
use runwire_model::json::ObjectWriter;
use runwire_model::record::{Entry, EventOrigin, Record};

/// A record of a thread, with its run and the frame byte for byte.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    /// The run it belongs to.
    pub run: Arc<str>,
    /// What it means.
    pub record: Record,
    /// The name that SSE carried with the frame.
    pub name: Option<Box<str>>,
    /// The frame's bytes; none for an act of the server.
    pub frame: Option<Bytes>,
}

impl StoredRecord {
    /// Returns the approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        // Events are about as large as their frame; those without a frame are measured themselves.
        let unframed = |entry: &&Entry| {
            self.frame.is_none()
                || matches!(&entry.event.body, Body::RunStarted(started) if started.input.is_some())
        };
        let entries = self.record.entries.iter();
        let unframed_bytes: usize =
            entries.filter(unframed).map(|entry| entry.event.to_json().text().len()).sum();
        let frame = self.frame.as_ref().map_or(0, Bytes::len);
        size_of::<Self>() + 2 * frame + unframed_bytes + self.record.entries.len() * size_of::<Entry>()
    }

    /// Returns whether the record ends its run.
    pub fn is_terminal(&self) -> bool {
        self.record.entries.iter().any(|entry| entry.event.body.is_terminal())
    }
}

/// A stored record cannot be decoded: the store is damaged, or was written by a newer version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DamagedRecord {
    /// A record.
    #[error("a stored record is damaged: {0}")]
    Record(&'static str),
    /// A row of records: they are not what was written.
    #[error("the stored records {first} to {last} of thread number {thread} are damaged: {why}")]
    Row {
        /// The store's number of the thread.
        thread: i64,
        /// The first `seq`.
        first: u64,
        /// The last `seq`.
        last: u64,
        /// What is wrong.
        why: &'static str,
    },
}

/// What a record has, as bits of its first byte.
const HAS_SOURCE_TIME: u8 = 1;
const HAS_DIALECT: u8 = 2;
const HAS_NAME: u8 = 4;
const HAS_FRAME: u8 = 8;
/// Marks an event of which a part stands in the frame, beside who added it.
const QUOTES_FRAME: u8 = 0x80;
/// Bytes of a string from which on it is looked for in the frame.
const QUOTED_BYTES: usize = 24;

/// Computes the checksum of a row of records: of their bytes, and of the key under which they are found.
pub(crate) fn checksum(thread: i64, first: u64, last: u64, records: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let mut key = [0; 24];
    key[..8].copy_from_slice(&thread.to_le_bytes());
    key[8..16].copy_from_slice(&first.to_le_bytes());
    key[16..].copy_from_slice(&last.to_le_bytes());
    hasher.update(&key);
    hasher.update(records);
    hasher.finalize()
}

/// Encodes records, one after the other.
///
/// A record is its length as u32 (little-endian), then:
///
/// - u8: what it has (`HAS_…`)
/// - `seq`, the store's number of the run, `at`; source time and the dialect's number if it has them
/// - the name and the frame if it has them
/// - the number of entries, then for each: u8 who added it, and the event as JSON. What an event quotes from the frame,
///   such as its text, stands in the frame alone: then `QUOTES_FRAME` is set, and the JSON is the text before the quote,
///   the offset and the length of the quote in the frame, and the text after it.
///
/// Numbers are unsigned LEB128, texts and bytes are preceded by their length.
#[derive(Default)]
pub(crate) struct RecordEncoder {
    json: Vec<u8>,
    /// Where the last quote began, in the JSON and in the frame: most often the next one begins there, too.
    last_quote: [usize; 2],
}

impl RecordEncoder {
    /// Appends a record. `run` is the store's number of the run.
    pub(crate) fn encode(&mut self, out: &mut Vec<u8>, run: u64, stored: &StoredRecord) {
        let record = &stored.record;
        let begin = out.len();
        let has = |has: bool, bit: u8| if has { bit } else { 0 };
        out.extend_from_slice(&[0; 4]);
        out.push(
            has(record.source_time.is_some(), HAS_SOURCE_TIME)
                | has(record.dialect.is_some(), HAS_DIALECT)
                | has(stored.name.is_some(), HAS_NAME)
                | has(stored.frame.is_some(), HAS_FRAME),
        );
        put_number(out, record.seq);
        put_number(out, run);
        put_number(out, record.at.0);
        if let Some(time) = record.source_time {
            put_number(out, time.0);
        }
        if let Some(dialect) = record.dialect {
            out.push(dialect.number());
        }
        if let Some(name) = &stored.name {
            put_bytes(out, name.as_bytes());
        }
        if let Some(frame) = &stored.frame {
            put_bytes(out, frame);
        }
        put_number(out, record.entries.len() as u64);
        for entry in &record.entries {
            self.json.clear();
            let mut object = ObjectWriter::begin(&mut self.json);
            entry.event.write(&mut object);
            object.end();
            let origin = origin_number(entry.origin);
            let frame = stored.frame.as_ref();
            match frame.and_then(|frame| quote(&self.json, frame, &mut self.last_quote)) {
                Some(Quote { at, offset, length }) => {
                    out.push(origin | QUOTES_FRAME);
                    put_bytes(out, &self.json[..at]);
                    put_number(out, offset as u64);
                    put_number(out, length as u64);
                    put_bytes(out, &self.json[at + length..]);
                }
                None => {
                    out.push(origin);
                    put_bytes(out, &self.json);
                }
            }
        }
        let length = (out.len() - begin - 4) as u32;
        out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A part of an event's JSON that stands in the frame.
struct Quote {
    /// Offset in the JSON.
    at: usize,
    /// Offset in the frame.
    offset: usize,
    length: usize,
}

/// Finds the longest string of an event's JSON among the strings of the frame, and what is equal around it.
fn quote(json: &[u8], frame: &[u8], last: &mut [usize; 2]) -> Option<Quote> {
    let (begin, length) = string_at(json, last[0])
        .filter(|length| 2 * length > json.len())
        .map_or_else(|| longest_string(json), |length| (last[0], length));
    if length < QUOTED_BYTES {
        return None;
    }
    let string = &json[begin..begin + length];
    let is_here = |at: &usize| frame.get(*at..).is_some_and(|rest| rest.starts_with(string));
    let offset = Some(last[1]).filter(is_here);
    let offset = offset.or_else(|| memchr::memchr_iter(b'"', frame).map(|at| at + 1).find(is_here))?;
    *last = [begin, offset];
    let before = json[..begin].iter().rev().zip(frame[..offset].iter().rev());
    let before = before.take_while(|(one, other)| one == other).count();
    let after = json[begin + length..].iter().zip(&frame[offset + length..]);
    let after = after.take_while(|(one, other)| one == other).count();
    Some(Quote { at: begin - before, offset: offset - before, length: before + length + after })
}

/// Returns the length of the string that begins at an offset, if one does.
fn string_at(json: &[u8], begin: usize) -> Option<usize> {
    (json.get(begin.checked_sub(1)?) == Some(&b'"')).then_some(())?;
    memchr::memchr(b'"', json.get(begin..)?)
}

/// Returns the offset and the length of the longest string. An escaped quotation mark only makes a string seem shorter.
fn longest_string(json: &[u8]) -> (usize, usize) {
    let (mut from, mut longest) = (0, (0, 0));
    for at in memchr::memchr_iter(b'"', json) {
        if at - from > longest.1 {
            longest = (from, at - from);
        }
        from = at + 1;
    }
    longest
}

/// Verifies the rows of a thread's records that are read one after the other.
pub(crate) struct RecordRows {
    thread: i64,
    next: Option<u64>,
}

impl RecordRows {
    pub(crate) fn of(thread: i64) -> Self {
        Self { thread, next: None }
    }

    /// Decodes the next row, if its checksum is right and it follows the one before.
    pub(crate) fn decode(
        &mut self,
        first: u64,
        last: u64,
        expected: i64,
        records: Vec<u8>,
    ) -> Result<RecordDecoder, DamagedRecord> {
        let damaged = |why| Err(DamagedRecord::Row { thread: self.thread, first, last, why });
        if i64::from(checksum(self.thread, first, last, &records)) != expected {
            return damaged("their checksum is wrong");
        }
        if self.next.is_some_and(|next| next != first) {
            return damaged("records before them are missing");
        }
        self.next = Some(last.saturating_add(1));
        Ok(RecordDecoder::new(records.into()))
    }
}

/// Selects the records that a scan decodes. The others are passed over in their encoded form, which is much cheaper.
///
/// It is a hint: a source may show other records, too.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Records of this run alone.
    pub run: Option<&'a str>,
    /// Records with an event whose type begins with one of these; empty for any.
    pub types: &'static [&'static str],
}

/// Calls `show` with the wanted records of a chunk after a `seq`, in order, until it breaks; counts in `scanned` the
/// records that were looked at.
pub(crate) fn visit_chunk<E: From<DamagedRecord>>(
    mut records: RecordDecoder,
    after: u64,
    wanted: Wanted<'_>,
    scanned: &mut u64,
    name_of: &mut dyn FnMut(u64) -> Result<Arc<str>, E>,
    show: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, E> {
    // Neighbours are most often of one run.
    let mut known: Option<(u64, Arc<str>)> = None;
    while let Some(next) = records.peek(wanted.types)? {
        if next.seq <= after {
            records.skip(next.len);
            continue;
        }
        *scanned += 1;
        let mut known_name = |run: u64| match &known {
            Some((number, name)) if *number == run => Ok(name.clone()),
            _ => name_of(run).map(|name| known.insert((run, name)).1.clone()),
        };
        let is_wanted = next.has_type
            && match wanted.run {
                Some(wanted) => *known_name(next.run)? == *wanted,
                None => true,
            };
        if !is_wanted {
            records.skip(next.len);
            continue;
        }
        let Some(read) = records.next(after)? else { break };
        let run = known_name(read.run)?;
        let stored = StoredRecord { run, record: read.record, name: read.name, frame: read.frame };
        if show(stored).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// What is seen of an encoded record without decoding it.
struct Peeked {
    seq: u64,
    run: u64,
    /// Its bytes.
    len: usize,
    /// Whether it has an event of one of the wanted types.
    has_type: bool,
}

/// What an encoded event begins with, before its type.
const TYPE_PREFIX: &[u8] = br#"{"type":""#;

/// Decodes records, one after the other.
pub(crate) struct RecordDecoder {
    bytes: Bytes,
    /// The JSON of an event that quotes its frame.
    json: Vec<u8>,
}

/// A decoded record with the store's number of its run.
pub(crate) struct DecodedRecord {
    pub(crate) run: u64,
    pub(crate) record: Record,
    pub(crate) name: Option<Box<str>>,
    pub(crate) frame: Option<Bytes>,
}

impl RecordDecoder {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, json: Vec::new() }
    }

    /// Looks at the next record without decoding it.
    fn peek(&self, types: &[&str]) -> Result<Option<Peeked>, DamagedRecord> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let mut rest = &*self.bytes;
        let length = take(&mut rest, 4)?.try_into().map_err(|_| TOO_SHORT)?;
        let fields = &mut take(&mut rest, u32::from_le_bytes(length) as usize)?;
        let has = take_byte(fields)?;
        let (seq, run) = (take_number(fields)?, take_number(fields)?);
        let len = self.bytes.len() - rest.len();
        if types.is_empty() {
            return Ok(Some(Peeked { seq, run, len, has_type: true }));
        }
        take_number(fields)?;
        if has & HAS_SOURCE_TIME != 0 {
            take_number(fields)?;
        }
        if has & HAS_DIALECT != 0 {
            take_byte(fields)?;
        }
        if has & HAS_NAME != 0 {
            take_bytes(fields)?;
        }
        let frame = if has & HAS_FRAME == 0 { &[][..] } else { take_bytes(fields)? };
        let mut has_type = false;
        for _ in 0..take_number(fields)? {
            let (begin, quoted) = match take_byte(fields)? & QUOTES_FRAME {
                0 => (take_bytes(fields)?, &[][..]),
                _ => {
                    let before = take_bytes(fields)?;
                    let (offset, length) = (take_length(fields)?, take_length(fields)?);
                    take_bytes(fields)?;
                    let quoted = frame.get(offset..).and_then(|rest| rest.get(..length));
                    (before, quoted.unwrap_or_default())
                }
            };
            let begins_with = |event_type: &&str| {
                let expected = TYPE_PREFIX.iter().chain(event_type.as_bytes());
                let mut event = begin.iter().chain(quoted);
                expected.copied().all(|byte| event.next() == Some(&byte))
            };
            has_type = has_type || types.iter().any(begins_with);
        }
        Ok(Some(Peeked { seq, run, len, has_type }))
    }

    /// Passes over bytes of a record that was looked at.
    fn skip(&mut self, len: usize) {
        self.bytes.advance(len);
    }

    /// Decodes the next record after a `seq`; those up to it are skipped.
    pub(crate) fn next(&mut self, after: u64) -> Result<Option<DecodedRecord>, DamagedRecord> {
        while !self.bytes.is_empty() {
            let mut rest = &*self.bytes;
            let length = take(&mut rest, 4)?.try_into().map_err(|_| TOO_SHORT)?;
            take(&mut rest, u32::from_le_bytes(length) as usize)?;
            let record = self.bytes.split_to(self.bytes.len() - rest.len());
            let mut fields = &record[4..];
            let has = take_byte(&mut fields)?;
            let seq = take_number(&mut fields)?;
            if seq > after {
                return self.read(has, seq, fields, &record).map(Some);
            }
        }
        Ok(None)
    }

    fn read(
        &mut self,
        has: u8,
        seq: u64,
        mut fields: &[u8],
        whole: &Bytes,
    ) -> Result<DecodedRecord, DamagedRecord> {
        let fields = &mut fields;
        let run = take_number(fields)?;
        let at = Timestamp(take_number(fields)?);
        let source_time = match has & HAS_SOURCE_TIME {
            0 => None,
            _ => Some(Timestamp(take_number(fields)?)),
        };
        let dialect = match has & HAS_DIALECT {
            0 => None,
            _ => Some(
                Dialect::from_number(take_byte(fields)?)
                    .ok_or(DamagedRecord::Record("its dialect is unknown"))?,
            ),
        };
        let name = match has & HAS_NAME {
            0 => None,
            _ => Some(text(take_bytes(fields)?).ok_or(DamagedRecord::Record("its name is no text"))?.into()),
        };
        let frame = match has & HAS_FRAME {
            0 => None,
            _ => Some(take_bytes(fields)?),
        };
        let count = take_number(fields)?;
        let mut entries = Vec::with_capacity(count.min(16) as usize);
        for _ in 0..count {
            let origin = take_byte(fields)?;
            let event = if origin & QUOTES_FRAME == 0 {
                text(take_bytes(fields)?).and_then(Event::from_stored)
            } else {
                let before = take_bytes(fields)?;
                let (offset, length) = (take_length(fields)?, take_length(fields)?);
                let after = take_bytes(fields)?;
                let quoted = frame.and_then(|frame| frame.get(offset..offset.checked_add(length)?));
                let quoted = quoted.ok_or(DamagedRecord::Record("an event quotes more than its frame"))?;
                self.json.clear();
                [before, quoted, after].iter().for_each(|part| self.json.extend_from_slice(part));
                text(&self.json).and_then(Event::from_stored)
            };
            let origin = origin_of(origin & !QUOTES_FRAME)
                .ok_or(DamagedRecord::Record("it is unknown who added an event"))?;
            entries.push(Entry {
                event: event.ok_or(DamagedRecord::Record("an event cannot be read"))?,
                origin,
            });
        }
        if !fields.is_empty() {
            return Err(DamagedRecord::Record("something follows its last event"));
        }
        let record = Record { seq, at, source_time, dialect, entries };
        Ok(DecodedRecord { run, record, name, frame: frame.map(|frame| whole.slice_ref(frame)) })
    }
}

const TOO_SHORT: DamagedRecord = DamagedRecord::Record("it ends too early");

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], DamagedRecord> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(TOO_SHORT)?;
    *bytes = rest;
    Ok(taken)
}

fn take_byte(bytes: &mut &[u8]) -> Result<u8, DamagedRecord> {
    let (byte, rest) = bytes.split_first().ok_or(TOO_SHORT)?;
    *bytes = rest;
    Ok(*byte)
}

fn take_number(bytes: &mut &[u8]) -> Result<u64, DamagedRecord> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(bytes)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(DamagedRecord::Record("a number is too long"))
}

fn take_length(bytes: &mut &[u8]) -> Result<usize, DamagedRecord> {
    usize::try_from(take_number(bytes)?).map_err(|_| TOO_SHORT)
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], DamagedRecord> {
    let length = take_length(bytes)?;
    take(bytes, length)
}

fn origin_number(origin: EventOrigin) -> u8 {
    match origin {
        EventOrigin::Producer => 0,
        EventOrigin::Decoder => 1,
        EventOrigin::Guard => 2,
        EventOrigin::Server => 3,
    }
}

fn origin_of(number: u8) -> Option<EventOrigin> {
    [EventOrigin::Producer, EventOrigin::Decoder, EventOrigin::Guard, EventOrigin::Server]
        .into_iter()
        .find(|origin| origin_number(*origin) == number)
}

#[cfg(test)]
mod tests {
    use runwire_model::event::TextDelta;

    use super::*;

    fn stored(seq: u64) -> StoredRecord {
        let delta = TextDelta { message_id: "m".repeat(600), content: "你好".into(), format: None };
        let entries = vec![Entry { event: Event::new(delta), origin: EventOrigin::Guard }];
        let record =
            Record { seq, at: Timestamp(9), source_time: None, dialect: Some(Dialect::Agio), entries };
        let frame = Some(Bytes::from_static(b"{\"raw\": true}"));
        StoredRecord { run: "r".into(), record, name: Some("text_delta".into()), frame }
    }

    fn encoded<'a>(records: impl IntoIterator<Item = &'a StoredRecord>) -> Vec<u8> {
        let (mut encoder, mut out) = (RecordEncoder::default(), Vec::new());
        records.into_iter().for_each(|record| encoder.encode(&mut out, 7, record));
        out
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let mut server = stored(2);
        (server.frame, server.name, server.record.dialect) = (None, None, None);
        server.record.source_time = Some(Timestamp(u64::MAX));
        let bytes = Bytes::from(encoded([&stored(1), &server, &stored(3)]));
        let mut records = RecordDecoder::new(bytes.clone());
        for expected in [stored(1), server, stored(3)] {
            let read = records.next(0).unwrap().unwrap();
            assert_eq!((read.run, &read.record), (7, &expected.record));
            assert_eq!((&read.name, &read.frame), (&expected.name, &expected.frame));
        }
        assert!(records.next(0).unwrap().is_none());
        assert_eq!(RecordDecoder::new(bytes.clone()).next(2).unwrap().unwrap().record.seq, 3);
        // Damage anywhere is an error or other content, never a panic.
        for cut in 0..bytes.len() {
            let mut records = RecordDecoder::new(bytes.slice(..cut));
            while let Ok(Some(_)) = records.next(0) {}
            let _ = visited(&bytes.slice(..cut), 0, Wanted::default());
        }
        for at in 0..bytes.len() {
            let mut spoiled = bytes.to_vec();
            spoiled[at] = !spoiled[at];
            let mut records = RecordDecoder::new(spoiled.into());
            while let Ok(Some(_)) = records.next(0) {}
        }
    }

    #[test]
    fn what_an_event_says_in_the_words_of_its_frame_is_stored_once() {
        let text = r#"a text that is long enough, with \"quotes\" and 你好 in it"#;
        let frames = [
            format!(r#"{{"type":"message_chunk","content":"{text}"}}"#),
            format!(r#"{{"content":"{text}"}}"#),
            format!(r#"{{"type":"text.delta","message_id":"","content":"{text}"}}"#),
        ];
        // One encoder, as in a store: where a quote was found before is no more than a hint.
        let mut encoder = RecordEncoder::default();
        for frame in frames.iter().chain(&frames) {
            let content = serde_json::from_str(&format!("\"{text}\"")).unwrap();
            let delta = TextDelta { message_id: String::new(), content, format: None };
            let mut record = stored(1);
            record.record.entries =
                vec![Entry { event: Event::new(delta), origin: EventOrigin::Producer }; 2];
            record.frame = Some(Bytes::from(frame.clone()));
            let (mut bytes, stored_again) = (Vec::new(), record.clone());
            encoder.encode(&mut bytes, 7, &record);
            assert_eq!(memchr::memmem::find_iter(&bytes, "long enough").count(), 1, "{frame}");
            let read = RecordDecoder::new(bytes.into()).next(0).unwrap().unwrap();
            assert_eq!((read.record, read.frame), (record.record, record.frame));
            for (types, shown) in [(&["text."], vec![1]), (&["tool."], vec![])] {
                let chunk = Bytes::from(encoded([&stored_again]));
                assert_eq!(visited(&chunk, 0, Wanted { run: None, types }), Ok((shown, 1)));
            }
        }
    }

    #[test]
    fn a_row_whose_bytes_or_key_have_changed_is_not_read() {
        let body = encoded([&stored(4), &stored(5)]);
        let sum = i64::from(checksum(1, 4, 5, &body));
        let read = |thread, first, last, sum, body: &[u8]| {
            RecordRows::of(thread).decode(first, last, sum, body.to_vec()).is_ok()
        };
        assert!(read(1, 4, 5, sum, &body));
        assert!(!read(2, 4, 5, sum, &body) && !read(1, 3, 5, sum, &body) && !read(1, 4, 6, sum, &body));
        assert!(!read(1, 4, 5, sum ^ 1, &body));
        for at in 0..body.len() {
            let mut spoiled = body.clone();
            spoiled[at] ^= 1;
            assert!(!read(1, 4, 5, sum, &spoiled), "{at}");
        }
        assert!(!read(1, 4, 5, sum | 1 << 32, &body));
    }

    #[test]
    fn a_row_that_does_not_follow_the_one_before_is_not_read() {
        let row = |rows: &mut RecordRows, first: u64, last: u64| {
            let body = encoded([&stored(first), &stored(last)]);
            rows.decode(first, last, checksum(1, first, last, &body).into(), body).is_ok()
        };
        let mut rows = RecordRows::of(1);
        assert!(row(&mut rows, 4, 5) && row(&mut rows, 6, 7) && !row(&mut rows, 9, 10));
    }

    /// Returns the `seq` of the records that are shown, and the number of those that were looked at.
    fn visited(chunk: &Bytes, after: u64, wanted: Wanted<'_>) -> Result<(Vec<u64>, u64), DamagedRecord> {
        let (mut shown, mut scanned) = (Vec::new(), 0);
        let mut name_of = |run: u64| Ok(run.to_string().into());
        let mut show = |stored: StoredRecord| {
            shown.push(stored.record.seq);
            ControlFlow::Continue(())
        };
        let visit = visit_chunk(
            RecordDecoder::new(chunk.clone()),
            after,
            wanted,
            &mut scanned,
            &mut name_of,
            &mut show,
        );
        let _: ControlFlow<()> = visit?;
        Ok((shown, scanned))
    }

    #[test]
    fn only_wanted_records_of_a_chunk_are_decoded() {
        let mut out = Vec::new();
        for (run, seq) in [(7, 1), (8, 2), (7, 3), (8, 4)] {
            RecordEncoder::default().encode(&mut out, run, &stored(seq));
        }
        let chunk = Bytes::from(out);
        let text = Wanted { run: Some("8"), types: &["tool.", "text."] };
        let calls = Wanted { run: None, types: &["tool."] };
        assert_eq!(visited(&chunk, 0, Wanted::default()), Ok((vec![1, 2, 3, 4], 4)));
        assert_eq!(visited(&chunk, 1, text), Ok((vec![2, 4], 3)));
        assert_eq!(visited(&chunk, 0, calls), Ok((vec![], 4)));
    }
}
