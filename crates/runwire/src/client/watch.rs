//! A run as a person watches it, from whichever command.

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
use crate::view::{Server, Style, View, terminal_columns_and_rows};

/// Time between two moves of what moves.
const TICK: Duration = Duration::from_millis(100);

/// How a watch came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    /// There is nothing more.
    Whole,
    /// The run waits for a person, and there is one to ask.
    Asked,
    /// A signal ended it here.
    Left { update: u8, cursor: Option<Cursor> },
}

/// Draws events on standard output.
pub(crate) struct Watch {
    pub(crate) view: View<io::Stdout>,
    is_live: bool,
    ticks: Interval,
    size: (usize, usize),
    /// Notes for the view to draw, from whoever else works on the run.
    notes: Option<mpsc::Receiver<String>>,
    /// Whether the connection is gone and that was said.
    is_cut: bool,
    /// Whether anything came before the stream had caught up.
    has_past: bool,
    /// Whether whoever watches can be asked what the run asks.
    asks: bool,
    /// Whether the run waits for a person who was not asked yet.
    waits: bool,
}

impl Watch {
    /// Begins to draw; `plain` does without colours and moving lines even on a terminal.
    pub(crate) fn new(server: &str, plain: bool) -> Self {
        let style = style(server, plain);
        let is_live = style.live;
        let mut ticks = interval_at(Instant::now() + TICK, TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let size = (style.width, style.height);
        let view = View::new(style, io::stdout());
        let (asks, waits) = (false, false);
        Self { view, is_live, ticks, size, notes: None, is_cut: false, has_past: false, asks, waits }
    }

    /// Tells whether standard output is a terminal whose lines move.
    pub(crate) fn would_be_live(plain: bool) -> bool {
        style("", plain).live
    }

    /// Comes back whenever the run waits for a person, if this is so.
    pub(crate) fn asking(mut self, asks: bool) -> Self {
        self.asks = asks;
        self
    }

    /// Draws these notes too.
    pub(crate) fn with_notes(mut self, notes: Option<mpsc::Receiver<String>>) -> Self {
        self.notes = notes;
        self
    }

    /// Draws events as they come, to their end or until it is interrupted.
    pub(crate) async fn follow(
        &mut self,
        events: &mut EventStream,
        interrupt: &mut Interrupt,
    ) -> Result<Watched, Failure> {
        loop {
            if let Some(cause) = interrupt.come_or_no_reader().now_or_never() {
                let update = cause?;
                self.finish()?;
                return Ok(Watched::Left { update, cursor: events.cursor() });
            }
            let update = match events.next_update().now_or_never() {
                Some(update) => update,
                None => {
                    // What has come is shown before more is waited for.
                    self.view.flush().map_err(Failure::Write)?;
                    if self.asks && std::mem::take(&mut self.waits) {
                        self.finish()?;
                        return Ok(Watched::Asked);
                    }
                    tokio::select! {
                        biased;
                        cause = interrupt.come_or_no_reader() => {
                            let update = cause?;
                            self.finish()?;
                            return Ok(Watched::Left { update, cursor: events.cursor() });
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
        Ok(Watched::Whole)
    }

    /// Draws an event.
    pub(crate) fn event(&mut self, received: &ReceivedEvent) -> Result<(), Failure> {
        let drawn = match &received.body {
            // A newer server's word: what an older one stored as foreign has its own type.
            Body::Foreign(foreign) if received.type_name() != "foreign" => {
                self.view.unknown(&received.type_name(), &payload(&foreign.frame))
            }
            _ => self.view.event(&received.run_id, received.at, received),
        };
        drawn.map_err(Failure::Write)
    }

    /// Waits, and moves what moves meanwhile.
    pub(crate) async fn pause(&mut self, time: Duration, place: Timestamp) -> Result<(), Failure> {
        self.view.flush().map_err(Failure::Write)?;
        let until = Instant::now() + time;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Ok(()),
                _ = self.ticks.tick(), if self.is_live => self.tick(place)?,
            }
        }
    }

    /// Ends what is drawn.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        while let Some(note) = self.notes.as_mut().and_then(|notes| notes.try_recv().ok()) {
            self.say(&note)?;
        }
        self.view.finish().map_err(Failure::Write)
    }

    fn take(&mut self, update: StreamUpdate<ReceivedEvent>) -> Result<(), Failure> {
        match update {
            StreamUpdate::Item(received) => {
                if std::mem::take(&mut self.is_cut) {
                    self.say("connected again")?;
                }
                self.has_past = true;
                match &received.body {
                    // A run that waits already may ask more.
                    Body::RunSuspended(_) | Body::InteractionRequested(_) => self.waits = true,
                    Body::RunResumed(_)
                    | Body::RunCancelled(_)
                    | Body::RunFailed(_)
                    | Body::RunCompleted(_) => {
                        self.waits = false;
                    }
                    _ => {}
                }
                self.event(&received)
            }
            StreamUpdate::CaughtUp => {
                if std::mem::take(&mut self.is_cut) {
                    self.say("connected again")?;
                } else if self.is_live && self.has_past {
                    self.say("that is all so far; what follows is live")?;
                }
                self.has_past = false;
                Ok(())
            }
            StreamUpdate::Interrupted(error) if !std::mem::replace(&mut self.is_cut, true) => {
                self.say(&format!("trying again: {}", plain(&error)))
            }
            _ => Ok(()),
        }
    }

    /// Says something that is not of the run: in the view where that owns the terminal, else on standard error.
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
    let server = Server { url: server.to_owned(), flag: url_flag(server) };
    let style = Style { server: Some(server), ..Style::of_stdout() };
    if plain { Style { color: false, live: false, ..style } } else { style }
}

/// Waits for a note; without anybody who writes any, for ever.
async fn next_note(notes: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match notes {
        Some(notes) => notes.recv().await,
        None => None,
    }
}

/// Tells what an event says beside where and when it happened.
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
