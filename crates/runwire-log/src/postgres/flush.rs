//! Writes what a batch has changed: one statement a table, however many requests it holds.

use super::connection::Connection;
use super::failure::Db;
use super::rows::{number_of_lease, whole_number};
use super::schema::REVISION;
use super::tables::Tables;
use super::writer::Terms;
use crate::record;
use crate::work::{Lease, ProducerHead, RunHead, Work, mint};

/// Writes heads, records and notices; the commit follows.
pub(super) fn flush(work: &mut Work<Tables>, terms: Terms) -> Db<()> {
    let now = work.now.0;
    let connection = &work.store.connection;
    let mut threads = Threads::default();
    let mut runs = Runs::default();
    let mut producers = Producers::default();
    let mut questions = Questions::default();
    let deleted: Vec<i64> = work.batch.deleted.iter().map(|(id, _)| *id).collect();
    for id in &work.batch.touched_threads {
        let Some(thread) = work.heads.thread_mut(*id) else { continue };
        threads.id.push(*id);
        threads.tenant.push(thread.key.tenant.to_string());
        threads.name.push(thread.key.id.to_string());
        threads.parallel.push(thread.parallel);
        threads.created_at.push(whole_number(thread.created_at.0));
        threads.oldest.push(whole_number(thread.oldest));
        threads.head.push(whole_number(thread.seq));
        threads.head_at.push(whole_number(thread.at.0));
        let base = thread.beginning.as_ref().map(|beginning| serde_json::to_string(&beginning.base));
        threads.base.push(base.transpose()?);
        for (name, producer) in thread.producers.iter().filter(|(_, producer)| producer.dirty) {
            producers.add("thread", *id, name, producer)?;
        }
    }
    for id in &work.batch.touched_runs {
        let Some(run) = work.heads.run_mut(*id) else { continue };
        if run.new || run.dirty || run.leased {
            runs.add(run, terms, now)?;
        }
        if !run.head.summary.interactions.is_empty() {
            questions.add(run);
        }
        for (name, producer) in run.producers.iter().filter(|(_, producer)| producer.dirty) {
            producers.add("run", *id, name, producer)?;
        }
    }
    threads.write(connection)?;
    runs.write(connection)?;
    producers.write(connection)?;
    questions.write(connection)?;
    if !deleted.is_empty() {
        bury(connection, &deleted, now)?;
    }
    write_records(work, &deleted)?;
    write_notices(work)
}

#[derive(Default)]
struct Threads {
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

impl Threads {
    fn write(&self, connection: &Connection) -> Db<()> {
        if self.id.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO thread (id, tenant, name, parallel, created_at, oldest, head, head_at, base) \
                   SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[], $5::bigint[], \
                   $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]) \
                   ON CONFLICT (id) DO UPDATE SET head = excluded.head, head_at = excluded.head_at";
        connection.execute(
            sql,
            &[
                &self.id,
                &self.tenant,
                &self.name,
                &self.parallel,
                &self.created_at,
                &self.oldest,
                &self.head,
                &self.head_at,
                &self.base,
            ],
        )?;
        Ok(())
    }
}

#[derive(Default)]
struct Runs {
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
}

impl Runs {
    fn add(&mut self, run: &RunHead, terms: Terms, now: u64) -> Db<()> {
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
        Ok(())
    }

    fn write(&self, connection: &Connection) -> Db<()> {
        if self.id.is_empty() {
            return Ok(());
        }
        // A term that goes on keeps its end.
        let sql = "INSERT INTO run (id, tenant, name, thread, agent, request, status, created_at, started_at, \
                   ended_at, first_seq, last_seq, deadline, lease, lease_until, trimmed, message, head, revision) \
                   SELECT new.id, new.tenant, new.name, new.thread, new.agent, new.request, new.status, \
                   new.created_at, new.started_at, new.ended_at, new.first_seq, new.last_seq, new.deadline, \
                   new.lease, coalesce(new.lease_until, known.lease_until, 0), new.trimmed, new.message, new.head, $19 \
                   FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], \
                   $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], \
                   $13::bigint[], $14::smallint[], $15::bigint[], $16::boolean[], $17::text[], $18::text[]) \
                   AS new (id, tenant, name, thread, agent, request, status, created_at, started_at, ended_at, \
                   first_seq, last_seq, deadline, lease, lease_until, trimmed, message, head) \
                   LEFT JOIN run AS known ON known.id = new.id \
                   ON CONFLICT (id) DO UPDATE SET status = excluded.status, started_at = excluded.started_at, \
                   ended_at = excluded.ended_at, first_seq = excluded.first_seq, last_seq = excluded.last_seq, \
                   deadline = excluded.deadline, lease = excluded.lease, lease_until = excluded.lease_until, \
                   message = excluded.message, head = excluded.head";
        connection.execute(
            sql,
            &[
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
            ],
        )?;
        Ok(())
    }
}

#[derive(Default)]
struct Producers {
    scope: Vec<&'static str>,
    owner: Vec<i64>,
    name: Vec<String>,
    epoch: Vec<i64>,
    next: Vec<i64>,
    decoder: Vec<String>,
}

