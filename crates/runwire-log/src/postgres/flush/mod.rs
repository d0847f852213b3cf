//! Writes what a batch has changed: one statement a table, however many requests it holds, and all sent at once.

mod heads;
mod records;
mod runs;

use std::collections::HashSet;

use tokio_postgres::types::ToSql;

use super::connection::{By, Connection};
use super::failure::Db;
use super::rows::whole_number;
use super::tables::Tables;
use super::writer::Terms;
use crate::work::Work;
use heads::{Producers, Threads};
use records::{Chunks, Notices, Questions};
use runs::Runs;

/// What a commit writes, column by column.
#[derive(Default)]
pub(super) struct Flushed {
    threads: Threads,
    /// Threads of which only a run has changed.
    bumped: Vec<i64>,
    runs: Runs,
    producers: Producers,
    questions: Questions,
    deleted: Vec<i64>,
    deleted_at: i64,
    chunks: Chunks,
    notices: Notices,
    /// What its threads have as their version with this commit, and never had before.
    pub(super) version: i64,
}

/// A statement, with what it is given.
type Statement<'a> = (&'static str, Vec<&'a (dyn ToSql + Sync)>);

type Statements<'a> = Vec<Statement<'a>>;

/// A time limit of the server's would end its waiting for a replica, and call that a success.
const COMMIT: &str = "SET LOCAL statement_timeout = 0; COMMIT";

impl Flushed {
    /// Gathers heads, records and notices.
    pub(super) fn gather(work: &mut Work<Tables>, terms: Terms) -> Db<Self> {
        let now = work.now.0;
        let mut flushed = Self {
            deleted: work.batch.deleted.iter().map(|(id, _)| *id).collect(),
            deleted_at: whole_number(now),
            version: fastrand::i64(1..i64::MAX / 2),
            ..Self::default()
        };
        for id in &work.batch.touched_threads {
            let Some(thread) = work.heads.thread_mut(*id) else { continue };
            flushed.threads.add(thread)?;
            for (name, producer) in thread.producers.iter().filter(|(_, producer)| producer.dirty) {
                flushed.producers.add("thread", *id, name, producer)?;
            }
        }
        for id in &work.batch.touched_runs {
            let Some(run) = work.heads.run_mut(*id) else { continue };
            let mut changed = run.new || run.dirty || run.leased;
            if changed {
                flushed.runs.add(run, terms, now)?;
            }
            if !run.head.summary.interactions.is_empty() {
                flushed.questions.add(run);
            }
            for (name, producer) in run.producers.iter().filter(|(_, producer)| producer.dirty) {
                flushed.producers.add("run", *id, name, producer)?;
                changed = true;
            }
            if changed && !work.batch.touched_threads.contains(&run.thread) {
                flushed.bumped.push(run.thread);
            }
        }
        for (thread, pending) in &work.batch.pending {
            if let Some(parcel) = pending.parcel(*thread).filter(|_| !flushed.deleted.contains(thread)) {
                flushed.chunks.add(parcel);
            }
        }
        for notice in &work.batch.notices {
            flushed.notices.add(notice, now);
        }
        Ok(flushed)
    }

    /// Lists the threads whose version it changes.
    pub(super) fn changed(&self) -> HashSet<i64> {
        self.threads.ids().chain(&self.bumped).chain(&self.deleted).copied().collect()
    }

    /// Tells whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.statements().is_empty()
    }

    /// Writes it all, and commits. Where a statement fails, what follows does too: then nothing is committed.
    pub(super) fn commit(&self, connection: &Connection) -> Db<()> {
        let statements = self.statements();
        let statements: Vec<(&str, By<'_>)> = statements.iter().map(|(sql, by)| (*sql, &by[..])).collect();
        connection.run_before(&statements, COMMIT)
    }

    /// Tells whether something is stored that only this commit can have written.
    pub(super) fn is_found(&self, connection: &Connection) -> Db<bool> {
        let threads: Vec<i64> = self.changed().into_iter().collect();
        let sql = "SELECT EXISTS (SELECT 1 FROM thread WHERE id = ANY($1) AND version = $2) OR \
                   EXISTS (SELECT 1 FROM chunk JOIN unnest($3::bigint[], $4::bigint[], $5::bytea[]) \
                   AS mine (thread, last, body) USING (thread, last) WHERE chunk.body = mine.body)";
        let Chunks { thread, last, body, .. } = &self.chunks;
        Ok(connection.one(sql, &[&threads, &self.version, thread, last, body])?.get(0))
    }

    fn statements(&self) -> Statements<'_> {
        let mut all = Vec::new();
        self.threads.write(&self.version, &mut all);
        if !self.bumped.is_empty() {
            let sql = "UPDATE thread SET version = $2 WHERE id = ANY($1)";
            all.push((sql, vec![&self.bumped, &self.version]));
        }
        self.runs.write(&mut all);
        self.producers.write(&mut all);
        self.questions.write(&mut all);
        self.bury(&mut all);
        self.chunks.write(&mut all);
        self.notices.write(&mut all);
        all
    }

    /// Marks threads as deleted; their rows go later. What this commit adds is told all the same.
    fn bury<'a>(&'a self, all: &mut Statements<'a>) {
        if self.deleted.is_empty() {
            return;
        }
        let sql = "UPDATE thread SET deleted_at = $2, base = NULL, unpurged = true, version = $3 WHERE id = ANY($1)";
        all.push((sql, vec![&self.deleted, &self.deleted_at, &self.version]));
        let sql = "DELETE FROM notice WHERE run IN (SELECT id FROM run WHERE thread = ANY($1))";
        all.push((sql, vec![&self.deleted]));
    }
}
