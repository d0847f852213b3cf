//! What the writer has at hand of threads, runs and producers: loaded when needed, written back at the commit.

use std::collections::HashMap;
use std::sync::Arc;

use runwire_model::Timestamp;
use runwire_model::dialect::Decoder;
use runwire_model::run::{RunState, Status};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::read::last_record;
use super::schema::REVISION;
use crate::info::{NewRun, RunInfo, RunSummary};
use crate::key::{RunKey, ThreadKey};
use crate::limits;

/// A thread, as its single writer knows it.
#[derive(Debug)]
pub(super) struct ThreadHead {
    pub(super) id: i64,
    pub(super) key: ThreadKey,
    pub(super) parallel: bool,
    pub(super) created_at: Timestamp,
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) deleted: bool,
    /// Its open runs, oldest first.
    pub(super) open: Vec<i64>,
    /// The run that began last.
    pub(super) latest: Option<i64>,
    pub(super) producers: HashMap<String, ProducerHead>,
    /// Whether the store has no row yet.
    pub(super) new: bool,
}

/// A run, as its thread's writer knows it.
#[derive(Debug)]
pub(super) struct RunHead {
    pub(super) id: i64,
    pub(super) key: RunKey,
    pub(super) thread: i64,
    pub(super) thread_key: ThreadKey,
    pub(super) request: Request,
    pub(super) created_at: Timestamp,
    pub(super) started_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) first_seq: Option<u64>,
    pub(super) last_seq: u64,
    pub(super) deadline: Option<u64>,
    pub(super) trimmed: bool,
    pub(super) head: Head,
    /// The status that the store has.
    pub(super) stored_status: Status,
    pub(super) producers: HashMap<String, ProducerHead>,
    pub(super) new: bool,
    pub(super) dirty: bool,
}

/// The part of a run that changes with every record.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) state: RunState,
    pub(super) summary: RunSummary,
}

/// What created a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) thread_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<serde_json::Value>,
    /// Whether a request created it, rather than the first frame.
    #[serde(default)]
    pub(super) asked: bool,
}

impl Request {
    pub(super) fn of(run: &NewRun) -> Self {
        Self {
            thread_id: run.thread_id.clone(),
            agent: run.agent.clone(),
            message: run.message.clone(),
            input: run.input.as_ref().map(runwire_model::Json::to_value),
            asked: true,
        }
    }
}

/// A producer, as the writer knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct ProducerHead {
    pub(super) epoch: u64,
    pub(super) next: u64,
    pub(super) speech: Speech,
    pub(super) dirty: bool,
}

/// What a producer speaks, and where its frames go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Speech {
    pub(super) decoder: Option<Decoder>,
    /// For a thread that is written as a whole: the runs its frames go to, the last one at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) routes: Vec<Route>,
}

/// Where frames of a source's session or run go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Route {
    pub(super) thread: Option<String>,
    pub(super) run: Option<String>,
    pub(super) to: i64,
}

impl RunHead {
    pub(super) fn info(&self) -> RunInfo {
        RunInfo {
            run_id: self.key.id.to_string(),
            thread_id: self.thread_key.id.to_string(),
            agent: self.request.agent.clone(),
            status: self.head.state.status,
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            first_seq: self.first_seq,
            last_seq: self.last_seq,
            trimmed: self.trimmed,
            summary: self.head.summary.clone(),
        }
    }
}

/// The heads at hand.
#[derive(Debug, Default)]
pub(super) struct Heads {
    threads: HashMap<i64, ThreadHead>,
    thread_ids: HashMap<ThreadKey, i64>,
    runs: HashMap<i64, RunHead>,
    run_ids: HashMap<RunKey, i64>,
    next_thread: i64,
    next_run: i64,
}

type Loaded<T> = rusqlite::Result<Option<T>>;

