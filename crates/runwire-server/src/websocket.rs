//! What the server's WebSockets share: how a connection is upgraded, read, written and closed.
//!
//! One task takes the messages of a socket in their order. What is said to it goes through one short queue: a client
//! that does not read stops its own streams and nothing else.

use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use http::HeaderMap;
use tokio::sync::mpsc;

use crate::listener::Place;
use crate::problem::Problem;
use crate::{AppState, limits, origin};

/// The queue of messages to a client.
pub(crate) type Outbox = mpsc::Sender<Message>;

/// A client's side of a protocol over a WebSocket.
pub(crate) trait Session: Send + 'static {
    /// Does what a message asks for; false means that the socket is gone.
    fn take(&mut self, text: &str) -> impl Future<Output = bool> + Send;

    /// Refuses a message of bytes; false means that the socket is gone.
    fn refuse(&mut self, problem: Problem) -> impl Future<Output = bool> + Send;

    /// Notes that the client is alive.
    fn note_ping(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Ends the streams of the socket.
    fn close(&mut self);
}

/// Turns a request into a WebSocket whose messages a session takes.
pub(crate) fn open<S: Session>(
    state: &Arc<AppState>,
    place: Place,
    headers: &HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    session: impl FnOnce(Outbox) -> S + Send + 'static,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|wrong| Problem::new("not_a_websocket", wrong.to_string()))?;
    origin::check(headers)?;
    let upgrade = upgrade.max_message_size(limits::MESSAGE_BYTES).max_frame_size(limits::MESSAGE_BYTES);
    let state = state.clone();
    Ok(upgrade.on_upgrade(async move |socket| {
        serve(&state, socket, session).await;
        drop(place);
    }))
}

async fn serve<S: Session>(state: &AppState, socket: WebSocket, session: impl FnOnce(Outbox) -> S) {
    let (mut sink, mut stream) = socket.split();
    let (out, mut queue) = mpsc::channel::<Message>(limits::SOCKET_QUEUE);
    let (mut shutdown, beat) = (state.shutdown.clone(), state.config.keep_alive);
    let writing = tokio::spawn(async move {
        loop {
            let message = tokio::select! {
                message = queue.recv() => message,
                () = tokio::time::sleep(beat) => Some(Message::Ping(bytes::Bytes::new())),
            };
            let Some(message) = message else { break };
            let closes = matches!(message, Message::Close(_));
            if sink.send(message).await.is_err() || closes {
                break;
            }
        }
        let _ = sink.close().await;
    });
    let mut session = session(out.clone());
    loop {
        let message = tokio::select! {
            biased;
            _ = shutdown.wait_for(|stops| *stops) => None,
            message = stream.next() => Some(message),
        };
        let Some(message) = message else {
            let frame = CloseFrame { code: close_code::AWAY, reason: "the server stops; come back".into() };
            let _ = out.send(Message::Close(Some(frame))).await;
            break;
        };
        let goes_on = match message {
            Some(Ok(Message::Text(text))) => session.take(&text).await,
            Some(Ok(Message::Binary(_))) => {
                session.refuse(Problem::new("bad_message", "messages are text, not bytes")).await
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                session.note_ping().await;
                true
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => false,
        };
        if !goes_on {
            break;
        }
    }
    session.close();
    drop((session, out));
    let _ = writing.await;
}
