//! A log wrapper with injected outages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use runwire_log::transfer::NumberedItem;
use runwire_log::*;
use runwire_model::dialect::Encoder;
use runwire_model::window::Window;
use tokio::sync::watch;

use crate::harness::within_timeout;

/// The operations that fail during an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outage {
    Reads = 1,
    Writes = 2,
    Everything = 3,
    /// Writes are committed, but not acknowledged.
    Acknowledgements = 4,
    /// Writes of the server's agents are permanently refused.
    Agents = 8,
    /// Creations of runs are acknowledged later.
    Creations = 16,
}

/// Kinds of operations.
const READ: u8 = Outage::Reads as u8;
const WRITE: u8 = Outage::Writes as u8;

pub(crate) struct FlakyLog {
    log: Arc<dyn Log>,
    away: AtomicU8,
    /// An operation, and how often it succeeds before everything fails.
    last: Mutex<Option<(&'static str, usize)>>,
    refused: Mutex<HashMap<&'static str, usize>>,
    refusals: watch::Sender<()>,
    /// Whether batches of appends panic.
    panics: AtomicBool,
}

impl FlakyLog {
    pub(crate) fn new(log: Arc<dyn Log>) -> Arc<Self> {
        let (away, last, refused) = (AtomicU8::new(0), Mutex::default(), Mutex::default());
        let panics = AtomicBool::new(false);
        Arc::new(Self { log, away, last, refused, refusals: watch::Sender::new(()), panics })
    }

    /// Has the next batch of appends panic, on the thread that submits it.
    pub(crate) fn panic_at_batches(&self) {
        self.panics.store(true, Ordering::SeqCst);
    }

    pub(crate) fn fail(&self, away: Outage) {
        self.refused.lock().unwrap().clear();
        self.away.store(away as u8, Ordering::SeqCst);
    }

    /// Starts an outage once an operation was called more than a number of times.
    pub(crate) fn fail_after(&self, times: usize, verb: &'static str) {
        self.refused.lock().unwrap().clear();
        *self.last.lock().unwrap() = Some((verb, times));
    }

    pub(crate) fn recover(&self) {
        *self.last.lock().unwrap() = None;
        self.away.store(0, Ordering::SeqCst);
    }

    /// Returns how often an operation failed since the outage began.
    pub(crate) fn refused(&self, verb: &str) -> usize {
        self.refused.lock().unwrap().get(verb).copied().unwrap_or(0)
    }

    /// Waits until an operation failed a number of times.
    pub(crate) async fn until_refused(&self, verb: &str, times: usize) {
        let mut refusals = self.refusals.subscribe();
        within_timeout(refusals.wait_for(|()| self.refused(verb) >= times)).await.unwrap();
    }

    /// Returns the result of a write, unless acknowledgements fail.
    fn acknowledged<T>(&self, done: T) -> Result<T, LogError> {
        match self.check(Outage::Acknowledgements as u8, "acknowledgement") {
            Ok(_) => Ok(done),
            Err(_) => Err(LogError::Uncertain("postgres://secret@store/ went away".into())),
        }
    }

    fn check(&self, kind: u8, verb: &'static str) -> Result<&Arc<dyn Log>, LogError> {
        match &mut *self.last.lock().unwrap() {
            Some((last, 0)) if *last == verb => self.away.store(Outage::Everything as u8, Ordering::SeqCst),
            Some((last, left)) if *last == verb => *left -= 1,
            _ => {}
        }
        if self.away.load(Ordering::SeqCst) & kind == 0 {
            return Ok(&self.log);
        }
        *self.refused.lock().unwrap().entry(verb).or_default() += 1;
        self.refusals.send_replace(());
        Err(LogError::Unavailable("postgres://secret@store/ is away".into()))
    }
}

#[async_trait]
impl LogEvents for FlakyLog {
    async fn append(&self, append: Append) -> Result<Appended, LogError> {
        let is_agents = append.stamp.as_ref().is_some_and(|stamp| &*stamp.producer == "runwire-agent");
        if is_agents && self.check(Outage::Agents as u8, "agent").is_err() {
            return Err(LogError::Damaged("postgres://secret@store/ is damaged".into()));
        }
        let appended = self.check(WRITE, "append")?.append(append).await?;
        self.acknowledged(appended)
    }

    /// Takes no batches, as a log whose queue is full.
    fn submit_appends(&self, appends: Vec<QueuedAppend>, _: &Arc<dyn ReplySink>) -> Vec<QueuedAppend> {
        assert!(!self.panics.load(Ordering::SeqCst), "a panic of a test");
        appends
    }

    async fn read(&self, thread: &ThreadKey, after: u64) -> Result<RecordPage, LogError> {
        self.check(READ, "read")?.read(thread, after).await
    }

    async fn before(&self, thread: &ThreadKey, seq: u64) -> Result<Window, LogError> {
        self.check(READ, "before")?.before(thread, seq).await
    }

    async fn spans(&self, thread: &ThreadKey) -> Result<Vec<RunSpan>, LogError> {
        self.check(READ, "spans")?.spans(thread).await
    }

