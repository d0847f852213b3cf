//! Background tasks: sweeps expired leases, claims orphaned runs, applies retention, delivers webhooks.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::{AppState, limits};

/// Handles of the background tasks; dropping them aborts the tasks.
pub(crate) struct Housekeeping(Vec<AbortHandle>);

impl Housekeeping {
    /// Aborts all tasks.
    pub(crate) fn abort_all(&self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        self.abort_all();
    }
}

/// Starts the tasks; retention only if it is configured.
pub(crate) fn start(state: &Arc<AppState>) -> Housekeeping {
    let mut tasks = vec![tokio::spawn(sweep(state.clone())).abort_handle()];
    let retention = state.config.retention;
    if retention.age.is_some() || retention.bytes.is_some() {
        tasks.push(tokio::spawn(trim(state.clone())).abort_handle());
    }
    tasks.extend(state.webhooks.start());
    Housekeeping(tasks)
}

async fn sweep(state: Arc<AppState>) {
    let mut ticks = ticks(limits::SWEEP_TIME);
    loop {
        ticks.tick().await;
        match state.log.sweep().await {
            Ok(0) => {}
            Ok(closed) => tracing::info!(closed, "closed runs whose lease ran out"),
            Err(error) => tracing::warn!(%error, "cannot look for runs whose lease ran out"),
        }
        state.agents.recover().await;
    }
}

async fn trim(state: Arc<AppState>) {
    let mut ticks = ticks(limits::TRIM_TIME);
    loop {
        ticks.tick().await;
        if !state.log.is_leader() {
            continue;
        }
        let configured = state.config.retention;
        let retention = runwire_log::RetentionLimits {
            age: configured.age,
            max_bytes: configured.bytes,
            ..Default::default()
        };
        match state.log.trim(retention).await {
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
