//! Frames that wait to be sent, as the bytes that will be sent.

use std::collections::VecDeque;

use bytes::Bytes;

/// Bytes after which a batch takes no more frames: what a server commits at once.
const BATCH_BYTES: usize = 256 << 10;
/// Frames after which a batch takes no more, however wide the window is.
const BATCH_FRAMES: u64 = 1024;

/// Frames of the `streaming-engine` dialect, one a line, in the order of their sequence.
#[derive(Debug, Clone)]
pub struct Batch {
    first: u64,
    lines: Bytes,
    ends: Vec<usize>,
}

impl Batch {
    /// Tells the sequence of the first frame.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Tells how many frames there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Tells all frames as NDJSON.
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

/// What was emitted and not yet taken to be sent.
#[derive(Debug)]
pub(super) struct Queue {
    full: VecDeque<Open>,
    open: Open,
    /// Frames of one batch.
    most: usize,
}

#[derive(Debug, Default)]
struct Open {
    first: u64,
    lines: Vec<u8>,
    ends: Vec<usize>,
}

impl Queue {
    /// Makes a queue whose batches have no more frames than the window allows.
    pub(super) fn new(window: u64) -> Self {
        let most = window.min(BATCH_FRAMES) as usize;
        Self { full: VecDeque::new(), open: Open::default(), most }
    }

    /// Adds a frame if what it says is admitted; otherwise nothing has changed. Tells how long it is.
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
            // What was much too long must not be remembered either.
            self.open.lines.shrink_to(2 * BATCH_BYTES);
            return Err(refused);
        }
        self.open.lines.push(b'\n');
        if self.open.ends.is_empty() {
            self.open.first = sequence;
        }
        self.open.ends.push(self.open.lines.len());
        let length = self.open.lines.len() - from;
        if self.open.lines.len() >= BATCH_BYTES || self.open.ends.len() >= self.most {
            self.full.push_back(std::mem::take(&mut self.open));
        }
        Ok(length)
    }

    /// Takes what can be sent at once.
    pub(super) fn take(&mut self) -> Option<Batch> {
        let open = match self.full.pop_front() {
            Some(full) => full,
            None if self.open.ends.is_empty() => return None,
            None => std::mem::take(&mut self.open),
        };
        Some(Batch { first: open.first, lines: open.lines.into(), ends: open.ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_frame_leaves_no_trace() {
        let mut queue = Queue::new(8);
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
        let mut queue = Queue::new(64);
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
