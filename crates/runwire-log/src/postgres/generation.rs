//! The generation of a store: detects that it was restored from a backup, or that a replica took over.
//!
//! Such a store may lack commits, so Redis entries of its former life must not be believed. The store remembers its
//! identity, and gets a new generation when that changes. The generation is part of every name in Redis.

use super::connection::PgConnection;
use super::error::{PgError, PgResult};
use crate::txn::mint;

/// What identifies a store: the database, the table, the server, and its timeline. A new timeline begins wherever a
/// backup is restored or a replica is promoted.
const IDENTITY_QUERIES: [&str; 4] = [
    "SELECT oid::text FROM pg_database WHERE datname = current_database()",
    "SELECT 'store'::regclass::oid::text",
    "SELECT system_identifier::text FROM pg_control_system()",
    "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)",
];
/// Stands for a part that is unknown: not every role may query it, and not every server answers.
const UNKNOWN: &str = "-";

/// Starts a new generation if the identity has changed, and returns the current one.
///
/// Restoring a backup or promoting a replica ends all connections, so it is enough to check each new one.
pub(super) fn check(connection: &PgConnection) -> PgResult<String> {
    let here = identity(connection)?;
    loop {
        let row = connection.one("SELECT generation, history FROM store", &[])?;
        let (generation, was): (String, Option<String>) = (row.get(0), row.get(1));
        let (now, is_same) = compare(was.as_deref(), &here);
        if was.as_ref() == Some(&now) {
            return Ok(generation);
        }
        let next = if is_same { generation } else { mint() };
        let sql = "UPDATE store SET history = $1, generation = $2 WHERE history IS NOT DISTINCT FROM $3";
        // Another node may have updated it; then compare with that.
        if connection.execute(sql, &[&now, &next, &was])? == 1 {
            return Ok(next);
        }
    }
}

fn identity(connection: &PgConnection) -> PgResult<Vec<String>> {
    let part = |sql: &&str| match connection.one(sql, &[]) {
        Ok(row) => Ok(row.get(0)),
        Err(PgError::Postgres(error)) if error.as_db_error().is_some() => Ok(UNKNOWN.to_owned()),
        Err(failure) => Err(failure),
    };
    IDENTITY_QUERIES.iter().map(part).collect()
}

/// Merges the known parts, and returns whether they agree. An unknown part agrees with any.
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
    fn an_unknown_part_of_the_identity_contradicts_nothing() {
        let here = |identity: [&str; 4]| identity.map(str::to_owned).to_vec();
        let all = here(["1", "2", "3", "4"]);
        assert_eq!(compare(None, &all), ("1/2/3/4".into(), true));
        assert_eq!(compare(Some("1/2/-/4"), &all), ("1/2/3/4".into(), true));
        assert_eq!(compare(Some("1/2/3/4"), &here(["1", "2", "-", "-"])), ("1/2/3/4".into(), true));
        assert_eq!(compare(Some("1/2/3/4"), &here(["1", "2", "-", "5"])), ("1/2/3/5".into(), false));
    }
}
