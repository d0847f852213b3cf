//! Benchmark of the server over HTTP, compared with the same HTTP stack with nothing behind it (the floor).
//!
//! Server and floor are child processes, so that the CPU time of each is known. Rounds of both alternate; the report has
//! medians. Ratios depend on the machine much less than figures.

pub(crate) mod append;
pub(crate) mod client;
pub(crate) mod fan_out;
mod floor;
pub(crate) mod frame;
pub(crate) mod process;
mod replay;
mod sdk;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::append::WriteLoad;
use self::fan_out::{FanOutLoad, PacedWriter};
use self::process::{ServerKind, ServerProcess};
use crate::program::build_runwire;
use crate::report::{Figure, Goal, Report};
use crate::{Failure, take_flag, take_option, take_text};

pub(crate) use self::floor::serve as serve_floor;

/// The hidden subcommand that runs the floor.
pub(crate) const FLOOR: &str = "wire-floor";

/// Single events come first: open bodies are compared with them.
const LOADS: [(WriteLoad, &str); 4] = [
    (WriteLoad::Requests { events: 1 }, "an event a request"),
    (WriteLoad::Requests { events: 16 }, "16 events a request"),
    (WriteLoad::OpenBodies { chunks_at_once: 1 }, "open bodies, an event a write"),
    (WriteLoad::OpenBodies { chunks_at_once: 8 }, "open bodies, 8 events a write"),
];

/// Open files: connections of all readers, and some more.
const OPEN_FILES: u64 = 16 << 10;

/// The options: what is measured, and for how long.
struct Plan {
    sections: Vec<String>,
    json: bool,
    rounds: usize,
    append: Duration,
    crowds: [FanOutLoad; 2],
    fan_out_rounds: usize,
    fan_out: Duration,
    idle_readers: usize,
    replayed_events: usize,
    short_run: usize,
    long_run: usize,
    resumes: usize,
}

const SECTIONS: [&str; 7] = ["append", "fan-out", "catch-up", "resume", "emit", "tail", "import"];

impl Plan {
    fn new(arguments: &mut Vec<String>) -> Result<Self, Failure> {
        let quick = take_flag(arguments, "--quick");
        let json = take_flag(arguments, "--json");
        let mut plan = Self {
            sections: Vec::new(),
            json,
            rounds: 7,
            append: Duration::from_secs(2),
            crowds: [
                FanOutLoad { readers: 500, events_per_second: 500 },
                FanOutLoad { readers: 2000, events_per_second: 50 },
            ],
            fan_out_rounds: 3,
            fan_out: Duration::from_secs(5),
            idle_readers: 2000,
            replayed_events: 100_000,
            short_run: 1000,
            long_run: 1_000_000,
            resumes: 300,
        };
        if quick {
            plan.rounds = 3;
            plan.append = Duration::from_millis(700);
            plan.fan_out_rounds = 1;
            plan.fan_out = Duration::from_secs(2);
            plan.replayed_events = 50_000;
            plan.long_run = 100_000;
            plan.resumes = 100;
        }
        plan.rounds = take_option(arguments, "--rounds", plan.rounds)?.max(1);
        plan.sections = std::mem::take(arguments);
        if let Some(unknown) = plan.sections.iter().find(|section| !SECTIONS.contains(&section.as_str())) {
            return Err(format!("`{unknown}` is none of {}", SECTIONS.join(", ")).into());
        }
        Ok(plan)
    }

    fn wants(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|wanted| wanted == section)
    }
}

/// Starts servers, each with its own folder.
struct Launcher {
    /// `None` if only the floor is measured.
    program: Option<PathBuf>,
    folder: tempfile::TempDir,
    started: usize,
}

impl Launcher {
    fn server(&mut self) -> Result<Option<ServerProcess>, Failure> {
        let Some(program) = &self.program else { return Ok(None) };
        self.started += 1;
        let store = self.folder.path().join(format!("{}.db", self.started));
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).args(["serve", "--listen", "127.0.0.1:0", "--store"]);
        command.arg(format!("sqlite:{}", store.display()));
        ServerProcess::start(ServerKind::Runwire, &mut command).map(Some)
    }

    fn floor(&self) -> Result<ServerProcess, Failure> {
        ServerProcess::start(ServerKind::Floor, Command::new(std::env::current_exe()?).arg(FLOOR))
    }
}

