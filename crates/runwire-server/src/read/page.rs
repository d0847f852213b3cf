//! A page: frames and their cursors, as JSON.

use crate::feed::{FeedCursor, FeedReader, Next};
use crate::limits;
use crate::problem::Problem;

/// Frames of a view.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// `{cursor, frame}` each, with commas between them.
    wrapped: Vec<u8>,
    /// The frames alone, with commas between them.
    pub(crate) frames: Vec<u8>,
    pub(crate) count: usize,
    /// Where the next page begins; none at the end, unless the end was asked for.
    pub(crate) next: Option<FeedCursor>,
}

/// Gathers frames until there are enough, or no more.
pub(crate) async fn page(reader: FeedReader, limit: usize) -> Result<Page, Problem> {
    let mut reader = reader.limit(Some(limit));
    let mut page = Page::default();
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
        // The page is full: does anything follow?
        let mut reader = reader.limit(Some(1));
        page.next = super::is_over(&mut reader).await?.map(|_| at);
    }
    Ok(page)
}

impl Page {
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
