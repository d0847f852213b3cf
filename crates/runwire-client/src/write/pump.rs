//! The engine's background task: sends queued frames batch by batch, releases acknowledgements, sends heartbeats.

use std::sync::Arc;

use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, error};

use super::shared::{Closing, Shared};
use super::sink::{EngineSink, SinkContext};

/// Sends emitted frames until the engine is closed or fails.
pub(super) async fn run<S: EngineSink>(shared: Arc<Shared>, sink: S) {
    // Waiting callers must be woken, even if the runtime ends first.
    let stopped = StopGuard(shared);
    let shared = &stopped.0;
    let context = SinkContext(shared.clone());
    tokio::select! {
        () = pump(shared, &context, sink) => {}
        () = drop_deadline(shared) => {
            error!(target: super::TARGET, run = shared.request_id, "the engine was dropped, and not all events could be written in time");
        }
    }
}

async fn pump<S: EngineSink>(shared: &Shared, context: &SinkContext, mut sink: S) {
    let heartbeat = sink.heartbeat_interval();
    let mut last_heartbeat = Instant::now();
    loop {
        let work = shared.work.notified();
        tokio::pin!(work);
        work.as_mut().enable();
        let Some(batch) = shared.take() else {
            if shared.closing().is_some() {
                break;
            }
            let heartbeat_due = async {
                match heartbeat {
                    Some(time) => sleep_until(last_heartbeat + time).await,
                    None => std::future::pending().await,
                }
                sink.send_heartbeat(context).await
            };
            tokio::select! {
                // Frames go before heartbeats.
                () = work => {}
                sent = heartbeat_due => {
                    if let Err(failure) = sent {
                        return give_up(shared, failure);
                    }
                    last_heartbeat = Instant::now();
                }
            }
            continue;
        };
        match sink.send(&batch, context).await {
            Ok(receipt) => {
                debug!(target: super::TARGET, run = shared.request_id, first = batch.first(), frames = batch.len(), "acknowledged");
                shared.acknowledge(batch.len() as u64, receipt.last_seq);
                // A write renews the lease, but only a heartbeat's response says that a cancel was requested: so a
                // busy engine sends them too.
                if heartbeat.is_some_and(|time| last_heartbeat.elapsed() >= time) {
                    if let Err(failure) = sink.send_heartbeat(context).await {
                        return give_up(shared, failure);
                    }
                    last_heartbeat = Instant::now();
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

fn give_up(shared: &Shared, failure: super::EngineFailure) {
    error!(target: super::TARGET, run = shared.request_id, %failure, "the engine gives up");
    shared.fail(failure);
}

/// Waits until the engine was dropped and its linger time is over.
async fn drop_deadline(shared: &Shared) {
    let until = loop {
        if let Some(Closing::Dropped(until)) = shared.closing() {
            break until;
        }
        shared.closed().await;
    };
    sleep(until.saturating_duration_since(Instant::now())).await;
}

struct StopGuard(Arc<Shared>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.set_stopped();
    }
}
