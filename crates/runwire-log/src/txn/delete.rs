//! The command that deletes a thread. How a store removes its rows is up to the store.

use runwire_model::event::{Event, RunCancelled};

use super::{CommandResult, Txn, TxnStore, was_accepted};
use crate::error::LogError;
use crate::key::ThreadKey;

impl<S: TxnStore> Txn<S> {
    pub(super) fn delete(&mut self, key: &ThreadKey, force: bool) -> CommandResult<S, ()> {
        let Some(mut thread) = self.heads.take_thread(&self.store, key)? else {
            return Err(Self::refuse(LogError::ThreadUnknown(key.id.to_string())));
        };
        if thread.deleted {
            self.heads.put_thread(thread);
            return Err(Self::refuse(LogError::ThreadDeleted(key.id.to_string())));
        }
        if let (false, Some(open)) = (force, thread.open.first().copied()) {
            let run = self.heads.take_run_by_id(&self.store, open)?;
            let name = run.as_ref().map_or_else(String::new, |run| run.key.id.to_string());
            run.into_iter().for_each(|run| self.heads.put_run(run));
            self.heads.put_thread(thread);
            return Err(Self::refuse(LogError::RunOpen(name)));
        }
        for open in thread.open.clone() {
            let reason = Some("thread deleted".into());
            let event = Event::new(RunCancelled { reason, ..Default::default() });
            self.with_run(open, |txn, run| {
                was_accepted(txn.append_server_events(&mut thread, run, vec![event]))
            })?;
        }
        thread.deleted = true;
        self.batch.deleted.push((thread.id, key.clone()));
        self.put_thread(thread);
        Ok(())
    }
}
