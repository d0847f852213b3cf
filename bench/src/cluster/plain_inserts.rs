//! The floor of appending: plain inserts of the rows that a round has stored.
//!
//! One connection, prepared statements, transactions with the mean number of rows of the round's commits; no decoding, no
//! ordering, no replies.

use std::time::{Duration, Instant};

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

use crate::Failure;

/// Limits the rows that are read; they are reused under other threads.
const MAX_ROWS: i64 = 50_000;

/// The rows that a round has stored.
pub(crate) struct StoredRows {
    thread: Vec<i64>,
    first: Vec<i64>,
    last: Vec<i64>,
    body: Vec<Vec<u8>>,
    heads: Vec<ResponseHead>,
    /// Total number of rows.
    pub(crate) stored: u64,
}

/// The head row of a run.
struct ResponseHead {
    thread: i64,
    state: String,
}

/// What is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floor {
    /// Only the records, each statement in its own transaction.
    Records,
    /// The records and an update of their thread and run, pipelined.
    RecordsAndHeads,
}

impl StoredRows {
    /// Reads the rows of the runs whose name starts with `label`.
    pub(crate) async fn stored(url: &str, label: &str) -> Result<Self, Failure> {
        let client = connect(url).await?;
        let runs = format!("{label}-%");
        let of_runs = "chunk JOIN run ON run.thread = chunk.thread WHERE run.name LIKE $1";
        let stored: i64 =
            client.query_one(&format!("SELECT count(*) FROM {of_runs}"), &[&runs]).await?.get(0);
        let sql = format!(
            "SELECT chunk.thread, chunk.first, chunk.last, chunk.body FROM {of_runs} \
             ORDER BY chunk.last, chunk.thread LIMIT $2"
        );
        let mut rows = Self {
            thread: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
            body: Vec::new(),
            heads: Vec::new(),
            stored: stored as u64,
        };
        for row in client.query(&sql, &[&runs, &MAX_ROWS]).await? {
            rows.thread.push(row.get(0));
            rows.first.push(row.get(1));
            rows.last.push(row.get(2));
            rows.body.push(row.get(3));
        }
        let sql = "SELECT thread, coalesce(head, '') FROM run WHERE name LIKE $1";
        for row in client.query(sql, &[&runs]).await? {
            rows.heads.push(ResponseHead { thread: row.get(0), state: row.get(1) });
        }
        if rows.thread.is_empty() {
            return Err("nothing was stored".into());
        }
        Ok(rows)
    }

    /// Inserts the rows for a while, and returns the events per second.
    ///
    /// Blocks this thread, as a node's writer does.
    pub(crate) fn insert(
        &self,
        url: &str,
        floor: Floor,
        group: usize,
        duration: Duration,
    ) -> Result<f64, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let tables = FloorTables::make(connect(url).await?, &self.heads).await?;
            let (mut from, mut cycle, mut events) = (0, 0, 0);
            let begun = Instant::now();
            while begun.elapsed() < duration {
                let part = from..(from + group).min(self.thread.len());
                let spans = self.first[part.clone()].iter().zip(&self.last[part.clone()]);
                events += spans.map(|(first, last)| last - first + 1).sum::<i64>();
                let threads: Vec<i64> =
                    self.thread[part.clone()].iter().map(|thread| thread + (cycle << 32)).collect();
                let bodies: Vec<&[u8]> = self.body[part.clone()].iter().map(Vec::as_slice).collect();
                let records: Records<'_> =
                    [&threads, &&self.first[part.clone()], &&self.last[part.clone()], &bodies];
                match floor {
                    Floor::Records => tables.insert(&records).await?,
                    Floor::RecordsAndHeads => {
                        let heads: Vec<&ResponseHead> = self.thread[part.clone()]
                            .iter()
                            .filter_map(|thread| self.heads.iter().find(|head| head.thread == *thread))
                            .collect();
                        tables.insert_with(&records, &heads, &self.last[part.clone()]).await?;
                    }
                }
                (from, cycle) =
                    if part.end == self.thread.len() { (0, cycle + 1) } else { (part.end, cycle) };
            }
            Ok(events as f64 / begun.elapsed().as_secs_f64())
        })
    }
}

/// The parameters of a statement.
type Parameters<'a, const VALUES: usize> = [&'a (dyn ToSql + Sync); VALUES];

/// Thread, first and last `seq`, and body of each row.
type Records<'a> = Parameters<'a, 4>;

/// The tables of the floor, and its statements.
struct FloorTables {
    client: Client,
    records: Statement,
    threads: Statement,
    runs: Statement,
}

impl FloorTables {
    async fn make(client: Client, heads: &[ResponseHead]) -> Result<Self, Failure> {
        let sql = "DROP TABLE IF EXISTS plain, plain_thread, plain_run; \
                   CREATE TABLE plain (LIKE chunk INCLUDING ALL); \
                   CREATE TABLE plain_thread (id bigint PRIMARY KEY, head bigint, head_at bigint); \
                   CREATE TABLE plain_run (id bigint PRIMARY KEY, last_seq bigint, lease_until bigint, head text)";
        client.batch_execute(sql).await?;
        let threads: Vec<i64> = heads.iter().map(|head| head.thread).collect();
        for table in ["plain_thread", "plain_run"] {
            let sql = format!("INSERT INTO {table} (id) SELECT * FROM unnest($1::bigint[])");
            client.execute(&sql, &[&threads]).await?;
        }
        let records = "INSERT INTO plain (thread, first, last, body) \
                       SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])";
        let threads = "UPDATE plain_thread AS known SET head = new.seq, head_at = new.seq \
                       FROM unnest($1::bigint[], $2::bigint[]) AS new (id, seq) WHERE known.id = new.id";
        let runs = "UPDATE plain_run AS known SET last_seq = new.seq, lease_until = new.seq, head = new.head \
                    FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS new (id, seq, head) \
                    WHERE known.id = new.id";
        Ok(Self {
            records: client.prepare(records).await?,
            threads: client.prepare(threads).await?,
            runs: client.prepare(runs).await?,
            client,
        })
    }

    async fn insert(&self, records: &Records<'_>) -> Result<(), Failure> {
        self.client.execute(&self.records, records).await?;
        Ok(())
    }

    async fn insert_with(
        &self,
        records: &Records<'_>,
        heads: &[&ResponseHead],
        seqs: &[i64],
    ) -> Result<(), Failure> {
        let client = &self.client;
        let ids: Vec<i64> = heads.iter().map(|head| head.thread).collect();
        let states: Vec<&str> = heads.iter().map(|head| head.state.as_str()).collect();
        let (threads, runs): (Parameters<'_, 2>, Parameters<'_, 3>) = ([&ids, &seqs], [&ids, &seqs, &states]);
        // Statements that are polled in order are pipelined in order.
        let (begun, threads, runs, inserted, committed) = tokio::join!(
            biased;
            client.batch_execute("BEGIN"),
            client.execute(&self.threads, &threads),
            client.execute(&self.runs, &runs),
            client.execute(&self.records, records),
            client.batch_execute("COMMIT"),
        );
        begun?;
        for changed in [threads, runs, inserted] {
            changed?;
        }
        Ok(committed?)
    }
}

/// Connects; the connection ends with the client.
async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // The client reports errors of the connection.
    tokio::spawn(connection);
    Ok(client)
}
