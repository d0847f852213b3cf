//! Where a command says what is worth knowing while it works.

use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::screen::{self, Screen};

/// Notes that may wait to be drawn.
const WAITING_NOTES: usize = 64;

/// Says notes where they do not get into the way of what else is on the terminal.
#[derive(Clone)]
pub(crate) enum Notes {
    /// On standard error.
    Plain,
    /// Above a progress bar.
    Screen(Arc<Screen>),
    /// In the view that owns the terminal.
    View(mpsc::Sender<String>),
}

impl Notes {
    /// Says notes on standard error.
    pub(crate) fn on_stderr() -> Self {
        Self::Plain
    }

    /// Says notes beside a progress bar.
    pub(crate) fn on_screen(screen: Arc<Screen>) -> Self {
        Self::Screen(screen)
    }

    /// Says notes in a view, which takes them from the other end.
    pub(crate) fn in_view() -> (Self, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(WAITING_NOTES);
        (Self::View(sender), receiver)
    }

    /// Says a note, without waiting.
    pub(crate) fn say(&self, note: &str) {
        match self {
            // A view that is over, or that cannot keep up with its notes, leaves standard error to them.
            Self::View(view) if view.try_send(note.to_owned()).is_ok() => {}
            Self::Screen(screen) => screen.note(note),
            Self::Plain | Self::View(_) => screen::say_note(note),
        }
    }

    /// Hands on a line of a program's standard error, as fast as the view takes it.
    pub(crate) async fn hand_on(&self, line: String) {
        match self {
            Self::View(view) => {
                if let Err(unsent) = view.send(line).await {
                    screen::say_plainly(unsent.0);
                }
            }
            Self::Plain | Self::Screen(_) => screen::say_plainly(line),
        }
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Notes")
    }
}
