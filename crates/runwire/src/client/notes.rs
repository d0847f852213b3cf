//! Output of notes while a command works: standard error, progress bar or view.

use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::screen::{self, Screen};

/// Capacity of the channel to the view.
const QUEUED_NOTES: usize = 64;

/// Prints notes where they do not disturb other output on the terminal.
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
    /// Prints notes on standard error.
    pub(crate) fn on_stderr() -> Self {
        Self::Plain
    }

    /// Prints notes above a progress bar.
    pub(crate) fn on_screen(screen: Arc<Screen>) -> Self {
        Self::Screen(screen)
    }

    /// Sends notes to a view, which reads them from the receiver.
    pub(crate) fn in_view() -> (Self, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(QUEUED_NOTES);
        (Self::View(sender), receiver)
    }

    /// Prints a note without waiting.
    pub(crate) fn say(&self, note: &str) {
        match self {
            // Standard error, if the view has ended or its channel is full.
            Self::View(view) if view.try_send(note.to_owned()).is_ok() => {}
            Self::Screen(screen) => screen.note(note),
            Self::Plain | Self::View(_) => screen::say_note(note),
        }
    }

    /// Forwards a line of a program's standard error; waits for the view.
    pub(crate) async fn forward(&self, line: String) {
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
