//! What the writer has at hand of threads, runs and producers: loaded when needed, written back at the commit.

use std::collections::HashMap;

use runwire_model::Timestamp;
use runwire_model::dialect::Decoder;
use runwire_model::run::{RunState, Status};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::desk::Desk;
use super::rows::{load_run, load_thread};
use crate::info::{NewRun, RunInfo, RunSummary, beginning};
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
    /// Whether it is found at hand by its key.
    pub(super) listed: bool,
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
    /// Whether its row is behind.
    pub(super) dirty: bool,
    /// Whether the journal is behind, too.
    pub(super) unnoted: bool,
    /// Whether it is found at hand by its key.
    pub(super) listed: bool,
}

/// The part of a run that changes with every record.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) state: RunState,
    pub(super) summary: RunSummary,
}

/// What created a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Request {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) thread_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message_id: Option<String>,
    /// As JSON text, so that numbers keep their digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<String>,
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
            message_id: run.message_id.clone(),
            input: run.input.as_ref().map(|input| input.text().to_owned()),
            asked: true,
        }
    }

    /// Tells whether two requests ask for the same run; how their JSON is laid out does not matter.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let words = |request: &Self| {
            let Self { thread_id, agent, message, message_id, asked, .. } = request.clone();
            (thread_id, agent, message, message_id, asked)
        };
        let input = |request: &Self| request.input.as_deref().map(serde_json::from_str::<serde_json::Value>);
        words(self) == words(other)
            && match (input(self), input(other)) {
                (Some(Ok(one)), Some(Ok(another))) => one == another,
                (None, None) => true,
                _ => false,
            }
    }
}

/// A producer, as the writer knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct ProducerHead {
    pub(super) epoch: u64,
    pub(super) next: u64,
    pub(super) speech: Speech,
    /// Whether its row is behind.
    pub(super) dirty: bool,
    /// Whether the journal is behind, too.
    pub(super) unnoted: bool,
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
            summary: self.summary(),
        }
    }

    /// What is counted; before the first record, what the person asked is known from the request alone.
    fn summary(&self) -> RunSummary {
        let mut summary = self.head.summary.clone();
        if self.first_seq.is_none() {
            summary.message = self.request.message.as_deref().map(|message| beginning(message).to_owned());
        }
        summary
    }
}

/// The heads at hand.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// In boxes, because they are taken out and brought back with every append.
    threads: HashMap<i64, Box<ThreadHead>>,
    thread_ids: HashMap<ThreadKey, i64>,
    runs: HashMap<i64, Box<RunHead>>,
    run_ids: HashMap<RunKey, i64>,
    next_thread: i64,
    next_run: i64,
}

pub(super) type Loaded<T> = rusqlite::Result<Option<T>>;

