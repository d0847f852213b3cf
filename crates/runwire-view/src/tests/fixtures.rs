//! Recorded runs, and a fake terminal.

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;

use runwire_model::json::Object;
use runwire_model::{Event, Timestamp};

use crate::{ServerHint, Style, View};

/// A line of a recorded run.
pub(super) enum ScriptLine {
    /// An event of a run.
    Event(String, Timestamp, Box<Event>),
    /// A named moment to record the screen.
    Look(String),
}

/// Parses a recorded run: frames of the `runwire` dialect, and lines with `#` that name moments.
pub(super) fn read(text: &str) -> Vec<ScriptLine> {
    let cue = |line: &str| {
        if let Some(name) = line.strip_prefix("# ") {
            return ScriptLine::Look(name.to_owned());
        }
        let mut object = Object::parse(line.as_bytes()).unwrap();
        object.take("seq");
        object.take("thread_id");
        let at = Timestamp::parse(&object.take_str("at").unwrap()).unwrap();
        let run = object.take_id("run_id").unwrap().unwrap_or_else(|| "run-1".to_owned());
        let event_type = object.take_str("type").unwrap();
        let event = Event::read(&event_type, object).unwrap().unwrap();
        ScriptLine::Event(run, at, Box::new(event))
    };
    text.lines().map(cue).collect()
}

/// Returns the path of a golden file.
pub(super) fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden").join(name)
}

/// Reads a recorded run.
pub(super) fn recorded(name: &str) -> Vec<ScriptLine> {
    read(&std::fs::read_to_string(golden(&format!("{name}.ndjson"))).unwrap())
}

/// Reads the canonical events of a vector.
pub(super) fn vector(name: &str) -> Vec<ScriptLine> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(name);
    read(&std::fs::read_to_string(folder.join("runwire.ndjson")).unwrap())
}

/// Draws a run without a terminal.
pub(super) fn plain(script: &[ScriptLine]) -> String {
    let mut out = Vec::new();
    let mut view = View::new(Style::plain(), &mut out);
    for cue in script {
        if let ScriptLine::Event(run, at, event) = cue {
            view.event(run, *at, event).unwrap();
        }
    }
    view.finish().unwrap();
    drop(view);
    String::from_utf8(out).unwrap()
}

/// Returns the style of a terminal.
pub(super) fn terminal(width: usize) -> Style {
    let server = Some(ServerHint { url: "http://127.0.0.1:7420".to_owned(), flag: String::new() });
    Style { color: true, width, height: 24, live: true, server }
}

/// A terminal emulator.
#[derive(Clone)]
pub(super) struct FakeTerminal {
    parser: Rc<RefCell<vt100::Parser>>,
}

impl FakeTerminal {
    pub(super) fn new(rows: u16, columns: u16) -> Self {
        Self { parser: Rc::new(RefCell::new(vt100::Parser::new(rows, columns, 0))) }
    }

    fn rows(&self) -> Vec<String> {
        let parser = self.parser.borrow();
        let (_, columns) = parser.screen().size();
        parser.screen().rows(0, columns).collect()
    }

    /// Returns the screen's text without the empty rows at the end.
    pub(super) fn text(&self) -> String {
        let rows = self.rows();
        let shown: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
        shown.join("\n").trim_end().to_owned()
    }

    /// Returns the cell of a text's first character.
    pub(super) fn cell_of(&self, text: &str) -> vt100::Cell {
        for (row, shown) in (0..).zip(self.rows()) {
            if let Some(place) = shown.find(text) {
                let column = u16::try_from(crate::measure::width(&shown[..place])).unwrap();
                return self.parser.borrow().screen().cell(row, column).unwrap().clone();
            }
        }
        panic!("`{text}` is not on the screen:\n{}", self.text());
    }

    /// Returns true if a row is filled to its last column.
    pub(super) fn has_full_row(&self) -> bool {
        let parser = self.parser.borrow();
        let (rows, columns) = parser.screen().size();
        (0..rows).any(|row| {
            let cell = parser.screen().cell(row, columns - 1);
            cell.is_some_and(|cell| cell.is_wide_continuation() || !cell.contents().trim().is_empty())
        })
    }

    /// Returns the row and the column of the cursor.
    pub(super) fn cursor(&self) -> (u16, u16) {
        self.parser.borrow().screen().cursor_position()
    }

    /// Resizes the terminal, which truncates what does not fit.
    pub(super) fn resize(&self, rows: u16, columns: u16) {
        self.parser.borrow_mut().screen_mut().set_size(rows, columns);
    }
}

impl Write for FakeTerminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.parser.borrow_mut().process(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
