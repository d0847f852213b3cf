//! Pages: a limited number of frames with their cursors, as JSON.

use crate::feed::{FeedCursor, FeedReader, Next};
use crate::limits;
use crate::problem::Problem;

/// One page of frames.
#[derive(Debug, Default)]
pub(crate) struct EncodedPage {
    /// Comma-separated `{cursor, frame}` objects.
    wrapped: Vec<u8>,
    /// The same frames, comma-separated, without cursors.
    pub(crate) frames: Vec<u8>,
    pub(crate) count: usize,
    /// Cursor of the next page; none at the end, except for a read from `after=end`.
    pub(crate) next: Option<FeedCursor>,
}

/// Collects frames up to a limit.
pub(crate) async fn page(reader: FeedReader, limit: usize) -> Result<EncodedPage, Problem> {
    let mut reader = reader.limit(Some(limit));
    let mut page = EncodedPage::default();
    let mut at = reader.at();
    loop {
        let (segment, from, to) = match reader.next().await? {
            Next::Frames { segment, from, to } => (segment, from, to),
            Next::CaughtUp => continue,
            Next::Ended => break,
        };
        for frame in segment.frames(from).take(to - from) {
            if page.count > 0 {
                page.wrapped.push(b',');
                page.frames.push(b',');
            }
            page.wrapped.extend_from_slice(&segment.with_cursor(frame));
            segment.write_json(frame, &mut page.frames);
            page.count += 1;
            at = frame.position;
            if page.wrapped.len() >= limits::PAGE_BYTES {
                page.next = Some(at);
                return Ok(page);
            }
        }
    }
    if page.count == 0 {
        page.next = reader.start_to_announce();
    }
    if page.count == limit {
        // The page is full: check whether anything follows.
        let mut reader = reader.limit(Some(1));
        page.next = super::next_unread(&mut reader).await?.map(|_| at);
    }
    Ok(page)
}

impl EncodedPage {
    /// Writes `{frames: [{cursor, frame}], next}`.
    pub(crate) fn into_body(self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.wrapped.len() + 64);
        body.extend_from_slice(br#"{"frames":["#);
        body.extend_from_slice(&self.wrapped);
        body.extend_from_slice(br#"],"next":"#);
        self.write_next(&mut body);
        body.push(b'}');
        body
    }

    /// Writes the next page's cursor, or `null`.
    pub(crate) fn write_next(&self, out: &mut Vec<u8>) {
        match self.next {
            Some(next) => out.extend_from_slice(format!("\"{next}\"").as_bytes()),
            None => out.extend_from_slice(b"null"),
        }
    }
}
