//! The write set of a commit: one statement for each table, however many commands it holds, all sent in one round
//! trip.

/// A condition that is true only in the transaction that holds the locks: statements are pipelined behind a `BEGIN`
/// before it is known to have succeeded. Without it each of them would be a transaction of its own.
macro_rules! in_transaction {
    () => {
        "pg_current_xact_id_if_assigned() IS NOT NULL"
    };
}

mod heads;
mod records;
mod runs;

use std::collections::{HashMap, HashSet};

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::version;
use crate::postgres::connection::{Params, PgConnection};
use crate::postgres::error::PgResult;
use crate::postgres::rows::to_i64;
use crate::postgres::run_snapshot::RunSnapshot;
use crate::postgres::txn_store::PgTxnStore;
use crate::postgres::writer::LeaseTerms;
use crate::txn::Txn;
use heads::{ProducerRows, ThreadRows};
use records::{ChunkRows, InteractionRows, OutboxRows};
use runs::RunRows;

/// The rows that a commit writes, by table and column.
#[derive(Default)]
pub(super) struct WriteSet {
    threads: ThreadRows,
    /// Threads of which only a run has changed.
    touched: Vec<i64>,
    runs: RunRows,
    /// Runs whose own rows are written, so that their snapshot is removed.
    rewritten: Vec<i64>,
    producers: ProducerRows,
    interactions: InteractionRows,
    deleted: Vec<i64>,
    deleted_at: i64,
    chunks: ChunkRows,
    outbox: OutboxRows,
    /// The new version of its threads, drawn for this commit alone.
    pub(super) version: i64,
}

/// A statement with its parameters.
type Statement<'a> = (&'static str, Vec<&'a (dyn ToSql + Sync)>);

type Statements<'a> = Vec<Statement<'a>>;

/// Ends a transaction, in words used nowhere else: so tests find it in the protocol stream. No timeout of the server
/// ends its wait for a replica.
const COMMIT: &str = "COMMIT WORK";

impl WriteSet {
    /// Collects heads, records and outbox messages of a transaction.
    pub(super) fn collect(txn: &mut Txn<PgTxnStore>, terms: LeaseTerms) -> PgResult<Self> {
        let now = txn.now.0;
        let mut set = Self {
            deleted: txn.batch.deleted.iter().map(|(id, _)| *id).collect(),
            deleted_at: to_i64(now),
            version: version::draw(),
            ..Self::default()
        };
        let mut snapshots = HashMap::new();
        for id in &txn.batch.touched_runs {
            let (threads, touched) = (&txn.batch.touched_threads, *id);
            let snapshot_run = |thread| txn.heads.thread(thread).map(|thread| thread.snapshot_run);
            let snapshot_run = txn.heads.run(touched).and_then(|run| snapshot_run(run.thread));
            let Some(run) = txn.heads.run_mut(touched) else { continue };
            let is_behind =
                run.snapshot_dirty || run.producers.values().any(|producer| producer.snapshot_dirty);
            let lease_moves = run.leased && !terms.covers(run, now);
            if !run.new && !is_behind && !lease_moves {
                continue;
            }
            let is_free = snapshot_run
                .is_some_and(|snapshot_run| snapshot_run.is_none_or(|snapshot_run| snapshot_run == touched))
                && threads.contains(&run.thread)
                && !snapshots.contains_key(&run.thread);
            if is_free && !lease_moves && RunSnapshot::can_hold(run) {
                snapshots.insert(run.thread, (touched, RunSnapshot::write(run)?));
                run.snapshot_dirty = false;
                run.producers.values_mut().for_each(|producer| producer.snapshot_dirty = false);
                continue;
            }
            if !run.head.summary.interactions.is_empty() {
                set.interactions.add(run);
            }
            for (name, producer) in run.producers.iter_mut().filter(|(_, producer)| producer.dirty) {
                set.producers.add("run", touched, name, producer)?;
                (producer.dirty, producer.snapshot_dirty) = (false, false);
            }
            set.runs.add(run, terms, now)?;
            set.rewritten.push(touched);
            if !threads.contains(&run.thread) {
                set.touched.push(run.thread);
            }
        }
        for id in &txn.batch.touched_threads {
            let Some(thread) = txn.heads.thread_mut(*id) else { continue };
            let snapshot = snapshots.remove(id);
            thread.snapshot_run = match &snapshot {
                Some((run, _)) => Some(*run),
                None => thread.snapshot_run.filter(|run| !set.rewritten.contains(run)),
            };
            set.threads.add(thread, snapshot)?;
            for (name, producer) in thread.producers.iter().filter(|(_, producer)| producer.dirty) {
                set.producers.add("thread", *id, name, producer)?;
            }
            thread.forgotten.drain(..).for_each(|name| set.producers.forget(*id, name));
        }
        for (thread, pending) in &txn.batch.records {
            let Some(batch) = pending.encoded(*thread).filter(|_| !set.deleted.contains(thread)) else {
                continue;
            };
            if let Some(thread) = txn.heads.thread_mut(*thread) {
                thread.store_records(batch.first, batch.last);
            }
            set.chunks.add(batch);
        }
        for message in &txn.batch.outbox {
            set.outbox.add(message, now);
        }
        Ok(set)
    }

