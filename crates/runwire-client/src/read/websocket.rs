//! Frames as messages of a WebSocket.
//!
//! The handshake is a request like any other, so it goes the same way through pools, proxies and TLS, and a
//! refusal is read like any other.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{SinkExt, Stream};
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{Method, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use runwire_model::dialect::Dialect;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::ask::Ask;
use super::cursor::Cursor;
use super::cutter::EVENT_BYTES;
use super::frame::Frame;
use super::link::Heard;
use crate::error::Error;
use crate::http::Http;
use crate::problem::Problem;

/// A socket with one subscription.
pub(super) struct WebSocket {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    /// Whether frames are strings, of which the text is wanted.
    is_text: bool,
}

/// A message of the server, as far as it concerns a reader.
#[derive(Debug, Deserialize)]
struct Incoming<'m> {
    #[serde(borrow)]
    op: std::borrow::Cow<'m, str>,
    #[serde(default)]
    cursor: Option<Cursor>,
    #[serde(borrow, default)]
    frame: Option<&'m RawValue>,
}

impl WebSocket {
    /// Opens a socket and subscribes.
    pub(super) async fn open(http: &Http, ask: &Ask) -> Result<Self, Error> {
        let key = generate_key();
        let mut headers = HeaderMap::from_iter([
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
        ]);
        let written = HeaderValue::from_str(&key).map_err(|error| http.strange(error.to_string()))?;
        headers.insert(SEC_WEBSOCKET_KEY, written);
        let response = http.ask(Method::GET, &http.target().segment("v1").segment("ws"), headers).await?;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {}
            status if status.is_success() => {
                return Err(http.strange(format!("it answers {status} where a WebSocket was asked for")));
            }
            _ => return Err(http.refusal(response).await),
        }
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if accepted != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
            return Err(http.strange("it accepts a WebSocket that nobody asked for"));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(|error| http.broken(&error))?;
        let config =
            WebSocketConfig::default().max_message_size(Some(EVENT_BYTES)).max_frame_size(Some(EVENT_BYTES));
        let mut socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await;
        let subscribe = Message::text(ask.subscription());
        socket.send(subscribe).await.map_err(|error| http.broken(&error))?;
        Ok(Self { socket, is_text: ask.dialect == Dialect::Text && !ask.raw })
    }

    pub(super) fn poll_heard(
        &mut self,
        http: &Http,
        context: &mut Context<'_>,
    ) -> Poll<Result<Heard, Error>> {
        loop {
            let message = match ready!(Pin::new(&mut self.socket).poll_next(context)) {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Poll::Ready(Err(http.broken(&error))),
                None => return Poll::Ready(Err(http.closed("it closed the WebSocket"))),
            };
            let heard = match message {
                Message::Text(text) => match self.read(http, &text) {
                    Ok(Some(heard)) => Ok(heard),
                    Ok(None) => continue,
                    Err(error) => Err(error),
                },
                Message::Ping(_) | Message::Pong(_) => Ok(Heard::Place(None)),
                Message::Close(Some(frame)) if !frame.reason.is_empty() => Err(http.closed(&frame.reason)),
                Message::Close(_) => Err(http.closed("it closed the WebSocket")),
                Message::Binary(_) | Message::Frame(_) => continue,
            };
            return Poll::Ready(heard);
        }
    }

    fn read(&self, http: &Http, text: &Utf8Bytes) -> Result<Option<Heard>, Error> {
        let odd = |reason: String| http.strange(format!("a message over the WebSocket: {reason}"));
        let message: Incoming<'_> =
            serde_json::from_str(text.as_str()).map_err(|error| odd(error.to_string()))?;
        Ok(match &*message.op {
            "frame" => {
                let frame = message.frame.ok_or_else(|| odd("a frame without its data".to_owned()))?;
                let data = if self.is_text {
                    let text: String =
                        serde_json::from_str(frame.get()).map_err(|error| odd(error.to_string()))?;
                    text.into()
                } else {
                    // A part of the message, and not a copy of it.
                    AsRef::<Bytes>::as_ref(text).slice_ref(frame.get().as_bytes())
                };
                Some(Heard::Frame(Frame::new(message.cursor, None, data)))
            }
            "caught_up" => Some(Heard::CaughtUp(message.cursor)),
            "end" => Some(Heard::Finished),
            "error" => {
                let members = serde_json::from_str(text.as_str()).map_err(|error| odd(error.to_string()))?;
                return Err(Problem::of_members(members).into());
            }
            // A newer server may have more to say.
            _ => None,
        })
    }
}
