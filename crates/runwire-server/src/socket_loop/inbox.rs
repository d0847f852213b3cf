//! The inbox of a loop: what other threads have for it.
//!
//! A thread that adds something wakes the loop only if it sleeps, so that many messages cost one wake-up.

use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mio::{Poll, Token, Waker};
use runwire_log::{AppendReply, ReplySink};

use super::socket::SocketId;
use super::{CaughtUpStream, lock};
use crate::feed::{FeedListener, SubscriptionId};
use crate::listener::ConnectionPermit;
use crate::problem::Problem;
use crate::write::WriteSummary;

/// The token of the waker.
pub(super) const WAKE: Token = Token(usize::MAX);

/// A socket that a loop takes over.
pub(super) enum NewSocket {
    Writer(TcpStream, ConnectionPermit),
    Reader(TcpStream, ConnectionPermit, Box<CaughtUpStream>),
}

/// An answer that a task has made for a writer; none if the task was dropped.
pub(super) struct TaskAnswer {
    pub(super) socket: SocketId,
    pub(super) answer: Option<Result<WriteSummary, Problem>>,
}

/// What has come since the loop looked.
#[derive(Default)]
pub(super) struct InboxMessages {
    pub(super) replies: Vec<AppendReply>,
    pub(super) answers: Vec<TaskAnswer>,
    /// Subscriptions whose feed has changed, and whether it has ended.
    pub(super) feeds: Vec<(SubscriptionId, bool)>,
    pub(super) sockets: Vec<NewSocket>,
    pub(super) stop: bool,
    pub(super) reset: bool,
    pub(super) close: bool,
    /// Whether the loop has ended: what comes is dropped.
    retired: bool,
}

impl InboxMessages {
    fn is_empty(&self) -> bool {
        let Self { replies, answers, feeds, sockets, stop, reset, close, retired: _ } = self;
        let idle = replies.is_empty() && answers.is_empty() && feeds.is_empty() && sockets.is_empty();
        idle && !(*stop || *reset || *close)
    }
}

pub(super) struct Inbox {
    messages: Mutex<InboxMessages>,
    /// Whether the loop has looked here and waits for the kernel now.
    sleeping: AtomicBool,
    waker: Waker,
    /// Sockets of the loop, with those that wait here.
    sockets: AtomicUsize,
}

impl Inbox {
    pub(super) fn new(poll: &Poll) -> std::io::Result<Self> {
        Ok(Self {
            messages: Mutex::default(),
            sleeping: AtomicBool::new(false),
            waker: Waker::new(poll.registry(), WAKE)?,
            sockets: AtomicUsize::new(0),
        })
    }

    /// Takes all messages; `spare` is empty and takes their place.
    pub(super) fn take(&self, spare: &mut InboxMessages) {
        self.sleeping.store(false, Ordering::SeqCst);
        std::mem::swap(&mut *lock(&self.messages), spare);
    }

    /// Returns true if there is nothing, so that the loop may sleep: from here on every message wakes it.
    pub(super) fn begin_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        lock(&self.messages).is_empty()
    }

    /// Drops what waits here, and what comes.
    pub(super) fn retire(&self) {
        let dropped = std::mem::replace(
            &mut *lock(&self.messages),
            InboxMessages { retired: true, ..InboxMessages::default() },
        );
        // No connection is assigned to a loop that has ended while there is another one.
        self.sockets.store(usize::MAX / 2, Ordering::Relaxed);
        drop(dropped);
    }

    fn push(&self, add: impl FnOnce(&mut InboxMessages)) {
        {
            let mut messages = lock(&self.messages);
            if messages.retired {
                return;
            }
            add(&mut messages);
        }
        if self.sleeping.swap(false, Ordering::SeqCst) {
            // It fails only where the system has no memory left for an event; then the next message wakes the loop.
            if let Err(error) = self.waker.wake() {
                tracing::error!(%error, "a socket loop could not be woken");
                self.sleeping.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Counts the sockets of the loop.
    pub(super) fn sockets(&self) -> usize {
        self.sockets.load(Ordering::Relaxed)
    }

    pub(super) fn assign(&self, socket: NewSocket) {
        self.sockets.fetch_add(1, Ordering::Relaxed);
        self.push(|messages| messages.sockets.push(socket));
    }

    /// Notes that the loop has let go of a socket.
    pub(super) fn forget_socket(&self) {
        self.sockets.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn answer(&self, answer: TaskAnswer) {
        self.push(|messages| messages.answers.push(answer));
    }

    pub(super) fn stop(&self) {
        self.push(|messages| messages.stop = true);
    }

    pub(super) fn reset_all(&self) {
        self.push(|messages| messages.reset = true);
    }

    pub(super) fn close(&self) {
        self.push(|messages| messages.close = true);
    }
}

impl ReplySink for Inbox {
    fn deliver(&self, mut replies: Vec<AppendReply>) {
        self.push(|messages| {
            if messages.replies.is_empty() {
                std::mem::swap(&mut messages.replies, &mut replies);
            } else {
                messages.replies.append(&mut replies);
            }
        });
    }
}

impl FeedListener for Inbox {
    fn feed_changed(&self, subscription: SubscriptionId, ended: bool) {
        self.push(|messages| match messages.feeds.last_mut() {
            Some((known, was_ended)) if *known == subscription => *was_ended |= ended,
            _ => messages.feeds.push((subscription, ended)),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mio::Events;
    use runwire_log::LogError;

    use super::*;

    #[test]
    fn whatever_comes_wakes_a_loop_that_sleeps_and_keeps_one_awake_that_would() {
        let mut poll = Poll::new().unwrap();
        let inbox = Inbox::new(&poll).unwrap();
        let mut events = Events::with_capacity(8);
        let mut messages = InboxMessages::default();
        let subscription = SubscriptionId { place: 0, number: 1 };
        let socket = SocketId { key: 0, generation: 1 };
        let reply = || AppendReply { ticket: 1, result: Err(LogError::Unavailable(String::new())) };
        let comes: [&dyn Fn(); 6] = [
            &|| inbox.deliver(vec![reply()]),
            &|| inbox.feed_changed(subscription, false),
            &|| inbox.answer(TaskAnswer { socket, answer: None }),
            &|| inbox.stop(),
            &|| inbox.reset_all(),
            &|| inbox.close(),
        ];
        for (number, comes) in comes.iter().enumerate() {
            assert!(inbox.begin_sleep(), "{number}: nothing has come");
            comes();
            poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
            assert!(events.iter().any(|event| event.token() == WAKE), "{number}: it sleeps on");
            // A loop that is awake is not woken, and finds what has come before it sleeps.
            comes();
            assert!(!inbox.begin_sleep(), "{number}: it would sleep now");
            inbox.take(&mut messages);
            messages = InboxMessages::default();
        }
    }
}
