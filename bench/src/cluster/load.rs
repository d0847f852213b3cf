//! Nodes that share a store, and closed-loop writers that append to them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runwire_log::cluster::TailOptions;
use runwire_log::postgres::{PgOptions, PostgresLog};
use runwire_log::{Append, FrameBatch, Log, RunKey, Target};
use tokio::task::JoinSet;

use crate::Failure;
use crate::statistics::percentile;
use crate::wire::frame;

const TENANT: &str = "bench";

/// A node of a cluster: its log.
pub(crate) type Node = Arc<dyn Log>;

/// Opens a node, with or without the live tail.
pub(crate) async fn open(store: &str, tail: Option<&str>) -> Result<Node, Failure> {
    let store = store.to_owned();
    let tail = tail.map(|url| TailOptions { url: url.to_owned(), trust: None });
    let options = PgOptions { tail, ..PgOptions::default() };
    // Opening blocks.
    let opened = tokio::task::spawn_blocking(move || PostgresLog::open(&store, &options)).await?;
    Ok(Arc::new(opened?))
}

/// Returns the key of a run and its thread.
pub(crate) fn run(name: &str) -> RunKey {
    RunKey::new(TENANT, name)
}

/// Returns an append of this many typical events.
pub(crate) fn append(run: &RunKey, events: usize) -> Append {
    append_lines(run, &frame::typical(&run.id), events)
}

fn append_lines(run: &RunKey, line: &[u8], events: usize) -> Append {
    let mut frames = FrameBatch::default();
    for number in 0..events {
        frames.push(number as u64 + 1, None, line.trim_ascii_end());
    }
    Append {
        target: Target::Run(run.clone()),
        thread: Some(run.id.to_string()),
        dialect: Some(frame::DIALECT),
        stamp: None,
        frames,
        end: false,
        check: Default::default(),
        whole: Default::default(),
        parallel: false,
    }
}

/// Appends, and checks that everything was written.
pub(crate) async fn write(node: &Node, append: Append) -> Result<u64, Failure> {
    let events = append.frames.len() as u64;
    let appended = node.append(append).await?;
    if appended.accepted != events {
        return Err(format!("{events} events were appended, but: {appended:?}").into());
    }
    Ok(appended.last_seq)
}

/// The load of a round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppendLoad {
    pub(crate) writers: usize,
    /// Number of runs, each in its own thread.
    pub(crate) runs: usize,
    /// Events per append.
    pub(crate) events: usize,
    /// Whether every node writes to every run; else each node has its own runs.
    pub(crate) shared: bool,
    /// Whether events are minimal, as the text of a run is limited.
    pub(crate) brief: bool,
}

/// The result of a round.
pub(crate) struct Round {
    pub(crate) events: u64,
    pub(crate) events_per_second: f64,
    pub(crate) commits: u64,
    pub(crate) commit_milliseconds: f64,
    /// Latency of an append.
    pub(crate) p99_milliseconds: f64,
}

impl AppendLoad {
    /// Appends for a while to new runs, named after `label`; writers are distributed over the nodes.
    pub(crate) async fn measure(
        self,
        nodes: &[Node],
        label: &str,
        duration: Duration,
    ) -> Result<Round, Failure> {
        let runs: Arc<[RunKey]> = (0..self.runs).map(|number| run(&format!("{label}-{number:03}"))).collect();
        for run in &*runs {
            write(&nodes[0], append(run, 1)).await?;
        }
        let (commits_before, time_before) = commits(nodes).await?;
        let begun = Instant::now();
        let deadline = begun + duration;
        let mut writers = JoinSet::new();
        for number in 0..self.writers {
            let (node, runs) = (nodes[number % nodes.len()].clone(), runs.clone());
            writers.spawn(self.append_until(deadline, node, runs, [number, nodes.len()]));
        }
        let mut latencies = Vec::new();
        while let Some(writer) = writers.join_next().await {
            latencies.append(&mut writer??);
        }
        let took = begun.elapsed();
        let (commits, time) = commits(nodes).await?;
        let events = (latencies.len() * self.events) as u64;
        let mut stored = 0;
        for run in &*runs {
            stored += nodes[nodes.len() - 1].run(run).await?.last_seq - 1;
        }
        if stored != events {
            return Err(format!("{events} events were acknowledged, {stored} are stored").into());
        }
        let commits = (commits - commits_before).max(1);
        Ok(Round {
            events,
            events_per_second: events as f64 / took.as_secs_f64(),
            commits,
            commit_milliseconds: (time - time_before).as_secs_f64() * 1e3 / commits as f64,
            p99_milliseconds: percentile(&mut latencies, 0.99).map_or(0.0, |micros| f64::from(micros) / 1e3),
        })
    }

    fn append(self, run: &RunKey) -> Append {
        match self.brief {
            true => append_lines(run, &frame::with_text(&run.id, "x"), self.events),
            false => append(run, self.events),
        }
    }

    /// Appends until the time is up, and returns the microseconds of each append.
    async fn append_until(
        self,
        deadline: Instant,
        node: Node,
        runs: Arc<[RunKey]>,
        [number, nodes]: [usize; 2],
    ) -> Result<Vec<u32>, Failure> {
        let mut latencies = Vec::with_capacity(1 << 12);
        let mut called = Instant::now();
        for turn in 0.. {
            let run = match self.shared {
                true => (number + turn * self.writers) % runs.len(),
                false => {
                    (number + turn * self.writers) / nodes % (runs.len() / nodes) * nodes + number % nodes
                }
            };
            write(&node, self.append(&runs[run])).await?;
            let returned = Instant::now();
            latencies.push((returned - called).as_micros() as u32);
            if returned >= deadline {
                break;
            }
            called = returned;
        }
        Ok(latencies)
    }
}

/// Returns the number of commits of all nodes, and their total time.
async fn commits(nodes: &[Node]) -> Result<(u64, Duration), Failure> {
    let (mut commits, mut time) = (0, Duration::ZERO);
    for node in nodes {
        let written = node.stats().await?.written;
        commits += written.commits;
        time += written.commit_time;
    }
    Ok((commits, time))
}
