//! Fan-out: a record is encoded once per feed, and its readers share the bytes.
//!
//! A feed is a ring buffer of encoded segments for one run or thread in one dialect ([`FeedKey`]). A reader is a
//! cursor. At the end of the stream it shares the feed: the first reader to wake after a commit encodes the new
//! records, the others find the bytes. A reader that falls behind the ring buffer reads the store with an encoder
//! of its own until it has caught up. So a slow reader costs bounded memory and slows nobody down.
//!
//! While the store is unavailable, readers wait. The readers of one feed share one backoff: one of them retries, and
//! the others find its result.

mod cursor;
mod encoder;
mod follower;
mod reader;
mod ring;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use runwire_log::{Log, LogError, LogEvents, Tail};
use runwire_model::dialect::Dialect;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::sleep_until;

pub(crate) use cursor::{FeedCursor, InvalidCursor};
pub(crate) use encoder::{FeedEncoder, FeedKey};
pub(crate) use follower::{FeedListener, SubscriptionId};
pub(crate) use reader::{FeedPosition, FeedReader, Next, ResumeOptions};
pub(crate) use ring::{FeedLookup, HeldSegments};
pub(crate) use segment::{Segment, SegmentFrame, StreamFormat, http_chunk};

use crate::memory_budget::{MemoryBudget, MemoryShare};
use follower::Followers;
use ring::SegmentRing;
use runwire_log::outage::{OutageBackoff, is_outage};

/// All feeds that have a reader.
pub(crate) struct Feeds {
    shared: Arc<SharedFeeds>,
}

/// What all feeds share.
struct SharedFeeds {
    feeds: Mutex<HashMap<FeedKey, Weak<Feed>>>,
    memory: MemoryBudget,
    /// The bytes of all rings.
    ring_bytes: AtomicUsize,
    /// Counts the segments of all feeds.
    segments: AtomicU64,
    /// Held by whoever empties rings.
    eviction: Mutex<()>,
}

impl SharedFeeds {
    /// Empties the rings that have rested longest, if all of them hold more than their part of the budget. Their readers
    /// continue from where they are; those that are behind read the store.
    fn evict(&self) {
        if self.ring_bytes.load(Ordering::Relaxed) <= self.memory.ring_bytes() {
            return;
        }
        let Ok(_evicting) = self.eviction.try_lock() else { return };
        let mut feeds: Vec<Arc<Feed>> = lock(&self.feeds).values().filter_map(Weak::upgrade).collect();
        feeds.sort_unstable_by_key(|feed| feed.last_segment.load(Ordering::Relaxed));
        for feed in feeds {
            if self.ring_bytes.load(Ordering::Relaxed) <= self.memory.ring_bytes() / 4 * 3 {
                return;
            }
            feed.change_ring(SegmentRing::clear);
        }
    }
}

