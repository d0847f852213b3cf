//! A reader: a cursor that moves through a view.

use std::sync::Arc;

use runwire_log::{LogError, TailHead};
use runwire_model::dialect::Dialect;
use tokio::sync::watch;

use super::{Cursor, Feed, Found, Segment, Walk};
use crate::outage::is_outage;

/// What a reader gets next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Frames of a segment, from one to another.
    Frames { segment: Arc<Segment>, from: usize, to: usize },
    /// Nothing more for now; told once.
    CaughtUp,
    /// Nothing more ever: the run ended, the thread is gone, or as many frames as were asked for have come.
    Ended,
}

/// How far a reader of an AG-UI run reads: the official client waits for the end of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// To the first frame that ends a response: one answer to one request.
    Response,
    /// To such a frame with nothing after it: whoever comes back goes on from there.
    Present,
    /// To the run's end.
    Run,
}

/// Whether a reader has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ended {
    No,
    /// It hands out nothing more.
    Reader,
    /// It ended with the run itself.
    Run,
}

/// What becomes of an outage of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outage {
    /// Whoever reads is told.
    Told,
    /// Nobody is told: the reader waits.
    WaitedOut,
    /// It waits just now.
    On,
}

/// Moves through a view, from a cursor on.
pub(crate) struct Reader {
    feed: Arc<Feed>,
    heads: watch::Receiver<TailHead>,
    at: Cursor,
    /// The way through the store, while the reader is behind.
    walk: Option<Box<Walk>>,
    /// What was found out before the reader began.
    first: Option<Arc<Segment>>,
    follow: bool,
    /// Whether its client does not know where it began.
    tells_start: bool,
    /// How far it reads where AG-UI ends a response.
    reach: Reach,
    compact: bool,
    left: usize,
    /// Whether the last frame ends an AG-UI response.
    finished: bool,
    caught_up: bool,
    ended: Ended,
    outage: Outage,
}

impl Reader {
    /// Makes a reader that begins after a cursor.
    pub(crate) fn new(feed: Arc<Feed>, at: Cursor, follow: bool) -> Self {
        let heads = feed.tail().watch();
        Self {
            feed,
            heads,
            at,
            walk: None,
            first: None,
            follow,
            tells_start: false,
            reach: Reach::Present,
            compact: false,
            left: usize::MAX,
            finished: false,
            caught_up: false,
            ended: Ended::No,
            outage: Outage::Told,
        }
    }

    /// Has the client told where the reader begins: one that asked for the end does not know.
    pub(crate) fn tell_start(mut self, tells: bool) -> Self {
        self.tells_start = tells;
        self
    }

    /// Tells the place that the reader has come to, if its client must be told.
    pub(crate) fn start_to_tell(&self) -> Option<Cursor> {
        self.tells_start.then_some(self.at)
    }

    /// Merges neighbouring deltas while it catches up.
    pub(crate) fn compact(mut self, compact: bool) -> Self {
        self.compact = compact;
        self
    }

    /// Goes on until the run ends, also where the dialect's response would end before.
    pub(crate) fn outlive_responses(mut self) -> Self {
        self.reach = Reach::Run;
        self
    }

    /// Ends with the first response of the dialect, also where the run has gone on since.
    pub(crate) fn one_response(mut self) -> Self {
        self.reach = Reach::Response;
        self
    }

    /// Ends after so many frames.
    pub(crate) fn limit(mut self, frames: Option<usize>) -> Self {
        self.left = frames.unwrap_or(usize::MAX);
        self
    }

    /// Waits for a store that is away: whoever reads has the head of its answer already.
    pub(crate) fn patient(mut self) -> Self {
        self.outage = Outage::WaitedOut;
        self
    }

    /// Begins with the present, and goes on from where it was taken.
    pub(crate) fn attach(mut self, walk: Walk, present: Segment) -> Self {
        self.at = Cursor::after(present.after);
        (self.walk, self.first) = (Some(Box::new(walk)), Some(Arc::new(present)));
        self
    }

    /// Tells the place that the reader has come to.
    pub(crate) fn at(&self) -> Cursor {
        self.at
    }

