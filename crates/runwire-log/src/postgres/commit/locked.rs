//! The locked state: a transaction locks its threads, and loads heads that are not cached, in one round trip. Then it
//! executes its commands.
//!
//! A thread is locked until its commit has reached the disk. A group that waited for all of its threads would wait
//! for most of the other nodes' groups, one after the other, and hold its own locks meanwhile. So where nodes share
//! threads a writer skips locked threads, and defers their commands to its next group. Then it waits for a thread that
//! is locked again.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use runwire_model::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::outcome::{CommitAttempt, OutcomeProof};
use super::write_set::WriteSet;
use super::{AttemptError, Committed, Group, QueuedCommand};
use crate::key::{RunKey, ThreadKey};
use crate::postgres::connection::Params;
use crate::postgres::error::{PgError, PgResult};
use crate::postgres::head_cache::HeadCache;
use crate::postgres::rows::{
    RUN_COLUMNS, THREAD_COLUMNS, add_producers, producer_of_row, run_of_row, thread_of_row, time,
};
use crate::postgres::store_clock::SentAt;
use crate::postgres::txn_store::{NOW, PgTxnStore};
use crate::postgres::writer::PgWriter;
use crate::txn::ProducerHead;

impl PgWriter {
    /// Locks the threads of a group, then executes and commits its commands; returns `None` if all were deferred.
    pub(super) fn commit_locked(&mut self, group: &mut Group) -> Result<Option<Committed>, AttemptError> {
        let (mut threads, runs): (Vec<_>, Vec<_>) =
            group.iter().map(|request| request.command.keys()).unzip();
        for ((request, thread), run) in group.iter().zip(&mut threads).zip(&runs) {
            let is_known =
                run.first().is_some_and(|run| self.txn.store.cache.borrow().run_location(run).is_some());
            if thread.is_empty() && !is_known {
                thread.extend(request.command.default_thread());
            }
        }
        let threads: Vec<_> = threads.iter().flatten().collect();
        let runs: Vec<_> = runs.iter().flatten().collect();
        let wanted: Vec<_> = group.iter().flat_map(|request| &request.wanted).copied().collect();
        let lock_mode = self.lock_mode(group);
        let begun = self.txn.store.begin(&threads, &runs, &wanted, &lock_mode)?;
        self.txn.now = begun.now;
        if let LockMode::SkipLocked { .. } = lock_mode {
            self.defer_busy(group);
        }
        if group.is_empty() {
            self.txn.store.connection.run("ROLLBACK")?;
            return Ok(None);
        }
        for request in group {
            self.txn.store.next();
            let executed = self.txn.execute(&mut request.command);
            request.wanted.extend(self.txn.store.wanted.take());
            executed?;
        }
        let write_set = WriteSet::collect(&mut self.txn, self.terms)?;
        let proof = OutcomeProof::Transaction(begun.transaction);
        self.finish(CommitAttempt { proof, write_set }).map(Some)
    }

    /// Chooses how the threads of a group are locked.
    fn lock_mode(&self, group: &[QueuedCommand]) -> LockMode {
        if self.pessimistic_commits == 0 {
            return LockMode::Cached;
        }
        if group.iter().any(|request| !request.wanted.is_empty()) {
            return LockMode::Reload;
        }
        let Some(threads) = group.iter().map(|request| self.threads_of(request)).collect::<Option<Vec<_>>>()
        else {
            return LockMode::Reload;
        };
        let first = threads.first().cloned().unwrap_or_default();
        if threads.iter().all(|threads| *threads == first) {
            return LockMode::Reload;
        }
        let deferred = group.iter().zip(threads).filter(|(request, _)| request.was_deferred);
        LockMode::SkipLocked { except: deferred.flat_map(|(_, threads)| threads).collect() }
    }

    /// Defers the commands whose threads are not locked by this transaction.
    fn defer_busy(&mut self, group: &mut Group) {
        let is_free = |request: &QueuedCommand| {
            let locked = self.txn.store.locked.borrow();
            self.threads_of(request).is_some_and(|threads| threads.iter().all(|id| locked.contains_key(id)))
        };
        let (free, mut busy): (Vec<_>, Vec<_>) = group.drain(..).partition(is_free);
        *group = free;
        busy.iter_mut().for_each(|request| request.was_deferred = true);
        self.deferred.append(&mut busy);
    }

