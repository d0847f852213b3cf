//! The reader of a feed: a cursor that moves through the frames of a run or thread.

use std::sync::Arc;

use runwire_log::{LogError, TailHead};
use runwire_model::dialect::Dialect;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::encoder::page_bytes;
use super::{Feed, FeedCursor, FeedEncoder, FeedLookup, Segment};
use crate::limits;
use crate::memory_budget::{MemoryShare, Wait};
use runwire_log::outage::is_outage;

/// The next item of a reader.
#[derive(Debug)]
pub(crate) enum Next {
    /// The frames `from..to` of a segment.
    Frames { segment: Arc<Segment>, from: usize, to: usize },
    /// The reader has reached the end of what is stored; returned once.
    CaughtUp,
    /// The run ended, the thread was deleted, or the limit of frames is reached.
    Ended,
}

/// Where a reader at the end of its feed stands, and how it continues: what remains of it in a socket loop.
pub(crate) struct FeedPosition {
    pub(crate) feed: Arc<Feed>,
    /// The last record that it has read.
    pub(crate) at: u64,
    pub(crate) options: ResumeOptions,
}

/// What a reader does when it reads on its own again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResumeOptions {
    compact: bool,
    read_until: ReadUntil,
}

/// Where a reader of a run stops, in a dialect with responses: its clients wait for the end of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadUntil {
    /// At the first frame that ends a response: one response for one request.
    FirstResponse,
    /// At a frame that ends a response with nothing stored after it, so that a reconnect continues from there.
    LatestResponse,
    /// At the end of the run.
    RunEnd,
}

/// Whether a reader has ended, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EndState {
    Open,
    /// It returns nothing more.
    ReaderEnded,
    /// It returned everything up to the end of the run.
    RunEnded,
}

/// What a reader does while the store is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnOutage {
    /// Returns the error.
    Fail,
    /// Retries until the store is back.
    Wait,
    /// Is waiting for its next retry.
    Waiting,
}

/// A page of the store that is being read and encoded, in a task: it goes on while its reader waits for its client, so
/// that what it has taken keeps nobody from reading.
struct LoadingPage(JoinHandle<Result<LoadedPage, LogError>>);

