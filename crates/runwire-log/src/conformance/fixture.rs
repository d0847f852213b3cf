//! The fixture of the suite: an open store, with short helpers to write and read it.

use std::sync::Arc;
use std::time::Duration;

use runwire_model::convert::{Converter, Options};
use runwire_model::dialect::Dialect;
use runwire_model::record::Entry;

use super::{Bed, Timing};
use crate::Log;
use crate::append::{Append, Appended, FrameBatch, Stamp, Target};
use crate::error::LogError;
use crate::info::{NewRun, NewThread, RunInfo};
use crate::key::{RunKey, ThreadKey};
use crate::record::StoredRecord;

pub(super) const TENANT: &str = "tenant";

pub(super) const STARTED: &str = r#"{"type":"run.started"}"#;
pub(super) const COMPLETED: &str = r#"{"type":"run.completed"}"#;
/// A frame with a field of the wrong type.
pub(super) const BAD: &str = r#"{"type":"text.delta","message_id":7,"content":"x"}"#;

/// A piece of text in the canonical dialect.
pub(super) fn delta(content: &str) -> String {
    format!(r#"{{"type":"text.delta","message_id":"m","content":{}}}"#, serde_json::json!(content))
}

pub(super) fn run(id: &str) -> RunKey {
    RunKey::new(TENANT, id)
}

pub(super) fn thread(id: &str) -> ThreadKey {
    ThreadKey::new(TENANT, id)
}

pub(super) fn batch(frames: &[impl AsRef<str>]) -> FrameBatch {
    let mut batch = FrameBatch::default();
    for (at, frame) in frames.iter().enumerate() {
        batch.push(at as u64 + 1, None, frame.as_ref().as_bytes());
    }
    batch
}

/// An append of the one anonymous producer, whose dialect is detected.
pub(super) fn append(target: Target, frames: &[impl AsRef<str>]) -> Append {
    Append {
        target,
        thread: None,
        dialect: None,
        stamp: None,
        frames: batch(frames),
        end: false,
        check: Default::default(),
        whole: Default::default(),
        parallel: false,
    }
}

pub(super) fn to_run(id: &str, frames: &[impl AsRef<str>]) -> Append {
    append(Target::Run(run(id)), frames)
}

pub(super) fn to_run_of(thread: &str, id: &str, frames: &[impl AsRef<str>]) -> Append {
    Append { thread: Some(thread.to_owned()), ..to_run(id, frames) }
}

pub(super) fn to_thread(id: &str, frames: &[impl AsRef<str>]) -> Append {
    append(Target::Thread(thread(id)), frames)
}

pub(super) fn stamped(append: Append, producer: &str, epoch: u64, index: u64) -> Append {
    Append { stamp: Some(Stamp { producer: producer.into(), epoch, index }), ..append }
}

/// The types of a record's events.
pub(super) fn types_of(record: &StoredRecord) -> Vec<&'static str> {
    record.record.entries.iter().map(|entry| entry.event.body.type_name()).collect()
}

/// Converts frames of one run in memory, for comparison.
pub(super) fn meaning(
    thread: &str,
    run: &str,
    dialect: Dialect,
    frames: &[impl AsRef<str>],
) -> Vec<Vec<Entry>> {
    let options = Options {
        from: Some(dialect),
        thread: Some(thread.to_owned()),
        run: Some(run.to_owned()),
        ..Options::to(Dialect::Runwire)
    };
    let mut converter = Converter::new(options);
    let mut records = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let mut sink = |converted: runwire_model::convert::Converted<'_>| {
            records.push(converted.record.entries.clone());
        };
        converter.push(at as u64 + 1, None, frame.as_ref().as_bytes(), &mut sink).expect("frames are good");
    }
    records
}

/// A store that is open.
pub(super) struct Fixture<'b> {
    bed: &'b dyn Bed,
    timing: Timing,
    pub(super) log: Arc<dyn Log>,
}

impl<'b> Fixture<'b> {
    pub(super) async fn open(bed: &'b dyn Bed) -> Self {
        Self::with(bed, Timing::default()).await
    }

    pub(super) async fn with(bed: &'b dyn Bed, timing: Timing) -> Self {
        Self { bed, timing, log: bed.open(timing).await }
    }

    pub(super) async fn reopen(self) -> Self {
        let log = self.bed.reopen(self.log, self.timing).await;
        Self { log, ..self }
    }

    /// Writes, and expects that nothing is refused.
    pub(super) async fn write(&self, append: Append) -> Appended {
        let appended = self.log.append(append).await.expect("the append is taken");
        assert_eq!(appended.fault, None);
        appended
    }

    /// Writes, and expects that the whole append is refused.
    pub(super) async fn refused(&self, append: Append) -> LogError {
        self.log.append(append).await.expect_err("the append is refused")
    }

    pub(super) async fn info(&self, id: &str) -> RunInfo {
        self.log.run(&run(id)).await.expect("the run exists")
    }

    pub(super) async fn status(&self, id: &str) -> &'static str {
        self.info(id).await.status.as_str()
    }

    /// Reads the records of a thread after a `seq`, page by page.
    pub(super) async fn records_after(&self, id: &str, after: u64) -> Vec<Arc<StoredRecord>> {
        let mut records: Vec<Arc<StoredRecord>> = Vec::new();
        loop {
            let from = records.last().map_or(after, |record| record.record.seq);
            let page = self.log.read(&thread(id), from).await.expect("the thread can be read");
            if page.records.is_empty() {
                return records;
            }
            records.extend(page.records);
        }
    }

    pub(super) async fn records(&self, id: &str) -> Vec<Arc<StoredRecord>> {
        self.records_after(id, 0).await
    }

    /// The types of all events of a thread.
    pub(super) async fn types(&self, id: &str) -> Vec<&'static str> {
        self.records(id).await.iter().flat_map(|record| types_of(record)).collect()
    }

    pub(super) async fn create_run(&self, id: &str, in_thread: Option<&str>) {
        let new = NewRun {
            tenant: TENANT.into(),
            run_id: Some(id.into()),
            thread_id: in_thread.map(str::to_owned),
            ..NewRun::default()
        };
        self.log.create_run(new).await.expect("the run is created");
    }

    pub(super) async fn create_parallel_thread(&self, id: &str) {
        let new = NewThread { tenant: TENANT.into(), thread_id: Some(id.into()), parallel: true };
        self.log.create_thread(new).await.expect("the thread is created");
    }

    /// Writes a closed run of a thread with one text in it.
    pub(super) async fn closed_run(&self, in_thread: &str, id: &str, text: &str) {
        let frames = [STARTED.to_owned(), delta(text), COMPLETED.to_owned()];
        self.write(to_run_of(in_thread, id, &frames)).await;
    }

    /// Sweeps until a run has a status; the time it may take is far beyond any lease of the suite.
    pub(super) async fn sweep_until(&self, id: &str, status: &str) {
        for _ in 0..2000 {
            self.log.sweep().await.expect("a sweep");
            if self.status(id).await == status {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("run {id} is {}, and never became {status}", self.status(id).await);
    }
}
