//! Splits the bytes of a request body into frames, batched for appends; detects the framing if it is not named.

use runwire_log::FrameBatch;
use runwire_model::framing::{Framing, FramingError, Unframer};
use runwire_producer::limits::{BATCH_BYTES, BATCH_FRAMES};

use crate::limits;

/// Splits a body into frames.
pub(super) struct BodyUnframer {
    named: Option<Framing>,
    unframer: Option<Unframer>,
    /// Bytes that arrived before the framing was detected.
    first_bytes: Vec<u8>,
}

/// How a batch was filled.
pub(super) enum FillResult {
    /// With every complete frame that has arrived.
    Complete,
    /// Up to the limit of one append.
    Full,
    /// Up to bytes that are no frame.
    Failed(FramingError),
}

impl BodyUnframer {
    pub(super) fn new(named: Option<Framing>) -> Self {
        Self { named, unframer: None, first_bytes: Vec::new() }
    }

    /// Adds a whole body that is a single NDJSON line without copying it to a buffer: by far the most frequent body.
    pub(super) fn take_single_line(&mut self, body: &[u8], batch: &mut FrameBatch) -> bool {
        let framing = self.named.or_else(|| Framing::detect(body));
        let begun = self.unframer.is_some() || !self.first_bytes.is_empty();
        if begun || framing != Some(Framing::Ndjson) || body.len() > runwire_model::limits::FRAME_BYTES {
            return false;
        }
        let line = body.strip_suffix(b"\n").unwrap_or(body);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // A line that does not start with `{` may be blank or have a byte order mark.
        if line.first() != Some(&b'{') || line.contains(&b'\n') {
            return false;
        }
        batch.push(1, None, line);
        true
    }

    /// Adds received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if let Some(unframer) = &mut self.unframer {
            return unframer.push(bytes);
        }
        match self.named {
            Some(framing) => self.begin(framing, bytes),
            None => {
                self.first_bytes.extend_from_slice(bytes);
                let detected = Framing::detect(&self.first_bytes);
                let enough = self.first_bytes.len() >= limits::SNIFFED_BYTES;
                if let Some(framing) = detected.or(enough.then_some(Framing::Ndjson)) {
                    self.begin_with_first_bytes(framing);
                }
            }
        }
    }

    /// Marks the clean end of the body: remaining bytes are a frame, too.
    pub(super) fn finish(&mut self) {
        if self.unframer.is_none() {
            self.begin_with_first_bytes(self.named.unwrap_or(Framing::Ndjson));
        }
        if let Some(unframer) = &mut self.unframer {
            unframer.finish();
        }
    }

    fn begin_with_first_bytes(&mut self, framing: Framing) {
        let first_bytes = std::mem::take(&mut self.first_bytes);
        self.begin(framing, &first_bytes);
    }

    fn begin(&mut self, framing: Framing, bytes: &[u8]) {
        self.unframer.insert(Unframer::new(framing)).push(bytes);
    }

    /// Moves complete frames into a batch, up to the limit of one append.
    pub(super) fn fill(&mut self, batch: &mut FrameBatch) -> FillResult {
        let Some(unframer) = &mut self.unframer else { return FillResult::Complete };
        loop {
            if batch.len() >= BATCH_FRAMES || batch.bytes() >= BATCH_BYTES {
                return FillResult::Full;
            }
            match unframer.next() {
                Some(Ok(frame)) => batch.push(frame.line, frame.name, frame.data),
                Some(Err(error)) => return FillResult::Failed(error),
                None => return FillResult::Complete,
            }
        }
    }

    /// Returns the bytes that have arrived and are in no frame yet.
    pub(super) fn buffered(&self) -> usize {
        self.first_bytes.len() + self.unframer.as_ref().map_or(0, Unframer::buffered)
    }

    /// Counts the heartbeats (blank lines and comments) so far.
    pub(super) fn heartbeats(&self) -> u64 {
        self.unframer.as_ref().map_or(0, Unframer::beats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(batch: &FrameBatch) -> Vec<(u64, String)> {
        batch.iter().map(|frame| (frame.line, String::from_utf8_lossy(frame.data).into_owned())).collect()
    }

    #[test]
    fn a_single_line_is_cut_as_the_framing_would_cut_it() {
        for body in [
            "{}",
            "{}\n",
            "{}\r\n",
            "{} \n",
            " {}\n",
            "\u{feff}{}",
            "{}\n\n",
            "\n",
            "",
            "{}\n{}",
            "x",
            "[{}]",
        ] {
            for named in [None, Some(Framing::Ndjson)] {
                let (mut short, mut long) = (FrameBatch::default(), FrameBatch::default());
                if !BodyUnframer::new(named).take_single_line(body.as_bytes(), &mut short) {
                    continue;
                }
                let mut unframer = BodyUnframer::new(named);
                unframer.push(body.as_bytes());
                unframer.finish();
                assert!(matches!(unframer.fill(&mut long), FillResult::Complete));
                assert_eq!(frames(&short), frames(&long), "{body:?}");
            }
        }
        let mut batch = FrameBatch::default();
        assert!(BodyUnframer::new(None).take_single_line(b"{\"a\":1}\n", &mut batch));
    }

    #[test]
    fn the_framing_shows_in_the_first_bytes_wherever_they_are_cut() {
        for (body, expected) in
            [("data: {}\n\n", "{}"), ("[{\"a\":1}]", "{\"a\":1}"), ("\n {\"b\":2}\n", " {\"b\":2}")]
        {
            let mut unframer = BodyUnframer::new(None);
            let mut batch = FrameBatch::default();
            for byte in body.as_bytes() {
                unframer.push(&[*byte]);
            }
            unframer.finish();
            assert!(matches!(unframer.fill(&mut batch), FillResult::Complete));
            assert_eq!(frames(&batch)[0].1, expected);
        }
    }

    #[test]
    fn white_space_without_end_is_not_kept_while_the_framing_is_unknown() {
        let mut unframer = BodyUnframer::new(None);
        for _ in 0..1000 {
            unframer.push(&[b'\n'; 1024]);
            assert!(matches!(unframer.fill(&mut FrameBatch::default()), FillResult::Complete));
            assert!(unframer.first_bytes.len() < limits::SNIFFED_BYTES);
        }
        assert!(unframer.heartbeats() > 0);
    }
}
