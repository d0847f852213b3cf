//! The style of a view: colours, size, and whether lines can change in place.

use std::io::{IsTerminal, stdout};

use anstyle::AnsiColor;
use terminal_size::{Height, Width, terminal_size};

/// The capabilities of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Whether colours may be used.
    pub color: bool,
    /// The columns; 0 if unknown.
    pub width: usize,
    /// The rows; 0 if unknown.
    pub height: usize,
    /// Whether lines may change in place.
    pub live: bool,
    /// The server, for the lines that show how to answer.
    pub server: Option<ServerHint>,
}

/// A server's URL and flag, for lines that can be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerHint {
    /// Its URL.
    pub url: String,
    /// The flag that a command needs: ` --url URL`, or nothing.
    pub flag: String,
}

impl Style {
    /// Returns the style of a file or a pipe.
    pub fn plain() -> Self {
        Self { color: false, width: 0, height: 0, live: false, server: None }
    }

    /// Returns the style of standard output: plain unless it is a terminal with colours.
    pub fn of_stdout() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|terminal| terminal == "dumb");
        let (width, height) = terminal_columns_and_rows();
        if !stdout().is_terminal() || dumb || set("NO_COLOR").is_some() {
            return Self { width, height, ..Self::plain() };
        }
        Self { color: true, live: true, width, height, server: None }
    }
}

/// Returns the columns and rows of the terminal at standard output; zeroes if there is none.
pub fn terminal_columns_and_rows() -> (usize, usize) {
    if !stdout().is_terminal() {
        return (0, 0);
    }
    terminal_size().map_or((0, 0), |(Width(width), Height(height))| (width.into(), height.into()))
}

/// The style of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Paint {
    /// Default.
    #[default]
    Plain,
    /// Minor.
    Dim,
    /// A title.
    Bold,
    /// Success.
    Good,
    /// Error.
    Bad,
    /// Warning.
    Warn,
    /// Running, or to be typed.
    Accent,
}

impl Paint {
    /// Returns the colours.
    pub(super) fn colors(self) -> anstyle::Style {
        match self {
            Self::Plain => anstyle::Style::new(),
            Self::Dim => anstyle::Style::new().dimmed(),
            Self::Bold => anstyle::Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Accent => AnsiColor::Cyan.on_default(),
        }
    }
}
