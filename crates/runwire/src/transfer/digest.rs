//! Digests of a run's streams, to compare the file with the server.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use runwire_log::StoredRecord;
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::window::Window;

/// Count and hash of a stream's frames.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamDigest {
    pub(super) frames: u64,
    hasher: DefaultHasher,
}

impl StreamDigest {
    /// Adds a frame at its cursor.
    pub(super) fn add(&mut self, seq: u64, name: Option<&[u8]>, data: &[u8]) {
        self.frames += 1;
        (seq, name).hash(&mut self.hasher);
        // Server-sent events normalise line ends.
        let mut bytes = data.iter().peekable();
        if data.contains(&b'\r') {
            while let Some(byte) = bytes.next() {
                let is_pair = *byte == b'\r' && bytes.peek() == Some(&&b'\n');
                if !is_pair {
                    self.hasher.write_u8(if *byte == b'\r' { b'\n' } else { *byte });
                }
            }
        } else {
            self.hasher.write(data);
        }
        self.hasher.write_u8(0xff);
    }
}

impl PartialEq for StreamDigest {
    fn eq(&self, other: &Self) -> bool {
        self.frames == other.frames && self.hasher.finish() == other.hasher.finish()
    }
}

/// The expected digests of a run's streams.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExpectedStreams {
    encoder: Encoder,
    pub(super) last_seq: u64,
    /// Whether the run is open, so that more may follow.
    pub(super) open: bool,
    pub(super) canonical: StreamDigest,
    pub(super) raw: StreamDigest,
}

/// The expected digests of a thread's runs.
#[derive(Debug, Default)]
pub(super) struct ExpectedRuns(pub(super) HashMap<Arc<str>, ExpectedStreams>);

impl ExpectedRuns {
    /// Adds a record of the file.
    pub(super) fn add(&mut self, thread: &str, stored: &StoredRecord) {
        let seq = stored.record.seq;
        let run = self.0.entry(stored.run.clone()).or_insert_with(|| ExpectedStreams {
            encoder: Encoder::new(Dialect::Runwire, thread, &*stored.run, Fidelity::Native),
            last_seq: seq,
            open: true,
            canonical: StreamDigest::default(),
            raw: StreamDigest::default(),
        });
        (run.last_seq, run.open) = (seq, !stored.is_terminal());
        let mut frames = Frames::default();
        run.encoder.step(&stored.record, &Window::default(), &mut frames);
        for (name, data) in frames.iter() {
            run.canonical.add(seq, name.map(str::as_bytes), data);
            if stored.frame.is_none() {
                run.raw.add(seq, name.map(str::as_bytes), data);
            }
        }
        if let Some(frame) = &stored.frame {
            run.raw.add(seq, stored.name.as_deref().map(str::as_bytes), frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_streams_have_different_digests() {
        let digest = |frames: &[(u64, Option<&str>, &str)]| {
            let mut digest = StreamDigest::default();
            frames
                .iter()
                .for_each(|(seq, name, data)| digest.add(*seq, name.map(str::as_bytes), data.as_bytes()));
            digest
        };
        let one = digest(&[(1, None, "ab"), (2, Some("n"), "c")]);
        assert_eq!(one, digest(&[(1, None, "ab"), (2, Some("n"), "c")]));
        assert_ne!(one, digest(&[(1, None, "a"), (2, Some("n"), "bc")]));
        assert_ne!(one, digest(&[(1, None, "ab"), (3, Some("n"), "c")]));
        assert_ne!(one, digest(&[(1, None, "ab"), (2, None, "c")]));
        assert_ne!(one, digest(&[(1, None, "ab")]));
        assert_eq!(digest(&[(1, None, "a\r\nb\rc")]), digest(&[(1, None, "a\nb\nc")]));
    }
}
