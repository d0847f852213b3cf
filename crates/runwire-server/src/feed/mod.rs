//! Fan-out: a record is encoded once per view, and the bytes are shared by all its readers.
//!
//! A reader is a cursor. While it is at the end it shares the view's feed: whoever comes first after a commit
//! encodes the new records, the others find the bytes. A reader that falls behind what the feed still holds
//! goes on from the store with a walk of its own, until it is at the end again. So a slow reader costs bounded
//! memory and slows nobody down.
//!
//! While the store is away, readers wait. Those of one feed ask it together: one of them tries again now and then,
//! and the others find what it has found.

mod cursor;
mod reader;
mod segment;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use runwire_log::{Log, LogError, Tail};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::sleep_until;

pub(crate) use cursor::{Cursor, NotACursor};
pub(crate) use reader::{Next, Reader};
pub(crate) use segment::{Segment, Shape};
pub(crate) use walk::{View, Walk};

use crate::limits;
use crate::outage::{Patience, is_outage};

/// The feeds of all views that are being read.
#[derive(Default)]
pub(crate) struct Feeds {
    feeds: Mutex<HashMap<View, Weak<Feed>>>,
}

impl Feeds {
    /// Finds the feed of a view, or begins one.
    pub(crate) fn of(&self, log: &Arc<dyn Log>, view: &View) -> Arc<Feed> {
        let mut feeds = lock(&self.feeds);
        if let Some(feed) = feeds.get(view).and_then(Weak::upgrade) {
            return feed;
        }
        if feeds.len() >= 64 && feeds.len() == feeds.capacity() {
            feeds.retain(|_, feed| feed.strong_count() > 0);
        }
        let feed = Arc::new(Feed {
            log: log.clone(),
            view: view.clone(),
            tail: log.tail(&view.thread),
            walk: AsyncMutex::new(Own::None),
            ring: Mutex::default(),
            patience: Mutex::default(),
        });
        feeds.insert(view.clone(), Arc::downgrade(&feed));
        feed
    }
}

/// The newest frames of a view, and the encoder that makes the next ones.
pub(crate) struct Feed {
    log: Arc<dyn Log>,
    view: View,
    tail: Arc<Tail>,
    walk: AsyncMutex<Own>,
    ring: Mutex<Ring>,
    /// When the store is asked again, while it is away.
    patience: Mutex<Patience>,
}

/// The encoder of a feed.
enum Own {
    /// No reader has come to the end yet.
    None,
    /// It goes on from here.
    Walk(Box<Walk>),
    /// The store went away while it looked something up; what it has told up to this record stands.
    Spoilt(u64),
}

#[derive(Default)]
struct Ring {
    segments: VecDeque<Arc<Segment>>,
    bytes: usize,
}

/// What a feed has for a reader.
pub(crate) enum Found {
    /// Frames, some of which may lie before the reader's place.
    Segment(Arc<Segment>),
    /// Nothing yet.
    Nothing,
    /// The feed has lost what the reader needs, or never had it.
    Behind,
}

impl Ring {
    fn after(&self, whole: u64) -> Found {
        match (self.segments.front(), self.segments.back()) {
            (Some(first), Some(last)) if first.after <= whole && whole < last.upto => {
                let at = self.segments.partition_point(|segment| segment.upto <= whole);
                Found::Segment(self.segments[at].clone())
            }
            (Some(_), Some(last)) if whole >= last.upto => Found::Nothing,
            (None, None) => Found::Nothing,
            _ => Found::Behind,
        }
    }

    fn push(&mut self, segment: Arc<Segment>) {
        self.bytes += segment.weight();
        self.segments.push_back(segment);
        while self.bytes > limits::FEED_BYTES && self.segments.len() > 1 {
            if let Some(oldest) = self.segments.pop_front() {
                self.bytes -= oldest.weight();
            }
        }
    }
}

