//! Shared WebSocket code: upgrades a connection, reads, writes and closes it.
//!
//! One task handles the messages of a socket in order. Outgoing messages go through one queue, bounded by their number and
//! their bytes: a client that does not read stops only its own streams. Large messages, both ways, have a share of the
//! memory budget.

use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use http::HeaderMap;
use runwire_model::ErrorCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::feed::{Segment, SegmentFrame};
use crate::listener::ConnectionPermit;
use crate::memory_budget::{MemoryBudget, MemoryShare};
use crate::problem::Problem;
use crate::{AppState, limits, origin};

/// Queue of outgoing messages.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<QueuedMessage>,
    /// Bytes that may still be queued.
    room: Arc<Semaphore>,
    memory: MemoryBudget,
}

/// A message with what it takes until it is sent.
#[derive(Debug)]
struct QueuedMessage {
    message: Message,
    _room: Option<OwnedSemaphorePermit>,
    _share: Option<Arc<MemoryShare>>,
}

impl Outbox {
    fn new(memory: MemoryBudget) -> (Self, mpsc::Receiver<QueuedMessage>) {
        let (queue, messages) = mpsc::channel(limits::SOCKET_QUEUE);
        (Self { queue, room: Arc::new(Semaphore::new(limits::SOCKET_QUEUE_BYTES)), memory }, messages)
    }

    /// Queues a text; returns false if the socket is closed.
    pub(crate) async fn send(&self, text: String) -> bool {
        let room = self.room_for(text.len()).await;
        self.queue(Message::Text(text.into()), room, None).await
    }

    /// Queues a frame of a segment, which is made a message when there is room for it; returns false if the socket is
    /// closed.
    pub(crate) async fn send_frame(
        &self,
        segment: &Segment,
        frame: SegmentFrame<'_>,
        text: impl FnOnce(SegmentFrame<'_>) -> String,
    ) -> bool {
        let bytes = frame.data.len();
        let room = self.room_for(bytes).await;
        let mut share = segment.share();
        if share.is_none() && bytes > limits::FREE_BYTES {
            let mut own = self.memory.answer();
            own.grow_to(COPIES * bytes).await;
            share = Some(Arc::new(own));
        }
        self.queue(Message::Text(text(frame).into()), room, share).await
    }

    async fn close(&self, frame: CloseFrame) {
        self.queue(Message::Close(Some(frame)), None, None).await;
    }

    /// Waits until there is room for some bytes, or for nothing else.
    async fn room_for(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(limits::SOCKET_QUEUE_BYTES)).unwrap_or(u32::MAX);
        self.room.clone().acquire_many_owned(bytes).await.ok()
    }

    async fn queue(
        &self,
        message: Message,
        room: Option<OwnedSemaphorePermit>,
        share: Option<Arc<MemoryShare>>,
    ) -> bool {
        self.queue.send(QueuedMessage { message, _room: room, _share: share }).await.is_ok()
    }
}

/// How often a message is held: as it is queued, and as it is sent; as it arrives, and as what it is read into.
const COPIES: usize = 2;

/// Handles the messages of one WebSocket connection.
pub(crate) trait MessageHandler: Send + 'static {
    /// Handles a text message; returns false if the socket is closed.
    fn handle(&mut self, text: &str) -> impl Future<Output = bool> + Send;

    /// Reports an error to the client; returns false if the socket is closed.
    fn refuse(&mut self, problem: Problem) -> impl Future<Output = bool> + Send;

    /// Handles a ping or pong.
    fn on_ping(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Aborts the streams of the socket.
    fn close(&mut self);
}

