//! Where a command writes: its target, heartbeats, and the batches of its producer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use runwire_client::{
    Client, Error, ProducerWriter, RunHandle, ThreadHandle, Upload, UploadReceipt, WriteError,
};

use super::batch::UploadBatch;
use super::notes::Notes;
use crate::failure::plain;

/// Interval of heartbeats while there is nothing to write.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);

/// Limits the threads that get heartbeats: those that were written to last.
const THREADS: usize = 1024;

/// The target of a write: a run, a thread, or the threads that the frames name.
#[derive(Debug, Clone)]
pub(crate) struct WriteTarget {
    pub(crate) client: Client,
    pub(crate) resource: TargetResource,
}

#[derive(Debug, Clone)]
pub(crate) enum TargetResource {
    Run(RunHandle),
    Thread(ThreadHandle),
    /// The threads that were written to so far.
    All(Vec<ThreadHandle>),
}

impl WriteTarget {
    pub(crate) fn run(client: &Client, run: &str) -> Self {
        Self { client: client.clone(), resource: TargetResource::Run(client.run(run)) }
    }

    pub(crate) fn thread(client: &Client, thread: &str) -> Self {
        Self { client: client.clone(), resource: TargetResource::Thread(client.thread(thread)) }
    }

    pub(crate) fn all(client: &Client) -> Self {
        Self { client: client.clone(), resource: TargetResource::All(Vec::new()) }
    }

    pub(crate) fn upload(&self) -> Upload {
        match &self.resource {
            TargetResource::Run(run) => run.upload(),
            TargetResource::Thread(thread) => thread.upload(),
            TargetResource::All(_) => self.client.upload(),
        }
    }

    /// Remembers the threads that were written to.
    fn wrote(&mut self, written: &UploadReceipt) {
        if let TargetResource::All(threads) = &mut self.resource {
            threads.retain(|known| !written.threads.iter().any(|id| known.id() == id));
            threads.extend(written.threads.iter().map(|id| self.client.thread(id)));
            let forgotten = threads.len().saturating_sub(THREADS);
            threads.drain(..forgotten);
        }
    }

    /// Returns the threads that the frames named.
    pub(crate) fn threads(&self) -> Vec<String> {
        match &self.resource {
            TargetResource::All(threads) => threads.iter().map(|thread| thread.id().to_owned()).collect(),
            TargetResource::Run(_) | TargetResource::Thread(_) => Vec::new(),
        }
    }

    /// Renews the leases. Errors are ignored: the next write will fail.
    pub(crate) async fn send_heartbeats(&self) {
        match &self.resource {
            TargetResource::Run(run) => drop(run.heartbeat().await),
            TargetResource::Thread(thread) => self.send_thread_heartbeats(thread).await,
            TargetResource::All(threads) => {
                for thread in threads {
                    self.send_thread_heartbeats(thread).await;
                }
            }
        }
    }

    async fn send_thread_heartbeats(&self, thread: &ThreadHandle) {
        let open = thread.info().await.map(|thread| thread.open_runs).unwrap_or_default();
        for run in open {
            drop(self.client.run(run).heartbeat().await);
        }
    }
}

/// Writes the batches of one producer, and says on the terminal when it must retry.
#[derive(Debug)]
pub(crate) struct BatchWriter {
    pub(crate) target: WriteTarget,
    pub(crate) producer: ProducerWriter,
    notes: Notes,
    /// Whether the last attempt failed.
    is_retrying: Arc<AtomicBool>,
}

impl BatchWriter {
    /// Creates a writer; what it uploads goes to the target.
    pub(crate) fn new(target: WriteTarget, producer: ProducerWriter, notes: Notes) -> Self {
        let is_retrying = Arc::new(AtomicBool::new(false));
        let (was_retrying, say) = (is_retrying.clone(), notes.clone());
        let producer = producer.on_retry(move |_, error| {
            if !was_retrying.swap(true, Ordering::Relaxed) {
                say.say(&format!("trying again: {}", plain(error)));
            }
        });
        Self { target, producer, notes, is_retrying }
    }

    /// Writes a batch, and returns once it is durable; `end` ends the run after it.
    pub(crate) async fn write(
        &mut self,
        batch: &UploadBatch,
        end: bool,
    ) -> Result<UploadReceipt, WriteError<Error>> {
        let written = self.producer.write(&batch.encoded(), end).await;
        let was_retrying = self.is_retrying.swap(false, Ordering::Relaxed);
        if let Ok(written) = &written {
            if was_retrying {
                self.notes.say("connected again; everything is written");
            }
            self.target.wrote(written);
        }
        written
    }
}
