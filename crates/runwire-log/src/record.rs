//! Stored records, and their binary encoding.

use std::sync::Arc;

use bytes::Bytes;
use runwire_model::Timestamp;
use runwire_model::dialect::Dialect;
use runwire_model::event::{Body, Event};
use runwire_model::json::ObjectWriter;
use runwire_model::record::{By, Entry, Record};

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
#[error("a stored record is damaged: {0}")]
pub struct DamagedRecord(pub(crate) &'static str);

const NOTHING: u32 = u32::MAX;
const NO_DIALECT: u8 = u8::MAX;

/// Encodes a record. `run` is the store's number of the run.
///
/// All numbers are little-endian: `seq` u64, run u64, `at` u64, source time u64 (all ones: none), dialect u8 (its
/// number, 255: none), name length u32 and name (all ones: none), frame length u32 and bytes (all ones: none),
/// entries u32, then for each: who added it u8, length u32 and the event as JSON.
pub(crate) fn encode(out: &mut Vec<u8>, run: u64, stored: &StoredRecord) {
    let record = &stored.record;
    out.extend_from_slice(&record.seq.to_le_bytes());
    out.extend_from_slice(&run.to_le_bytes());
    out.extend_from_slice(&record.at.0.to_le_bytes());
    out.extend_from_slice(&record.source_time.map_or(u64::MAX, |time| time.0).to_le_bytes());
    out.push(record.dialect.map_or(NO_DIALECT, Dialect::number));
    match &stored.name {
        Some(name) => {
            out.extend_from_slice(&(name.len() as u32).to_le_bytes());
            out.extend_from_slice(name.as_bytes());
        }
        None => out.extend_from_slice(&NOTHING.to_le_bytes()),
    }
    match &stored.frame {
        Some(frame) => {
            out.extend_from_slice(&(frame.len() as u32).to_le_bytes());
            out.extend_from_slice(frame);
        }
        None => out.extend_from_slice(&NOTHING.to_le_bytes()),
    }
    out.extend_from_slice(&(record.entries.len() as u32).to_le_bytes());
    for entry in &record.entries {
        out.push(number_of_by(entry.by));
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        let mut object = ObjectWriter::begin(out);
        entry.event.write(&mut object);
        object.end();
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Decodes records, one after the other.
pub(crate) struct RecordDecoder {
    bytes: Bytes,
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
        Self { bytes }
    }

    fn take(&mut self, count: usize) -> Result<Bytes, DamagedRecord> {
        if self.bytes.len() < count {
            return Err(DamagedRecord("it ends too early"));
        }
        Ok(self.bytes.split_to(count))
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], DamagedRecord> {
        let bytes = self.take(N)?;
        bytes.as_ref().try_into().map_err(|_| DamagedRecord("a number is cut"))
    }

    fn u64(&mut self) -> Result<u64, DamagedRecord> {
        Ok(u64::from_le_bytes(self.number()?))
    }

    fn u32(&mut self) -> Result<u32, DamagedRecord> {
        Ok(u32::from_le_bytes(self.number()?))
    }

    /// Decodes the next record after a `seq`; those up to it are skipped.
    pub(crate) fn next(&mut self, after: u64) -> Result<Option<DecodedRecord>, DamagedRecord> {
        while !self.bytes.is_empty() {
            if let Some(record) = self.read(after)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn read(&mut self, after: u64) -> Result<Option<DecodedRecord>, DamagedRecord> {
        let seq = self.u64()?;
        let run = self.u64()?;
        let at = Timestamp(self.u64()?);
        let source_time = Some(self.u64()?).filter(|time| *time != u64::MAX).map(Timestamp);
        let [dialect] = self.number()?;
        let dialect = match dialect {
            NO_DIALECT => None,
            number => Some(Dialect::from_number(number).ok_or(DamagedRecord("its dialect is unknown"))?),
        };
        let name = match self.u32()? {
            NOTHING => None,
            length => {
                let name = self.take(length as usize)?;
                Some(std::str::from_utf8(&name).map_err(|_| DamagedRecord("its name is no text"))?.into())
            }
        };
        let frame = match self.u32()? {
            NOTHING => None,
            length => Some(self.take(length as usize)?),
        };
        let count = self.u32()? as usize;
        let mut entries = Vec::with_capacity(if seq > after { count.min(16) } else { 0 });
        for _ in 0..count {
            let [by] = self.number()?;
            let length = self.u32()? as usize;
            let event = self.take(length)?;
            if seq > after {
                let by = by_of(by).ok_or(DamagedRecord("it is unknown who added an event"))?;
                let event = std::str::from_utf8(&event).ok().and_then(Event::from_stored);
                entries.push(Entry { event: event.ok_or(DamagedRecord("an event cannot be read"))?, by });
            }
        }
        let record = Record { seq, at, source_time, dialect, entries };
        Ok((seq > after).then_some(DecodedRecord { run, record, name, frame }))
    }
}

fn number_of_by(by: By) -> u8 {
    match by {
        By::Producer => 0,
        By::Decoder => 1,
        By::Guard => 2,
        By::Server => 3,
    }
}

fn by_of(number: u8) -> Option<By> {
    [By::Producer, By::Decoder, By::Guard, By::Server].into_iter().find(|by| number_of_by(*by) == number)
}

#[cfg(test)]
mod tests {
    use runwire_model::event::TextDelta;

    use super::*;

    fn stored(seq: u64) -> StoredRecord {
        let delta = TextDelta { message_id: "m".repeat(600), content: "你好".into(), format: None };
        let entries = vec![Entry { event: Event::new(delta), by: By::Guard }];
        let record =
            Record { seq, at: Timestamp(9), source_time: None, dialect: Some(Dialect::Agio), entries };
        let frame = Some(Bytes::from_static(b"{\"raw\": true}"));
        StoredRecord { run: "r".into(), record, name: Some("text_delta".into()), frame }
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let mut out = Vec::new();
        let mut server = stored(2);
        (server.frame, server.name, server.record.dialect) = (None, None, None);
        server.record.source_time = Some(Timestamp(0));
        for record in [&stored(1), &server, &stored(3)] {
            encode(&mut out, 7, record);
        }
        let bytes = Bytes::from(out);
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
        }
    }
}
