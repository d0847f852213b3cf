//! Walking a thread's records from the store and encoding them: how a reader that is behind goes on.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use runwire_log::{
    Log, LogError, ReadFormat, RecordSource, RunHistory, RunKey, StateCache, StoredRecord, ThreadKey,
};
use runwire_model::attach::Present;
use runwire_model::compact::Compactor;
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::window::Window;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::cursor::Cursor;
use super::segment::Segment;
use crate::limits;

/// Translations that go on at once.
///
/// One that looks up what lies further back waits for the store on its thread. The store reads on threads of the
/// same pool, so if all of them waited, none would be left to read.
static TURNS: Semaphore = Semaphore::const_new(limits::TRANSLATIONS);

/// What is read, and how it is told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) thread: ThreadKey,
    /// One run of the thread, or all of it.
    pub(crate) run: Option<Arc<str>>,
    /// Whether ordering values grow over the runs of the thread.
    pub(crate) in_thread: bool,
    /// The dialect; without one, the bytes as they came.
    pub(crate) form: Option<ReadFormat>,
}

/// A place in the translation of a view, which goes on record by record.
pub(crate) struct Walk {
    log: Arc<dyn Log>,
    view: View,
    /// The encoders of the runs that are open here.
    runs: HashMap<Arc<str>, RunWalk>,
    /// The next record.
    pub(crate) next: u64,
    /// The last record that was told before the walk began, where it began before that.
    silent: u64,
    frames: Frames,
}

struct RunWalk {
    encoder: Encoder,
    compactor: Option<Compactor>,
    first_seq: u64,
    /// The first record that the encoder has not taken.
    from: u64,
    /// The last record after which the encoder's state was kept.
    kept: u64,
    known: StateCache,
}

impl Walk {
    /// Finds the place from which the frames after a cursor can be told.
    pub(crate) async fn begin(log: Arc<dyn Log>, view: View, after: Cursor) -> Result<Self, LogError> {
        let before = after.whole_records();
        let (runs, frames) = (HashMap::new(), Frames::default());
        let mut walk = Self { log, view, runs, next: before + 1, silent: 0, frames };
        // Raw frames and our own need nothing of what came before.
        let Some(form) = walk.view.form.filter(|form| form.dialect != Dialect::Runwire) else {
            return Ok(walk);
        };
        let spans = walk.log.spans(&walk.view.thread).await?;
        for span in spans {
            let wanted = walk.view.run.as_ref().is_none_or(|run| **run == *span.run_id);
            if !wanted || span.first_seq > before || (!span.open && span.last_seq <= before) {
                continue;
            }
            let run: Arc<str> = span.run_id.into();
            let key = RunKey { tenant: walk.view.thread.tenant.clone(), id: run.clone() };
            let kept = walk.log.checkpoint(&key, form, before).await?;
            let in_thread = walk.view.in_thread;
            let (kept, encoder) = kept.filter(|(seq, _)| *seq >= span.first_seq).unwrap_or_else(|| {
                (span.first_seq - 1, Encoder::new(form.dialect, &*walk.view.thread.id, &*run, form.options()))
            });
            walk.next = walk.next.min(kept + 1);
            let from = kept + 1;
            let first_seq = span.first_seq;
            let encoder = encoder.in_thread(in_thread);
            let run_walk =
                RunWalk { encoder, compactor: None, first_seq, from, kept, known: StateCache::default() };
            walk.runs.insert(run, run_walk);
        }
        Ok(walk)
    }

    /// Begins again where another walk has told everything up to a record.
    pub(super) async fn again(log: Arc<dyn Log>, view: View, told: u64) -> Result<Self, LogError> {
        let walk = Self::begin(log, view, Cursor::after(told)).await?;
        Ok(Self { silent: told, ..walk })
    }

    /// Tells the last record that was told before the walk began.
    pub(super) fn silent(&self) -> u64 {
        self.silent
    }

    /// Tells the last record that was told.
    pub(super) fn told(&self) -> u64 {
        self.silent.max(self.next - 1)
    }

