//! The command that cancels a run: at once while nothing runs, else by asking its producer to stop.

use runwire_model::event::{Event, RunCancelRequested, RunCancelled};
use runwire_model::run::Status;

use super::lease::Lease;
use super::{CommandResult, Txn, TxnStore, was_accepted};
use crate::key::RunKey;
use crate::{Cancel, Cancelled};

impl<S: TxnStore> Txn<S> {
    pub(crate) fn cancel(&mut self, key: &RunKey, cancel: &Cancel) -> CommandResult<S, Cancelled> {
        self.with_open_thread(key, |txn, thread, run| {
            let Cancel { reason, by } = cancel.clone();
            let new = match run.head.state.status {
                Status::Pending | Status::Suspended => {
                    let event = Event::new(RunCancelled { reason, ..Default::default() });
                    was_accepted(txn.append_server_events(thread, run, vec![event]))?
                }
                Status::Running if !run.head.summary.cancel_requested => {
                    let event = Event::new(RunCancelRequested { reason, by });
                    let asked = was_accepted(txn.append_server_events(thread, run, vec![event]))?;
                    if asked {
                        run.set_lease(Lease::Stopping);
                    }
                    asked
                }
                _ => false,
            };
            Ok(Cancelled { run: run.info(), new })
        })
    }
}
