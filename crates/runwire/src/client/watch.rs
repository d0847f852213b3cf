//! Draws a run's events on the terminal as they arrive; shared by `tail`, `run`, `replay` and `exec`.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use runwire_client::{Cursor, EventStream, ReceivedEvent, StreamUpdate};
use runwire_model::json::Object;
use runwire_model::{Body, Json, Timestamp};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::interrupt::Interrupt;
use crate::arguments::url_flag;
use crate::failure::{Failure, plain};
use crate::screen;
use runwire_view::{ServerHint, Style, View, terminal_columns_and_rows};

/// Interval of animation.
const TICK: Duration = Duration::from_millis(100);

/// Why watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    /// The stream ended.
    Ended,
    /// The run is suspended, and the person can be prompted.
    NeedsAnswer,
    /// A signal.
    Interrupted { signal: u8, cursor: Option<Cursor> },
}

/// Draws events on standard output.
pub(crate) struct Watch {
    pub(crate) view: View<io::Stdout>,
    is_live: bool,
    ticks: Interval,
    size: (usize, usize),
    /// Notes to draw.
    notes: Option<mpsc::Receiver<String>>,
    /// Whether the loss of the connection was shown.
    is_disconnected: bool,
    /// Whether an event arrived since the last catch-up.
    has_history: bool,
    /// Whether the person can be prompted for interactions.
    can_ask: bool,
    /// Whether the run is suspended and the person was not prompted yet.
    is_suspended: bool,
}

