//! The encoder of a feed: turns the records of a thread into segments, with one encoder per open run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_log::{
    HistoryCache, LogError, LogEvents, ReadFormat, RecordSource, RunHistory, RunKey, StoredRecord, ThreadKey,
    Wanted,
};
use runwire_model::attach::AttachSnapshot;
use runwire_model::compact::Compactor;
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::window::Window;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::cursor::FeedCursor;
use super::segment::Segment;
use crate::limits;
use crate::memory_budget::MemoryShare;

/// Limits concurrent encodings.
///
/// An encoding that looks up earlier records blocks its thread until the store has read them. The store reads on
/// threads of the same pool, so without a limit all threads could block and none would be left to read.
static ENCODE_PERMITS: Semaphore = Semaphore::const_new(limits::ENCODINGS);
/// The same for readers that catch up: however many they are, feeds at the end of their runs do not wait for them.
static CATCH_UP_PERMITS: Semaphore = Semaphore::const_new(limits::CATCH_UP_ENCODINGS);

/// Identifies a feed: the thread, optionally one of its runs, and the dialect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FeedKey {
    pub(crate) thread: ThreadKey,
    /// One run of the thread; none for the whole thread.
    pub(crate) run: Option<Arc<str>>,
    /// Whether ordering values count over all runs of the thread.
    pub(crate) in_thread: bool,
    /// The dialect and its options; none for raw bytes.
    pub(crate) form: Option<ReadFormat>,
}

/// Encodes the records of a feed in order.
pub(crate) struct FeedEncoder {
    log: Arc<dyn LogEvents>,
    feed_key: FeedKey,
    /// One encoder for each run that is open at `next`.
    runs: HashMap<Arc<str>, RunEncoder>,
    /// The `seq` of the next record to encode.
    pub(crate) next: u64,
    /// Records up to this one only update the encoders: their frames were emitted before.
    emit_after: u64,
    frames: Frames,
}

struct RunEncoder {
    encoder: Encoder,
    compactor: Option<Compactor>,
    first_seq: u64,
    /// The first record that the encoder has not seen.
    from: u64,
    /// The record of the last checkpoint.
    checkpoint_seq: u64,
    known: HistoryCache,
}

impl FeedEncoder {
    /// Creates an encoder that can emit the frames after a cursor: starts at the nearest checkpoint of each open run.
    pub(crate) async fn begin(
        log: Arc<dyn LogEvents>,
        feed_key: FeedKey,
        after: FeedCursor,
    ) -> Result<Self, LogError> {
        let before = after.whole_records();
        let (runs, frames) = (HashMap::new(), Frames::default());
        let mut feed_encoder = Self { log, feed_key, runs, next: before + 1, emit_after: 0, frames };
        // Raw frames and the runwire dialect do not depend on earlier records.
        let Some(form) = feed_encoder.feed_key.form.filter(|form| form.dialect != Dialect::Runwire) else {
            return Ok(feed_encoder);
        };
        let spans = feed_encoder.log.spans(&feed_encoder.feed_key.thread).await?;
        for span in spans {
            let wanted = feed_encoder.feed_key.run.as_ref().is_none_or(|run| **run == *span.run_id);
            if !wanted || span.first_seq > before || (!span.open && span.last_seq <= before) {
                continue;
            }
            let run: Arc<str> = span.run_id.into();
            let key = RunKey { tenant: feed_encoder.feed_key.thread.tenant.clone(), id: run.clone() };
            let checkpoint = feed_encoder.log.checkpoint(&key, form, before).await?;
            let in_thread = feed_encoder.feed_key.in_thread;
            let (checkpoint_seq, encoder) =
                checkpoint.filter(|(seq, _)| *seq >= span.first_seq).unwrap_or_else(|| {
                    (
                        span.first_seq - 1,
                        Encoder::new(form.dialect, &*feed_encoder.feed_key.thread.id, &*run, form.options()),
                    )
                });
            feed_encoder.next = feed_encoder.next.min(checkpoint_seq + 1);
            let from = checkpoint_seq + 1;
            let first_seq = span.first_seq;
            let encoder = encoder.in_thread(in_thread);
            let run_encoder = RunEncoder {
                encoder,
                compactor: None,
                first_seq,
                from,
                checkpoint_seq,
                known: HistoryCache::default(),
            };
            feed_encoder.runs.insert(run, run_encoder);
        }
        Ok(feed_encoder)
    }

