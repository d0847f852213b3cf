//! Benchmark of a cluster on Postgres and Redis, compared with plain statements and commands on the same engines.
//!
//! The engines are private and wait for the disk. Nodes are logs in this process, or server processes where a line says
//! HTTP. Rounds of both sides alternate; the report has medians.

mod delivery;
mod load;
mod pg_statements;
mod plain_inserts;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use runwire_engines::{Postgres, PostgresOptions, Redis};

use self::delivery::Pace;
use self::load::{AppendLoad, Node};
use self::plain_inserts::{Floor, StoredRows};
use crate::program::build_runwire;
use crate::report::{Figure, Goal, Report};
use crate::wire::append;
use crate::wire::client::{self, HttpConnection};
use crate::wire::fan_out::{self, FanOutLoad, PacedWriter};
use crate::wire::process::{ServerKind, ServerProcess};
use crate::{Failure, take_flag, take_option, take_text};

const SECTIONS: [&str; 3] = ["append", "delivery", "nodes"];

/// Concurrent writers of one node.
const WRITERS: usize = 64;
/// Concurrent writers on all nodes together.
const WRITERS_IN_ALL: usize = 96;
const NODES: usize = 3;

/// One reader, and some hundreds of events per round.
const FAN_OUT: FanOutLoad = FanOutLoad { readers: 1, events_per_second: 100 };

/// The options: what is measured, and for how long.
struct Plan {
    sections: Vec<String>,
    json: bool,
    statements: bool,
    rounds: usize,
    append: Duration,
    /// Events from node to node, over Redis and by polling the store.
    told: Pace,
    found: Pace,
    reading: Duration,
}

impl Plan {
    fn new(arguments: &mut Vec<String>) -> Result<Self, Failure> {
        let quick = take_flag(arguments, "--quick");
        let mut plan = Self {
            sections: Vec::new(),
            json: take_flag(arguments, "--json"),
            statements: take_flag(arguments, "--statements"),
            rounds: 7,
            append: Duration::from_secs(3),
            told: Pace { events: 1000, most_milliseconds: 3 },
            found: Pace { events: 200, most_milliseconds: 50 },
            reading: Duration::from_secs(5),
        };
        if quick {
            plan.rounds = 3;
            plan.append = Duration::from_secs(1);
            plan.told.events = 300;
            plan.found.events = 50;
            plan.reading = Duration::from_secs(2);
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

/// The engines, and the measured program.
struct Engines {
    postgres: Postgres,
    redis: Redis,
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Engines {
    /// Starts a server on a store.
    fn server(&self, store: &str, tail: Option<&str>) -> Result<ServerProcess, Failure> {
        let mut command = Command::new(&self.program);
        command.current_dir(self.folder.path()).args(["serve", "--listen", "127.0.0.1:0", "--store", store]);
        command.args(tail.into_iter().flat_map(|tail| ["--tail", tail]));
        ServerProcess::start(ServerKind::Runwire, &mut command)
    }
}

/// Runs the benchmark and prints the report.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut arguments = arguments.to_vec();
    let given = take_text(&mut arguments, "--server")?.map(PathBuf::from);
    let plan = Plan::new(&mut arguments)?;
    let program = match given {
        Some(program) => program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))?,
        None => build_runwire()?,
    };
    // Enough WAL for a round, so that checkpoints are not forced all the time.
    let mut settings = vec!["max_wal_size=2GB".to_owned(), "shared_buffers=256MB".to_owned()];
    settings.extend(plan.statements.then(|| pg_statements::SETTING.to_owned()));
    let engines = Engines {
        postgres: Postgres::start_with(PostgresOptions { fsync: true, settings, ..Default::default() })?,
        redis: Redis::start()?,
        program,
        folder: tempfile::Builder::new().prefix("runwire-bench-").tempdir()?,
    };
    let mut report = Report::begin(plan.json);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        if plan.wants("append") {
            appends(&plan, &engines, &mut report).await?;
            appends_over_http(&plan, &engines, &mut report).await?;
        }
        if plan.wants("delivery") {
            deliveries(&plan, &engines, &mut report).await?;
            deliveries_over_http(&plan, &engines, &mut report).await?;
        }
        if plan.wants("nodes") {
            nodes(&plan, &engines, &mut report).await?;
        }
        Ok::<_, Failure>(())
    })?;
    report.end();
    Ok(())
}

