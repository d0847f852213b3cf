//! Continuous writers on several nodes, and the invariants that hold afterwards.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runwire_log::postgres::{PgOptions, PostgresLog};
use runwire_log::{Append, FrameBatch, Log, LogError, RunKey, Target, ThreadKey};
use tokio::task::JoinHandle;

/// Writers of each node; one half of them writes to one run, the others to a run each.
const WRITERS: usize = 6;

/// Nodes on one store.
pub(super) struct Nodes(Vec<Arc<dyn Log>>);

impl Nodes {
    pub(super) async fn open(url: &str, nodes: usize) -> Self {
        let mut opened: Vec<Arc<dyn Log>> = Vec::new();
        for _ in 0..nodes {
            let url = url.to_owned();
            let node =
                tokio::task::spawn_blocking(move || PostgresLog::open(&url, &PgOptions::default()).unwrap());
            opened.push(Arc::new(node.await.unwrap()));
        }
        Self(opened)
    }

    pub(super) fn of(&self, node: usize) -> Arc<dyn Log> {
        self.0[node].clone()
    }

    /// Writes on all nodes until it is stopped.
    pub(super) fn write(&self) -> Writing {
        let (answers, stop) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let counts: Vec<Arc<AtomicUsize>> = self.0.iter().map(|_| Arc::default()).collect();
        let mut writers = Vec::new();
        for (number, node) in self.0.iter().enumerate() {
            for writer in 0..WRITERS {
                let run =
                    if writer % 2 == 0 { "shared".to_owned() } else { format!("run-{number}-{writer}") };
                let (node, answers, stop) = (node.clone(), Arc::clone(&answers), stop.clone());
                let count = counts[number].clone();
                writers.push(tokio::spawn(async move {
                    for index in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let value = format!("{number}-{writer}-{index}");
                        let answer = node.append(frame(&run, &value)).await.map(|appended| {
                            assert_eq!((appended.accepted, appended.fault), (1, None));
                        });
                        count.fetch_add(usize::from(answer.is_ok()), Ordering::Relaxed);
                        let answers: &Mutex<Answers> = &answers;
                        answers.lock().unwrap().push((run.clone(), value, answer));
                    }
                }));
            }
        }
        Writing { nodes: self.0.clone(), answers, stop, counts, writers }
    }
}

/// Makes a unique frame.
pub(in crate::cluster) fn frame(run: &str, value: &str) -> Append {
    let mut frames = FrameBatch::default();
    frames.push(1, None, format!(r#"{{"type":"custom","name":"it","value":"{value}"}}"#).as_bytes());
    let target = Target::Run(RunKey::new("tenant", run));
    Append {
        target,
        thread: None,
        dialect: None,
        stamp: None,
        frames,
        end: false,
        check: Default::default(),
        whole: Default::default(),
        parallel: false,
    }
}

type Answers = Vec<(String, String, Result<(), LogError>)>;

/// Running writers.
pub(super) struct Writing {
    nodes: Vec<Arc<dyn Log>>,
    answers: Arc<Mutex<Answers>>,
    stop: Arc<AtomicBool>,
    /// What each node has acknowledged.
    counts: Vec<Arc<AtomicUsize>>,
    writers: Vec<JoinHandle<()>>,
}

/// What writers were answers.
#[derive(Debug, Default)]
pub(super) struct WriteErrors {
    pub(super) refused: Vec<String>,
    pub(super) uncertain: Vec<String>,
}

impl Writing {
    /// Waits until every node has acknowledged more than before.
    pub(super) async fn goes_on(&self) {
        let wanted: Vec<usize> = self.counts.iter().map(|count| count.load(Ordering::Relaxed) + 10).collect();
        while self.counts.iter().zip(&wanted).any(|(count, wanted)| count.load(Ordering::Relaxed) < *wanted) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until something is refused.
    pub(super) async fn is_refused(&self) {
        while !self.answers.lock().unwrap().iter().any(|(_, _, answer)| answer.is_err()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Stops writing, and looks at what is there: what was acknowledged, once; what was refused, not at all; in one
    /// order on all nodes.
    pub(super) async fn stop(self) -> WriteErrors {
        self.stop.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.await.unwrap();
        }
        let answers = std::mem::take(&mut *self.answers.lock().unwrap());
        let mut values: HashMap<String, HashMap<String, usize>> = HashMap::new();
        let mut written = WriteErrors::default();
        for (run, value, answer) in answers {
            let seen = match values.get(&run) {
                Some(seen) => seen,
                None => values.entry(run.clone()).or_insert(values_of(&self.nodes, &run).await),
            };
            let times = seen.get(&value).copied().unwrap_or_default();
            match answer {
                Ok(()) => assert_eq!(times, 1, "{value} of {run} was acknowledged"),
                Err(LogError::Unavailable(why)) => {
                    assert_eq!(times, 0, "{value} of {run} was refused: {why}");
                    written.refused.push(why);
                }
                Err(LogError::Uncertain(why)) => {
                    assert!(times <= 1);
                    written.uncertain.push(why);
                }
                Err(other) => panic!("{value} of {run}: {other}"),
            }
        }
        written
    }
}

/// Counts the values that a run holds, which must be the same on all nodes.
async fn values_of(nodes: &[Arc<dyn Log>], run: &str) -> HashMap<String, usize> {
    let thread = ThreadKey::new("tenant", run);
    let mut all = Vec::new();
    for node in nodes {
        let mut records = Vec::new();
        loop {
            let after = records.len() as u64;
            match node.read(&thread, after).await {
                Ok(page) if page.records.is_empty() => break,
                Ok(page) => records.extend(page.records),
                Err(LogError::ThreadUnknown(_)) => break,
                Err(error) => panic!("{run}: {error}"),
            }
        }
        for (index, stored) in records.iter().enumerate() {
            assert_eq!(stored.record.seq, index as u64 + 1);
        }
        all.push(records);
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{run} is not the same on all nodes");
    let mut values = HashMap::new();
    for stored in all.pop().unwrap_or_default() {
        let Some(frame) = &stored.frame else { continue };
        let frame: serde_json::Value = serde_json::from_slice(frame).unwrap();
        *values.entry(frame["value"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    values
}
