//! The write-behind table: makes a commit of many small appends one small write.
//!
//! Records, and the run rows and producers that change with every record, go into one row of `pending_commits` for
//! each commit; their own tables are written later, for many records of a thread at once. That is a *flush*: a thread
//! is flushed when it has gathered enough, when too much is pending, when a run of it ends, and when the store is
//! closed. What a crash leaves is flushed when the store is opened. Readers need no flush (`unflushed.rs`).
//!
//! A row is a list of entries, all numbers little-endian:
//!
//! - `1`, thread i64, length u32, records (see `record.rs`)
//! - `2`, run i64, last seq u64, deadline i64 (-1: none), length u32, progress as postcard (`EncodedProgress`)
//! - `3`, run i64, last seq u64, epoch u64, next u64, length u32, name, length u32, producer state as JSON, or nothing
//!   where it is the one that was written before

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use super::error::{SqliteError, SqliteResult};
use super::inbox::save_interactions;
use super::rows::save_chunk;
use super::unflushed::{Added, UnflushedChanges, UnflushedProducer, UnflushedProgress};
use crate::record::{RecordDecoder, RecordEncoder, StoredRecord};
use crate::txn::{ProducerHead, RunHead, RunProgress};

const RECORDS: u8 = 1;
const RUN: u8 = 2;
const PRODUCER: u8 = 3;

/// The part of a thread that is not flushed to its own rows.
#[derive(Default)]
pub(super) struct UnflushedThread {
    /// The oldest pending row with a part of it.
    pub(super) since: i64,
    /// The records, each with the number of its run.
    pub(super) records: Vec<(i64, Arc<StoredRecord>)>,
    /// The encoded records, and where each ends.
    pub(super) body: Vec<u8>,
    pub(super) ends: Vec<usize>,
    /// Runs whose rows are stale.
    pub(super) runs: HashSet<i64>,
}

/// The pending commits, and the threads that they belong to.
#[derive(Default)]
pub(super) struct PendingCommits {
    pub(super) threads: HashMap<i64, UnflushedThread>,
    /// The threads in the order of their oldest row; those that were flushed meanwhile are passed over.
    order: VecDeque<(i64, i64)>,
    /// The row of the current commit.
    row: Vec<u8>,
    next_row: i64,
    /// Bytes of all pending rows.
    bytes: usize,
    /// What the row of the current commit has of which thread, for readers.
    parts: Vec<(i64, RowPart)>,
    changes: UnflushedChanges,
}

/// Where something is in the row of the current commit.
enum RowPart {
    Records { last_seq: u64, at: Range<usize> },
    Progress { run: i64, last_seq: u64, deadline: Option<u64>, at: Range<usize> },
    Producer { run: i64, name: Range<usize>, epoch: u64, next: u64, state: Range<usize> },
}

impl RowPart {
    /// Returns the part of a written row.
    fn of(self, row: &Bytes) -> Added {
        match self {
            Self::Records { last_seq, at } => Added::Records { last_seq, records: row.slice(at) },
            Self::Progress { run, last_seq, deadline, at } => {
                let progress = UnflushedProgress { last_seq, deadline, progress: row.slice(at) };
                Added::Progress { run, progress }
            }
            Self::Producer { run, name, epoch, next, state } => {
                let producer = UnflushedProducer { epoch, next, state: row.slice(state) };
                Added::Producer { run, name: row.slice(name), producer }
            }
        }
    }
}

impl PendingCommits {
    pub(super) fn open(connection: &Connection) -> SqliteResult<Self> {
        recover(connection)?;
        Ok(Self { next_row: 1, ..Self::default() })
    }

    /// Returns the unflushed part of a thread, created if missing.
    pub(super) fn of(&mut self, thread: i64) -> &mut UnflushedThread {
        let (since, order) = (self.next_row, &mut self.order);
        self.threads.entry(thread).or_insert_with(|| {
            order.push_back((since, thread));
            UnflushedThread { since, ..UnflushedThread::default() }
        })
    }