async fn appends(plan: &Plan, engines: &Engines, report: &mut Report) -> Result<(), Failure> {
    let database = "appends";
    let url = engines.postgres.create_database(database)?;
    let node = [load::open(&url, None).await?];
    for (events, name) in [(1, "an event an append"), (16, "16 events an append")] {
        let load = AppendLoad { writers: WRITERS, runs: append::RUNS, events, shared: false, brief: false };
        let mut records =
            Figure::new(format!("{name}, beside INSERT"), "events/s").with_goal(Goal::RatioAtLeast(0.7));
        let mut heads = Figure::new(format!("{name}, beside INSERT and heads"), "events/s");
        let mut group = Figure::new("  events of a commit", "");
        let mut commit = Figure::new("  a commit", "ms");
        let mut slow = Figure::new("  p99", "ms");
        if plan.statements {
            pg_statements::begin(&engines.postgres, database)?;
        }
        for round in 0..plan.rounds {
            let label = format!("append-{events}-{round}");
            let written = load.measure(&node, &label, plan.append).await?;
            let rows = Arc::new(StoredRows::stored(&url, &label).await?);
            let rows_a_commit = group_of(rows.stored - append::RUNS as u64, written.commits);
            for (figure, floor) in [(&mut records, Floor::Records), (&mut heads, Floor::RecordsAndHeads)] {
                figure.server.push(written.events_per_second);
                figure.beside.push(insert(&rows, &url, floor, rows_a_commit, plan.append).await?);
            }
            group.server.push(written.events as f64 / written.commits as f64);
            commit.server.push(written.commit_milliseconds);
            slow.server.push(written.p99_milliseconds);
        }
        report.add([records, heads, group, commit, slow]);
        if plan.statements {
            pg_statements::print(&engines.postgres, database)?;
        }
    }
    node[0].close().await;
    Ok(())
}

async fn appends_over_http(plan: &Plan, engines: &Engines, report: &mut Report) -> Result<(), Failure> {
    let url = engines.postgres.create_database("appends-http")?;
    let server = engines.server(&url, None)?;
    let embedded = engines.server("sqlite:embedded.db", None)?;
    let name = "an event a request over HTTP";
    let mut records = Figure::new(format!("{name}, beside INSERT"), "events/s");
    let mut beside = Figure::new(format!("{name}, beside SQLite"), "events/s");
    let mut group = Figure::new("  events of a commit", "");
    for round in 0..plan.rounds {
        let label = format!("http-{round}");
        let load = append::WriteLoad::Requests { events: 1 };
        let before = commits_of(&server).await?;
        let written = append::measure(&server, load, &label, plan.append).await?;
        let commits = commits_of(&server).await? - before;
        let rows = Arc::new(StoredRows::stored(&url, &label).await?);
        // A round starts and ends its runs one by one.
        let singly = 2 * append::RUNS as u64;
        let rows_a_commit =
            group_of(rows.stored.saturating_sub(singly), commits.saturating_sub(singly).max(1));
        let floor = insert(&rows, &url, Floor::Records, rows_a_commit, plan.append).await?;
        let alone = append::measure(&embedded, load, &label, plan.append).await?;
        for (figure, other) in [(&mut records, floor), (&mut beside, alone.events_per_second)] {
            figure.server.push(written.events_per_second);
            figure.beside.push(other);
            figure.cpu[0].push(written.cpu_microseconds_per_event);
        }
        beside.cpu[1].push(alone.cpu_microseconds_per_event);
        group.server.push(rows_a_commit as f64);
    }
    report.add([records, beside, group]);
    Ok(())
}

/// Inserts rows on a blocking thread.
async fn insert(
    rows: &Arc<StoredRows>,
    url: &str,
    floor: Floor,
    group: usize,
    duration: Duration,
) -> Result<f64, Failure> {
    let (rows, url) = (rows.clone(), url.to_owned());
    tokio::task::spawn_blocking(move || rows.insert(&url, floor, group, duration)).await?
}

/// Returns the mean number of rows per commit.
fn group_of(rows: u64, commits: u64) -> usize {
    ((rows as f64 / commits as f64).round() as usize).max(1)
}

