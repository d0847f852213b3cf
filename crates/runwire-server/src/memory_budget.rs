//! The memory budget: one limit for the bytes that are buffered for clients, whatever their number.
//!
//! A share is taken before bytes are read or made, waited for in order, and given back when they are sent. Answers and
//! requests have a half each, so that readers who take nothing keep nobody from writing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use runwire_log::LogError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits;

/// Bytes of one permit of the semaphores.
const UNIT: usize = 4 << 10;

/// The memory that may be taken.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget {
    answers: Half,
    requests: Half,
}

#[derive(Debug, Clone)]
struct Half {
    permits: Arc<Semaphore>,
    units: u32,
}

impl Half {
    fn share(&self) -> MemoryShare {
        MemoryShare { half: self.clone(), permit: None, units: 0 }
    }
}

impl MemoryBudget {
    pub(crate) fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes / 2 / UNIT as u64).unwrap_or(u32::MAX / 8).clamp(1, u32::MAX / 8);
        let half = || Half { permits: Arc::new(Semaphore::new(units as usize)), units };
        Self { answers: half(), requests: half() }
    }

    /// Makes an empty share for bytes that are sent to a client.
    pub(crate) fn answer(&self) -> MemoryShare {
        self.answers.share()
    }

    /// Makes an empty share for bytes that a client sends.
    pub(crate) fn request(&self) -> MemoryShare {
        self.requests.share()
    }

    /// Returns the bytes that are taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> u64 {
        let taken = |half: &Half| u64::from(half.units) - half.permits.available_permits() as u64;
        (taken(&self.answers) + taken(&self.requests)) * UNIT as u64
    }
}

/// A share of the budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    half: Half,
    permit: Option<OwnedSemaphorePermit>,
    units: u32,
}

impl MemoryShare {
    /// Waits in order until the share has so many bytes, or all that there are.
    pub(crate) async fn grow_to(&mut self, bytes: usize) {
        let wanted = self.units_of(bytes);
        if wanted <= self.units {
            return;
        }
        // The semaphores are never closed.
        let Ok(more) = self.half.permits.clone().acquire_many_owned(wanted - self.units).await else {
            return;
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
        self.units = wanted;
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
        let kept = self.units_of(bytes).min(self.units);
        if let Some(permit) = &mut self.permit {
            drop(permit.split((self.units - kept) as usize));
            self.units = kept;
        }
    }

    fn units_of(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.half.units)
    }
}

/// Makes shared bytes that keep their share until the last of them is sent.
pub(crate) fn hold(bytes: Vec<u8>, share: Arc<MemoryShare>) -> Bytes {
    struct Held(Vec<u8>, #[expect(dead_code, reason = "dropped with the bytes")] Arc<MemoryShare>);
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Held(bytes, share))
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[tokio::test]
    async fn shares_are_waited_for_in_order_and_given_back() {
        let budget = MemoryBudget::new(2 << 20);
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
}