impl Drop for LoadingPage {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What is read for a reader.
struct PageRequest {
    at: FeedCursor,
    compact: bool,
    wait: Wait,
    share: GatheredShare,
}

/// A page that was read.
struct LoadedPage {
    encoder: Box<FeedEncoder>,
    /// None if there are no records yet.
    segment: Option<Segment>,
    gathered: Option<GatheredShare>,
}

/// A share of the memory budget for what is gathered of pages, and for the one that is being read.
struct GatheredShare {
    share: MemoryShare,
    /// The bytes that were gathered.
    bytes: usize,
    /// Whether pages are gathered; else each of them has a share of its own.
    gathers: bool,
}

impl GatheredShare {
    fn new(feed: &Feed, gathers: bool) -> Self {
        Self { share: feed.memory_share(), bytes: 0, gathers }
    }
}

/// Reads and encodes a page. Its share is given back when the last byte of the page is sent: a client that stalls holds no
/// more than this.
async fn load(
    feed: Arc<Feed>,
    encoder: Option<Box<FeedEncoder>>,
    page: PageRequest,
) -> Result<LoadedPage, LogError> {
    let PageRequest { at, compact, wait, share: GatheredShare { mut share, bytes, gathers } } = page;
    share.grow(bytes + limits::CATCH_UP_BYTES, wait).await?;
    let mut encoder = match encoder {
        Some(encoder) => encoder,
        None => Box::new(FeedEncoder::begin(feed.log().clone(), feed.key().clone(), at).await?),
    };
    let records = feed.record_outcome(encoder.read().await)?;
    share.grow(bytes + 2 * page_bytes(&records), wait).await?;
    let segment = feed.record_outcome(encoder.page(&records, at, compact).await)?;
    drop(records);
    // Frames may be larger than the records that they are made of, and the encoder keeps what it looked up.
    let held = bytes + segment.memory_bytes() + encoder.kept_bytes();
    share.grow(held, wait).await?;
    let segment = (segment.upto > segment.after).then_some(segment);
    if gathers {
        let gathered = Some(GatheredShare { share, bytes, gathers });
        return Ok(LoadedPage { encoder, segment, gathered });
    }
    share.shrink_to(held);
    Ok(LoadedPage { encoder, segment: segment.map(|segment| segment.holding(share)), gathered: None })
}

/// The frames that a reader without a limit may return.
const UNLIMITED: usize = usize::MAX;

/// Reads a feed from a cursor on.
pub(crate) struct FeedReader {
    feed: Arc<Feed>,
    heads: watch::Receiver<TailHead>,
    at: FeedCursor,
    /// Encodes records from the store while the reader is behind the feed.
    encoder: Option<Box<FeedEncoder>>,
    /// The page that is being read: a reader that is woken meanwhile keeps its place among those that wait for memory.
    loading: Option<LoadingPage>,
    /// The share of the one answer that its frames are gathered into, if they are.
    gathered: Option<GatheredShare>,
    /// The snapshot to return first, where the client attached.
    snapshot: Option<Arc<Segment>>,
    follow: bool,
    /// Whether the client must be sent the cursor that the reader started at.
    announces_start: bool,
    read_until: ReadUntil,
    compact: bool,
    frames_left: usize,
    /// Whether the last frame ends a response.
    at_response_end: bool,
    caught_up: bool,
    ended: EndState,
    on_outage: OnOutage,
}

impl FeedReader {
    /// Creates a reader that starts after a cursor.
    pub(crate) fn new(feed: Arc<Feed>, at: FeedCursor, follow: bool) -> Self {
        let heads = feed.tail().watch();
        Self {
            feed,
            heads,
            at,
            encoder: None,
            loading: None,
            gathered: None,
            snapshot: None,
            follow,
            announces_start: false,
            read_until: ReadUntil::LatestResponse,
            compact: false,
            frames_left: UNLIMITED,
            at_response_end: false,
            caught_up: false,
            ended: EndState::Open,
            on_outage: OnOutage::Fail,
        }
    }

    /// Sets whether the client is sent the start cursor: one that asked for `after=end` does not know it.
    pub(crate) fn announce_start(mut self, announces: bool) -> Self {
        self.announces_start = announces;
        self
    }

    /// Returns the reader's cursor, if its client must be sent it.
    pub(crate) fn start_to_announce(&self) -> Option<FeedCursor> {
        self.announces_start.then_some(self.at)
    }

    /// Sets whether neighbouring deltas are merged while the reader catches up.
    pub(crate) fn compact(mut self, compact: bool) -> Self {
        self.compact = compact;
        self
    }

    /// Reads to the end of the run, past the ends of responses.
    pub(crate) fn until_run_ends(mut self) -> Self {
        self.read_until = ReadUntil::RunEnd;
        self
    }

    /// Stops at the end of the first response, even if the run has continued since.
    pub(crate) fn until_first_response(mut self) -> Self {
        self.read_until = ReadUntil::FirstResponse;
        self
    }

    /// Limits the number of frames.
    pub(crate) fn limit(mut self, frames: Option<usize>) -> Self {
        self.frames_left = frames.unwrap_or(UNLIMITED);
        self
    }

    /// Waits out outages of the store: the head of the response is already sent.
    pub(crate) fn wait_out_outages(mut self) -> Self {
        self.on_outage = OnOutage::Wait;
        self
    }

    /// Starts with a snapshot and continues from where it was taken.
    pub(crate) fn attach(mut self, encoder: FeedEncoder, snapshot: Segment) -> Self {
        self.at = FeedCursor::after(snapshot.after);
        (self.encoder, self.snapshot) = (Some(Box::new(encoder)), Some(Arc::new(snapshot)));
        self
    }

