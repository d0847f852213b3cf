//! `runwire`: the command line.
//!
//! The model never prints; every word that a person reads is written here.

mod arguments;
mod check_config;
mod client;
mod config;
mod convert;
mod ending;
mod failure;
mod hint;
mod input;
mod nearest;
mod output;
mod screen;
mod serve;
mod table;
mod validate;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;

/// Events are many small pieces of text; this allocator is made for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let verdict = match &arguments.command {
        Command::Convert(arguments) => convert::run(arguments),
        Command::Validate(arguments) => validate::run(arguments),
        Command::Dev(arguments) => serve::dev(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::CheckConfig(arguments) => check_config::run(arguments),
        Command::Push(arguments) => client::push(arguments),
        Command::Tail(arguments) => client::tail(arguments),
        Command::Runs(arguments) => client::runs(arguments),
        Command::Show(arguments) => client::show(arguments),
    };
    match verdict {
        Ok(verdict) => verdict.exit_code(),
        // Whoever reads has what it wanted (`runwire convert … | head`): that is no fault of the stream.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            screen::say_error(&failure, failure.hint());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// What was found out about the stream, or the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine,
    HasProblems,
}

impl Verdict {
    fn exit_code(self) -> ExitCode {
        match self {
            Self::Fine => ExitCode::SUCCESS,
            Self::HasProblems => ExitCode::from(1),
        }
    }
}
