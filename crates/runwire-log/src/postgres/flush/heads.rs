//! The rows of threads, runs and producers that a commit writes.

use super::super::failure::Db;
use super::super::rows::{number_of_lease, whole_number};
use super::super::schema::REVISION;
use super::super::writer::Terms;
use super::Statements;
use crate::work::{Lease, ProducerHead, RunHead, ThreadHead};

#[derive(Default)]
pub(super) struct Threads {
    pub(super) id: Vec<i64>,
    tenant: Vec<String>,
    name: Vec<String>,
    parallel: Vec<bool>,
    created_at: Vec<i64>,
    oldest: Vec<i64>,
    head: Vec<i64>,
    head_at: Vec<i64>,
    base: Vec<Option<String>>,
}

impl Threads {
    pub(super) fn add(&mut self, thread: &ThreadHead) -> Db<()> {
        self.id.push(thread.id);
        self.tenant.push(thread.key.tenant.to_string());
        self.name.push(thread.key.id.to_string());
        self.parallel.push(thread.parallel);
        self.created_at.push(whole_number(thread.created_at.0));
        self.oldest.push(whole_number(thread.oldest));
        self.head.push(whole_number(thread.seq));
        self.head_at.push(whole_number(thread.at.0));
        let base = thread.beginning.as_ref().map(|beginning| serde_json::to_string(&beginning.base));
        self.base.push(base.transpose()?);
        Ok(())
    }

    pub(super) fn write<'a>(&'a self, version: &'a i64, all: &mut Statements<'a>) {
        if self.id.is_empty() {
            return;
        }
        let sql = "INSERT INTO thread (id, tenant, name, parallel, created_at, oldest, head, head_at, base, version) \
                   SELECT *, $10::bigint FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[], \
                   $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]) \
                   ON CONFLICT (id) DO UPDATE SET head = excluded.head, head_at = excluded.head_at, \
                   version = excluded.version";
        all.push((
            sql,
            vec![
                &self.id,
                &self.tenant,
                &self.name,
                &self.parallel,
                &self.created_at,
                &self.oldest,
                &self.head,
                &self.head_at,
                &self.base,
                version,
            ],
        ));
    }
}

#[derive(Default)]
pub(super) struct Runs {
    id: Vec<i64>,
    tenant: Vec<String>,
    name: Vec<String>,
    thread: Vec<i64>,
    agent: Vec<Option<String>>,
    request: Vec<String>,
    status: Vec<&'static str>,
    created_at: Vec<i64>,
    started_at: Vec<Option<i64>>,
    ended_at: Vec<Option<i64>>,
    first_seq: Vec<Option<i64>>,
    last_seq: Vec<i64>,
    deadline: Vec<Option<i64>>,
    lease: Vec<i16>,
    /// Nothing where the term goes on.
    lease_until: Vec<Option<i64>>,
    trimmed: Vec<bool>,
    message: Vec<Option<String>>,
    head: Vec<String>,
    owner: Vec<Option<String>>,
}

impl Runs {
    pub(super) fn add(&mut self, run: &RunHead, terms: Terms, now: u64) -> Db<()> {
        let maybe = |number: Option<u64>| number.map(whole_number);
        self.id.push(run.id);
        self.tenant.push(run.key.tenant.to_string());
        self.name.push(run.key.id.to_string());
        self.thread.push(run.thread);
        self.agent.push(run.request.agent.clone());
        self.request.push(serde_json::to_string(&run.request)?);
        self.status.push(run.head.state.status.as_str());
        self.created_at.push(whole_number(run.created_at.0));
        self.started_at.push(maybe(run.started_at.map(|at| at.0)));
        self.ended_at.push(maybe(run.ended_at.map(|at| at.0)));
        self.first_seq.push(maybe(run.first_seq));
        self.last_seq.push(whole_number(run.last_seq));
        self.deadline.push(maybe(run.deadline));
        self.lease.push(number_of_lease(run.lease));
        let until = match run.lease {
            Lease::None => 0,
            Lease::Alive => now.saturating_add(terms.lease),
            Lease::Stopping => now.saturating_add(terms.grace),
            Lease::Asking(until) => until,
        };
        self.lease_until.push(run.leased.then(|| whole_number(until)));
        self.trimmed.push(run.trimmed);
        self.message.push(run.head.summary.message.clone());
        self.head.push(serde_json::to_string(&run.head)?);
        self.owner.push(run.owner.as_deref().map(str::to_owned));
        Ok(())
    }

