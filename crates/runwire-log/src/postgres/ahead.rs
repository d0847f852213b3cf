//! Working ahead: what is at hand is worked on before anything is locked, and the commit finds out whether it still holds.
//!
//! All of it goes to the store at once: locks, in one order, of every thread that was worked on; a look whether each still
//! has the version that it had when it was kept; what is new; the commit. If another node has written there meanwhile,
//! the look fails and with it all that follows, and the requests are worked out again, with locks taken beforehand.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant, SystemTime};

use runwire_model::Timestamp;
use tokio_postgres::error::SqlState;

use super::commit::{Request, Setback};
use super::connection::{By, Connection};
use super::doubt::Doubt;
use super::failure::{Db, Failure};
use super::flush::Flushed;
use super::rows::time;
use super::tables::{NOW, Tables};
use super::writer::Writer;
use crate::key::{RunKey, ThreadKey};

/// After another node was faster, so many commits lock first.
const WARY: u32 = 16;
/// How long the store's time is known after it was told.
const KNOWN: Duration = Duration::from_secs(5);

/// How long an answer that tells the time may take, so that the time is known well enough.
const EXACT: Duration = Duration::from_millis(100);
/// By how many milliseconds a clock must be behind to have been set back.
const SET_BACK: u128 = 1000;

/// When something was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent(Instant, SystemTime);

impl Sent {
    pub(super) fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }
}

/// The store's time, as it was told in answer to something: it is that or a little earlier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    told: Timestamp,
    sent: Sent,
}

impl Clock {
    /// Makes a clock that goes on from a time; none where it took long to learn of it.
    pub(super) fn new(told: Timestamp, sent: Sent) -> Option<Self> {
        (sent.0.elapsed() < EXACT).then_some(Self { told, sent })
    }

    fn time(self) -> Timestamp {
        let millis = u64::try_from(self.sent.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        Timestamp(self.told.0.saturating_add(millis))
    }

    /// Tells the store's time by this machine's clocks. Nothing where they disagree, as after the machine has slept.
    fn now(self) -> Option<Timestamp> {
        let Sent(sent, by_the_wall) = self.sent;
        (sent.elapsed().max(by_the_wall.elapsed().ok()?) < KNOWN).then(|| self.time())
    }

    /// Tells whether the store has set back its clock, where it tells this time in answer to what was sent then.
    pub(super) fn was_set_back(self, told: Timestamp, sent: Sent) -> bool {
        let since = sent.0.saturating_duration_since(self.sent.0).as_millis();
        u128::from(told.0) + SET_BACK < u128::from(self.told.0) + since
    }
}

impl Tables {
    /// Begins to work on what is at hand, if all is that is named.
    fn go_ahead(&mut self, threads: &[&ThreadKey], runs: &[&RunKey]) -> Option<Timestamp> {
        let now = self.clock?.now()?;
        let mut versions = HashMap::with_capacity(runs.len());
        {
            let cache = self.cache.borrow();
            for key in threads {
                let thread = cache.thread_named(key)?;
                versions.insert(thread, cache.version_of(thread)?);
            }
            for key in runs {
                let place = cache.run_named(key).filter(|place| cache.has_run(place.run))?;
                versions.insert(place.thread, cache.version_of(place.thread)?);
            }
        }
        self.reset();
        self.locked.replace(versions);
        self.is_ahead = true;
        Some(now)
    }
}

impl Writer {
    /// Works requests out ahead and commits them; tells whether that could be done.
    pub(super) fn go_ahead(&mut self, group: &mut [Request]) -> Result<bool, Setback> {
        if self.wary > 0 || group.iter().any(|request| !request.command.continues_run()) {
            self.wary = self.wary.saturating_sub(1);
            return Ok(false);
        }
        let (threads, runs): (Vec<_>, Vec<_>) = group.iter().map(|request| request.command.keys()).unzip();
        let threads: Vec<_> = threads.iter().flatten().collect();
        let runs: Vec<_> = runs.iter().flatten().collect();
        let Some(now) = self.txn.store.go_ahead(&threads, &runs) else { return Ok(false) };
        self.txn.now = now;
        let done = self.work_ahead(group);
        self.txn.store.is_ahead = false;
        match done {
            Ok(()) => Ok(true),
            // Also what cannot be read may only seem so: others may have written meanwhile.
            Err(Setback::Failed(Failure::NotAtHand | Failure::Damaged(_))) => {
                self.txn.forget();
                Ok(false)
            }
            Err(Setback::Failed(Failure::Overtaken)) => {
                self.address.count.retried();
                self.txn.forget();
                self.wary = WARY;
                Ok(false)
            }
            Err(setback) => Err(setback),
        }
    }

