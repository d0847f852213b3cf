//! `runwire retry`: starts a new run with the agent and input of another.

use std::io::{self, Write};

use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::RetryArguments;
use crate::failure::Failure;

/// Starts the new run, and prints its id.
pub(crate) fn run(arguments: &RetryArguments) -> Result<Verdict, Failure> {
    block_on(async {
        let run = connect(&arguments.server)?.run(&arguments.run).retry().await?;
        let said = if arguments.json {
            serde_json::to_string_pretty(&run).map_err(|error| Failure::Write(error.into()))?
        } else {
            run.run_id
        };
        writeln!(io::stdout().lock(), "{said}").map_err(Failure::Write)?;
        Ok(Verdict::Fine)
    })
}
