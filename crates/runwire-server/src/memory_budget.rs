//! The memory budget: one limit for the bytes that are buffered for clients, whatever their number.
//!
//! A share is taken before bytes are read or made, waited for in order, and given back when they are sent. Answers and
//! requests have a half each, so that readers who take nothing keep nobody from writing. An eighth of all is for the
//! newest frames of runs and threads that are read (`feed/ring.rs`), which need no share.
//!
//! A share may grow while it is held, so shares could wait for each other. Therefore a part of each half is kept for one
//! share at a time: of those that wait to grow, the one that has waited longest may go beyond what is free, so that
//! somebody always finishes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use runwire_log::LogError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits;

/// Bytes of one permit of the semaphores.
const UNIT: usize = 4 << 10;
/// The part of the budget for the rings of feeds: one of so many.
const RING_PART: u64 = 8;
/// The part of a half that is kept for the share that may go beyond what is free: one of so many.
const RESERVED_PART: u32 = 4;

/// The memory that may be taken.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget {
    answers: Half,
    requests: Half,
    ring_bytes: usize,
}

#[derive(Debug, Clone)]
struct Half {
    permits: Arc<Semaphore>,
    /// Its one permit belongs to the share that may go beyond what is free.
    reserve: Arc<Semaphore>,
    units: u32,
}

impl Half {
    fn new(units: u32) -> Self {
        let units = (units - units / RESERVED_PART).max(1);
        Self {
            permits: Arc::new(Semaphore::new(units as usize)),
            reserve: Arc::new(Semaphore::new(1)),
            units,
        }
    }

    fn share(&self) -> MemoryShare {
        MemoryShare { half: self.clone(), permit: None, reserve: None, units: 0 }
    }
}

impl MemoryBudget {
    pub(crate) fn new(bytes: u64) -> Self {
        let rings = bytes / RING_PART;
        let units = (bytes - rings) / 2 / UNIT as u64;
        let units = u32::try_from(units).unwrap_or(u32::MAX / 8).clamp(1, u32::MAX / 8);
        let ring_bytes = usize::try_from(rings).unwrap_or(usize::MAX);
        Self { answers: Half::new(units), requests: Half::new(units), ring_bytes }
    }

    /// Makes an empty share for bytes that are sent to a client.
    pub(crate) fn answer(&self) -> MemoryShare {
        self.answers.share()
    }

    /// Makes an empty share for bytes that a client sends.
    pub(crate) fn request(&self) -> MemoryShare {
        self.requests.share()
    }

    /// Returns the bytes that the rings of all feeds may hold together.
    pub(crate) fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    /// Returns the bytes that are taken, without those of the reserve.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> u64 {
        let taken = |half: &Half| u64::from(half.units) - half.permits.available_permits() as u64;
        (taken(&self.answers) + taken(&self.requests)) * UNIT as u64
    }
}

/// How long a share waits to grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// For [`limits::BUDGET_TIME`]: its client can be told.
    InTime,
    /// As long as it takes: the head of the response is sent.
    Unlimited,
}

/// A share of the budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    half: Half,
    permit: Option<OwnedSemaphorePermit>,
    /// The right to go beyond what is free.
    reserve: Option<OwnedSemaphorePermit>,
    /// What it has, of the reserve too.
    units: u32,
}

impl MemoryShare {
    /// Waits in order until the share has so many bytes, or all that there are.
    pub(crate) async fn grow_to(&mut self, bytes: usize) {
        let wanted = self.units_of(bytes);
        if wanted <= self.units {
            return;
        }
        self.take_free(wanted);
        let missing = wanted - self.taken();
        if missing > 0 && self.reserve.is_none() {
            let half = self.half.clone();
            // The semaphores are never closed.
            tokio::select! {
                biased;
                Ok(more) = half.permits.acquire_many_owned(missing) => self.add(more),
                // One that holds nothing keeps nobody from finishing.
                Ok(reserve) = half.reserve.acquire_owned(), if self.units > 0 => self.reserve = Some(reserve),
                else => {}
            }
        }
        self.units = wanted;
    }

    /// Waits as it is told.
    pub(crate) async fn grow(&mut self, bytes: usize, wait: Wait) -> Result<(), LogError> {
        match wait {
            Wait::InTime => self.grow_in_time(bytes).await,
            Wait::Unlimited => {
                self.grow_to(bytes).await;
                Ok(())
            }
        }
    }

    /// Waits for a limited time, and fails like a store that is not available, so that clients try again.
    pub(crate) async fn grow_in_time(&mut self, bytes: usize) -> Result<(), LogError> {
        self.grow_within(bytes, limits::BUDGET_TIME).await
    }

    async fn grow_within(&mut self, bytes: usize, time: Duration) -> Result<(), LogError> {
        let grown = tokio::time::timeout(time, self.grow_to(bytes)).await;
        grown.map_err(|_| LogError::Unavailable("the memory for requests and answers is in use".into()))
    }

