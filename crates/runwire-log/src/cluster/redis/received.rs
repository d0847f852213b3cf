//! The bounded queue between the Redis connection and the task that applies its entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::mpsc;

use super::entry::ReceivedEntry;
use super::stats::Counters;
use crate::limits;

/// Receives entries from Redis.
#[derive(Debug)]
pub struct EntryReceiver {
    entries: mpsc::Receiver<ReceivedEntry>,
    queued_bytes: Arc<AtomicUsize>,
}

/// Queues received entries.
#[derive(Debug, Clone)]
pub(super) struct EntrySender {
    entries: mpsc::Sender<ReceivedEntry>,
    /// Bytes of queued bodies.
    queued_bytes: Arc<AtomicUsize>,
    counters: Arc<Counters>,
}

pub(super) fn channel(counters: Arc<Counters>) -> (EntrySender, EntryReceiver) {
    let (sender, entries) = mpsc::channel(limits::REDIS_RECEIVED);
    let queued_bytes = Arc::new(AtomicUsize::new(0));
    (
        EntrySender { entries: sender, queued_bytes: Arc::clone(&queued_bytes), counters },
        EntryReceiver { entries, queued_bytes },
    )
}

impl EntryReceiver {
    /// Waits for the next entry; returns `None` after the tail is dropped.
    pub async fn next(&mut self) -> Option<ReceivedEntry> {
        let entry = self.entries.recv().await?;
        Some(self.dequeued(entry))
    }

    /// Returns the next entry, if one is queued.
    pub fn try_next(&mut self) -> Option<ReceivedEntry> {
        let entry = self.entries.try_recv().ok()?;
        Some(self.dequeued(entry))
    }

    fn dequeued(&self, entry: ReceivedEntry) -> ReceivedEntry {
        self.queued_bytes.fetch_sub(weight(&entry), Relaxed);
        entry
    }
}

impl EntrySender {
    /// Queues an entry; drops its body, or all of it, if the queue is full.
    pub(super) fn send(&self, mut entry: ReceivedEntry) {
        if self.queued_bytes.load(Relaxed).saturating_add(weight(&entry)) > limits::REDIS_QUEUE_BYTES {
            entry.body = None;
        }
        let weight = weight(&entry);
        self.queued_bytes.fetch_add(weight, Relaxed);
        if self.entries.try_send(entry).is_ok() {
            self.counters.arrived.fetch_add(1, Relaxed);
        } else {
            self.queued_bytes.fetch_sub(weight, Relaxed);
            self.counters.missed.fetch_add(1, Relaxed);
        }
    }
}

fn weight(entry: &ReceivedEntry) -> usize {
    entry.body.as_ref().map_or(0, bytes::Bytes::len)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn entry(last: u64, length: usize) -> ReceivedEntry {
        ReceivedEntry { thread: 1, first: last, last, body: Some(Bytes::from(vec![0; length])) }
    }

    #[test]
    fn a_slow_receiver_uses_bounded_memory() {
        let counters = Arc::new(Counters::default());
        let (sender, mut receiver) = channel(Arc::clone(&counters));
        let extra = 10;
        for last in 1..=(limits::REDIS_RECEIVED + extra) as u64 {
            sender.send(entry(last, limits::REDIS_BODY_BYTES));
        }
        assert!(sender.queued_bytes.load(Relaxed) <= limits::REDIS_QUEUE_BYTES);
        assert_eq!(counters.missed.load(Relaxed), extra as u64);
        let mut seen = 0;
        let mut with_body = 0;
        while let Some(entry) = receiver.try_next() {
            seen += 1;
            assert_eq!(entry.last, seen);
            with_body += usize::from(entry.body.is_some());
        }
        assert_eq!(seen, limits::REDIS_RECEIVED as u64);
        assert_eq!(with_body, limits::REDIS_QUEUE_BYTES / limits::REDIS_BODY_BYTES);
        assert_eq!(sender.queued_bytes.load(Relaxed), 0);
    }
}
