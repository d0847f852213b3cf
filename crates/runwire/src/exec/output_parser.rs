//! What a program writes, told apart: frames, and lines that are none.

use bytes::Bytes;
use runwire_model::dialect::{Dialect, detect};
use runwire_model::framing::{Framing, FramingError, Unframer};
use runwire_model::json::Object;

use crate::client::batch::Waiting;
use crate::ending;

/// Bytes of white space and half words that may hide the framing.
const SNIFFED_BYTES: usize = 64 << 10;
/// Blank lines that are kept between two lines of text.
const BLANK_LINES: u64 = 100;
/// Lines that wait for one that tells the dialect.
const UNDECIDED_LINES: usize = 16;

/// One thing that a program has written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Frames are of this dialect from here on.
    Speaks(Dialect),
    /// A JSON object, which the server may yet refuse.
    Frame(Waiting),
    /// A line that is no frame.
    Stray(Bytes),
    /// A line that is too long for anything.
    TooLong { line: u64 },
}

/// Cuts a program's output into frames and lines.
#[derive(Debug)]
pub(super) struct Sorter {
    framing: Option<Framing>,
    /// The first bytes, which do not yet tell the framing.
    first: Vec<u8>,
    unframer: Option<Unframer>,
    dialect: Option<Dialect>,
    /// Lines from the first object on that does not tell its dialect.
    held: Vec<Said>,
    /// The number of the last line, if it was no frame.
    stray: Option<u64>,
}

impl Sorter {
    /// Makes a sorter; what is not named is found out.
    pub(super) fn new(framing: Option<Framing>, dialect: Option<Dialect>) -> Self {
        Self { framing, first: Vec::new(), unframer: None, dialect, held: Vec::new(), stray: None }
    }

    /// Takes in bytes, cut anywhere, and tells what is whole.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Said> {
        match &mut self.unframer {
            Some(unframer) => unframer.push(bytes),
            None => {
                self.first.extend_from_slice(bytes);
                let found = self.framing.or_else(|| found(&self.first));
                let found = found.or((self.first.len() > SNIFFED_BYTES).then_some(Framing::Ndjson));
                let Some(framing) = found else { return Vec::new() };
                self.begin(framing);
            }
        }
        self.sort()
    }

    /// Tells what is left at the end of the output.
    pub(super) fn finish(&mut self) -> Vec<Said> {
        if self.unframer.is_none() {
            self.begin(self.framing.unwrap_or(Framing::Ndjson));
        }
        if let Some(unframer) = &mut self.unframer {
            unframer.finish();
        }
        let mut said = self.sort();
        self.give_up(&mut said);
        said
    }

    fn begin(&mut self, framing: Framing) {
        let mut unframer = Unframer::new(framing);
        unframer.push(&std::mem::take(&mut self.first));
        self.unframer = Some(unframer);
    }

    fn sort(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        let Some(mut unframer) = self.unframer.take() else { return said };
        while let Some(cut) = unframer.next() {
            match cut {
                Ok(frame) if ending::is_done_marker(frame.data) => {}
                Ok(frame) => {
                    let data = Bytes::copy_from_slice(frame.data);
                    let (line, before) = (frame.line, self.stray.take());
                    match Object::parse(&data) {
                        Ok(object) => {
                            let found = self.dialect.is_none().then(|| detect(&object).ok()).flatten();
                            let name = frame.name.map(str::to_owned);
                            let frame = Waiting { line: frame.line, name, data: data.clone() };
                            self.frame(frame, found, &mut said);
                        }
                        Err(_) => {
                            // Blank lines are no frames, and yet part of a text that they stand in.
                            let blank = before.map_or(0, |before| line.saturating_sub(before + 1));
                            for _ in 0..blank.min(BLANK_LINES) {
                                self.tell(Said::Stray(Bytes::new()), &mut said);
                            }
                            self.tell(Said::Stray(data), &mut said);
                            self.stray = Some(line);
                        }
                    }
                }
                Err(FramingError::TooLong { line } | FramingError::NameTooLong { line }) => {
                    self.tell(Said::TooLong { line }, &mut said);
                }
                // Only JSON arrays end like this, and they are not cut here.
                Err(FramingError::NotJson { .. }) => break,
            }
        }
        self.unframer = Some(unframer);
        said
    }

    /// Tells a frame, or holds it until the dialect is known.
    fn frame(&mut self, frame: Waiting, found: Option<Dialect>, said: &mut Vec<Said>) {
        if let Some(dialect) = found {
            self.dialect = Some(dialect);
            said.push(Said::Speaks(dialect));
            said.append(&mut self.held);
        }
        if self.dialect.is_some() {
            return said.push(Said::Frame(frame));
        }
        self.held.push(Said::Frame(frame));
        self.relieve(said);
    }

    /// Tells a line, in its place after those that are held.
    fn tell(&mut self, line: Said, said: &mut Vec<Said>) {
        if self.held.is_empty() {
            return said.push(line);
        }
        self.held.push(line);
        self.relieve(said);
    }

    fn relieve(&mut self, said: &mut Vec<Said>) {
        if self.held.len() >= UNDECIDED_LINES {
            self.give_up(said);
        }
    }

    /// Takes what is held for no frames of any dialect.
    fn give_up(&mut self, said: &mut Vec<Said>) {
        said.extend(self.held.drain(..).map(|held| match held {
            Said::Frame(frame) => Said::Stray(frame.data),
            other => other,
        }));
    }
}