impl Watch {
    /// Creates a watch; `plain` disables colours and changing lines.
    pub(crate) fn new(server: &str, plain: bool) -> Self {
        let style = style(server, plain);
        let is_live = style.live;
        let mut ticks = interval_at(Instant::now() + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let size = (style.width, style.height);
        let view = View::new(style, io::stdout());
        let (can_ask, is_suspended) = (false, false);
        Self {
            view,
            is_live,
            ticks,
            size,
            notes: None,
            is_disconnected: false,
            has_history: false,
            can_ask,
            is_suspended,
        }
    }

    /// Returns true if standard output is a terminal with changing lines.
    pub(crate) fn would_be_live(plain: bool) -> bool {
        style("", plain).live
    }

    /// Sets whether [`Watch::follow`] returns when the run is suspended.
    pub(crate) fn asking(mut self, can_ask: bool) -> Self {
        self.can_ask = can_ask;
        self
    }

    /// Sets the notes to draw.
    pub(crate) fn with_notes(mut self, notes: Option<mpsc::Receiver<String>>) -> Self {
        self.notes = notes;
        self
    }

    /// Draws events until the stream ends or is interrupted.
    pub(crate) async fn follow(
        &mut self,
        events: &mut EventStream,
        interrupt: &mut Interrupt,
    ) -> Result<Watched, Failure> {
        loop {
            if let Some(cause) = interrupt.signal_or_closed_output().now_or_never() {
                let signal = cause?;
                self.finish()?;
                return Ok(Watched::Interrupted { signal, cursor: events.cursor() });
            }
            let update = match events.next_update().now_or_never() {
                Some(update) => update,
                None => {
                    // Flush before waiting.
                    self.view.flush().map_err(Failure::Write)?;
                    if self.can_ask && std::mem::take(&mut self.is_suspended) {
                        self.finish()?;
                        return Ok(Watched::NeedsAnswer);
                    }
                    tokio::select! {
                        biased;
                        cause = interrupt.signal_or_closed_output() => {
                            let signal = cause?;
                            self.finish()?;
                            return Ok(Watched::Interrupted { signal, cursor: events.cursor() });
                        }
                        update = events.next_update() => update,
                        Some(note) = next_note(&mut self.notes) => {
                            self.say(&note)?;
                            continue;
                        }
                        _ = self.ticks.tick(), if self.is_live => {
                            self.tick(now())?;
                            continue;
                        }
                    }
                }
            };
            match update.transpose() {
                Ok(Some(update)) => self.take(update)?,
                Ok(None) => break,
                Err(error) => {
                    self.finish()?;
                    return Err(error.into());
                }
            }
        }
        self.finish()?;
        Ok(Watched::Ended)
    }

    /// Draws an event.
    pub(crate) fn event(&mut self, received: &ReceivedEvent) -> Result<(), Failure> {
        let drawn = match &received.body {
            // An event type of a newer server; stored foreign events have the type `foreign`.
            Body::Foreign(foreign) if received.type_name() != "foreign" => {
                self.view.unknown(&received.type_name(), &payload(&foreign.frame))
            }
            _ => self.view.event(&received.run_id, received.at, received),
        };
        drawn.map_err(Failure::Write)
    }

    /// Waits, and animates meanwhile.
    pub(crate) async fn pause(&mut self, time: Duration, position: Timestamp) -> Result<(), Failure> {
        self.view.flush().map_err(Failure::Write)?;
        let until = Instant::now() + time;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Ok(()),
                _ = self.ticks.tick(), if self.is_live => self.tick(position)?,
            }
        }
    }

    /// Draws the remaining notes and the end.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        while let Some(note) = self.notes.as_mut().and_then(|notes| notes.try_recv().ok()) {
            self.say(&note)?;
        }
        self.view.finish().map_err(Failure::Write)
    }

    fn take(&mut self, update: StreamUpdate<ReceivedEvent>) -> Result<(), Failure> {
        match update {
            StreamUpdate::Item(received) => {
                if std::mem::take(&mut self.is_disconnected) {
                    self.say("connected again")?;
                }
                self.has_history = true;
                match &received.body {
                    // A suspended run may request further interactions.
                    Body::RunSuspended(_) | Body::InteractionRequested(_) => self.is_suspended = true,
                    Body::RunResumed(_)
                    | Body::RunCancelled(_)
                    | Body::RunFailed(_)
                    | Body::RunCompleted(_) => {
                        self.is_suspended = false;
                    }
                    _ => {}
                }
                self.event(&received)
            }
            StreamUpdate::CaughtUp => {
                if std::mem::take(&mut self.is_disconnected) {
                    self.say("connected again")?;
                } else if self.is_live && self.has_history {
                    self.say("that is all so far; what follows is live")?;
                }
                self.has_history = false;
                Ok(())
            }
            StreamUpdate::Interrupted(error) if !std::mem::replace(&mut self.is_disconnected, true) => {
                self.say(&format!("trying again: {}", plain(&error)))
            }
            _ => Ok(()),
        }
    }

    /// Prints a note: in the view if it owns the terminal, else on standard error.
    fn say(&mut self, note: &str) -> Result<(), Failure> {
        if self.is_live {
            return self.view.notice(note).map_err(Failure::Write);
        }
        self.view.flush().map_err(Failure::Write)?;
        screen::say_note(note);
        Ok(())
    }

    fn tick(&mut self, now: Timestamp) -> Result<(), Failure> {
        let size = terminal_columns_and_rows();
        if size != self.size {
            self.size = size;
            self.view.resize(size.0, size.1).map_err(Failure::Write)?;
        }
        self.view.tick(now).map_err(Failure::Write)
    }
}

fn style(server: &str, plain: bool) -> Style {
    let server = ServerHint { url: server.to_owned(), flag: url_flag(server) };
    let style = Style { server: Some(server), ..Style::of_stdout() };
    if plain { Style { color: false, live: false, ..style } } else { style }
}

/// Waits for a note.
async fn next_note(notes: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match notes {
        Some(notes) => notes.recv().await,
        None => None,
    }
}

/// Formats an event's fields without its envelope.
fn payload(frame: &Json) -> String {
    const ENVELOPE: [&str; 5] = ["seq", "at", "thread_id", "run_id", "type"];
    let object = Object::of_json(frame);
    let fields = object.iter().flat_map(Object::fields).filter(|(name, _)| !ENVELOPE.contains(name));
    fields.map(|(name, value)| format!("{name}={}", value.get())).collect::<Vec<_>>().join(" ")
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
