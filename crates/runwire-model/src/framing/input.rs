//! The bytes that have arrived and are not yet cut.

use std::ops::Range;

use super::BOM;
use crate::limits;

/// One buffer with a start that moves on, so that taking a frame copies nothing.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    past_bom: bool,
    ended: bool,
}

impl Input {
    /// Returns the number of bytes that were not taken.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Adds bytes; ranges that were taken before are no longer valid.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.ended {
            return;
        }
        // Moving the rest only when it is the smaller half keeps the cost per byte constant.
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
            // One huge push must not weigh on the rest of a long stream.
            self.bytes.shrink_to(2 * limits::FRAME_BYTES);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Marks the end of the input.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Forgets what is left and ends the input.
    pub(super) fn abandon(&mut self) {
        *self = Self { past_bom: true, ended: true, ..Self::default() };
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Skips a byte order mark at the start of the stream; false means that it may still be coming.
    pub(super) fn is_past_bom(&mut self) -> bool {
        if !self.past_bom {
            let rest = self.rest();
            if rest.starts_with(BOM) {
                self.take(BOM.len());
            } else if BOM.starts_with(rest) && !self.ended {
                return false;
            }
            self.past_bom = true;
        }
        true
    }

    /// Returns the bytes that were not taken yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Takes bytes from the front and returns their range, valid until the next push.
    pub(super) fn take(&mut self, count: usize) -> Range<usize> {
        let from = self.start;
        self.start += count;
        debug_assert!(self.start <= self.bytes.len(), "only bytes that have arrived can be taken");
        from..self.start
    }

    /// Takes all bytes.
    pub(super) fn take_all(&mut self) -> Range<usize> {
        self.take(self.rest().len())
    }

    /// Returns bytes that were taken since the last push.
    pub(super) fn taken(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}