    /// Continues from a position at which a reader had caught up.
    pub(crate) fn resume(FeedPosition { feed, at, options }: FeedPosition) -> Self {
        let ResumeOptions { compact, read_until } = options;
        let reader = Self::new(feed, FeedCursor::after(at), true);
        Self { compact, read_until, caught_up: true, ..reader }
    }

    /// Gathers what the reader returns into one answer, with one share of the memory budget for all of it.
    pub(crate) fn gather(mut self) -> Self {
        self.gathered = Some(GatheredShare::new(&self.feed, true));
        self
    }

    /// Waits until the share has room for so many gathered bytes.
    pub(crate) async fn hold(&mut self, bytes: usize) -> Result<(), LogError> {
        match &mut self.gathered {
            Some(gathered) if bytes > limits::FREE_BYTES => {
                gathered.bytes = bytes;
                gathered.share.grow_in_time(bytes).await
            }
            _ => Ok(()),
        }
    }

    /// Returns the share of what was gathered.
    pub(crate) fn into_share(self) -> Option<MemoryShare> {
        self.gathered.map(|gathered| gathered.share)
    }

    /// Returns the position of a reader that has caught up, and gets nothing but the frames of its feed from here on.
    pub(crate) fn caught_up_position(&self) -> Option<FeedPosition> {
        let is_plain = self.follow
            && self.caught_up
            && self.snapshot.is_none()
            && self.ended == EndState::Open
            && self.frames_left == UNLIMITED
            && self.read_until != ReadUntil::FirstResponse
            && !(self.at_response_end && self.stops_at_response_end());
        let at = self.at.whole_records();
        if !is_plain || self.at != FeedCursor::after(at) || !self.feed.continues_after(at) {
            return None;
        }
        let options = ResumeOptions { compact: self.compact, read_until: self.read_until };
        Some(FeedPosition { feed: self.feed.clone(), at, options })
    }

    /// Returns the cursor that the reader has reached.
    pub(crate) fn at(&self) -> FeedCursor {
        self.at
    }

    /// Returns the dialect of the frames; none for a raw read.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.feed.dialect()
    }

    /// Returns true if the run has ended and all of its frames were returned.
    pub(crate) fn is_run_over(&self) -> bool {
        self.ended == EndState::RunEnded
    }

    /// Marks the reader as ended; the end of the run outranks other ends.
    fn end(&mut self, ended: EndState) {
        self.ended = self.ended.max(ended);
    }

