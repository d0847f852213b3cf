//! Supervises one program and its run: pipes, writer, signals, view, exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use runwire_agents::limits::AGENT_CANCEL_TIME;
use runwire_agents::programs::{GracefulStop, ProcessGroup};
use runwire_client::{Client, Error, EventStream, RunInfo, RunStatus};
use runwire_model::framing::Framing;
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, timeout};

use super::exit::{ProgramOutcome, exit_code};
use super::output_parser::OutputParser;
use super::run_writer::RunWriter;
use super::stdin;
use super::{ExecError, pipes};
use crate::arguments::{ExecArguments, OutputFraming};
use crate::client::interrupt::{Interrupt, InterruptCause, OsSignals};
use crate::client::notes::Notes;
use crate::client::watch::Watch;
use crate::client::writer::HEARTBEAT_INTERVAL;
use crate::failure::Failure;

/// Capacity of the channel between the parser and the writer.
const QUEUED_CHUNKS: usize = 4;
/// How long the view may take to show the end of the run.
const VIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// Ctrl-C.
const INTERRUPT: u8 = 2;
const KILL: u8 = 9;
const TERMINATE: u8 = 15;

/// A program and its run.
pub(super) struct ExecSession<'a> {
    client: Client,
    run: RunInfo,
    arguments: &'a ExecArguments,
}

/// The task that writes the output.
type WriterTask = JoinHandle<Result<RunWriter, Error>>;

/// The program's exit.
struct ProgramExit {
    status: ExitStatus,
    /// Set if a cancel was requested, with its reason.
    cancelled: Option<Option<String>>,
    /// The writer task's result, if it has ended.
    written: Option<Result<RunWriter, Error>>,
}

/// The task that draws the run.
struct ViewTask {
    drawing: JoinHandle<()>,
    leave: mpsc::Sender<InterruptCause>,
}

impl<'a> ExecSession<'a> {
    pub(super) fn new(client: Client, run: RunInfo, arguments: &'a ExecArguments) -> Self {
        Self { client, run, arguments }
    }

    /// Runs the program, writes its run to the end, and returns the exit code.
    pub(super) async fn run(self) -> Result<u8, ExecError> {
        let arguments = self.arguments;
        let mut signals = OsSignals::listen().map_err(Failure::Start)?;
        let (view, notes) = self.start_view();
        let dialect = arguments.dialect.named();
        let writer = RunWriter::new(&self.client, &self.run.run_id, dialect, arguments.text, notes.clone());
        let is_drawn = view.is_some() && Watch::would_be_live(false) && io::stderr().is_terminal();
        let mut group = match ProcessGroup::start(self.command(is_drawn)) {
            Ok(group) => group,
            Err(error) => {
                let program = arguments.command.first().map(|program| program.to_string_lossy().into_owned());
                let failed = ExecError::Start { program: program.unwrap_or_default(), error };
                writer.end(&ProgramOutcome::not_started(failed.to_string())).await?;
                finish(view).await;
                return Err(failed);
            }
        };
        let (items_sender, items) = mpsc::channel(QUEUED_CHUNKS);
        let (exited, has_exited) = watch::channel(false);
        if let Some(stdout) = group.child.stdout.take() {
            let parser = OutputParser::new(arguments.framing.map(framing), dialect);
            tokio::spawn(pipes::read_stdout(stdout, parser, items_sender, has_exited));
        }
        if let Some(stderr) = group.child.stderr.take() {
            tokio::spawn(pipes::draw_stderr(stderr, notes.clone()));
        }
        let (cancel, mut cancels) = mpsc::channel(4);
        let pipe = group.child.stdin.take();
        let answering = tokio::spawn(stdin::forward(self.events(), pipe, cancel, notes.clone()));

        let mut writer_task = tokio::spawn(writer.run(items));
        let exit = self.supervise(&mut group, &mut writer_task, &mut cancels, &mut signals).await?;
        exited.send_replace(true);
        let written = self.write_rest(exit, writer_task, &mut signals).await;
        // Terminate children that the program left behind.
        group.signal(TERMINATE);
        let code = match written {
            Ok(code) => code,
            Err(error) => {
                stop_view(view);
                return Err(error);
            }
        };
        answering.abort();
        finish(view).await;
        Ok(code)
    }

    /// Returns the program's command. Standard error is inherited, unless the view owns the terminal and draws it.
    fn command(&self, is_drawn: bool) -> Command {
        let mut words = self.arguments.command.iter();
        let mut command = Command::new(words.next().map_or_else(Default::default, OsString::as_os_str));
        command.args(words).stdout(Stdio::piped());
        command.stdin(if self.arguments.no_stdin { Stdio::null() } else { Stdio::piped() });
        command.stderr(if is_drawn { Stdio::piped() } else { Stdio::inherit() });
        command
    }