    /// Returns the threads of a command, if their numbers are cached.
    fn threads_of(&self, request: &QueuedCommand) -> Option<Vec<i64>> {
        let (cache, (threads, runs)) = (self.txn.store.cache.borrow(), request.command.keys());
        let threads = threads.iter().map(|thread| cache.thread_id(thread));
        let of_runs = runs.iter().map(|run| cache.run_location(run).map(|location| location.thread));
        let mut threads = threads.chain(of_runs).collect::<Option<Vec<_>>>()?;
        threads.dedup();
        (!threads.is_empty()).then_some(threads)
    }
}

/// How a transaction locks threads, and which heads it loads.
#[derive(Debug)]
enum LockMode {
    /// Waits for all locks. Cached heads are used if they are current.
    Cached,
    /// Waits for all locks. Cached heads are most likely stale: all are loaded with the locks.
    Reload,
    /// Like `Reload`, but skips locked threads, except for these. All numbers must be known.
    SkipLocked { except: Vec<i64> },
}

/// A transaction that has begun.
struct BegunTransaction {
    /// The store's time.
    now: Timestamp,
    /// Its transaction id.
    transaction: String,
}

/// The threads and runs that a transaction needs: by number where known, else by name.
#[derive(Default)]
struct LockTargets<'a> {
    threads: Vec<i64>,
    runs: Vec<i64>,
    thread_tenants: Vec<&'a str>,
    thread_names: Vec<&'a str>,
    run_tenants: Vec<&'a str>,
    run_names: Vec<&'a str>,
}

impl<'a> LockTargets<'a> {
    fn of(cache: &HeadCache, threads: &[&'a ThreadKey], runs: &[&'a RunKey]) -> Self {
        let mut needed = Self::default();
        for key in threads {
            match cache.thread_id(key) {
                Some(id) => needed.threads.push(id),
                None => {
                    needed.thread_tenants.push(&key.tenant);
                    needed.thread_names.push(&key.id);
                }
            }
        }
        for key in runs {
            match cache.run_location(key) {
                Some(location) => {
                    needed.threads.push(location.thread);
                    needed.runs.push(location.run);
                }
                None => {
                    needed.run_tenants.push(&key.tenant);
                    needed.run_names.push(&key.id);
                }
            }
        }
        needed
    }

    fn names(&self) -> usize {
        self.thread_names.len() + self.run_names.len()
    }

    /// Returns the parameters of the statements for threads, and of those for runs.
    fn named(&self) -> [Vec<&(dyn ToSql + Sync)>; 2] {
        [
            vec![&self.thread_tenants, &self.thread_names, &self.run_tenants, &self.run_names, &self.threads],
            vec![&self.run_tenants, &self.run_names, &self.runs],
        ]
    }

    /// The same if all numbers are known.
    fn numbered(&self) -> [Vec<&(dyn ToSql + Sync)>; 2] {
        [vec![&self.threads], vec![&self.runs]]
    }
}

/// Makes a query for the numbers of named rows, in a table with an index on tenant and name.
///
/// Its shape forces that index. Of a table that was never analysed the planner would take any that begins with the
/// tenant.
fn named(column: &str, table: &str, tenants: &str, names: &str) -> String {
    format!(
        "SELECT found.{column} FROM unnest({tenants}::text[], {names}::text[]) AS known (tenant, name) \
         CROSS JOIN LATERAL (SELECT {column}, tenant, name FROM {table} \
         WHERE ({table}.tenant, {table}.name) >= (known.tenant, known.name) \
         ORDER BY {table}.tenant, {table}.name LIMIT 1) AS found \
         WHERE found.tenant = known.tenant AND found.name = known.name"
    )
}

/// The statements that lock threads and load heads.
struct Statements {
    lock: String,
    /// Locks threads that are not locked.
    lock_unlocked: String,
    /// Load threads, their producers, runs, their producers.
    loads: [String; 4],
}

