//! Polls the store for the heads of followed threads, so that readers see commits that Redis has not delivered.
//!
//! One poll at a time, over one connection, does all that is due: it looks up threads by name, compares the heads of
//! all followed threads, and reads missing records.

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

/// Polls whenever something is due, until it is aborted.
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
            // Poll now for what was missed while the connection was down.
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
    /// The connection, while it is healthy.
    probe: Option<Box<dyn StoreProbe>>,
    /// When the heads of all followed threads are compared next.
    next_check: Instant,
    /// Until when heads are polled as often as without Redis, because it has missed a commit.
    distrust_redis_until: Instant,
    /// Backoff after the next failure.
    pause: Duration,
    /// No poll begins before this.
    not_before: Instant,
}

/// What one poll asks of the store.
#[derive(Default)]
struct Lookup {
    locate: Vec<(ThreadKey, Arc<Tail>)>,
    /// The tails and known heads of followed threads, by number.
    heads: HashMap<i64, (Arc<Tail>, u64)>,
    read: Vec<MissingRecords>,
}

/// A thread of which records are missing.
struct MissingRecords {
    number: i64,
    tail: Arc<Tail>,
    after: u64,
    /// The last record that anything has reported.
    reported: u64,
    redis_missed_it: bool,
}

/// What one poll has found.
struct LookupResult {
    located: Vec<Option<ThreadLocation>>,
    changed: Vec<HeadChange>,
    read: Vec<RecordsAfter>,
}

impl Lookup {
    /// Queries the store. Blocks.
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

    /// Returns when the next poll is due.
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
        // Only a panic, or the end of the runtime, keeps it from returning.
        let Ok((lookup, polled)) = polling.await else { return self.failed("a poll was aborted".into()) };
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
            tracing::warn!(number, known, head, "the store has lost records that readers have seen");
            tail.rewind_to(head);
        } else if tail.set_position(head) {
            // The last records of a deleted thread come only from Redis, which has some time for them.
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
                // What retention has removed since is skipped, too.
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

    /// Sets when heads are compared next, if they were now: at least as long from now as the poll took.
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
        // The next successful poll compares all heads.
        self.next_check = now;
    }
}
