//! `runwire`: the command line.
//!
//! The libraries never print; every text for people is in this crate.

mod arguments;
mod check_config;
mod client;
mod completions;
mod config;
mod convert;
mod convert_output;
mod ending;
mod exec;
mod failure;
mod hint;
mod input;
mod man;
mod migrate;
#[cfg(test)]
mod reference;
mod screen;
mod serve;
mod table;
mod transfer;
mod validate;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use runwire_check::nearest;

/// Fast for the many small allocations of events.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| hide_password(error).exit());
    let verdict = match &arguments.command {
        Command::Convert(arguments) => convert::run(arguments),
        Command::Validate(arguments) => validate::run(arguments),
        Command::Dev(arguments) => serve::dev(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Migrate(arguments) => migrate::run(arguments),
        Command::CheckConfig(arguments) => check_config::run(arguments),
        Command::Push(arguments) => client::push(arguments),
        Command::Tail(arguments) => client::tail(arguments),
        Command::Replay(arguments) => client::replay(arguments),
        Command::Run(arguments) => client::start(arguments),
        Command::Exec(arguments) => exec::run(arguments),
        Command::Inbox(arguments) => client::inbox(arguments),
        Command::Answer(arguments) => client::answer(arguments),
        Command::Cancel(arguments) => client::cancel(arguments),
        Command::Retry(arguments) => client::retry(arguments),
        Command::Runs(arguments) => client::runs(arguments),
        Command::Show(arguments) => client::show(arguments),
        Command::Export(arguments) => transfer::export(arguments),
        Command::Import(arguments) => transfer::import(arguments),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments),
    };
    match verdict {
        Ok(verdict) => verdict.exit_code(),
        // The reader closed the pipe (`runwire convert … | head`): not an error.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            screen::say_error(&failure, failure.hint());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Hides passwords in clap's error messages, which may be logged.
fn hide_password(mut error: clap::Error) -> clap::Error {
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg] {
        if let Some(ContextValue::String(value)) = error.get(kind) {
            let value = ContextValue::String(config::without_password(value).into_owned());
            error.insert(kind, value);
        }
    }
    error
}

/// The result of a command, as an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine,
    HasProblems,
    /// The exit code of a signal or of a program.
    Exit(u8),
}

impl Verdict {
    fn exit_code(self) -> ExitCode {
        match self {
            Self::Fine => ExitCode::SUCCESS,
            Self::HasProblems => ExitCode::from(1),
            Self::Exit(code) => ExitCode::from(code),
        }
    }
}
