//! What is looked up in the store for readers: where threads are, how far they are, and what is missing of them.
//!
//! One look at a time, over one connection: whatever is due is looked up together.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::followed_threads::{FollowedThreads, ReadUrgency};
use super::store_probe::{HeadChange, ProbeOpener, RecordsAfter, StoreProbe, ThreadLocation};
use crate::error::LogError;
use crate::key::ThreadKey;
use crate::limits;
use crate::tail::Tail;

/// Looks whenever something is due, until it is aborted.
pub(super) async fn run(followed: Arc<FollowedThreads>, opener: ProbeOpener) {
    let mut links = followed.links();
    let mut poller = HeadPoller::new(followed, opener);
    loop {
        let due = poller.due();
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
            () = is_due => poller.poll().await,
            // Something new may be due.
            () = poller.followed.wake.notified() => {}
            // What went by meanwhile is found now, rather than with the next look.
            is_open = link => {
                poller.next_check = Instant::now();
                links = links.filter(|_| is_open);
            }
        }
    }
}

struct HeadPoller {
    followed: Arc<FollowedThreads>,
    opener: ProbeOpener,
    /// The connection, while it works.
    probe: Option<Box<dyn StoreProbe>>,
    /// When all heads are polled next.
    next_check: Instant,
    /// Until when Redis is not trusted, because it has failed to tell of something.
    distrust_redis_until: Instant,
    /// How long to wait after the next failure.
    pause: Duration,
    /// Nothing is tried before this.
    not_before: Instant,
}

/// What is to be looked up together.
#[derive(Default)]
struct Lookup {
    locate: Vec<(ThreadKey, Arc<Tail>)>,
    /// How far the threads are known to be.
    heads: HashMap<i64, (Arc<Tail>, u64)>,
    read: Vec<MissingRecords>,
}

/// A thread that something is missing of.
struct MissingRecords {
    number: i64,
    tail: Arc<Tail>,
    after: u64,
    /// The last record that anybody has reported of.
    reported: u64,
    redis_missed_it: bool,
}

/// What was found.
struct LookupResult {
    located: Vec<Option<ThreadLocation>>,
    changed: Vec<HeadChange>,
    read: Vec<RecordsAfter>,
}

impl Lookup {
    /// Looks it all up, and waits for it.
    fn run(&self, probe: &mut dyn StoreProbe) -> Result<LookupResult, LogError> {
        let keys: Vec<_> = self.locate.iter().map(|(key, _)| key.clone()).collect();
        let heads: Vec<_> = self.heads.iter().map(|(number, (_, head))| (*number, *head)).collect();
        let after: Vec<_> = self.read.iter().map(|missing| (missing.number, missing.after)).collect();
        Ok(LookupResult {
            located: if keys.is_empty() { Vec::new() } else { probe.locate(&keys)? },
            changed: if heads.is_empty() { Vec::new() } else { probe.changed_heads(&heads)? },
            read: if after.is_empty() { Vec::new() } else { probe.read(&after)? },
        })
    }
}

impl HeadPoller {
    fn new(followed: Arc<FollowedThreads>, opener: ProbeOpener) -> Self {
        let now = Instant::now();
        let pause = Duration::from_millis(limits::POLL_WITHOUT_REDIS_MILLIS);
        Self {
            followed,
            opener,
            probe: None,
            next_check: now,
            distrust_redis_until: now,
            pause,
            not_before: now,
        }
    }

    /// Tells when there is something to look up.
    fn due(&self) -> Option<Instant> {
        let check = self.followed.is_following().then_some(self.next_check);
        let due = self.followed.due().into_iter().chain(check).min();
        due.map(|due| due.max(self.not_before))
    }

    async fn poll(&mut self) {
        let lookup = self.lookup();
        if lookup.locate.is_empty() && lookup.heads.is_empty() && lookup.read.is_empty() {
            return;
        }
        let (probe, opener) = (self.probe.take(), self.opener.clone());
        let begun = Instant::now();
        let polling = tokio::task::spawn_blocking(move || {
            let probe = probe.map_or_else(|| opener(), Ok);
            let polled = probe.and_then(|mut probe| {
                let found = lookup.run(&mut *probe)?;
                Ok((probe, found))
            });
            (lookup, polled)
        });
        // Only a panic, or the end of the runtime, keeps it from coming back.
        let Ok((lookup, polled)) = polling.await else { return self.failed("a look was broken off".into()) };
        match polled {
            Ok((probe, found)) => {
                self.probe = Some(probe);
                self.pause = Duration::from_millis(limits::POLL_WITHOUT_REDIS_MILLIS);
                self.followed.set_poller_status(None);
                self.apply(lookup, found);
                self.next_check(begun);
            }
            Err(error) => {
                for missing in &lookup.read {
                    let urgency =
                        if missing.redis_missed_it { ReadUrgency::MissedByRedis } else { ReadUrgency::Now };
                    self.followed.request_read(missing.number, urgency);
                }
                self.failed(error.to_string());
            }
        }
    }

