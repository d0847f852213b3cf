//! Encodes the records of one thread in one commit: once, for the store and for other nodes.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::redis::PublishedEntry;
use crate::record::{self, DamagedRecord, RecordDecoder, RecordEncoder, StoredRecord};

/// The encoded records of one thread in one commit.
///
/// An index of run names precedes the records, which the store does not need: a u32 count, then for each run its
/// number u64, length u32 and name, all little-endian.
#[derive(Debug, Clone)]
pub(crate) struct EncodedBatch {
    pub(crate) thread: i64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The checksum of the records.
    pub(crate) checksum: u32,
    bytes: Bytes,
    /// Offset of the first record.
    records: usize,
}

impl EncodedBatch {
    /// Encodes records, each with the number of its run; returns `None` for no records.
    pub(crate) fn encode(thread: i64, records: &[(i64, Arc<StoredRecord>)]) -> Option<Self> {
        let (first, last) = (records.first()?.1.record.seq, records.last()?.1.record.seq);
        assert!(last - first + 1 == records.len() as u64, "`seq` is contiguous in a thread");
        let mut runs: Vec<(i64, &str)> = Vec::new();
        for (run, stored) in records {
            if !runs.iter().any(|(known, _)| known == run) {
                runs.push((*run, &stored.run));
            }
        }
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(runs.len() as u32).to_le_bytes());
        for (run, name) in runs {
            bytes.extend_from_slice(&(run as u64).to_le_bytes());
            bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        let begin = bytes.len();
        let mut encoder = RecordEncoder::default();
        for (run, stored) in records {
            encoder.encode(&mut bytes, *run as u64, stored);
        }
        let checksum = record::checksum(thread, first, last, &bytes[begin..]);
        Some(Self { thread, first, last, checksum, bytes: bytes.into(), records: begin })
    }

    /// Returns the bytes that the store keeps.
    pub(crate) fn records(&self) -> &[u8] {
        &self.bytes[self.records..]
    }

    /// Converts it to the entry that is published.
    pub(crate) fn into_entry(self) -> PublishedEntry {
        PublishedEntry { thread: self.thread, first: self.first, last: self.last, body: self.bytes }
    }
}

/// Decodes what another node has published: the records after a `seq`, if they are the announced ones.
pub(super) fn decode(
    body: Bytes,
    first: u64,
    last: u64,
    after: u64,
) -> Result<Vec<Arc<StoredRecord>>, DamagedRecord> {
    let mut bytes = body;
    let mut names: HashMap<u64, Arc<str>> = HashMap::new();
    for _ in 0..u32::from_le_bytes(take(&mut bytes)?) {
        let run = u64::from_le_bytes(take(&mut bytes)?);
        let length = u32::from_le_bytes(take(&mut bytes)?) as usize;
        if bytes.len() < length {
            return Err(DamagedRecord::Record("a name is cut"));
        }
        let name = bytes.split_to(length);
        let name = std::str::from_utf8(&name).map_err(|_| DamagedRecord::Record("a name is no text"))?;
        names.insert(run, name.into());
    }
    let (mut records, mut next) = (RecordDecoder::new(bytes), first.max(after + 1));
    let mut decoded = Vec::new();
    while let Some(read) = records.next(after)? {
        let run = names.get(&read.run).ok_or(DamagedRecord::Record("its run has no name"))?.clone();
        if read.record.seq != next {
            return Err(DamagedRecord::Record("records are missing"));
        }
        next = next.saturating_add(1);
        decoded.push(Arc::new(StoredRecord { run, record: read.record, name: read.name, frame: read.frame }));
    }
    if next <= last { Err(DamagedRecord::Record("records are missing")) } else { Ok(decoded) }
}

fn take<const N: usize>(bytes: &mut Bytes) -> Result<[u8; N], DamagedRecord> {
    if bytes.len() < N {
        return Err(DamagedRecord::Record("it ends too early"));
    }
    bytes.split_to(N).as_ref().try_into().map_err(|_| DamagedRecord::Record("a number is cut"))
}

#[cfg(test)]
mod tests {
    use runwire_model::Timestamp;
    use runwire_model::record::Record;

    use super::*;

    fn records(seqs: std::ops::RangeInclusive<u64>) -> Vec<(i64, Arc<StoredRecord>)> {
        let stored = |seq: u64| {
            let record =
                Record { seq, at: Timestamp(9), source_time: None, dialect: None, entries: Vec::new() };
            let run = (seq % 3) as i64;
            let frame = Some(Bytes::from(format!("frame {seq}")));
            (run, Arc::new(StoredRecord { run: format!("run {run}").into(), record, name: None, frame }))
        };
        seqs.map(stored).collect()
    }

    #[test]
    fn an_encoded_batch_is_decoded_also_from_the_middle() {
        let encoded = records(4..=9);
        let entry = EncodedBatch::encode(7, &encoded).unwrap().into_entry();
        assert_eq!((entry.thread, entry.first, entry.last), (7, 4, 9));
        for after in 0..9 {
            let decoded = decode(entry.body.clone(), 4, 9, after).unwrap();
            let left = encoded.iter().map(|(_, stored)| stored.clone()).filter(|one| one.record.seq > after);
            assert_eq!(decoded, left.collect::<Vec<_>>());
        }
        assert!(EncodedBatch::encode(7, &[]).is_none());
    }

    #[test]
    fn a_batch_that_is_not_the_announced_one_is_refused() {
        let entry = EncodedBatch::encode(7, &records(4..=9)).unwrap().into_entry();
        assert!(decode(entry.body.clone(), 3, 9, 0).is_err());
        assert!(decode(entry.body.clone(), 4, 10, 0).is_err());
        for cut in 0..entry.body.len() {
            assert!(decode(entry.body.slice(..cut), 4, 9, 0).is_err());
        }
        assert!(decode(Bytes::from_static(&[255; 40]), 1, 1, 0).is_err());
    }
}