impl Statements {
    /// Makes the statements for arrays of numbers.
    fn new(threads: &str, runs: &str) -> Self {
        let lock = format!("SELECT id, version FROM thread WHERE id = ANY({threads}) ORDER BY id FOR UPDATE");
        // One lookup for each owner; with `owner = ANY(…)` the planner may use the scope alone, and read all rows.
        let producers = |scope: &str, owners: &str| {
            format!(
                "SELECT producer.* FROM unnest({owners}) AS known (owner) CROSS JOIN LATERAL \
                 (SELECT owner, name, epoch, next, decoder FROM producer \
                 WHERE scope = '{scope}' AND producer.owner = known.owner OFFSET 0) AS producer"
            )
        };
        Self {
            lock_unlocked: format!("{lock} SKIP LOCKED"),
            lock,
            loads: [
                format!("SELECT {THREAD_COLUMNS} FROM thread WHERE id = ANY({threads})"),
                producers("thread", threads),
                format!(
                    "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread \
                     WHERE run.id = ANY({runs})"
                ),
                producers("run", runs),
            ],
        }
    }

    /// Returns the statements that load heads, with their parameters.
    fn loads<'a>(&'a self, [threads, runs]: &'a [Vec<&(dyn ToSql + Sync)>; 2]) -> [(&'a str, Params<'a>); 4] {
        let [one, two, three, four] = &self.loads;
        [(one, threads), (two, threads), (three, runs), (four, runs)]
    }
}

static BY_NAME: LazyLock<Statements> = LazyLock::new(|| {
    let (of_threads, by_runs) = (named("id", "thread", "$1", "$2"), named("thread", "run", "$3", "$4"));
    let of_runs = named("id", "run", "$1", "$2");
    Statements::new(
        &format!("ARRAY({of_threads} UNION ALL {by_runs} UNION ALL SELECT unnest($5::bigint[]))"),
        &format!("ARRAY({of_runs} UNION ALL SELECT unnest($3::bigint[]))"),
    )
});
/// Used if all numbers are known: no name has to be resolved.
static BY_NUMBER: LazyLock<Statements> = LazyLock::new(|| Statements::new("$1::bigint[]", "$1::bigint[]"));