    /// Waits for the program's exit; forwards signals and cancel requests to it.
    async fn supervise(
        &self,
        group: &mut ProcessGroup,
        writer_task: &mut WriterTask,
        cancels: &mut mpsc::Receiver<Option<String>>,
        signals: &mut OsSignals,
    ) -> Result<ProgramExit, ExecError> {
        let mut stopping = GracefulStop::new(self.arguments.grace);
        let (mut cancelled, mut written, mut interrupts) = (None, None, 0);
        let mut heartbeats = tokio::time::interval(HEARTBEAT_INTERVAL);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                status = group.child.wait() => {
                    let status = status.map_err(Failure::Start)?;
                    return Ok(ProgramExit { status, cancelled, written });
                }
                signal = signals.next() => {
                    interrupts += u32::from(signal == INTERRUPT);
                    group.signal(if interrupts > 1 { KILL } else { signal });
                }
                Some(reason) = cancels.recv() => {
                    cancelled.get_or_insert(reason);
                    stopping.begin(AGENT_CANCEL_TIME);
                }
                step = stopping.step() => group.step(step),
                // A program that has closed its output may still work; the writer task no longer renews the lease.
                _ = heartbeats.tick(), if matches!(written, Some(Ok(_))) => {
                    let run = self.client.run(&self.run.run_id);
                    tokio::spawn(async move { drop(run.heartbeat().await) });
                }
                result = &mut *writer_task, if written.is_none() => {
                    // An error means that nothing can be written any more.
                    let result = join_result(result)?;
                    if result.is_err() {
                        stopping.begin(Duration::ZERO);
                    }
                    written = Some(result);
                }
            }
        }
    }

    /// Writes the remaining output and the end of the run. A signal aborts that, as the server may be down for long.
    async fn write_rest(
        &self,
        exit: ProgramExit,
        writer_task: WriterTask,
        signals: &mut OsSignals,
    ) -> Result<u8, ExecError> {
        let outcome = ProgramOutcome::of(exit.status, exit.cancelled);
        let writing = async {
            let writer = match exit.written {
                Some(written) => written?,
                None => join_result(writer_task.await)??,
            };
            writer.end(&outcome).await?;
            Ok(exit_code(exit.status))
        };
        tokio::select! {
            written = writing => written,
            _ = signals.next() => Err(ExecError::Interrupted { run: self.run.run_id.clone() }),
        }
    }

    /// Starts to draw the run, unless `--quiet` is set.
    fn start_view(&self) -> (Option<ViewTask>, Notes) {
        if self.arguments.quiet {
            return (None, Notes::on_stderr());
        }
        let (notes, taken) = if Watch::would_be_live(false) {
            let (notes, taken) = Notes::in_view();
            (notes, Some(taken))
        } else {
            (Notes::on_stderr(), None)
        };
        let (leave, mut left) = Interrupt::manual();
        let (server, mut events) = (self.client.url(), self.events());
        let drawing = tokio::spawn(async move {
            let mut watch = Watch::new(&server, false).with_notes(taken);
            // A closed output ends the view, not the run.
            let _ = watch.follow(&mut events, &mut left).await;
        });
        (Some(ViewTask { drawing, leave }), notes)
    }

    /// Returns the stream of the run's new events.
    fn events(&self) -> EventStream {
        let events = self.client.run(&self.run.run_id).events();
        match self.run.cursor {
            Some(cursor) if self.run.status != RunStatus::Pending => events.after(cursor),
            _ => events,
        }
    }
}

/// Waits until the view has shown the run's end.
async fn finish(view: Option<ViewTask>) {
    if let Some(mut view) = view
        && timeout(VIEW_TIMEOUT, &mut view.drawing).await.is_err()
    {
        stop_view(Some(view));
    }
}

/// Stops the view at once.
fn stop_view(view: Option<ViewTask>) {
    if let Some(view) = view {
        // The receiver is dropped if the view has ended.
        let _ = view.leave.try_send(InterruptCause::Signal(TERMINATE));
    }
}

fn join_result<T>(join_result: Result<T, tokio::task::JoinError>) -> Result<T, ExecError> {
    join_result.map_err(|error| Failure::Start(io::Error::other(error)).into())
}

fn framing(named: OutputFraming) -> Framing {
    match named {
        OutputFraming::Ndjson => Framing::Ndjson,
        OutputFraming::Sse => Framing::Sse,
    }
}
