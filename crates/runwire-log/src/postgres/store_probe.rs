//! Queries for the head poller: one statement for all followed threads.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_postgres::Row;

use super::PgOpenError;
use super::address::PgAddress;
use super::error::PgResult;
use super::reader::PgReader;
use super::rows::{decode_row, number, optional_number, to_i64};
use super::txn_store::RunNames;
use crate::cluster::{HeadChange, RecordsAfter, StoreProbe, TailFeeder, TailOptions, ThreadLocation};
use crate::error::LogError;
use crate::key::ThreadKey;
use crate::limits;
use crate::record::{DecodedRecord, RecordDecoder, RecordRows, StoredRecord};

/// Starts the tasks that fill the tails of this node, on the current runtime.
pub(super) fn follow(
    address: &PgAddress,
    tail: Option<&TailOptions>,
    generation: &str,
) -> Result<TailFeeder, PgOpenError> {
    let runtime = Handle::try_current().map_err(|error| PgOpenError::Unusable(error.to_string()))?;
    let address = address.clone();
    let opener = move || -> Result<Box<dyn StoreProbe>, LogError> { Ok(Box::new(PgReader::open(&address)?)) };
    Ok(TailFeeder::open(&runtime, tail, generation, Arc::new(opener))?)
}

/// Maximum number of cached names.
const NAMES: usize = 4096;

/// The stored records of a thread after a known one.
struct Chunks {
    head: u64,
    deleted: bool,
    /// `None` if they are too many, or damaged.
    records: Option<Vec<DecodedRecord>>,
}

impl StoreProbe for PgReader {
    fn locate(&mut self, threads: &[ThreadKey]) -> Result<Vec<Option<ThreadLocation>>, LogError> {
        let tenants: Vec<&str> = threads.iter().map(|key| &*key.tenant).collect();
        let names: Vec<&str> = threads.iter().map(|key| &*key.id).collect();
        let sql = "SELECT asked.place, thread.id, thread.head, thread.deleted_at IS NOT NULL \
                   FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked (tenant, name, place) \
                   JOIN thread USING (tenant, name)";
        let mut located = vec![None; threads.len()];
        for row in self.connection.query(sql, &[&tenants, &names])? {
            let found = ThreadLocation { number: row.get(1), head: number(&row, 2), deleted: row.get(3) };
            if let Some(place) = located.get_mut(row.get::<_, i64>(0) as usize - 1) {
                *place = Some(found);
            }
        }
        Ok(located)
    }

    fn changed_heads(&mut self, heads: &[(i64, u64)]) -> Result<Vec<HeadChange>, LogError> {
        let (threads, heads) = columns(heads);
        let sql = "SELECT thread.id, thread.head, thread.deleted_at IS NOT NULL \
                   FROM unnest($1::bigint[], $2::bigint[]) AS known (id, head) JOIN thread USING (id) \
                   WHERE thread.head <> known.head OR thread.deleted_at IS NOT NULL";
        let rows = self.connection.query(sql, &[&threads, &heads])?;
        let changed =
            |row: &Row| HeadChange { number: row.get(0), head: number(row, 1), deleted: row.get(2) };
        Ok(rows.iter().map(changed).collect())
    }

    fn read(&mut self, after: &[(i64, u64)]) -> Result<Vec<RecordsAfter>, LogError> {
        let found = self.chunks_after(after)?;
        let records = found.values().filter_map(|chunks| chunks.records.as_ref()).flatten();
        let unnamed = records.map(|read| read.run).filter(|run| !self.names.contains_key(run));
        let unnamed: HashSet<u64> = unnamed.collect();
        self.learn_names(&unnamed)?;
        let read = found.into_iter().map(|(number, Chunks { head, deleted, records })| {
            // A run without a name must not stop the others: its readers get the error.
            let records =
                records.and_then(|records| records.into_iter().map(|one| named(&self.names, one)).collect());
            RecordsAfter { number, head, deleted, records }
        });
        Ok(read.collect())
    }
}

