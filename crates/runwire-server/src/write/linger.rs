//! What is done with the rest of a body that was answered before its end.

use bytes::Bytes;
use http_body_util::BodyExt;

use super::ByteBody;
use crate::limits;

/// Reads on for a little while and throws away what comes.
///
/// A socket that is closed while bytes lie in it unread is reset, and the reset may overtake the answer: the
/// client would never learn what was wrong.
pub(crate) fn drop_slowly(mut body: impl ByteBody) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(tokio::time::timeout(limits::LINGER_TIME, async move {
        let mut dropped = 0;
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(limits::LINGER_QUIET_TIME, body.frame()).await {
            dropped += frame.data_ref().map_or(0, Bytes::len);
            if dropped > limits::LINGER_BYTES {
                break;
            }
        }
    }));
}
