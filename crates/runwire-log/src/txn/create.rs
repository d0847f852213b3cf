//! Commands that create threads and runs.
//!
//! Creating the same thing twice in the same words returns the existing one; in other words it is refused.

use super::heads::RunOrigin;
use super::{CommandResult, Txn, TxnStore, mint};
use crate::error::LogError;
use crate::info::{Created, NewRun, NewThread, RunInfo, ThreadInfo};
use crate::key::{RunKey, ThreadKey};

impl<S: TxnStore> Txn<S> {
    pub(crate) fn create_thread(&mut self, new: &NewThread) -> CommandResult<S, Created<ThreadInfo>> {
        let id = new.thread_id.clone().unwrap_or_else(mint);
        let key = ThreadKey::new(new.tenant.as_str(), id.as_str());
        let known = self.heads.take_thread(&self.store, &key)?;
        let is_new = known.is_none();
        let thread = match known {
            Some(thread) => thread,
            None => self.new_thread(key, new.parallel, self.now)?,
        };
        let result = if thread.deleted {
            Err(Self::refuse(LogError::ThreadDeleted(id)))
        } else if thread.parallel != new.parallel {
            Err(Self::refuse(LogError::ThreadExists(id)))
        } else {
            let info = ThreadInfo {
                thread_id: id,
                parallel: thread.parallel,
                created_at: thread.created_at,
                head: thread.seq,
                oldest: 1,
                open_runs: Vec::new(),
                runs: 0,
                title: None,
                latest: None,
            };
            Ok(Created { value: info, new: is_new })
        };
        self.put_thread(thread);
        result
    }

    pub(crate) fn create_run(&mut self, new: &NewRun) -> CommandResult<S, Created<RunInfo>> {
        let key = RunKey::new(new.tenant.as_str(), new.run_id.clone().unwrap_or_else(mint));
        let request = RunOrigin::of(new);
        if let Some(run) = self.heads.take_run(&self.store, &key)? {
            let thread = self.thread_of(&run)?;
            let result = if thread.deleted {
                Err(Self::refuse(LogError::ThreadDeleted(thread.key.id.to_string())))
            } else if run.request.is_same(&request) {
                Ok(Created { value: run.info(), new: run.request.is_same_attempt(&request) })
            } else {
                Err(Self::refuse(LogError::RunExists(key.id.to_string())))
            };
            self.heads.put_thread(thread);
            self.heads.put_run(run);
            return result;
        }
        let mut thread = match &new.thread_id {
            Some(thread) => self.thread_to_join(&key.thread(thread.as_str()), self.now)?,
            None => self.thread_of_its_own(&key, self.now)?,
        };
        let mut run = self.new_run(key, &thread, request, self.now)?;
        thread.open.push(run.id);
        run.renew_lease();
        run.owner = self.node.clone().filter(|_| new.is_started_here);
        let info = run.info();
        self.put(thread, run);
        Ok(Created { value: info, new: true })
    }
}
