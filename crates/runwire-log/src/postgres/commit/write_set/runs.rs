//! Rows of runs in a write set: new ones, and changes of others.
//!
//! Columns that change often are in no index, which allows HOT updates. That is why the end of a lease moves only
//! from time to time: a term is a little longer than configured, and never shorter. A lease that was moved after an
//! outage stays so, also if an older write arrives late.

use std::sync::LazyLock;

use tokio_postgres::types::ToSql;

use super::{Statement, Statements};
use crate::postgres::error::PgResult;
use crate::postgres::rows::{number_of_lease, storable, to_i64};
use crate::postgres::schema::REVISION;
use crate::postgres::txn_store::NOW;
use crate::postgres::writer::LeaseTerms;
use crate::txn::{Lease, RunHead};

#[derive(Default)]
pub(super) struct RunRows {
    new: RunColumns,
    changed: RunColumns,
    /// The start of new terms, as it was known when the set was collected.
    now: i64,
}

/// Columns of rows of runs.
#[derive(Default)]
struct RunColumns {
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
    /// `None` if the lease is unchanged.
    lease_until: Vec<Option<i64>>,
    trimmed: Vec<bool>,
    message: Vec<Option<String>>,
    head: Vec<String>,
    owner: Vec<Option<String>>,
}

impl RunRows {
    /// Adds the row of a run, which then has everything of it.
    pub(super) fn add(&mut self, run: &mut RunHead, terms: LeaseTerms, now: u64) -> PgResult<()> {
        self.now = to_i64(now);
        let until = match run.lease {
            Lease::None => 0,
            Lease::Active => now.saturating_add(terms.lease).saturating_add(terms.slack()),
            Lease::Stopping => now.saturating_add(terms.grace),
            Lease::AwaitingAnswer(until) => until,
        };
        let moves = run.leased && !terms.covers(run, now);
        let rows = if run.new { &mut self.new } else { &mut self.changed };
        rows.add(run, moves.then(|| to_i64(until)))?;
        if moves {
            run.stored_lease = (run.lease, until);
        }
        (run.dirty, run.snapshot_dirty, run.stored_status) = (false, false, run.head.state.status);
        Ok(())
    }

    pub(super) fn write<'a>(&'a self, all: &mut Statements<'a>) {
        if !self.new.id.is_empty() {
            all.push(self.new.insert());
        }
        if !self.changed.id.is_empty() {
            all.push(self.changed.update(&self.now));
        }
    }
}

impl RunColumns {
    fn add(&mut self, run: &RunHead, lease_until: Option<i64>) -> PgResult<()> {
        let maybe = |number: Option<u64>| number.map(to_i64);
        if run.new {
            self.tenant.push(run.key.tenant.to_string());
            self.name.push(run.key.id.to_string());
            self.thread.push(run.thread);
            self.request.push(serde_json::to_string(&run.request)?);
            self.created_at.push(to_i64(run.created_at.0));
            self.trimmed.push(run.trimmed);
            self.owner.push(run.owner.as_deref().map(str::to_owned));
        }
        self.id.push(run.id);
        self.agent.push(run.agent.as_deref().map(storable));
        self.status.push(run.head.state.status.as_str());
        self.started_at.push(maybe(run.started_at.map(|at| at.0)));
        self.ended_at.push(maybe(run.ended_at.map(|at| at.0)));
        self.first_seq.push(maybe(run.first_seq));
        self.last_seq.push(to_i64(run.last_seq));
        self.deadline.push(maybe(run.deadline));
        self.lease.push(number_of_lease(run.lease));
        self.lease_until.push(lease_until);
        self.message.push(run.head.summary.message.as_deref().map(storable));
        self.head.push(serde_json::to_string(&run.head)?);
        Ok(())
    }

    fn insert(&self) -> Statement<'_> {
        let sql = concat!(
            "INSERT INTO run (id, tenant, name, thread, agent, request, status, created_at, started_at, \
                   ended_at, first_seq, last_seq, deadline, lease, lease_until, trimmed, message, head, owner, \
                   revision) SELECT id, tenant, name, thread, agent, request, status, created_at, started_at, \
                   ended_at, first_seq, last_seq, deadline, lease, coalesce(lease_until, 0), trimmed, message, \
                   head, owner, $20 \
                   FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], \
                   $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], \
                   $13::bigint[], $14::smallint[], $15::bigint[], $16::boolean[], $17::text[], $18::text[], \
                   $19::text[]) AS new (id, tenant, name, thread, agent, request, status, created_at, started_at, \
                   ended_at, first_seq, last_seq, deadline, lease, lease_until, trimmed, message, head, owner) WHERE ",
            in_transaction!()
        );
        let params: Vec<&(dyn ToSql + Sync)> = vec![
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
            &self.owner,
            &REVISION,
        ];
        (sql, params)
    }

    fn update<'a>(&'a self, now: &'a i64) -> Statement<'a> {
        static SQL: LazyLock<String> = LazyLock::new(|| {
            format!(
                concat!(
                    "UPDATE run SET status = new.status, started_at = new.started_at, ended_at = new.ended_at, \
                   first_seq = new.first_seq, last_seq = new.last_seq, deadline = new.deadline, \
                   lease = new.lease, lease_until = CASE WHEN new.lease_until IS NULL THEN run.lease_until \
                   WHEN new.lease = 1 AND run.lease = 1 THEN greatest(run.lease_until, new.lease_until + late) \
                   WHEN new.lease IN (1, 2) THEN new.lease_until + late ELSE new.lease_until END, \
                   message = new.message, head = new.head, agent = new.agent \
                   FROM (SELECT greatest({NOW} - $12, 0) AS late) AS clock, unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
                   $7::bigint[], $8::smallint[], $9::bigint[], $10::text[], $11::text[], $13::text[]) AS new (id, status, \
                   started_at, ended_at, first_seq, last_seq, deadline, lease, lease_until, message, head, agent) \
                   WHERE run.id = new.id AND ",
                    in_transaction!()
                ),
                NOW = NOW
            )
        });
        let params: Vec<&(dyn ToSql + Sync)> = vec![
            &self.id,
            &self.status,
            &self.started_at,
            &self.ended_at,
            &self.first_seq,
            &self.last_seq,
            &self.deadline,
            &self.lease,
            &self.lease_until,
            &self.message,
            &self.head,
            now,
            &self.agent,
        ];
        (&SQL, params)
    }
}