/// Runs the benchmark and prints the report.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut arguments = arguments.to_vec();
    let given = take_text(&mut arguments, "--server")?.map(PathBuf::from);
    let folder = take_text(&mut arguments, "--folder")?.map_or_else(std::env::temp_dir, PathBuf::from);
    let floor_only = take_flag(&mut arguments, "--floor-only");
    let plan = Plan::new(&mut arguments)?;
    let program = match given {
        _ if floor_only => None,
        Some(program) => {
            Some(program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))?)
        }
        None => Some(build_runwire()?),
    };
    let folder = tempfile::Builder::new().prefix("runwire-bench-").tempdir_in(folder)?;
    let mut launcher = Launcher { program, folder, started: 0 };
    raise_open_files()?;

    let mut report = Report::begin(plan.json);
    // One thread generates the load, and leaves the other cores to the server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if plan.wants("append") {
            appends(&plan, &mut launcher, &mut report).await?;
        }
        if plan.wants("fan-out") {
            fan_outs(&plan, &mut launcher, &mut report).await?;
        }
        if plan.wants("catch-up") {
            catch_ups(&plan, &mut launcher, &mut report).await?;
        }
        if plan.wants("resume") {
            resumes(&plan, &mut launcher, &mut report).await?;
        }
        if plan.wants("emit") {
            emits(&plan, &mut launcher, &mut report).await?;
        }
        if plan.wants("tail") {
            tails(&plan, &mut launcher, &mut report).await?;
        }
        if plan.wants("import") {
            imports(&plan, &mut launcher, &mut report).await?;
        }
        Ok::<_, Failure>(())
    })?;
    report.end();
    Ok(())
}

async fn appends(plan: &Plan, launcher: &mut Launcher, report: &mut Report) -> Result<(), Failure> {
    let (server, floor) = (launcher.server()?, launcher.floor()?);
    let mut rates: Vec<Figure> = LOADS.iter().map(|(_, name)| Figure::new(*name, "events/s")).collect();
    rates[0].goal = Some(Goal::RatioAtLeast(0.6));
    let mut tails: Vec<Figure> =
        LOADS[..2].iter().map(|(_, name)| Figure::new(format!("  {name}, p99"), "ms")).collect();
    let mut beside_single: Vec<Figure> = LOADS[2..]
        .iter()
        .map(|(_, name)| Figure::new(format!("  {name}, beside single"), "events/s"))
        .map(|figure| figure.with_goal(Goal::RatioAtLeast(2.5)))
        .collect();
    for round in 0..plan.rounds {
        let mut single = None;
        for (number, (load, _)) in LOADS.iter().enumerate() {
            let label = format!("append-{round}-{number}");
            let floor = append::measure(&floor, *load, &label, plan.append).await?;
            rates[number].beside.push(floor.events_per_second);
            rates[number].cpu[1].push(floor.cpu_microseconds_per_event);
            if let Some(tail) = tails.get_mut(number) {
                tail.beside.extend(floor.p99_milliseconds);
            }
            let Some(server) = &server else { continue };
            let written = append::measure(server, *load, &label, plan.append).await?;
            rates[number].server.push(written.events_per_second);
            rates[number].cpu[0].push(written.cpu_microseconds_per_event);
            if let Some(tail) = tails.get_mut(number) {
                tail.server.extend(written.p99_milliseconds);
            }
            let single = *single.get_or_insert(written.events_per_second);
            if let Some(figure) = number.checked_sub(2).and_then(|open| beside_single.get_mut(open)) {
                figure.server.push(written.events_per_second);
                figure.beside.push(single);
            }
        }
    }
    report.add(rates);
    report.add(tails);
    report.add(beside_single);
    Ok(())
}

