//! What the streams of a run must come to, added up frame by frame.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use runwire_log::StoredRecord;
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::window::Window;

/// The frames of a stream, as far as two streams can be told apart by it.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    pub(super) frames: u64,
    hasher: DefaultHasher,
}

impl Sum {
    /// Adds a frame at its cursor.
    pub(super) fn add(&mut self, seq: u64, name: Option<&[u8]>, data: &[u8]) {
        self.frames += 1;
        (seq, name).hash(&mut self.hasher);
        // Server-sent events know only one kind of line end.
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

impl PartialEq for Sum {
    fn eq(&self, other: &Self) -> bool {
        self.frames == other.frames && self.hasher.finish() == other.hasher.finish()
    }
}

/// What a run's streams must be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    encoder: Encoder,
    pub(super) last_seq: u64,
    /// Whether more may come.
    pub(super) open: bool,
    pub(super) canonical: Sum,
    pub(super) raw: Sum,
}

/// The runs of a thread, and what their streams must be.
#[derive(Debug, Default)]
pub(super) struct Runs(pub(super) HashMap<Arc<str>, Expected>);

impl Runs {
    /// Takes in a record of the file.
    pub(super) fn add(&mut self, thread: &str, stored: &StoredRecord) {
        let seq = stored.record.seq;
        let run = self.0.entry(stored.run.clone()).or_insert_with(|| Expected {
            encoder: Encoder::new(Dialect::Runwire, thread, &*stored.run, Fidelity::Native),
            last_seq: seq,
            open: true,
            canonical: Sum::default(),
            raw: Sum::default(),
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
    fn streams_that_differ_anywhere_have_another_sum() {
        let sum = |frames: &[(u64, Option<&str>, &str)]| {
            let mut sum = Sum::default();
            frames
                .iter()
                .for_each(|(seq, name, data)| sum.add(*seq, name.map(str::as_bytes), data.as_bytes()));
            sum
        };
        let one = sum(&[(1, None, "ab"), (2, Some("n"), "c")]);
        assert_eq!(one, sum(&[(1, None, "ab"), (2, Some("n"), "c")]));
        assert_ne!(one, sum(&[(1, None, "a"), (2, Some("n"), "bc")]));
        assert_ne!(one, sum(&[(1, None, "ab"), (3, Some("n"), "c")]));
        assert_ne!(one, sum(&[(1, None, "ab"), (2, None, "c")]));
        assert_ne!(one, sum(&[(1, None, "ab")]));
        assert_eq!(sum(&[(1, None, "a\r\nb\rc")]), sum(&[(1, None, "a\nb\nc")]));
    }
}
