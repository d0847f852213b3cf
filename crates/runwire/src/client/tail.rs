//! `runwire tail`: prints a run or a thread from any cursor, and follows it.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};

use futures_util::FutureExt;
use runwire_client::{Client, Cursor, FrameDecoder, FrameStream, RunStatus, RunStream, Slots, StreamUpdate};

use super::answer;
use super::interrupt::{Interrupt, SIGNAL_EXIT_BASE, with_farewell};
use super::printer::{PrintMode, Printer};
use super::watch::{Watch, Watched};
use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::{ServerArguments, TailArguments, url_flag};
use crate::failure::{Failure, plain};
use crate::screen;
use runwire_view::answer::quoted;

/// Prints a run until it ends.
pub(crate) fn run(arguments: &TailArguments) -> Result<Verdict, Failure> {
    let mode = arguments.output.print_mode()?;
    let client = connect(&arguments.server)?;
    let shown = TailTarget {
        client,
        id: arguments.run.clone(),
        is_thread: arguments.thread,
        exit_status: arguments.exit_status,
        flags: slots_flags(arguments),
    };
    block_on(shown.print(mode, arguments))
}

/// The run or thread that is printed.
pub(super) struct TailTarget {
    pub(super) client: Client,
    pub(super) id: String,
    pub(super) is_thread: bool,
    /// Whether the exit code reflects the run's status.
    pub(super) exit_status: bool,
    /// Flags that its cursors depend on.
    pub(super) flags: String,
}

impl TailTarget {
    async fn print(self, mode: PrintMode, arguments: &TailArguments) -> Result<Verdict, Failure> {
        let mut interrupt = Interrupt::listen().map_err(Failure::Start)?;
        let watched = match mode {
            PrintMode::View { plain } => {
                let events = if self.is_thread {
                    self.client.thread(&self.id).events()
                } else {
                    self.client.run(&self.id).events()
                };
                let mut events = with_options(events, arguments);
                Watch::new(&self.client.url(), plain).follow(&mut events, &mut interrupt).await?
            }
            PrintMode::Frames(format, dialect) => {
                let frames = if self.is_thread {
                    self.client.thread(&self.id).frames(dialect)
                } else {
                    self.client.run(&self.id).frames(dialect)
                };
                let frames = frames.slots(arguments.slots.map(Into::into).unwrap_or_default());
                let mut frames = with_options(frames, arguments);
                print_frames(&mut frames, Printer::new(format), &mut interrupt).await?
            }
        };
        self.leave(watched).await
    }

    /// Watches a run from start to end; at a terminal, prompts for its interactions.
    pub(super) async fn watch_whole(
        self,
        mode: PrintMode,
        mut interrupt: Interrupt,
        server: &ServerArguments,
    ) -> Result<Verdict, Failure> {
        let run = self.client.run(&self.id);
        let watched = match mode {
            PrintMode::View { plain } => {
                let asks = !plain && io::stdout().is_terminal() && answer::can_ask();
                let mut watch = Watch::new(&self.client.url(), plain).asking(asks);
                let mut events = run.events();
                loop {
                    match watch.follow(&mut events, &mut interrupt).await? {
                        Watched::NeedsAnswer => {
                            let to = quoted(&self.id) + &url_flag(&self.client.url());
                            let farewell = format!(
                                "the run waits for an answer: `runwire answer {to}` asks again, `runwire cancel {to}` \
                                 stops the run"
                            );
                            with_farewell(farewell, || answer::ask_all(server, &self.id))?;
                        }
                        watched => break watched,
                    }
                }
            }
            PrintMode::Frames(format, dialect) => {
                print_frames(&mut run.frames(dialect), Printer::new(format), &mut interrupt).await?
            }
        };
        self.leave(watched).await
    }

