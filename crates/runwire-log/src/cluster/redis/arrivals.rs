//! Entries that have arrived and wait to be taken: never more than the limits allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::mpsc;

use super::entry::Arrival;
use super::health::Counters;
use crate::limits;

/// The end that entries arrive at.
#[derive(Debug)]
pub struct Arrivals {
    entries: mpsc::Receiver<Arrival>,
    waiting: Arc<AtomicUsize>,
}

/// Where entries are put.
#[derive(Debug, Clone)]
pub(super) struct Inbox {
    entries: mpsc::Sender<Arrival>,
    /// Bytes of bodies that wait.
    waiting: Arc<AtomicUsize>,
    counters: Arc<Counters>,
}

pub(super) fn channel(counters: Arc<Counters>) -> (Inbox, Arrivals) {
    let (sender, entries) = mpsc::channel(limits::REDIS_ARRIVALS);
    let waiting = Arc::new(AtomicUsize::new(0));
    (Inbox { entries: sender, waiting: Arc::clone(&waiting), counters }, Arrivals { entries, waiting })
}

impl Arrivals {
    /// Waits for the next entry; there is none after the tail is dropped.
    pub async fn next(&mut self) -> Option<Arrival> {
        let arrival = self.entries.recv().await?;
        Some(self.taken(arrival))
    }

    /// Takes the next entry, if one is there.
    pub fn try_next(&mut self) -> Option<Arrival> {
        let arrival = self.entries.try_recv().ok()?;
        Some(self.taken(arrival))
    }

    fn taken(&self, arrival: Arrival) -> Arrival {
        self.waiting.fetch_sub(weight(&arrival), Relaxed);
        arrival
    }
}

impl Inbox {
    /// Puts an entry where it is taken, without its body or not at all if too much waits there.
    pub(super) fn put(&self, mut arrival: Arrival) {
        if self.waiting.load(Relaxed).saturating_add(weight(&arrival)) > limits::REDIS_QUEUE_BYTES {
            arrival.body = None;
        }
        let weight = weight(&arrival);
        self.waiting.fetch_add(weight, Relaxed);
        if self.entries.try_send(arrival).is_ok() {
            self.counters.arrived.fetch_add(1, Relaxed);
        } else {
            self.waiting.fetch_sub(weight, Relaxed);
            self.counters.missed.fetch_add(1, Relaxed);
        }
    }
}

fn weight(arrival: &Arrival) -> usize {
    arrival.body.as_ref().map_or(0, bytes::Bytes::len)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn arrival(last: u64, length: usize) -> Arrival {
        Arrival { thread: 1, first: last, last, body: Some(Bytes::from(vec![0; length])) }
    }

    #[test]
    fn whoever_takes_nothing_costs_bounded_memory() {
        let counters = Arc::new(Counters::default());
        let (inbox, mut arrivals) = channel(Arc::clone(&counters));
        let extra = 10;
        for last in 1..=(limits::REDIS_ARRIVALS + extra) as u64 {
            inbox.put(arrival(last, limits::REDIS_BODY_BYTES));
        }
        assert!(inbox.waiting.load(Relaxed) <= limits::REDIS_QUEUE_BYTES);
        assert_eq!(counters.missed.load(Relaxed), extra as u64);
        let mut seen = 0;
        let mut with_body = 0;
        while let Some(arrival) = arrivals.try_next() {
            seen += 1;
            assert_eq!(arrival.last, seen);
            with_body += usize::from(arrival.body.is_some());
        }
        assert_eq!(seen, limits::REDIS_ARRIVALS as u64);
        assert_eq!(with_body, limits::REDIS_QUEUE_BYTES / limits::REDIS_BODY_BYTES);
        assert_eq!(inbox.waiting.load(Relaxed), 0);
    }
}
