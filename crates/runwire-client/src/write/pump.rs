//! The engine's task: takes whatever has queued up, sends it as one batch, and releases the acknowledgements.

use std::sync::Arc;

use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, error};

use super::shared::{Closing, Shared};
use super::sink::{Link, Sink};

/// Sends what is emitted until the engine is closed, or nothing more can be sent.
pub(super) async fn run<S: Sink>(shared: Arc<Shared>, sink: S) {
    // Whoever waits must learn of the end, also when the runtime ends first.
    let stopped = Stopped(shared);
    let shared = &stopped.0;
    let link = Link(shared.clone());
    tokio::select! {
        () = pump(shared, &link, sink) => {}
        () = until_time_is_up(shared) => {
            error!(target: super::TARGET, run = shared.request_id, "the engine was dropped, and not all events could be written in time");
        }
    }
}

async fn pump<S: Sink>(shared: &Shared, link: &Link, mut sink: S) {
    let heartbeat = sink.heartbeat();
    let mut last_sign = Instant::now();
    loop {
        let work = shared.work.notified();
        tokio::pin!(work);
        work.as_mut().enable();
        let Some(batch) = shared.take() else {
            if shared.closing().is_some() {
                break;
            }
            let beat = async {
                match heartbeat {
                    Some(time) => sleep_until(last_sign + time).await,
                    None => std::future::pending().await,
                }
                sink.beat(link).await
            };
            tokio::select! {
                // What is written waits for no sign of life.
                () = work => {}
                beaten = beat => {
                    if let Err(failure) = beaten {
                        return give_up(shared, failure);
                    }
                    last_sign = Instant::now();
                }
            }
            continue;
        };
        match sink.send(&batch, link).await {
            Ok(receipt) => {
                debug!(target: super::TARGET, run = shared.request_id, first = batch.first(), frames = batch.len(), "acknowledged");
                shared.acknowledge(batch.len() as u64, receipt.last_seq);
                // A write keeps the lease; that a cancel was asked for is told by a heartbeat alone, so one that has
                // much to say sends them too.
                if heartbeat.is_some_and(|time| last_sign.elapsed() >= time) {
                    if let Err(failure) = sink.beat(link).await {
                        return give_up(shared, failure);
                    }
                    last_sign = Instant::now();
                }
            }
            Err(refused) => {
                if refused.accepted > 0 {
                    shared.acknowledge(refused.accepted.min(batch.len() as u64), None);
                }
                return give_up(shared, refused.failure);
            }
        }
    }
    if let Err(failure) = sink.close().await {
        give_up(shared, failure);
    }
}

fn give_up(shared: &Shared, failure: super::Failure) {
    error!(target: super::TARGET, run = shared.request_id, %failure, "the engine gives up");
    shared.fail(failure);
}

/// Waits until nobody holds the engine and its time to flush is up.
async fn until_time_is_up(shared: &Shared) {
    let until = loop {
        if let Some(Closing::Dropped(until)) = shared.closing() {
            break until;
        }
        shared.closed().await;
    };
    sleep(until.saturating_duration_since(Instant::now())).await;
}

struct Stopped(Arc<Shared>);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.set_stopped();
    }
}
