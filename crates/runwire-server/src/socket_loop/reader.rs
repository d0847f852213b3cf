//! A reader at the end of its feed, as a loop holds it.

use bytes::Bytes;

use crate::feed::ResumeOptions;
use crate::metrics::OpenReader;

/// Marks a reader that is in no list of its feed.
const UNLISTED: u32 = u32::MAX;

/// A reader: where it stands, and how it continues elsewhere. Every idle reader has one, so it is small.
pub(super) struct LoopReader {
    /// Its feed in the loop.
    feed: u32,
    /// Its place in the list of the feed's readers.
    place: u32,
    /// The last record that it was sent completely, but for `unsent`.
    pub(super) at: u64,
    /// The `seq` of the last cursor that it was sent.
    pub(super) sent: u64,
    /// The rest of a chunk that the socket did not take: a reference to shared bytes.
    pub(super) unsent: Option<Box<Bytes>>,
    pub(super) options: ResumeOptions,
    pub(super) open: OpenReader,
}

impl LoopReader {
    pub(super) fn new(feed: usize, at: u64, sent: u64, options: ResumeOptions, open: OpenReader) -> Self {
        // There are fewer feeds than 2^32.
        Self { feed: feed as u32, place: UNLISTED, at, sent, unsent: None, options, open }
    }

    pub(super) fn feed(&self) -> usize {
        self.feed as usize
    }

    /// Returns its place in the list of its feed; none while it waits for its socket.
    pub(super) fn place(&self) -> Option<usize> {
        (self.place != UNLISTED).then_some(self.place as usize)
    }

    pub(super) fn set_place(&mut self, place: Option<usize>) {
        self.place = place.map_or(UNLISTED, |place| place as u32);
    }
}
