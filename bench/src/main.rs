//! `cargo xtask bench`: the project's figures (`bench/README.md`).
//!
//! Nothing here is asserted in a test: figures belong to a machine and an hour.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

mod codecs;
mod memory;
mod workload;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask bench NAME

  codecs [--rounds N] [DIALECT]...   decoding and encoding beside serde_json, each dialect
  memory [--mebibytes N]             the peak memory of `convert` on a large input
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

/// What a benchmark gives up with.
type Failure = Box<dyn std::error::Error>;

/// Takes the value of an option like `--rounds 15` out of the arguments.
fn take_option(arguments: &mut Vec<String>, option: &str, default: usize) -> Result<usize, Failure> {
    let Some(at) = arguments.iter().position(|argument| argument == option) else { return Ok(default) };
    let value = arguments.get(at + 1).and_then(|value| value.parse().ok());
    let value = value.ok_or_else(|| format!("{option} wants a whole number"))?;
    arguments.drain(at..at + 2);
    Ok(value)
}
