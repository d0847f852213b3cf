//! Events of an open request body: bytes, its end, a fence, a shutdown, a timeout.

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use runwire_model::ErrorCode;
use runwire_producer::limits::BATCH_BYTES;

use super::ByteBody;
use crate::open_bodies::OpenBody;
use crate::problem::Problem;

/// The next event of an open body.
pub(super) enum BodyEvent {
    Bytes(Bytes),
    End,
    Broken(String),
    Fenced(u64),
    Stopping,
    Quiet,
}

/// Waits for the next bytes of a body, or its end.
pub(super) async fn next_event<B: ByteBody>(body: &mut B) -> BodyEvent {
    loop {
        match body.frame().await {
            // A body that is cut off with its connection ends normally, but before its announced length.
            None if body.size_hint().lower() > 0 => return BodyEvent::Broken("it is too short".into()),
            None => return BodyEvent::End,
            Some(Err(error)) => return BodyEvent::Broken(error.to_string()),
            Some(Ok(frame)) => {
                // Trailers are ignored.
                if let Ok(bytes) = frame.into_data() {
                    return BodyEvent::Bytes(bytes);
                }
            }
        }
    }
}

/// Returns true if the body's length is known and fits into one append.
pub(super) fn is_small(body: &impl Body) -> bool {
    body.size_hint().exact().is_some_and(|size| size <= BATCH_BYTES as u64)
}

/// Waits until a newer epoch of the producer fences this body; forever for an anonymous producer.
pub(super) async fn fenced(open: &mut Option<OpenBody<'_>>) -> u64 {
    match open {
        Some(open) => open.fenced().await,
        None => std::future::pending().await,
    }
}

pub(super) fn broken(reason: &str) -> Problem {
    Problem::new(
        ErrorCode::BodyBroken,
        format!("the body broke off: {reason}; half a frame at its end is not written"),
    )
}
