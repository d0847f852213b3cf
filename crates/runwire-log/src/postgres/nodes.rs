//! The nodes of a cluster: heartbeats, the leader, and orphaned runs.
//!
//! Each node has a row that it renews with every heartbeat; all times are the store's. If no node at all could send a
//! heartbeat for a while, neither could producers renew their leases: the first heartbeat after such a gap moves all
//! leases by it, so that an outage of the store ends no run.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::address::PgAddress;
use super::connection::PgConnection;
use super::error::{PgError, PgResult};
use super::rows::{number, to_i64};
use super::writer::LeaseTerms;
use super::{generation, leases, txn_store};
use crate::limits;
use crate::sql::purge_step;
use crate::txn::mint;
use crate::unreadable_rows::UnreadableRows;

/// Called when the process should end.
pub(super) type OnFatal = Arc<dyn Fn(&str) + Send + Sync>;

/// Heartbeats in the time after which a silent node counts as gone.
const HEARTBEATS_PER_TERM: u32 = 10;

/// The record of a node in the table of nodes.
#[derive(Debug, Clone)]
pub(super) struct NodeRecord {
    /// Unique for each start of the node.
    pub(super) id: Arc<str>,
    name: String,
    term: Duration,
}

impl NodeRecord {
    pub(super) fn new(name: &str, term: Duration) -> Self {
        Self { id: mint().into(), name: name.to_owned(), term }
    }

    /// Returns the interval of heartbeats.
    fn interval(&self) -> Duration {
        self.term / HEARTBEATS_PER_TERM
    }

    fn term_millis(&self) -> u64 {
        u64::try_from(self.term.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the gap between heartbeats of all nodes after which the leases are moved.
    fn gap_millis(&self) -> i64 {
        to_i64(self.term_millis() / 2)
    }
}

/// The nodes, as this one knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// Unique for each start of this node.
    pub id: String,
    /// Number of live nodes.
    pub alive: u64,
    /// Whether this node is the leader.
    pub is_leader: bool,
}

/// The result of a heartbeat.
#[derive(Debug, Clone)]
struct Heartbeat {
    /// Before it began.
    at: Instant,
    alive: u64,
    is_first: bool,
    /// The newest outbox message.
    last_message: i64,
}

/// What a node knows of the cluster, shared with the heartbeat thread.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) node: NodeRecord,
    /// The generation of the store when this node started.
    pub(super) generation: String,
    last: Mutex<Option<Heartbeat>>,
    /// The subscribers, once they are set.
    subscribers: Mutex<Option<Vec<String>>>,
    /// How long leases are.
    terms: LeaseTerms,
    /// Runs that were claimed by a transaction with an unknown outcome.
    pub(super) claims: Mutex<Vec<i64>>,
    /// Orphaned runs that cannot be read.
    pub(super) unreadable: Arc<UnreadableRows>,
}

impl Membership {
    /// Registers a node.
    pub(super) fn register(
        connection: &PgConnection,
        address: &PgAddress,
        node: NodeRecord,
        terms: LeaseTerms,
    ) -> PgResult<Arc<Self>> {
        let generation = generation::check(connection)?;
        let last = Mutex::new(Some(heartbeat(connection, address, &node, terms, true)?));
        Ok(Arc::new(Self {
            node,
            generation,
            last,
            subscribers: Mutex::default(),
            terms,
            claims: Mutex::default(),
            unreadable: address.unreadable.clone(),
        }))
    }

    /// Returns whether this node is the leader: the live node that has been there for longest.
    pub(super) fn is_leader(&self) -> bool {
        // Its row is valid for a term after the heartbeat; no other node becomes the leader before.
        self.last().as_ref().is_some_and(|beat| beat.is_first && beat.at.elapsed() < self.node.term)
    }

    /// Returns the time since the last successful heartbeat.
    pub(super) fn since_heartbeat(&self) -> Duration {
        self.last().as_ref().map_or(Duration::MAX, |beat| beat.at.elapsed())
    }

    /// Returns whether no heartbeat is late.
    pub(super) fn is_on_time(&self) -> bool {
        // A heartbeat takes a moment, and may wait for another node's.
        self.since_heartbeat() < self.node.interval() * 3 / 2
    }

    /// Returns the known nodes.
    pub(super) fn nodes(&self) -> Nodes {
        let alive = self.last().as_ref().map_or(0, |beat| beat.alive);
        Nodes { id: self.node.id.to_string(), alive, is_leader: self.is_leader() }
    }

    /// Sets the subscribers.
    pub(super) fn subscribe(&self, names: Vec<String>) {
        *self.subscribers.lock().unwrap_or_else(PoisonError::into_inner) = Some(names);
    }

