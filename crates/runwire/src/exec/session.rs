//! One program and its run, from the first line to the exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use runwire_client::{Client, Error, Events, RunInfo, RunStatus};
use runwire_model::framing::Framing;
use runwire_server::limits::AGENT_CANCEL_TIME;
use runwire_server::programs::{GracefulStop, ProcessGroup};
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, timeout};

use super::answers;
use super::delivery::Delivery;
use super::ending::{Ending, exit_code};
use super::sorter::Sorter;
use super::{ExecError, output};
use crate::arguments::{ExecArguments, OutputFraming};
use crate::client::interrupt::{Cause, Interrupt, Signals};
use crate::client::notes::Notes;
use crate::client::watch::Watch;
use crate::client::writer::BEAT_TIME;
use crate::failure::Failure;

/// Pieces of the output that may wait to be written.
const WAITING_PIECES: usize = 4;
/// How long the view may take to show the end of a run that has ended.
const LAST_LOOK: Duration = Duration::from_secs(5);
/// Ctrl-C.
const INTERRUPT: u8 = 2;
const KILL: u8 = 9;
const TERMINATE: u8 = 15;

/// A program and its run.
pub(super) struct Session<'a> {
    client: Client,
    run: RunInfo,
    arguments: &'a ExecArguments,
}

/// Where the program's output is on its way to.
type Delivering = JoinHandle<Result<Delivery, Error>>;

/// How the program came to its end.
struct Ended {
    status: ExitStatus,
    /// That somebody asked for it, and why.
    cancelled: Option<Option<String>>,
    /// What became of the delivery, if it is over.
    delivered: Option<Result<Delivery, Error>>,
}

/// What is drawn beside the work.
struct Show {
    drawing: JoinHandle<()>,
    leave: mpsc::Sender<Cause>,
}

impl<'a> Session<'a> {
    pub(super) fn new(client: Client, run: RunInfo, arguments: &'a ExecArguments) -> Self {
        Self { client, run, arguments }
    }

    /// Runs the program, writes its run to the end, and tells the exit code.
    pub(super) async fn run(self) -> Result<u8, ExecError> {
        let arguments = self.arguments;
        let mut signals = Signals::listen().map_err(Failure::Start)?;
        let (show, notes) = self.show();
        let dialect = arguments.dialect.named();
        let delivery = Delivery::new(&self.client, &self.run.run_id, dialect, arguments.text, notes.clone());
        let is_drawn = show.is_some() && Watch::would_be_live(false) && io::stderr().is_terminal();
        let mut group = match ProcessGroup::start(self.command(is_drawn)) {
            Ok(group) => group,
            Err(error) => {
                let program = arguments.command.first().map(|program| program.to_string_lossy().into_owned());
                let failed = ExecError::Start { program: program.unwrap_or_default(), error };
                delivery.end(&Ending::not_started(failed.to_string())).await?;
                finish(show).await;
                return Err(failed);
            }
        };
        let (said_to, said) = mpsc::channel(WAITING_PIECES);
        let (exited, has_exited) = watch::channel(false);
        if let Some(stdout) = group.child.stdout.take() {
            let sorter = Sorter::new(arguments.framing.map(framing), dialect);
            tokio::spawn(output::read(stdout, sorter, said_to, has_exited));
        }
        if let Some(stderr) = group.child.stderr.take() {
            tokio::spawn(output::draw(stderr, notes.clone()));
        }
        let (cancel, mut cancels) = mpsc::channel(4);
        let stdin = group.child.stdin.take();
        let answering = tokio::spawn(answers::hand_on(self.events(), stdin, cancel, notes.clone()));

        let mut delivering = tokio::spawn(delivery.follow(said));
        let ended = self.attend(&mut group, &mut delivering, &mut cancels, &mut signals).await?;
        exited.send_replace(true);
        let written = self.write_rest(ended, delivering, &mut signals).await;
        // Whatever the program has left behind goes with it.
        group.signal(TERMINATE);
        let code = match written {
            Ok(code) => code,
            Err(error) => {
                leave(show);
                return Err(error);
            }
        };
        answering.abort();
        finish(show).await;
        Ok(code)
    }

