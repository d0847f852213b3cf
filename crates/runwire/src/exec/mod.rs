//! `runwire exec`: a program whose output is a run.
//!
//! ```text
//! stdout ──▶ sorter ──▶ delivery ──▶ run ──▶ answers ──▶ stdin
//!            frames,    in order,     └────▶ the view
//!            strays     once
//! ```
//!
//! The run goes by what the program says, else by its exit. This command goes by the program's exit code.

mod answers;
mod delivery;
mod ending;
mod output;
mod session;
mod sorter;

use std::io::{self, IsTerminal, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use runwire_client::{Client, Error, NewRun, RunInfo, RunStatus};

use crate::Verdict;
use crate::arguments::ExecArguments;
use crate::client::builder;
use crate::failure::Failure;
use crate::screen;
use session::Session;

/// What keeps a program from becoming a run.
#[derive(Debug, thiserror::Error)]
enum ExecError {
    #[error(transparent)]
    Failure(#[from] Failure),
    #[error("cannot run {program}: {error}")]
    Start { program: String, error: io::Error },
    #[error("run {run} has ended: {status}")]
    Closed { run: String, status: RunStatus },
    #[error("run {run} is in thread {thread}")]
    Elsewhere { run: String, thread: String },
    #[error("the server has an agent `{agent}` of its own, and would start that one too")]
    Taken { agent: String },
    #[error("left before everything was written; what is missing of run {run} is lost")]
    Left { run: String },
}

impl From<Error> for ExecError {
    fn from(error: Error) -> Self {
        Self::Failure(error.into())
    }
}

impl ExecError {
    /// Tells the code, as other programs that start programs have it: apart from what a program would say itself.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Start { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. } => 126,
            Self::Failure(_)
            | Self::Closed { .. }
            | Self::Elsewhere { .. }
            | Self::Taken { .. }
            | Self::Left { .. } => 125,
        }
    }

    fn hint(&self) -> Option<&str> {
        match self {
            Self::Failure(failure) => failure.hint(),
            Self::Closed { .. } => Some("leave --run out, or name another"),
            Self::Elsewhere { .. } => Some("leave --thread out, or name another --run"),
            Self::Taken { .. } => {
                Some("leave --agent out, or choose another name; `runwire run` starts the server's")
            }
            Self::Start { .. } | Self::Left { .. } => None,
        }
    }
}

/// Runs a program to its end, and its run.
pub(crate) fn run(arguments: &ExecArguments) -> Result<Verdict, Failure> {
    // The view writes to a terminal, which may stand still; the run must not.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::Start)?;
    let done = runtime.block_on(exec(arguments));
    runtime.shutdown_background();
    match done {
        Ok(code) => Ok(Verdict::Exit(code)),
        Err(error) => {
            screen::say_error(&error, error.hint());
            Ok(Verdict::Exit(error.exit_code()))
        }
    }
}

async fn exec(arguments: &ExecArguments) -> Result<u8, ExecError> {
    // Whether the server is there is found out by creating the run; after that it may come and go.
    let client = builder(&arguments.server)?.connect_attempts(u32::MAX).build()?;
    let run = open_run(&client, arguments).await?;
    if arguments.quiet {
        writeln!(io::stdout().lock(), "{}", run.run_id).map_err(Failure::Write)?;
    } else if !(io::stdout().is_terminal() && io::stderr().is_terminal()) {
        // Where both are one screen, the view has it at its top.
        screen::say_plainly(format_args!("run {}", run.run_id));
    }
    Session::new(client, run, arguments).run().await
}

/// Creates the run, or finds the one that is there and open.
async fn open_run(client: &Client, arguments: &ExecArguments) -> Result<RunInfo, ExecError> {
    if let Some(id) = &arguments.run {
        match client.run(id).info().await {
            Ok(run) if run.status.is_closed() => {
                return Err(ExecError::Closed { run: id.clone(), status: run.status });
            }
            Ok(run) => {
                return match &arguments.thread {
                    Some(thread) if *thread != run.thread_id => {
                        Err(ExecError::Elsewhere { run: id.clone(), thread: run.thread_id })
                    }
                    _ => Ok(run),
                };
            }
            Err(error) if error.code() == Some("run_unknown") => {}
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(agent) = &arguments.agent
        && client.agents().await?.iter().any(|known| known.name == *agent)
    {
        return Err(ExecError::Taken { agent: agent.clone() });
    }
    let new = NewRun {
        run_id: arguments.run.clone(),
        thread_id: arguments.thread.clone(),
        agent: arguments.agent.clone(),
        ..NewRun::default()
    };
    Ok(client.create_run(&new).await?)
}

/// Makes a producer's name that no other process has, or had.
fn unique_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("exec-{:x}-{:x}", since.as_nanos(), std::process::id())
}