    /// Creates an encoder that emits nothing up to a record.
    pub(super) async fn resume_after(
        log: Arc<dyn LogEvents>,
        feed_key: FeedKey,
        emitted: u64,
    ) -> Result<Self, LogError> {
        let feed_encoder = Self::begin(log, feed_key, FeedCursor::after(emitted)).await?;
        Ok(Self { emit_after: emitted, ..feed_encoder })
    }

    /// Returns the last record that was emitted before this encoder started.
    pub(super) fn emit_after(&self) -> u64 {
        self.emit_after
    }

    /// Returns the last record that was emitted, by this encoder or the one before.
    pub(super) fn last_emitted(&self) -> u64 {
        self.emit_after.max(self.next - 1)
    }

    /// Reads the records that follow.
    pub(super) async fn read(&mut self) -> Result<Vec<Arc<StoredRecord>>, LogError> {
        Ok(self.log.read(&self.feed_key.thread, self.next - 1).await?.records)
    }

    /// Encodes the records that follow for a reader at a cursor; `compact` merges neighbouring deltas.
    ///
    /// An empty segment means that there are no records yet.
    pub(super) async fn page(
        &mut self,
        records: &[Arc<StoredRecord>],
        at: FeedCursor,
        compact: bool,
    ) -> Result<Segment, LogError> {
        // Records that the reader has in part are not merged: a merged frame would repeat that part.
        let merge_after = if compact { at.seq } else { u64::MAX };
        let _permit = CATCH_UP_PERMITS.acquire().await;
        let mut segment = self.encode_for(records, at.whole_records(), merge_after)?;
        if compact {
            let last = records.last().map_or(self.next - 1, |stored| stored.record.seq);
            self.flush(records, last, &mut segment)?;
        }
        Ok(segment)
    }

    /// Returns the bytes of texts and arguments of open runs that it keeps for the next records.
    pub(super) fn kept_bytes(&self) -> usize {
        self.runs.values().map(|run| run.known.bytes()).sum()
    }

    /// Encodes records, the first of which must be `next`. After an error the encoder must not be used again.
    pub(crate) async fn encode(&mut self, records: &[Arc<StoredRecord>]) -> Result<Segment, LogError> {
        let emitted = self.last_emitted();
        let _permit = ENCODE_PERMITS.acquire().await;
        let mut segment = self.encode_for(records, self.emit_after, u64::MAX)?;
        // The segment holds none of the frames that were emitted before.
        (segment.after, segment.upto) = (emitted, segment.upto.max(emitted));
        Ok(segment)
    }

    /// Encodes records; emits only those after `emit_after`, and merges deltas in those after `merge_after`.
    fn encode_for(
        &mut self,
        records: &[Arc<StoredRecord>],
        emit_after: u64,
        merge_after: u64,
    ) -> Result<Segment, LogError> {
        let mut segment = Segment::begin(self.next - 1, self.feed_key.form);
        for stored in records {
            debug_assert_eq!(stored.record.seq, self.next, "records follow each other");
            self.next = stored.record.seq + 1;
            segment.upto = stored.record.seq;
            let wanted = self.feed_key.run.as_ref().is_none_or(|run| *run == stored.run);
            if wanted {
                let seq = stored.record.seq;
                self.step(stored, records, seq > emit_after, seq > merge_after, &mut segment)?;
                if self.feed_key.run.is_some() && stored.is_terminal() {
                    // A feed of one run ends with it.
                    segment.ends = true;
                    break;
                }
            }
        }
        Ok(segment)
    }