    /// Returns what is more than so many bytes to the budget.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.units = self.units_of(bytes).min(self.units);
        let spare = self.taken().saturating_sub(self.units);
        if let Some(permit) = &mut self.permit {
            drop(permit.split(spare as usize));
        }
        self.take_free(self.units);
        if self.taken() == self.units {
            self.reserve = None;
        }
    }

    /// Returns true while it has more than what was free, so that others may wait for it.
    pub(crate) fn is_beyond(&self) -> bool {
        self.reserve.is_some()
    }

    /// Takes what is free at once, where the share goes beyond what was.
    fn take_free(&mut self, wanted: u32) {
        let missing = wanted.saturating_sub(self.taken());
        if missing > 0
            && self.reserve.is_some()
            && let Ok(more) = self.half.permits.clone().try_acquire_many_owned(missing)
        {
            self.add(more);
        }
    }

    fn add(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
    }

    /// Returns what it has without the reserve.
    fn taken(&self) -> u32 {
        let taken = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        u32::try_from(taken).unwrap_or(u32::MAX)
    }

    fn units_of(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.half.units)
    }
}

/// Makes shared bytes that keep their share until the last of them is sent.
pub(crate) fn hold<B: AsRef<[u8]> + Send + 'static>(bytes: B, share: Arc<MemoryShare>) -> Bytes {
    struct Held<B>(B, #[expect(dead_code, reason = "dropped with the bytes")] Arc<MemoryShare>);
    impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
        fn as_ref(&self) -> &[u8] {
            self.0.as_ref()
        }
    }
    Bytes::from_owner(Held(bytes, share))
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// A budget of which a half has a mebibyte, and a third of one in reserve.
    const BUDGET: u64 = 2 * 341 * UNIT as u64 * RING_PART / (RING_PART - 1) + 1;

    #[tokio::test]
    async fn shares_are_waited_for_in_order_and_given_back() {
        let budget = MemoryBudget::new(BUDGET);
        let (mut first, mut second, mut third) = (budget.answer(), budget.answer(), budget.answer());
        first.grow_to(700 << 10).await;
        assert_eq!(budget.taken(), 700 << 10);
        let mut context = Context::from_waker(Waker::noop());
        let mut large = Box::pin(second.grow_to(800 << 10));
        assert_eq!(large.as_mut().poll(&mut context), Poll::Pending);
        // A small one that comes later does not overtake.
        let mut small = Box::pin(third.grow_to(8 << 10));
        assert_eq!(small.as_mut().poll(&mut context), Poll::Pending);
        // Requests have a half of their own.
        let mut request = budget.request();
        request.grow_to(1 << 20).await;
        first.shrink_to(100 << 10);
        large.await;
        small.await;
        assert_eq!(budget.taken(), (100 << 10) + (800 << 10) + (8 << 10) + (1 << 20));
        let bytes = hold(vec![0; 8], Arc::new(second));
        drop((first, third, request));
        assert_eq!(budget.taken(), 800 << 10);
        let part = bytes.slice(2..4);
        drop(bytes);
        assert_eq!(budget.taken(), 800 << 10);
        drop(part);
        assert_eq!(budget.taken(), 0);
    }

    #[tokio::test]
    async fn what_is_not_given_back_in_time_is_refused() {
        let budget = MemoryBudget::new(1 << 20);
        let (mut holder, mut waiting) = (budget.request(), budget.request());
        // More than there is counts as all of it.
        holder.grow_to(1 << 30).await;
        assert!(matches!(waiting.grow_within(1, Duration::ZERO).await, Err(LogError::Unavailable(_))));
        drop(holder);
        waiting.grow_within(1, Duration::ZERO).await.unwrap();
    }

    #[tokio::test]
    async fn of_shares_that_grow_one_at_a_time_goes_beyond_what_is_free() {
        let budget = MemoryBudget::new(BUDGET);
        let mut shares = [budget.request(), budget.request(), budget.request(), budget.request()];
        for share in &mut shares {
            share.grow_to(256 << 10).await;
        }
        let [mut first, mut second, mut third, mut fourth] = shares;
        let mut newcomer = budget.request();
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut waiting = Box::pin(newcomer.grow_to(8 << 10));
            assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
        }
        first.grow_to(700 << 10).await;
        assert!(first.is_beyond());
        // It grows on, the others wait for it.
        let mut others = Box::pin(second.grow_to(700 << 10));
        assert_eq!(others.as_mut().poll(&mut context), Poll::Pending);
        first.grow_to(900 << 10).await;
        drop(first);
        others.await;
        assert!(second.is_beyond(), "a quarter was free, and not enough");
        // What is left of it when it shrinks is what others gave back.
        second.shrink_to(500 << 10);
        assert!(!second.is_beyond() && budget.taken() == (256 + 256 + 500) << 10, "{}", budget.taken());
        third.grow_within(1 << 20, Duration::ZERO).await.unwrap();
        fourth.grow_within(300 << 10, Duration::ZERO).await.unwrap_err();
        drop(third);
        fourth.grow_within(300 << 10, Duration::ZERO).await.unwrap();
        assert!(!fourth.is_beyond());
        drop((second, fourth));
        assert_eq!(budget.taken(), 0);
    }

    /// More bodies than there is room for, which arrive piece by piece, side by side.
    #[tokio::test]
    async fn bodies_that_fit_one_after_the_other_are_all_read() {
        let budget = MemoryBudget::new(BUDGET);
        let bodies = (0..100).map(|_| {
            let budget = budget.clone();
            tokio::spawn(async move {
                let mut share = budget.request();
                for pieces in 1..=16 {
                    share.grow_to(pieces * (48 << 10)).await;
                    tokio::task::yield_now().await;
                }
            })
        });
        for body in bodies.collect::<Vec<_>>() {
            body.await.unwrap();
        }
        assert_eq!(budget.taken(), 0);
    }
}