    /// Waits for the next item. Cancel-safe, and may be called again after an error; no frame is lost.
    pub(crate) async fn next(&mut self) -> Result<Next, LogError> {
        if let Some(snapshot) = self.snapshot.take() {
            self.ended = if snapshot.ends { EndState::RunEnded } else { EndState::Open };
            let to = snapshot.len();
            self.at_response_end = snapshot.ends_response(to);
            // A snapshot is sent whole, whatever the limit: half of it would be a different state.
            self.count_frames(to);
            self.end_response();
            if to > 0 {
                return Ok(Next::Frames { segment: snapshot, from: 0, to });
            }
        }
        loop {
            if self.ended != EndState::Open || self.frames_left == 0 {
                return Ok(Next::Ended);
            }
            if self.on_outage == OnOutage::Waiting {
                // Boxed because it is rare: inline it would add to the size of every idle reader.
                Box::pin(self.feed.wait_for_retry()).await;
                self.on_outage = OnOutage::Wait;
            }
            // Read before the records, so that no commit between the two goes unnoticed.
            let head = *self.heads.borrow_and_update();
            let whole = self.at.whole_records();
            let found = self.feed.after(whole).await;
            let found = match found {
                Ok(FeedLookup::Behind) => Box::pin(self.read_from_store()).await,
                found => {
                    // The feed continues where a page was being read.
                    self.loading = None;
                    found
                }
            };
            match found {
                Ok(FeedLookup::Segment(segment)) => {
                    if let Some(next) = self.advance(segment) {
                        return Ok(next);
                    }
                }
                Ok(FeedLookup::AtEnd | FeedLookup::Behind) => {
                    self.encoder = None;
                    if !self.follow || head.deleted || (self.at_response_end && self.stops_at_response_end())
                    {
                        self.end(EndState::ReaderEnded);
                        continue;
                    }
                    if !std::mem::replace(&mut self.caught_up, true) {
                        return Ok(Next::CaughtUp);
                    }
                    if self.heads.changed().await.is_err() {
                        self.end(EndState::ReaderEnded);
                    }
                }
                Err(LogError::ThreadDeleted(_)) => self.end(EndState::ReaderEnded),
                Err(error) if self.on_outage != OnOutage::Fail && is_outage(&error) => {
                    self.feed.record_failure(&error);
                    self.on_outage = OnOutage::Waiting;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads and encodes the next page from the store; at its end, offers the encoder to the feed.
    async fn read_from_store(&mut self) -> Result<FeedLookup, LogError> {
        let loading = match &mut self.loading {
            Some(loading) => loading,
            none => {
                let wait = match self.on_outage {
                    OnOutage::Fail => Wait::InTime,
                    OnOutage::Wait | OnOutage::Waiting => Wait::Unlimited,
                };
                let share = self.gathered.take().unwrap_or_else(|| GatheredShare::new(&self.feed, false));
                let page = PageRequest { at: self.at, compact: self.compact, wait, share };
                none.insert(LoadingPage(tokio::spawn(load(self.feed.clone(), self.encoder.take(), page))))
            }
        };
        let loaded = (&mut loading.0).await;
        self.loading = None;
        let loaded = loaded.map_err(|error| LogError::Unavailable(error.to_string()))?;
        let LoadedPage { encoder, segment, gathered } = loaded?;
        self.gathered = gathered;
        match segment {
            Some(segment) => {
                self.encoder = Some(encoder);
                Ok(FeedLookup::Segment(Arc::new(segment)))
            }
            None => {
                self.feed.adopt(encoder).await;
                Ok(FeedLookup::AtEnd)
            }
        }
    }

    /// Moves past a segment and returns the frames in it that are new.
    fn advance(&mut self, segment: Arc<Segment>) -> Option<Next> {
        let from = segment.frames_upto(self.at);
        let whole = if self.read_until == ReadUntil::FirstResponse {
            segment.first_response_end(from)
        } else {
            segment.len()
        };
        let to = whole.min(from.saturating_add(self.frames_left));
        self.count_frames(to - from);
        if to < segment.len() {
            if let Some(last) = segment.frames(0).nth(to - 1) {
                self.at = last.position;
            }
            // The encoder is positioned after the segment, the reader in the middle of it.
            self.encoder = None;
        } else {
            self.at = self.at.max(FeedCursor::after(segment.upto));
            if segment.ends {
                self.end(EndState::RunEnded);
            }
        }
        if to == from {
            return None;
        }
        self.at_response_end = segment.ends_response(to);
        self.end_response();
        Some(Next::Frames { segment, from, to })
    }

    /// Counts frames towards the limit, if there is one.
    fn count_frames(&mut self, frames: usize) {
        if self.frames_left != UNLIMITED {
            self.frames_left = self.frames_left.saturating_sub(frames);
        }
    }

    /// Ends a reader of one response at the end of that response.
    fn end_response(&mut self) {
        if self.at_response_end && self.read_until == ReadUntil::FirstResponse {
            self.end(EndState::ReaderEnded);
        }
    }

    /// Returns true if the reader stops at the end of a response.
    fn stops_at_response_end(&self) -> bool {
        self.read_until != ReadUntil::RunEnd && self.feed.has_responses()
    }
}
