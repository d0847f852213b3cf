//! The embedded store's log alone, without HTTP: appends on a real file, and the CPU time that each thread takes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runwire_log::sqlite::{SqliteLog, SqliteOptions};
use runwire_log::{Append, FrameBatch, Log, RunKey, Stamp, Target};
use runwire_model::dialect::Dialect;
use tokio::task::JoinSet;

use crate::statistics::{median, percentile};
use crate::wire::frame;
use crate::{Failure, take_flag, take_option, take_text};

const TENANT: &str = "bench";
const RUNS: usize = 100;
const WRITERS: usize = 64;
/// Threads of the callers, as many as a server on two cores has.
const CALLERS: usize = 2;

/// What the frames of a case are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frames {
    /// Pieces of text in Loom, without an envelope of their own.
    Loom,
    /// The same, each with an `event_id` that does not grow: every frame breaks its document.
    LoomBroken,
    /// Pieces of text in the canonical dialect.
    Runwire,
}

/// One kind of load.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    frames: Frames,
    /// Frames of an append.
    events: usize,
    is_stamped: bool,
}

const CASES: &[Case] = &[
    Case { name: "loom-1", frames: Frames::Loom, events: 1, is_stamped: false },
    Case { name: "loom-1-stamped", frames: Frames::Loom, events: 1, is_stamped: true },
    Case { name: "loom-16", frames: Frames::Loom, events: 16, is_stamped: false },
    Case { name: "loom-16-stamped", frames: Frames::Loom, events: 16, is_stamped: true },
    Case { name: "loom-16-broken", frames: Frames::LoomBroken, events: 16, is_stamped: false },
    Case { name: "runwire-1", frames: Frames::Runwire, events: 1, is_stamped: false },
    Case { name: "runwire-16", frames: Frames::Runwire, events: 16, is_stamped: false },
];

/// What a round has measured.
struct Round {
    events_per_second: f64,
    p99_milliseconds: f64,
    events_per_commit: f64,
    /// Microseconds of CPU time per event, by the name of the thread.
    cpu: BTreeMap<String, f64>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut arguments = arguments.to_vec();
    let quick = take_flag(&mut arguments, "--quick");
    let rounds = take_option(&mut arguments, "--rounds", if quick { 1 } else { 5 })?;
    let milliseconds = take_option(&mut arguments, "--milliseconds", if quick { 500 } else { 2000 })?;
    let folder = take_text(&mut arguments, "--folder")?.map_or_else(std::env::temp_dir, PathBuf::from);
    if let Some(unknown) = arguments.iter().find(|name| CASES.iter().all(|case| case.name != **name)) {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        return Err(format!("there is no case {unknown}; the cases are {}", names.join(", ")).into());
    }
    let cases: Vec<Case> = CASES
        .iter()
        .filter(|case| arguments.is_empty() || arguments.iter().any(|name| name == case.name))
        .copied()
        .collect();
    let duration = Duration::from_millis(milliseconds as u64);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CALLERS)
        .thread_name("callers")
        .enable_all()
        .build()?;
    let mut measured: Vec<Vec<Round>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (case, measured) in cases.iter().zip(&mut measured) {
            let folder = tempfile::tempdir_in(&folder)?;
            measured.push(runtime.block_on(case.measure(&folder.path().join("log.db"), duration))?);
        }
    }
    print(&cases, &measured);
    let stalls = (0..rounds).map(|_| {
        let folder = tempfile::tempdir_in(&folder)?;
        runtime.block_on(longest_wait(&folder.path().join("log.db"), if quick { 10_000 } else { 100_000 }))
    });
    let (waits, ends): (Vec<_>, Vec<_>) = stalls.collect::<Result<Vec<_>, Failure>>()?.into_iter().unzip();
    println!(
        "the end of a long run with 256 open calls: {:.1} ms; longest append of another run meanwhile: {:.1} ms",
        median(ends).unwrap_or(0.0),
        median(waits).unwrap_or(0.0)
    );
    Ok(())
}

/// Calls that are open when a run ends.
const OPEN_CALLS: usize = 256;

