//! The commands that a writer executes, each with the reply that its caller waits for.

use tokio::sync::oneshot;

use super::reply::{AppendReplyTo, CommandReply, ReplyTo, SinkTicket};
use super::{CommandError, Merge, StoreResult, Txn, TxnStore};
use crate::append::{Append, Appended, Target};
use crate::error::LogError;
use crate::info::{Created, NewRun, NewThread, RunInfo, ThreadInfo};
use crate::interaction::{Answer, Answered};
use crate::key::{RunKey, ThreadKey};
use crate::log::QueuedAppend;
use crate::transfer::{Imported, NumberedItem};
use crate::{Cancel, Cancelled};

/// A command, its outcome, and where its reply goes.
pub(crate) struct Pending<C, T, R = oneshot::Sender<Result<T, LogError>>> {
    command: C,
    /// Boxed to keep the command small to move.
    outcome: Option<Box<Result<T, LogError>>>,
    reply: R,
}

impl<C, T: Send + 'static, R: ReplyTo<T>> Pending<C, T, R> {
    pub(crate) fn new(command: C, reply: R) -> Self {
        Self { command, outcome: None, reply }
    }

    /// Stores the outcome, unless the store failed.
    fn set_outcome<E>(&mut self, outcome: Result<T, CommandError<E, LogError>>) -> Result<(), E> {
        let outcome = match outcome {
            Ok(done) => Ok(done),
            Err(CommandError::Refused(refusal)) => Err(refusal),
            Err(CommandError::Store(failure)) => return Err(failure),
        };
        self.outcome = Some(Box::new(outcome));
        Ok(())
    }

    /// Replies with an error.
    fn refuse(self, error: LogError) {
        CommandReply::send_all([self.reply.with(Box::new(Err(error)))]);
    }

    /// Drops the command; the returned reply has its outcome. Without one the channel is dropped, which reports an
    /// unknown outcome.
    fn into_reply(self) -> CommandReply {
        match self.outcome {
            Some(outcome) => self.reply.with(outcome),
            None => CommandReply::Dropped,
        }
    }
}

/// An append, its outcome, and where its reply goes.
pub(crate) type PendingAppend = Pending<Append, Appended, AppendReplyTo>;

impl From<Pending<Append, Appended>> for PendingAppend {
    fn from(pending: Pending<Append, Appended>) -> Self {
        let Pending { command, outcome, reply } = pending;
        Self { command, outcome, reply: AppendReplyTo::Caller(reply) }
    }
}

/// A command for the log.
pub(crate) enum LogCommand {
    Append(PendingAppend),
    /// An append whose frames name their threads.
    Merge(Pending<Merge, Appended>),
    Import(Pending<(ThreadKey, Vec<NumberedItem>), Imported>),
    CreateRun(Pending<NewRun, Created<RunInfo>>),
    CreateThread(Pending<NewThread, Created<ThreadInfo>>),
    Cancel(Pending<(RunKey, Cancel), Cancelled>),
    Answer(Pending<(RunKey, Vec<Answer>), Vec<Answered>>),
    Heartbeat(Pending<Vec<RunKey>, Vec<Result<RunInfo, LogError>>>),
    Sweep(Pending<(), usize>),
    Delete(Pending<(ThreadKey, bool), ()>),
}

impl LogCommand {
    /// Makes the command of an append whose caller waits for it.
    pub(crate) fn append(pending: Pending<Append, Appended>) -> Self {
        Self::Append(pending.into())
    }

    /// Makes the command of an append whose reply goes to a sink.
    pub(crate) fn submitted(append: Append, ticket: SinkTicket) -> Self {
        Self::Append(Pending::new(append, AppendReplyTo::Sink(ticket)))
    }

    /// Returns a submitted append that was not queued.
    pub(crate) fn into_submitted(self) -> Option<QueuedAppend> {
        match self {
            Self::Append(Pending { command, reply: AppendReplyTo::Sink(ticket), .. }) => {
                Some(QueuedAppend { append: command, ticket: ticket.cancel() })
            }
            _ => None,
        }
    }

