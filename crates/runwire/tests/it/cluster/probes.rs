//! Measures the time until every node shows, live, what every other node writes.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use super::requests::ask;
use crate::command::TIMEOUT;
use crate::crash::context::TestContext;
use crate::crash::http::{BodyPiece, Exchange, post};

/// How often a node is asked again.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What the reader on each node has seen.
pub(super) struct Probes {
    /// The thread that they are written to, and what their runs' names begin with.
    name: String,
    nodes: Vec<SocketAddr>,
    seen: Mutex<Vec<HashSet<String>>>,
    more: Condvar,
    /// The probes that were sent so far.
    sent: AtomicUsize,
}

impl Probes {
    pub(super) fn new(name: &str, nodes: Vec<SocketAddr>) -> Self {
        let seen = Mutex::new(vec![HashSet::new(); nodes.len()]);
        Self { name: format!("{name}-probe"), nodes, seen, more: Condvar::new(), sent: AtomicUsize::new(0) }
    }

    /// Lets a reader begin on every node, which stays as long as the node keeps it.
    pub(super) fn begin<'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        context: &'scope TestContext,
    ) {
        let thread = format!(r#"{{"thread_id":"{}","parallel":true}}"#, self.name);
        ask(context, &[200, 201], "POST", "/v1/threads", &thread);
        for node in 0..self.nodes.len() {
            threads.spawn(move || {
                let _watch = context.watch();
                let mut last = "0".to_owned();
                while !context.are_readers_finishing() {
                    context.check();
                    // A node that is away is asked again.
                    let _ = self.read(context, node, &mut last);
                    thread::sleep(POLL_INTERVAL);
                }
            });
        }
    }

    fn read(&self, context: &TestContext, node: usize, last: &mut String) -> io::Result<()> {
        let path = format!("/v1/threads/{}/events?dialect=runwire&cursors=true&after={last}", self.name);
        let accept = [("accept", "application/x-ndjson".to_owned())];
        let mut exchange = Exchange::begin(self.nodes[node], "GET", &path, &accept, None)?;
        let status = exchange.status()?;
        assert!(matches!(status, 200 | 503), "{path}: {status} {:?}", exchange.piece());
        let mut text = String::new();
        loop {
            match exchange.piece()? {
                BodyPiece::Bytes(bytes) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
                BodyPiece::Quiet if context.are_readers_finishing() => return Ok(()),
                BodyPiece::Quiet => context.check(),
                BodyPiece::End => return Ok(()),
            }
            while let Some((line, rest)) = text.split_once('\n') {
                self.take(node, line, last);
                text = rest.to_owned();
            }
        }
    }

    fn take(&self, node: usize, line: &str, last: &mut String) {
        if line.is_empty() {
            return;
        }
        let told: serde_json::Value = serde_json::from_str(line).unwrap();
        told["cursor"].as_str().unwrap().clone_into(last);
        if let Some(probe) = told["frame"]["value"].as_str() {
            let is_new = self.seen.lock().unwrap()[node].insert(probe.to_owned());
            assert!(is_new, "node {node} told {probe} twice");
            self.more.notify_all();
        }
    }

    /// Writes on every node, waits until each reader has it, and returns the duration.
    pub(super) fn heal(&self, context: &TestContext) -> Duration {
        let begun = Instant::now();
        let number = self.sent.fetch_add(1, Ordering::SeqCst);
        let names: Vec<String> =
            (0..self.nodes.len()).map(|node| format!("{}-{number}-{node}", self.name)).collect();
        thread::scope(|threads| {
            for (node, name) in self.nodes.iter().zip(&names) {
                threads.spawn(|| {
                    let _watch = context.watch();
                    write(context, *node, &self.name, name);
                });
            }
        });
        let mut seen = self.seen.lock().unwrap();
        loop {
            let missing: Vec<_> = (0..self.nodes.len())
                .flat_map(|node| names.iter().map(move |name| (node, name)))
                .filter(|(node, name)| !seen[*node].contains(*name))
                .collect();
            if missing.is_empty() {
                return begun.elapsed();
            }
            context.check();
            assert!(begun.elapsed() < TIMEOUT, "nodes whose readers miss something: {missing:?}");
            seen = self.more.wait_timeout(seen, Duration::from_millis(100)).unwrap().0;
        }
    }
}

/// Writes a run of one event by one node, as often as it takes.
fn write(context: &TestContext, node: SocketAddr, thread: &str, name: &str) {
    let path = format!("/v1/runs/{name}/events?thread={thread}&dialect=runwire&end=true");
    let stamp = [("producer-id", name.to_owned()), ("producer-seq", "0".to_owned())];
    let body = format!("{{\"type\":\"custom\",\"name\":\"probe\",\"value\":\"{name}\"}}\n");
    let since = Instant::now();
    loop {
        match post(node, &path, &stamp, &body) {
            Ok(answer) if answer.status == 200 => return,
            Ok(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
            Err(_) => {}
        }
        context.pause(since);
    }
}
