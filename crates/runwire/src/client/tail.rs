//! `runwire tail`: a run from any cursor to its end, over as many connections as it takes.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};

use futures_util::FutureExt;
use runwire_client::{Client, Cursor, FrameDecoder, FrameStream, RunStatus, RunStream, Slots, StreamUpdate};

use super::answer;
use super::interrupt::{BY_SIGNAL, Interrupt, or_leave};
use super::printer::{Printed, Printer};
use super::watch::{Watch, Watched};
use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::{ServerArguments, TailArguments, url_flag};
use crate::failure::{Failure, plain};
use crate::screen;
use crate::view::answer::quoted;

/// Prints a run until it ends.
pub(crate) fn run(arguments: &TailArguments) -> Result<Verdict, Failure> {
    let printed = arguments.output.printed()?;
    let client = connect(&arguments.server)?;
    let shown = Shown {
        client,
        id: arguments.run.clone(),
        is_thread: arguments.thread,
        exit_status: arguments.exit_status,
        flags: slots_flags(arguments),
    };
    block_on(shown.print(printed, arguments))
}

/// A run, or a thread, that is printed while it grows.
pub(super) struct Shown {
    pub(super) client: Client,
    pub(super) id: String,
    pub(super) is_thread: bool,
    /// Whether the exit code tells how the run ended.
    pub(super) exit_status: bool,
    /// The flags without which its cursors mean nothing.
    pub(super) flags: String,
}

impl Shown {
    async fn print(self, printed: Printed, arguments: &TailArguments) -> Result<Verdict, Failure> {
        let mut interrupt = Interrupt::listen().map_err(Failure::Start)?;
        let watched = match printed {
            Printed::View { plain } => {
                let events = if self.is_thread {
                    self.client.thread(&self.id).events()
                } else {
                    self.client.run(&self.id).events()
                };
                let mut events = asked(events, arguments);
                Watch::new(&self.client.url(), plain).follow(&mut events, &mut interrupt).await?
            }
            Printed::Frames(form, dialect) => {
                let frames = if self.is_thread {
                    self.client.thread(&self.id).frames(dialect)
                } else {
                    self.client.run(&self.id).frames(dialect)
                };
                let frames = frames.slots(arguments.slots.map(Into::into).unwrap_or_default());
                let mut frames = asked(frames, arguments);
                print_frames(&mut frames, Printer::new(form), &mut interrupt).await?
            }
        };
        self.leave(watched).await
    }

    /// Watches from the start to the end, whatever is printed. Who watches at a terminal is asked what the run asks.
    pub(super) async fn watch_whole(
        self,
        printed: Printed,
        mut interrupt: Interrupt,
        server: &ServerArguments,
    ) -> Result<Verdict, Failure> {
        let run = self.client.run(&self.id);
        let watched = match printed {
            Printed::View { plain } => {
                let asks = !plain && io::stdout().is_terminal() && answer::can_ask();
                let mut watch = Watch::new(&self.client.url(), plain).asking(asks);
                let mut events = run.events();
                loop {
                    match watch.follow(&mut events, &mut interrupt).await? {
                        Watched::Asked => {
                            let to = quoted(&self.id) + &url_flag(&self.client.url());
                            let farewell = format!(
                                "the run waits for an answer: `runwire answer {to}` asks again, `runwire cancel {to}` \
                                 stops the run"
                            );
                            or_leave(farewell, || answer::ask_all(server, &self.id))?;
                        }
                        watched => break watched,
                    }
                }
            }
            Printed::Frames(form, dialect) => {
                print_frames(&mut run.frames(dialect), Printer::new(form), &mut interrupt).await?
            }
        };
        self.leave(watched).await
    }

    /// Says how to come back, or how the run ended.
    async fn leave(&self, watched: Watched) -> Result<Verdict, Failure> {
        match watched {
            Watched::Left { update, cursor } => {
                say_left("tail", &self.client, &self.id, self.is_thread, &self.flags, cursor);
                Ok(Verdict::Exit(BY_SIGNAL + update))
            }
            Watched::Whole if self.exit_status => {
                let status = self.client.run(&self.id).info().await?.status;
                Ok(if status == RunStatus::Completed { Verdict::Fine } else { Verdict::HasProblems })
            }
            Watched::Whole | Watched::Asked => Ok(Verdict::Fine),
        }
    }
}

/// Says to a person who has left how to come back, and how to stop what goes on.
pub(super) fn say_left(
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

/// Asks for what the command line says.
fn asked<F: FrameDecoder>(reading: RunStream<F>, arguments: &TailArguments) -> RunStream<F> {
    let reading = reading.follow(!arguments.no_follow).compact(arguments.compact).attach(arguments.attach);
    match arguments.after {
        Some(after) => reading.after(after),
        None if arguments.new => reading.from_end(),
        None => reading,
    }
}

/// Says that a connection is there again, if somebody was told that it was gone.
fn say_connected(is_cut: &mut bool) {
    if std::mem::take(is_cut) {
        screen::say_note("connected again");
    }
}

/// Prints frames as they come, in as large pieces as they come in.
async fn print_frames(
    frames: &mut FrameStream,
    mut printer: Printer,
    interrupt: &mut Interrupt,
) -> Result<Watched, Failure> {
    // Whether a person has been told that the connection is gone.
    let mut is_cut = false;
    loop {
        let update = match frames.next_update().now_or_never() {
            Some(update) => update,
            None => {
                // What has come is shown before more is waited for.
                printer.flush()?;
                tokio::select! {
                    biased;
                    cause = interrupt.come_or_no_reader() => {
                        let update = cause?;
                        return Ok(Watched::Left { update, cursor: frames.cursor() });
                    }
                    update = frames.next_update() => update,
                }
            }
        };
        match update.transpose()? {
            Some(StreamUpdate::Item(frame)) => {
                say_connected(&mut is_cut);
                printer.gather(&frame)?;
            }
            Some(StreamUpdate::Interrupted(error)) => {
                if !std::mem::replace(&mut is_cut, true) {
                    printer.flush()?;
                    screen::say_note(format_args!("trying again: {}", plain(&error)));
                }
            }
            Some(StreamUpdate::CaughtUp) => say_connected(&mut is_cut),
            Some(_) => {}
            None => break,
        }
    }
    printer.finish()?;
    Ok(Watched::Whole)
}
