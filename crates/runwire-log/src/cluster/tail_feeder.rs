//! Starts and stops the tasks that fill the tails of a node: the head poller and the Redis subscriber.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::followed_threads::FollowedThreads;
use super::redis::{RedisTail, TailError};
use super::{ClusterStats, ProbeOpener, TailOptions, head_poller, subscriber};
use crate::key::ThreadKey;
use crate::tail::Tail;

/// Runs the tasks that fill the tails of a node, until it is dropped.
#[derive(Debug)]
pub(crate) struct TailFeeder {
    followed: Arc<FollowedThreads>,
    tasks: Vec<AbortHandle>,
}

impl TailFeeder {
    /// Starts the tasks. `generation` distinguishes this life of the store from others.
    pub(crate) fn open(
        runtime: &Handle,
        tail: Option<&TailOptions>,
        generation: &str,
        opener: ProbeOpener,
    ) -> Result<Self, TailError> {
        // The Redis tail spawns tasks of its own.
        let _within = runtime.enter();
        let opened = tail.map(|tail| RedisTail::open(&tail.url, tail.trust.as_deref(), generation));
        let (redis, receiver) = opened.transpose()?.unzip();
        let followed = Arc::new(FollowedThreads::new(redis));
        let mut tasks = vec![runtime.spawn(head_poller::run(followed.clone(), opener)).abort_handle()];
        if let Some(receiver) = receiver {
            tasks.push(runtime.spawn(subscriber::run(followed.clone(), receiver)).abort_handle());
        }
        Ok(Self { followed, tasks })
    }

    /// Returns the registry, to which writers report commits.
    pub(crate) fn followed(&self) -> &Arc<FollowedThreads> {
        &self.followed
    }

    /// Follows a thread whose tail is new.
    pub(crate) fn begin(&self, key: &ThreadKey, tail: &Arc<Tail>) {
        // No thread has such a name, and Postgres cannot query for it.
        if key.tenant.contains('\0') || key.id.contains('\0') {
            return;
        }
        self.followed.resolve(key, tail);
    }

    /// Returns statistics.
    pub(crate) fn stats(&self) -> ClusterStats {
        self.followed.stats()
    }

    /// Stops polling, and publishes what is queued as far as Redis accepts it in time.
    pub(crate) async fn close(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.followed.close().await;
    }
}

impl Drop for TailFeeder {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
