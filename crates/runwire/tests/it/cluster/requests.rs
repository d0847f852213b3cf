//! Requests that are retried on other nodes until one responds.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::TIMEOUT;
use crate::crash::context::TestContext;
use crate::crash::http::{Answer, Exchange, get};

/// Sends a request to one node after another until the status is one of these.
pub(super) fn ask(context: &TestContext, good: &[u16], method: &str, path: &str, body: &str) -> Answer {
    let since = Instant::now();
    loop {
        let asked = Exchange::begin(context.server(), method, path, &[], Some(body.as_bytes()));
        match asked.and_then(Exchange::answer) {
            Ok(answer) if good.contains(&answer.status) => return answer,
            Ok(answer) => assert_eq!(answer.status, 503, "{method} {path}: {answer:?}"),
            Err(_) => {}
        }
        context.pause(since);
    }
}

/// Shows a run, by any node.
pub(super) fn shown(context: &TestContext, run: &str) -> Value {
    ask(context, &[200], "GET", &format!("/v1/runs/{run}"), "").json()
}

/// Waits for something.
pub(super) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a node shows a run with this status, and returns it.
pub(super) fn wait_for_status(node: SocketAddr, run: &str, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        let answer = get(node, &format!("/v1/runs/{run}"));
        match &answer {
            Ok(answer) if answer.status == 200 && answer.json()["status"] == status => return answer.json(),
            _ => assert!(begun.elapsed() < TIMEOUT, "{run} is not {status}: {answer:?}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Reads the events of a run that are there, from one node.
pub(super) fn events(node: SocketAddr, run: &str) -> Vec<Value> {
    events_of(node, &format!("/v1/runs/{run}/events?dialect=runwire&follow=false"))
}

/// Reads the events of a path.
pub(super) fn events_of(node: SocketAddr, path: &str) -> Vec<Value> {
    let answer = get(node, path).unwrap();
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let body = answer.body;
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The types of the events that end a run.
pub(super) const ENDS: [&str; 3] = ["run.completed", "run.failed", "run.cancelled"];

/// Finds the one event that ends a run.
pub(super) fn the_end<'a>(run: &str, events: &'a [Value]) -> &'a Value {
    let ends: Vec<_> =
        events.iter().filter(|event| ENDS.contains(&event["type"].as_str().unwrap())).collect();
    let [end] = ends.as_slice() else { panic!("{run} has {} ends: {events:#?}", ends.len()) };
    assert_eq!(events.last(), Some(*end), "{run} goes on after its end");
    end
}

/// Counts the processes that carry a mark on their command line.
pub(super) fn processes(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let carries = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    entries.filter(carries).count()
}