/// Finds the framing by the first bytes. A line that begins with a bracket is a program's log, and no array.
fn found(first: &[u8]) -> Option<Framing> {
    match Framing::detect(first)? {
        Framing::Sse => Some(Framing::Sse),
        Framing::Ndjson | Framing::Json => Some(Framing::Ndjson),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(sorter: &mut Sorter, text: &str) -> Vec<String> {
        let mut said = Vec::new();
        // Cut anywhere.
        for byte in text.as_bytes() {
            said.extend(sorter.push(&[*byte]));
        }
        said.extend(sorter.finish());
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let shown = said.iter().map(|said| match said {
            Said::Speaks(dialect) => format!("speaks {}", dialect.name()),
            Said::Frame(Waiting { line, name, data }) => {
                format!("{line} {}{}", name.as_deref().unwrap_or_default(), text(data))
            }
            Said::Stray(line) => format!("stray {}", text(line)),
            Said::TooLong { line } => format!("too long {line}"),
        });
        shown.collect()
    }

    #[test]
    fn frames_and_stray_lines_keep_their_order() {
        let output =
            "[INFO] hello\n{\"type\":\"run_start\"}\n\nno frame\n[1]\n{\"reply\":\"Hi.\"}\ndata: [DONE]\n";
        let said = sorted(&mut Sorter::new(None, None), output);
        let expected = [
            "stray [INFO] hello",
            "speaks loom",
            "2 {\"type\":\"run_start\"}",
            "stray no frame",
            "stray [1]",
            "6 {\"reply\":\"Hi.\"}",
            "stray data: [DONE]",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn frames_that_do_not_tell_their_dialect_wait_for_one_that_does() {
        let output = "{\"mood\":1}\nlog\n{\"type\":\"node_enter\",\"id\":\"n\"}\n";
        let said = sorted(&mut Sorter::new(None, None), output);
        let frames =
            ["speaks loom", "1 {\"mood\":1}", "stray log", "3 {\"type\":\"node_enter\",\"id\":\"n\"}"];
        assert_eq!(said, frames);
        assert_eq!(sorted(&mut Sorter::new(None, Some(Dialect::Loom)), "{\"mood\":1}\n"), ["1 {\"mood\":1}"]);
        assert_eq!(
            sorted(&mut Sorter::new(None, None), "{\"mood\":1}\nlog"),
            ["stray {\"mood\":1}", "stray log"]
        );
        let mut sorter = Sorter::new(None, None);
        assert_eq!(sorter.push("{}\n".repeat(UNDECIDED_LINES).as_bytes()).len(), UNDECIDED_LINES);
    }

    #[test]
    fn server_sent_events_are_frames_with_names() {
        let output =
            ": hello\nevent: m\ndata: {\"reply\":1}\n\nid: 2\ndata: {\"reply\":2}\n\ndata: [DONE]\n\n";
        let said = sorted(&mut Sorter::new(None, Some(Dialect::Loom)), output);
        assert_eq!(said, ["3 m{\"reply\":1}", "6 {\"reply\":2}"]);
    }
}