    /// Tells the dialect of the frames; there is none where they are handed out as they were stored.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.feed.view().form.map(|form| form.dialect)
    }

    /// Tells whether the run has ended and everything of it was handed out.
    pub(crate) fn is_run_over(&self) -> bool {
        self.ended == Ended::Run
    }

    /// Notes that the reader has come to its end.
    fn end(&mut self, ended: Ended) {
        self.ended = self.ended.max(ended);
    }

    /// Waits for what comes next. May be dropped and asked again, also after a failure; nothing is lost.
    pub(crate) async fn next(&mut self) -> Result<Next, LogError> {
        if let Some(present) = self.first.take() {
            self.ended = if present.ends { Ended::Run } else { Ended::No };
            let to = present.len();
            self.finished = present.finishes(to);
            // The present is told whole: half of it would be another one.
            self.left = self.left.saturating_sub(to);
            self.end_response();
            if to > 0 {
                return Ok(Next::Frames { segment: present, from: 0, to });
            }
        }
        loop {
            if self.ended != Ended::No || self.left == 0 {
                return Ok(Next::Ended);
            }
            if self.outage == Outage::On {
                // Rare, and every reader would be as large as this.
                Box::pin(self.feed.until_due()).await;
                self.outage = Outage::WaitedOut;
            }
            // Looked at before the records, so that no commit between the two goes unnoticed.
            let head = *self.heads.borrow_and_update();
            let whole = self.at.whole_records();
            let found = self.feed.after(whole).await;
            let found = match found {
                Ok(Found::Behind) => Box::pin(self.walk_on()).await,
                found => found,
            };
            match found {
                Ok(Found::Segment(segment)) => {
                    if let Some(next) = self.take(segment) {
                        return Ok(next);
                    }
                }
                Ok(Found::Nothing | Found::Behind) => {
                    self.walk = None;
                    if !self.follow || head.deleted || (self.finished && self.ends_when_finished()) {
                        self.end(Ended::Reader);
                        continue;
                    }
                    if !std::mem::replace(&mut self.caught_up, true) {
                        return Ok(Next::CaughtUp);
                    }
                    if self.heads.changed().await.is_err() {
                        self.end(Ended::Reader);
                    }
                }
                Err(LogError::ThreadDeleted(_)) => self.end(Ended::Reader),
                Err(error) if self.outage != Outage::Told && is_outage(&error) => {
                    self.feed.failed(&error);
                    self.outage = Outage::On;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on through the store; at its end, the feed may have the way that led there.
    async fn walk_on(&mut self) -> Result<Found, LogError> {
        let walk = match &mut self.walk {
            Some(walk) => walk,
            none => {
                let (log, view) = (self.feed.log().clone(), self.feed.view().clone());
                none.insert(Box::new(Walk::begin(log, view, self.at).await?))
            }
        };
        let page = walk.page(self.at, self.compact).await;
        let segment = match self.feed.noted(page) {
            Ok(segment) => segment,
            Err(error) => {
                self.walk = None;
                return Err(error);
            }
        };
        if segment.upto > segment.after {
            return Ok(Found::Segment(Arc::new(segment)));
        }
        if let Some(walk) = self.walk.take() {
            self.feed.adopt(walk).await;
        }
        Ok(Found::Nothing)
    }

    /// Moves past a segment, and hands out what is new in it.
    fn take(&mut self, segment: Arc<Segment>) -> Option<Next> {
        let from = segment.skip(self.at);
        let whole = if self.reach == Reach::Response { segment.upto_end(from) } else { segment.len() };
        let to = whole.min(from.saturating_add(self.left));
        self.left -= to - from;
        if to < segment.len() {
            if let Some(last) = segment.frames(0).nth(to - 1) {
                self.at = last.place;
            }
            // The walk stands after the segment, and the reader in the middle of it.
            self.walk = None;
        } else {
            self.at = self.at.max(Cursor::after(segment.upto));
            if segment.ends {
                self.end(Ended::Run);
            }
        }
        if to == from {
            return None;
        }
        self.finished = segment.finishes(to);
        self.end_response();
        Some(Next::Frames { segment, from, to })
    }

    /// Ends the reader of one response where that has ended.
    fn end_response(&mut self) {
        if self.finished && self.reach == Reach::Response {
            self.end(Ended::Reader);
        }
    }

    /// Tells whether the response ends at `RUN_FINISHED` and `RUN_ERROR`.
    fn ends_when_finished(&self) -> bool {
        let view = self.feed.view();
        self.reach != Reach::Run && view.run.is_some() && self.dialect() == Some(Dialect::AgUi)
    }
}
