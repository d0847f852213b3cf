//! What a loop leaves to the tokio runtime: unusual connections, streams that need the store, appends that have to wait.

use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use http::StatusCode;
use runwire_log::{AppendReply, QueuedAppend, ReplySink};

use super::ReturnedStream;
use super::event_loop::EventLoop;
use super::inbox::{Inbox, TaskAnswer};
use super::socket::{Role, SocketId};
use crate::problem::Problem;
use crate::raw_response::{write_json, write_problem};
use crate::write::{FailedAppend, WriteParams, WriteSummary, write_whole_body};

impl EventLoop {
    /// Hands a connection to hyper, with the bytes that were read and not answered.
    pub(super) fn hand_to_hyper(&mut self, key: usize, unanswered: Vec<u8>) {
        let Some(socket) = self.take_socket(key) else { return };
        match socket.release(self.poll.registry()) {
            Ok((socket, permit, _)) => self.connections.serve_with_hyper(socket, unanswered, permit),
            Err(error) => tracing::debug!(%error, "a writer's connection broke off"),
        }
    }

    /// Closes a connection after its last answer, in a task: what has arrived unread would reset it.
    pub(super) fn close_answered(&mut self, key: usize) {
        let Some(socket) = self.take_socket(key) else { return };
        match socket.release(self.poll.registry()) {
            Ok((socket, permit, _)) => self.connections.close_answered(socket, permit),
            Err(error) => tracing::debug!(%error, "a writer's connection broke off"),
        }
    }

    /// Hands a stream to a task of its own.
    pub(super) fn hand_to_task(&mut self, key: usize) {
        let Some(position) = self.position_of(key) else { return };
        let Some(socket) = self.take_socket(key) else { return };
        let owner = socket.owner.clone();
        match socket.release(self.poll.registry()) {
            Ok((socket, permit, Role::Reader(reader))) => {
                let unsent = reader.unsent.map(|unsent| *unsent).unwrap_or_default();
                let stream = super::CaughtUpStream { position, sent: reader.sent, owner, open: reader.open };
                self.connections.continue_stream(socket, permit, ReturnedStream { stream, unsent });
            }
            Ok((_, _, Role::Writer(_))) => {}
            Err(error) => tracing::debug!(%error, "a reader's connection broke off"),
        }
    }

    /// Submits the appends of this turn. For those that the log does not take this way a task waits.
    pub(super) fn submit(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let returned = self.connections.state.log.submit_appends(batch, &self.sink);
        if returned.is_empty() {
            return;
        }
        let appends: FuturesUnordered<_> = returned
            .into_iter()
            .map(|QueuedAppend { append, ticket }| {
                let state = self.connections.state.clone();
                let guard = self.answer_guard(SocketId::of_ticket(ticket));
                async move { (guard, AppendReply { ticket, result: state.log.append(append).await }) }
            })
            .collect();
        self.connections.runtime.spawn(reply_to_all(appends, self.inbox.clone()));
    }

    /// Writes a body that is more than one append, in a task.
    pub(super) fn write_in_task(&self, socket: SocketId, params: WriteParams, body: Vec<u8>) {
        let (state, guard) = (self.connections.state.clone(), self.answer_guard(socket));
        self.connections.runtime.spawn(async move {
            let answer = write_whole_body(&state, params, &body).await;
            guard.answer(answer);
        });
    }

    /// Looks up what a failed append has to say, in a task.
    pub(super) fn explain_in_task(&self, socket: SocketId, failed: Box<FailedAppend>) {
        let (state, guard) = (self.connections.state.clone(), self.answer_guard(socket));
        self.connections.runtime.spawn(async move {
            let problem = failed.into_problem(&state).await;
            guard.answer(Err(problem));
        });
    }

    fn answer_guard(&self, socket: SocketId) -> AnswerGuard {
        AnswerGuard { inbox: Some(self.inbox.clone()), socket }
    }
}

/// Owes a socket its answer: a task that is dropped without one has the connection closed.
struct AnswerGuard {
    inbox: Option<Arc<Inbox>>,
    socket: SocketId,
}

/// Delivers replies as they come, those of a commit together.
async fn reply_to_all(
    mut appends: FuturesUnordered<impl Future<Output = (AnswerGuard, AppendReply)>>,
    inbox: Arc<Inbox>,
) {
    let take = |(mut guard, reply): (AnswerGuard, AppendReply)| {
        guard.inbox = None;
        reply
    };
    while let Some(first) = appends.next().await {
        let mut replies = vec![take(first)];
        while let Some(Some(next)) = appends.next().now_or_never() {
            replies.push(take(next));
        }
        inbox.deliver(replies);
    }
}

impl AnswerGuard {
    fn answer(mut self, answer: Result<WriteSummary, Problem>) {
        if let Some(inbox) = self.inbox.take() {
            inbox.answer(TaskAnswer { socket: self.socket, answer: Some(answer) });
        }
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.take() {
            inbox.answer(TaskAnswer { socket: self.socket, answer: None });
        }
    }
}

/// Writes the response to a write; `closing` is its `Connection` header line, if any.
pub(super) fn write_answer(out: &mut Vec<u8>, answer: Result<WriteSummary, Problem>, closing: &str) {
    match answer {
        Ok(written) => write_json(out, &written.to_json(), closing),
        Err(problem) => write_problem(out, problem, closing),
    }
}

/// Returns the status of a response.
pub(super) fn status_of(answer: &Result<WriteSummary, Problem>) -> StatusCode {
    answer.as_ref().map_or_else(Problem::status, |_| StatusCode::OK)
}