    /// Makes the program's command. Its standard error is ours, unless the view draws it, because it owns the terminal.
    fn command(&self, is_drawn: bool) -> Command {
        let mut words = self.arguments.command.iter();
        let mut command = Command::new(words.next().map_or_else(Default::default, OsString::as_os_str));
        command.args(words).stdout(Stdio::piped());
        command.stdin(if self.arguments.no_stdin { Stdio::null() } else { Stdio::piped() });
        command.stderr(if is_drawn { Stdio::piped() } else { Stdio::inherit() });
        command
    }

    /// Waits for the program's end, and passes on what reaches it from outside.
    async fn attend(
        &self,
        group: &mut ProcessGroup,
        delivering: &mut Delivering,
        cancels: &mut mpsc::Receiver<Option<String>>,
        signals: &mut Signals,
    ) -> Result<Ended, ExecError> {
        let mut stopping = GracefulStop::new(self.arguments.grace);
        let (mut cancelled, mut delivered, mut interrupts) = (None, None, 0);
        let mut beats = tokio::time::interval(BEAT_TIME);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                status = group.child.wait() => {
                    let status = status.map_err(Failure::Start)?;
                    return Ok(Ended { status, cancelled, delivered });
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
                // A program that has closed its output may work on; the delivery keeps the lease only as long as it lasts.
                _ = beats.tick(), if matches!(delivered, Some(Ok(_))) => {
                    let run = self.client.run(&self.run.run_id);
                    tokio::spawn(async move { drop(run.heartbeat().await) });
                }
                over = &mut *delivering, if delivered.is_none() => {
                    // Before the end of the output, it is over only where nothing can be written any more.
                    let over = joined(over)?;
                    if over.is_err() {
                        stopping.begin(Duration::ZERO);
                    }
                    delivered = Some(over);
                }
            }
        }
    }

    /// Writes what the program has left, and the end. A signal gives that up: the server may be away for long.
    async fn write_rest(
        &self,
        ended: Ended,
        delivering: Delivering,
        signals: &mut Signals,
    ) -> Result<u8, ExecError> {
        let ending = Ending::of(ended.status, ended.cancelled);
        let writing = async {
            let delivery = match ended.delivered {
                Some(delivered) => delivered?,
                None => joined(delivering.await)??,
            };
            delivery.end(&ending).await?;
            Ok(exit_code(ended.status))
        };
        tokio::select! {
            written = writing => written,
            _ = signals.next() => Err(ExecError::Left { run: self.run.run_id.clone() }),
        }
    }

    /// Begins to draw the run, unless nobody wants to see it.
    fn show(&self) -> (Option<Show>, Notes) {
        if self.arguments.quiet {
            return (None, Notes::on_stderr());
        }
        let (notes, taken) = if Watch::would_be_live(false) {
            let (notes, taken) = Notes::in_view();
            (notes, Some(taken))
        } else {
            (Notes::on_stderr(), None)
        };
        let (leave, mut left) = Interrupt::by_hand();
        let (server, mut events) = (self.client.url(), self.events());
        let drawing = tokio::spawn(async move {
            let mut watch = Watch::new(&server, false).with_notes(taken);
            // Whoever watches may go away; the run goes on.
            let _ = watch.follow(&mut events, &mut left).await;
        });
        (Some(Show { drawing, leave }), notes)
    }

    /// Reads the run from here on.
    fn events(&self) -> Events {
        let events = self.client.run(&self.run.run_id).events();
        match self.run.cursor {
            Some(cursor) if self.run.status != RunStatus::Pending => events.after(cursor),
            _ => events,
        }
    }
}

/// Lets the view come to the run's end.
async fn finish(show: Option<Show>) {
    if let Some(mut show) = show
        && timeout(LAST_LOOK, &mut show.drawing).await.is_err()
    {
        leave(Some(show));
    }
}

/// Ends the view where it is.
fn leave(show: Option<Show>) {
    if let Some(show) = show {
        // Where it has ended by itself, nobody is told.
        let _ = show.leave.try_send(Cause::Signal(TERMINATE));
    }
}

fn joined<T>(joined: Result<T, tokio::task::JoinError>) -> Result<T, ExecError> {
    joined.map_err(|error| Failure::Start(io::Error::other(error)).into())
}

fn framing(named: OutputFraming) -> Framing {
    match named {
        OutputFraming::Ndjson => Framing::Ndjson,
        OutputFraming::Sse => Framing::Sse,
    }
}