impl PgReader {
    /// Reads the chunks of threads after the given records, and their heads, in one snapshot.
    ///
    /// Of a thread with too many, or a chunk that is too large, readers read what they need themselves.
    fn chunks_after(&self, after: &[(i64, u64)]) -> PgResult<HashMap<i64, Chunks>> {
        let known: HashMap<i64, u64> = after.iter().copied().collect();
        let (threads, lasts) = columns(after);
        let sql = "SELECT thread.id, thread.head, thread.deleted_at IS NOT NULL, \
                   chunk.first, chunk.last, chunk.checksum, chunk.body \
                   FROM unnest($1::bigint[], $2::bigint[]) AS known (id, last) JOIN thread USING (id) \
                   LEFT JOIN LATERAL (SELECT first, last, checksum, \
                   CASE WHEN bytes <= $4::bigint AND place <= $3::bigint THEN body END AS body FROM (\
                   SELECT first, last, checksum, body, sum(octet_length(body)) OVER (ORDER BY last) AS bytes, \
                   row_number() OVER (ORDER BY last) AS place FROM (\
                   SELECT first, last, checksum, body FROM chunk WHERE chunk.thread = known.id AND chunk.last > known.last \
                   ORDER BY last LIMIT $3::bigint + 1) AS found) AS counted) AS chunk ON true \
                   ORDER BY thread.id, chunk.last";
        let (most, bytes) = (limits::POLL_COMMITS as i64, limits::PAGE_BYTES as i64);
        let mut found: HashMap<i64, Chunks> = HashMap::new();
        for row in self.connection.query(sql, &[&threads, &lasts, &most, &bytes])? {
            let thread: i64 = row.get(0);
            let new = || Chunks { head: number(&row, 1), deleted: row.get(2), records: Some(Vec::new()) };
            let chunks = found.entry(thread).or_insert_with(new);
            if optional_number(&row, 4).is_none() {
                continue;
            }
            let has_body = row.get::<_, Option<&[u8]>>(6).is_some();
            let after = known.get(&thread).copied().unwrap_or(0);
            let chunk = has_body.then(|| decode_row(&mut RecordRows::of(thread), &row, 3).ok()).flatten();
            let read = chunk.and_then(|chunk| read_all(chunk, after));
            match (&mut chunks.records, read) {
                (Some(records), Some(read)) => records.extend(read),
                (records, _) => *records = None,
            }
        }
        Ok(found)
    }

    fn learn_names(&mut self, runs: &HashSet<u64>) -> PgResult<()> {
        if runs.is_empty() {
            return Ok(());
        }
        if self.names.len() + runs.len() > NAMES {
            self.names.clear();
        }
        let runs: Vec<i64> = runs.iter().map(|run| to_i64(*run)).collect();
        for row in self.connection.query("SELECT id, name FROM run WHERE id = ANY($1)", &[&runs])? {
            self.names.insert(number(&row, 0), row.get::<_, &str>(1).into());
        }
        Ok(())
    }
}

fn columns(pairs: &[(i64, u64)]) -> (Vec<i64>, Vec<i64>) {
    pairs.iter().map(|(thread, seq)| (*thread, to_i64(*seq))).unzip()
}

/// Decodes the records of a chunk after a `seq`; returns `None` if one is damaged.
fn read_all(mut records: RecordDecoder, after: u64) -> Option<Vec<DecodedRecord>> {
    let mut read = Vec::new();
    while let Some(record) = records.next(after).ok()? {
        read.push(record);
    }
    Some(read)
}

fn named(names: &RunNames, read: DecodedRecord) -> Option<Arc<StoredRecord>> {
    let run = names.get(&read.run)?.clone();
    Some(Arc::new(StoredRecord { run, record: read.record, name: read.name, frame: read.frame }))
}
