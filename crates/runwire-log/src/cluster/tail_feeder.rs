//! What keeps the tails of a node filled, from the outside.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::followed_threads::FollowedThreads;
use super::redis::{RedisTail, TailError};
use super::{ClusterStats, ProbeOpener, TailOptions, head_poller, subscriber};
use crate::key::ThreadKey;
use crate::tail::Tail;

/// What keeps the tails of a node filled. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct TailFeeder {
    followed: Arc<FollowedThreads>,
    tasks: Vec<AbortHandle>,
}

impl TailFeeder {
    /// Begins to follow whatever is read. `generation` tells this life of the store from others.
    pub(crate) fn open(
        runtime: &Handle,
        tail: Option<&TailOptions>,
        generation: &str,
        opener: ProbeOpener,
    ) -> Result<Self, TailError> {
        // What is begun here begins its own tasks.
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

    /// Gives what tells the followed of commits.
    pub(crate) fn followed(&self) -> &Arc<FollowedThreads> {
        &self.followed
    }

    /// Begins to follow a thread whose tail is new.
    pub(crate) fn begin(&self, key: &ThreadKey, tail: &Arc<Tail>) {
        // No thread is called that, and a store cannot be asked for it.
        if key.tenant.contains('\0') || key.id.contains('\0') {
            return;
        }
        self.followed.resolve(key, tail);
    }

    /// Tells how it goes.
    pub(crate) fn stats(&self) -> ClusterStats {
        self.followed.stats()
    }

    /// Tells the other nodes what they were not told yet, as far as Redis takes it in time, and looks no more.
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
