//! `runwire completions`: prints a shell's completion script.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::Verdict;
use crate::arguments::{Arguments, CompletionsArguments};
use crate::failure::Failure;

/// Prints the completion script of a shell.
pub(crate) fn run(arguments: &CompletionsArguments) -> Result<Verdict, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "runwire", &mut script);
    io::stdout().lock().write_all(&script).map_err(Failure::Write)?;
    Ok(Verdict::Fine)
}
