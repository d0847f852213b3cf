//! Rows of records, interactions and outbox messages in a write set.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::Statements;
use crate::cluster::EncodedBatch;
use crate::postgres::rows::{storable, to_i64};
use crate::txn::{NewOutboxMessage, RunHead, mint};

/// The open interactions of runs that have requested any.
#[derive(Default)]
pub(super) struct InteractionRows {
    runs: Vec<i64>,
    tenant: Vec<String>,
    run: Vec<i64>,
    name: Vec<String>,
    seq: Vec<i64>,
    asked_at: Vec<i64>,
    expires_at: Vec<Option<i64>>,
    bytes: Vec<i64>,
}

impl InteractionRows {
    pub(super) fn add(&mut self, run: &RunHead) {
        self.runs.push(run.id);
        for question in &run.head.state.interactions {
            let asked = run.head.summary.interaction(&question.id);
            let began = run.started_at.unwrap_or(run.created_at).0;
            self.tenant.push(run.key.tenant.to_string());
            self.run.push(run.id);
            self.name.push(storable(&question.id));
            self.seq.push(to_i64(question.position.seq));
            self.asked_at.push(to_i64(asked.and_then(|asked| asked.asked_at).unwrap_or(began)));
            self.expires_at.push(asked.and_then(|asked| asked.expires_at).map(to_i64));
            self.bytes.push(to_i64(question.bytes));
        }
    }

    pub(super) fn write<'a>(&'a self, all: &mut Statements<'a>) {
        if self.runs.is_empty() {
            return;
        }
        let sql = concat!(
            "DELETE FROM interaction WHERE run = ANY($1) \
             AND (run, name) NOT IN (SELECT * FROM unnest($2::bigint[], $3::text[])) AND ",
            in_transaction!()
        );
        all.push((sql, vec![&self.runs, &self.run, &self.name]));
        if self.run.is_empty() {
            return;
        }
        let sql = concat!(
            "INSERT INTO interaction (tenant, run, name, seq, asked_at, expires_at, bytes) \
             SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], \
             $6::bigint[], $7::bigint[]) WHERE ",
            in_transaction!(),
            " ON CONFLICT (run, name) DO NOTHING"
        );
        all.push((
            sql,
            vec![
                &self.tenant,
                &self.run,
                &self.name,
                &self.seq,
                &self.asked_at,
                &self.expires_at,
                &self.bytes,
            ],
        ));
    }
}

/// New records, one row for each thread.
#[derive(Default)]
pub(super) struct ChunkRows {
    pub(super) thread: Vec<i64>,
    first: Vec<i64>,
    pub(super) last: Vec<i64>,
    checksum: Vec<i64>,
    pub(super) body: Vec<ChunkBody>,
}

impl ChunkRows {
    pub(super) fn add(&mut self, batch: &EncodedBatch) {
        self.thread.push(batch.thread);
        self.first.push(to_i64(batch.first));
        self.last.push(to_i64(batch.last));
        self.checksum.push(batch.checksum.into());
        self.body.push(ChunkBody(batch.clone()));
    }

    pub(super) fn write<'a>(&'a self, all: &mut Statements<'a>) {
        if !self.thread.is_empty() {
            let sql = concat!(
                "INSERT INTO chunk (thread, first, last, checksum, body) SELECT * FROM \
                 unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) WHERE ",
                in_transaction!()
            );
            all.push((sql, vec![&self.thread, &self.first, &self.last, &self.checksum, &self.body]));
        }
    }
}

/// Encoded records, sent without a copy.
#[derive(Debug)]
pub(super) struct ChunkBody(EncodedBatch);

impl ToSql for ChunkBody {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.records().to_sql(kind, out)
    }

    fn accepts(kind: &Type) -> bool {
        <&[u8] as ToSql>::accepts(kind)
    }

    to_sql_checked!();
}

/// New outbox messages.
#[derive(Default)]
pub(super) struct OutboxRows {
    subscriber: Vec<String>,
    name: Vec<String>,
    run: Vec<i64>,
    kind: Vec<&'static str>,
    seq: Vec<i64>,
    at: Vec<i64>,
    event: Vec<String>,
    due: Vec<i64>,
}

impl OutboxRows {
    pub(super) fn add(&mut self, message: &NewOutboxMessage, due: u64) {
        self.subscriber.push(message.subscriber.clone());
        self.name.push(mint());
        self.run.push(message.run);
        self.kind.push(message.kind.name());
        self.seq.push(to_i64(message.seq));
        self.at.push(to_i64(message.at.0));
        self.event.push(message.event.text().to_owned());
        self.due.push(to_i64(due));
    }

    pub(super) fn write<'a>(&'a self, all: &mut Statements<'a>) {
        if self.run.is_empty() {
            return;
        }
        let sql = concat!(
            "INSERT INTO outbox (subscriber, name, run, kind, seq, at, event, due) \
             SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], \
             $6::bigint[], $7::text[], $8::bigint[]) WHERE ",
            in_transaction!()
        );
        all.push((
            sql,
            vec![
                &self.subscriber,
                &self.name,
                &self.run,
                &self.kind,
                &self.seq,
                &self.at,
                &self.event,
                &self.due,
            ],
        ));
    }
}