    async fn checkpoint(
        &self,
        run: &RunKey,
        form: ReadFormat,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError> {
        self.check(READ, "checkpoint")?.checkpoint(run, form, seq).await
    }

    fn keep_checkpoint(&self, run: &RunKey, form: ReadFormat, seq: u64, encoder: &Encoder) {
        if let Ok(log) = self.check(WRITE, "keep_checkpoint") {
            log.keep_checkpoint(run, form, seq, encoder);
        }
    }

    fn tail(&self, thread: &ThreadKey) -> Arc<Tail> {
        self.log.tail(thread)
    }

    fn version(&self) -> Option<u64> {
        self.log.version()
    }
}

#[async_trait]
impl LogRuns for FlakyLog {
    async fn create_thread(&self, thread: NewThread) -> Result<Created<ThreadInfo>, LogError> {
        self.check(WRITE, "create_thread")?.create_thread(thread).await
    }

    async fn create_run(&self, run: NewRun) -> Result<Created<RunInfo>, LogError> {
        let created = self.check(WRITE, "create_run")?.create_run(run).await;
        while self.check(Outage::Creations as u8, "creation").is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        self.acknowledged(created?)
    }

    async fn cancel(&self, run: &RunKey, cancel: Cancel) -> Result<Cancelled, LogError> {
        self.check(WRITE, "cancel")?.cancel(run, cancel).await
    }

    async fn answer_all(&self, run: &RunKey, answers: Vec<Answer>) -> Result<Vec<Answered>, LogError> {
        self.check(WRITE, "answer_all")?.answer_all(run, answers).await
    }

    async fn heartbeat_all(&self, runs: Vec<RunKey>) -> Result<Vec<Result<RunInfo, LogError>>, LogError> {
        self.check(WRITE, "heartbeat")?.heartbeat_all(runs).await
    }
}

#[async_trait]
impl LogLookups for FlakyLog {
    async fn run(&self, run: &RunKey) -> Result<RunInfo, LogError> {
        self.check(READ, "run")?.run(run).await
    }

    async fn runs(&self, query: RunQuery) -> Result<Vec<RunInfo>, LogError> {
        self.check(READ, "runs")?.runs(query).await
    }

    async fn thread(&self, thread: &ThreadKey) -> Result<ThreadInfo, LogError> {
        self.check(READ, "thread")?.thread(thread).await
    }

    async fn threads(
        &self,
        tenant: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ThreadInfo>, LogError> {
        self.check(READ, "threads")?.threads(tenant, before, limit).await
    }

    async fn producer(&self, run: &RunKey, producer: &str) -> Result<Option<ProducerInfo>, LogError> {
        self.check(READ, "producer")?.producer(run, producer).await
    }

    async fn thread_producer(
        &self,
        thread: &ThreadKey,
        producer: &str,
    ) -> Result<Option<ProducerInfo>, LogError> {
        self.check(READ, "thread_producer")?.thread_producer(thread, producer).await
    }

    async fn interaction(&self, run: &RunKey, interaction_id: &str) -> Result<Interaction, LogError> {
        self.check(READ, "interaction")?.interaction(run, interaction_id).await
    }

    async fn interactions(&self, query: InteractionQuery) -> Result<InteractionPage, LogError> {
        self.check(READ, "interactions")?.interactions(query).await
    }
}

#[async_trait]
impl LogUpkeep for FlakyLog {
    async fn export(&self, thread: &ThreadKey, part: &ExportRequest) -> Result<ExportPage, LogError> {
        self.check(READ, "export")?.export(thread, part).await
    }

    async fn import(&self, thread: &ThreadKey, items: Vec<NumberedItem>) -> Result<Imported, LogError> {
        self.check(WRITE, "import")?.import(thread, items).await
    }

    async fn delete_thread(&self, thread: &ThreadKey, force: bool) -> Result<(), LogError> {
        self.check(WRITE, "delete_thread")?.delete_thread(thread, force).await
    }

    async fn trim(&self, retention: RetentionLimits) -> Result<usize, LogError> {
        self.check(WRITE, "trim")?.trim(retention).await
    }

    async fn sweep(&self) -> Result<usize, LogError> {
        self.check(WRITE, "sweep")?.sweep().await
    }
}

#[async_trait]
impl LogOutbox for FlakyLog {
    async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), LogError> {
        self.check(WRITE, "subscribe")?.subscribe(subscribers).await
    }

    async fn outbox(&self, subscriber: &str, limit: usize) -> Result<Vec<OutboxMessage>, LogError> {
        self.check(READ, "outbox")?.outbox(subscriber, limit).await
    }

    async fn mark_delivered(&self, notice: u64, outcome: DeliveryOutcome) -> Result<(), LogError> {
        self.check(WRITE, "mark_delivered")?.mark_delivered(notice, outcome).await
    }

    fn outbox_changed(&self) -> watch::Receiver<()> {
        self.log.outbox_changed()
    }
}

#[async_trait]
impl LogNode for FlakyLog {
    async fn claim_orphans(&self, agents: &[&str], limit: usize) -> Result<Vec<OrphanedRun>, LogError> {
        self.check(WRITE, "claim_orphans")?.claim_orphans(agents, limit).await
    }

    async fn stats(&self) -> Result<LogStats, LogError> {
        self.check(READ, "stats")?.stats().await
    }

    async fn ready(&self) -> Result<(), LogError> {
        self.check(READ | WRITE, "ready")?.ready().await
    }

    async fn close(&self) {
        self.log.close().await;
    }
}
