//! Drains the rest of a request body whose response was sent early.

use bytes::Bytes;
use http_body_util::BodyExt;

use super::ByteBody;
use crate::limits;

/// Reads and discards the rest of a body in the background, within limits of time and bytes.
///
/// Closing a socket with unread bytes resets the connection, and the reset can overtake the response: the client
/// would not see the error.
pub(crate) fn drain_and_close(mut body: impl ByteBody) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(tokio::time::timeout(limits::DRAIN_TIME, async move {
        let mut dropped = 0;
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(limits::DRAIN_IDLE_TIME, body.frame()).await {
            dropped += frame.data_ref().map_or(0, Bytes::len);
            if dropped > limits::DRAIN_BYTES {
                break;
            }
        }
    }));
}
