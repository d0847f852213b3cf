//! The write-behind table: makes a commit of many small appends one small write.
//!
//! Records, and the run rows and producers that change with every record, go into one row of `pending_commits` for
//! each commit; their own tables are written later, for many records of a thread at once. That is a *flush*: a thread
//! is flushed when it has gathered enough, when too much is pending, when it is read from the store, and when the
//! store is closed. What a crash leaves is flushed when the store is opened.
//!
//! A row is a list of entries, all numbers little-endian:
//!
//! - `1`, thread i64, length u32, records (see `record.rs`)
//! - `2`, run i64, last seq u64, deadline i64 (-1: none), length u32, progress as postcard (`EncodedProgress`)
//! - `3`, run i64, last seq u64, epoch u64, next u64, length u32, name, length u32, producer state as JSON

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use super::inbox::save_interactions;
use super::rows::json_error;
use super::writer::SqliteResult;
use crate::record::{RecordDecoder, StoredRecord};
use crate::txn::{ProgressError, RunHead, RunProgress};

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
    /// The threads in the message of their oldest row; those that were flushed meanwhile are passed over.
    message: VecDeque<(i64, i64)>,
    /// The row of the current commit.
    row: Vec<u8>,
    next_row: i64,
    /// Bytes of all pending rows.
    bytes: usize,
}

impl PendingCommits {
    pub(super) fn open(connection: &Connection) -> SqliteResult<Self> {
        recover(connection)?;
        Ok(Self { next_row: 1, ..Self::default() })
    }

    /// Returns the unflushed part of a thread, created if missing.
    pub(super) fn of(&mut self, thread: i64) -> &mut UnflushedThread {
        let (since, message) = (self.next_row, &mut self.message);
        self.threads.entry(thread).or_insert_with(|| {
            message.push_back((since, thread));
            UnflushedThread { since, ..UnflushedThread::default() }
        })
    }

    /// Appends the records of a thread, from an offset in its body on, to the row.
    pub(super) fn push_records(&mut self, thread: i64, from: usize) {
        let Some(unflushed) = self.threads.get(&thread) else { return };
        self.row.push(RECORDS);
        self.row.extend_from_slice(&thread.to_le_bytes());
        put_bytes(&mut self.row, &unflushed.body[from..]);
    }

    /// Appends the progress of a run, and its changed producers, to the row.
    pub(super) fn push_run(&mut self, run: &mut RunHead) -> SqliteResult<()> {
        if std::mem::take(&mut run.snapshot_dirty) {
            self.row.push(RUN);
            self.row.extend_from_slice(&run.id.to_le_bytes());
            self.row.extend_from_slice(&run.last_seq.to_le_bytes());
            let deadline = run.deadline.map_or(-1, |deadline| deadline as i64);
            self.row.extend_from_slice(&deadline.to_le_bytes());
            put_head(&mut self.row, &run.head)?;
        }
        for (name, producer) in run.producers.iter_mut().filter(|(_, producer)| producer.snapshot_dirty) {
            producer.snapshot_dirty = false;
            self.row.push(PRODUCER);
            self.row.extend_from_slice(&run.id.to_le_bytes());
            self.row.extend_from_slice(&run.last_seq.to_le_bytes());
            self.row.extend_from_slice(&producer.epoch.to_le_bytes());
            self.row.extend_from_slice(&producer.next.to_le_bytes());
            put_bytes(&mut self.row, name.as_bytes());
            put_json(&mut self.row, &producer.state)?;
        }
        Ok(())
    }

    /// Writes the row of the commit, if it is not empty.
    pub(super) fn write(&mut self, connection: &Connection) -> SqliteResult<()> {
        if self.row.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO pending_commits (id, body) VALUES (?1, ?2)";
        connection.prepare_cached(sql)?.execute(params![self.next_row, self.row])?;
        self.next_row += 1;
        self.bytes += self.row.len();
        self.row.clear();
        Ok(())
    }

    /// Returns the longest waiting thread, while more than `most` bytes are pending.
    pub(super) fn overdue(&mut self, most: usize) -> Option<i64> {
        if self.bytes <= most {
            return None;
        }
        self.oldest().map(|(_, thread)| thread)
    }

