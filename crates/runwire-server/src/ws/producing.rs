//! What a socket writes to: its pings keep those runs, and it is told what people say to them.
//!
//! A producer that only writes has no subscription to learn from. So from its first write to a run on it gets what an
//! agent that is a program reads on its standard input: answers, cancel, and an end that is not its own.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::ws::Message;
use runwire_log::{Log, LogError, RunInfo, RunKey, Target, ThreadKey};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::agents::signals::{Follower, news_in};
use crate::store_retry::{is_outage, retry_until_available};
use crate::{AppState, limits};

/// The runs and threads that a socket has written to, the newest last.
pub(super) struct Producing {
    log: Arc<dyn Log>,
    out: mpsc::Sender<Message>,
    shutdown: watch::Receiver<bool>,
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
    pub(super) fn new(state: &AppState, out: mpsc::Sender<Message>) -> Self {
        Self { log: state.log.clone(), out, shutdown: state.shutdown.clone(), written: VecDeque::new() }
    }

    /// Notes that something was written, up to a record, and begins to tell what people say to it.
    pub(super) async fn wrote(&mut self, target: &Target, last_seq: u64) {
        if self.written.iter().any(|written| written.target == *target) {
            return;
        }
        let begun = begin(&self.log, target, last_seq).await;
        let telling = match begun {
            Ok(Some(telling)) => tokio::spawn(telling.tell(self.out.clone())),
            Err(error) if is_outage(&error) => {
                let (log, out, shutdown) = (self.log.clone(), self.out.clone(), self.shutdown.clone());
                let target = target.clone();
                tokio::spawn(async move {
                    if let Ok(Some(telling)) = retry_until_available(&shutdown, || begin(&log, &target, last_seq)).await {
                        telling.tell(out).await;
                    }
                })
            }
            // There is nothing more to tell, or nothing left to tell of.
            Ok(None) | Err(_) => return,
        };
        if self.written.len() == limits::SUBSCRIPTIONS {
            self.written.pop_front();
        }
        self.written.push_back(Written { target: target.clone(), telling: telling.abort_handle() });
    }

    /// Shows that the producers of what was written to are alive.
    pub(super) async fn renew_leases(&mut self) {
        let mut at = 0;
        while let Some(written) = self.written.get(at) {
            match self.renew(&written.target).await {
                // What has ended is kept until that was told.
                Ok(false) if written.telling.is_finished() => drop(self.written.remove(at)),
                Ok(_) => at += 1,
                // The others would be waited for in vain, too. When the store is back, it extends all leases.
                Err(_) => return,
            }
        }
    }

    /// Renews what is open; false means that it takes no more writes. The only failure is that the store is away.
    async fn renew(&self, target: &Target) -> Result<bool, LogError> {
        let renewed = match target {
            Target::Run(run) => self.log.heartbeat(run).await.map(|info| !info.status.is_closed()),
            Target::Thread(thread) => self.renew_runs(thread).await.map(|()| true),
            // Nothing is written so on a socket.
            Target::Tenant(_) => Ok(false),
        };
        renewed.or_else(|error| if is_outage(&error) { Err(error) } else { Ok(false) })
    }

    async fn renew_runs(&self, thread: &ThreadKey) -> Result<(), LogError> {
        for run in self.log.thread(thread).await?.open_runs {
            match self.log.heartbeat(&RunKey::new(thread.tenant.clone(), run)).await {
                Err(error) if is_outage(&error) => return Err(error),
                // One that has just gone is no matter.
                _ => {}
            }
        }
        Ok(())
    }
}

/// Finds the place from which a producer is told what is said to what it has written, up to a record.
async fn begin(log: &Arc<dyn Log>, target: &Target, last_seq: u64) -> Result<Option<Telling>, LogError> {
    let follow = |thread: &ThreadKey, run, after| {
        let follower = Follower::new(log.clone(), run, thread, after);
        Some(Telling { follower, thread: thread.id.clone(), is_one_run: run.is_some() })
    };
    match target {
        Target::Run(key) => {
            let run = log.run(key).await?;
            let thread = key.thread(run.thread_id.as_str());
            let is_over = run.status.is_closed() && run.last_seq <= last_seq;
            Ok(if is_over { None } else { follow(&thread, Some(key), unsaid(&run).min(last_seq)) })
        }
        Target::Thread(thread) => {
            let mut after = last_seq;
            for id in log.thread(thread).await?.open_runs {
                let run = log.run(&RunKey::new(thread.tenant.clone(), id)).await?;
                after = after.min(unsaid(&run));
            }
            Ok(follow(thread, None, after))
        }
        Target::Tenant(_) => Ok(None),
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