impl PgTxnStore {
    /// Begins a transaction, and locks threads in the order of their numbers, so that no two transactions deadlock.
    fn begin(
        &mut self,
        threads: &[&ThreadKey],
        runs: &[&RunKey],
        wanted: &[i64],
        locking: &LockMode,
    ) -> PgResult<BegunTransaction> {
        self.reset();
        let mut needed = LockTargets::of(&self.cache.borrow(), threads, runs);
        needed.threads.extend(wanted);
        let loads_all = !matches!(locking, LockMode::Cached) || needed.names() > 0;
        let (statements, needs) = match needed.names() {
            0 => (&*BY_NUMBER, needed.numbered()),
            _ => (&*BY_NAME, needed.named()),
        };
        let late: Params<'_> = match locking {
            LockMode::SkipLocked { except } => &[except],
            LockMode::Cached | LockMode::Reload => &[],
        };
        let mut statements_to_run: Vec<(&str, Params<'_>)> = match locking {
            // A transaction that waits holds only locks that it has waited for.
            LockMode::SkipLocked { .. } => {
                vec![(&statements.lock, late), (&statements.lock_unlocked, &needs[0])]
            }
            LockMode::Cached | LockMode::Reload => vec![(&statements.lock, &needs[0])],
        };
        let locks = statements_to_run.len();
        // The time is read after all locks are held.
        let begun = format!("SELECT {NOW}, pg_current_xact_id()::text");
        statements_to_run.push((&begun, &[]));
        let new = i64::try_from(needed.names()).unwrap_or(i64::MAX);
        let numbers = "SELECT nextval('thread_id'), nextval('run_id') FROM generate_series(1, $1::bigint)";
        let numbered: Params<'_> = &[&new];
        if new > 0 {
            statements_to_run.push((numbers, numbered));
        }
        if loads_all {
            // Each sees what was committed when all locks were held.
            statements_to_run.extend(statements.loads(&needs));
        }
        let sent = SentAt::now();
        let answers = self.connection.run_pipelined(Some("BEGIN"), &statements_to_run, None)?;
        let mut answers = answers.into_iter();
        for row in answers.by_ref().take(locks).flatten() {
            let (thread, version) = (row.get(0), row.get(1));
            self.locked.borrow_mut().insert(thread, version);
            self.cache.borrow_mut().check(thread, version);
        }
        let mut next = || answers.next().ok_or_else(|| PgError::Damaged("an answer is missing".into()));
        let begun = next()?;
        let begun = begun.first().ok_or_else(|| PgError::Damaged("the store returned no time".into()))?;
        let begun = BegunTransaction { now: time(begun, 0), transaction: begun.get(1) };
        self.set_clock(begun.now, sent);
        if new > 0 {
            for row in next()? {
                self.threads.push_back(row.get(0));
                self.runs.push_back(row.get(1));
            }
        }
        if loads_all {
            let loaded = [next()?, next()?, next()?, next()?];
            self.cache_loaded(&loaded)?;
            self.record_absent(threads, runs, &loaded);
        } else {
            self.load_stale(&needed)?;
        }
        Ok(begun)
    }

    /// Loads heads that another node has changed.
    fn load_stale(&self, needed: &LockTargets<'_>) -> PgResult<()> {
        let (mut stale, cache) = (LockTargets::default(), self.cache.borrow());
        stale.threads.extend(needed.threads.iter().filter(|id| !cache.has_thread(**id)));
        stale.runs.extend(needed.runs.iter().filter(|id| !cache.has_run(**id)));
        drop(cache);
        if stale.threads.is_empty() && stale.runs.is_empty() {
            return Ok(());
        }
        self.cache_loaded(&self.connection.query_all(&BY_NUMBER.loads(&stale.numbered()))?)
    }

    /// Caches loaded heads of locked threads.
    fn cache_loaded(&self, loaded: &[Vec<Row>]) -> PgResult<()> {
        let [threads, thread_producers, runs, run_producers] = loaded else {
            return Err(PgError::Damaged("an answer is missing".into()));
        };
        let (mut cache, locked) = (self.cache.borrow_mut(), self.locked.borrow());
        let mut of_threads = by_owner(thread_producers)?;
        for row in threads {
            let mut thread = thread_of_row(row);
            // Another node that created it after the locks were taken may still write to it.
            let Some(version) = locked.get(&thread.id) else { continue };
            if !cache.has_thread(thread.id) {
                thread.producers = of_threads.remove(&thread.id).unwrap_or_default();
                cache.keep_thread(Box::new(thread), *version);
            }
        }
        let mut of_runs = by_owner(run_producers)?;
        for row in runs {
            let mut run = run_of_row(row)?;
            let Some(version) = locked.get(&run.thread) else { continue };
            if !cache.has_run(run.id) {
                add_producers(of_runs.remove(&run.id).unwrap_or_default(), &mut run);
                cache.keep_run(Box::new(run), *version);
            }
        }
        Ok(())
    }

    /// Remembers which names do not exist, now that all locks are held; a later one is none of them.
    fn record_absent(&mut self, threads: &[&ThreadKey], runs: &[&RunKey], loaded: &[Vec<Row>; 4]) {
        let names = |rows: &'_ [Row]| -> HashSet<(String, String)> {
            rows.iter().map(|row| (row.get(1), row.get(2))).collect()
        };
        let (seen_threads, seen_runs) = (names(&loaded[0]), names(&loaded[2]));
        let cache = self.cache.borrow();
        let seen = |names: &HashSet<(String, String)>, tenant: &str, id: &str| {
            names.contains(&(tenant.to_owned(), id.to_owned()))
        };
        let absent = threads
            .iter()
            .filter(|key| cache.thread_id(key).is_none() && !seen(&seen_threads, &key.tenant, &key.id));
        self.absent_threads.extend(absent.map(|key| (*key).clone()));
        let absent = runs
            .iter()
            .filter(|key| cache.run_location(key).is_none() && !seen(&seen_runs, &key.tenant, &key.id));
        self.absent_runs.extend(absent.map(|key| (*key).clone()));
    }
}

type Producers = HashMap<String, ProducerHead>;

fn by_owner(rows: &[Row]) -> PgResult<HashMap<i64, Producers>> {
    let mut producers: HashMap<i64, Producers> = HashMap::new();
    for row in rows {
        let (name, producer) = producer_of_row(row, 1)?;
        producers.entry(row.get(0)).or_default().insert(name, producer);
    }
    Ok(producers)
}
