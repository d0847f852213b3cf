//! The send queue of an engine: encoded frames, grouped into batches.

use std::collections::VecDeque;

use bytes::Bytes;
use runwire_producer::limits::{BATCH_BYTES, BATCH_FRAMES};

/// Frames of the `streaming-engine` dialect as NDJSON, in the order of their sequence.
#[derive(Debug, Clone)]
pub struct SendBatch {
    first: u64,
    lines: Bytes,
    ends: Vec<usize>,
}

impl SendBatch {
    /// Returns the sequence of the first frame.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no frames.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns all frames as NDJSON.
    pub fn lines(&self) -> &Bytes {
        &self.lines
    }

    /// Lists the frames with their sequences.
    pub fn frames(&self) -> impl Iterator<Item = (u64, Bytes)> + '_ {
        let mut from = 0;
        (self.first..).zip(&self.ends).map(move |(sequence, end)| {
            let frame = self.lines.slice(from..end - 1);
            from = *end;
            (sequence, frame)
        })
    }
}

/// Emitted frames that are not sent yet.
#[derive(Debug)]
pub(super) struct SendQueue {
    full: VecDeque<OpenBatch>,
    open: OpenBatch,
    /// Limits the frames of one batch.
    max_frames: usize,
}

#[derive(Debug, Default)]
struct OpenBatch {
    first: u64,
    lines: Vec<u8>,
    ends: Vec<usize>,
}

impl SendQueue {
    /// Creates a queue whose batches have no more frames than the window, however wide it is.
    pub(super) fn new(window: u64) -> Self {
        let max_frames = window.min(BATCH_FRAMES as u64) as usize;
        Self { full: VecDeque::new(), open: OpenBatch::default(), max_frames }
    }

    /// Appends a frame if `admit` accepts it, and returns its length; otherwise nothing changes.
    pub(super) fn push<E>(
        &mut self,
        sequence: u64,
        write: impl FnOnce(&mut Vec<u8>),
        admit: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let from = self.open.lines.len();
        write(&mut self.open.lines);
        if let Err(refused) = admit(&self.open.lines[from..]) {
            self.open.lines.truncate(from);
            // Free the memory of a refused frame that was too long.
            self.open.lines.shrink_to(2 * BATCH_BYTES);
            return Err(refused);
        }
        self.open.lines.push(b'\n');
        if self.open.ends.is_empty() {
            self.open.first = sequence;
        }
        self.open.ends.push(self.open.lines.len());
        let length = self.open.lines.len() - from;
        if self.open.lines.len() >= BATCH_BYTES || self.open.ends.len() >= self.max_frames {
            self.full.push_back(std::mem::take(&mut self.open));
        }
        Ok(length)
    }

    /// Takes the next batch.
    pub(super) fn take(&mut self) -> Option<SendBatch> {
        let open = match self.full.pop_front() {
            Some(full) => full,
            None if self.open.ends.is_empty() => return None,
            None => std::mem::take(&mut self.open),
        };
        Some(SendBatch { first: open.first, lines: open.lines.into(), ends: open.ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_frame_leaves_no_trace() {
        let mut queue = SendQueue::new(8);
        let admit = |_: &[u8]| Ok::<_, ()>(());
        queue.push(0, |out| out.extend_from_slice(b"{}"), admit).unwrap();
        queue.push(1, |out| out.extend_from_slice(b"{\"long\":1}"), |_| Err(())).unwrap_err();
        queue.push(1, |out| out.extend_from_slice(b"[]"), admit).unwrap();
        let batch = queue.take().unwrap();
        assert_eq!(batch.lines(), "{}\n[]\n");
        assert_eq!(batch.frames().collect::<Vec<_>>(), [(0, "{}".into()), (1, "[]".into())]);
        assert!(queue.take().is_none());
    }

    #[test]
    fn a_batch_has_no_more_frames_than_the_window_allows() {
        let mut queue = SendQueue::new(64);
        let admit = |_: &[u8]| Ok::<_, ()>(());
        for sequence in 0..3000 {
            queue.push(sequence, |out| out.extend_from_slice(b"{}"), admit).unwrap();
        }
        let mut next = 0;
        while let Some(batch) = queue.take() {
            assert_eq!(batch.first(), next);
            assert!(batch.len() <= 64);
            next += batch.len() as u64;
        }
        assert_eq!(next, 3000);
    }
}
