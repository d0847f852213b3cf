//! Which life of the store this is.
//!
//! A backup that is restored, or a replica that takes over, may lack what was committed: what Redis still tells of the
//! life before must not be believed. So the store remembers where it was, and where it finds itself elsewhere it gets
//! a new generation, which is part of every name in Redis.

use super::connection::Connection;
use super::failure::{Db, Failure};
use crate::work::mint;

/// The server, unless it does not say which one it is.
const SERVER: &str = "SELECT system_identifier::text FROM pg_control_system()";
/// Its timeline: another one begins wherever a history is taken up from a backup or by a replica.
const TIMELINE: &str = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)";
/// The database, and the table.
const PLACE: &str = "SELECT concat_ws('/', (SELECT oid FROM pg_database WHERE datname = current_database()), \
                     'store'::regclass::oid)";

/// Begins a new generation where the store is not where it was, and tells which one it has.
///
/// Whoever restores a backup or takes over ends all connections, so it is enough to look with each new one.
pub(super) fn check(connection: &Connection) -> Db<String> {
    let mut here = connection.one(PLACE, &[])?.get::<_, String>(0);
    for sql in [SERVER, TIMELINE] {
        // Not every role may ask, and not every server answers. What cannot be known is the same each time.
        match connection.one(sql, &[]) {
            Ok(row) => here = format!("{here}/{}", row.get::<_, String>(0)),
            Err(Failure::Postgres(error)) if error.as_db_error().is_some() => here.push_str("/-"),
            Err(failure) => return Err(failure),
        }
    }
    let sql = "UPDATE store SET history = $1, generation = CASE WHEN history IS NULL THEN generation ELSE $2 END \
               WHERE history IS DISTINCT FROM $1";
    connection.execute(sql, &[&here, &mint()])?;
    Ok(connection.one("SELECT generation FROM store", &[])?.get(0))
}
