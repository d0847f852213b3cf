//! The runs and threads that a socket has written to: renews their leases, and forwards their signals to the socket.
//!
//! A producer that only writes has no subscription. So from its first write to a run on, it gets what an `exec` agent
//! reads on its standard input: answers, cancel requests, and an end that it did not write itself.

use std::collections::VecDeque;
use std::sync::Arc;

use runwire_log::{Log, LogError, RunInfo, RunKey, Target, ThreadKey};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::websocket::Outbox;
use crate::{AppState, limits};
use runwire_agents::signals::{RecordFollower, producer_frames_in};
use runwire_log::outage::{is_outage, retry_until_available};

/// The written runs and threads, the newest last.
pub(super) struct WrittenTargets {
    log: Arc<dyn Log>,
    out: Outbox,
    shutdown: watch::Receiver<bool>,
    targets: VecDeque<WrittenTarget>,
}

struct WrittenTarget {
    target: Target,
    forwarding: AbortHandle,
}

impl Drop for WrittenTarget {
    fn drop(&mut self) {
        self.forwarding.abort();
    }
}

impl WrittenTargets {
    pub(super) fn new(state: &AppState, out: Outbox) -> Self {
        Self { log: state.log.clone(), out, shutdown: state.shutdown.clone(), targets: VecDeque::new() }
    }

    /// Adds a target after a write up to `last_seq`, and starts to forward its signals.
    pub(super) async fn add(&mut self, target: &Target, last_seq: u64) {
        if self.targets.iter().any(|written| written.target == *target) {
            return;
        }
        let begun = signal_forwarder(&self.log, target, last_seq).await;
        let forwarding = match begun {
            Ok(Some(forwarder)) => tokio::spawn(forwarder.forward(self.out.clone())),
            Err(error) if is_outage(&error) => {
                let (log, out, shutdown) = (self.log.clone(), self.out.clone(), self.shutdown.clone());
                let target = target.clone();
                tokio::spawn(async move {
                    if let Ok(Some(forwarder)) =
                        retry_until_available(&shutdown, || signal_forwarder(&log, &target, last_seq)).await
                    {
                        forwarder.forward(out).await;
                    }
                })
            }
            // The run has ended, or is gone.
            Ok(None) | Err(_) => return,
        };
        if self.targets.len() == limits::SUBSCRIPTIONS {
            self.targets.pop_front();
        }
        self.targets
            .push_back(WrittenTarget { target: target.clone(), forwarding: forwarding.abort_handle() });
    }

    /// Renews the leases of all targets in one commit, and forgets the targets that have ended.
    pub(super) async fn renew_leases(&mut self) {
        // The number of each run's target.
        let (mut runs, mut targets) = (Vec::new(), Vec::new());
        for (at, written) in self.targets.iter().enumerate() {
            match &written.target {
                Target::Run(run) => runs.push(run.clone()),
                Target::Thread(thread) => match self.log.thread(thread).await {
                    Ok(info) => {
                        let key = |run| RunKey::new(thread.tenant.clone(), run);
                        runs.extend(info.open_runs.into_iter().map(key));
                    }
                    // The other look-ups would fail, too. After an outage the store extends all leases.
                    Err(error) if is_outage(&error) => return,
                    Err(_) => {}
                },
                // Sockets do not write to a tenant.
                Target::Tenant(_) => {}
            }
            targets.resize(runs.len(), at);
        }
        let mut is_open = vec![false; self.targets.len()];
        for (runs, targets) in runs.chunks(limits::RENEWED_RUNS).zip(targets.chunks(limits::RENEWED_RUNS)) {
            let Ok(renewed) = self.log.heartbeat_all(runs.to_vec()).await else { return };
            for (run, target) in renewed.into_iter().zip(targets) {
                is_open[*target] |= run.is_ok_and(|run| !run.status.is_closed());
            }
        }
        // An ended run is kept until its end was forwarded.
        let mut is_open = is_open.into_iter();
        self.targets.retain(|written| {
            let is_thread = matches!(written.target, Target::Thread(_));
            is_open.next().unwrap_or(true) || is_thread || !written.forwarding.is_finished()
        });
    }
}

/// Creates the forwarder of a target that was written up to `last_seq`; none if the run has ended.
async fn signal_forwarder(
    log: &Arc<dyn Log>,
    target: &Target,
    last_seq: u64,
) -> Result<Option<SignalForwarder>, LogError> {
    let follow = |thread: &ThreadKey, run, after| {
        let follower = RecordFollower::new(log.clone(), run, thread, after);
        Some(SignalForwarder { follower, thread: thread.id.clone(), is_one_run: run.is_some() })
    };
    match target {
        Target::Run(key) => {
            let run = log.run(key).await?;
            let thread = key.thread(run.thread_id.as_str());
            let is_over = run.status.is_closed() && run.last_seq <= last_seq;
            Ok(if is_over { None } else { follow(&thread, Some(key), replay_after(&run).min(last_seq)) })
        }
        Target::Thread(thread) => {
            let mut after = last_seq;
            for id in log.thread(thread).await?.open_runs {
                let run = log.run(&RunKey::new(thread.tenant.clone(), id)).await?;
                after = after.min(replay_after(&run));
            }
            Ok(follow(thread, None, after))
        }
        Target::Tenant(_) => Ok(None),
    }
}

/// Returns the record after which signals are forwarded: a reconnecting producer gets earlier signals of the run again.
fn replay_after(run: &RunInfo) -> u64 {
    let has_signals = run.summary.cancel_requested || !run.summary.interactions.is_empty();
    match run.first_seq {
        Some(first) if has_signals => first.saturating_sub(1),
        _ => run.last_seq,
    }
}

/// Forwards the signals of a run, or of all runs of a thread, to a socket.
struct SignalForwarder {
    follower: RecordFollower,
    thread: Arc<str>,
    is_one_run: bool,
}

impl SignalForwarder {
    async fn forward(mut self, out: Outbox) {
        while let Some(records) = self.follower.records().await {
            for stored in records {
                for frame in producer_frames_in(&stored, &self.thread) {
                    let run = serde_json::Value::from(&*stored.run);
                    let text = format!(r#"{{"op":"signal","run":{run},"frame":{frame}}}"#);
                    if !out.send(text).await {
                        return;
                    }
                }
                if self.is_one_run && stored.is_terminal() {
                    return;
                }
            }
        }
    }
}