/// Ends a run of many records with open calls, and returns the longest time that an append of another run took
/// meanwhile, and the time that the end took, in milliseconds.
async fn longest_wait(path: &std::path::Path, records: usize) -> Result<(f64, f64), Failure> {
    let path = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || SqliteLog::open(&path, SqliteOptions::default()));
    let log: Arc<dyn Log> = Arc::new(opened.await??);
    let calls = (0..OPEN_CALLS).flat_map(|call| {
        let started = format!(r#"{{"type":"tool.args_started","call_id":"c{call}","name":"t"}}"#);
        let piece = format!(r#"{{"type":"tool.args_delta","call_id":"c{call}","delta":"{{}}"}}"#);
        [started, piece]
    });
    let others = (0..records).map(|at| format!(r#"{{"type":"run.status","state":"working on part {at}"}}"#));
    let frames: Vec<String> =
        std::iter::once(r#"{"type":"run.started"}"#.to_owned()).chain(calls).chain(others).collect();
    let append = |run: &str, frames: &[String]| {
        let mut batch = FrameBatch::default();
        frames.iter().zip(1..).for_each(|(frame, line)| batch.push(line, None, frame.as_bytes()));
        Append {
            target: Target::Run(RunKey::new(TENANT, run)),
            thread: None,
            dialect: Some(Dialect::Runwire),
            stamp: None,
            frames: batch,
            end: false,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        }
    };
    for frames in frames.chunks(1000) {
        log.append(append("long", frames)).await?;
    }
    log.append(append("other", &frames[..1])).await?;
    let (end, begun) = (append("long", &[r#"{"type":"run.completed"}"#.to_owned()]), Instant::now());
    let ending = tokio::spawn({
        let log = log.clone();
        async move { log.append(end).await.map(|_| begun.elapsed()) }
    });
    let mut longest = Duration::ZERO;
    while !ending.is_finished() {
        let called = Instant::now();
        log.append(append("other", &frames[frames.len() - 1..])).await?;
        longest = longest.max(called.elapsed());
    }
    let took = ending.await??;
    log.close().await;
    Ok((longest.as_secs_f64() * 1e3, took.as_secs_f64() * 1e3))
}

/// The columns of CPU time; other threads are counted together.
const THREADS: [&str; 4] = ["callers", "log-writer", "log-committer", "log-checkpoint"];

fn print(cases: &[Case], measured: &[Vec<Round>]) {
    println!("medians; µs are CPU time per event");
    println!(
        "{:<16} {:>9} {:>7} {:>9} {:>7} {:>8} {:>8} {:>9} {:>7} {:>6}",
        "case", "events/s", "p99 ms", "a commit", "µs", "callers", "writer", "committer", "folding", "other"
    );
    for (case, rounds) in cases.iter().zip(measured) {
        let middle =
            |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value).collect()).unwrap_or(0.0);
        let of = |name: &str| middle(&|round| round.cpu.get(name).copied().unwrap_or(0.0));
        let all = middle(&|round| round.cpu.values().sum());
        let named: f64 = THREADS.iter().map(|name| of(name)).sum();
        println!(
            "{:<16} {:>9.0} {:>7.2} {:>9.1} {:>7.2} {:>8.2} {:>8.2} {:>9.2} {:>7.2} {:>6.2}",
            case.name,
            middle(&|round| round.events_per_second),
            middle(&|round| round.p99_milliseconds),
            middle(&|round| round.events_per_commit),
            all,
            of(THREADS[0]),
            of(THREADS[1]),
            of(THREADS[2]),
            of(THREADS[3]),
            (all - named).max(0.0)
        );
    }
}

impl Case {
    /// Appends for a while to new runs of an empty store, each writer the next append once the one before is durable.
    async fn measure(self, path: &std::path::Path, duration: Duration) -> Result<Round, Failure> {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || SqliteLog::open(&path, SqliteOptions::default()));
        let log: Arc<dyn Log> = Arc::new(opened.await??);
        let runs: Arc<[RunToWrite]> = (0..RUNS).map(|number| RunToWrite::new(self, number)).collect();
        for run in &*runs {
            self.write(&*log, run, 1).await?;
        }
        let (before, commits_before) = (cpu_by_thread()?, log.stats().await?.written.commits);
        let begun = Instant::now();
        let deadline = begun + duration;
        let mut writers = JoinSet::new();
        for number in 0..WRITERS {
            writers.spawn(self.write_until(deadline, log.clone(), runs.clone(), number));
        }
        let mut latencies = Vec::new();
        while let Some(writer) = writers.join_next().await {
            latencies.append(&mut writer??);
        }
        let took = begun.elapsed();
        let after = cpu_by_thread()?;
        let commits = (log.stats().await?.written.commits - commits_before).max(1);
        let events = (latencies.len() * self.events) as u64;
        let mut stored = 0;
        for run in &*runs {
            stored += log.run(&run.key).await?.last_seq - 1;
        }
        if stored != events {
            return Err(format!("{events} events were acknowledged, {stored} are stored").into());
        }
        log.close().await;
        let cpu = after.into_iter().map(|(name, time)| {
            let time = time.saturating_sub(before.get(&name).copied().unwrap_or_default());
            (name, time.as_secs_f64() * 1e6 / events as f64)
        });
        Ok(Round {
            events_per_second: events as f64 / took.as_secs_f64(),
            p99_milliseconds: percentile(&mut latencies, 0.99).map_or(0.0, |micros| f64::from(micros) / 1e3),
            events_per_commit: events as f64 / commits as f64,
            cpu: cpu.collect(),
        })
    }

    async fn write_until(
        self,
        deadline: Instant,
        log: Arc<dyn Log>,
        runs: Arc<[RunToWrite]>,
        number: usize,
    ) -> Result<Vec<u32>, Failure> {
        let mut latencies = Vec::with_capacity(1 << 12);
        let mut called = Instant::now();
        for turn in 0.. {
            // A stamped producer has one writer, as it has in a system that uses them.
            let run = match self.is_stamped {
                true => number,
                false => (number + turn * WRITERS) % runs.len(),
            };
            self.write(&*log, &runs[run], self.events).await?;
            let returned = Instant::now();
            latencies.push((returned - called).as_micros() as u32);
            if returned >= deadline {
                break;
            }
            called = returned;
        }
        Ok(latencies)
    }

    async fn write(self, log: &dyn Log, run: &RunToWrite, events: usize) -> Result<(), Failure> {
        let mut frames = FrameBatch::default();
        for number in 0..events {
            frames.push(number as u64 + 1, None, &run.frame);
        }
        let stamp = self.is_stamped.then(|| Stamp {
            producer: "bench-producer".into(),
            epoch: 1,
            index: run.next.fetch_add(events as u64, Ordering::Relaxed),
        });
        let append = Append {
            target: Target::Run(run.key.clone()),
            thread: Some(run.key.id.to_string()),
            dialect: Some(self.dialect()),
            stamp,
            frames,
            end: false,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        };
        let appended = log.append(append).await?;
        if appended.accepted != events as u64 {
            return Err(format!("{events} events were appended, but: {appended:?}").into());
        }
        Ok(())
    }

    fn dialect(self) -> Dialect {
        match self.frames {
            Frames::Loom | Frames::LoomBroken => Dialect::Loom,
            Frames::Runwire => Dialect::Runwire,
        }
    }
}

/// A run, the frame that is written to it, and the index of its producer's next frame.
struct RunToWrite {
    key: RunKey,
    frame: Vec<u8>,
    next: AtomicU64,
}

impl RunToWrite {
    fn new(case: Case, number: usize) -> Self {
        let name = format!("{}-{number:03}", case.name);
        let frame = match case.frames {
            Frames::Loom => frame::typical(&name).trim_ascii_end().to_vec(),
            Frames::LoomBroken => frame::numbered(&name).trim_ascii_end().to_vec(),
            Frames::Runwire => {
                let bare = r#"{"type":"text.delta","message_id":"answer","content":""}"#;
                let text = frame::words(256 - bare.len());
                format!(r#"{{"type":"text.delta","message_id":"answer","content":"{text}"}}"#).into_bytes()
            }
        };
        Self { key: RunKey::new(TENANT, name), frame, next: AtomicU64::new(0) }
    }
}

/// Returns the CPU time of this process' threads, by their name.
fn cpu_by_thread() -> Result<BTreeMap<String, Duration>, Failure> {
    let mut threads: BTreeMap<String, Duration> = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task")? {
        let folder = task?.path();
        // A thread may end meanwhile.
        let Ok(name) = std::fs::read_to_string(folder.join("comm")) else { continue };
        let Ok(times) = std::fs::read_to_string(folder.join("schedstat")) else { continue };
        let running = times.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok());
        *threads.entry(name.trim().to_owned()).or_default() += Duration::from_nanos(running.unwrap_or(0));
    }
    Ok(threads)
}
