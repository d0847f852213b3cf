//! Where encoders write their frames.

use std::borrow::Cow;

/// Frames that were encoded, one after the other in one buffer.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Frames {
    bytes: Vec<u8>,
    ends: Vec<(usize, Option<Cow<'static, str>>)>,
}

impl Frames {
    /// Returns how many frames there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets the frames and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Lists each frame's SSE name and data.
    pub fn iter(&self) -> impl Iterator<Item = (Option<&str>, &[u8])> {
        let mut from = 0;
        self.ends.iter().map(move |(end, name)| {
            let data = &self.bytes[from..*end];
            from = *end;
            (name.as_deref(), data)
        })
    }

    /// Hands out the buffer for a frame's data; [`Frames::end`] must follow.
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the frame.
    pub(crate) fn end(&mut self, name: Option<Cow<'static, str>>) {
        self.ends.push((self.bytes.len(), name));
    }

    /// Removes the frames after the first `at`.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let from = at.checked_sub(1).and_then(|last| self.ends.get(last)).map_or(0, |(end, _)| *end);
        let mut ends = self.ends.split_off(at.min(self.ends.len()));
        ends.iter_mut().for_each(|(end, _)| *end -= from);
        Self { bytes: self.bytes.split_off(from), ends }
    }

    /// Adds the frames of another buffer.
    pub(crate) fn append(&mut self, other: &Self) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|(end, name)| (from + end, name.clone())));
    }
}
