//! Moves the leases of all open runs after an outage of the store, in which nobody could renew one.

use super::connection::PgConnection;
use super::error::PgResult;
use super::rows::to_i64;
use super::txn_store;
use super::writer::LeaseTerms;

/// Leases that one statement renews.
const AT_ONCE: i64 = 1000;

/// The renewable kinds of leases, and their durations.
fn terms_of(terms: LeaseTerms) -> [(i16, i64); 2] {
    [(1, to_i64(terms.lease)), (2, to_i64(terms.grace))]
}

/// Extends every lease to at least a full term, in batches. Concurrent writers renew their leases themselves.
pub(super) fn renew_all(connection: &PgConnection, terms: LeaseTerms) -> PgResult<()> {
    let now = to_i64(txn_store::now(connection)?.0);
    let sql = "UPDATE run SET lease_until = $2 WHERE id IN (SELECT id FROM run WHERE lease > 0 AND lease = $1 \
               AND lease_until < $2 ORDER BY lease_until LIMIT $3 FOR UPDATE SKIP LOCKED)";
    for (lease, term) in terms_of(terms) {
        let until = now.saturating_add(term);
        while connection.execute(sql, &[&lease, &until, &AT_ONCE])? >= AT_ONCE.unsigned_abs() {}
    }
    Ok(())
}

/// Moves all leases by a gap. Concurrent writers renew their leases themselves.
pub(super) fn move_all(connection: &PgConnection, terms: LeaseTerms, now: i64, gap: i64) -> PgResult<()> {
    if gap > 0 {
        let sql = "UPDATE run SET lease_until = lease_until + $1 WHERE id IN \
                   (SELECT id FROM run WHERE lease IN (1, 2) FOR UPDATE SKIP LOCKED)";
        return connection.execute(sql, &[&gap]).map(drop);
    }
    // The clock has moved back. Leases renewed since are right.
    let sql = "UPDATE run SET lease_until = $2 WHERE id IN \
               (SELECT id FROM run WHERE lease = $1 AND lease_until > $2 FOR UPDATE SKIP LOCKED)";
    for (lease, term) in terms_of(terms) {
        // A term may be a little longer than configured: see commit/write_set/runs.rs.
        let most = now.saturating_add(term).saturating_add(term / 8);
        connection.execute(sql, &[&lease, &most])?;
    }
    Ok(())
}

/// Renews leases that have expired all the same: a concurrent write may be older than the gap.
pub(super) fn renew_late(connection: &PgConnection, terms: LeaseTerms, now: i64) -> PgResult<()> {
    let sql = "UPDATE run SET lease_until = $2 WHERE id IN (SELECT id FROM run WHERE lease > 0 AND lease = $1 \
               AND lease_until <= $3 ORDER BY id FOR UPDATE)";
    for (lease, term) in terms_of(terms) {
        connection.execute(sql, &[&lease, &now.saturating_add(term), &now])?;
    }
    Ok(())
}
