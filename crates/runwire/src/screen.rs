//! Messages and progress bars on standard error: problems, notes, hints.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) const PROBLEM: Style = AnsiColor::Red.on_default().bold();
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();

pub(crate) struct Screen {
    progress: ProgressBar,
}

impl Screen {
    /// Creates a progress bar if standard error is a terminal, standard output is not, and the size is known.
    pub(crate) fn new(size: Option<u64>) -> Self {
        let shows = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        let progress = match size {
            Some(size) if shows => ProgressBar::new(size).with_style(style()),
            _ => ProgressBar::hidden(),
        };
        Self { progress }
    }

    /// Creates a progress bar of an upload if standard error is a terminal and the input is not typed.
    pub(crate) fn of_sending(size: Option<u64>) -> Self {
        let shows = std::io::stderr().is_terminal() && (size.is_some() || !std::io::stdin().is_terminal());
        let progress = match size {
            _ if !shows => ProgressBar::hidden(),
            Some(size) => ProgressBar::new(size).with_style(style()),
            None => {
                let bar = ProgressBar::new_spinner().with_style(spinner());
                bar.enable_steady_tick(std::time::Duration::from_millis(200));
                bar
            }
        };
        Self { progress }
    }

    pub(crate) fn advance(&self, bytes: u64) {
        self.progress.set_position(bytes);
    }

    pub(crate) fn finish(&self) {
        self.progress.finish_and_clear();
    }

    /// Prints a problem of the stream, its consequence, and a hint.
    pub(crate) fn problem(&self, problem: impl Display, outcome: &str, hint: Option<&str>) {
        self.progress.suspend(|| {
            let mut stderr = anstream::stderr().lock();
            // A closed standard error is ignored.
            let _ = writeln!(stderr, "{PROBLEM}{problem}{PROBLEM:#}");
            let _ = writeln!(stderr, "  {outcome}");
            if let Some(hint) = hint {
                let _ = writeln!(stderr, "  {HINT}hint:{HINT:#} {hint}");
            }
        });
    }

    /// Prints a note.
    pub(crate) fn note(&self, note: impl Display) {
        self.progress.suspend(|| say_note(note));
    }

    /// Prints a note if standard error is a terminal.
    pub(crate) fn note_to_a_person(&self, note: impl Display) {
        if std::io::stderr().is_terminal() {
            self.note(note);
        }
    }

    /// Prints the summary.
    pub(crate) fn summary(&self, summary: impl Display) {
        self.progress.suspend(|| {
            let _ = writeln!(anstream::stderr().lock(), "{summary}");
        });
    }
}

/// Prints the error that ended a command, and a hint.
pub(crate) fn say_error(error: impl Display, hint: Option<&str>) {
    say(format_args!("{PROBLEM}error:{PROBLEM:#} {error}"), hint);
}

/// Prints a problem and a hint.
pub(crate) fn say_problem(problem: impl Display, hint: Option<&str>) {
    say(format_args!("{PROBLEM}{problem}{PROBLEM:#}"), hint);
}

/// Prints a note.
pub(crate) fn say_note(note: impl Display) {
    say(format_args!("{NOTE}note:{NOTE:#} {note}"), None);
}

/// Prints a text without a label.
pub(crate) fn say_plainly(text: impl Display) {
    say(text, None);
}

fn say(what: impl Display, hint: Option<&str>) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{what}");
    if let Some(hint) = hint {
        let _ = writeln!(stderr, "  {HINT}hint:{HINT:#} {hint}");
    }
}

fn style() -> ProgressStyle {
    let template =
        "{bar:40} {percent:>3} %  {binary_bytes} of {binary_total_bytes}  {binary_bytes_per_sec}  {eta} left";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn spinner() -> ProgressStyle {
    let template = "{spinner} {binary_bytes} sent, {elapsed}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