    fn step(
        &mut self,
        stored: &StoredRecord,
        page: &[Arc<StoredRecord>],
        emit: bool,
        compact: bool,
        segment: &mut Segment,
    ) -> Result<(), LogError> {
        let Some(form) = self.feed_key.form else {
            if emit {
                push_raw(stored, &self.feed_key.thread, segment);
            }
            return Ok(());
        };
        let seq = stored.record.seq;
        let thread = &self.feed_key.thread;
        let run = self.runs.entry(stored.run.clone()).or_insert_with(|| RunEncoder {
            encoder: Encoder::new(form.dialect, &*thread.id, &*stored.run, form.options())
                .in_thread(self.feed_key.in_thread),
            compactor: None,
            first_seq: seq,
            from: seq,
            checkpoint_seq: seq,
            known: HistoryCache::default(),
        });
        if seq < run.from {
            return Ok(());
        }
        let source = PageSource { log: &*self.log, thread, page, failed: RefCell::default() };
        let lookup = RunHistory {
            source: &source,
            run: &stored.run,
            first_seq: run.first_seq,
            upto: seq,
            current: Some(&stored.record),
            cache: &run.known,
        };
        if compact {
            let compactor = run.compactor.get_or_insert_with(Compactor::new);
            compactor.step(&mut run.encoder, &stored.record, &lookup, &mut |seq, frames, _| {
                segment.push(seq, frames);
            });
        } else {
            self.frames.clear();
            run.encoder.step(&stored.record, &lookup, &mut self.frames);
            if emit {
                segment.push(seq, &self.frames);
            }
        }
        source.check()?;
        run.from = seq + 1;
        if stored.is_terminal() {
            if let Some(mut compactor) = self.runs.remove(&stored.run).and_then(|run| run.compactor) {
                compactor.flush(&Window::default(), &mut |seq, frames, _| segment.push(seq, frames));
            }
        } else if seq - run.checkpoint_seq >= limits::CHECKPOINT_RECORDS {
            run.checkpoint_seq = seq;
            let key = RunKey { tenant: thread.tenant.clone(), id: stored.run.clone() };
            if form.dialect != Dialect::Runwire {
                self.log.keep_checkpoint(&key, form, seq, &run.encoder);
            }
        }
        Ok(())
    }

    /// Emits the deltas that compaction holds back.
    fn flush(&mut self, page: &[Arc<StoredRecord>], seq: u64, segment: &mut Segment) -> Result<(), LogError> {
        let thread = &self.feed_key.thread;
        for (name, run) in &mut self.runs {
            let Some(compactor) = &mut run.compactor else { continue };
            let current = page.iter().rfind(|stored| stored.record.seq <= seq && stored.run == *name);
            let source = PageSource { log: &*self.log, thread, page, failed: RefCell::default() };
            let lookup = RunHistory {
                source: &source,
                run: name,
                first_seq: run.first_seq,
                upto: current.map_or(seq, |stored| stored.record.seq),
                current: current.map(|stored| &stored.record),
                cache: &run.known,
            };
            compactor.flush(&lookup, &mut |seq, frames, _| segment.push(seq, frames));
            source.check()?;
        }
        Ok(())
    }

    /// Encodes a run's current state as one snapshot; the encoder continues after it. Returns `None` if the snapshot would
    /// hold too much. The segment keeps the share, which grows first.
    pub(crate) async fn snapshot(
        log: Arc<dyn LogEvents>,
        feed_key: FeedKey,
        form: ReadFormat,
        run: Arc<str>,
        first_seq: Option<u64>,
        mut share: MemoryShare,
    ) -> Result<Option<(Self, Segment)>, LogError> {
        share.grow_in_time(limits::CATCH_UP_BYTES).await?;
        let start = first_seq.unwrap_or(1);
        let before = log.before(&feed_key.thread, start).await?;
        let snapshot = AttachSnapshot::new(&*feed_key.thread.id, &*run, before);
        let encoder = Self::begin(log, feed_key, FeedCursor::after(start - 1)).await?;
        let mut making = SnapshotInProgress { encoder, snapshot, run, ends: false, has_records: false };
        loop {
            let records = making.encoder.read().await?;
            if records.is_empty() {
                break;
            }
            // What is gathered, and what the encoder keeps of it.
            let gathered = making.snapshot.bytes() + page_bytes(&records);
            share.grow_in_time(limits::CATCH_UP_BYTES + 2 * gathered).await?;
            let permit = CATCH_UP_PERMITS.acquire().await;
            making = blocking(move || making.absorb(&records)).await??;
            drop(permit);
            if making.snapshot.bytes() > limits::SNAPSHOT_BYTES {
                return Ok(None);
            }
            if making.ends {
                break;
            }
        }
        let SnapshotInProgress { encoder, snapshot, ends, has_records, .. } = making;
        let mut segment = Segment::begin(encoder.next - 1, Some(form));
        if has_records {
            // What it is made of, its frames, and those as they are sent.
            share.grow_in_time(limits::CATCH_UP_BYTES + 4 * snapshot.bytes()).await?;
            let frames = blocking(move || snapshot.frames(form.dialect, form.options())).await?;
            segment.push_snapshot(encoder.next - 1, &frames);
        }
        segment.ends = ends;
        share.shrink_to(segment.memory_bytes() + encoder.kept_bytes());
        Ok(Some((encoder, segment.holding(share))))
    }
}

