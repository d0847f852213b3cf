//! Shared WebSocket code: upgrades a connection, reads, writes and closes it.
//!
//! One task handles the messages of a socket in order. Outgoing messages go through one bounded queue: a client that
//! does not read stops only its own streams.

use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use http::HeaderMap;
use runwire_model::ErrorCode;
use tokio::sync::mpsc;

use crate::listener::ConnectionPermit;
use crate::problem::Problem;
use crate::{AppState, limits, origin};

/// Queue of outgoing messages.
pub(crate) type Outbox = mpsc::Sender<Message>;

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
    let (out, mut queue) = mpsc::channel::<Message>(limits::SOCKET_QUEUE);
    let (mut shutdown, ping_interval) = (state.shutdown.clone(), state.config.keep_alive);
    let sender = tokio::spawn(async move {
        loop {
            let message = tokio::select! {
                message = queue.recv() => message,
                () = tokio::time::sleep(ping_interval) => Some(Message::Ping(bytes::Bytes::new())),
            };
            let Some(message) = message else { break };
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
            let _ = out.send(Message::Close(Some(frame))).await;
            break;
        };
        let is_open = match message {
            Some(Ok(Message::Text(text))) => handler.handle(&text).await,
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