    /// Returns the bytes of its frames.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Append(pending) => pending.command.frames.bytes(),
            Self::Merge(pending) => pending.command.append.frames.bytes(),
            Self::Import(pending) => pending.command.1.iter().map(|(_, item)| item.weight()).sum(),
            _ => 0,
        }
    }

    /// Returns the threads and runs that it names, so that a store with several writers can lock them first.
    pub(crate) fn keys(&self) -> (Vec<ThreadKey>, Vec<RunKey>) {
        if let Self::Merge(pending) = self {
            return (pending.command.threads.clone(), pending.command.runs.clone());
        }
        if let Self::Heartbeat(pending) = self {
            return (Vec::new(), pending.command.clone());
        }
        let (thread, run) = self.routing_key();
        (thread.into_iter().collect(), run.into_iter().collect())
    }

    /// Returns the thread and the run that decide which writer executes it.
    pub(crate) fn routing_key(&self) -> (Option<ThreadKey>, Option<RunKey>) {
        match self {
            Self::Append(pending) => match &pending.command.target {
                Target::Run(run) => {
                    (pending.command.thread.as_deref().map(|thread| run.thread(thread)), Some(run.clone()))
                }
                Target::Thread(thread) => (Some(thread.clone()), None),
                Target::Tenant(tenant) => (Some(ThreadKey::of_tenant(tenant.clone())), None),
            },
            // The row that all producers of the tenant share.
            Self::Merge(pending) => (pending.command.threads.first().cloned(), None),
            Self::Import(pending) => (Some(pending.command.0.clone()), None),
            Self::CreateRun(pending) => {
                let NewRun { tenant, thread_id, run_id, .. } = &pending.command;
                let thread = thread_id.as_deref().map(|id| ThreadKey::new(tenant.as_str(), id));
                (thread, run_id.as_deref().map(|id| RunKey::new(tenant.as_str(), id)))
            }
            Self::CreateThread(pending) => {
                let NewThread { tenant, thread_id, .. } = &pending.command;
                (thread_id.as_deref().map(|id| ThreadKey::new(tenant.as_str(), id)), None)
            }
            Self::Cancel(pending) => (None, Some(pending.command.0.clone())),
            Self::Answer(pending) => (None, Some(pending.command.0.clone())),
            Self::Heartbeat(pending) => (None, pending.command.first().cloned()),
            Self::Sweep(_) => (None, None),
            Self::Delete(pending) => (Some(pending.command.0.clone()), None),
        }
    }

    /// Returns the key of the thread of a run created without one; it may already exist.
    pub(crate) fn default_thread(&self) -> Option<ThreadKey> {
        match self {
            Self::Append(pending) => match &pending.command.target {
                Target::Run(run) if pending.command.thread.is_none() => Some(run.thread(run.id.clone())),
                _ => None,
            },
            Self::CreateRun(pending) => {
                let NewRun { tenant, thread_id, run_id, .. } = &pending.command;
                let run = run_id.as_deref().filter(|_| thread_id.is_none())?;
                Some(ThreadKey::new(tenant.as_str(), run))
            }
            _ => None,
        }
    }

    /// Returns whether it usually continues an existing run.
    pub(crate) fn continues_run(&self) -> bool {
        matches!(
            self,
            Self::Append(_) | Self::Merge(_) | Self::Cancel(_) | Self::Answer(_) | Self::Heartbeat(_)
        )
    }

    /// Replies with an error.
    pub(crate) fn refuse(self, error: LogError) {
        match self {
            Self::Append(pending) => pending.refuse(error),
            Self::Merge(pending) => pending.refuse(error),
            Self::Import(pending) => pending.refuse(error),
            Self::CreateRun(pending) => pending.refuse(error),
            Self::CreateThread(pending) => pending.refuse(error),
            Self::Cancel(pending) => pending.refuse(error),
            Self::Answer(pending) => pending.refuse(error),
            Self::Heartbeat(pending) => pending.refuse(error),
            Self::Sweep(pending) => pending.refuse(error),
            Self::Delete(pending) => pending.refuse(error),
        }
    }

    /// Drops the command; the returned reply with its outcome is sent after the commit.
    pub(crate) fn into_reply(self) -> CommandReply {
        match self {
            Self::Append(pending) => pending.into_reply(),
            Self::Merge(pending) => pending.into_reply(),
            Self::Import(pending) => pending.into_reply(),
            Self::CreateRun(pending) => pending.into_reply(),
            Self::CreateThread(pending) => pending.into_reply(),
            Self::Cancel(pending) => pending.into_reply(),
            Self::Answer(pending) => pending.into_reply(),
            Self::Heartbeat(pending) => pending.into_reply(),
            Self::Sweep(pending) => pending.into_reply(),
            Self::Delete(pending) => pending.into_reply(),
        }
    }
}

impl<S: TxnStore> Txn<S> {
    /// Executes a command. It can be executed again if the batch was not committed.
    pub(crate) fn execute(&mut self, command: &mut LogCommand) -> StoreResult<S, ()> {
        match command {
            LogCommand::Append(pending) => pending.set_outcome(self.append(&pending.command)),
            LogCommand::Merge(pending) => pending.set_outcome(self.append(&pending.command.append)),
            LogCommand::Import(pending) => {
                pending.set_outcome(self.import(&pending.command.0, &pending.command.1))
            }
            LogCommand::CreateRun(pending) => pending.set_outcome(self.create_run(&pending.command)),
            LogCommand::CreateThread(pending) => pending.set_outcome(self.create_thread(&pending.command)),
            LogCommand::Cancel(pending) => {
                pending.set_outcome(self.cancel(&pending.command.0, &pending.command.1))
            }
            LogCommand::Answer(pending) => {
                pending.set_outcome(self.answer(&pending.command.0, &pending.command.1))
            }
            LogCommand::Heartbeat(pending) => {
                let renewed = self.heartbeat_all(&pending.command).map_err(CommandError::Store);
                pending.set_outcome(renewed)
            }
            LogCommand::Sweep(pending) => pending.set_outcome(self.sweep().map_err(CommandError::Store)),
            LogCommand::Delete(pending) => {
                pending.set_outcome(self.delete(&pending.command.0, pending.command.1))
            }
        }
    }
}
