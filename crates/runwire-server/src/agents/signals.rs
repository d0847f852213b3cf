//! What people and the server say to a run, read from its log: whoever runs an agent learns of it by reading.

use std::sync::Arc;

use runwire_log::{Log, LogError, RecordPage, RunKey, StoredRecord, Tail, ThreadKey};
use runwire_model::event::{Body, Event, InteractionResolved};
use runwire_model::json::ObjectWriter;
use tokio::sync::watch;

use crate::outage::{Patience, is_outage};

/// Something in a run that its agent must know of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Signal {
    /// The run waits for a person.
    Suspended,
    /// A person answered, or the time to answer is over.
    Answered(InteractionResolved),
    /// All questions are settled, in the record of this `seq`.
    Resumed { seq: u64 },
    /// Someone wants the run to stop.
    CancelRequested { reason: Option<String> },
    /// The run has ended.
    Closed {
        /// Whether its agent has said so.
        by_agent: bool,
    },
}

/// Reads the records of a run, or of all runs of a thread, from a place on.
pub(crate) struct Follower {
    log: Arc<dyn Log>,
    /// The only run that matters, if there is one.
    run: Option<Arc<str>>,
    thread: ThreadKey,
    tail: Arc<Tail>,
    head: watch::Receiver<runwire_log::TailHead>,
    /// The last record that was looked at.
    at: u64,
    /// Whether the store may have records that the tail has not told of.
    is_behind: bool,
    /// When the store is asked again, while it is away.
    patience: Patience,
}

impl Follower {
    /// Follows a thread, or one run in it, from after a record on.
    pub(crate) fn new(log: Arc<dyn Log>, run: Option<&RunKey>, thread: &ThreadKey, after: u64) -> Self {
        let tail = log.tail(thread);
        let head = tail.watch();
        let (run, thread) = (run.map(|run| run.id.clone()), thread.clone());
        let patience = Patience::default();
        Self { log, run, thread, tail, head, at: after, is_behind: true, patience }
    }

    /// Tells the last record that was looked at.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Waits for records, and gives those that matter, which may be none; nothing follows where the thread is gone.
    ///
    /// A store that is away is waited for: that is no end. Whoever gives up waiting loses nothing.
    pub(crate) async fn records(&mut self) -> Option<Vec<Arc<StoredRecord>>> {
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
                    // Meanwhile the tail may have been told.
                    Err(error) if is_outage(&error) => continue,
                    Err(error) => {
                        tracing::debug!(%error, thread = &*self.thread.id, "a run cannot be followed any more");
                        return None;
                    }
                },
            };
            let Some(last) = records.last() else {
                // Whatever the tail has told of is not there.
                self.at = self.at.max(head.seq);
                continue;
            };
            self.at = last.record.seq;
            let matters =
                |stored: &Arc<StoredRecord>| self.run.as_ref().is_none_or(|run| *stored.run == **run);
            return Some(records.into_iter().filter(matters).collect());
        }
    }

    /// Reads the store, when it is time to.
    async fn read(&mut self) -> Result<RecordPage, LogError> {
        self.patience.wait().await;
        let page = self.log.read(&self.thread, self.at).await;
        match &page {
            Err(error) if is_outage(error) => {
                self.patience.failed(error);
            }
            _ => self.patience.worked(),
        }
        page
    }

    /// Waits for records, and gives the signals in them, which may be none. A thread that is gone is a run's end.
    pub(super) async fn signals(&mut self) -> Vec<Signal> {
        match self.records().await {
            Some(records) => records.iter().flat_map(|stored| signals_in(stored)).collect(),
            None => vec![Signal::Closed { by_agent: false }],
        }
    }
}

/// Lists what a record tells an agent.
pub(super) fn signals_in(stored: &StoredRecord) -> Vec<Signal> {
    let record = &stored.record;
    // An act of the server has no dialect.
    let by_agent = record.dialect.is_some();
    let signal = |body: &Body| match body {
        Body::RunSuspended(_) => Some(Signal::Suspended),
        Body::InteractionResolved(resolved) if !by_agent => Some(Signal::Answered(resolved.clone())),
        Body::RunResumed(_) => Some(Signal::Resumed { seq: record.seq }),
        Body::RunCancelRequested(asked) => Some(Signal::CancelRequested { reason: asked.reason.clone() }),
        body if body.is_terminal() => Some(Signal::Closed { by_agent }),
        _ => None,
    };
    let mut signals: Vec<_> = record.entries.iter().filter_map(|entry| signal(&entry.event.body)).collect();
    // An end settles what is open; that is no answer.
    if signals.iter().any(|signal| matches!(signal, Signal::Closed { .. })) {
        signals.retain(|signal| matches!(signal, Signal::Closed { .. }));
    }
    signals
}

/// Lists what a record tells the producer of its run, each as a frame of `runwire`.
pub(crate) fn news_in(stored: &StoredRecord, thread: &str) -> Vec<String> {
    let record = &stored.record;
    // What a producer has said itself is no news.
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
