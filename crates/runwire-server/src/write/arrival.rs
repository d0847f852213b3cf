//! What comes on a body, piece by piece.

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;

use super::ByteBody;
use crate::bodies::OpenBody;
use crate::limits;
use crate::problem::Problem;

/// What comes next on an open body.
pub(super) enum Arrival {
    Bytes(Bytes),
    End,
    Broken(String),
    Fenced(u64),
    Stopping,
    Quiet,
}

/// Waits for what comes next on a body.
pub(super) async fn arrival<B: ByteBody>(body: &mut B) -> Arrival {
    loop {
        match body.frame().await {
            // What is cut off with its connection ends like any other, only too early.
            None if body.size_hint().lower() > 0 => return Arrival::Broken("it is too short".into()),
            None => return Arrival::End,
            Some(Err(error)) => return Arrival::Broken(error.to_string()),
            Some(Ok(frame)) => {
                // Trailers say nothing here.
                if let Ok(bytes) = frame.into_data() {
                    return Arrival::Bytes(bytes);
                }
            }
        }
    }
}

/// Tells whether a body says that it is one append at most, so that it will be over in a moment.
pub(super) fn is_small(body: &impl Body) -> bool {
    body.size_hint().exact().is_some_and(|size| size <= limits::BATCH_BYTES as u64)
}

/// Waits for a newer epoch, if the body says whose it is.
pub(super) async fn fenced(open: &mut Option<OpenBody<'_>>) -> u64 {
    match open {
        Some(open) => open.fenced().await,
        None => std::future::pending().await,
    }
}

pub(super) fn broken(reason: &str) -> Problem {
    Problem::new(
        "body_broken",
        format!("the body broke off: {reason}; half a frame at its end is not written"),
    )
}