impl Producers {
    fn add(&mut self, scope: &'static str, owner: i64, name: &str, producer: &ProducerHead) -> Db<()> {
        self.scope.push(scope);
        self.owner.push(owner);
        self.name.push(name.to_owned());
        self.epoch.push(producer.epoch as i64);
        self.next.push(producer.next as i64);
        self.decoder.push(serde_json::to_string(&producer.speech)?);
        Ok(())
    }

    fn write(&self, connection: &Connection) -> Db<()> {
        if self.owner.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO producer (scope, owner, name, epoch, next, decoder) \
                   SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], \
                   $6::text[]) ON CONFLICT (scope, owner, name) DO UPDATE \
                   SET epoch = excluded.epoch, next = excluded.next, decoder = excluded.decoder";
        let by: super::connection::By<'_> =
            &[&self.scope, &self.owner, &self.name, &self.epoch, &self.next, &self.decoder];
        connection.execute(sql, by)?;
        Ok(())
    }
}

/// The open questions of runs that have asked any.
#[derive(Default)]
struct Questions {
    runs: Vec<i64>,
    tenant: Vec<String>,
    run: Vec<i64>,
    name: Vec<String>,
    seq: Vec<i64>,
    asked_at: Vec<i64>,
    expires_at: Vec<Option<i64>>,
    bytes: Vec<i64>,
}

impl Questions {
    fn add(&mut self, run: &RunHead) {
        self.runs.push(run.id);
        for question in &run.head.state.questions {
            let asked = run.head.summary.interaction(&question.id);
            let began = run.started_at.unwrap_or(run.created_at).0;
            self.tenant.push(run.key.tenant.to_string());
            self.run.push(run.id);
            self.name.push(question.id.clone());
            self.seq.push(whole_number(question.place.seq));
            self.asked_at.push(whole_number(asked.and_then(|asked| asked.asked_at).unwrap_or(began)));
            self.expires_at.push(asked.and_then(|asked| asked.expires_at).map(whole_number));
            self.bytes.push(whole_number(question.bytes));
        }
    }

    fn write(&self, connection: &Connection) -> Db<()> {
        if self.runs.is_empty() {
            return Ok(());
        }
        let sql = "DELETE FROM question WHERE run = ANY($1) AND NOT EXISTS (SELECT 1 FROM \
                   unnest($2::bigint[], $3::text[]) AS open (run, name) \
                   WHERE open.run = question.run AND open.name = question.name)";
        connection.execute(sql, &[&self.runs, &self.run, &self.name])?;
        let sql = "INSERT INTO question (tenant, run, name, seq, asked_at, expires_at, bytes) \
                   SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], \
                   $6::bigint[], $7::bigint[]) ON CONFLICT (run, name) DO NOTHING";
        let by: super::connection::By<'_> =
            &[&self.tenant, &self.run, &self.name, &self.seq, &self.asked_at, &self.expires_at, &self.bytes];
        connection.execute(sql, by)?;
        Ok(())
    }
}

/// Removes threads, but for the ids, so that they stay used up. What this commit adds is told all the same.
fn bury(connection: &Connection, threads: &[i64], now: u64) -> Db<()> {
    let sql = "UPDATE thread SET deleted_at = $2, base = NULL WHERE id = ANY($1)";
    connection.execute(sql, &[&threads, &whole_number(now)])?;
    let runs = "SELECT id FROM run WHERE thread = ANY($1)";
    for sql in [
        format!("DELETE FROM notice WHERE run IN ({runs})"),
        format!("DELETE FROM checkpoint WHERE run IN ({runs})"),
        format!("DELETE FROM producer WHERE scope = 'run' AND owner IN ({runs})"),
        "DELETE FROM producer WHERE scope = 'thread' AND owner = ANY($1)".to_owned(),
        "DELETE FROM chunk WHERE thread = ANY($1)".to_owned(),
    ] {
        connection.execute(&sql, &[&threads])?;
    }
    Ok(())
}

fn write_records(work: &Work<Tables>, deleted: &[i64]) -> Db<()> {
    let (mut threads, mut firsts, mut lasts) = (Vec::new(), Vec::new(), Vec::new());
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for (thread, pending) in work.batch.pending.iter().filter(|(thread, _)| !deleted.contains(thread)) {
        let (Some((_, first)), Some((_, last))) = (pending.records.first(), pending.records.last()) else {
            continue;
        };
        threads.push(*thread);
        firsts.push(whole_number(first.record.seq));
        lasts.push(whole_number(last.record.seq));
        let mut body = Vec::new();
        for (run, stored) in &pending.records {
            record::write(&mut body, *run as u64, stored);
        }
        bodies.push(body);
    }
    if threads.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO chunk (thread, first, last, body) \
               SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])";
    work.store.connection.execute(sql, &[&threads, &firsts, &lasts, &bodies])?;
    Ok(())
}

fn write_notices(work: &Work<Tables>) -> Db<()> {
    let due = whole_number(work.now.0);
    for notice in &work.batch.notices {
        let sql = "INSERT INTO notice (subscriber, name, run, kind, seq, at, event, due) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let by: super::connection::By<'_> = &[
            &notice.subscriber,
            &mint(),
            &notice.run,
            &notice.kind.name(),
            &whole_number(notice.seq),
            &whole_number(notice.at.0),
            &notice.event.text(),
            &due,
        ];
        work.store.connection.execute(sql, by)?;
    }
    Ok(())
}