impl Heads {
    pub(super) fn open(connection: &Connection) -> rusqlite::Result<Self> {
        let last = |table: &str| {
            let sql = format!("SELECT coalesce(max(id), 0) FROM {table}");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0))
        };
        Ok(Self { next_thread: last("thread")? + 1, next_run: last("run")? + 1, ..Self::default() })
    }

    /// Takes a thread out to work on it; [`Heads::put_thread`] brings it back.
    pub(super) fn take_thread(&mut self, connection: &Connection, key: &ThreadKey) -> Loaded<ThreadHead> {
        if let Some(id) = self.thread_ids.get(key) {
            return Ok(self.threads.remove(id));
        }
        load_thread(connection, "tenant = ?1 AND name = ?2", params![&*key.tenant, &*key.id])
    }

    pub(super) fn take_thread_by_id(&mut self, connection: &Connection, id: i64) -> Loaded<ThreadHead> {
        match self.threads.remove(&id) {
            Some(thread) => Ok(Some(thread)),
            None => load_thread(connection, "id = ?1", params![id]),
        }
    }

    pub(super) fn put_thread(&mut self, thread: ThreadHead) {
        self.thread_ids.insert(thread.key.clone(), thread.id);
        self.threads.insert(thread.id, thread);
    }

    /// Takes a run out to work on it; [`Heads::put_run`] brings it back.
    pub(super) fn take_run(&mut self, connection: &Connection, key: &RunKey) -> Loaded<RunHead> {
        if let Some(id) = self.run_ids.get(key) {
            return Ok(self.runs.remove(id));
        }
        load_run(connection, "run.tenant = ?1 AND run.name = ?2", params![&*key.tenant, &*key.id])
    }

    pub(super) fn take_run_by_id(&mut self, connection: &Connection, id: i64) -> Loaded<RunHead> {
        match self.runs.remove(&id) {
            Some(run) => Ok(Some(run)),
            None => load_run(connection, "run.id = ?1", params![id]),
        }
    }

    pub(super) fn put_run(&mut self, run: RunHead) {
        self.run_ids.insert(run.key.clone(), run.id);
        self.runs.insert(run.id, run);
    }

    /// Tells whether a run id is taken.
    pub(super) fn has_run(&self, connection: &Connection, key: &RunKey) -> rusqlite::Result<bool> {
        if self.run_ids.contains_key(key) {
            return Ok(true);
        }
        let sql = "SELECT 1 FROM run WHERE tenant = ?1 AND name = ?2";
        let mut known = connection.prepare_cached(sql)?;
        known.exists(params![&*key.tenant, &*key.id])
    }

    pub(super) fn new_thread(&mut self, key: ThreadKey, parallel: bool, now: Timestamp) -> ThreadHead {
        let id = self.next_thread;
        self.next_thread += 1;
        ThreadHead {
            id,
            key,
            parallel,
            created_at: now,
            seq: 0,
            at: Timestamp(0),
            deleted: false,
            open: Vec::new(),
            latest: None,
            producers: HashMap::new(),
            new: true,
        }
    }

    pub(super) fn new_run(&mut self, key: RunKey, thread: &ThreadHead, request: Request, now: Timestamp) -> RunHead {
        let id = self.next_run;
        self.next_run += 1;
        let state = RunState::new(&*thread.key.id, &*key.id);
        RunHead {
            id,
            key,
            thread: thread.id,
            thread_key: thread.key.clone(),
            request,
            created_at: now,
            started_at: None,
            ended_at: None,
            first_seq: None,
            last_seq: 0,
            deadline: None,
            trimmed: false,
            head: Head { state, summary: RunSummary::default() },
            stored_status: Status::Pending,
            producers: HashMap::new(),
            new: true,
            dirty: true,
        }
    }

    /// Forgets what can be loaded again, when there is too much of it. Only after a commit.
    pub(super) fn shrink(&mut self) {
        if self.runs.len() > limits::HEADS_AT_HAND || self.threads.len() > limits::HEADS_AT_HAND {
            self.runs.retain(|_, run| run.dirty);
            self.run_ids.retain(|_, id| self.runs.contains_key(id));
            self.threads.clear();
            self.thread_ids.clear();
        }
    }

    /// Writes a thread that is new.
    pub(super) fn save_thread(&mut self, connection: &Connection, id: i64) -> rusqlite::Result<()> {
        let Some(thread) = self.threads.get_mut(&id) else { return Ok(()) };
        if std::mem::take(&mut thread.new) {
            let sql = "INSERT INTO thread (id, tenant, name, parallel, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
            connection.prepare_cached(sql)?.execute(params![
                thread.id,
                &*thread.key.tenant,
                &*thread.key.id,
                thread.parallel,
                thread.created_at.0
            ])?;
        }
        save_producers(connection, "thread", thread.id, &mut thread.producers)
    }

    /// Writes what has changed of a run.
    pub(super) fn save_run(&mut self, connection: &Connection, id: i64) -> rusqlite::Result<()> {
        let Some(run) = self.runs.get_mut(&id) else { return Ok(()) };
        if std::mem::take(&mut run.dirty) {
            let head = serde_json::to_string(&run.head).map_err(json_error)?;
            let status = run.head.state.status;
            if std::mem::take(&mut run.new) {
                let request = serde_json::to_string(&run.request).map_err(json_error)?;
                let sql = "INSERT INTO run (id, tenant, name, thread, agent, request, status, created_at, started_at, \
                           ended_at, first_seq, last_seq, deadline, revision, head) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
                connection.prepare_cached(sql)?.execute(params![
                    run.id,
                    &*run.key.tenant,
                    &*run.key.id,
                    run.thread,
                    run.request.agent,
                    request,
                    status.as_str(),
                    run.created_at.0,
                    run.started_at.map(|at| at.0),
                    run.ended_at.map(|at| at.0),
                    run.first_seq,
                    run.last_seq,
                    run.deadline,
                    REVISION,
                    head
                ])?;
            } else if run.stored_status == status {
                // The common case touches no index.
                let sql = "UPDATE run SET head = ?2, last_seq = ?3, deadline = ?4 WHERE id = ?1";
                connection.prepare_cached(sql)?.execute(params![run.id, head, run.last_seq, run.deadline])?;
            } else {
                let sql = "UPDATE run SET head = ?2, last_seq = ?3, deadline = ?4, status = ?5, started_at = ?6, \
                           ended_at = ?7, first_seq = ?8 WHERE id = ?1";
                connection.prepare_cached(sql)?.execute(params![
                    run.id,
                    head,
                    run.last_seq,
                    run.deadline,
                    status.as_str(),
                    run.started_at.map(|at| at.0),
                    run.ended_at.map(|at| at.0),
                    run.first_seq
                ])?;
            }
            run.stored_status = status;
        }
        save_producers(connection, "run", run.id, &mut run.producers)
    }

    /// Marks runs of a deleted thread as gone from what is at hand.
    pub(super) fn forget_thread(&mut self, id: i64) {
        self.runs.retain(|_, run| run.thread != id);
        self.run_ids.retain(|_, run| self.runs.contains_key(run));
        self.threads.remove(&id);
        self.thread_ids.retain(|_, thread| *thread != id);
    }

    /// Drops a run that was made for frames of which none was accepted.
    pub(super) fn unmake_run(&mut self, run: &RunHead) {
        self.run_ids.remove(&run.key);
    }
}