    pub(super) fn write<'a>(&'a self, all: &mut Statements<'a>) {
        if self.id.is_empty() {
            return;
        }
        // A term that goes on keeps its end.
        let sql = "INSERT INTO run (id, tenant, name, thread, agent, request, status, created_at, started_at, \
                   ended_at, first_seq, last_seq, deadline, lease, lease_until, trimmed, message, head, revision, owner) \
                   SELECT new.id, new.tenant, new.name, new.thread, new.agent, new.request, new.status, \
                   new.created_at, new.started_at, new.ended_at, new.first_seq, new.last_seq, new.deadline, \
                   new.lease, coalesce(new.lease_until, known.lease_until, 0), new.trimmed, new.message, new.head, $19, new.owner \
                   FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], \
                   $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], \
                   $13::bigint[], $14::smallint[], $15::bigint[], $16::boolean[], $17::text[], $18::text[], $20::text[]) \
                   AS new (id, tenant, name, thread, agent, request, status, created_at, started_at, ended_at, \
                   first_seq, last_seq, deadline, lease, lease_until, trimmed, message, head, owner) \
                   LEFT JOIN run AS known ON known.id = new.id \
                   ON CONFLICT (id) DO UPDATE SET status = excluded.status, started_at = excluded.started_at, \
                   ended_at = excluded.ended_at, first_seq = excluded.first_seq, last_seq = excluded.last_seq, \
                   deadline = excluded.deadline, lease = excluded.lease, lease_until = excluded.lease_until, \
                   message = excluded.message, head = excluded.head";
        all.push((
            sql,
            vec![
                &self.id,
                &self.tenant,
                &self.name,
                &self.thread,
                &self.agent,
                &self.request,
                &self.status,
                &self.created_at,
                &self.started_at,
                &self.ended_at,
                &self.first_seq,
                &self.last_seq,
                &self.deadline,
                &self.lease,
                &self.lease_until,
                &self.trimmed,
                &self.message,
                &self.head,
                &REVISION,
                &self.owner,
            ],
        ));
    }
}

#[derive(Default)]
pub(super) struct Producers {
    scope: Vec<&'static str>,
    owner: Vec<i64>,
    name: Vec<String>,
    epoch: Vec<i64>,
    next: Vec<i64>,
    decoder: Vec<String>,
}

impl Producers {
    pub(super) fn add(&mut self, scope: &'static str, owner: i64, name: &str, producer: &ProducerHead) -> Db<()> {
        self.scope.push(scope);
        self.owner.push(owner);
        self.name.push(name.to_owned());
        self.epoch.push(producer.epoch as i64);
        self.next.push(producer.next as i64);
        self.decoder.push(serde_json::to_string(&producer.speech)?);
        Ok(())
    }

    pub(super) fn write<'a>(&'a self, all: &mut Statements<'a>) {
        if self.owner.is_empty() {
            return;
        }
        let sql = "INSERT INTO producer (scope, owner, name, epoch, next, decoder) \
                   SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], \
                   $6::text[]) ON CONFLICT (scope, owner, name) DO UPDATE \
                   SET epoch = excluded.epoch, next = excluded.next, decoder = excluded.decoder";
        all.push((
            sql,
            vec![&self.scope, &self.owner, &self.name, &self.epoch, &self.next, &self.decoder],
        ));
    }
}
