//! The ring buffer of a feed: its newest segments.

use std::collections::VecDeque;
use std::sync::Arc;

use super::segment::Segment;
use crate::limits;

/// Ring buffer of contiguous segments, limited to [`limits::FEED_BYTES`].
#[derive(Default)]
pub(super) struct SegmentRing {
    pub(super) segments: VecDeque<Arc<Segment>>,
    bytes: usize,
    /// The last record that was encoded, which the next segment follows; none while nobody has encoded.
    end: Option<u64>,
}

/// The result of a reader's lookup in a feed.
pub(crate) enum FeedLookup {
    /// Frames, some of which may lie before the reader's cursor.
    Segment(Arc<Segment>),
    /// The reader has everything so far.
    AtEnd,
    /// The feed does not hold the frames that the reader needs.
    Behind,
}

/// What a feed holds after a record.
pub(crate) enum HeldSegments {
    /// The segments that follow it, up to a number of them.
    Some(Vec<Arc<Segment>>),
    /// Nothing was encoded after it.
    AtEnd,
    /// Its segments are gone, or the record lies inside of one.
    Behind,
}

impl SegmentRing {
    /// Makes an empty ring, which continues after a record.
    pub(super) fn after_record(seq: u64) -> Self {
        Self { end: Some(seq), ..Self::default() }
    }

    pub(super) fn lookup(&self, whole: u64) -> FeedLookup {
        match (self.segments.front(), self.end) {
            (_, None) => FeedLookup::AtEnd,
            (_, Some(end)) if whole >= end => FeedLookup::AtEnd,
            (Some(first), _) if first.after <= whole => {
                let at = self.segments.partition_point(|segment| segment.upto <= whole);
                FeedLookup::Segment(self.segments[at].clone())
            }
            _ => FeedLookup::Behind,
        }
    }

    /// Returns up to `limit` segments that follow a record.
    pub(super) fn held_after(&self, whole: u64, limit: usize) -> HeldSegments {
        match self.lookup(whole) {
            FeedLookup::AtEnd => HeldSegments::AtEnd,
            // Nothing is cut out of a segment without frames.
            FeedLookup::Segment(first) if first.after == whole || first.len() == 0 => {
                let at = self.segments.partition_point(|segment| segment.upto <= whole);
                HeldSegments::Some(self.segments.iter().skip(at).take(limit).cloned().collect())
            }
            FeedLookup::Segment(_) | FeedLookup::Behind => HeldSegments::Behind,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops the segments. Readers at the end stay there.
    pub(super) fn clear(&mut self) {
        (self.segments, self.bytes) = (VecDeque::new(), 0);
    }

    /// Returns the last record that was encoded.
    pub(super) fn end(&self) -> Option<u64> {
        self.end
    }

    /// Returns true if a reader that has read a record needs no store to continue.
    pub(super) fn continues_after(&self, whole: u64) -> bool {
        self.end.is_some_and(|end| whole <= end) && !matches!(self.held_after(whole, 0), HeldSegments::Behind)
    }

    pub(super) fn push(&mut self, segment: Segment) {
        assert!(self.end.is_none_or(|end| end == segment.after), "segments of a feed are contiguous");
        self.end = Some(segment.upto);
        // Records of other runs leave no frames here: they must not push out those that have some.
        let merged = self.segments.back().and_then(|last| last.without_frames_upto(&segment));
        let segment = Arc::new(match merged {
            Some(merged) => {
                self.bytes -= self.segments.pop_back().map_or(0, |last| last.memory_bytes());
                merged
            }
            None => segment,
        });
        self.bytes += segment.memory_bytes();
        self.segments.push_back(segment);
        while self.bytes > limits::FEED_BYTES && self.segments.len() > 1 {
            if let Some(oldest) = self.segments.pop_front() {
                self.bytes -= oldest.memory_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FeedCursor;
    use super::*;

    fn segment(after: u64, upto: u64, frames: bool) -> Segment {
        let mut segment = Segment::begin(after, None);
        segment.upto = upto;
        if frames {
            segment.push_frame(FeedCursor { seq: upto, frame: 0 }, None, b"{}");
        }
        segment
    }

    fn held(ring: &SegmentRing, whole: u64) -> Option<Vec<(u64, u64)>> {
        match ring.held_after(whole, usize::MAX) {
            HeldSegments::Some(held) => Some(held.iter().map(|held| (held.after, held.upto)).collect()),
            HeldSegments::AtEnd => Some(Vec::new()),
            HeldSegments::Behind => None,
        }
    }

    #[test]
    fn a_reader_continues_at_the_beginning_of_a_segment_or_in_one_without_frames() {
        let mut ring = SegmentRing::default();
        assert!(!ring.continues_after(0), "nobody has encoded");
        for (after, upto, frames) in [(3, 5, true), (5, 8, true), (8, 10, false), (10, 12, true)] {
            ring.push(segment(after, upto, frames));
        }
        assert_eq!(held(&ring, 3), Some(vec![(3, 5), (5, 8), (8, 10), (10, 12)]));
        assert_eq!(held(&ring, 8), held(&ring, 9));
        assert_eq!(held(&ring, 12), Some(Vec::new()));
        for (whole, expected) in
            [(2, false), (3, true), (4, false), (9, true), (11, false), (12, true), (13, false)]
        {
            assert_eq!(ring.continues_after(whole), expected, "{whole}");
        }
    }

    #[test]
    fn records_without_frames_push_nothing_out() {
        let mut ring = SegmentRing::after_record(0);
        ring.push(segment(0, 1, true));
        for seq in 1..100_000 {
            ring.push(segment(seq, seq + 1, false));
        }
        assert_eq!(held(&ring, 0), Some(vec![(0, 1), (1, 100_000)]));
        assert_eq!(held(&ring, 50_000), Some(vec![(1, 100_000)]));
        ring.push(segment(100_000, 100_001, true));
        assert_eq!(ring.bytes, ring.segments.iter().map(|segment| segment.memory_bytes()).sum::<usize>());
    }

    #[test]
    fn an_empty_ring_knows_where_it_continues() {
        let ring = SegmentRing::after_record(7);
        assert!(matches!(ring.lookup(6), FeedLookup::Behind));
        assert!(matches!(ring.lookup(7), FeedLookup::AtEnd));
        assert!(ring.continues_after(7) && !ring.continues_after(6));
    }
}