    /// Appends the records of a thread, from an offset in its body on, to the row.
    pub(super) fn push_records(&mut self, thread: i64, from: usize) {
        let Some(unflushed) = self.threads.get(&thread) else { return };
        self.row.push(RECORDS);
        self.row.extend_from_slice(&thread.to_le_bytes());
        let at = put_bytes(&mut self.row, &unflushed.body[from..]);
        let last_seq = unflushed.records.last().map_or(0, |(_, stored)| stored.record.seq);
        self.parts.push((thread, RowPart::Records { last_seq, at }));
    }

    /// Appends the progress of a run, and its changed producers, to the row.
    pub(super) fn push_run(&mut self, run: &mut RunHead) -> SqliteResult<()> {
        if std::mem::take(&mut run.snapshot_dirty) {
            self.row.push(RUN);
            self.row.extend_from_slice(&run.id.to_le_bytes());
            self.row.extend_from_slice(&run.last_seq.to_le_bytes());
            let deadline = run.deadline.map_or(-1, |deadline| deadline as i64);
            self.row.extend_from_slice(&deadline.to_le_bytes());
            let at = put_head(&mut self.row, &run.head)?;
            let progress =
                RowPart::Progress { run: run.id, last_seq: run.last_seq, deadline: run.deadline, at };
            self.parts.push((run.thread, progress));
        }
        for (name, producer) in run.producers.iter_mut().filter(|(_, producer)| producer.snapshot_dirty) {
            producer.snapshot_dirty = false;
            self.row.push(PRODUCER);
            self.row.extend_from_slice(&run.id.to_le_bytes());
            self.row.extend_from_slice(&run.last_seq.to_le_bytes());
            self.row.extend_from_slice(&producer.epoch.to_le_bytes());
            self.row.extend_from_slice(&producer.next.to_le_bytes());
            let name = put_bytes(&mut self.row, name.as_bytes());
            let state = match std::mem::take(&mut producer.state_dirty) {
                true => put_json(&mut self.row, &producer.state)?,
                false => put_bytes(&mut self.row, &[]),
            };
            let ProducerHead { epoch, next, .. } = *producer;
            self.parts.push((run.thread, RowPart::Producer { run: run.id, name, epoch, next, state }));
        }
        Ok(())
    }

    /// Writes the row of the commit, if it is not empty.
    pub(super) fn write(&mut self, connection: &Connection) -> SqliteResult<()> {
        if self.row.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO pending_commits (id, checksum, body) VALUES (?1, ?2, ?3)";
        let checksum = checksum(self.next_row, &self.row);
        connection.prepare_cached(sql)?.execute(params![self.next_row, checksum, self.row])?;
        self.next_row += 1;
        self.bytes += self.row.len();
        let space = self.row.len();
        let row = Bytes::from(std::mem::replace(&mut self.row, Vec::with_capacity(space)));
        let added = self.parts.drain(..).map(|(thread, part)| (thread, part.of(&row)));
        self.changes.added.extend(added);
        Ok(())
    }

    /// Removes a thread, which is flushed or deleted by this commit.
    pub(super) fn remove(&mut self, thread: i64) -> Option<UnflushedThread> {
        let removed = self.threads.remove(&thread)?;
        self.changes.flushed.push(thread);
        Some(removed)
    }

    /// Returns what the commit has changed, for readers.
    pub(super) fn take_changes(&mut self) -> UnflushedChanges {
        std::mem::take(&mut self.changes)
    }

    /// Returns the longest waiting thread, while more than `most` bytes are pending.
    pub(super) fn overdue(&mut self, most: usize) -> Option<i64> {
        if self.bytes <= most {
            return None;
        }
        self.oldest().map(|(_, thread)| thread)
    }

    fn oldest(&mut self) -> Option<(i64, i64)> {
        while let Some((since, thread)) = self.order.front().copied() {
            if self.threads.get(&thread).is_some_and(|unflushed| unflushed.since == since) {
                return Some((since, thread));
            }
            self.order.pop_front();
        }
        None
    }