impl Heads {
    pub(super) fn open(connection: &Connection) -> rusqlite::Result<Self> {
        let last = |table: &str| {
            let sql = format!("SELECT coalesce(max(id), 0) FROM {table}");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0))
        };
        Ok(Self { next_thread: last("thread")? + 1, next_run: last("run")? + 1, ..Self::default() })
    }

    /// Takes a thread out to work on it; [`Heads::put_thread`] brings it back.
    pub(super) fn take_thread(&mut self, connection: &Desk, key: &ThreadKey) -> Loaded<Box<ThreadHead>> {
        if let Some(id) = self.thread_ids.get(key) {
            return Ok(self.threads.remove(id));
        }
        load_thread(connection, "tenant = ?1 AND name = ?2", params![&*key.tenant, &*key.id])
    }

    pub(super) fn take_thread_by_id(&mut self, connection: &Desk, id: i64) -> Loaded<Box<ThreadHead>> {
        match self.threads.remove(&id) {
            Some(thread) => Ok(Some(thread)),
            None => load_thread(connection, "id = ?1", params![id]),
        }
    }

    pub(super) fn put_thread(&mut self, mut thread: Box<ThreadHead>) {
        if !std::mem::replace(&mut thread.listed, true) {
            self.thread_ids.insert(thread.key.clone(), thread.id);
        }
        self.threads.insert(thread.id, thread);
    }

    /// Takes a run out to work on it; [`Heads::put_run`] brings it back.
    pub(super) fn take_run(&mut self, connection: &Desk, key: &RunKey) -> Loaded<Box<RunHead>> {
        if let Some(id) = self.run_ids.get(key) {
            return Ok(self.runs.remove(id));
        }
        load_run(connection, "run.tenant = ?1 AND run.name = ?2", params![&*key.tenant, &*key.id])
    }

    pub(super) fn take_run_by_id(&mut self, connection: &Desk, id: i64) -> Loaded<Box<RunHead>> {
        match self.runs.remove(&id) {
            Some(run) => Ok(Some(run)),
            None => load_run(connection, "run.id = ?1", params![id]),
        }
    }

    pub(super) fn put_run(&mut self, mut run: Box<RunHead>) {
        if !std::mem::replace(&mut run.listed, true) {
            self.run_ids.insert(run.key.clone(), run.id);
        }
        self.runs.insert(run.id, run);
    }

    /// Tells whether the request at hand has made a thread: nobody else knows of it yet.
    pub(super) fn is_fresh_thread(&self, thread: &ThreadHead) -> bool {
        thread.new && !self.thread_ids.contains_key(&thread.key)
    }

    /// Tells whether the request at hand has made a run: nobody else knows of it yet.
    pub(super) fn is_fresh_run(&self, run: &RunHead) -> bool {
        run.new && !self.run_ids.contains_key(&run.key)
    }

    /// Finds a thread that is at hand, to write it back.
    pub(super) fn thread_mut(&mut self, id: i64) -> Option<&mut ThreadHead> {
        self.threads.get_mut(&id).map(|thread| &mut **thread)
    }

    /// Finds a run that is at hand, to write it back.
    pub(super) fn run_mut(&mut self, id: i64) -> Option<&mut RunHead> {
        self.runs.get_mut(&id).map(|run| &mut **run)
    }

    /// Tells whether a run id is taken.
    pub(super) fn has_run(&self, connection: &Desk, key: &RunKey) -> rusqlite::Result<bool> {
        if self.run_ids.contains_key(key) {
            return Ok(true);
        }
        let sql = "SELECT 1 FROM run WHERE tenant = ?1 AND name = ?2";
        let mut known = connection.prepare_cached(sql)?;
        known.exists(params![&*key.tenant, &*key.id])
    }

    pub(super) fn new_thread(&mut self, key: ThreadKey, parallel: bool, now: Timestamp) -> Box<ThreadHead> {
        let id = self.next_thread;
        self.next_thread += 1;
        Box::new(ThreadHead {
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
            listed: false,
        })
    }

    pub(super) fn new_run(
        &mut self,
        key: RunKey,
        thread: &ThreadHead,
        request: Request,
        now: Timestamp,
    ) -> Box<RunHead> {
        let id = self.next_run;
        self.next_run += 1;
        let state = RunState::new(&*thread.key.id, &*key.id);
        Box::new(RunHead {
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
            unnoted: false,
            listed: false,
        })
    }

    /// Tells whether there is too much at hand.
    pub(super) fn is_crowded(&self) -> bool {
        self.runs.len() > limits::HEADS_AT_HAND || self.threads.len() > limits::HEADS_AT_HAND
    }

    /// Finds the thread of a key that is at hand.
    pub(super) fn thread_at_hand(&self, key: &ThreadKey) -> Option<i64> {
        self.thread_ids.get(key).copied()
    }

    /// Finds the thread of a run that is at hand.
    pub(super) fn thread_of_run_at_hand(&self, key: &RunKey) -> Option<i64> {
        self.run_ids.get(key).and_then(|id| self.runs.get(id)).map(|run| run.thread)
    }

    /// Forgets what can be loaded again, when there is too much of it. Only after a commit that sealed all.
    pub(super) fn shrink(&mut self) {
        if self.is_crowded() {
            self.runs.retain(|_, run| run.dirty);
            self.run_ids.retain(|_, id| self.runs.contains_key(id));
            self.threads.clear();
            self.thread_ids.clear();
        }
    }

    /// Drops a deleted thread and its runs from what is at hand.
    pub(super) fn forget_thread(&mut self, id: i64) {
        self.runs.retain(|_, run| run.thread != id);
        self.run_ids.retain(|_, run| self.runs.contains_key(run));
        self.threads.remove(&id);
        self.thread_ids.retain(|_, thread| *thread != id);
    }
}
