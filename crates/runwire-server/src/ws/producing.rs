//! What a socket writes to: its pings keep those runs, and it is told what people say to them.
//!
//! A producer that only writes has no subscription to learn from. So from its first write to a run on it gets what an
//! agent that is a program reads on its standard input: answers, cancel, and an end that is not its own.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::ws::Message;
use runwire_log::{Log, LogError, RunInfo, RunKey, Target, ThreadKey};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::agents::signals::{Follower, news_in};
use crate::limits;

/// The runs and threads that a socket has written to, the newest last.
pub(super) struct Producing {
    log: Arc<dyn Log>,
    out: mpsc::Sender<Message>,
    written: VecDeque<Written>,
}

struct Written {
    target: Target,
    telling: AbortHandle,
}

impl Drop for Written {
    fn drop(&mut self) {
        self.telling.abort();
    }
}

impl Producing {
    pub(super) fn new(log: Arc<dyn Log>, out: mpsc::Sender<Message>) -> Self {
        Self { log, out, written: VecDeque::new() }
    }

    /// Notes that something was written, up to a record, and begins to tell what people say to it.
    pub(super) async fn wrote(&mut self, target: &Target, last_seq: u64) {
        if self.written.iter().any(|written| written.target == *target) {
            return;
        }
        // What cannot be looked at now is gone, or will fail the next write.
        let Ok(Some(telling)) = self.begin(target, last_seq).await else { return };
        if self.written.len() == limits::SUBSCRIPTIONS {
            self.written.pop_front();
        }
        let telling = tokio::spawn(telling.tell(self.out.clone())).abort_handle();
        self.written.push_back(Written { target: target.clone(), telling });
    }

    /// Shows that the producers of what was written to are alive.
    pub(super) async fn renew_leases(&mut self) {
        let mut kept = VecDeque::new();
        for written in std::mem::take(&mut self.written) {
            // One that has ended is kept until that was told.
            if self.renew(&written.target).await || !written.telling.is_finished() {
                kept.push_back(written);
            }
        }
        self.written = kept;
    }

    /// Renews what is open; false means that it takes no more writes.
    async fn renew(&self, target: &Target) -> bool {
        match target {
            Target::Run(run) => self.log.heartbeat(run).await.is_ok_and(|info| !info.status.is_closed()),
            Target::Thread(thread) => {
                let Ok(info) = self.log.thread(thread).await else { return false };
                for run in info.open_runs {
                    let _ = self.log.heartbeat(&RunKey::new(thread.tenant.clone(), run)).await;
                }
                true
            }
        }
    }

    async fn begin(&self, target: &Target, last_seq: u64) -> Result<Option<Telling>, LogError> {
        let follow = |thread: &ThreadKey, run, after| {
            let follower = Follower::new(self.log.clone(), run, thread, after);
            Some(Telling { follower, thread: thread.id.clone(), is_one_run: run.is_some() })
        };
        match target {
            Target::Run(key) => {
                let run = self.log.run(key).await?;
                let thread = key.thread(run.thread_id.as_str());
                Ok(if run.status.is_closed() { None } else { follow(&thread, Some(key), unsaid(&run)) })
            }
            Target::Thread(thread) => {
                let mut after = last_seq;
                for id in self.log.thread(thread).await?.open_runs {
                    let run = self.log.run(&RunKey::new(thread.tenant.clone(), id)).await?;
                    after = after.min(unsaid(&run));
                }
                Ok(follow(thread, None, after))
            }
        }
    }
}

/// Tells up to which record nobody has said anything to a run. Whoever comes back hears again what was said.
fn unsaid(run: &RunInfo) -> u64 {
    let is_said = run.summary.cancel_requested || !run.summary.interactions.is_empty();
    match run.first_seq {
        Some(first) if is_said => first.saturating_sub(1),
        _ => run.last_seq,
    }
}

/// Tells a socket what is said to a run, or to all runs of a thread.
struct Telling {
    follower: Follower,
    thread: Arc<str>,
    is_one_run: bool,
}

impl Telling {
    async fn tell(mut self, out: mpsc::Sender<Message>) {
        while let Some(records) = self.follower.records().await {
            for stored in records {
                for frame in news_in(&stored, &self.thread) {
                    let run = serde_json::Value::from(&*stored.run);
                    let text = format!(r#"{{"op":"signal","run":{run},"frame":{frame}}}"#);
                    if out.send(Message::Text(text.into())).await.is_err() {
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