impl Feeds {
    /// Makes feeds that take the memory for their rings, and for readers that catch up, from a budget.
    pub(crate) fn new(memory: MemoryBudget) -> Self {
        let shared = SharedFeeds {
            feeds: Mutex::default(),
            memory,
            ring_bytes: AtomicUsize::new(0),
            segments: AtomicU64::new(0),
            eviction: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the feed of a key; creates it if there is none.
    pub(crate) fn of(&self, log: &Arc<dyn Log>, key: &FeedKey) -> Arc<Feed> {
        let mut feeds = lock(&self.shared.feeds);
        if let Some(feed) = feeds.get(key).and_then(Weak::upgrade) {
            return feed;
        }
        if feeds.len() >= 64 && feeds.len() == feeds.capacity() {
            feeds.retain(|_, feed| feed.strong_count() > 0);
        }
        let feed = Arc::new(Feed {
            log: log.clone(),
            key: key.clone(),
            tail: log.tail(&key.thread),
            encoder: AsyncMutex::new(EncoderState::Missing),
            ring: Mutex::default(),
            backoff: Mutex::default(),
            followers: Followers::default(),
            last_segment: AtomicU64::new(0),
            shared: self.shared.clone(),
        });
        feeds.insert(key.clone(), Arc::downgrade(&feed));
        feed
    }
}

/// The newest frames of a feed, and the encoder that makes the next ones.
pub(crate) struct Feed {
    log: Arc<dyn LogEvents>,
    key: FeedKey,
    tail: Arc<Tail>,
    encoder: AsyncMutex<EncoderState>,
    ring: Mutex<SegmentRing>,
    /// Backoff of all readers while the store is unavailable.
    backoff: Mutex<OutageBackoff>,
    /// The socket loops that serve the feed.
    followers: Followers,
    /// The number of its newest segment among those of all feeds.
    last_segment: AtomicU64,
    shared: Arc<SharedFeeds>,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.change_ring(SegmentRing::clear);
    }
}

/// The encoder of a feed.
enum EncoderState {
    /// No reader has come to the end yet.
    Missing,
    /// Encodes the next records.
    Ready(Box<FeedEncoder>),
    /// A lookup failed in an outage; everything up to this record was emitted.
    Failed(u64),
}

impl Feed {
    /// Returns the frames after the records up to `whole`; encodes them if no other reader has.
    pub(crate) async fn after(&self, whole: u64) -> Result<FeedLookup, LogError> {
        match lock(&self.ring).lookup(whole) {
            FeedLookup::AtEnd => {}
            found => return Ok(found),
        }
        let mut current = self.encoder.lock().await;
        if let EncoderState::Failed(upto) = *current {
            // Boxed because it is rare: inline it would add to the size of every idle reader.
            *current = Box::pin(self.restart_encoder(upto)).await?;
        }
        let EncoderState::Ready(encoder) = &mut *current else { return Ok(FeedLookup::Behind) };
        loop {
            match lock(&self.ring).lookup(whole) {
                FeedLookup::AtEnd if encoder.last_emitted() > whole => return Ok(FeedLookup::Behind),
                FeedLookup::AtEnd => {}
                found => return Ok(found),
            }
            let records = match self.tail.after(encoder.next - 1) {
                Some(records) => records,
                // No reader was at the end for long. A reader that gets there starts from a nearer checkpoint.
                None if encoder.last_emitted() < whole => return Ok(FeedLookup::Behind),
                None => {
                    self.check_retry_due()?;
                    self.record_outcome(self.log.read(&self.key.thread, encoder.next - 1).await)?.records
                }
            };
            if records.is_empty() {
                return Ok(FeedLookup::AtEnd);
            }
            match encoder.encode(&records).await {
                Ok(segment) if segment.upto > segment.after => {
                    self.push(segment);
                    let number = self.shared.segments.fetch_add(1, Ordering::Relaxed);
                    self.last_segment.store(number, Ordering::Relaxed);
                    self.shared.evict();
                }
                Ok(_) => {}
                // The encoder's lookup failed, so its state is incomplete and must not be used again.
                Err(error) if is_outage(&error) => {
                    // The records follow what was emitted.
                    let before = records.first().map_or(0, |first| first.record.seq - 1);
                    *current = EncoderState::Failed(encoder.emit_after().max(before));
                    self.record_failure(&error);
                    return Err(error);
                }
                Err(error) => {
                    *current = EncoderState::Missing;
                    self.replace_ring(SegmentRing::default());
                    return Err(error);
                }
            }
        }
    }

    /// Adds a segment, and wakes the loops if it has something for their readers.
    fn push(&self, segment: Segment) {
        let has_frames = segment.len() > 0;
        if has_frames && self.has_followers() {
            // Framed here, so that no loop has to.
            drop(segment.sse_chunk());
        }
        self.change_ring(|ring| ring.push(segment));
        // Asked after the push: a loop that subscribes looks at the ring afterwards.
        if has_frames {
            self.notify_followers();
        }
    }

    /// Replaces the ring. Readers in loops find that it has not what they need, and look for it in the store.
    fn replace_ring(&self, ring: SegmentRing) {
        self.change_ring(|old| *old = ring);
        self.notify_followers();
    }

