//! Benchmark of growth: what an operation costs as runs, events and bytes become more.
//!
//! Each line stands beside the smallest size of its section, measured in turn with it. The largest sizes take `--long`, and
//! the free disk is checked before they are written.

mod idle_readers;
mod sizes;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use self::sizes::{LongRun, StoreSize};
use crate::program::build_runwire;
use crate::report::{Figure, Goal, Report};
use crate::statistics::{median, percentile};
use crate::wire::append;
use crate::wire::client::{self, HttpConnection};
use crate::wire::process::{ServerKind, ServerProcess};
use crate::wire::raise_open_files;
use crate::{Failure, take_flag, take_option, take_text};

const SECTIONS: [&str; 4] = ["open-runs", "long-run", "store", "idle-readers"];
const GIBIBYTE: u64 = 1 << 30;
/// Requests of which a median latency is taken.
const REQUESTS: usize = 200;

/// What is measured, at which sizes.
struct Plan {
    sections: Vec<String>,
    open_runs: Vec<usize>,
    run_events: Vec<usize>,
    store_bytes: Vec<u64>,
    idle_readers: usize,
    rounds: usize,
    duration: Duration,
}

impl Plan {
    fn new(arguments: &mut Vec<String>) -> Result<Self, Failure> {
        let (quick, long) = (take_flag(arguments, "--quick"), take_flag(arguments, "--long"));
        let mut plan = Self {
            sections: Vec::new(),
            open_runs: vec![10, 1000, 100_000],
            run_events: vec![1000, 100_000],
            store_bytes: vec![GIBIBYTE / 4, GIBIBYTE],
            idle_readers: take_option(arguments, "--idle-readers", 10_000)?.max(1),
            rounds: take_option(arguments, "--rounds", 3)?.max(1),
            duration: Duration::from_secs(2),
        };
        if quick {
            plan.open_runs.pop();
            plan.store_bytes = vec![GIBIBYTE / 32, GIBIBYTE / 8];
            plan.idle_readers = plan.idle_readers.min(2000);
            plan.duration = Duration::from_millis(500);
        }
        if long {
            plan.run_events.push(5_000_000);
            plan.store_bytes.extend([10 * GIBIBYTE, 50 * GIBIBYTE]);
        }
        plan.sections = std::mem::take(arguments);
        match plan.sections.iter().find(|section| !SECTIONS.contains(&section.as_str())) {
            Some(unknown) => Err(format!("`{unknown}` is none of {}", SECTIONS.join(", ")).into()),
            None => Ok(plan),
        }
    }

    fn wants(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|wanted| wanted == section)
    }
}

/// Starts servers on stores in one folder.
struct Launcher {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Launcher {
    fn store(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.db"))
    }

    fn start(&self, store: &Path, options: &[&str]) -> Result<ServerProcess, Failure> {
        let mut command = Command::new(&self.program);
        command.current_dir(self.folder.path()).args(["serve", "--listen", "127.0.0.1:0", "--store"]);
        command.arg(format!("sqlite:{}", store.display())).args(options);
        ServerProcess::start(ServerKind::Runwire, &mut command)
    }
}

/// Runs the benchmark and prints the report.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut arguments = arguments.to_vec();
    let given = take_text(&mut arguments, "--server")?.map(PathBuf::from);
    let folder = take_text(&mut arguments, "--folder")?.map_or_else(std::env::temp_dir, PathBuf::from);
    let json = take_flag(&mut arguments, "--json");
    let plan = Plan::new(&mut arguments)?;
    let program = match given {
        Some(program) => program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))?,
        None => build_runwire()?,
    };
    let folder = tempfile::Builder::new().prefix("runwire-growth-").tempdir_in(folder)?;
    let launcher = Launcher { program, folder };
    raise_open_files()?;

    let mut report = Report::begin(json);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if plan.wants("open-runs") {
            open_runs(&plan, &launcher, &mut report).await?;
        }
        if plan.wants("long-run") {
            long_runs(&plan, &launcher, &mut report).await?;
        }
        if plan.wants("store") {
            stores(&plan, &launcher, &mut report).await?;
        }
        if plan.wants("idle-readers") {
            idle_readers::measure(&launcher, plan.idle_readers, &mut report).await?;
        }
        Ok::<_, Failure>(())
    })?;
    report.end();
    Ok(())
}

/// Measures single appends while ever more runs are open.
async fn open_runs(plan: &Plan, launcher: &Launcher, report: &mut Report) -> Result<(), Failure> {
    let mut servers = Vec::new();
    for count in &plan.open_runs {
        let server = launcher.start(&launcher.store(&format!("open-{count}")), &[])?;
        let runs: Vec<String> = (0..*count).map(|number| format!("open-{number:06}")).collect();
        append::begin(&server, &runs).await?;
        servers.push((server, runs));
    }
    let mut figures: Vec<[Figure; 2]> = plan
        .open_runs
        .iter()
        .map(|count| {
            let rate = Figure::new(format!("appends with {count} open runs"), "events/s");
            [rate, Figure::new("  p99", "ms")]
        })
        .collect();
    for _ in 0..plan.rounds {
        let mut smallest = None;
        for ((server, runs), figures) in servers.iter().zip(&mut figures) {
            let wrote = append::measure_runs(server, runs, plan.duration).await?;
            let values = [wrote.events_per_second, wrote.p99_milliseconds.unwrap_or(0.0)];
            let beside = *smallest.get_or_insert(values);
            for ((figure, value), beside) in figures.iter_mut().zip(values).zip(beside) {
                figure.server.push(value);
                figure.beside.push(beside);
            }
            figures[0].cpu[0].push(wrote.cpu_microseconds_per_event);
        }
    }
    report.add(figures.into_iter().flatten());
    Ok(())
}

