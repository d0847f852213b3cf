//! Signals to the producer of a run (answers, cancel requests, its end), read by following the run's records.

use std::sync::Arc;

use runwire_log::{LogError, LogEvents, RecordPage, RunKey, StoredRecord, Tail, ThreadKey};
use runwire_model::event::{Body, Event, InteractionResolved};
use runwire_model::json::ObjectWriter;
use tokio::sync::watch;

use runwire_log::outage::{OutageBackoff, is_outage};

/// Something in a run's records that its agent must react to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunSignal {
    /// The run waits for a person.
    Suspended,
    /// A person answered, or the time to answer expired.
    Answered(InteractionResolved),
    /// All interactions are settled, in the record of this `seq`.
    Resumed { seq: u64 },
    /// Cancelling the run was requested.
    CancelRequested { reason: Option<String> },
    /// The run has ended.
    Closed {
        /// Whether its agent ended it.
        by_agent: bool,
    },
}

/// Follows the records of a run, or of all runs of a thread.
pub struct RecordFollower {
    log: Arc<dyn LogEvents>,
    /// The run to follow; none for the whole thread.
    run: Option<Arc<str>>,
    thread: ThreadKey,
    tail: Arc<Tail>,
    head: watch::Receiver<runwire_log::TailHead>,
    /// The last record that was read.
    at: u64,
    /// Whether the store may have records that the tail does not.
    is_behind: bool,
    /// Backoff during an outage of the store.
    backoff: OutageBackoff,
}

impl RecordFollower {
    /// Follows a thread, or one of its runs, after a record.
    pub fn new(log: Arc<dyn LogEvents>, run: Option<&RunKey>, thread: &ThreadKey, after: u64) -> Self {
        let tail = log.tail(thread);
        let head = tail.watch();
        let (run, thread) = (run.map(|run| run.id.clone()), thread.clone());
        let backoff = OutageBackoff::default();
        Self { log, run, thread, tail, head, at: after, is_behind: true, backoff }
    }

    /// Returns the last record that was read.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Waits for records and returns those of the run, possibly none of them; `None` if the thread was deleted.
    ///
    /// Waits out outages of the store. Cancel-safe.
    pub async fn records(&mut self) -> Option<Vec<Arc<StoredRecord>>> {
        loop {
            let head = *self.head.borrow_and_update();
            if !self.is_behind && head.seq <= self.at {
                if head.deleted || self.head.changed().await.is_err() {
                    return None;
                }
                continue;
            }
            let recent = if self.is_behind { None } else { self.tail.after(self.at) };
            let records = match recent.filter(|records| !records.is_empty()) {
                Some(records) => records,
                None => match self.read().await {
                    Ok(page) => {
                        let last = page.records.last().map_or(page.head, |last| last.record.seq);
                        self.is_behind = last < page.head;
                        page.records
                    }
                    // The tail may have got the records meanwhile.
                    Err(error) if is_outage(&error) => continue,
                    Err(error) => {
                        tracing::debug!(%error, thread = &*self.thread.id, "a run cannot be followed any more");
                        return None;
                    }
                },
            };
            let Some(last) = records.last() else {
                // The store has no records up to the head that the tail announced: skip them.
                self.at = self.at.max(head.seq);
                continue;
            };
            self.at = last.record.seq;
            let matters =
                |stored: &Arc<StoredRecord>| self.run.as_ref().is_none_or(|run| *stored.run == **run);
            return Some(records.into_iter().filter(matters).collect());
        }
    }

    /// Reads the store after the backoff.
    async fn read(&mut self) -> Result<RecordPage, LogError> {
        self.backoff.wait().await;
        let page = self.log.read(&self.thread, self.at).await;
        match &page {
            Err(error) if is_outage(error) => {
                self.backoff.record_failure(error);
            }
            _ => self.backoff.reset(),
        }
        page
    }

    /// Waits for records and returns their signals, possibly none. A deleted thread counts as the run's end.
    pub(super) async fn signals(&mut self) -> Vec<RunSignal> {
        match self.records().await {
            Some(records) => records.iter().flat_map(|stored| signals_in(stored)).collect(),
            None => vec![RunSignal::Closed { by_agent: false }],
        }
    }
}

/// Returns the signals in a record.
pub(super) fn signals_in(stored: &StoredRecord) -> Vec<RunSignal> {
    let record = &stored.record;
    // Records of the server have no dialect.
    let by_agent = record.dialect.is_some();
    let signal = |body: &Body| match body {
        Body::RunSuspended(_) => Some(RunSignal::Suspended),
        Body::InteractionResolved(resolved) if !by_agent => Some(RunSignal::Answered(resolved.clone())),
        Body::RunResumed(_) => Some(RunSignal::Resumed { seq: record.seq }),
        Body::RunCancelRequested(cancel) => {
            Some(RunSignal::CancelRequested { reason: cancel.reason.clone() })
        }
        body if body.is_terminal() => Some(RunSignal::Closed { by_agent }),
        _ => None,
    };
    let mut signals: Vec<_> = record.entries.iter().filter_map(|entry| signal(&entry.event.body)).collect();
    // The end of a run settles open interactions, which is not an answer.
    if signals.iter().any(|signal| matches!(signal, RunSignal::Closed { .. })) {
        signals.retain(|signal| matches!(signal, RunSignal::Closed { .. }));
    }
    signals
}

/// Returns the events in a record that its producer must receive, as `runwire` frames.
pub fn producer_frames_in(stored: &StoredRecord, thread: &str) -> Vec<String> {
    let record = &stored.record;
    // The producer knows its own records.
    if record.dialect.is_some() {
        return Vec::new();
    }
    let is_news = |body: &Body| {
        body.is_terminal() || matches!(body, Body::InteractionResolved(_) | Body::RunCancelRequested(_))
    };
    let frame = |event: &Event| {
        let mut frame = Vec::new();
        let mut object = ObjectWriter::begin(&mut frame);
        object.u64("seq", record.seq);
        object.str("at", &record.at.to_string());
        object.str("thread_id", thread);
        object.str("run_id", &stored.run);
        event.write(&mut object);
        object.end();
        String::from_utf8_lossy(&frame).into_owned()
    };
    let events = record.entries.iter().map(|entry| &entry.event);
    events.filter(|event| is_news(&event.body)).map(frame).collect()
}
