//! Registry of open request bodies: a newer epoch of a producer fences the bodies of older epochs at once.
//!
//! The log refuses an older epoch anyway; fencing here only stops a zombie producer before its next write. A body on
//! another node learns of it from the log.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runwire_log::{Stamp, Target};
use tokio::sync::watch;

/// The open bodies of named producers.
#[derive(Debug, Default)]
pub(crate) struct OpenBodies {
    /// Number of open bodies: spares most requests the lock.
    count: AtomicUsize,
    producers: Mutex<HashMap<ProducerKey, ProducerEntry>>,
}

/// Identifies a producer of a run, thread or tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ProducerKey {
    target: Target,
    producer: Arc<str>,
}

/// The newest epoch of a producer, and the number of its open bodies.
#[derive(Debug)]
struct ProducerEntry {
    newest: watch::Sender<u64>,
    bodies: usize,
}

impl ProducerKey {
    fn new(target: &Target, producer: &Arc<str>) -> Self {
        Self { target: target.clone(), producer: producer.clone() }
    }
}

impl OpenBodies {
    /// Registers an open body; dropping the handle removes it.
    pub(crate) fn register(&self, target: &Target, stamp: &Stamp) -> OpenBody<'_> {
        let key = ProducerKey::new(target, &stamp.producer);
        let mut producers = self.lock();
        let producer = producers
            .entry(key.clone())
            .or_insert_with(|| ProducerEntry { newest: watch::Sender::new(0), bodies: 0 });
        producer.bodies += 1;
        self.count.fetch_add(1, Ordering::Relaxed);
        OpenBody { newest: producer.newest.subscribe(), epoch: stamp.epoch, key, bodies: self }
    }

    /// Fences the bodies of older epochs, once the log has accepted a write of this one.
    pub(crate) fn fence(&self, target: &Target, stamp: &Stamp) {
        // A body that is registered concurrently checks its epoch with the log itself.
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        if let Some(producer) = self.lock().get(&ProducerKey::new(target, &stamp.producer)) {
            producer.newest.send_if_modified(|newest| {
                let newer = *newest < stamp.epoch;
                *newest = stamp.epoch.max(*newest);
                newer
            });
        }
    }

    /// Ignores poisoning: a panic while the map was locked leaves at worst a body that is not fenced at once.
    fn lock(&self) -> MutexGuard<'_, HashMap<ProducerKey, ProducerEntry>> {
        self.producers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered open body.
#[derive(Debug)]
pub(crate) struct OpenBody<'a> {
    newest: watch::Receiver<u64>,
    epoch: u64,
    key: ProducerKey,
    bodies: &'a OpenBodies,
}

impl OpenBody<'_> {
    /// Waits for a newer epoch and returns it.
    pub(crate) async fn fenced(&mut self) -> u64 {
        let epoch = self.epoch;
        let newer = self.newest.wait_for(|newest| *newest > epoch).await.map(|newest| *newest);
        match newer {
            Ok(newest) => newest,
            // The sender lives as long as a body is registered.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for OpenBody<'_> {
    fn drop(&mut self) {
        let mut producers = self.bodies.lock();
        self.bodies.count.fetch_sub(1, Ordering::Relaxed);
        if let Some(producer) = producers.get_mut(&self.key) {
            producer.bodies -= 1;
            if producer.bodies == 0 {
                producers.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use runwire_log::RunKey;

    use super::*;

    fn stamp(epoch: u64) -> Stamp {
        Stamp { producer: "p".into(), epoch, index: 0 }
    }

    #[tokio::test]
    async fn a_newer_epoch_cuts_off_the_older_and_leaves_the_rest() {
        let bodies = OpenBodies::default();
        let (run, other) = (RunKey::new("t", "r"), RunKey::new("t", "other"));
        let (run, other) = (Target::Run(run), Target::Run(other));
        let mut zombie = bodies.register(&run, &stamp(1));
        let mut heir = bodies.register(&run, &stamp(2));
        let mut stranger = bodies.register(&other, &stamp(1));
        bodies.fence(&run, &stamp(2));
        assert_eq!(zombie.fenced().await, 2);
        assert!(futures_util::FutureExt::now_or_never(heir.fenced()).is_none());
        assert!(futures_util::FutureExt::now_or_never(stranger.fenced()).is_none());
        drop((zombie, heir, stranger));
        assert!(bodies.lock().is_empty());
    }
}