fn save_producers(
    connection: &Connection,
    scope: &str,
    owner: i64,
    producers: &mut HashMap<String, ProducerHead>,
) -> rusqlite::Result<()> {
    for (name, producer) in producers.iter_mut().filter(|(_, producer)| producer.dirty) {
        let speech = serde_json::to_string(&producer.speech).map_err(json_error)?;
        let sql = "INSERT INTO producer (scope, owner, name, epoch, next, decoder) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                   ON CONFLICT DO UPDATE SET epoch = excluded.epoch, next = excluded.next, decoder = excluded.decoder";
        connection.prepare_cached(sql)?.execute(params![
            scope,
            owner,
            name,
            producer.epoch as i64,
            producer.next as i64,
            speech
        ])?;
        producer.dirty = false;
    }
    Ok(())
}

fn load_thread(connection: &Connection, filter: &str, by: &[&dyn rusqlite::ToSql]) -> Loaded<ThreadHead> {
    let sql = format!(
        "SELECT id, tenant, name, parallel, created_at, head, head_at, deleted_at FROM thread WHERE {filter}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let thread = statement.query_row(by, |row| {
        Ok(ThreadHead {
            id: row.get(0)?,
            key: ThreadKey::new(row.get::<_, String>(1)?, row.get::<_, String>(2)?),
            parallel: row.get(3)?,
            created_at: Timestamp(row.get(4)?),
            seq: row.get(5)?,
            at: Timestamp(row.get(6)?),
            deleted: row.get::<_, Option<u64>>(7)?.is_some(),
            open: Vec::new(),
            latest: None,
            producers: HashMap::new(),
            new: false,
        })
    });
    let Some(mut thread) = thread.optional()? else { return Ok(None) };
    if let Some((seq, at)) = last_record(connection, thread.id)? {
        (thread.seq, thread.at) = (seq, at);
    }
    let sql = "SELECT id FROM run WHERE thread = ?1 AND status IN ('pending', 'running', 'suspended') ORDER BY id";
    let mut open = connection.prepare_cached(sql)?;
    thread.open = open.query_map([thread.id], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let sql = "SELECT id FROM run WHERE thread = ?1 AND first_seq IS NOT NULL ORDER BY first_seq DESC LIMIT 1";
    thread.latest = connection.prepare_cached(sql)?.query_row([thread.id], |row| row.get(0)).optional()?;
    thread.producers = load_producers(connection, "thread", thread.id)?;
    Ok(Some(thread))
}