    fn lookup(&self) -> Lookup {
        let locate = self.followed.due_unresolved();
        let read =
            self.followed.take_due_reads().into_iter().filter_map(|(number, tail, redis_missed_it)| {
                let (after, reported) = tail.missing()?;
                Some(MissingRecords { number, tail, after, reported, redis_missed_it })
            });
        let read = read.collect();
        let followed = if self.next_check <= Instant::now() { self.followed.all() } else { Vec::new() };
        let heads = followed.into_iter().filter_map(|(number, tail)| {
            let newest = tail.newest()?;
            Some((number, (tail, newest)))
        });
        let heads = heads.collect();
        Lookup { locate, heads, read }
    }

    fn apply(&mut self, lookup: Lookup, found: LookupResult) {
        for ((key, tail), located) in lookup.locate.iter().zip(&found.located) {
            match located {
                Some(located) if located.deleted => tail.delete(),
                Some(located) => self.followed.follow(located.number, tail, located.head),
                None => {}
            }
            self.followed.mark_resolved(key, tail, located.is_some());
        }
        self.followed.head_checks.fetch_add(u64::from(!lookup.heads.is_empty()), Relaxed);
        for changed in found.changed {
            if let Some((tail, known)) = lookup.heads.get(&changed.number) {
                self.apply_head_change(tail, *known, changed);
            }
        }
        for read in found.read {
            let Some(missing) = lookup.read.iter().find(|missing| missing.number == read.number) else {
                continue;
            };
            self.apply_records(missing, read);
        }
    }

    fn apply_head_change(&self, tail: &Tail, known: u64, HeadChange { number, head, deleted }: HeadChange) {
        if head < known {
            tracing::warn!(number, known, head, "the store has lost records that were shown");
            tail.rewind_to(head);
        } else if tail.set_position(head) {
            // Also of a thread that is deleted, whose end only Redis can tell: that has some time for it.
            return self.followed.request_read(number, ReadUrgency::MissedByRedis);
        }
        if deleted {
            tail.delete();
            self.followed.unfollow(number, tail);
        }
    }

    fn apply_records(&mut self, missing: &MissingRecords, read: RecordsAfter) {
        let MissingRecords { number, tail, after, reported, redis_missed_it } = missing;
        if read.head > *after {
            self.followed.heals.fetch_add(1, Relaxed);
            if *redis_missed_it && self.followed.redis_is_up() {
                self.distrust_redis_until = Instant::now() + Duration::from_millis(2 * limits::POLL_MILLIS);
            }
        }
        match read.records {
            Some(records) => {
                self.followed.healed.fetch_add(records.len() as u64, Relaxed);
                tail.offer(&records);
                // What retention has removed since is missing, too.
                tail.skip_to(read.head);
            }
            None => tail.skip_to(read.head),
        }
        tail.forget_reported(*reported);
        if read.deleted {
            tail.delete();
            self.followed.unfollow(*number, tail);
        } else if tail.missing().is_some() {
            self.followed.request_read(*number, ReadUrgency::Soon);
        }
    }

    /// Sets when all heads are polled next, if they were now: not sooner than the look took.
    fn next_check(&mut self, begun: Instant) {
        let now = Instant::now();
        if self.next_check > begun {
            return;
        }
        let polls_fast = !self.followed.redis_is_up() || now < self.distrust_redis_until;
        let millis = if polls_fast { limits::POLL_WITHOUT_REDIS_MILLIS } else { limits::POLL_MILLIS };
        self.next_check = (begun + Duration::from_millis(millis)).max(now + (now - begun));
    }

    fn failed(&mut self, error: String) {
        self.followed.set_poller_status(Some(error));
        self.probe = None;
        let now = Instant::now();
        self.not_before = now + self.pause;
        self.pause = (2 * self.pause).min(Duration::from_millis(limits::POLL_RETRY_MILLIS));
        // What went by meanwhile is found at once.
        self.next_check = now;
    }
}
