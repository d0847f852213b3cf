//! Replies to commands, sent after their commit: each to a caller that waits, or together with others to a sink.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::append::Appended;
use crate::error::LogError;
use crate::log::{AppendReply, ReplySink};

/// Where the reply to a command goes.
pub(crate) trait ReplyTo<T>: Send + 'static {
    /// Makes the reply; the caller may be gone when it is sent.
    fn with(self, result: Box<Result<T, LogError>>) -> CommandReply;
}

/// A reply to send after the commit.
pub(crate) enum CommandReply {
    /// To a caller of its own. Without an outcome nothing is sent, which reports an unknown outcome.
    Caller(Box<dyn FnOnce() + Send>),
    /// To a sink that gets many at once.
    Sink(SinkTicket, Box<Result<Appended, LogError>>),
    /// To nobody: dropping the channel has reported an unknown outcome.
    Dropped,
}

impl CommandReply {
    /// Sends replies: to each sink all of its own in one call.
    pub(crate) fn send_all(replies: impl IntoIterator<Item = Self>) {
        let mut batches: Vec<(Arc<dyn ReplySink>, Vec<AppendReply>)> = Vec::new();
        for reply in replies {
            match reply {
                Self::Caller(send) => send(),
                Self::Dropped => {}
                Self::Sink(ticket, result) => {
                    let Some((sink, ticket)) = ticket.take() else { continue };
                    let reply = AppendReply { ticket, result: *result };
                    // One for each thread that serves sockets: a few.
                    match batches.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &sink)) {
                        Some((_, batch)) => batch.push(reply),
                        None => batches.push((sink, vec![reply])),
                    }
                }
            }
        }
        for (sink, batch) in batches {
            sink.deliver(batch);
        }
    }
}

impl<T: Send + 'static> ReplyTo<T> for oneshot::Sender<Result<T, LogError>> {
    fn with(self, result: Box<Result<T, LogError>>) -> CommandReply {
        CommandReply::Caller(Box::new(move || drop(self.send(*result))))
    }
}

/// Where the reply to an append goes.
pub(crate) enum AppendReplyTo {
    Caller(oneshot::Sender<Result<Appended, LogError>>),
    Sink(SinkTicket),
}

impl ReplyTo<Appended> for AppendReplyTo {
    fn with(self, result: Box<Result<Appended, LogError>>) -> CommandReply {
        match self {
            Self::Caller(caller) => caller.with(result),
            Self::Sink(ticket) => CommandReply::Sink(ticket, result),
        }
    }
}

/// The ticket of an append at its sink. Dropping it reports an unknown outcome, as dropping a channel does.
pub(crate) struct SinkTicket {
    sink: Option<Arc<dyn ReplySink>>,
    ticket: u64,
    unknown: fn() -> LogError,
}

impl SinkTicket {
    pub(crate) fn new(sink: Arc<dyn ReplySink>, ticket: u64, unknown: fn() -> LogError) -> Self {
        Self { sink: Some(sink), ticket, unknown }
    }

    /// Takes the right to reply.
    fn take(mut self) -> Option<(Arc<dyn ReplySink>, u64)> {
        self.sink.take().map(|sink| (sink, self.ticket))
    }

    /// Returns the append to its caller, who gets no reply.
    pub(crate) fn cancel(self) -> u64 {
        let ticket = self.ticket;
        drop(self.take());
        ticket
    }
}

impl Drop for SinkTicket {
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take() {
            sink.deliver(vec![AppendReply { ticket: self.ticket, result: Err((self.unknown)()) }]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Batches(Mutex<Vec<Vec<(u64, bool)>>>);

    impl ReplySink for Batches {
        fn deliver(&self, replies: Vec<AppendReply>) {
            let batch = replies.iter().map(|reply| (reply.ticket, reply.result.is_ok())).collect();
            self.0.lock().unwrap().push(batch);
        }
    }

    fn appended() -> Box<Result<Appended, LogError>> {
        Box::new(Ok(Appended { accepted: 1, duplicates: 0, last_seq: 1, threads: Vec::new(), fault: None }))
    }

    #[test]
    fn a_sink_gets_the_replies_of_a_commit_in_one_call_and_each_exactly_once() {
        let (one, other) = (Arc::new(Batches::default()), Arc::new(Batches::default()));
        let ticket = |sink: &Arc<Batches>, ticket| {
            SinkTicket::new(sink.clone(), ticket, || LogError::Uncertain("unknown".into()))
        };
        let (caller, mut answer) = oneshot::channel();
        CommandReply::send_all([
            CommandReply::Sink(ticket(&one, 1), appended()),
            CommandReply::Sink(ticket(&other, 2), appended()),
            AppendReplyTo::Caller(caller).with(appended()),
            AppendReplyTo::Sink(ticket(&one, 3)).with(appended()),
        ]);
        assert!(answer.try_recv().unwrap().is_ok());
        drop(CommandReply::Sink(ticket(&other, 4), appended()));
        assert_eq!(ticket(&other, 5).cancel(), 5);
        assert_eq!(*one.0.lock().unwrap(), [vec![(1, true), (3, true)]]);
        assert_eq!(*other.0.lock().unwrap(), [vec![(2, true)], vec![(4, false)]]);
    }
}