/// Upgrades a request to a WebSocket whose messages a handler gets.
pub(crate) fn open<S: MessageHandler>(
    state: &Arc<AppState>,
    permit: ConnectionPermit,
    headers: &HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    handler: impl FnOnce(Outbox) -> S + Send + 'static,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|wrong| Problem::new(ErrorCode::NotAWebsocket, wrong.to_string()))?;
    origin::check(headers)?;
    let upgrade = upgrade.max_message_size(limits::MESSAGE_BYTES).max_frame_size(limits::MESSAGE_BYTES);
    let state = state.clone();
    Ok(upgrade.on_upgrade(async move |socket| {
        serve(&state, socket, handler).await;
        drop(permit);
    }))
}

async fn serve<S: MessageHandler>(state: &AppState, socket: WebSocket, handler: impl FnOnce(Outbox) -> S) {
    let (mut sink, mut stream) = socket.split();
    let (out, mut queue) = Outbox::new(state.memory.clone());
    let (mut shutdown, ping_interval) = (state.shutdown.clone(), state.config.keep_alive);
    let sender = tokio::spawn(async move {
        loop {
            let queued = tokio::select! {
                queued = queue.recv() => queued,
                () = tokio::time::sleep(ping_interval) => {
                    let message = Message::Ping(bytes::Bytes::new());
                    Some(QueuedMessage { message, _room: None, _share: None })
                }
            };
            // What it takes is given back when it is sent.
            let Some(QueuedMessage { message, _room, _share }) = queued else { break };
            let closes = matches!(message, Message::Close(_));
            if sink.send(message).await.is_err() || closes {
                break;
            }
        }
        let _ = sink.close().await;
    });
    let mut handler = handler(out.clone());
    loop {
        let message = tokio::select! {
            biased;
            _ = shutdown.wait_for(|stops| *stops) => None,
            message = stream.next() => Some(message),
        };
        let Some(message) = message else {
            let frame = CloseFrame { code: close_code::AWAY, reason: "the server stops; come back".into() };
            out.close(frame).await;
            break;
        };
        let is_open = match message {
            Some(Ok(Message::Text(text))) => {
                let mut share = state.memory.request();
                if text.len() > limits::FREE_BYTES {
                    // Meanwhile nothing more is read.
                    tokio::select! {
                        () = share.grow_to(COPIES * text.len()) => {}
                        _ = shutdown.wait_for(|stops| *stops) => continue,
                    }
                }
                handler.handle(&text).await
            }
            Some(Ok(Message::Binary(_))) => {
                handler.refuse(Problem::new(ErrorCode::BadMessage, "messages are text, not bytes")).await
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                handler.on_ping().await;
                true
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => false,
        };
        if !is_open {
            break;
        }
    }
    handler.close();
    drop((handler, out));
    let _ = sender.await;
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::feed::FeedCursor;

    #[tokio::test]
    async fn what_is_queued_is_bounded_by_its_bytes_and_has_a_share() {
        let memory = MemoryBudget::new(64 << 20);
        let (out, mut queue) = Outbox::new(memory.clone());
        let mut context = Context::from_waker(Waker::noop());
        assert!(out.send("x".repeat(200 << 10)).await);
        {
            let mut second = pin!(out.send("x".repeat(100 << 10)));
            assert_eq!(second.as_mut().poll(&mut context), Poll::Pending);
            drop(queue.recv().await);
            assert!(second.await);
        }
        drop(queue.recv().await);

        // A message that is larger than all of the queue is alone in it.
        let mut segment = Segment::begin(0, None);
        segment.push_frame(FeedCursor::after(1), None, &vec![b'x'; 1 << 20]);
        let frame = segment.frames(0).next().unwrap();
        let text = |frame: SegmentFrame<'_>| String::from_utf8_lossy(frame.data).into_owned();
        assert!(out.send_frame(&segment, frame, text).await);
        assert!(memory.taken() >= 2 << 20);
        {
            let mut next = pin!(out.send("small".into()));
            assert_eq!(next.as_mut().poll(&mut context), Poll::Pending);
            drop(queue.recv().await);
            assert!(next.await);
        }
        assert_eq!(memory.taken(), 0);
        drop(queue);
        assert!(!out.send("closed".into()).await);
    }
}