    /// Reads and encodes the next records for a reader that stands at a cursor, and maybe wants fewer frames.
    ///
    /// An empty segment means that there are no records yet. May be dropped and asked again; nothing is lost.
    pub(crate) async fn page(&mut self, at: Cursor, compact: bool) -> Result<Segment, LogError> {
        let page = self.log.read(&self.view.thread, self.next - 1).await?;
        // What the reader has, or has in part, is told piece by piece: a merged frame would repeat it.
        let merge_after = if compact { at.seq } else { u64::MAX };
        let mut segment = self.encode_for(&page.records, at.whole_records(), merge_after).await?;
        if compact {
            let last = page.records.last().map_or(self.next - 1, |stored| stored.record.seq);
            self.flush(&page.records, last, &mut segment)?;
        }
        Ok(segment)
    }

    /// Encodes records, the first of which is the next. After a failure the walk is of no more use.
    pub(crate) async fn encode(&mut self, records: &[Arc<StoredRecord>]) -> Result<Segment, LogError> {
        let told = self.told();
        let mut segment = self.encode_for(records, self.silent, u64::MAX).await?;
        // It holds nothing of what was told before.
        (segment.after, segment.upto) = (told, segment.upto.max(told));
        Ok(segment)
    }

    /// Encodes records; those up to `silent` become no frames, pieces in those after `merge_after` are merged.
    async fn encode_for(
        &mut self,
        records: &[Arc<StoredRecord>],
        silent: u64,
        merge_after: u64,
    ) -> Result<Segment, LogError> {
        let _turn = TURNS.acquire().await;
        let mut segment = Segment::begin(self.next - 1, self.view.form);
        for stored in records {
            debug_assert_eq!(stored.record.seq, self.next, "records follow each other");
            self.next = stored.record.seq + 1;
            segment.upto = stored.record.seq;
            let wanted = self.view.run.as_ref().is_none_or(|run| *run == stored.run);
            if wanted {
                let seq = stored.record.seq;
                self.step(stored, records, seq > silent, seq > merge_after, &mut segment)?;
                if self.view.run.is_some() && stored.is_terminal() {
                    // Nothing of the thread after it is this reader's business.
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
        tell: bool,
        compact: bool,
        segment: &mut Segment,
    ) -> Result<(), LogError> {
        let Some(form) = self.view.form else {
            if tell {
                raw(stored, &self.view.thread, segment);
            }
            return Ok(());
        };
        let seq = stored.record.seq;
        let thread = &self.view.thread;
        let run = self.runs.entry(stored.run.clone()).or_insert_with(|| RunWalk {
            encoder: Encoder::new(form.dialect, &*thread.id, &*stored.run, form.options())
                .in_thread(self.view.in_thread),
            compactor: None,
            first_seq: seq,
            from: seq,
            kept: seq,
            known: StateCache::default(),
        });
        if seq < run.from {
            return Ok(());
        }
        let source = PageSource { log: &*self.log, thread, page, failed: RefCell::default() };
        let lookup = RunHistory {
            source: &source,
            run: &stored.run,
            first_seq: run.first_seq,
            current: Some(&stored.record),
            state: &run.known,
        };
        if compact {
            let compactor = run.compactor.get_or_insert_with(Compactor::new);
            compactor.step(&mut run.encoder, &stored.record, &lookup, &mut |seq, frames, _| {
                segment.push(seq, frames);
            });
        } else {
            self.frames.clear();
            run.encoder.step(&stored.record, &lookup, &mut self.frames);
            if tell {
                segment.push(seq, &self.frames);
            }
        }
        source.check()?;
        run.from = seq + 1;
        if stored.is_terminal() {
            if let Some(mut compactor) = self.runs.remove(&stored.run).and_then(|run| run.compactor) {
                compactor.flush(&Window::default(), &mut |seq, frames, _| segment.push(seq, frames));
            }
        } else if seq - run.kept >= limits::CHECKPOINT_RECORDS {
            run.kept = seq;
            let key = RunKey { tenant: thread.tenant.clone(), id: stored.run.clone() };
            if form.dialect != Dialect::Runwire {
                self.log.keep_checkpoint(&key, form, seq, &run.encoder);
            }
        }
        Ok(())
    }

    /// Hands out what a compact replay has held back.
    fn flush(&mut self, page: &[Arc<StoredRecord>], seq: u64, segment: &mut Segment) -> Result<(), LogError> {
        let thread = &self.view.thread;
        for (name, run) in &mut self.runs {
            let Some(compactor) = &mut run.compactor else { continue };
            let current = page.iter().rfind(|stored| stored.record.seq <= seq && stored.run == *name);
            let source = PageSource { log: &*self.log, thread, page, failed: RefCell::default() };
            let lookup = RunHistory {
                source: &source,
                run: name,
                first_seq: run.first_seq,
                current: current.map(|stored| &stored.record),
                state: &run.known,
            };
            compactor.flush(&lookup, &mut |seq, frames, _| segment.push(seq, frames));
            source.check()?;
        }
        Ok(())
    }

    /// Tells the present of a run in one go, and stands at its end.
    pub(crate) async fn present(
        log: Arc<dyn Log>,
        view: View,
        form: ReadFormat,
        run: Arc<str>,
        first_seq: Option<u64>,
    ) -> Result<(Self, Segment), LogError> {
        let start = first_seq.unwrap_or(1);
        let before = log.before(&view.thread, start).await?;
        let mut present = Present::new(&*view.thread.id, &*run, before);
        let mut walk = Self::begin(log, view, Cursor::after(start - 1)).await?;
        let mut ends = false;
        let mut told = None;
        loop {
            let page = walk.log.read(&walk.view.thread, walk.next - 1).await?;
            if page.records.is_empty() {
                break;
            }
            for stored in page.records.iter().filter(|stored| stored.run == run) {
                present.absorb(&stored.record);
                ends |= stored.is_terminal();
                told = Some(stored.record.seq);
            }
            walk.encode(&page.records).await?;
            if ends {
                break;
            }
        }
        let mut segment = Segment::begin(walk.next - 1, Some(form));
        if told.is_some() {
            segment.push_present(walk.next - 1, &present.frames(form.dialect, form.options()));
        }
        segment.ends = ends;
        Ok((walk, segment))
    }
}

/// Tells a record as it came; what the server wrote comes in our own dialect.
fn raw(stored: &StoredRecord, thread: &ThreadKey, segment: &mut Segment) {
    let seq = stored.record.seq;
    if let Some(frame) = &stored.frame {
        return segment.push_frame(Cursor { seq, frame: 0 }, stored.name.as_deref(), frame);
    }
    let mut encoder = Encoder::new(Dialect::Runwire, &*thread.id, &*stored.run, Fidelity::Native);
    let mut frames = Frames::default();
    encoder.step(&stored.record, &Window::default(), &mut frames);
    segment.push(seq, &frames);
}

/// Earlier records: those at hand, else the store's.
struct PageSource<'a> {
    log: &'a dyn Log,
    thread: &'a ThreadKey,
    page: &'a [Arc<StoredRecord>],
    failed: RefCell<Option<LogError>>,
}

impl PageSource<'_> {
    /// Tells of a lookup that failed: what was made of it must not be shown.
    fn check(self) -> Result<(), LogError> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }
}

impl RecordSource for PageSource<'_> {
    fn visit(&self, mut after: u64, visit: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>) {
        let first = self.page.first().map_or(u64::MAX, |stored| stored.record.seq);
        while after + 1 < first {
            // Rare: a text or a call that began before what is at hand.
            let read = wait(self.log.read(self.thread, after));
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
            // The store may be further than the page: what both have is visited once, in the page.
            after = records.last().map_or(after, |stored| stored.record.seq).min(first - 1);
        }
        for stored in self.page.iter().filter(|stored| stored.record.seq > after) {
            if visit(stored).is_break() {
                return;
            }
        }
    }

    fn before(&self, first_seq: u64) -> Window {
        wait(self.log.before(self.thread, first_seq)).unwrap_or_else(|error| {
            self.failed.replace(Some(error));
            Window::default()
        })
    }
}

/// Waits for the store inside a translation, which is no place to be asynchronous.
fn wait<T>(reading: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| Handle::current().block_on(reading))
}
