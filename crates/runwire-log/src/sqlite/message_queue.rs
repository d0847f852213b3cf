//! The queue of the writer, as the writer waits for it.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// The queue of the writer. Dropping it drops what is sent at the same moment, too, so that every waiting caller gets
/// an error.
pub(super) struct MessageQueue<M>(pub(super) mpsc::Receiver<M>);

/// No message has come in time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Idle;

impl<M> MessageQueue<M> {
    /// Waits for the next message on this thread, up to a time; returns `None` once all senders are gone.
    pub(super) fn receive_within(&mut self, time: Duration) -> Result<Option<M>, Idle> {
        let since = Instant::now();
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(message) = self.0.poll_recv(&mut context) {
                return Ok(message);
            }
            let Some(left) = time.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) else {
                return Err(Idle);
            };
            std::thread::park_timeout(left);
        }
    }
}

impl<M> Drop for MessageQueue<M> {
    fn drop(&mut self) {
        self.0.close();
        while self.0.blocking_recv().is_some() {}
    }
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_wakes_who_waits_for_it_and_silence_does_in_time() {
        let (sender, receiver) = mpsc::channel(8);
        let mut queue = MessageQueue(receiver);
        assert_eq!(queue.receive_within(Duration::ZERO), Err(Idle));
        assert_eq!(queue.receive_within(Duration::from_millis(1)), Err(Idle));
        let sending = std::thread::spawn(move || {
            for number in 0..100 {
                sender.blocking_send(number).unwrap();
            }
        });
        for number in 0..100 {
            assert_eq!(queue.receive_within(Duration::MAX), Ok(Some(number)));
        }
        sending.join().unwrap();
        assert_eq!(queue.receive_within(Duration::MAX), Ok(None));
    }
}
