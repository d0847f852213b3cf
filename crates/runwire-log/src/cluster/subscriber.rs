//! Applies entries received from Redis to the tails of followed threads.

use std::sync::Arc;

use super::encoded_batch::decode;
use super::followed_threads::{FollowedThreads, ReadUrgency};
use super::redis::{EntryReceiver, ReceivedEntry};
use crate::tail::OfferResult;

/// Applies entries until the Redis tail is dropped.
pub(super) async fn run(followed: Arc<FollowedThreads>, mut receiver: EntryReceiver) {
    while let Some(entry) = receiver.next().await {
        apply(&followed, entry);
    }
}

fn apply(followed: &FollowedThreads, ReceivedEntry { thread, first, last, body }: ReceivedEntry) {
    let Some(tail) = followed.tail(thread) else { return };
    let newest = tail.newest().unwrap_or(0);
    // Mostly this node's own commits.
    if last <= newest {
        return;
    }
    let records = body.map(|body| decode(body, first, last, newest));
    match records {
        Some(Ok(records)) => {
            if tail.offer(&records) == OfferResult::OutOfOrder {
                followed.request_read(thread, ReadUrgency::Soon);
            }
        }
        // Published without a body, or damaged.
        Some(Err(_)) | None => {
            if tail.set_position(last) {
                followed.request_read(
                    thread,
                    if first <= newest + 1 { ReadUrgency::Now } else { ReadUrgency::Soon },
                );
            }
        }
    }
}
