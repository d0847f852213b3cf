//! Rows of threads and producers in a write set.

use super::Statements;
use crate::postgres::error::PgResult;
use crate::postgres::rows::to_i64;
use crate::txn::{ProducerHead, ThreadHead};

#[derive(Default)]
pub(super) struct ThreadRows {
    new: NewThreads,
    changed: ChangedThreads,
}

#[derive(Default)]
struct NewThreads {
    id: Vec<i64>,
    tenant: Vec<String>,
    name: Vec<String>,
    parallel: Vec<bool>,
    created_at: Vec<i64>,
    oldest: Vec<i64>,
    head: Vec<i64>,
    head_at: Vec<i64>,
    base: Vec<Option<String>>,
}

#[derive(Default)]
struct ChangedThreads {
    id: Vec<i64>,
    head: Vec<i64>,
    head_at: Vec<i64>,
    /// `None` if the snapshot stays, or is removed because its run's own rows are written.
    snapshot_run: Vec<Option<i64>>,
    snapshot: Vec<Option<Vec<u8>>>,
}

impl ThreadRows {
    pub(super) fn add(&mut self, thread: &ThreadHead, snapshot: Option<(i64, Vec<u8>)>) -> PgResult<()> {
        let (head, head_at) = (to_i64(thread.seq), to_i64(thread.at.0));
        if !thread.new {
            self.changed.id.push(thread.id);
            self.changed.head.push(head);
            self.changed.head_at.push(head_at);
            let (snapshot_run, snapshot) = snapshot.unzip();
            self.changed.snapshot_run.push(snapshot_run);
            self.changed.snapshot.push(snapshot);
            return Ok(());
        }
        let new = &mut self.new;
        new.id.push(thread.id);
        new.tenant.push(thread.key.tenant.to_string());
        new.name.push(thread.key.id.to_string());
        new.parallel.push(thread.parallel);
        new.created_at.push(to_i64(thread.created_at.0));
        new.oldest.push(to_i64(thread.oldest));
        new.head.push(head);
        new.head_at.push(head_at);
        let base = thread.imported_base.as_ref().map(|beginning| serde_json::to_string(&beginning.base));
        new.base.push(base.transpose()?);
        Ok(())
    }

    /// Returns the new threads.
    pub(super) fn new_ids(&self) -> &[i64] {
        &self.new.id
    }

    /// Returns the threads.
    pub(super) fn ids(&self) -> impl Iterator<Item = &i64> {
        self.new.id.iter().chain(&self.changed.id)
    }

    pub(super) fn write<'a>(&'a self, rewritten: &'a Vec<i64>, version: &'a i64, all: &mut Statements<'a>) {
        let Self { new, changed } = self;
        if !new.id.is_empty() {
            let sql = concat!(
                "INSERT INTO thread (id, tenant, name, parallel, created_at, oldest, head, head_at, base, \
                 version) SELECT *, $10::bigint FROM unnest($1::bigint[], $2::text[], $3::text[], \
                 $4::boolean[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]) WHERE ",
                in_transaction!()
            );
            all.push((
                sql,
                vec![
                    &new.id,
                    &new.tenant,
                    &new.name,
                    &new.parallel,
                    &new.created_at,
                    &new.oldest,
                    &new.head,
                    &new.head_at,
                    &new.base,
                    version,
                ],
            ));
        }
        if !changed.id.is_empty() {
            let sql = concat!(
                "UPDATE thread SET head = new.head, head_at = new.head_at, version = $6, \
                       snapshot_run = CASE WHEN new.snapshot_run IS NULL AND thread.snapshot_run <> ALL($7) THEN thread.snapshot_run \
                       ELSE new.snapshot_run END, \
                       snapshot = CASE WHEN new.snapshot_run IS NULL AND thread.snapshot_run <> ALL($7) THEN thread.snapshot \
                       ELSE new.snapshot END \
                       FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) \
                       AS new (id, head, head_at, snapshot_run, snapshot) WHERE thread.id = new.id AND ",
                in_transaction!()
            );
            let ChangedThreads { id, head, head_at, snapshot_run, snapshot } = changed;
            all.push((sql, vec![id, head, head_at, snapshot_run, snapshot, version, rewritten]));
        }
    }
}

#[derive(Default)]
pub(super) struct ProducerRows {
    scope: Vec<&'static str>,
    owner: Vec<i64>,
    name: Vec<String>,
    epoch: Vec<i64>,
    next: Vec<i64>,
    decoder: Vec<String>,
    /// Threads and names of those whose rows go.
    forgotten: (Vec<i64>, Vec<String>),
}

impl ProducerRows {
    pub(super) fn add(
        &mut self,
        scope: &'static str,
        owner: i64,
        name: &str,
        producer: &ProducerHead,
    ) -> PgResult<()> {
        self.scope.push(scope);
        self.owner.push(owner);
        self.name.push(name.to_owned());
        self.epoch.push(producer.epoch as i64);
        self.next.push(producer.next as i64);
        self.decoder.push(serde_json::to_string(&producer.state)?);
        Ok(())
    }

    /// Removes the row of a thread's producer.
    pub(super) fn forget(&mut self, thread: i64, name: String) {
        self.forgotten.0.push(thread);
        self.forgotten.1.push(name);
    }

    pub(super) fn write<'a>(&'a self, all: &mut Statements<'a>) {
        if !self.forgotten.0.is_empty() {
            let sql = concat!(
                "DELETE FROM producer USING unnest($1::bigint[], $2::text[]) AS gone (owner, name) \
                 WHERE producer.scope = 'thread' AND producer.owner = gone.owner AND producer.name = gone.name AND ",
                in_transaction!()
            );
            all.push((sql, vec![&self.forgotten.0, &self.forgotten.1]));
        }
        if self.owner.is_empty() {
            return;
        }
        let sql = concat!(
            "INSERT INTO producer (scope, owner, name, epoch, next, decoder) \
             SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[]) WHERE ",
            in_transaction!(),
            " ON CONFLICT (scope, owner, name) DO UPDATE \
             SET epoch = excluded.epoch, next = excluded.next, decoder = excluded.decoder"
        );
        all.push((sql, vec![&self.scope, &self.owner, &self.name, &self.epoch, &self.next, &self.decoder]));
    }
}
