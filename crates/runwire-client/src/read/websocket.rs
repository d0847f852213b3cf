//! The WebSocket transport of a stream.
//!
//! The handshake is a normal HTTP request: it uses the same pool, proxy and TLS, and its errors are read alike.

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

use super::connection::TransportEvent;
use super::cursor::Cursor;
use super::frame::ReceivedFrame;
use super::request::ReadRequest;
use super::sse_parser::MAX_EVENT_BYTES;
use crate::error::Error;
use crate::http::Http;
use crate::problem::Problem;

/// A socket with one subscription.
pub(super) struct WebSocket {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    /// Whether frames are JSON strings to unquote (dialect `text`).
    is_text: bool,
}

/// The fields of a server message that a reader needs.
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
    pub(super) async fn open(http: &Http, request: &ReadRequest) -> Result<Self, Error> {
        let key = generate_key();
        let mut headers = HeaderMap::from_iter([
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
        ]);
        let written = HeaderValue::from_str(&key).map_err(|error| http.protocol_error(error.to_string()))?;
        headers.insert(SEC_WEBSOCKET_KEY, written);
        let response =
            http.request(Method::GET, &http.endpoint().segment("v1").segment("ws"), headers).await?;
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => {}
            status if status.is_success() => {
                return Err(
                    http.protocol_error(format!("it answers {status} where a WebSocket was asked for"))
                );
            }
            _ => return Err(http.refusal(response).await),
        }
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if accepted != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
            return Err(http.protocol_error("it accepts a WebSocket that nobody asked for"));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(|error| http.broken(&error))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_EVENT_BYTES))
            .max_frame_size(Some(MAX_EVENT_BYTES));
        let mut socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await;
        let subscribe = Message::text(request.subscribe_message());
        socket.send(subscribe).await.map_err(|error| http.broken(&error))?;
        Ok(Self { socket, is_text: request.dialect == Dialect::Text && !request.raw })
    }

    pub(super) fn poll_event(
        &mut self,
        http: &Http,
        context: &mut Context<'_>,
    ) -> Poll<Result<TransportEvent, Error>> {
        loop {
            let message = match ready!(Pin::new(&mut self.socket).poll_next(context)) {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Poll::Ready(Err(http.broken(&error))),
                None => return Poll::Ready(Err(http.closed_error("it closed the WebSocket"))),
            };
            let event = match message {
                Message::Text(text) => match self.read(http, &text) {
                    Ok(Some(event)) => Ok(event),
                    Ok(None) => continue,
                    Err(error) => Err(error),
                },
                Message::Ping(_) | Message::Pong(_) => Ok(TransportEvent::Heartbeat(None)),
                Message::Close(Some(frame)) if !frame.reason.is_empty() => {
                    Err(http.closed_error(&frame.reason))
                }
                Message::Close(_) => Err(http.closed_error("it closed the WebSocket")),
                Message::Binary(_) | Message::Frame(_) => continue,
            };
            return Poll::Ready(event);
        }
    }

    fn read(&self, http: &Http, text: &Utf8Bytes) -> Result<Option<TransportEvent>, Error> {
        let invalid = |reason: String| http.protocol_error(format!("a message over the WebSocket: {reason}"));
        let message: Incoming<'_> =
            serde_json::from_str(text.as_str()).map_err(|error| invalid(error.to_string()))?;
        Ok(match &*message.op {
            "frame" => {
                let frame = message.frame.ok_or_else(|| invalid("a frame without its data".to_owned()))?;
                let data = if self.is_text {
                    let text: String =
                        serde_json::from_str(frame.get()).map_err(|error| invalid(error.to_string()))?;
                    text.into()
                } else {
                    // A slice of the message.
                    AsRef::<Bytes>::as_ref(text).slice_ref(frame.get().as_bytes())
                };
                Some(TransportEvent::Frame(ReceivedFrame::new(message.cursor, None, data)))
            }
            "caught_up" => Some(TransportEvent::CaughtUp(message.cursor)),
            "end" => Some(TransportEvent::Finished),
            "error" => {
                let members =
                    serde_json::from_str(text.as_str()).map_err(|error| invalid(error.to_string()))?;
                return Err(Problem::of_members(members).into());
            }
            // Messages of newer servers are ignored.
            _ => None,
        })
    }
}
