//! `runwire exec`: runs a program and writes its output to a run.
//!
//! ```text
//! stdout ──▶ output_parser ──▶ run_writer ──▶ run ──▶ stdin
//!            frames, strays    exactly once    └────▶ view
//! ```
//!
//! The run ends as the program's frames say, else by its exit status. This command exits with the program's exit code.

mod exit;
mod output_parser;
mod pipes;
mod run_writer;
mod session;
mod stdin;

use std::io::{self, IsTerminal, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use runwire_client::{Client, Error, NewRun, RunInfo, RunStatus};
use runwire_model::ErrorCode;

use crate::Verdict;
use crate::arguments::ExecArguments;
use crate::client::builder;
use crate::failure::Failure;
use crate::screen;
use session::ExecSession;

/// Why a program could not be run, or its run not be written.
#[derive(Debug, thiserror::Error)]
enum ExecError {
    #[error(transparent)]
    Failure(#[from] Failure),
    #[error("cannot run {program}: {error}")]
    Start { program: String, error: io::Error },
    #[error("run {run} has ended: {status}")]
    Closed { run: String, status: RunStatus },
    #[error("run {run} is in thread {thread}")]
    WrongThread { run: String, thread: String },
    #[error("the server has an agent `{agent}` of its own, and would start that one too")]
    AgentExists { agent: String },
    #[error("left before everything was written; what is missing of run {run} is lost")]
    Interrupted { run: String },
}

impl From<Error> for ExecError {
    fn from(error: Error) -> Self {
        Self::Failure(error.into())
    }
}

impl ExecError {
    /// Returns an exit code of 125 and above, as `env` and `timeout` do, to tell it from the program's own.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Start { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. } => 126,
            Self::Failure(_)
            | Self::Closed { .. }
            | Self::WrongThread { .. }
            | Self::AgentExists { .. }
            | Self::Interrupted { .. } => 125,
        }
    }

    fn hint(&self) -> Option<&str> {
        match self {
            Self::Failure(failure) => failure.hint(),
            Self::Closed { .. } => Some("leave --run out, or name another"),
            Self::WrongThread { .. } => Some("leave --thread out, or name another --run"),
            Self::AgentExists { .. } => {
                Some("leave --agent out, or choose another name; `runwire run` starts the server's")
            }
            Self::Start { .. } | Self::Interrupted { .. } => None,
        }
    }
}

/// Runs a program and writes its run to the end.
pub(crate) fn run(arguments: &ExecArguments) -> Result<Verdict, Failure> {
    // A second worker, so that a blocked terminal does not block the run.
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
    // Creating the run fails if the server is down; after that it may restart.
    let client = builder(&arguments.server)?.connect_attempts(u32::MAX).build()?;
    let run = open_run(&client, arguments).await?;
    if arguments.quiet {
        writeln!(io::stdout().lock(), "{}", run.run_id).map_err(Failure::Write)?;
    } else if !(io::stdout().is_terminal() && io::stderr().is_terminal()) {
        // On a terminal, the view shows the id.
        screen::say_plainly(format_args!("run {}", run.run_id));
    }
    ExecSession::new(client, run, arguments).run().await
}

/// Creates the run, or returns the open run of that id.
async fn open_run(client: &Client, arguments: &ExecArguments) -> Result<RunInfo, ExecError> {
    if let Some(id) = &arguments.run {
        match client.run(id).info().await {
            Ok(run) if run.status.is_closed() => {
                return Err(ExecError::Closed { run: id.clone(), status: run.status });
            }
            Ok(run) => {
                return match &arguments.thread {
                    Some(thread) if *thread != run.thread_id => {
                        Err(ExecError::WrongThread { run: id.clone(), thread: run.thread_id })
                    }
                    _ => Ok(run),
                };
            }
            Err(error) if error.code() == Some(ErrorCode::RunUnknown) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(agent) = &arguments.agent
        && client.agents().await?.iter().any(|known| known.name == *agent)
    {
        return Err(ExecError::AgentExists { agent: agent.clone() });
    }
    let new = NewRun {
        run_id: arguments.run.clone(),
        thread_id: arguments.thread.clone(),
        agent: arguments.agent.clone(),
        ..NewRun::default()
    };
    Ok(client.create_run(&new).await?)
}

/// Returns a unique producer name.
fn unique_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("exec-{:x}-{:x}", since.as_nanos(), std::process::id())
}
