//! The project's own commands, run as `cargo xtask COMMAND`.
//!
//! `cargo xtask test` is the one test command: what it passes may be merged.

#![allow(clippy::print_stdout, clippy::print_stderr)] // A command line speaks.

mod arguments;
mod command;
mod deploy;
mod fuzz;
mod new_dialect;
mod stages;
mod tidy;
mod tools;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;

use arguments::XtaskCommand;
use command::{TaskError, cargo, run};
use stages::Context;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--long] [--minutes N] [--only STAGE,...]
                                format, lint, tests, docs and every other check, with the time of each
                                --long adds more property cases, an hour of chaos in the cluster, a
                                new dialect in a copy of the repository, and N minutes of fuzzing (default 60)
                                --only runs the stages of these names
  format                        format all Rust files, also those that a macro declares
  cluster [--long]              only the tests with PostgreSQL and Redis
  new-dialect [--target-dir FOLDER]
                                only the proof that a dialect is one folder and one line (part of --long)
                                builds in target/new-dialect/build, or in FOLDER, and reuses what is there
  deploy                        only the checks of the files in deploy/
  vectors                       write the expectations and schemas in vectors/, the tables in docs/ and the model's schema anew
  console                       build the console anew into console/dist, which the server embeds
  tidy                          only the checks of the tree itself: links, lock files, stray paths, names
  fuzz [--minutes N]            fuzz the decoders and framings, from the seeds in fuzz/seeds (default 60)
  bench NAME [ARGUMENT]...      print the figures of a benchmark, such as `codecs`
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = match arguments::parse(&arguments) {
        Ok(command) => command,
        Err(problem) => {
            eprintln!("cargo xtask: {problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match perform(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\ncargo xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn perform(command: XtaskCommand) -> Result<(), TaskError> {
    let root = repository_root();
    match command {
        XtaskCommand::Help => {
            print!("{USAGE}");
            Ok(())
        }
        XtaskCommand::Test { long, fuzz_minutes, only } => {
            stages::run_all(&Context { root, long, fuzz_minutes }, only.as_deref())
        }
        XtaskCommand::Format => stages::rustfmt(&root, &[]),
        XtaskCommand::Cluster { long } => stages::cluster(&Context { root, long, fuzz_minutes: 0 }),
        XtaskCommand::NewDialect { target } => {
            new_dialect::check(&Context { root, long: false, fuzz_minutes: 0 }, target)
        }
        XtaskCommand::Deploy => deploy::check(&Context { root, long: false, fuzz_minutes: 0 }),
        XtaskCommand::Vectors => {
            let write = |arguments: &[&str]| {
                run(cargo(&root)
                    .arg("test")
                    .args(arguments)
                    .envs([("RUNWIRE_WRITE_VECTORS", "1"), ("RUNWIRE_WRITE_DOCS", "1")]))
            };
            write(&["-p", "runwire-model", "--lib", "--test", "it", "--", "vectors", "docs", "schema::"])?;
            // The schema of HTTP refers to that of the model.
            write(&["-p", "runwire-server", "--lib", "--", "openapi::"])
        }
        XtaskCommand::Console => web::build_console(&root),
        XtaskCommand::Tidy => tidy::run(&root),
        XtaskCommand::Fuzz { minutes } => fuzz::run_for(&root, minutes),
        XtaskCommand::Bench { arguments } => run(cargo(&root)
            .args(["run", "--profile", "dist", "--package", "runwire-bench", "--"])
            .args(arguments)),
    }
}

/// Finds the repository from where xtask's own manifest is, so that every
/// command works from any folder inside it.
fn repository_root() -> PathBuf {
    // Cargo sets the variable for what it runs; a clone that was moved after
    // the build would make the compiled-in path wrong.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}
