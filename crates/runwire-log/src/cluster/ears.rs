//! What is made of entries that arrive from Redis.

use std::sync::Arc;

use super::desk::{Desk, Want};
use super::parcel::unpack;
use super::redis::{Arrival, Arrivals};
use crate::tail::Offered;

/// Takes entries until there are no more.
pub(super) async fn listen(desk: Arc<Desk>, mut arrivals: Arrivals) {
    while let Some(arrival) = arrivals.next().await {
        take(&desk, arrival);
    }
}

fn take(desk: &Desk, Arrival { thread, first, last, body }: Arrival) {
    let Some(tail) = desk.tail(thread) else { return };
    let newest = tail.newest().unwrap_or(0);
    // Most of all what this node has committed itself.
    if last <= newest {
        return;
    }
    let records = body.map(|body| unpack(body, first, last, newest));
    match records {
        Some(Ok(records)) => {
            if tail.offer(&records) == Offered::Early {
                desk.want(thread, Want::Late);
            }
        }
        // Too large to be told, or not to be understood.
        Some(Err(_)) | None => {
            if tail.stand_at(last) {
                desk.want(thread, if first <= newest + 1 { Want::Now } else { Want::Late });
            }
        }
    }
}