/// Measures appending to, resuming and attaching to runs of ever more events.
async fn long_runs(plan: &Plan, launcher: &Launcher, report: &mut Report) -> Result<(), Failure> {
    let mut smallest = None;
    for events in &plan.run_events {
        let store = launcher.store(&format!("run-{events}"));
        require_space(&store, *events as u64 * 200)?;
        let server = launcher.start(&store, &[])?;
        let run = LongRun::write(&server, *events).await?;
        let values = run.measure(&server, REQUESTS).await?;
        let resident = server.resident_kibibytes()? / 1024.0;
        let beside = *smallest.get_or_insert((values, resident));
        let names = ["append, alone", "resume 10 events before its end", "read one page at its end"];
        let figures = names.into_iter().zip(values).zip(beside.0).map(|((name, value), beside)| {
            figure(format!("a run of {events} events: {name}"), "ms", value, beside)
                .with_goal(Goal::RatioAtMost(2.0))
        });
        report.add(figures);
        report.add([figure("  memory of the server".into(), "MiB", resident, beside.1)]);
    }
    Ok(())
}

/// Measures appends, lists, resuming, start-up, memory and retention with stores of ever more bytes.
async fn stores(plan: &Plan, launcher: &Launcher, report: &mut Report) -> Result<(), Failure> {
    let mut smallest = None;
    for bytes in &plan.store_bytes {
        let store = launcher.store(&format!("store-{bytes}"));
        require_space(&store, *bytes + *bytes / 4)?;
        let size = {
            let server = launcher.start(&store, &[])?;
            StoreSize::write(&server, *bytes).await?
        };
        let begun = Instant::now();
        let server = launcher.start(&store, &[])?;
        let start = begun.elapsed().as_secs_f64() * 1e3;
        let list = latency(&server, "/v1/runs?limit=50", REQUESTS).await?;
        let resume = latency(&server, &size.resume_path(), REQUESTS).await?;
        let runs: Vec<String> = (0..append::RUNS).map(|number| format!("new-{number:03}")).collect();
        append::begin(&server, &runs).await?;
        let wrote = append::measure_runs(&server, &runs, plan.duration).await?;
        let resident = server.resident_kibibytes()? / 1024.0;
        drop(server);
        let limit = (*bytes / 2).to_string();
        let server = launcher.start(&store, &["--retention-bytes", &limit])?;
        let retention = size.wait_until_trimmed(&server).await?;
        drop(server);
        std::fs::remove_file(&store)?;

        let values = [start, list, resume, 1e6 / wrote.events_per_second, resident, retention];
        let beside = *smallest.get_or_insert(values);
        let mebibytes = bytes >> 20;
        let names = [
            ("start until it listens", "ms"),
            ("a list of 50 runs", "ms"),
            ("a page of an old run", "ms"),
            ("µs between single appends", "µs"),
            ("memory of the server", "MiB"),
            ("half of it is removed by retention", "s"),
        ];
        report.add(names.into_iter().zip(values).zip(beside).map(|(((name, unit), value), beside)| {
            figure(format!("a store of {mebibytes} MiB: {name}"), unit, value, beside)
        }));
    }
    Ok(())
}

fn figure(name: String, unit: &'static str, value: f64, beside: f64) -> Figure {
    let mut figure = Figure::new(name, unit);
    figure.server.push(value);
    figure.beside.push(beside);
    figure
}

/// Returns the median latency of a read in milliseconds.
async fn latency(server: &ServerProcess, path: &str, times: usize) -> Result<f64, Failure> {
    let request = client::get(path, "application/json");
    exchange_latency(server, &request, times).await
}

/// Returns the median latency of a request, which is repeated, in milliseconds.
async fn exchange_latency(server: &ServerProcess, request: &[u8], times: usize) -> Result<f64, Failure> {
    let mut connection = HttpConnection::open(server.address).await?;
    let (mut milliseconds, mut body) = (Vec::with_capacity(times), Vec::new());
    for _ in 0..times {
        let begun = Instant::now();
        let status = connection.exchange(request, &mut body).await?;
        milliseconds.push(begun.elapsed().as_secs_f64() * 1e3);
        append::expect_success(status, &body)?;
    }
    Ok(median(milliseconds).unwrap_or(0.0))
}

/// Returns the highest share of latencies, in milliseconds.
fn worst(latencies: &mut [u32]) -> f64 {
    percentile(latencies, 0.99).map_or(0.0, |microseconds| f64::from(microseconds) / 1e3)
}

/// Refuses a size for which the disk has no space.
fn require_space(store: &Path, bytes: u64) -> Result<(), Failure> {
    let folder = store.parent().unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(folder)?;
    let free = disk.f_bavail * disk.f_frsize;
    if free > bytes + GIBIBYTE {
        return Ok(());
    }
    let (free, wanted) = (free >> 20, bytes >> 20);
    Err(format!("{} has {free} MiB free; {wanted} MiB are to be written", folder.display()).into())
}
