//! RunFilter life of the store this is.
//!
//! A backup that is restored, or a replica that takes over, may lack what was committed: what Redis still tells of the
//! life before must not be believed. So the store remembers where it was, and where it finds itself elsewhere it gets
//! a new generation, which is part of every name in Redis.

use super::connection::PgConnection;
use super::error::{PgError, PgResult};
use crate::txn::mint;

/// Where a store can be: the database, the table, the server, and its timeline. Another timeline begins wherever a
/// history is taken up from a backup or by a replica.
const PLACES: [&str; 4] = [
    "SELECT oid::text FROM pg_database WHERE datname = current_database()",
    "SELECT 'store'::regclass::oid::text",
    "SELECT system_identifier::text FROM pg_control_system()",
    "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)",
];
/// Stands for what cannot be known: not every role may ask, and not every server answers.
const UNKNOWN: &str = "-";

/// Begins a new generation where the store is not where it was, and returns which one it has.
///
/// Whoever restores a backup or takes over ends all connections, so it is enough to look with each new one.
pub(super) fn check(connection: &PgConnection) -> PgResult<String> {
    let here = places(connection)?;
    loop {
        let row = connection.one("SELECT generation, history FROM store", &[])?;
        let (generation, was): (String, Option<String>) = (row.get(0), row.get(1));
        let (now, is_same) = compare(was.as_deref(), &here);
        if was.as_ref() == Some(&now) {
            return Ok(generation);
        }
        let next = if is_same { generation } else { mint() };
        let sql = "UPDATE store SET history = $1, generation = $2 WHERE history IS NOT DISTINCT FROM $3";
        // Another node may have been faster; then what it found is looked at.
        if connection.execute(sql, &[&now, &next, &was])? == 1 {
            return Ok(next);
        }
    }
}

fn places(connection: &PgConnection) -> PgResult<Vec<String>> {
    let place = |sql: &&str| match connection.one(sql, &[]) {
        Ok(row) => Ok(row.get(0)),
        Err(PgError::Postgres(error)) if error.as_db_error().is_some() => Ok(UNKNOWN.to_owned()),
        Err(failure) => Err(failure),
    };
    PLACES.iter().map(place).collect()
}

/// Returns what is known now, and whether that can be where the store was. What is unknown contradicts nothing.
fn compare(was: Option<&str>, here: &[String]) -> (String, bool) {
    let mut was = was.into_iter().flat_map(|was| was.split('/'));
    let (mut now, mut is_same) = (Vec::new(), true);
    for here in here {
        let was = was.next().unwrap_or(UNKNOWN);
        is_same &= was == UNKNOWN || here == UNKNOWN || was == here;
        now.push(if here == UNKNOWN { was } else { here });
    }
    (now.join("/"), is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_contradicts_nothing_and_stays_known() {
        let here = |places: [&str; 4]| places.map(str::to_owned).to_vec();
        let all = here(["1", "2", "3", "4"]);
        assert_eq!(compare(None, &all), ("1/2/3/4".into(), true));
        assert_eq!(compare(Some("1/2/-/4"), &all), ("1/2/3/4".into(), true));
        assert_eq!(compare(Some("1/2/3/4"), &here(["1", "2", "-", "-"])), ("1/2/3/4".into(), true));
        assert_eq!(compare(Some("1/2/3/4"), &here(["1", "2", "-", "5"])), ("1/2/3/5".into(), false));
    }
}
