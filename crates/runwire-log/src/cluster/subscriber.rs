//! What is made of entries that arrive from Redis.

use std::sync::Arc;

use super::encoded_batch::decode;
use super::followed_threads::{FollowedThreads, ReadUrgency};
use super::redis::{EntryReceiver, ReceivedEntry};
use crate::tail::OfferResult;

/// Takes entries until there are no more.
pub(super) async fn run(followed: Arc<FollowedThreads>, mut receiver: EntryReceiver) {
    while let Some(entry) = receiver.next().await {
        apply(&followed, entry);
    }
}

fn apply(followed: &FollowedThreads, ReceivedEntry { thread, first, last, body }: ReceivedEntry) {
    let Some(tail) = followed.tail(thread) else { return };
    let newest = tail.newest().unwrap_or(0);
    // Most of all what this node has committed itself.
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
        // Too large to be told, or not to be understood.
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
