//! What is looked up in the store for readers: where threads are, how far they are, and what is missing of them.
//!
//! One look at a time, over one connection: whatever is due is looked up together.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::desk::{Desk, Want};
use super::sight::{Located, Moved, Opener, Read, Sight};
use crate::error::LogError;
use crate::key::ThreadKey;
use crate::limits;
use crate::tail::Tail;

/// Looks whenever something is due, until it is aborted.
pub(super) async fn watch(desk: Arc<Desk>, opener: Opener) {
    let mut links = desk.links();
    let mut eyes = Eyes::new(desk, opener);
    loop {
        let due = eyes.due();
        let is_due = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        let link = async {
            match &mut links {
                Some(links) => links.changed().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = is_due => eyes.look().await,
            // Something new may be due.
            () = eyes.desk.wake.notified() => {}
            // What went by meanwhile is found now, rather than with the next look.
            is_open = link => {
                eyes.next_check = Instant::now();
                links = links.filter(|_| is_open);
            }
        }
    }
}

struct Eyes {
    desk: Arc<Desk>,
    opener: Opener,
    /// The connection, while it works.
    sight: Option<Box<dyn Sight>>,
    /// When all heads are looked at next.
    next_check: Instant,
    /// Until when Redis is not trusted, because it has failed to tell of something.
    doubted_until: Instant,
    /// How long to wait after the next failure.
    pause: Duration,
    /// Nothing is tried before this.
    not_before: Instant,
}

/// What is to be looked up together.
#[derive(Default)]
struct Errand {
    locate: Vec<(ThreadKey, Arc<Tail>)>,
    /// How far the threads are known to be.
    heads: HashMap<i64, (Arc<Tail>, u64)>,
    read: Vec<Missing>,
}

/// A thread that something is missing of.
struct Missing {
    number: i64,
    tail: Arc<Tail>,
    after: u64,
    /// The last record that anybody has told of.
    told: u64,
    was_untold: bool,
}

/// What was found.
struct Found {
    located: Vec<Option<Located>>,
    moved: Vec<Moved>,
    read: Vec<Read>,
}

impl Errand {
    /// Looks it all up, and waits for it.
    fn run(&self, sight: &mut dyn Sight) -> Result<Found, LogError> {
        let keys: Vec<_> = self.locate.iter().map(|(key, _)| key.clone()).collect();
        let heads: Vec<_> = self.heads.iter().map(|(number, (_, head))| (*number, *head)).collect();
        let after: Vec<_> = self.read.iter().map(|missing| (missing.number, missing.after)).collect();
        Ok(Found {
            located: if keys.is_empty() { Vec::new() } else { sight.locate(&keys)? },
            moved: if heads.is_empty() { Vec::new() } else { sight.moved(&heads)? },
            read: if after.is_empty() { Vec::new() } else { sight.read(&after)? },
        })
    }
}

impl Eyes {
    fn new(desk: Arc<Desk>, opener: Opener) -> Self {
        let now = Instant::now();
        let pause = Duration::from_millis(limits::HEADS_ALONE_MILLIS);
        Self { desk, opener, sight: None, next_check: now, doubted_until: now, pause, not_before: now }
    }

    /// Tells when there is something to look up.
    fn due(&self) -> Option<Instant> {
        let check = self.desk.has_places().then_some(self.next_check);
        let due = self.desk.due().into_iter().chain(check).min();
        due.map(|due| due.max(self.not_before))
    }

    async fn look(&mut self) {
        let errand = self.errand();
        if errand.locate.is_empty() && errand.heads.is_empty() && errand.read.is_empty() {
            return;
        }
        let (sight, opener) = (self.sight.take(), self.opener.clone());
        let begun = Instant::now();
        let looking = tokio::task::spawn_blocking(move || {
            let sight = sight.map_or_else(|| opener(), Ok);
            let looked = sight.and_then(|mut sight| {
                let found = errand.run(&mut *sight)?;
                Ok((sight, found))
            });
            (errand, looked)
        });
        // Only a panic, or the end of the runtime, keeps it from coming back.
        let Ok((errand, looked)) = looking.await else { return self.failed("a look was broken off".into()) };
        match looked {
            Ok((sight, found)) => {
                self.sight = Some(sight);
                self.pause = Duration::from_millis(limits::HEADS_ALONE_MILLIS);
                self.desk.sighted(None);
                self.take(errand, found);
                self.next_check(begun);
            }
            Err(error) => {
                for missing in &errand.read {
                    let want = if missing.was_untold { Want::Untold } else { Want::Now };
                    self.desk.want(missing.number, want);
                }
                self.failed(error.to_string());
            }
        }
    }

    fn errand(&self) -> Errand {
        let locate = self.desk.unknown();
        let read = self.desk.wanted().into_iter().filter_map(|(number, tail, was_untold)| {
            let (after, told) = tail.missing()?;
            Some(Missing { number, tail, after, told, was_untold })
        });
        let read = read.collect();
        let places = if self.next_check <= Instant::now() { self.desk.places() } else { Vec::new() };
        let heads = places.into_iter().filter_map(|(number, tail)| {
            let newest = tail.newest()?;
            Some((number, (tail, newest)))
        });
        let heads = heads.collect();
        Errand { locate, heads, read }
    }

    fn take(&mut self, errand: Errand, found: Found) {
        for ((key, tail), located) in errand.locate.iter().zip(&found.located) {
            match located {
                Some(located) if located.deleted => tail.delete(),
                Some(located) => self.desk.place(located.number, tail, located.head),
                None => {}
            }
            self.desk.looked_for(key, tail, located.is_some());
        }
        self.desk.head_checks.fetch_add(u64::from(!errand.heads.is_empty()), Relaxed);
        for moved in found.moved {
            if let Some((tail, known)) = errand.heads.get(&moved.number) {
                self.take_moved(tail, *known, moved);
            }
        }
        for read in found.read {
            let Some(missing) = errand.read.iter().find(|missing| missing.number == read.number) else {
                continue;
            };
            self.take_read(missing, read);
        }
    }

    fn take_moved(&self, tail: &Tail, known: u64, Moved { number, head, deleted }: Moved) {
        if head < known {
            tracing::warn!(number, known, head, "the store has lost records that were shown");
            tail.set_back(head);
        } else if tail.stand_at(head) {
            // Also of a thread that is deleted, whose end only Redis can tell: that has some time for it.
            return self.desk.want(number, Want::Untold);
        }
        if deleted {
            tail.delete();
            self.desk.bury(number, tail);
        }
    }

    fn take_read(&mut self, missing: &Missing, read: Read) {
        let Missing { number, tail, after, told, was_untold } = missing;
        if read.head > *after {
            self.desk.heals.fetch_add(1, Relaxed);
            if *was_untold && self.desk.is_told() {
                self.doubted_until = Instant::now() + Duration::from_millis(2 * limits::HEADS_MILLIS);
            }
        }
        match read.records {
            Some(records) => {
                self.desk.healed.fetch_add(records.len() as u64, Relaxed);
                tail.offer(&records);
                // What retention has removed since is missing, too.
                tail.pass_on_to(read.head);
            }
            None => tail.pass_on_to(read.head),
        }
        tail.settle(*told);
        if read.deleted {
            tail.delete();
            self.desk.bury(*number, tail);
        } else if tail.missing().is_some() {
            self.desk.want(*number, Want::Late);
        }
    }

    /// Sets when all heads are looked at next, if they were now: not sooner than the look took.
    fn next_check(&mut self, begun: Instant) {
        let now = Instant::now();
        if self.next_check > begun {
            return;
        }
        let is_alone = !self.desk.is_told() || now < self.doubted_until;
        let millis = if is_alone { limits::HEADS_ALONE_MILLIS } else { limits::HEADS_MILLIS };
        self.next_check = (begun + Duration::from_millis(millis)).max(now + (now - begun));
    }

    fn failed(&mut self, error: String) {
        self.desk.sighted(Some(error));
        self.sight = None;
        let now = Instant::now();
        self.not_before = now + self.pause;
        self.pause = (2 * self.pause).min(Duration::from_millis(limits::LOOK_RETRY_MILLIS));
        // What went by meanwhile is found at once.
        self.next_check = now;
    }
}