    fn work_ahead(&mut self, group: &mut [Request]) -> Result<(), Setback> {
        for request in group {
            self.txn.execute(&mut request.command)?;
        }
        let versions = self.txn.store.locked.borrow().clone();
        let doubt = Doubt::ahead(versions, Flushed::gather(&mut self.txn, self.terms)?);
        self.commit_or_doubt(doubt)
    }
}

/// The versions that threads must have, in the order of their numbers.
pub(super) struct Versions {
    threads: Vec<i64>,
    versions: Vec<i64>,
}

impl Versions {
    pub(super) fn new(versions: HashMap<i64, i64>) -> Self {
        let versions: BTreeMap<_, _> = versions.into_iter().collect();
        let (threads, versions) = versions.into_iter().unzip();
        Self { threads, versions }
    }

    /// Locks the threads, makes sure of their versions, writes what is new and commits; tells the store's time.
    pub(super) fn commit(&self, connection: &Connection, flushed: &Flushed) -> Db<Option<Timestamp>> {
        // Dividing by 0 is an error, which makes all that follows fail.
        let held = format!(
            "SELECT {NOW} / (coalesce(array_agg(version ORDER BY id), '{{}}') = $2::bigint[])::int FROM \
             (SELECT id, version FROM thread WHERE id = ANY($1) ORDER BY id FOR UPDATE) AS held"
        );
        let by: By<'_> = &[&self.threads, &self.versions];
        let told = flushed.commit_after((&held, by), connection);
        let told = told.map_err(|failure| match failure {
            Failure::Postgres(error) if error.code() == Some(&SqlState::DIVISION_BY_ZERO) => {
                Failure::Overtaken
            }
            failure => failure,
        })?;
        // It is committed now, whatever it tells.
        Ok(told.map(|row| time(&row, 0)))
    }

    /// Makes sure that what was to be committed with these versions never will be, unless it was. Nothing where that
    /// cannot be told any more.
    pub(super) fn settle(&self, connection: &Connection, flushed: &Flushed) -> Db<Option<bool>> {
        connection.run("BEGIN")?;
        let settled = self.settle_locked(connection, flushed);
        match &settled {
            Ok(_) => connection.run("COMMIT")?,
            // Where also this fails the connection is gone, and with it the transaction.
            Err(_) => drop(connection.run("ROLLBACK")),
        }
        settled
    }

    fn settle_locked(&self, connection: &Connection, flushed: &Flushed) -> Db<Option<bool>> {
        let sql = "SELECT id, version FROM thread WHERE id = ANY($1) ORDER BY id FOR UPDATE";
        let held = connection.query(sql, &[&self.threads])?;
        let held: HashMap<i64, i64> = held.iter().map(|row| (row.get(0), row.get(1))).collect();
        // It changes all of them or none.
        let changed = flushed.changed();
        let mut changed =
            self.threads.iter().zip(&self.versions).filter(|(thread, _)| changed.contains(thread));
        let unchanged = changed.find(|(thread, version)| held.get(thread) == Some(version));
        Ok(match unchanged {
            _ if flushed.is_found(connection)? => Some(true),
            Some((thread, _)) => {
                // Whatever may still be on its way finds another version.
                let version = fastrand::i64(1..i64::MAX / 2);
                connection.execute("UPDATE thread SET version = $2 WHERE id = $1", &[thread, &version])?;
                Some(false)
            }
            None => flushed.would_be_found(connection)?.then_some(false),
        })
    }
}
