//! How a view may look: colours, width, and whether lines can change in place.

use std::io::{IsTerminal, stdout};

use anstyle::AnsiColor;
use terminal_size::{Height, Width, terminal_size};

/// What the place that a view is drawn on can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Style {
    /// Whether colours may be used.
    pub(crate) color: bool,
    /// The columns; 0 where nobody knows.
    pub(crate) width: usize,
    /// The rows; 0 where nobody knows.
    pub(crate) height: usize,
    /// Whether lines may change in place.
    pub(crate) live: bool,
    /// The server that an answer goes to, for the lines that say how to answer.
    pub(crate) server: Option<Server>,
}

/// A server, as lines for copying name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// Where it is.
    pub(crate) url: String,
    /// What a command needs to reach it: ` --url URL`, or nothing.
    pub(crate) flag: String,
}

impl Style {
    /// Makes the style of a file or a pipe.
    pub(crate) fn plain() -> Self {
        Self { color: false, width: 0, height: 0, live: false, server: None }
    }

    /// Makes the style that fits standard output: plain unless it is a terminal that may have colours.
    pub(crate) fn of_stdout() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|terminal| terminal == "dumb");
        let (width, height) = terminal_columns_and_rows();
        if !stdout().is_terminal() || dumb || set("NO_COLOR").is_some() {
            return Self { width, height, ..Self::plain() };
        }
        Self { color: true, live: true, width, height, server: None }
    }
}

/// Tells the columns and rows of the terminal at standard output; zeroes where there is none.
pub(crate) fn terminal_columns_and_rows() -> (usize, usize) {
    if !stdout().is_terminal() {
        return (0, 0);
    }
    terminal_size().map_or((0, 0), |(Width(width), Height(height))| (width.into(), height.into()))
}

/// How a piece of text is painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Paint {
    /// As the terminal does.
    #[default]
    Plain,
    /// Beside the point.
    Dim,
    /// A title.
    Bold,
    /// It went well.
    Good,
    /// It went wrong.
    Bad,
    /// Something to look at.
    Warn,
    /// It moves, or it is for typing.
    Accent,
}

impl Paint {
    /// Tells the colours.
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