    /// Changes the ring, and counts what it holds.
    fn change_ring(&self, change: impl FnOnce(&mut SegmentRing)) {
        let mut ring = lock(&self.ring);
        let before = ring.bytes();
        change(&mut ring);
        let held = &self.shared.ring_bytes;
        match ring.bytes().checked_sub(before) {
            Some(more) => held.fetch_add(more, Ordering::Relaxed),
            None => held.fetch_sub(before - ring.bytes(), Ordering::Relaxed),
        };
    }

    /// Returns up to `limit` segments that follow a record, without encoding any.
    pub(crate) fn held_after(&self, whole: u64, limit: usize) -> HeldSegments {
        lock(&self.ring).held_after(whole, limit)
    }

    /// Returns the last record that was encoded.
    pub(crate) fn last_encoded(&self) -> Option<u64> {
        lock(&self.ring).end()
    }

    /// Returns true if a reader that has read a record needs no store to continue.
    fn continues_after(&self, whole: u64) -> bool {
        lock(&self.ring).continues_after(whole)
    }

    /// Creates a new encoder that continues after the records that were emitted.
    async fn restart_encoder(&self, upto: u64) -> Result<EncoderState, LogError> {
        self.check_retry_due()?;
        let encoder = FeedEncoder::resume_after(self.log.clone(), self.key.clone(), upto).await;
        Ok(EncoderState::Ready(Box::new(self.record_outcome(encoder)?)))
    }

    /// Takes over the encoder of a reader that has caught up, if the feed has none or one that is further behind.
    pub(crate) async fn adopt(&self, encoder: Box<FeedEncoder>) {
        let mut current = self.encoder.lock().await;
        let is_replaced = match &*current {
            EncoderState::Missing => true,
            // An encoder that can continue from the tail is kept: otherwise its readers would all fall behind.
            EncoderState::Ready(current) => {
                current.next < encoder.next && self.tail.after(current.next - 1).is_none()
            }
            EncoderState::Failed(upto) => *upto < encoder.next,
        };
        if is_replaced {
            // Segments in the ring are contiguous, and the next one will follow this encoder.
            self.replace_ring(SegmentRing::after_record(encoder.last_emitted()));
            *current = EncoderState::Ready(encoder);
        }
    }

    /// Fails while the backoff lasts.
    fn check_retry_due(&self) -> Result<(), LogError> {
        match lock(&self.backoff).due() {
            None => Ok(()),
            Some(_) => Err(LogError::Unavailable("it did not answer a moment ago".into())),
        }
    }

    /// Updates the backoff with the outcome of a read.
    pub(crate) fn record_outcome<T>(&self, answer: Result<T, LogError>) -> Result<T, LogError> {
        match &answer {
            Err(error) if is_outage(error) => self.record_failure(error),
            _ => lock(&self.backoff).reset(),
        }
        answer
    }

    /// Extends the backoff after an outage.
    pub(crate) fn record_failure(&self, error: &LogError) {
        lock(&self.backoff).record_failure(error);
    }

    /// Waits until the backoff is over.
    pub(crate) async fn wait_for_retry(&self) {
        let due = lock(&self.backoff).due();
        if let Some(due) = due {
            sleep_until(due).await;
        }
    }

    /// Makes an empty share of the memory budget for what a reader is sent.
    pub(crate) fn memory_share(&self) -> MemoryShare {
        self.shared.memory.answer()
    }

    pub(crate) fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }

    /// Returns the dialect of the frames; none for a raw read.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.key.form.map(|form| form.dialect)
    }

    /// Returns true if its readers may stop at the end of a response.
    pub(crate) fn has_responses(&self) -> bool {
        self.key.run.is_some() && self.dialect().is_some_and(Dialect::has_responses)
    }

    pub(crate) fn key(&self) -> &FeedKey {
        &self.key
    }

    pub(crate) fn log(&self) -> &Arc<dyn LogEvents> {
        &self.log
    }
}

/// Ignores poisoning: a panic while a ring was locked leaves at worst a feed that sends its readers to the store.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