pub(super) const RUN_COLUMNS: &str = "run.id, run.tenant, run.name, run.thread, thread.name, run.request, \
     run.created_at, run.started_at, run.ended_at, run.first_seq, run.last_seq, run.deadline, run.trimmed, run.head, \
     thread.deleted_at, run.status";

/// Reads a run's row, without its producers.
pub(super) fn run_of_row(row: &Row<'_>) -> rusqlite::Result<RunHead> {
    let tenant: Arc<str> = row.get::<_, String>(1)?.into();
    let request: String = row.get(5)?;
    let head: Option<String> = row.get(13)?;
    let name: String = row.get(2)?;
    let thread_name: String = row.get(4)?;
    let head = match head {
        Some(head) => serde_json::from_str(&head).map_err(json_error)?,
        None => Head { state: RunState::new(&thread_name, &name), summary: RunSummary::default() },
    };
    Ok(RunHead {
        id: row.get(0)?,
        key: RunKey::new(tenant.clone(), name),
        thread: row.get(3)?,
        thread_key: ThreadKey::new(tenant, thread_name),
        request: serde_json::from_str(&request).map_err(json_error)?,
        created_at: Timestamp(row.get(6)?),
        started_at: row.get::<_, Option<u64>>(7)?.map(Timestamp),
        ended_at: row.get::<_, Option<u64>>(8)?.map(Timestamp),
        first_seq: row.get(9)?,
        last_seq: row.get(10)?,
        deadline: row.get(11)?,
        trimmed: row.get(12)?,
        stored_status: head.state.status,
        head,
        producers: HashMap::new(),
        new: false,
        dirty: false,
    })
}

fn load_run(connection: &Connection, filter: &str, by: &[&dyn rusqlite::ToSql]) -> Loaded<RunHead> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread WHERE {filter}");
    let mut statement = connection.prepare_cached(&sql)?;
    let Some(mut run) = statement.query_row(by, run_of_row).optional()? else { return Ok(None) };
    run.producers = load_producers(connection, "run", run.id)?;
    Ok(Some(run))
}

fn load_producers(
    connection: &Connection,
    scope: &str,
    owner: i64,
) -> rusqlite::Result<HashMap<String, ProducerHead>> {
    let sql = "SELECT name, epoch, next, decoder FROM producer WHERE scope = ?1 AND owner = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![scope, owner], |row| {
        let speech: Option<String> = row.get(3)?;
        let speech = speech.as_deref().map(serde_json::from_str).transpose().map_err(json_error)?;
        let speech = speech.unwrap_or_default();
        Ok((row.get(0)?, ProducerHead {
            epoch: row.get::<_, i64>(1)? as u64,
            next: row.get::<_, i64>(2)? as u64,
            speech,
            dirty: false,
        }))
    })?;
    rows.collect()
}

/// A state that cannot be written or read is a fault of the store.
pub(super) fn json_error(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
}
