//! Nodes that leave or crash: orphaned runs, the next leader, and cleanup.

use std::sync::Arc;
use std::time::Duration;

use runwire_engines::{Mode, Proxy};
use runwire_log::postgres::{PgOptions, PostgresLog};
use runwire_log::{
    Append, FrameBatch, LogError, LogEvents, LogLookups, LogNode, LogOutbox, LogRuns, LogUpkeep, NewRun,
    OutboxKind, RetentionLimits, RunKey, Stamp, Subscriber, Target, ThreadKey,
};

/// Long enough for a machine with much to do, and not for a test that waits for it.
const TERM: Duration = Duration::from_secs(4);

struct Cluster(runwire_engines::Postgres);

impl Cluster {
    fn start() -> Self {
        Self(runwire_engines::Postgres::start().unwrap())
    }

    async fn node(&self) -> Arc<PostgresLog> {
        self.node_by(self.0.url("postgres")).await
    }

    async fn node_by(&self, url: String) -> Arc<PostgresLog> {
        let options = PgOptions { node_term: TERM, ..PgOptions::default() };
        // Opening waits, which a thread of the runtime must not.
        Arc::new(
            tokio::task::spawn_blocking(move || PostgresLog::open(&url, &options).unwrap()).await.unwrap(),
        )
    }

    fn sql(&self, statement: &str) -> String {
        self.0.query("postgres", statement).unwrap().trim().to_owned()
    }
}

/// Looks until something is so.
async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..1200 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came to be");
}

fn run(id: &str) -> RunKey {
    RunKey::new("tenant", id)
}

fn started(id: &str) -> NewRun {
    NewRun {
        tenant: "tenant".into(),
        run_id: Some(id.into()),
        agent: Some("a".into()),
        is_started_here: true,
        ..NewRun::default()
    }
}

fn frames(id: &str, stamp: Option<(u64, u64)>, frames: &[&str]) -> Append {
    let mut batch = FrameBatch::default();
    frames.iter().for_each(|frame| batch.push(1, None, frame.as_bytes()));
    let stamp = stamp.map(|(epoch, index)| Stamp { producer: "p".into(), epoch, index });
    let (thread, dialect) = (None, Some(runwire_model::dialect::Dialect::Runwire));
    Append {
        target: Target::Run(run(id)),
        thread,
        dialect,
        stamp,
        frames: batch,
        end: false,
        check: Default::default(),
        whole: Default::default(),
        parallel: false,
    }
}

const STARTED: &str = r#"{"type":"run.started"}"#;
const COMPLETED: &str = r#"{"type":"run.completed"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn each_orphan_is_claimed_by_one_node_once_its_own_is_gone() {
    const RUNS: usize = 40;
    let cluster = Cluster::start();
    let (one, another, third) = (cluster.node().await, cluster.node().await, cluster.node().await);
    for at in 0..RUNS {
        one.create_run(started(&format!("r{at}"))).await.unwrap();
    }
    for node in [&another, &third] {
        until(async || (node.nodes().alive == 3).then_some(())).await;
        assert_eq!(node.claim_orphans(&["a"], 10).await.unwrap(), []);
    }
    // Without a word, as a process that is killed.
    drop(one);
    let takes = [another.clone(), third.clone()].map(|node| {
        tokio::spawn(async move {
            let mut taken = Vec::new();
            while let Some(left) = left_of(&node).await {
                taken.extend(left);
            }
            taken
        })
    });
    let mut taken = Vec::new();
    for takes in takes {
        taken.extend(takes.await.unwrap());
    }
    taken.sort();
    let mut all: Vec<String> = (0..RUNS).map(|at| format!("r{at}")).collect();
    all.sort();
    assert_eq!(taken, all);
}