    /// Removes the rows that are flushed completely.
    pub(super) fn remove_flushed(&mut self, connection: &Connection) -> SqliteResult<()> {
        let kept_from = self.oldest().map_or(self.next_row, |(since, _)| since);
        let sql = "DELETE FROM pending_commits WHERE id < ?1 RETURNING length(body)";
        let mut delete = connection.prepare_cached(sql)?;
        let removed = delete.query_map([kept_from], |row| row.get::<_, i64>(0))?;
        for bytes in removed {
            self.bytes = self.bytes.saturating_sub(bytes? as usize);
        }
        Ok(())
    }
}

/// Writes bytes, preceded by their number; returns where they are.
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Range<usize> {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
    out.len() - bytes.len()..out.len()
}

fn put_head(out: &mut Vec<u8>, head: &RunProgress) -> SqliteResult<Range<usize>> {
    put_measured(out, |out| Ok(head.encode(out)?))
}

fn put_json(out: &mut Vec<u8>, value: &impl Serialize) -> SqliteResult<Range<usize>> {
    put_measured(out, |out| Ok(serde_json::to_writer(out, value)?))
}

/// Writes a value, preceded by its length; returns where it is.
fn put_measured(
    out: &mut Vec<u8>,
    put: impl FnOnce(&mut Vec<u8>) -> SqliteResult<()>,
) -> SqliteResult<Range<usize>> {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    put(out)?;
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    Ok(at + 4..out.len())
}

/// Computes the checksum of a row.
fn checksum(id: i64, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&id.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Flushes what a crash has left. If a row cannot be read, nothing is changed: its events were acknowledged.
fn recover(connection: &Connection) -> SqliteResult<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut statement = connection.prepare("SELECT id, checksum, body FROM pending_commits ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, stored): (i64, i64) = (row.get(0)?, row.get(1)?);
        let body = Bytes::from(row.get::<_, Vec<u8>>(2)?);
        let recovered = match stored == i64::from(checksum(id, &body)) {
            true => recover_row(connection, body),
            false => Err(damaged("wrong checksum")),
        };
        recovered.map_err(|failure| match failure {
            SqliteError::Damaged(why) => SqliteError::Damaged(refusal_of_row(id, &why)),
            failure => failure,
        })?;
    }
    drop(rows);
    drop(statement);
    connection.execute_batch("DELETE FROM pending_commits; COMMIT")?;
    Ok(())
}

/// Returns why the store is not opened: what a row is that cannot be read, and what helps.
fn refusal_of_row(id: i64, why: &str) -> String {
    format!(
        "row {id} of its table `pending_commits` is damaged ({why}); the row has acknowledged events that are stored \
         nowhere else, so the store is not opened without it, and was left as it is. Restore an earlier copy of the file \
         with its `-wal` file, or import an export (`runwire import`) into a new store"
    )
}