async fn fan_outs(plan: &Plan, launcher: &mut Launcher, report: &mut Report) -> Result<(), Failure> {
    // First, while both servers are fresh.
    let (server, floor) = (launcher.server()?, launcher.floor()?);
    let mut idle = Figure::new(format!("an idle reader, of {}", plan.idle_readers), "KiB resident")
        .with_goal(Goal::ValueAtMost(16.0));
    idle.beside.push(fan_out::kibibytes_per_idle_reader(&floor, plan.idle_readers).await?);
    if let Some(server) = &server {
        idle.server.push(fan_out::kibibytes_per_idle_reader(server, plan.idle_readers).await?);
    }
    report.add([idle]);

    for crowd in plan.crowds {
        let name = format!("{} readers at {}/s", crowd.readers, crowd.events_per_second);
        let mut figures = [
            Figure::new(format!("{name}, p50"), "ms"),
            Figure::new(format!("{name}, p99"), "ms"),
            Figure::new(format!("{name}, arrived"), "per second"),
            Figure::new(format!("{name}, delivered"), "per CPU s"),
        ];
        for round in 0..plan.fan_out_rounds {
            let run = format!("crowd-{}-{round}", crowd.readers);
            let floor =
                fan_out::measure([&floor; 2], crowd, PacedWriter::OpenBody, &run, plan.fan_out).await?;
            for (figure, value) in figures.iter_mut().zip(values_of(&floor)) {
                figure.beside.push(value);
            }
            let Some(server) = &server else { continue };
            let server =
                fan_out::measure([server; 2], crowd, PacedWriter::OpenBody, &run, plan.fan_out).await?;
            for (figure, value) in figures.iter_mut().zip(values_of(&server)) {
                figure.server.push(value);
            }
        }
        report.add(figures);
    }
    Ok(())
}

fn values_of(delivered: &fan_out::FanOutRound) -> [f64; 4] {
    [
        delivered.p50_milliseconds,
        delivered.p99_milliseconds,
        delivered.deliveries_per_second,
        delivered.deliveries_per_cpu_second,
    ]
}

async fn catch_ups(plan: &Plan, launcher: &mut Launcher, report: &mut Report) -> Result<(), Failure> {
    const RUN: &str = "catch-up";
    /// Reads per round, for the resolution of CPU time.
    const TIMES: u32 = 3;
    let Some(server) = launcher.server()? else { return Ok(()) };
    let floor = launcher.floor()?;
    replay::fill(&server, RUN, plan.replayed_events).await?;
    let events = plan.replayed_events as f64;
    for dialect in [frame::DIALECT, frame::READ_DIALECT] {
        let name = format!("{} events from the start, {dialect}", plan.replayed_events);
        let mut figure = Figure::new(name, "events/s");
        let path = replay::replay_path(RUN, dialect);
        let stream = replay::read_whole(&server, &path).await?;
        let frames = replay::frames_in(&stream);
        if frames < plan.replayed_events {
            return Err(format!("{frames} frames came of {} events", plan.replayed_events).into());
        }
        let stored = client::post("/stored", "text/event-stream", &stream);
        let mut connection = client::HttpConnection::open(floor.address).await?;
        let status = connection.exchange(&stored, &mut Vec::new()).await?;
        append::expect_success(status, b"")?;
        for _ in 0..plan.rounds {
            let reads = [
                replay::measure(&server, &path, stream.len(), TIMES).await?,
                replay::measure(&floor, "/stored", stream.len(), TIMES).await?,
            ];
            figure.server.push(events / reads[0].took.as_secs_f64());
            figure.beside.push(events / reads[1].took.as_secs_f64());
            for (cpu, read) in figure.cpu.iter_mut().zip(&reads) {
                cpu.push(read.cpu.as_secs_f64() * 1e6 / events);
            }
        }
        report.add([figure]);
    }
    Ok(())
}