    /// Returns the threads whose version it changes.
    pub(super) fn changed(&self) -> HashSet<i64> {
        self.threads.ids().chain(&self.touched).chain(&self.deleted).copied().collect()
    }

    /// Returns whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.statements().is_empty()
    }

    /// Returns whether it creates a thread.
    pub(super) fn creates(&self, thread: i64) -> bool {
        self.threads.new_ids().contains(&thread)
    }

    /// Writes and commits. If a statement fails, all that follow fail, and nothing is committed.
    ///
    /// With a first statement the transaction begins here, and the row of that statement is returned.
    pub(super) fn commit(
        &self,
        first: Option<(&str, Params<'_>)>,
        connection: &PgConnection,
    ) -> PgResult<Option<Row>> {
        let begin = first.is_some().then_some("BEGIN");
        let statements = self.statements();
        let statements = statements.iter().map(|(sql, params)| (*sql, &params[..]));
        let all: Vec<(&str, Params<'_>)> = first.into_iter().chain(statements).collect();
        let rows = connection.run_pipelined(begin, &all, Some(COMMIT))?;
        Ok(rows.into_iter().next().and_then(|rows| rows.into_iter().next()))
    }

    /// Returns whether something is stored that only this commit can have written.
    pub(super) fn was_committed(&self, connection: &PgConnection) -> PgResult<bool> {
        let threads: Vec<i64> = self.changed().into_iter().collect();
        let sql = "SELECT EXISTS (SELECT 1 FROM thread WHERE id = ANY($1) AND version = $2) OR \
                   EXISTS (SELECT 1 FROM chunk JOIN unnest($3::bigint[], $4::bigint[], $5::bytea[]) \
                   AS mine (thread, last, body) USING (thread, last) WHERE chunk.body = mine.body)";
        let ChunkRows { thread, last, body, .. } = &self.chunks;
        Ok(connection.one(sql, &[&threads, &self.version, thread, last, body])?.get(0))
    }

    /// Returns whether something that only this commit can have written would be stored, if it had happened.
    pub(super) fn would_be_visible(&self, connection: &PgConnection) -> PgResult<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM thread JOIN unnest($1::bigint[], $2::bigint[]) AS mine (id, last) \
                   USING (id) WHERE deleted_at IS NULL AND oldest <= last)";
        Ok(connection.one(sql, &[&self.chunks.thread, &self.chunks.last])?.get(0))
    }

    fn statements(&self) -> Statements<'_> {
        let mut all = Vec::new();
        self.threads.write(&self.rewritten, &self.version, &mut all);
        if !self.touched.is_empty() {
            let sql = concat!(
                "UPDATE thread SET version = $2, snapshot_run = CASE WHEN snapshot_run = ANY($3) THEN NULL ELSE snapshot_run END, \
                 snapshot = CASE WHEN snapshot_run = ANY($3) THEN NULL ELSE snapshot END WHERE id = ANY($1) AND ",
                in_transaction!()
            );
            all.push((sql, vec![&self.touched, &self.version, &self.rewritten]));
        }
        self.runs.write(&mut all);
        self.producers.write(&mut all);
        self.interactions.write(&mut all);
        self.mark_deleted(&mut all);
        self.chunks.write(&mut all);
        self.outbox.write(&mut all);
        all
    }

    /// Marks threads as deleted; their rows are removed later. Messages that this commit adds are delivered all the
    /// same.
    fn mark_deleted<'a>(&'a self, all: &mut Statements<'a>) {
        if self.deleted.is_empty() {
            return;
        }
        let sql = concat!(
            "UPDATE thread SET deleted_at = $2, base = NULL, snapshot_run = NULL, snapshot = NULL, unpurged = true, \
             version = $3 WHERE id = ANY($1) AND ",
            in_transaction!()
        );
        all.push((sql, vec![&self.deleted, &self.deleted_at, &self.version]));
        let sql = concat!(
            "DELETE FROM outbox WHERE run IN (SELECT id FROM run WHERE thread = ANY($1)) AND ",
            in_transaction!()
        );
        all.push((sql, vec![&self.deleted]));
    }
}
