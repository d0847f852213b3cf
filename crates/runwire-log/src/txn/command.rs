//! The requests that a writer takes, and how it keeps them until they are committed.

use tokio::sync::oneshot;

use super::{Merge, Store, Tried, Txn};
use crate::append::{Append, Appended, Target};
use crate::error::LogError;
use crate::info::{Created, NewRun, NewThread, RunInfo, ThreadInfo};
use crate::interaction::{Answer, Answered};
use crate::key::{RunKey, ThreadKey};
use crate::transfer::{Imported, NumberedItem};
use crate::{Cancel, Cancelled};

/// A request, what came of it, and whoever waits for that.
pub(crate) struct Asked<Q, T> {
    request: Q,
    /// In a box, because requests are moved about before there is one.
    outcome: Option<Box<Result<T, LogError>>>,
    reply: oneshot::Sender<Result<T, LogError>>,
}

impl<Q, T: Send + 'static> Asked<Q, T> {
    pub(crate) fn new(request: Q, reply: oneshot::Sender<Result<T, LogError>>) -> Self {
        Self { request, outcome: None, reply }
    }

    fn tell(&mut self, outcome: Result<T, LogError>) {
        self.outcome = Some(Box::new(outcome));
    }

    /// Tells whoever asked why nothing came of it.
    fn refuse(self, error: LogError) {
        let _ = self.reply.send(Err(error));
    }

    /// Lets go of the request; what is left tells whoever asked what came of it.
    fn into_reply(self) -> Box<dyn FnOnce() + Send> {
        let (outcome, reply) = (self.outcome, self.reply);
        Box::new(move || {
            // Without an outcome the reply is dropped, which tells that nobody knows.
            if let Some(outcome) = outcome {
                // Whoever asked may have gone; the log does not mind.
                let _ = reply.send(*outcome);
            }
        })
    }
}

/// What a writer is asked to do with the log.
pub(crate) enum Command {
    Append(Asked<Append, Appended>),
    /// An append whose frames name their threads.
    Merge(Asked<Merge, Appended>),
    Import(Asked<(ThreadKey, Vec<NumberedItem>), Imported>),
    CreateRun(Asked<NewRun, Created<RunInfo>>),
    CreateThread(Asked<NewThread, Created<ThreadInfo>>),
    Cancel(Asked<(RunKey, Cancel), Cancelled>),
    Answer(Asked<(RunKey, Vec<Answer>), Vec<Answered>>),
    Heartbeat(Asked<RunKey, RunInfo>),
    Sweep(Asked<(), usize>),
    Delete(Asked<(ThreadKey, bool), ()>),
}