async fn resumes(plan: &Plan, launcher: &mut Launcher, report: &mut Report) -> Result<(), Failure> {
    const RUNS: [&str; 2] = ["short", "long"];
    let Some(server) = launcher.server()? else { return Ok(()) };
    replay::fill(&server, RUNS[0], plan.short_run).await?;
    replay::fill(&server, RUNS[1], plan.long_run).await?;
    for dialect in [frame::DIALECT, frame::READ_DIALECT] {
        let resumed = replay::resume(&server, &RUNS, dialect, plan.resumes).await?;
        let [short, long] = &resumed[..] else { return Err("not every run was resumed".into()) };
        let mut figure =
            Figure::new(format!("resume {} beside {}, {dialect}", plan.long_run, plan.short_run), "ms")
                .with_goal(Goal::RatioAtMost(2.0));
        figure.server.push(long.median);
        figure.beside.push(short.median);
        let mut first = Figure::new("  the first time", "ms");
        first.server.push(long.first);
        first.beside.push(short.first);
        report.add([figure, first]);
    }
    Ok(())
}

async fn emits(plan: &Plan, launcher: &mut Launcher, report: &mut Report) -> Result<(), Failure> {
    let Some(server) = launcher.server()? else { return Ok(()) };
    let mut figures = [
        (1, Figure::new("emitting, each event acknowledged", "events/s")),
        (64, Figure::new("emitting, a window of 64", "events/s")),
    ]
    .map(|(window, figure)| (window, figure.with_goal(Goal::RatioAtLeast(0.8))));
    for round in 0..plan.rounds {
        for (window, figure) in &mut figures {
            let run = |by| format!("{by}-{window}-{round}");
            figure.beside.push(sdk::send_raw(&server, &run("raw"), *window, plan.append).await?);
            figure.server.push(sdk::emit(&server, &run("sdk"), *window, plan.append).await?);
        }
    }
    report.add(figures.map(|(_, figure)| figure));
    Ok(())
}

async fn tails(plan: &Plan, launcher: &mut Launcher, report: &mut Report) -> Result<(), Failure> {
    const RUN: &str = "tail";
    let Some(server) = launcher.server()? else { return Ok(()) };
    let Some(program) = &launcher.program else { return Ok(()) };
    replay::fill(&server, RUN, plan.replayed_events).await?;
    sdk::end(&server, RUN).await?;
    let events = plan.replayed_events as f64;
    let name = format!("tail of {} events, beside curl", plan.replayed_events);
    let mut figure = Figure::new(name, "events/s").with_goal(Goal::RatioAtLeast(0.8));
    // The first read warms the cache.
    sdk::curl(&server, RUN)?;
    for _ in 0..plan.rounds {
        figure.beside.push(events / sdk::curl(&server, RUN)?.as_secs_f64());
        figure.server.push(events / sdk::tail(program, &server, RUN)?.as_secs_f64());
    }
    report.add([figure]);
    Ok(())
}

async fn imports(plan: &Plan, launcher: &mut Launcher, report: &mut Report) -> Result<(), Failure> {
    const RUN: &str = "moved";
    let Some(source) = launcher.server()? else { return Ok(()) };
    replay::fill(&source, RUN, plan.replayed_events).await?;
    sdk::end(&source, RUN).await?;
    let file = launcher.folder.path().join("moved.ndjson");
    let events = plan.replayed_events as f64;
    let name = format!("import of {} events, beside writing them", plan.replayed_events);
    let mut figure = Figure::new(name, "events/s");
    for round in 0..plan.rounds {
        let Some(target) = launcher.server()? else { return Ok(()) };
        let Some(program) = &launcher.program else { return Ok(()) };
        if round == 0 {
            sdk::export(program, &source, RUN, &file)?;
        }
        let begun = Instant::now();
        replay::fill(&target, "written", plan.replayed_events).await?;
        figure.beside.push(events / begun.elapsed().as_secs_f64());
        figure.server.push(events / sdk::import(program, &target, &file)?.as_secs_f64());
    }
    report.add([figure]);
    Ok(())
}

/// Raises the limit of open files for this process and its servers.
pub(crate) fn raise_open_files() -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= OPEN_FILES) {
        return Ok(());
    }
    let raised = limit.maximum.map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES));
    setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum })
        .map_err(|error| format!("no more than {:?} open files: {error}", limit.current).into())
}