/// Claims some runs; returns none once every run belongs to a live node.
async fn left_of(node: &PostgresLog) -> Option<Vec<String>> {
    loop {
        let is_gone = node.nodes().alive == 2;
        let left = node.claim_orphans(&["a"], 3).await.unwrap();
        if !left.is_empty() || is_gone {
            return (!left.is_empty()).then(|| left.into_iter().map(|left| left.run.run_id).collect());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_falls_silent_loses_its_runs_and_is_refused_when_it_comes_back() {
    let cluster = Cluster::start();
    let way = Proxy::start(cluster.0.address()).await.unwrap();
    let silent = cluster.node_by(cluster.0.url_by(way.address(), "postgres")).await;
    let other = cluster.node().await;
    silent.create_run(started("r")).await.unwrap();
    silent.append(frames("r", Some((1, 0)), &[STARTED])).await.unwrap();
    assert!(silent.is_leader() && !other.is_leader());
    way.set(Mode::Stall);
    let left = until(async || other.claim_orphans(&["a"], 1).await.unwrap().pop()).await;
    assert_eq!(left.run.run_id, "r");
    // It knows by itself that its time is over.
    assert!(!silent.is_leader());
    until(async || other.is_leader().then_some(())).await;
    other
        .append(frames("r", Some((2, 1)), &[r#"{"type":"notice","level":"debug","message":"m"}"#]))
        .await
        .unwrap();
    way.set(Mode::Pass);
    let refused = until(async || match silent.append(frames("r", Some((1, 1)), &[COMPLETED])).await {
        Err(LogError::Unavailable(_) | LogError::Uncertain(_)) => None,
        said => Some(said),
    })
    .await;
    assert!(matches!(refused, Err(LogError::ProducerFenced { .. })), "{refused:?}");
    until(async || (other.nodes().alive == 2).then_some(())).await;
    assert_eq!(silent.claim_orphans(&["a"], 1).await.unwrap(), []);
    assert_eq!(other.run(&run("r")).await.unwrap().status.as_str(), "running");
}

/// An hour in which no node could reach the store: everything that is known is as of an hour ago.
const AN_HOUR: &str = "UPDATE store SET alive_at = alive_at - 3600000, alive_until = alive_until - 3600000; \
     UPDATE run SET lease_until = lease_until - 3600000; UPDATE node SET seen_until = seen_until - 3600000";

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_store_ends_no_run() {
    let cluster = Cluster::start();
    let (one, another) = (cluster.node().await, cluster.node().await);
    one.create_run(started("r")).await.unwrap();
    one.append(frames("r", None, &[STARTED])).await.unwrap();
    cluster.sql(AN_HOUR);
    let late = "SELECT count(*) FROM run WHERE lease_until < extract(epoch FROM clock_timestamp()) * 1000";
    until(async || {
        // Whether or not a node has shown yet that it is there.
        assert_eq!((one.sweep().await, another.sweep().await), (Ok(0), Ok(0)));
        assert_eq!(another.claim_orphans(&["a"], 1).await, Ok(Vec::new()));
        (cluster.sql(late) == "0").then_some(())
    })
    .await;
    assert_eq!((one.sweep().await, another.sweep().await), (Ok(0), Ok(0)));
    assert_eq!(another.claim_orphans(&["a"], 1).await, Ok(Vec::new()));
    assert_eq!(one.run(&run("r")).await.unwrap().status.as_str(), "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_is_the_leader_and_the_next_one_when_it_goes() {
    let cluster = Cluster::start();
    let nodes = [cluster.node().await, cluster.node().await, cluster.node().await];
    for at in 0..nodes.len() {
        until(async || nodes[at].is_leader().then_some(())).await;
        assert!(nodes[at + 1..].iter().all(|node| !node.is_leader()));
        nodes[at].close().await;
        assert_eq!(cluster.sql("SELECT count(*) FROM node"), (nodes.len() - at - 1).to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_deleted_thread_leaves_is_purged_by_the_leader() {
    let cluster = Cluster::start();
    let node = cluster.node().await;
    for at in 0..30 {
        let write = frames(&format!("r{at}"), Some((1, 0)), &[STARTED, COMPLETED]);
        node.append(Append { thread: Some("t".into()), ..write }).await.unwrap();
    }
    // Some of its runs are trimmed already.
    let retention = RetentionLimits { max_bytes: Some(2000), ..RetentionLimits::default() };
    assert!(node.trim(retention).await.unwrap() > 0);
    node.delete_thread(&ThreadKey::new("tenant", "t"), false).await.unwrap();
    // Whether or not it has begun with it.
    drop(node);
    let node = cluster.node().await;
    let left = "SELECT (SELECT count(*) FROM chunk) + (SELECT count(*) FROM producer) + (SELECT count(*) FROM run \
                WHERE request <> '{}' OR head IS NOT NULL) + (SELECT count(*) FROM thread WHERE unpurged)";
    until(async || (cluster.sql(left) == "0").then_some(())).await;
    let deleted = LogError::ThreadDeleted("t".into());
    assert_eq!(node.run(&run("r0")).await, Err(deleted.clone()));
    let again = NewRun { thread_id: Some("t".into()), ..started("r3") };
    assert_eq!(node.create_run(again).await.unwrap_err(), deleted);
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_removes_however_many_runs_there_are() {
    const RUNS: usize = 300;
    let cluster = Cluster::start();
    let node = cluster.node().await;
    // Many in one thread, and one in each of many.
    let mut writes = Vec::new();
    for at in 0..RUNS {
        let one =
            Append { thread: Some("t".into()), ..frames(&format!("one{at}"), None, &[STARTED, COMPLETED]) };
        node.append(one).await.unwrap();
        let (node, many) = (node.clone(), frames(&format!("many{at}"), None, &[STARTED, COMPLETED]));
        writes.push(tokio::spawn(async move { node.append(many).await.unwrap() }));
    }
    for write in writes {
        write.await.unwrap();
    }
    // One is open, and keeps what comes after it in its thread.
    let open = Append { thread: Some("u".into()), ..frames("open", None, &[STARTED]) };
    node.append(open).await.unwrap();
    let bytes: u64 = cluster.sql("SELECT sum(length(body)) FROM chunk").parse().unwrap();
    let half = RetentionLimits { max_bytes: Some(bytes / 2), ..RetentionLimits::default() };
    let removed = node.trim(half).await.unwrap();
    assert!(removed > RUNS / 2 && removed < 2 * RUNS, "{removed}");
    let kept = "SELECT min(ended_at) FROM run WHERE NOT trimmed AND ended_at IS NOT NULL";
    let gone = "SELECT max(ended_at) FROM run WHERE trimmed";
    let at = |sql: &str| cluster.sql(sql).parse::<u64>().unwrap();
    assert!(at(gone) <= at(kept), "the oldest go first");
    assert_eq!(node.trim(half).await.unwrap(), 0);
    let ended_before = Some(runwire_model::Timestamp(u64::MAX >> 1));
    let all = RetentionLimits { ended_before, ..RetentionLimits::default() };
    assert_eq!(node.trim(all).await.unwrap(), 2 * RUNS - removed);
    assert_eq!(node.run(&run("open")).await.unwrap().status.as_str(), "running");
    until(async || (cluster.sql("SELECT count(*) FROM chunk") == "1").then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_finds_itself_elsewhere_begins_a_new_generation() {
    let cluster = Cluster::start();
    cluster.sql(
        "CREATE ROLE plain LOGIN PASSWORD 'plain'; GRANT ALL ON SCHEMA public TO plain; \
                 REVOKE ALL ON FUNCTION pg_control_system() FROM PUBLIC",
    );
    let generation = async || {
        let node = cluster
            .node_by(cluster.0.url("postgres").replacen(
                &format!("{}@", cluster.sql("SELECT current_user")),
                "plain:plain@",
                1,
            ))
            .await;
        node.close().await;
        cluster.sql("SELECT generation FROM store")
    };
    let first = generation().await;
    assert!(!first.is_empty());
    assert_eq!(generation().await, first);
    cluster.sql("UPDATE store SET history = 'elsewhere/' || history");
    let second = generation().await;
    assert_ne!(second, first);
    assert_eq!(generation().await, second);
    // A node that finds it so when it connects anew ends: it may show what the store lacks.
    let (told, heard) = std::sync::mpsc::channel();
    let fatal = Arc::new(move |reason: &str| drop(told.send(reason.to_owned())));
    let options = PgOptions { node_term: TERM, fatal, ..PgOptions::default() };
    let url = cluster.0.url("postgres");
    let node = tokio::task::spawn_blocking(move || PostgresLog::open(&url, &options).unwrap()).await.unwrap();
    let reached = async || cluster.sql("SELECT generation FROM store");
    cluster.0.cut_connections().unwrap();
    until(async || node.nodes().is_leader.then_some(())).await;
    let third = reached().await;
    assert!(heard.try_recv().is_err());
    cluster.sql("UPDATE store SET history = 'elsewhere/' || history");
    cluster.0.cut_connections().unwrap();
    until(async || heard.try_recv().ok()).await;
    assert_ne!(reached().await, third);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_learns_of_outbox_messages_of_other_nodes() {
    let cluster = Cluster::start();
    let (duty, other) = (cluster.node().await, cluster.node().await);
    let subscriber = |name: &str| Subscriber { name: name.into(), kinds: OutboxKind::ALL.to_vec() };
    other.subscribe(vec![subscriber("old"), subscriber("new")]).await.unwrap();
    let mut outbox_changed = duty.outbox_changed();
    other.append(frames("r", None, &[STARTED, COMPLETED])).await.unwrap();
    outbox_changed.changed().await.unwrap();
    assert_eq!(duty.outbox("new", 10).await.unwrap().len(), 1);
    // A node whose configuration does not know a subscriber leaves alone what may be of a newer one, for a day.
    duty.subscribe(vec![subscriber("new")]).await.unwrap();
    until(async || (cluster.sql("SELECT count(*) FROM node") == "2").then_some(())).await;
    assert_eq!(duty.outbox("old", 10).await.unwrap().len(), 1);
    cluster.sql("UPDATE outbox SET at = at - 172800000");
    duty.close().await;
    other.close().await;
    let duty = cluster.node().await;
    duty.subscribe(vec![subscriber("new")]).await.unwrap();
    until(async || duty.outbox("old", 10).await.unwrap().is_empty().then_some(())).await;
    assert_eq!(duty.outbox("new", 10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_store_counts_as_unavailable() {
    let cluster = Cluster::start();
    let node = cluster.node().await;
    assert_eq!(node.health().await.store.outage, None);
    // Sessions that are there obey it, too.
    let read_only = |on: &str| {
        cluster.sql(&format!("ALTER SYSTEM SET default_transaction_read_only = {on}"));
        cluster.sql("SELECT pg_reload_conf()");
    };
    read_only("on");
    until(async || node.health().await.store.outage).await;
    read_only("off");
    until(async || node.health().await.store.outage.is_none().then_some(())).await;
    node.close().await;
}
