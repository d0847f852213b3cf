//! Frames that are sent together, and which line of the input each of them is.

use bytes::Bytes;
use runwire_model::framing::{Framing, write_frame};

/// Bytes after which a batch takes no more frames: what a server commits at once.
const BATCH_BYTES: usize = 256 << 10;
/// Frames after which a batch takes no more.
const BATCH_FRAMES: usize = 1024;

/// A frame that waits to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The line of the input that it came from.
    pub(crate) line: u64,
    pub(crate) name: Option<String>,
    pub(crate) data: Bytes,
}

/// Frames that become the body of a request.
#[derive(Debug)]
pub(crate) struct Batch {
    framing: Framing,
    frames: Vec<Waiting>,
    bytes: usize,
}

impl Batch {
    /// Makes an empty batch. What is not one frame a line is sent as server-sent events, which keep names and
    /// line ends.
    pub(crate) fn new(input: Framing) -> Self {
        let framing = if input == Framing::Ndjson { Framing::Ndjson } else { Framing::Sse };
        Self { framing, frames: Vec::new(), bytes: 0 }
    }

    pub(crate) fn push(&mut self, frame: Waiting) {
        self.bytes += frame.data.len();
        self.frames.push(frame);
    }

    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= BATCH_FRAMES || self.bytes >= BATCH_BYTES
    }

    pub(crate) fn body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.bytes + 8 * self.frames.len());
        for frame in &self.frames {
            write_frame(self.framing, &mut body, None, frame.name.as_deref(), &frame.data);
        }
        body.into()
    }

    /// Takes out the frame at this place; those before it are written and forgotten.
    pub(crate) fn take(&mut self, at: usize) -> Option<Waiting> {
        let taken = self.frames.drain(..self.frames.len().min(at + 1)).nth(at);
        self.bytes = self.frames.iter().map(|frame| frame.data.len()).sum();
        taken
    }

    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(line: u64, name: Option<&str>, data: &'static str) -> Waiting {
        Waiting { line, name: name.map(str::to_owned), data: data.into() }
    }

    #[test]
    fn a_frame_at_fault_is_taken_out_and_what_is_written_before_it_is_forgotten() {
        let mut batch = Batch::new(Framing::Ndjson);
        for (line, data) in [(3, "{}"), (5, "[1]"), (6, "{\"a\":1}")] {
            batch.push(frame(line, None, data));
        }
        assert_eq!((batch.len(), batch.body()), (3, "{}\n[1]\n{\"a\":1}\n".into()));
        assert_eq!(batch.take(1), Some(frame(5, None, "[1]")));
        assert_eq!(batch.body(), "{\"a\":1}\n");
        assert_eq!(batch.take(1), None);
        assert!(batch.is_empty() && batch.body().is_empty());
    }

    #[test]
    fn names_and_line_ends_travel_as_server_sent_events() {
        let mut batch = Batch::new(Framing::Json);
        batch.push(frame(1, Some("greeting"), "{\n}"));
        assert_eq!(batch.framing(), Framing::Sse);
        assert_eq!(batch.body(), "event: greeting\ndata: {\ndata: }\n\n");
    }
}