/// Flushes the entries of a row.
fn recover_row(connection: &Connection, mut body: Bytes) -> SqliteResult<()> {
    while body.has_remaining() {
        match take(&mut body, 1)?[0] {
            RECORDS => {
                let thread = take(&mut body, 8)?.get_i64_le();
                recover_records(connection, thread, take_long(&mut body)?)?;
            }
            RUN => {
                let mut fixed = take(&mut body, 24)?;
                let (run, last_seq, deadline) = (fixed.get_i64_le(), fixed.get_i64_le(), fixed.get_i64_le());
                let mut known = RunProgress::decode(&take_long(&mut body)?)?;
                known.summary.message = message_of(connection, run)?;
                let head = serde_json::to_string(&known)?;
                let deadline = Some(deadline).filter(|deadline| *deadline >= 0);
                let sql = "UPDATE run SET head = ?2, last_seq = ?3, deadline = ?4 \
                           WHERE id = ?1 AND last_seq <= ?3 AND head IS NOT NULL";
                let values = params![run, head, last_seq, deadline];
                if connection.prepare_cached(sql)?.execute(values)? > 0 {
                    save_interactions(connection, run, &known)?;
                }
            }
            PRODUCER => {
                let mut fixed = take(&mut body, 32)?;
                let (run, last_seq) = (fixed.get_i64_le(), fixed.get_i64_le());
                let (epoch, next) = (fixed.get_i64_le(), fixed.get_i64_le());
                let name = text(take_long(&mut body)?)?;
                let state = text(take_long(&mut body)?)?;
                if state.is_empty() {
                    let sql = "UPDATE producer SET epoch = ?3, next = ?4 \
                               WHERE scope = 'run' AND owner = ?1 AND name = ?2 AND ?3 >= epoch AND ?4 >= next \
                               AND EXISTS (SELECT 1 FROM run \
                               WHERE id = ?1 AND last_seq <= ?5 AND head IS NOT NULL)";
                    let values = params![run, name, epoch, next, last_seq];
                    connection.prepare_cached(sql)?.execute(values)?;
                    continue;
                }
                let sql = "INSERT INTO producer (scope, owner, name, epoch, next, decoder) \
                           SELECT 'run', id, ?2, ?3, ?4, ?5 FROM run \
                           WHERE id = ?1 AND last_seq <= ?6 AND head IS NOT NULL \
                           ON CONFLICT DO UPDATE SET epoch = excluded.epoch, next = excluded.next, \
                           decoder = excluded.decoder \
                           WHERE excluded.epoch >= epoch AND excluded.next >= next";
                connection.prepare_cached(sql)?.execute(params![run, name, epoch, next, state, last_seq])?;
            }
            _ => return Err(damaged("unknown kind of entry")),
        }
    }
    Ok(())
}

/// Returns the user message from the row of a run, if that can be read.
fn message_of(connection: &Connection, run: i64) -> SqliteResult<Option<String>> {
    let sql =
        "SELECT CASE WHEN json_valid(head) THEN head ->> '$.summary.message' END FROM run WHERE id = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([run], |row| row.get(0)).optional()?.flatten())
}

/// Adds the records that the thread's own rows do not have yet.
fn recover_records(connection: &Connection, thread: i64, body: Bytes) -> SqliteResult<()> {
    let sql = "SELECT max(head, coalesce((SELECT max(last) FROM chunk WHERE thread = ?1), 0)) FROM thread \
               WHERE id = ?1 AND deleted_at IS NULL";
    let flushed =
        connection.prepare_cached(sql)?.query_row([thread], |row| row.get::<_, u64>(0)).optional()?;
    let Some(flushed) = flushed else { return Ok(()) };
    let (mut last, mut fresh) = (flushed, Vec::new());
    let mut encoder = RecordEncoder::default();
    let mut records = RecordDecoder::new(body);
    while let Some(read) = records.next(flushed).map_err(|_| damaged("damaged record"))? {
        if read.record.seq != last + 1 {
            return Err(damaged("records before it are missing"));
        }
        last = read.record.seq;
        let run = read.run;
        let stored = StoredRecord { run: "".into(), record: read.record, name: read.name, frame: read.frame };
        encoder.encode(&mut fresh, run, &stored);
    }
    if fresh.is_empty() {
        return Ok(());
    }
    save_chunk(connection, thread, flushed + 1, last, &fresh)
}

fn take(body: &mut Bytes, count: usize) -> SqliteResult<Bytes> {
    if body.len() < count {
        return Err(damaged("truncated row"));
    }
    Ok(body.split_to(count))
}

fn take_long(body: &mut Bytes) -> SqliteResult<Bytes> {
    let length = take(body, 4)?.get_u32_le() as usize;
    take(body, length)
}

fn text(bytes: Bytes) -> SqliteResult<String> {
    String::from_utf8(bytes.into()).map_err(|_| damaged("invalid UTF-8"))
}

fn damaged(what: &str) -> SqliteError {
    SqliteError::Damaged(what.to_owned())
}