    fn oldest(&mut self) -> Option<(i64, i64)> {
        while let Some((since, thread)) = self.message.front().copied() {
            if self.threads.get(&thread).is_some_and(|unflushed| unflushed.since == since) {
                return Some((since, thread));
            }
            self.message.pop_front();
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

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_head(out: &mut Vec<u8>, head: &RunProgress) -> SqliteResult<()> {
    put_measured(out, |out| head.encode(out).map_err(|error| damaged_by(&error)))
}

fn head_of(encoded: &[u8]) -> SqliteResult<RunProgress> {
    RunProgress::decode(encoded).map_err(|error| damaged_by(&error))
}

fn put_json(out: &mut Vec<u8>, value: &impl Serialize) -> SqliteResult<()> {
    put_measured(out, |out| serde_json::to_writer(out, value).map_err(json_error))
}

/// Writes a value, preceded by its length.
fn put_measured(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> SqliteResult<()>) -> SqliteResult<()> {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    put(out)?;
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Flushes what a crash has left.
fn recover(connection: &Connection) -> SqliteResult<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut statement = connection.prepare("SELECT body FROM pending_commits ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut body = Bytes::from(row.get::<_, Vec<u8>>(0)?);
        while body.has_remaining() {
            match take(&mut body, 1)?[0] {
                RECORDS => {
                    let thread = take(&mut body, 8)?.get_i64_le();
                    recover_records(connection, thread, take_long(&mut body)?)?;
                }
                RUN => {
                    let mut fixed = take(&mut body, 24)?;
                    let (run, last_seq, deadline) =
                        (fixed.get_i64_le(), fixed.get_i64_le(), fixed.get_i64_le());
                    let mut known = head_of(&take_long(&mut body)?)?;
                    known.summary.message = message_of(connection, run)?;
                    let head = serde_json::to_string(&known).map_err(json_error)?;
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
                    let sql = "INSERT INTO producer (scope, owner, name, epoch, next, decoder) \
                               SELECT 'run', id, ?2, ?3, ?4, ?5 FROM run \
                               WHERE id = ?1 AND last_seq <= ?6 AND head IS NOT NULL \
                               ON CONFLICT DO UPDATE SET epoch = excluded.epoch, next = excluded.next, \
                               decoder = excluded.decoder \
                               WHERE excluded.epoch >= epoch AND excluded.next >= next";
                    connection
                        .prepare_cached(sql)?
                        .execute(params![run, name, epoch, next, state, last_seq])?;
                }
                _ => return Err(damaged("pending commits: unknown kind of entry")),
            }
        }
    }
    drop(rows);
    drop(statement);
    connection.execute_batch("DELETE FROM pending_commits; COMMIT")
}

/// Returns the user message from the row of a run.
fn message_of(connection: &Connection, run: i64) -> SqliteResult<Option<String>> {
    let sql = "SELECT head ->> '$.summary.message' FROM run WHERE id = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([run], |row| row.get(0)).optional()?.flatten())
}

/// Adds the records that the thread's own rows do not have yet.
fn recover_records(connection: &Connection, thread: i64, body: Bytes) -> SqliteResult<()> {
    let sql = "SELECT max(head, coalesce((SELECT max(last) FROM chunk WHERE thread = ?1), 0)) FROM thread \
               WHERE id = ?1 AND deleted_at IS NULL";
    let flushed =
        connection.prepare_cached(sql)?.query_row([thread], |row| row.get::<_, u64>(0)).optional()?;
    let Some(flushed) = flushed else { return Ok(()) };
    let (mut first, mut last, mut fresh) = (None, 0, Vec::new());
    let mut records = RecordDecoder::new(body);
    while let Some(read) = records.next(flushed).map_err(|_| damaged("pending commits: damaged record"))? {
        let seq = read.record.seq;
        first.get_or_insert(seq);
        last = seq;
        let run = read.run;
        let stored = StoredRecord { run: "".into(), record: read.record, name: read.name, frame: read.frame };
        crate::record::encode(&mut fresh, run, &stored);
    }
    let Some(first) = first else { return Ok(()) };
    let sql = "INSERT INTO chunk (thread, first, last, body) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![thread, first, last, fresh])?;
    Ok(())
}

fn take(body: &mut Bytes, count: usize) -> SqliteResult<Bytes> {
    if body.len() < count {
        return Err(damaged("pending commits: truncated row"));
    }
    Ok(body.split_to(count))
}

fn take_long(body: &mut Bytes) -> SqliteResult<Bytes> {
    let length = take(body, 4)?.get_u32_le() as usize;
    take(body, length)
}

fn text(bytes: Bytes) -> SqliteResult<String> {
    String::from_utf8(bytes.into()).map_err(|_| damaged("pending commits: invalid UTF-8"))
}

fn damaged(what: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, what.into())
}

fn damaged_by(error: &ProgressError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, error.to_string().into())
}
