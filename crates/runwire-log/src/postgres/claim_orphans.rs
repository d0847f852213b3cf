//! Claims open runs whose node is gone.

use std::sync::PoisonError;

use super::connection::Params;
use super::error::{PgError, PgResult};
use super::nodes::{Membership, NodeRecord};
use super::reader::PgReader;
use super::rows::{RUN_COLUMNS, run_of_row, to_i64};
use super::txn_store;
use super::writer::LeaseTerms;
use crate::error::LogError;
use crate::info::OrphanedRun;
use crate::unreadable_rows::UnreadableRows;

const IS_OPEN: &str = "status IN ('pending', 'running', 'suspended')";

impl PgReader {
    /// Assigns open runs of gone nodes to this one, and returns them.
    pub(super) fn claim_orphans(
        &self,
        membership: &Membership,
        terms: LeaseTerms,
        agents: &[String],
        limit: usize,
    ) -> Result<Vec<OrphanedRun>, LogError> {
        let mut claims = membership.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let unreadable = &*membership.unreadable;
        self.connection.run("BEGIN")?;
        let taken =
            self.lock_orphans(&membership.node, &claims, &unreadable.runs(), agents, limit).and_then(|ids| {
                let orphans = self.read_orphans(&ids, unreadable)?;
                let ids: Vec<i64> = orphans.iter().map(|(id, _)| *id).collect();
                // Remembered until the commit is known to have happened.
                claims.extend(&ids);
                claims.sort_unstable();
                claims.dedup();
                self.set_owner(&membership.node, terms, &ids)?;
                Ok(orphans)
            });
        match &taken {
            Ok(orphans) => {
                self.connection.run("COMMIT")?;
                claims.retain(|claim| orphans.iter().all(|(id, _)| id != claim));
            }
            Err(_) => drop(self.connection.run("ROLLBACK")),
        }
        let taken = taken?.into_iter().map(|(_, orphans)| orphans).collect();
        if !claims.is_empty() {
            // A run that belongs to another node by now, or has ended, is claimed no more.
            let sql = format!("SELECT id FROM run WHERE id = ANY($1) AND owner = $2 AND {IS_OPEN}");
            if let Ok(rows) = self.connection.query(&sql, &[&*claims, &&*membership.node.id]) {
                *claims = rows.iter().map(|row| row.get(0)).collect();
            }
        }
        Ok(taken)
    }

    /// Finds orphaned runs, and locks them; one whose row is locked is in use.
    ///
    /// Only a live node claims, and only if some node has sent a heartbeat lately: before that, a node that seems to
    /// be gone may just have been unable to send one.
    fn lock_orphans(
        &self,
        node: &NodeRecord,
        claims: &[i64],
        unreadable: &[i64],
        agents: &[String],
        limit: usize,
    ) -> PgResult<Vec<i64>> {
        let sql = format!(
            "SELECT id FROM run WHERE agent = ANY($1) AND owner IS NOT NULL AND {IS_OPEN} \
             AND (owner = $2 AND id = ANY($3) \
             OR NOT EXISTS (SELECT 1 FROM node WHERE node.id = run.owner AND seen_until > $4)) \
             AND EXISTS (SELECT 1 FROM node WHERE node.id = $2 AND seen_until > $4) \
             AND EXISTS (SELECT 1 FROM store WHERE alive_until > $4) \
             AND id <> ALL($6) ORDER BY id LIMIT $5 FOR UPDATE OF run SKIP LOCKED"
        );
        let now = to_i64(txn_store::now(&self.connection)?.0);
        let params: Params<'_> = &[&agents, &&*node.id, &claims, &now, &to_i64(limit as u64), &unreadable];
        Ok(self.connection.query(&sql, params)?.iter().map(|row| row.get(0)).collect())
    }

    /// Reads orphaned runs, except for unreadable ones and those of deleted threads.
    fn read_orphans(&self, runs: &[i64], unreadable: &UnreadableRows) -> PgResult<Vec<(i64, OrphanedRun)>> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread \
             WHERE run.id = ANY($1) AND thread.deleted_at IS NULL ORDER BY run.id"
        );
        let mut orphans = Vec::new();
        for row in self.connection.query(&sql, &[&runs])? {
            match run_of_row(&row) {
                Ok(run) => orphans.push((run.id, run.orphaned())),
                Err(failure @ PgError::Damaged(_)) => unreadable.insert_run(row.get(0), &failure),
                Err(failure) => return Err(failure),
            }
        }
        Ok(orphans)
    }

    fn set_owner(&self, node: &NodeRecord, terms: LeaseTerms, runs: &[i64]) -> PgResult<()> {
        if runs.is_empty() {
            return Ok(());
        }
        // The new owner has a full term.
        let until = txn_store::now(&self.connection)?.0.saturating_add(terms.lease);
        let sql = "UPDATE run SET owner = $1, \
                   lease_until = CASE lease WHEN 1 THEN greatest(lease_until, $2) ELSE lease_until END \
                   WHERE id = ANY($3)";
        self.connection.execute(sql, &[&&*node.id, &to_i64(until), &runs]).map(drop)
    }
}