impl Command {
    /// Counts the bytes of frames that it brings.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Append(asked) => asked.request.frames.bytes(),
            Self::Merge(asked) => asked.request.append.frames.bytes(),
            Self::Import(asked) => asked.request.1.iter().map(|(_, item)| item.weight()).sum(),
            _ => 0,
        }
    }

    /// Tells which threads and runs it names, so that a store with several writers can lock them beforehand.
    pub(crate) fn names(&self) -> (Vec<ThreadKey>, Vec<RunKey>) {
        if let Self::Merge(asked) = self {
            return (asked.request.threads.clone(), asked.request.runs.clone());
        }
        let (thread, run) = self.name();
        (thread.into_iter().collect(), run.into_iter().collect())
    }

    /// Tells the one thread and the one run that a request names, unless its frames name them.
    pub(crate) fn name(&self) -> (Option<ThreadKey>, Option<RunKey>) {
        match self {
            Self::Append(asked) => match &asked.request.target {
                Target::Run(run) => {
                    (asked.request.thread.as_deref().map(|thread| run.thread(thread)), Some(run.clone()))
                }
                Target::Thread(thread) => (Some(thread.clone()), None),
                Target::Tenant(tenant) => (Some(ThreadKey::of_tenant(tenant.clone())), None),
            },
            // What is in one place for all producers of the tenant.
            Self::Merge(asked) => (asked.request.threads.first().cloned(), None),
            Self::Import(asked) => (Some(asked.request.0.clone()), None),
            Self::CreateRun(asked) => {
                let NewRun { tenant, thread_id, run_id, .. } = &asked.request;
                let thread = thread_id.as_deref().map(|id| ThreadKey::new(tenant.as_str(), id));
                (thread, run_id.as_deref().map(|id| RunKey::new(tenant.as_str(), id)))
            }
            Self::CreateThread(asked) => {
                let NewThread { tenant, thread_id, .. } = &asked.request;
                (thread_id.as_deref().map(|id| ThreadKey::new(tenant.as_str(), id)), None)
            }
            Self::Cancel(asked) => (None, Some(asked.request.0.clone())),
            Self::Answer(asked) => (None, Some(asked.request.0.clone())),
            Self::Heartbeat(asked) => (None, Some(asked.request.clone())),
            Self::Sweep(_) => (None, None),
            Self::Delete(asked) => (Some(asked.request.0.clone()), None),
        }
    }

    /// Names the thread that a new run begins which names none: a thread of that name may be there.
    pub(crate) fn thread_of_its_own(&self) -> Option<ThreadKey> {
        match self {
            Self::Append(asked) => match &asked.request.target {
                Target::Run(run) if asked.request.thread.is_none() => Some(run.thread(run.id.clone())),
                _ => None,
            },
            Self::CreateRun(asked) => {
                let NewRun { tenant, thread_id, run_id, .. } = &asked.request;
                let run = run_id.as_deref().filter(|_| thread_id.is_none())?;
                Some(ThreadKey::new(tenant.as_str(), run))
            }
            _ => None,
        }
    }

    /// Tells whether it goes on with a run that is there, most often.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(
            self,
            Self::Append(_) | Self::Merge(_) | Self::Cancel(_) | Self::Answer(_) | Self::Heartbeat(_)
        )
    }

    /// Tells whoever asked why nothing came of it.
    pub(crate) fn refuse(self, error: LogError) {
        match self {
            Self::Append(asked) => asked.refuse(error),
            Self::Merge(asked) => asked.refuse(error),
            Self::Import(asked) => asked.refuse(error),
            Self::CreateRun(asked) => asked.refuse(error),
            Self::CreateThread(asked) => asked.refuse(error),
            Self::Cancel(asked) => asked.refuse(error),
            Self::Answer(asked) => asked.refuse(error),
            Self::Heartbeat(asked) => asked.refuse(error),
            Self::Sweep(asked) => asked.refuse(error),
            Self::Delete(asked) => asked.refuse(error),
        }
    }

    /// Lets go of the request; what is left is called after the commit, and tells whoever asked.
    pub(crate) fn into_reply(self) -> Box<dyn FnOnce() + Send> {
        match self {
            Self::Append(asked) => asked.into_reply(),
            Self::Merge(asked) => asked.into_reply(),
            Self::Import(asked) => asked.into_reply(),
            Self::CreateRun(asked) => asked.into_reply(),
            Self::CreateThread(asked) => asked.into_reply(),
            Self::Cancel(asked) => asked.into_reply(),
            Self::Answer(asked) => asked.into_reply(),
            Self::Heartbeat(asked) => asked.into_reply(),
            Self::Sweep(asked) => asked.into_reply(),
            Self::Delete(asked) => asked.into_reply(),
        }
    }
}

impl<S: Store> Txn<S> {
    /// Works out a request. It can be worked out again where the batch was not committed.
    pub(crate) fn perform(&mut self, op: &mut Command) -> Tried<S, ()> {
        match op {
            Command::Append(asked) => asked.tell(self.append(&asked.request)?),
            Command::Merge(asked) => asked.tell(self.append(&asked.request.append)?),
            Command::Import(asked) => asked.tell(self.import(&asked.request.0, &asked.request.1)?),
            Command::CreateRun(asked) => asked.tell(self.create_run(&asked.request)?),
            Command::CreateThread(asked) => asked.tell(self.create_thread(&asked.request)?),
            Command::Cancel(asked) => asked.tell(self.cancel(&asked.request.0, &asked.request.1)?),
            Command::Answer(asked) => asked.tell(self.answer(&asked.request.0, &asked.request.1)?),
            Command::Heartbeat(asked) => asked.tell(self.heartbeat(&asked.request)?),
            Command::Sweep(asked) => asked.tell(Ok(self.sweep()?)),
            Command::Delete(asked) => asked.tell(self.delete(&asked.request.0, asked.request.1)?),
        }
        Ok(())
    }
}