    /// Prints how to resume, or returns the run's status as the exit code.
    async fn leave(&self, watched: Watched) -> Result<Verdict, Failure> {
        match watched {
            Watched::Interrupted { signal, cursor } => {
                print_resume_hint("tail", &self.client, &self.id, self.is_thread, &self.flags, cursor);
                Ok(Verdict::Exit(SIGNAL_EXIT_BASE + signal))
            }
            Watched::Ended if self.exit_status => {
                let status = self.client.run(&self.id).info().await?.status;
                Ok(if status == RunStatus::Completed { Verdict::Fine } else { Verdict::HasProblems })
            }
            Watched::Ended | Watched::NeedsAnswer => Ok(Verdict::Fine),
        }
    }
}

/// Prints the commands that resume watching and that cancel the run.
pub(super) fn print_resume_hint(
    command: &str,
    client: &Client,
    id: &str,
    is_thread: bool,
    flags: &str,
    cursor: Option<Cursor>,
) {
    if !io::stderr().is_terminal() {
        return;
    }
    let (id, flag) = (quoted(id), url_flag(&client.url()));
    let mut back = format!("runwire {command} {id}");
    // Writing to a string cannot fail.
    let _ = write!(back, "{}{flags}", if is_thread { " --thread" } else { "" });
    if let Some(cursor) = cursor {
        let _ = write!(back, " --after {cursor}");
    }
    screen::say_plainly(format_args!("\n`{back}{flag}` comes back to this place"));
    if command == "tail" && !is_thread {
        screen::say_plainly(format_args!(
            "leaving is not stopping: `runwire cancel {id}{flag}` stops the run"
        ));
    }
}

/// Returns the flags that choose extension slots, if they do not choose the default.
fn slots_flags(arguments: &TailArguments) -> String {
    match (arguments.output.dialect, arguments.slots.map(Slots::from)) {
        (Some(dialect), Some(slots)) if slots != Slots::All => {
            format!(" --dialect {dialect} --slots {}", slots.name())
        }
        _ => String::new(),
    }
}

/// Applies the arguments to a stream.
fn with_options<F: FrameDecoder>(stream: RunStream<F>, arguments: &TailArguments) -> RunStream<F> {
    let stream = stream.follow(!arguments.no_follow).compact(arguments.compact).attach(arguments.attach);
    match arguments.after {
        Some(after) => stream.after(after),
        None if arguments.new => stream.from_end(),
        None => stream,
    }
}

/// Prints that the connection is back, if its loss was printed.
fn say_connected(is_disconnected: &mut bool) {
    if std::mem::take(is_disconnected) {
        screen::say_note("connected again");
    }
}

/// Prints frames as they arrive, flushing when no more are ready.
async fn print_frames(
    frames: &mut FrameStream,
    mut printer: Printer,
    interrupt: &mut Interrupt,
) -> Result<Watched, Failure> {
    // Whether the loss of the connection was printed.
    let mut is_disconnected = false;
    loop {
        let update = match frames.next_update().now_or_never() {
            Some(update) => update,
            None => {
                // Flush before waiting.
                printer.flush()?;
                tokio::select! {
                    biased;
                    cause = interrupt.signal_or_closed_output() => {
                        let signal = cause?;
                        return Ok(Watched::Interrupted { signal, cursor: frames.cursor() });
                    }
                    update = frames.next_update() => update,
                }
            }
        };
        match update.transpose()? {
            Some(StreamUpdate::Item(frame)) => {
                say_connected(&mut is_disconnected);
                printer.push(&frame)?;
            }
            Some(StreamUpdate::Interrupted(error)) => {
                if !std::mem::replace(&mut is_disconnected, true) {
                    printer.flush()?;
                    screen::say_note(format_args!("trying again: {}", plain(&error)));
                }
            }
            Some(StreamUpdate::CaughtUp) => say_connected(&mut is_disconnected),
            Some(_) => {}
            None => break,
        }
    }
    printer.finish()?;
    Ok(Watched::Ended)
}
