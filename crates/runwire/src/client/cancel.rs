//! `runwire cancel`: requests a run's cancellation.

use std::io::{self, Write};

use runwire_client::{RunInfo, RunStatus};

use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::CancelArguments;
use crate::failure::Failure;

/// Requests the cancellation, and prints the run's status.
pub(crate) fn run(arguments: &CancelArguments) -> Result<Verdict, Failure> {
    block_on(async {
        let handle = connect(&arguments.server)?.run(&arguments.run);
        let run = handle.cancel(arguments.reason.as_deref()).await?;
        let said = if arguments.json {
            serde_json::to_string_pretty(&run).map_err(|error| Failure::Write(error.into()))?
        } else {
            outcome(&run)
        };
        writeln!(io::stdout().lock(), "{said}").map_err(Failure::Write)?;
        Ok(Verdict::Fine)
    })
}

fn outcome(run: &RunInfo) -> String {
    match &run.status {
        RunStatus::Cancelled => "cancelled".to_owned(),
        status if status.is_closed() => format!("the run has ended already: {status}"),
        _ => "asked to stop; if the run does not end by itself soon, the server ends it".to_owned(),
    }
}