    fn subscribers(&self) -> Option<Vec<String>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn last(&self) -> MutexGuard<'_, Option<Heartbeat>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops the heartbeat thread.
#[derive(Debug)]
pub(super) struct HeartbeatHandle(mpsc::Sender<oneshot::Sender<()>>);

impl HeartbeatHandle {
    /// Deregisters the node, and waits for that.
    pub(super) async fn deregister(&self) {
        let (done, gone) = oneshot::channel();
        if self.0.send(done).is_ok() {
            let _ = gone.await;
        }
    }
}

/// Starts the heartbeat thread. Dropping the handle stops it without deregistering the node, as after a crash.
pub(super) fn start(
    address: PgAddress,
    membership: Arc<Membership>,
    outbox_changed: Arc<watch::Sender<()>>,
    fatal: OnFatal,
) -> PgResult<HeartbeatHandle> {
    let (stop, stopped) = mpsc::channel();
    let mut task =
        HeartbeatTask { address, connection: None, membership, outbox_changed, fatal, cleaned_at: None };
    task.connection = Some(task.connect()?);
    std::thread::Builder::new().name("log-node".into()).spawn(move || task.run(&stopped))?;
    Ok(HeartbeatHandle(stop))
}

/// The heartbeat thread.
struct HeartbeatTask {
    address: PgAddress,
    connection: Option<PgConnection>,
    membership: Arc<Membership>,
    outbox_changed: Arc<watch::Sender<()>>,
    fatal: OnFatal,
    /// When stale rows were last removed.
    cleaned_at: Option<Instant>,
}

impl HeartbeatTask {
    fn run(mut self, stopped: &mpsc::Receiver<oneshot::Sender<()>>) {
        let every = self.membership.node.interval();
        let mut next = Instant::now() + every;
        loop {
            match stopped.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(done) => {
                    self.deregister();
                    // The caller may be gone.
                    let _ = done.send(());
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            next = Instant::now() + every;
            let (was_away, silence) = (self.connection.is_none(), self.membership.since_heartbeat());
            match self.heartbeat(next) {
                Ok(()) if was_away => {
                    let seconds = silence.as_secs();
                    tracing::info!(seconds, "the store is back: heartbeats continue");
                }
                Ok(()) => {}
                Err(failure) => {
                    if !was_away {
                        tracing::warn!(%failure, "the heartbeat of this node failed");
                    }
                    self.connection = None;
                }
            }
        }
    }

    /// Connects with a timeout that leaves time for another attempt.
    fn connect(&self) -> PgResult<PgConnection> {
        PgConnection::open_within(&self.address, self.membership.node.term / 3)
    }

    fn heartbeat(&mut self, until: Instant) -> PgResult<()> {
        let connection = match self.connection.take().filter(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => {
                let connection = self.connect()?;
                self.check_generation(&connection)?;
                connection
            }
        };
        let beat =
            heartbeat(&connection, &self.address, &self.membership.node, self.membership.terms, false)?;
        let before = self.membership.last().replace(beat.clone());
        let has_new_messages =
            before.is_none_or(|before| before.last_message != beat.last_message || !before.is_first);
        if beat.is_first && has_new_messages {
            // Other nodes may have added outbox messages, which the leader delivers.
            self.outbox_changed.send_replace(());
        }
        if beat.is_first {
            while Instant::now() < until && purge_step(&connection)? {}
            self.forget_stale(&connection)?;
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// Checks that this is still the store that was opened. Another may lack records that readers of this node have
    /// seen.
    fn check_generation(&self, connection: &PgConnection) -> PgResult<()> {
        if generation::check(connection)? != self.membership.generation {
            (self.fatal)("the store was restored, or another server took over since this node began");
        }
        Ok(())
    }

    /// Removes rows of nodes that are long gone, and old messages of unknown subscribers.
    fn forget_stale(&mut self, connection: &PgConnection) -> PgResult<()> {
        let every = Duration::from_secs(limits::STALE_CHECK_SECONDS);
        let Some(subscribers) = self.membership.subscribers() else { return Ok(()) };
        if self.cleaned_at.is_some_and(|cleaned_at| cleaned_at.elapsed() < every) {
            return Ok(());
        }
        let old = to_i64(txn_store::now(connection)?.0.saturating_sub(limits::STALE_AFTER_MILLIS));
        connection.execute("DELETE FROM node WHERE seen_until < $1", &[&old])?;
        // Younger messages may belong to a configuration that this node does not have yet, or no more.
        let sql = "DELETE FROM outbox WHERE subscriber <> ALL($1) AND at < $2";
        connection.execute(sql, &[&subscribers, &old])?;
        self.cleaned_at = Some(Instant::now());
        Ok(())
    }

    /// Removes the row of the node, so that its runs are claimed at once.
    fn deregister(&mut self) {
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.connect(),
        };
        let id = &*self.membership.node.id;
        let gone =
            connection.and_then(|connection| connection.execute("DELETE FROM node WHERE id = $1", &[&id]));
        if let Err(failure) = gone {
            tracing::debug!(%failure, "the node cannot deregister; it counts as gone soon");
        }
    }
}

/// Sends a heartbeat, and reads the other nodes. After a gap this takes as long as moving all leases does.
fn heartbeat(
    connection: &PgConnection,
    address: &PgAddress,
    node: &NodeRecord,
    terms: LeaseTerms,
    is_first: bool,
) -> PgResult<Heartbeat> {
    let is_alone = is_first && is_alone(connection)?;
    let beat = match in_transaction(connection, || heartbeat_unless_gap(connection, node))? {
        Some(beat) => beat,
        None => {
            let patient =
                PgConnection::open_within(address, Duration::from_secs(limits::LEASE_SHIFT_SECONDS))?;
            in_transaction(&patient, || heartbeat_after_gap(&patient, node, terms).map(Some))?
                .ok_or_else(|| PgError::Damaged("a heartbeat has no result".into()))?
        }
    };
    if is_alone {
        leases::renew_all(connection, terms)?;
    }
    Ok(beat)
}

/// Runs `work` in a transaction, and commits it if there is a result.
fn in_transaction(
    connection: &PgConnection,
    work: impl FnOnce() -> PgResult<Option<Heartbeat>>,
) -> PgResult<Option<Heartbeat>> {
    // All nodes would wait for one that hangs in here.
    connection.run("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 2000")?;
    let result = work();
    match &result {
        Ok(Some(_)) => connection.run("COMMIT")?,
        // If this fails, too, the connection is gone, and with it the transaction.
        Ok(None) | Err(_) => drop(connection.run("ROLLBACK")),
    }
    result
}

/// Returns whether no other node is live: then no producer could have renewed a lease.
fn is_alone(connection: &PgConnection) -> PgResult<bool> {
    let now = to_i64(txn_store::now(connection)?.0);
    // After a gap the earlier nodes may come back: their leases are moved.
    let sql = "SELECT 1 FROM node, store WHERE seen_until > least($1, alive_at) LIMIT 1";
    Ok(connection.first(sql, &[&now])?.is_none())
}

/// Returns the time, and the gap since the last heartbeat of any node, if it is long.
fn heartbeat_gap(connection: &PgConnection, node: &NodeRecord) -> PgResult<(i64, Option<i64>)> {
    let alive_at: i64 = connection.one("SELECT alive_at FROM store FOR UPDATE", &[])?.get(0);
    let now = to_i64(txn_store::now(connection)?.0);
    let gap = now - alive_at;
    Ok((now, Some(gap).filter(|gap| gap.abs() > node.gap_millis() && alive_at > 0)))
}

fn heartbeat_unless_gap(connection: &PgConnection, node: &NodeRecord) -> PgResult<Option<Heartbeat>> {
    let at = Instant::now();
    match heartbeat_gap(connection, node)? {
        (now, None) => record_heartbeat(connection, node, now, at).map(Some),
        _ => Ok(None),
    }
}

/// Moves all leases, then sends the heartbeat.
fn heartbeat_after_gap(
    connection: &PgConnection,
    node: &NodeRecord,
    terms: LeaseTerms,
) -> PgResult<Heartbeat> {
    connection.run("SET LOCAL statement_timeout = 0")?;
    let (found, gap) = heartbeat_gap(connection, node)?;
    if let Some(gap) = gap {
        tracing::info!(millis = gap, "no node sent a heartbeat for a while: all leases are moved");
        leases::move_all(connection, terms, found, gap)?;
    }
    // Moving them may have taken some time.
    let (at, now) = (Instant::now(), to_i64(txn_store::now(connection)?.0));
    if let Some(gap) = gap {
        leases::renew_late(connection, terms, now)?;
        connection.execute("UPDATE node SET seen_until = seen_until + $1", &[&(gap + now - found)])?;
    }
    record_heartbeat(connection, node, now, at)
}

fn record_heartbeat(
    connection: &PgConnection,
    node: &NodeRecord,
    now: i64,
    at: Instant,
) -> PgResult<Heartbeat> {
    let sql = "UPDATE store SET alive_at = $1, alive_until = $2";
    connection.execute(sql, &[&now, &now.saturating_add(node.gap_millis())])?;
    let until = now.saturating_add(to_i64(node.term_millis()));
    let sql = "INSERT INTO node (id, name, version, started_at, seen_until) VALUES ($1, $2, $3, $4, $5) \
               ON CONFLICT (id) DO UPDATE SET seen_until = excluded.seen_until";
    connection.execute(sql, &[&&*node.id, &node.name, &env!("CARGO_PKG_VERSION"), &now, &until])?;
    let sql = "SELECT count(*), (array_agg(id ORDER BY started_at, id))[1] = $2, \
               (SELECT coalesce(max(id), 0) FROM outbox) FROM node WHERE seen_until > $1";
    let row = connection.one(sql, &[&now, &&*node.id])?;
    Ok(Heartbeat { at, alive: number(&row, 0), is_first: row.get(1), last_message: row.get(2) })
}
