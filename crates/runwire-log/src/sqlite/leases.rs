//! Leases of open runs, in memory.
//!
//! They use a monotonic clock: after a restart every run gets a full term.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use runwire_model::Timestamp;
use rusqlite::{Connection, Row};

use super::SqliteOptions;
use super::error::SqliteResult;
use crate::txn::{Lease, RunHead};
use crate::unreadable_rows::UnreadableRows;

/// The leases of all open runs.
#[derive(Debug)]
pub(super) struct Leases {
    /// Each with the time when its term began.
    runs: HashMap<i64, (Lease, Instant)>,
    /// How long a run may be silent.
    term: Duration,
    /// Grace period of a cancelled run.
    grace: Duration,
}

impl Leases {
    /// Starts a full term for every open run. One that cannot be read has none, so that nothing is done to it.
    pub(super) fn open(
        connection: &Connection,
        options: &SqliteOptions,
        unreadable: &UnreadableRows,
    ) -> SqliteResult<Self> {
        let sql = "SELECT id, status, deadline, CASE WHEN json_valid(head) THEN json_extract(head, '$.summary.cancel_requested') END FROM run \
                   INDEXED BY run_open WHERE status IN ('pending', 'running', 'suspended')";
        let mut statement = connection.prepare(sql)?;
        let start = Instant::now();
        let mut runs = HashMap::new();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            match lease_of_row(row) {
                Ok(lease) => drop(runs.insert(id, (lease, start))),
                Err(failure) if failure.is_damage() => unreadable.insert_run(id, &failure),
                Err(failure) => return Err(failure),
            }
        }
        Ok(Self { runs, term: options.lease, grace: options.cancel_grace })
    }

    /// Returns the lease of a run.
    pub(super) fn of(&self, run: i64) -> Lease {
        self.runs.get(&run).map_or(Lease::None, |(lease, _)| *lease)
    }

    /// Stores the changed lease of a run.
    pub(super) fn save(&mut self, run: &mut RunHead) {
        if std::mem::take(&mut run.leased) {
            match run.lease {
                Lease::None => self.runs.remove(&run.id),
                lease => self.runs.insert(run.id, (lease, Instant::now())),
            };
        }
    }

    /// Lists the runs whose lease has expired.
    pub(super) fn due(&self, now: Timestamp) -> Vec<i64> {
        let clock = Instant::now();
        let is_due = |(lease, since): &(Lease, Instant)| match lease {
            Lease::None => false,
            Lease::Active => *since + self.term <= clock,
            Lease::Stopping => *since + self.grace <= clock,
            Lease::AwaitingAnswer(until) => *until <= now.0,
        };
        self.runs.iter().filter(|(_, lease)| is_due(lease)).map(|(run, _)| *run).collect()
    }
}

/// Returns the lease that an open run begins with: id, status, deadline, and whether a cancel was requested.
fn lease_of_row(row: &Row<'_>) -> SqliteResult<Lease> {
    let (status, deadline): (String, Option<u64>) = (row.get(1)?, row.get(2)?);
    let stopping = row.get::<_, Option<bool>>(3)? == Some(true);
    Ok(match (status.as_str(), deadline) {
        ("suspended", _) | (_, None) if stopping => Lease::Stopping,
        // Also a run that was being imported has a deadline, which is long.
        (_, Some(deadline)) => Lease::AwaitingAnswer(deadline),
        _ => Lease::Active,
    })
}
