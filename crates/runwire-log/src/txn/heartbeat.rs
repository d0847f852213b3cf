//! The command that renews the lease of a run whose producer is alive but silent.

use super::{CommandResult, Txn, TxnStore};
use crate::info::RunInfo;
use crate::key::RunKey;

impl<S: TxnStore> Txn<S> {
    pub(crate) fn heartbeat(&mut self, key: &RunKey) -> CommandResult<S, RunInfo> {
        self.with_open_thread(key, |_, _, run| {
            if !run.head.state.status.is_closed() {
                run.renew_lease();
            }
            Ok(run.info())
        })
    }
}
