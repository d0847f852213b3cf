//! Benchmark of Runwire beside other servers that pass on or keep streams, under one load.
//!
//! Rounds of all servers alternate. A peer that is not installed is left out, with a line that says how to get it; nothing
//! is installed here. Every figure is reported, also where a peer is better.

mod launch;
mod redis_relay;
mod results;

use std::path::PathBuf;
use std::time::Duration;

use self::launch::{PeerKind, Peers};
use self::results::{Measured, Results};
use crate::program::build_runwire;
use crate::wire::append::{self, WriteLoad};
use crate::wire::fan_out::{self, FanOutLoad, PacedWriter};
use crate::wire::process::ServerProcess;
use crate::wire::raise_open_files;
use crate::{Failure, take_flag, take_option, take_text};

pub(crate) use self::redis_relay::serve as serve_redis_relay;

/// The hidden subcommand that runs the relay in front of Redis.
pub(crate) const REDIS_RELAY: &str = "peers-redis-relay";

const SECTIONS: [&str; 3] = ["append", "fan-out", "idle"];

/// Readers and rates, and the name of each.
const CROWDS: [(FanOutLoad, &str); 2] = [
    (FanOutLoad { readers: 2000, events_per_second: 50 }, "2,000 readers at 50/s"),
    (FanOutLoad { readers: 500, events_per_second: 500 }, "500 readers at 500/s"),
];

/// What is measured, and for how long.
struct Plan {
    sections: Vec<String>,
    rounds: usize,
    duration: Duration,
    idle_readers: usize,
}

impl Plan {
    fn wants(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|wanted| wanted == section)
    }
}

/// Runs the benchmark, and writes its results.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut arguments = arguments.to_vec();
    let quick = take_flag(&mut arguments, "--quick");
    let rounds = take_option(&mut arguments, "--rounds", if quick { 3 } else { 5 })?.max(1);
    let idle_readers = take_option(&mut arguments, "--idle-readers", 2000)?.max(1);
    let write = take_flag(&mut arguments, "--write");
    let given = take_text(&mut arguments, "--server")?.map(PathBuf::from);
    let tools = take_text(&mut arguments, "--tools")?.map(PathBuf::from);
    let folder = take_text(&mut arguments, "--folder")?.map_or_else(std::env::temp_dir, PathBuf::from);
    if let Some(unknown) = arguments.iter().find(|section| !SECTIONS.contains(&section.as_str())) {
        return Err(format!("`{unknown}` is none of {}", SECTIONS.join(", ")).into());
    }
    let duration = if quick { Duration::from_secs(1) } else { Duration::from_secs(4) };
    let plan = Plan { sections: arguments, rounds, duration, idle_readers };
    let runwire = match given {
        Some(program) => program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))?,
        None => build_runwire()?,
    };
    let folder = tempfile::Builder::new().prefix("runwire-peers-").tempdir_in(folder)?;
    raise_open_files()?;
    let peers = Peers::find(runwire, tools, folder.path());
    for (peer, help) in peers.missing() {
        eprintln!("{} is left out: {help}", peer.name());
    }
    // One thread generates the load, and leaves the other cores to the servers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let results = runtime.block_on(measure(&plan, &peers))?;
    results.print();
    if write { results.write() } else { Ok(()) }
}

async fn measure(plan: &Plan, peers: &Peers) -> Result<Results, Failure> {
    let mut results = Results::new(peers.found(), plan.rounds);
    if plan.wants("append") {
        appends(plan, peers, &mut results).await?;
    }
    if plan.wants("idle") {
        idle(plan, peers, &mut results).await?;
    }
    if plan.wants("fan-out") {
        fan_outs(plan, peers, &mut results).await?;
    }
    Ok(results)
}

async fn appends(plan: &Plan, peers: &Peers, results: &mut Results) -> Result<(), Failure> {
    let servers = peers.start_all("append")?;
    for (events, work) in [(1, "an event a request"), (16, "16 events a request")] {
        for round in 0..plan.rounds {
            // Whoever is first in a round finds a colder machine: each is in turn.
            for at in 0..servers.len() {
                let (peer, server) = &servers[(at + round) % servers.len()];
                if events > 1 && !peer.takes_batches() {
                    continue;
                }
                let label = format!("peer-{events}-{round}");
                let load = WriteLoad::Requests { events };
                let wrote = append::measure(server, load, &label, plan.duration).await?;
                let mut add = |measured, value| results.add(work, measured, *peer, value);
                add(Measured::EventsPerSecond, wrote.events_per_second);
                if let Some(p99) = wrote.p99_milliseconds {
                    add(Measured::P99, p99);
                }
                add(Measured::CpuPerEvent, wrote.cpu_microseconds_per_event);
            }
        }
    }
    Ok(())
}

async fn idle(plan: &Plan, peers: &Peers, results: &mut Results) -> Result<(), Failure> {
    let work = format!("an idle reader, of {}", plan.idle_readers);
    for round in 0..plan.rounds {
        for peer in peers.found() {
            // A fresh server each time: memory that is used again would not be counted.
            let server = peers.start(peer, &format!("idle-{round}"))?;
            let kibibytes = fan_out::kibibytes_per_idle_reader(&server, plan.idle_readers).await?;
            results.add(&work, Measured::KibibytesPerReader, peer, kibibytes);
        }
    }
    Ok(())
}

async fn fan_outs(plan: &Plan, peers: &Peers, results: &mut Results) -> Result<(), Failure> {
    let servers = peers.start_all("fan-out")?;
    for (crowd, work) in CROWDS {
        for round in 0..plan.rounds {
            for at in 0..servers.len() {
                let (peer, server) = &servers[(at + round) % servers.len()];
                if let Err(error) = fan_out(plan, crowd, (*peer, server), (work, round), results).await {
                    eprintln!("{}, {work}, round {}: {error}", peer.name(), round + 1);
                }
            }
        }
    }
    Ok(())
}

async fn fan_out(
    plan: &Plan,
    crowd: FanOutLoad,
    (peer, server): (PeerKind, &ServerProcess),
    (work, round): (&str, usize),
    results: &mut Results,
) -> Result<(), Failure> {
    let run = format!("crowd-{}-{round}", crowd.readers);
    let delivered = fan_out::measure([server; 2], crowd, PacedWriter::Requests, &run, plan.duration).await?;
    let mut add = |measured, value| results.add(work, measured, peer, value);
    add(Measured::P50, delivered.p50_milliseconds);
    add(Measured::P99, delivered.p99_milliseconds);
    add(Measured::DeliveredPerCpuSecond, delivered.deliveries_per_cpu_second);
    add(Measured::WrittenPerSecond, delivered.written_per_second);
    Ok(())
}