/// A snapshot of a run that is being made.
struct SnapshotInProgress {
    encoder: FeedEncoder,
    snapshot: AttachSnapshot,
    run: Arc<str>,
    ends: bool,
    has_records: bool,
}

impl SnapshotInProgress {
    /// Takes the next records.
    fn absorb(mut self, records: &[Arc<StoredRecord>]) -> Result<Self, LogError> {
        for stored in records.iter().filter(|stored| stored.run == self.run) {
            self.snapshot.absorb(&stored.record);
            self.ends |= stored.is_terminal();
            self.has_records = true;
        }
        if self.snapshot.bytes() <= limits::SNAPSHOT_BYTES {
            self.encoder.encode_for(records, u64::MAX, u64::MAX)?;
        }
        Ok(self)
    }
}

/// Runs something long beside the threads that serve clients.
async fn blocking<T: Send + 'static>(task: impl FnOnce() -> T + Send + 'static) -> Result<T, LogError> {
    tokio::task::spawn_blocking(task).await.map_err(|error| LogError::Unavailable(error.to_string()))
}

/// Counts the bytes of the frames of some records.
pub(super) fn page_bytes(records: &[Arc<StoredRecord>]) -> usize {
    records.iter().map(|stored| stored.frame.as_ref().map_or(0, bytes::Bytes::len)).sum()
}

/// Emits a record's stored frame; records of the server itself are encoded in the runwire dialect.
fn push_raw(stored: &StoredRecord, thread: &ThreadKey, segment: &mut Segment) {
    let seq = stored.record.seq;
    if let Some(frame) = &stored.frame {
        return segment.push_frame(FeedCursor { seq, frame: 0 }, stored.name.as_deref(), frame);
    }
    let mut encoder = Encoder::new(Dialect::Runwire, &*thread.id, &*stored.run, Fidelity::Native);
    let mut frames = Frames::default();
    encoder.step(&stored.record, &Window::default(), &mut frames);
    segment.push(seq, &frames);
}

/// Looks up earlier records: in the current page, else in the store.
struct PageSource<'a> {
    log: &'a dyn LogEvents,
    thread: &'a ThreadKey,
    page: &'a [Arc<StoredRecord>],
    failed: RefCell<Option<LogError>>,
}

impl PageSource<'_> {
    /// Returns the error of a failed lookup; frames that were encoded with it must not be emitted.
    fn check(self) -> Result<(), LogError> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }
}

impl RecordSource for PageSource<'_> {
    fn visit(
        &self,
        mut after: u64,
        _wanted: Wanted<'_>,
        visit: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>,
    ) {
        let first = self.page.first().map_or(u64::MAX, |stored| stored.record.seq);
        while after + 1 < first {
            // Rare: a text or a call that began before the current page.
            let read = block_on(self.log.read(self.thread, after));
            let records = match read {
                Ok(page) if !page.records.is_empty() => page.records,
                Ok(_) => return,
                Err(error) => return drop(self.failed.replace(Some(error))),
            };
            for stored in records.iter().filter(|stored| stored.record.seq < first) {
                if visit(stored).is_break() {
                    return;
                }
            }
            // The store may be ahead of the page: records that both have are visited once, in the page.
            after = records.last().map_or(after, |stored| stored.record.seq).min(first - 1);
        }
        for stored in self.page.iter().filter(|stored| stored.record.seq > after) {
            if visit(stored).is_break() {
                return;
            }
        }
    }

    fn before(&self, first_seq: u64) -> Window {
        block_on(self.log.before(self.thread, first_seq)).unwrap_or_else(|error| {
            self.failed.replace(Some(error));
            Window::default()
        })
    }
}

/// Blocks on the store: encoding is not asynchronous.
fn block_on<T>(reading: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| Handle::current().block_on(reading))
}
