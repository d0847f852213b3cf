//! Pages: a limited number of frames with their cursors, as JSON.

use std::sync::Arc;

use axum::response::Response;

use super::json;
use crate::feed::{FeedCursor, FeedReader, Next};
use crate::limits;
use crate::memory_budget::{self, MemoryShare};
use crate::problem::Problem;

/// How often the bytes of a page are held while it is made: with cursors, without, and as the body.
const COPIES: usize = 3;

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
    /// Its share of the memory budget.
    share: Option<MemoryShare>,
}

/// Collects frames up to a limit.
pub(crate) async fn page(reader: FeedReader, limit: usize) -> Result<EncodedPage, Problem> {
    let mut reader = reader.limit(Some(limit)).gather();
    let mut page = EncodedPage::default();
    let mut at = reader.at();
    loop {
        let (segment, from, to) = match reader.next().await? {
            Next::Frames { segment, from, to } => (segment, from, to),
            Next::CaughtUp => continue,
            Next::Ended => break,
        };
        for frame in segment.frames(from).take(to - from) {
            reader.hold(COPIES * (page.wrapped.len() + frame.data.len())).await?;
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
                page.share = reader.into_share();
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
        page.share = reader.into_share();
    } else {
        page.share = reader.into_share();
    }
    Ok(page)
}

impl EncodedPage {
    /// Writes `{frames: [{cursor, frame}], next}`.
    pub(crate) fn body(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.wrapped.len() + 64);
        body.extend_from_slice(br#"{"frames":["#);
        body.extend_from_slice(&self.wrapped);
        body.extend_from_slice(br#"],"next":"#);
        self.write_next(&mut body);
        body.push(b'}');
        body
    }

    /// Responds with JSON that was made of the page, which keeps its share until it is sent.
    pub(crate) fn respond(self, body: Vec<u8>) -> Response {
        let Some(mut share) = self.share else { return json(body) };
        drop((self.wrapped, self.frames));
        share.shrink_to(body.len());
        json(memory_budget::hold(body, Arc::new(share)))
    }

    /// Writes the next page's cursor, or `null`.
    pub(crate) fn write_next(&self, out: &mut Vec<u8>) {
        match self.next {
            Some(next) => out.extend_from_slice(format!("\"{next}\"").as_bytes()),
            None => out.extend_from_slice(b"null"),
        }
    }
}
