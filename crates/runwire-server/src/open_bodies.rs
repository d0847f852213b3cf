//! The bodies that stay open, so that a newer incarnation of a producer cuts off the older one at once.
//!
//! The log refuses an older epoch anyway; this only spares the zombie's client the wait until it writes again.
//! A body that was opened on another node learns of it from the log.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runwire_log::{Stamp, Target};
use tokio::sync::watch;

/// The open bodies of producers that say who they are.
#[derive(Debug, Default)]
pub(crate) struct OpenBodies {
    /// Lets the many requests that find no open body go without the lock.
    count: AtomicUsize,
    producers: Mutex<HashMap<Name, Producer>>,
}

/// A producer of a run, of a thread or of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Name {
    target: Target,
    producer: Arc<str>,
}

/// The newest epoch that was written, and how many bodies want to know.
#[derive(Debug)]
struct Producer {
    newest: watch::Sender<u64>,
    bodies: usize,
}

impl Name {
    fn new(target: &Target, producer: &Arc<str>) -> Self {
        Self { target: target.clone(), producer: producer.clone() }
    }
}

impl OpenBodies {
    /// Enters a body that stays open.
    pub(crate) fn enter(&self, target: &Target, stamp: &Stamp) -> OpenBody<'_> {
        let name = Name::new(target, &stamp.producer);
        let mut producers = self.lock();
        let producer = producers
            .entry(name.clone())
            .or_insert_with(|| Producer { newest: watch::Sender::new(0), bodies: 0 });
        producer.bodies += 1;
        self.count.fetch_add(1, Ordering::Relaxed);
        OpenBody { newest: producer.newest.subscribe(), epoch: stamp.epoch, name, bodies: self }
    }

    /// Cuts off the bodies of older epochs, once the log has taken something of this one.
    pub(crate) fn fence(&self, target: &Target, stamp: &Stamp) {
        // Both count and map change under the lock of whoever enters; one that enters just now asks the log itself.
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        if let Some(producer) = self.lock().get(&Name::new(target, &stamp.producer)) {
            producer.newest.send_if_modified(|newest| {
                let newer = *newest < stamp.epoch;
                *newest = stamp.epoch.max(*newest);
                newer
            });
        }
    }

    /// A panic while the map was held leaves at worst a body that is not cut off at once.
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Producer>> {
        self.producers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that is open.
#[derive(Debug)]
pub(crate) struct OpenBody<'a> {
    newest: watch::Receiver<u64>,
    epoch: u64,
    name: Name,
    bodies: &'a OpenBodies,
}

impl OpenBody<'_> {
    /// Waits for a newer epoch, and tells it.
    pub(crate) async fn fenced(&mut self) -> u64 {
        let epoch = self.epoch;
        let newer = self.newest.wait_for(|newest| *newest > epoch).await.map(|newest| *newest);
        match newer {
            Ok(newest) => newest,
            // The sender lives as long as a body is entered.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for OpenBody<'_> {
    fn drop(&mut self) {
        let mut producers = self.bodies.lock();
        self.bodies.count.fetch_sub(1, Ordering::Relaxed);
        if let Some(producer) = producers.get_mut(&self.name) {
            producer.bodies -= 1;
            if producer.bodies == 0 {
                producers.remove(&self.name);
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
        let mut zombie = bodies.enter(&run, &stamp(1));
        let mut heir = bodies.enter(&run, &stamp(2));
        let mut stranger = bodies.enter(&other, &stamp(1));
        bodies.fence(&run, &stamp(2));
        assert_eq!(zombie.fenced().await, 2);
        assert!(futures_util::FutureExt::now_or_never(heir.fenced()).is_none());
        assert!(futures_util::FutureExt::now_or_never(stranger.fenced()).is_none());
        drop((zombie, heir, stranger));
        assert!(bodies.lock().is_empty());
    }
}
