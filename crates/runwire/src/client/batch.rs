//! A batch of frames that is uploaded in one request, with the input line of each frame.

use bytes::Bytes;
use runwire_client::EncodedFrames;
use runwire_model::framing::{Framing, write_frame};
use runwire_producer::limits::{BATCH_BYTES, BATCH_FRAMES};

/// A frame that is not acknowledged yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueuedFrame {
    /// Its line in the input.
    pub(crate) line: u64,
    pub(crate) name: Option<String>,
    pub(crate) data: Bytes,
}

/// The frames of one request.
#[derive(Debug)]
pub(crate) struct UploadBatch {
    framing: Framing,
    frames: Vec<QueuedFrame>,
    bytes: usize,
}

impl UploadBatch {
    /// Creates an empty batch. Input other than NDJSON is sent as server-sent events, which keep names and line ends.
    pub(crate) fn new(input: Framing) -> Self {
        Self { framing: Self::framing_for(input), frames: Vec::new(), bytes: 0 }
    }

    /// Returns the framing that input of a framing is sent in.
    pub(crate) fn framing_for(input: Framing) -> Framing {
        if input == Framing::Ndjson { Framing::Ndjson } else { Framing::Sse }
    }

    pub(crate) fn push(&mut self, frame: QueuedFrame) {
        self.bytes += frame.data.len();
        self.frames.push(frame);
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

    pub(crate) fn encoded(&self) -> EncodedFrames {
        EncodedFrames { body: self.body(), count: self.frames.len() as u64 }
    }

    fn body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.bytes + 8 * self.frames.len());
        for frame in &self.frames {
            write_frame(self.framing, &mut body, None, frame.name.as_deref(), &frame.data);
        }
        body.into()
    }

    /// Removes and returns the frame at an index, and drops those before it, which are written.
    pub(crate) fn take(&mut self, at: usize) -> Option<QueuedFrame> {
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

    fn frame(line: u64, name: Option<&str>, data: &'static str) -> QueuedFrame {
        QueuedFrame { line, name: name.map(str::to_owned), data: data.into() }
    }

    #[test]
    fn a_refused_frame_is_removed_with_the_written_ones_before_it() {
        let mut batch = UploadBatch::new(Framing::Ndjson);
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
        let mut batch = UploadBatch::new(Framing::Json);
        batch.push(frame(1, Some("greeting"), "{\n}"));
        assert_eq!(batch.framing, Framing::Sse);
        assert_eq!(batch.body(), "event: greeting\ndata: {\ndata: }\n\n");
    }
}
