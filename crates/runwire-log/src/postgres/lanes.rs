//! The writers of a node, and which of them does what.
//!
//! While one waits for the disk another works. Each has a connection, and heads at hand, of its own: as if it were a
//! node. So whoever takes a request, what comes of it is right; but what concerns one thread is best left to one writer,
//! and what is written to one run must be, so that it stays in the order in which it was asked for.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::failure::Db;
use super::opening::OpenError;
use super::writer::{Order, Writer};
use crate::error::LogError;
use crate::info::RunInfo;
use crate::key::{RunKey, ThreadKey};
use crate::limits;
use crate::outbox::Subscriber;
use crate::txn::Command;

/// How long a request waits to be taken.
pub(super) const PATIENCE: Duration = Duration::from_millis(limits::STORE_PATIENCE_MILLIS);

pub(super) fn refused(why: &str) -> LogError {
    LogError::Unavailable(format!("{why}; nothing was written"))
}

pub(super) struct Lanes {
    lanes: Vec<mpsc::Sender<Order>>,
    places: Mutex<Places>,
}

/// The lanes of runs that were written to lately.
#[derive(Default)]
struct Places {
    recent: HashMap<RunKey, Place>,
    older: HashMap<RunKey, Place>,
}

/// The lane of a run, which does not change while anybody holds this.
pub(super) type Place = Arc<usize>;

impl Places {
    /// Tells the lane of a run, or gives it one.
    fn of(&mut self, run: &RunKey, give: impl FnOnce() -> usize) -> Place {
        if let Some(place) = self.recent.get(run) {
            return place.clone();
        }
        let place = self.older.remove(run).unwrap_or_else(|| give().into());
        if self.recent.len() >= limits::LANES_OF_RUNS {
            let (held, forgotten): (HashMap<_, _>, HashMap<_, _>) =
                self.older.drain().partition(|(_, place)| Arc::strong_count(place) > 1);
            drop(forgotten);
            self.older = std::mem::replace(&mut self.recent, held);
        }
        self.recent.insert(run.clone(), place.clone());
        place
    }
}

impl Lanes {
    /// Starts a writer for each core, but no more than a few.
    pub(super) fn open(open: impl Fn() -> Db<Writer>) -> Result<Self, OpenError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut lanes = Vec::new();
        for _ in 0..cores.min(limits::LANES) {
            let (requests, inbox) = mpsc::channel(limits::WRITER_QUEUE);
            let writer = open()?;
            std::thread::Builder::new()
                .name("log-writer".into())
                .spawn(move || writer.run(inbox))
                .map_err(|error| OpenError::Unusable(error.to_string()))?;
            lanes.push(requests);
        }
        Ok(Self { lanes, places: Mutex::default() })
    }

    /// Has a verb performed.
    pub(super) async fn send(
        &self,
        command: Command,
        order: impl FnOnce(Command, Option<Place>) -> Order,
        until: Instant,
    ) -> Result<(), LogError> {
        let (lane, place) = self.lane_of(&command);
        send(&self.lanes[lane], order(command, place), until).await
    }

    /// Has something done that need not be done, unless there is no time for it.
    pub(super) fn try_send(&self, order: Order) {
        let _ = self.lanes[0].try_send(order);
    }

    /// Tells all writers whom to tell of what.
    pub(super) async fn subscribe(&self, subscribers: &[Subscriber]) -> Result<(), LogError> {
        let mut told = Ok(());
        for lane in &self.lanes {
            let (reply, answer) = oneshot::channel();
            let here =
                match send(lane, Order::Subscribe(subscribers.to_vec(), reply), Instant::now() + PATIENCE)
                    .await
                {
                    Ok(()) => answer
                        .await
                        .unwrap_or_else(|_| Err(LogError::Uncertain("the writer has ended".into()))),
                    Err(error) => Err(error),
                };
            told = told.and(here);
        }
        told
    }

    /// Remembers where a run that was created goes on: where its thread does.
    pub(super) fn note(&self, tenant: &str, run: &RunInfo) {
        let thread = ThreadKey::new(tenant, run.thread_id.as_str());
        self.place(&RunKey::new(tenant, run.run_id.as_str()), || self.lane_of_thread(&thread));
    }

    /// Tells whether a writer has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.lanes.iter().any(mpsc::Sender::is_closed)
    }

    /// Has all writers end, and waits for that.
    pub(super) async fn close(&self) {
        for lane in &self.lanes {
            // One that has ended is closed.
            let _ = lane.send(Order::Close).await;
        }
        for lane in &self.lanes {
            lane.closed().await;
        }
    }

    fn lane_of(&self, command: &Command) -> (usize, Option<Place>) {
        match command.routing_key() {
            (thread, Some(run)) => {
                // A run that names no thread has one of its own name, most often.
                let thread = || thread.unwrap_or_else(|| run.thread(run.id.clone()));
                let place = self.place(&run, || self.lane_of_thread(&thread()));
                (*place, Some(place))
            }
            (Some(thread), None) => (self.lane_of_thread(&thread), None),
            (None, None) => (0, None),
        }
    }

    fn place(&self, run: &RunKey, give: impl FnOnce() -> usize) -> Place {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).of(run, give)
    }

    fn lane_of_thread(&self, thread: &ThreadKey) -> usize {
        let mut hasher = DefaultHasher::new();
        thread.hash(&mut hasher);
        (hasher.finish() % self.lanes.len() as u64) as usize
    }
}

async fn send(lane: &mpsc::Sender<Order>, order: Order, until: Instant) -> Result<(), LogError> {
    let patience = until.saturating_duration_since(Instant::now());
    lane.send_timeout(order, patience).await.map_err(|error| match error {
        SendTimeoutError::Timeout(_) => refused("too many requests wait for the store"),
        SendTimeoutError::Closed(_) => refused("the store was closed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_keeps_its_lane_while_it_is_written_to() {
        let mut places = Places::default();
        let run = |number: usize| RunKey::new("t", format!("r{number}"));
        assert_eq!(*places.of(&run(0), || 1), 1);
        let held = places.of(&run(1), || 1);
        for number in 2..5 * limits::LANES_OF_RUNS {
            places.of(&run(number), || 0);
            if number % (limits::LANES_OF_RUNS / 2) == 0 {
                assert_eq!(*places.of(&run(0), || 2), 1);
            }
        }
        assert!(places.recent.len() + places.older.len() <= 2 * limits::LANES_OF_RUNS + 1);
        assert_eq!(*places.of(&run(2), || 3), 3, "one that was not written to is forgotten");
        assert_eq!(*places.of(&run(1), || 3), *held, "but not while something waits for it");
    }
}
