//! `cargo xtask bench`: the project's benchmarks (`bench/README.md`).
//!
//! No test asserts the figures, which depend on the machine.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

mod cluster;
mod codecs;
mod growth;
mod log;
mod memory;
mod peers;
mod program;
mod report;
mod statistics;
mod wire;
mod workload;

use std::process::ExitCode;

// What the server allocates with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: cargo xtask bench NAME

  codecs [--rounds N] [DIALECT]...   decoding and encoding beside serde_json, each dialect
  memory [--mebibytes N]             the peak memory of `convert` on a large input
  wire [OPTION]... [SECTION]...      the server under load, beside its HTTP stack with nothing behind it
  log [OPTION]... [CASE]...          appends to the embedded store without HTTP, CPU time by thread
  cluster [OPTION]... [SECTION]...   nodes on Postgres and Redis, beside plain statements and commands
  peers [OPTION]... [SECTION]...     the server beside durable-streams, nchan and Redis, under one load
  growth [OPTION]... [SECTION]...    operations as runs, events, bytes and readers become more

sections of wire: append, fan-out, catch-up, resume, emit, tail, import (all of them unless some are named)
options of wire:
  --quick          smaller and shorter, under a minute
  --rounds N       rounds of each load
  --json           all figures and rounds as one JSON document
  --server PATH    a `runwire` that is there, instead of building it
  --folder PATH    where the stores are, instead of the system's temporary folder
  --floor-only     nothing but the floor

options of log: --quick, --rounds N, --folder PATH as above, --milliseconds N of each round

sections of cluster: append, delivery, nodes
sections of peers: append, idle, fan-out
options of peers: --quick, --rounds N, --server PATH, --folder PATH as above, and
  --tools DIR      a folder with peers that are not on the path
  --idle-readers N
  --write          write bench/results, and the table of docs/performance.md

sections of growth: open-runs, long-run, store, idle-readers
options of growth: --quick, --rounds N, --json, --server PATH, --folder PATH as above, and
  --long           also a run of 5,000,000 events, and stores of 10 and 50 GiB
  --idle-readers N

options of cluster: --quick, --rounds N, --json, --server PATH as above, and
  --statements     also which statements the store was busy with
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match arguments.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("", arguments.as_slice()),
    };
    let result = match name {
        "codecs" => codecs::run(rest),
        "memory" => memory::run(rest),
        "wire" => wire::run(rest),
        "log" => log::run(rest),
        "cluster" => cluster::run(rest),
        "peers" => peers::run(rest),
        "growth" => growth::run(rest),
        wire::FLOOR => wire::serve_floor(),
        peers::REDIS_RELAY => peers::serve_redis_relay(rest),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The error of a benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Takes the value of an option like `--rounds 15` out of the arguments.
fn take_option(arguments: &mut Vec<String>, option: &str, default: usize) -> Result<usize, Failure> {
    let Some(at) = arguments.iter().position(|argument| argument == option) else { return Ok(default) };
    let value = arguments.get(at + 1).and_then(|value| value.parse().ok());
    let value = value.ok_or_else(|| format!("{option} wants a whole number"))?;
    arguments.drain(at..at + 2);
    Ok(value)
}

/// Takes the value of an option like `--folder PATH` out of the arguments.
fn take_text(arguments: &mut Vec<String>, option: &str) -> Result<Option<String>, Failure> {
    let Some(at) = arguments.iter().position(|argument| argument == option) else { return Ok(None) };
    if at + 1 == arguments.len() {
        return Err(format!("{option} wants a value").into());
    }
    Ok(arguments.drain(at..at + 2).next_back())
}

/// Takes a flag like `--quick` out of the arguments.
fn take_flag(arguments: &mut Vec<String>, flag: &str) -> bool {
    let before = arguments.len();
    arguments.retain(|argument| argument != flag);
    arguments.len() < before
}
