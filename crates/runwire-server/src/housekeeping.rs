//! What the server does for the log without being asked: leases, runs that are left, retention and webhooks.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::{Wire, limits};

/// The tasks that keep house.
pub(crate) struct Housekeeping(Vec<AbortHandle>);

impl Housekeeping {
    /// Stops them all.
    pub(crate) fn abort_all(&self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        self.abort_all();
    }
}

/// Begins to sweep, and to trim if there is anything to keep to.
pub(crate) fn start(wire: &Arc<Wire>) -> Housekeeping {
    let mut tasks = vec![tokio::spawn(sweep(wire.clone())).abort_handle()];
    let retention = wire.config.retention;
    if retention.age.is_some() || retention.bytes.is_some() {
        tasks.push(tokio::spawn(trim(wire.clone())).abort_handle());
    }
    tasks.extend(wire.webhooks.start());
    Housekeeping(tasks)
}

async fn sweep(wire: Arc<Wire>) {
    let mut ticks = ticks(limits::SWEEP_TIME);
    loop {
        ticks.tick().await;
        match wire.log.sweep().await {
            Ok(0) => {}
            Ok(closed) => tracing::info!(closed, "closed runs whose lease ran out"),
            Err(error) => tracing::warn!(%error, "cannot look for runs whose lease ran out"),
        }
        wire.agents.recover().await;
    }
}

async fn trim(wire: Arc<Wire>) {
    let mut ticks = ticks(limits::TRIM_TIME);
    loop {
        ticks.tick().await;
        if !wire.log.is_leader() {
            continue;
        }
        let kept = wire.config.retention;
        let retention =
            runwire_log::RetentionLimits { age: kept.age, max_bytes: kept.bytes, ..Default::default() };
        match wire.log.trim(retention).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed runs that retention does not keep"),
            Err(error) => tracing::warn!(%error, "cannot remove what retention does not keep"),
        }
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
