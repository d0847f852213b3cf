//! The command that renews the leases of runs whose producers are alive but silent.

use super::{CommandError, CommandResult, StoreResult, Txn, TxnStore};
use crate::error::LogError;
use crate::info::RunInfo;
use crate::key::RunKey;

impl<S: TxnStore> Txn<S> {
    /// Renews the leases of several runs; one that is refused does not hinder the others.
    pub(crate) fn heartbeat_all(
        &mut self,
        runs: &[RunKey],
    ) -> StoreResult<S, Vec<Result<RunInfo, LogError>>> {
        let mut renewed = Vec::with_capacity(runs.len());
        for run in runs {
            renewed.push(match self.heartbeat(run) {
                Ok(info) => Ok(info),
                Err(CommandError::Refused(refusal)) => Err(refusal),
                Err(CommandError::Store(failure)) => return Err(failure),
            });
        }
        Ok(renewed)
    }

    fn heartbeat(&mut self, key: &RunKey) -> CommandResult<S, RunInfo> {
        self.with_open_thread(key, |_, _, run| {
            if !run.head.state.status.is_closed() {
                run.renew_lease();
            }
            Ok(run.info())
        })
    }
}
