//! Nodes on one store and one Redis, and readers on them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use runwire_engines::{Postgres as Engine, Redis};
use runwire_log::cluster::{ClusterStats, TailOptions};
use runwire_log::postgres::{PgOptions, PostgresLog};
use runwire_log::{Append, FrameBatch, LogError, LogEvents, RunKey, Target, ThreadKey};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Longer than anything takes that happens at all.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Fixture {
    pub(super) store: Engine,
    pub(super) redis: Redis,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self { store: Engine::start().unwrap(), redis: Redis::start().unwrap() }
    }

    /// Starts a node whose Redis stands.
    pub(super) async fn node(&self) -> Node {
        self.node_by(self.redis.address()).await
    }

    /// The same, by another address of Redis.
    pub(super) async fn node_by(&self, redis: SocketAddr) -> Node {
        let node = Node::open(self.store.url("postgres"), Some(self.redis.url_by(redis))).await;
        node.is(|stats| stats.tail.as_ref().is_some_and(|tail| tail.links.up())).await;
        node
    }

    /// Starts a node without Redis.
    pub(super) async fn node_alone(&self) -> Node {
        Node::open(self.store.url("postgres"), None).await
    }
}

#[derive(Clone)]
pub(super) struct Node {
    pub(super) log: Arc<PostgresLog>,
}

impl Node {
    pub(super) async fn open(url: String, redis: Option<String>) -> Self {
        let tail = redis.map(|url| TailOptions { url, trust: None });
        let options = PgOptions { tail, ..PgOptions::default() };
        let opened = tokio::task::spawn_blocking(move || PostgresLog::open(&url, &options).unwrap());
        Self { log: Arc::new(opened.await.unwrap()) }
    }

    /// Writes a record of some size to the run of a thread; tries again until the store takes it.
    pub(super) async fn write(&self, thread: &str, bytes: usize) {
        let mut frames = FrameBatch::default();
        let data = format!(r#"{{"type":"custom","name":"n","value":"{}"}}"#, "x".repeat(bytes));
        frames.push(1, None, data.as_bytes());
        let target = Target::Run(RunKey::new("tenant", thread));
        let append = Append {
            target,
            thread: Some(thread.into()),
            dialect: None,
            stamp: None,
            frames,
            end: false,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        };
        self.log.append(append).await.unwrap();
    }

    pub(super) async fn write_all(&self, thread: &str, records: usize) {
        for _ in 0..records {
            self.write(thread, 10).await;
        }
    }

    pub(super) fn stats(&self) -> ClusterStats {
        self.log.cluster()
    }

    /// Waits until the statistics fulfil a condition.
    pub(super) async fn is(&self, mut so: impl FnMut(&ClusterStats) -> bool) {
        let wait = async {
            while !so(&self.stats()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = timeout(PATIENCE, wait).await;
        waited.unwrap_or_else(|_| panic!("the statistics never fulfil the condition: {:?}", self.stats()));
    }

    /// Waits until Redis stands, or does not.
    pub(super) async fn is_told(&self, up: bool) {
        self.is(|stats| stats.tail.as_ref().is_some_and(|tail| tail.links.subscribing.up == up)).await;
    }

    /// Begins to read a thread, as a reader does: the tail first, and what that does not have from the store.
    pub(super) fn reader(&self, thread: &str) -> Reader {
        let (told, seen) = watch::channel(Seen::default());
        let log = self.log.clone();
        let thread = ThreadKey::new("tenant", thread);
        Reader { seen, node: self.clone(), task: tokio::spawn(follow(log, thread, told)) }
    }

    /// Begins to read a thread that the node follows, which is waited for.
    pub(super) async fn reader_in_place(&self, thread: &str) -> Reader {
        let followed = self.stats().followed;
        let reader = self.reader(thread);
        self.is(|stats| stats.followed > followed && stats.unknown == 0).await;
        reader
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) records: u64,
    pub(super) reads: u64,
    pub(super) has_ended: bool,
}

/// Reads a thread, and panics at whatever a reader must not see.
pub(super) struct Reader {
    seen: watch::Receiver<Seen>,
    node: Node,
    task: JoinHandle<()>,
}

impl Reader {
    pub(super) async fn has(&mut self, records: u64) {
        self.is(|seen| seen.records >= records).await;
    }

    pub(super) async fn is(&mut self, so: impl FnMut(&Seen) -> bool) {
        let waited = timeout(PATIENCE, self.seen.wait_for(so)).await.map(|seen| seen.map(|seen| *seen));
        match waited {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => panic!("the reader has failed after {:?}", self.seen()),
            Err(_) => panic!("it waits in vain after {:?}: {:?}", self.seen(), self.node.stats()),
        }
    }

    pub(super) fn seen(&self) -> Seen {
        *self.seen.borrow()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(log: Arc<PostgresLog>, thread: ThreadKey, told: watch::Sender<Seen>) {
    let tail = log.tail(&thread);
    let mut heads = tail.watch();
    let mut seen = Seen::default();
    loop {
        let head = *heads.borrow_and_update();
        let records = match tail.after(seen.records) {
            Some(records) => records,
            None => {
                seen.reads += 1;
                match log.read(&thread, seen.records).await {
                    Ok(page) => page.records,
                    Err(LogError::ThreadUnknown(_)) => Vec::new(),
                    Err(LogError::ThreadDeleted(_)) => {
                        seen.has_ended = true;
                        told.send_replace(seen);
                        return;
                    }
                    Err(LogError::Unavailable(_)) => {
                        sleep(Duration::from_millis(20)).await;
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        };
        for stored in &records {
            assert_eq!(stored.record.seq, seen.records + 1, "each record once and in order");
            assert_eq!(*stored.run, *thread.id, "with the name of its run");
            seen.records += 1;
        }
        told.send_replace(seen);
        if records.is_empty() {
            assert!(head.seq <= seen.records, "what is announced is there");
            if head.deleted {
                told.send_modify(|seen| seen.has_ended = true);
                return;
            }
            if heads.changed().await.is_err() {
                return;
            }
        }
    }
}