impl Feed {
    /// Finds what follows the records up to `whole`; encodes it, if nobody has yet.
    pub(crate) async fn after(&self, whole: u64) -> Result<Found, LogError> {
        match lock(&self.ring).after(whole) {
            Found::Nothing => {}
            found => return Ok(found),
        }
        let mut own = self.walk.lock().await;
        if let Own::Spoilt(upto) = *own {
            // Rare, and every reader would be as large as this.
            *own = Box::pin(self.begin_again(upto)).await?;
        }
        let Own::Walk(walk) = &mut *own else { return Ok(Found::Behind) };
        loop {
            match lock(&self.ring).after(whole) {
                Found::Nothing if walk.told() > whole => return Ok(Found::Behind),
                Found::Nothing => {}
                found => return Ok(found),
            }
            let records = match self.tail.after(walk.next - 1) {
                Some(records) => records,
                // Nobody was at the end for long. Whoever comes there finds a nearer way than through all of it.
                None if walk.told() < whole => return Ok(Found::Behind),
                None => {
                    self.check_due()?;
                    self.noted(self.log.read(&self.view.thread, walk.next - 1).await)?.records
                }
            };
            if records.is_empty() {
                return Ok(Found::Nothing);
            }
            match walk.encode(&records).await {
                Ok(segment) if segment.upto > segment.after => lock(&self.ring).push(Arc::new(segment)),
                Ok(_) => {}
                // The encoder did not get to see what it asked for: nobody may go on from it.
                Err(error) if is_outage(&error) => {
                    // They follow what was told.
                    let before = records.first().map_or(0, |first| first.record.seq - 1);
                    *own = Own::Spoilt(walk.silent().max(before));
                    self.failed(&error);
                    return Err(error);
                }
                Err(error) => {
                    *own = Own::None;
                    *lock(&self.ring) = Ring::default();
                    return Err(error);
                }
            }
        }
    }

    /// Begins another walk after the records that one has told.
    async fn begin_again(&self, upto: u64) -> Result<Own, LogError> {
        self.check_due()?;
        let walk = Walk::again(self.log.clone(), self.view.clone(), upto).await;
        Ok(Own::Walk(Box::new(self.noted(walk)?)))
    }

    /// Takes over the walk of a reader that has come to the end, if the feed has none, or one that is behind.
    pub(crate) async fn adopt(&self, walk: Box<Walk>) {
        let mut own = self.walk.lock().await;
        let is_lost = match &*own {
            Own::None => true,
            // One that the tail can still lead on is left alone: those who wait for it would all fall behind.
            Own::Walk(own) => own.next < walk.next && self.tail.after(own.next - 1).is_none(),
            Own::Spoilt(upto) => *upto < walk.next,
        };
        if is_lost {
            // Segments follow each other, and the next one will follow this walk.
            *lock(&self.ring) = Ring::default();
            *own = Own::Walk(walk);
        }
    }

    /// Refuses to ask the store again before it is time to.
    fn check_due(&self) -> Result<(), LogError> {
        match lock(&self.patience).due() {
            None => Ok(()),
            Some(_) => Err(LogError::Unavailable("it did not answer a moment ago".into())),
        }
    }

    /// Notes whether the store has answered.
    pub(crate) fn noted<T>(&self, answer: Result<T, LogError>) -> Result<T, LogError> {
        match &answer {
            Err(error) if is_outage(error) => self.failed(error),
            _ => lock(&self.patience).worked(),
        }
        answer
    }

    /// Notes that the store is away.
    pub(crate) fn failed(&self, error: &LogError) {
        lock(&self.patience).failed(error);
    }

    /// Waits until it is time to ask the store again.
    pub(crate) async fn until_due(&self) {
        let due = lock(&self.patience).due();
        if let Some(due) = due {
            sleep_until(due).await;
        }
    }

    pub(crate) fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn log(&self) -> &Arc<dyn Log> {
        &self.log
    }
}

/// A panic while a ring was held leaves at worst a feed that its readers find behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