/// Reads a server's number of commits.
async fn commits_of(server: &ServerProcess) -> Result<u64, Failure> {
    let mut body = Vec::new();
    let mut connection = HttpConnection::open(server.address).await?;
    let status = connection.exchange(&client::get("/metrics", "text/plain"), &mut body).await?;
    append::expect_success(status, &body)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    let commits = text.lines().find_map(|line| line.strip_prefix("runwire_commit_seconds_count "));
    Ok(commits.and_then(|commits| commits.trim().parse().ok()).ok_or("the server counts no commits")?)
}

async fn deliveries(plan: &Plan, engines: &Engines, report: &mut Report) -> Result<(), Failure> {
    let (url, tail) = (engines.postgres.create_database("deliveries")?, engines.redis.url());
    for (name, tail, pace) in
        [("node to node with Redis", Some(&*tail), plan.told), ("node to node without", None, plan.found)]
    {
        let (writer, reader) = (load::open(&url, tail).await?, load::open(&url, tail).await?);
        let goal = |figure: Figure| match tail {
            Some(_) => figure.with_goal(Goal::RatioAtMost(2.0)),
            None => figure,
        };
        let mut figures = ["p50", "p99"]
            .map(|share| goal(Figure::new(format!("{name}, {share}, beside XADD/XREAD"), "ms")));
        for round in 0..plan.rounds {
            let label = format!("delivery-{}-{round}", tail.is_some());
            let pair = delivery::measure_pair(&engines.redis.url(), &label, plan.told).await?;
            let told = delivery::measure(&writer, &reader, &label, pace).await?;
            for (figure, [told, pair]) in figures.iter_mut().zip([
                [told.p50_milliseconds, pair.p50_milliseconds],
                [told.p99_milliseconds, pair.p99_milliseconds],
            ]) {
                figure.server.push(told);
                figure.beside.push(pair);
            }
        }
        report.add(figures);
        writer.close().await;
        reader.close().await;
    }
    Ok(())
}

async fn deliveries_over_http(plan: &Plan, engines: &Engines, report: &mut Report) -> Result<(), Failure> {
    let (url, tail) = (engines.postgres.create_database("deliveries-http")?, engines.redis.url());
    let here = engines.server(&url, Some(&tail))?;
    let there = engines.server(&url, Some(&tail))?;
    let mut figures = ["p50", "p99"]
        .map(|share| Figure::new(format!("reader on another node, {share}, beside same node"), "ms"));
    for round in 0..plan.rounds {
        let near = fan_out::measure(
            [&here; 2],
            FAN_OUT,
            PacedWriter::OpenBody,
            &format!("near-{round}"),
            plan.reading,
        )
        .await?;
        let far = fan_out::measure(
            [&here, &there],
            FAN_OUT,
            PacedWriter::OpenBody,
            &format!("far-{round}"),
            plan.reading,
        )
        .await?;
        for (figure, [far, near]) in figures.iter_mut().zip([
            [far.p50_milliseconds, near.p50_milliseconds],
            [far.p99_milliseconds, near.p99_milliseconds],
        ]) {
            figure.server.push(far);
            figure.beside.push(near);
        }
    }
    report.add(figures);
    Ok(())
}

async fn nodes(plan: &Plan, engines: &Engines, report: &mut Report) -> Result<(), Failure> {
    let (url, tail) = (engines.postgres.create_database("nodes")?, engines.redis.url());
    let mut nodes: Vec<Node> = Vec::new();
    for _ in 0..NODES {
        nodes.push(load::open(&url, Some(&tail)).await?);
    }
    let many = append::RUNS;
    for (runs, shared, name) in [
        (many, false, "each its threads"),
        (many, true, "all on all threads"),
        (1, true, "all on one thread"),
    ] {
        let load = AppendLoad { writers: WRITERS_IN_ALL, runs, events: 1, shared, brief: runs == 1 };
        let mut rate = Figure::new(format!("three nodes, {name}, beside one"), "events/s");
        let mut slow = Figure::new("  p99", "ms");
        for round in 0..plan.rounds {
            let label = |nodes: usize| format!("nodes-{nodes}-{runs}-{shared}-{round}");
            let one = load.measure(&nodes[..1], &label(1), plan.append).await?;
            let all = load.measure(&nodes, &label(NODES), plan.append).await?;
            rate.server.push(all.events_per_second);
            rate.beside.push(one.events_per_second);
            slow.server.push(all.p99_milliseconds);
            slow.beside.push(one.p99_milliseconds);
        }
        report.add([rate, slow]);
    }
    for node in &nodes {
        node.close().await;
    }
    Ok(())
}
