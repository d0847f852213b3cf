//! A private cluster: Postgres, Redis, and nodes that reach both through proxies.

use std::net::SocketAddr;
use std::thread;

use runwire_engines::{Mode, Postgres, Proxy, Redis};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::crash::context::TestContext;
use crate::server::Server;

/// The database that all nodes share.
const DATABASE: &str = "wire";
/// A Redis URL without a server.
const DEAD: &str = "redis://127.0.0.1:1";

/// The live tail of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    Redis,
    /// An address where nobody is.
    Dead,
    /// Nothing.
    None,
}

/// How a cluster is set up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup<'a> {
    pub(super) nodes: usize,
    pub(super) tail: Tail,
    /// Seconds.
    pub(super) lease: u32,
    /// The agents, as `runwire.toml` has them.
    pub(super) agents: &'a str,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self { nodes: 3, tail: Tail::Redis, lease: 60, agents: "" }
    }
}

/// Engines and nodes; all of it is gone when it is dropped.
pub(super) struct TestCluster {
    pub(super) nodes: Vec<Node>,
    pub(super) postgres: Postgres,
    pub(super) redis: Redis,
    /// Where the proxies run.
    _runtime: Runtime,
    /// Where the file with the agents is.
    _folder: TempDir,
}

/// A node, and the ways that it has to the engines.
pub(super) struct Node {
    pub(super) server: Server,
    pub(super) to_postgres: Proxy,
    pub(super) to_redis: Proxy,
}

impl TestCluster {
    /// Starts engines and nodes, all nodes at the same time.
    pub(super) fn start(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agents.toml");
        std::fs::write(&file, setup.agents).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (postgres, redis) = (Postgres::start().unwrap(), Redis::start().unwrap());
        postgres.create_database(DATABASE).unwrap();
        let start = || {
            let to_postgres = runtime.block_on(Proxy::start(postgres.address())).unwrap();
            let to_redis = runtime.block_on(Proxy::start(redis.address())).unwrap();
            let store = postgres.url_by(to_postgres.address(), DATABASE);
            let tail = match setup.tail {
                Tail::Redis => Some(redis.url_by(to_redis.address())),
                Tail::Dead => Some(DEAD.to_owned()),
                Tail::None => None,
            };
            let lease = setup.lease.to_string();
            let mut arguments =
                vec!["--store", &store, "--lease", &lease, "--config", file.to_str().unwrap()];
            arguments.extend(tail.iter().flat_map(|tail| ["--tail", tail.as_str()]));
            Node { server: Server::start_with(&arguments), to_postgres, to_redis }
        };
        let nodes = thread::scope(|threads| {
            let starting: Vec<_> = (0..setup.nodes).map(|_| threads.spawn(start)).collect();
            starting.into_iter().map(|node| node.join().expect("the node starts")).collect()
        });
        Self { nodes, postgres, redis, _runtime: runtime, _folder: folder }
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Node::address).collect()
    }

    /// Everybody may ask any node.
    pub(super) fn context(&self) -> TestContext {
        TestContext::of(self.addresses())
    }

    /// Stops all nodes in good order.
    pub(super) fn stop(&mut self) {
        for node in &mut self.nodes {
            let status = node.server.stop();
            assert!(status.success(), "{status}:\n{}", node.server.log());
        }
    }
}

impl Node {
    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }
}

/// Sets a proxy's mode, and cuts its open connections.
pub(super) fn set_mode_and_cut(way: &Proxy, mode: Mode) {
    match mode {
        Mode::Refuse => way.cut_and(mode),
        _ => way.set(mode),
    }
}
