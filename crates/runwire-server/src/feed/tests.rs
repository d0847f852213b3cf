//! Tests resuming after every cursor of every vector, in every dialect, over a store on disk.
//!
//! The expected frames come from another path: all stored records, encoded from the first one with a window in
//! memory, as `runwire convert` does it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use runwire_log::sqlite::{SqliteLog, SqliteOptions};
use runwire_log::{Append, FrameBatch, Log, NewThread, ReadFormat, RunKey, StoredRecord, Target, ThreadKey};
use runwire_model::compact::Compactor;
use runwire_model::dialect::{Dialect, Encoder, EncoderOptions, Fidelity, Frames, Slots};
use runwire_model::window::Window;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::memory_budget::MemoryBudget;

use super::ring::SegmentRing;
use super::{
    EncoderState, FeedCursor, FeedEncoder, FeedKey, FeedListener, FeedReader, Feeds, Next, Segment,
    SubscriptionId, lock,
};

#[path = "../../tests/it/vectors.rs"]
mod vectors;

const TENANT: &str = "default";
/// Upper bound for any passing test step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A text that no vector contains; marks the end of a followed thread.
const END_MARK: &str = "that-was-all";

/// A frame with its cursor and its name.
type CursoredFrame = (FeedCursor, Option<String>, Vec<u8>);

struct Store {
    log: Arc<dyn Log>,
    feeds: Feeds,
    memory: MemoryBudget,
    directory: TempDir,
}

impl Store {
    fn open() -> Arc<Self> {
        // Enough for all readers of a test at once.
        Self::with_budget(1 << 35)
    }

    fn with_budget(bytes: u64) -> Arc<Self> {
        let memory = MemoryBudget::new(bytes);
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteOptions { checkpoint_idle: Duration::from_millis(1), ..SqliteOptions::default() };
        let log = SqliteLog::open(&directory.path().join("runwire.db"), options).unwrap();
        Arc::new(Self { log: Arc::new(log), feeds: Feeds::new(memory.clone()), memory, directory })
    }

    async fn append(
        &self,
        target: &Target,
        dialect: Dialect,
        frames: &[(Option<String>, Vec<u8>)],
        end: bool,
    ) {
        self.append_to(target, None, dialect, frames, end).await;
    }

    async fn append_to(
        &self,
        target: &Target,
        thread: Option<&str>,
        dialect: Dialect,
        frames: &[(Option<String>, Vec<u8>)],
        end: bool,
    ) {
        let mut batch = FrameBatch::default();
        for (at, (name, data)) in frames.iter().enumerate() {
            batch.push(at as u64 + 1, name.as_deref(), data);
        }
        let (target, thread) = (target.clone(), thread.map(str::to_owned));
        let append = Append {
            target,
            thread,
            dialect: Some(dialect),
            stamp: None,
            frames: batch,
            end,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        };
        let appended = self.log.append(append).await.unwrap();
        assert_eq!(appended.fault, None);
    }

    /// Writes a case to a run or thread of its own and returns the thread.
    async fn write(&self, case: &vectors::Case) -> ThreadKey {
        let target = target_of(case);
        self.append(&target, case.dialect, &case.frames, true).await;
        self.thread_of(&target).await
    }

    async fn thread_of(&self, target: &Target) -> ThreadKey {
        match target {
            Target::Thread(thread) => thread.clone(),
            Target::Run(run) => run.thread(self.log.run(run).await.unwrap().thread_id),
            Target::Tenant(tenant) => ThreadKey::of_tenant(tenant.clone()),
        }
    }

    async fn records(&self, thread: &ThreadKey) -> Vec<Arc<StoredRecord>> {
        let mut records: Vec<Arc<StoredRecord>> = Vec::new();
        loop {
            let page = self.log.read(thread, records.len() as u64).await.unwrap();
            if page.records.is_empty() {
                return records;
            }
            records.extend(page.records);
        }
    }

    fn reader(&self, key: &FeedKey, at: FeedCursor, follow: bool) -> FeedReader {
        FeedReader::new(self.feeds.of(&self.log, key), at, follow)
    }

    async fn rest(&self, key: &FeedKey, at: FeedCursor) -> Vec<CursoredFrame> {
        collect(self.reader(key, at, false)).await
    }
}

fn target_of(case: &vectors::Case) -> Target {
    if case.several {
        Target::Thread(ThreadKey::new(TENANT, case.label.as_str()))
    } else {
        Target::Run(RunKey::new(TENANT, case.label.as_str()))
    }
}

/// Lists the views of a thread in one form: each run, and the thread itself.
fn keys(thread: &ThreadKey, records: &[Arc<StoredRecord>], form: Option<ReadFormat>) -> Vec<FeedKey> {
    let mut runs: Vec<Arc<str>> = Vec::new();
    for stored in records {
        if !runs.contains(&stored.run) {
            runs.push(stored.run.clone());
        }
    }
    let whole = FeedKey { thread: thread.clone(), run: None, in_thread: true, form };
    let of_run = |run| FeedKey { run: Some(run), in_thread: false, ..whole.clone() };
    let mut keys: Vec<FeedKey> = runs.into_iter().map(of_run).collect();
    // A thread of one run has the same frames in both.
    if keys.len() != 1 {
        keys.push(whole);
    }
    keys
}

fn forms() -> impl Iterator<Item = Option<ReadFormat>> {
    let options = [
        EncoderOptions::default(),
        Fidelity::Full.into(),
        EncoderOptions { slots: Slots::Asks, ..EncoderOptions::default() },
    ];
    let each = |dialect| options.map(|options| ReadFormat::with(dialect, options));
    let forms: HashSet<ReadFormat> = Dialect::ALL.into_iter().flat_map(each).collect();
    forms.into_iter().map(Some).chain([None])
}

fn push(out: &mut Vec<CursoredFrame>, seq: u64, first_frame: u32, frames: &Frames) {
    for (frame, (name, data)) in (first_frame..).zip(frames.iter()) {
        out.push((FeedCursor { seq, frame }, name.map(str::to_owned), data.to_vec()));
    }
}

/// Translates records from the first one on; those after `merge_after` with neighbouring pieces merged.
fn expected(key: &FeedKey, records: &[Arc<StoredRecord>], merge_after: u64) -> Vec<CursoredFrame> {
    let (mut out, mut frames) = (Vec::new(), Frames::default());
    let mut window = Window::default();
    let mut encoders: HashMap<Arc<str>, Encoder> = HashMap::new();
    let mut compactor = Compactor::new();
    let mut last_run: Option<Arc<str>> = None;
    for stored in records {
        if last_run.as_ref() != Some(&stored.run) {
            window.next_run(&stored.run);
            last_run = Some(stored.run.clone());
        }
        window.absorb(&stored.record);
        if key.run.as_ref().is_some_and(|run| *run != stored.run) {
            continue;
        }
        let seq = stored.record.seq;
        let Some(form) = key.form else {
            match &stored.frame {
                Some(frame) => {
                    let name = stored.name.as_deref().map(str::to_owned);
                    out.push((FeedCursor { seq, frame: 0 }, name, frame.to_vec()));
                }
                None => {
                    let thread = &*key.thread.id;
                    let mut encoder = Encoder::new(Dialect::Runwire, thread, &*stored.run, Fidelity::Native);
                    frames.clear();
                    encoder.step(&stored.record, &window, &mut frames);
                    push(&mut out, seq, 0, &frames);
                }
            }
            continue;
        };
        let encoder = encoders.entry(stored.run.clone()).or_insert_with(|| {
            Encoder::new(form.dialect, &*key.thread.id, &*stored.run, form.options()).in_thread(key.in_thread)
        });
        let first_frame = form.first_frame();
        if seq > merge_after {
            compactor.step(encoder, &stored.record, &window, &mut |seq, frames, _| {
                push(&mut out, seq, first_frame, frames);
            });
        } else {
            frames.clear();
            encoder.step(&stored.record, &window, &mut frames);
            push(&mut out, seq, first_frame, &frames);
        }
    }
    let first_frame = key.form.map_or(0, ReadFormat::first_frame);
    compactor.flush(&window, &mut |seq, frames, _| push(&mut out, seq, first_frame, frames));
    out
}

fn frames_of(segment: &Segment, from: usize, to: usize) -> Vec<CursoredFrame> {
    let frames = segment.frames(from).take(to - from);
    frames.map(|frame| (frame.cursor.unwrap(), frame.name.map(str::to_owned), frame.data.to_vec())).collect()
}

/// Reads to the end.
async fn collect(mut reader: FeedReader) -> Vec<CursoredFrame> {
    let mut out = Vec::new();
    loop {
        match reader.next().await.unwrap() {
            Next::Frames { segment, from, to } => out.extend(frames_of(&segment, from, to)),
            Next::CaughtUp => {}
            Next::Ended => return out,
        }
    }
}

#[track_caller]
fn assert_same(found: &[CursoredFrame], expected: &[CursoredFrame], what: impl Fn() -> String) {
    if found == expected {
        return;
    }
    let show = |frame: Option<&CursoredFrame>| match frame {
        Some((cursor, name, data)) => format!("{cursor} {name:?} {}", String::from_utf8_lossy(data)),
        None => "nothing".to_owned(),
    };
    let at = (0..).find(|at| found.get(*at) != expected.get(*at)).unwrap();
    let (found_at, expected_at) = (show(found.get(at)), show(expected.get(at)));
    panic!("{}: frame {at} of {}\n expected {expected_at}\n found    {found_at}", what(), expected.len());
}

fn after(frames: &[CursoredFrame], at: FeedCursor) -> &[CursoredFrame] {
    &frames[frames.partition_point(|(cursor, ..)| *cursor <= at)..]
}

/// Lists places that a reader of these frames can name: after each frame, and for every other record after the
/// whole of it or past its frames, which means the same.
fn cursors_of(frames: &[CursoredFrame], first_frame: u32, head: u64) -> Vec<FeedCursor> {
    let mut cursors: Vec<FeedCursor> = frames.iter().map(|(cursor, ..)| *cursor).collect();
    for seq in 0..=head {
        let count = frames.iter().filter(|(cursor, ..)| cursor.seq == seq).count();
        let past = FeedCursor { seq, frame: first_frame + count as u32 };
        cursors.push(if seq % 2 == 0 { FeedCursor::after(seq) } else { past });
    }
    cursors
}

/// Does something with every vector, several at a time.
async fn with_every_case<F, Fut>(each: F)
where
    F: Fn(Arc<Store>, vectors::Case) -> Fut + Copy + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let store = Store::open();
    let mut tasks = JoinSet::new();
    for case in vectors::cases() {
        tasks.spawn(each(store.clone(), case));
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_after_any_cursor_of_any_vector_in_any_dialect_gives_exactly_the_rest() {
    with_every_case(|store, case| async move {
        let thread = store.write(&case).await;
        let records = store.records(&thread).await;
        for form in forms() {
            for key in keys(&thread, &records, form) {
                let all = expected(&key, &records, u64::MAX);
                let label =
                    |at: FeedCursor| format!("{} in {form:?} of {:?} after {at}", case.label, key.run);
                assert_same(&store.rest(&key, FeedCursor::START).await, &all, || label(FeedCursor::START));
                let mut cursors =
                    cursors_of(&all, form.map_or(0, ReadFormat::first_frame), records.len() as u64);
                if form.is_some_and(|form| form != ReadFormat::new(form.dialect)) {
                    // Bare and past the end they mean the same as in the native form.
                    cursors.truncate(all.len());
                }
                for at in cursors {
                    assert_same(&store.rest(&key, at).await, after(&all, at), || label(at));
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compact_reader_misses_nothing_and_may_go_on_plainly() {
    with_every_case(|store, case| async move {
        let thread = store.write(&case).await;
        let records = store.records(&thread).await;
        for form in forms().flatten() {
            for key in keys(&thread, &records, Some(form)) {
                let all = expected(&key, &records, u64::MAX);
                let cursors = all.iter().map(|(cursor, ..)| *cursor);
                let cursors = cursors.filter(|_| form == ReadFormat::new(form.dialect));
                for at in [FeedCursor::START].into_iter().chain(cursors) {
                    let fewer = collect(store.reader(&key, at, false).compact(true)).await;
                    let label = || format!("{} in {form:?} after {at}", case.label);
                    assert_same(&fewer, after(&expected(&key, &records, at.seq), at), label);
                    // Where it may go on plainly, `resuming_after_any_cursor…` has been.
                    let known = |frame: &&CursoredFrame| !all.iter().any(|(cursor, ..)| *cursor == frame.0);
                    assert!(fewer.iter().find(known).is_none(), "{}", label());
                    if form.dialect == Dialect::Text {
                        let text = |frames: &[CursoredFrame]| {
                            frames.iter().flat_map(|frame| frame.2.clone()).collect::<Vec<_>>()
                        };
                        assert_eq!(text(&fewer), text(after(&all, at)), "{}", label());
                    }
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_any_size_are_the_replay() {
    with_every_case(|store, case| async move {
        let thread = store.write(&case).await;
        let records = store.records(&thread).await;
        let forms = forms().filter(|form| form.is_none_or(|form| form == ReadFormat::new(form.dialect)));
        // Every size for every dialect, though not in the same case.
        for (form, limit) in forms.zip((1..=5).cycle().skip(case.frames.len() % 5)) {
            for key in keys(&thread, &records, form) {
                let all = expected(&key, &records, u64::MAX);
                let (mut at, mut frames) = (FeedCursor::START, Vec::new());
                loop {
                    let page = crate::read::page(store.reader(&key, at, false), limit).await.unwrap();
                    let next = page.next;
                    let body: serde_json::Value = serde_json::from_slice(&page.body()).unwrap();
                    let found = body["frames"].as_array().unwrap();
                    assert!(found.len() == limit || next.is_none(), "a page that is not the last is full");
                    frames.extend(found.iter().map(|frame| frame["cursor"].as_str().unwrap().to_owned()));
                    assert_eq!(body["next"].as_str().map(str::to_owned), next.map(|next| next.to_string()));
                    match next {
                        Some(next) => at = next,
                        None => break,
                    }
                }
                let cursors: Vec<_> = all.iter().map(|(cursor, ..)| cursor.to_string()).collect();
                assert_eq!(frames, cursors, "{} in {form:?}, {limit} a page", case.label);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_follows_sees_what_a_replay_shows() {
    with_every_case(|store, case| async move {
        let target = target_of(&case);
        // The first frame makes the run, so that there is something to follow.
        store.append(&target, case.dialect, &case.frames[..1], false).await;
        let thread = store.thread_of(&target).await;
        let mut readers = Vec::new();
        for form in forms() {
            let run = if let Target::Run(run) = &target { Some(run.id.clone()) } else { None };
            let key = FeedKey { in_thread: run.is_none(), thread: thread.clone(), run, form };
            // Two readers share a feed; the second one merges pieces for as long as it catches up.
            for compact in [false, true] {
                let reader = store.reader(&key, FeedCursor::START, true).compact(compact && form.is_some());
                // One that is quick may otherwise end where a response does.
                let reader = reader.until_run_ends();
                readers.push((key.clone(), compact, tokio::spawn(follow(reader))));
            }
        }
        for frame in &case.frames[1..] {
            store.append(&target, case.dialect, std::slice::from_ref(frame), false).await;
        }
        store.append(&target, case.dialect, &[], true).await;
        let records = store.records(&thread).await;
        if let Target::Thread(thread) = &target {
            // A thread goes on for ever: this shows its readers that they have everything.
            let run = Target::Run(RunKey::new(TENANT, format!("{}.last", case.label)));
            let last = format!(r#"{{"type":"text.delta","message_id":"m","content":"{END_MARK}"}}"#);
            store.append_to(&run, Some(&thread.id), Dialect::Runwire, &[(None, last.into())], true).await;
        }
        for (key, compact, reader) in readers {
            let found =
                tokio::time::timeout(TIMEOUT, reader).await.expect("a reader waits for ever").unwrap();
            let all = expected(&key, &records, u64::MAX);
            let upto = records.len() as u64;
            let found: Vec<CursoredFrame> =
                found.into_iter().filter(|(cursor, ..)| cursor.seq <= upto).collect();
            let label = || format!("{} in {:?}, compact: {compact}", case.label, key.form);
            if compact && key.form.is_some() {
                let last = |frames: &[CursoredFrame]| frames.last().map(|(cursor, ..)| *cursor);
                assert_eq!(last(&found), last(&all), "{}", label());
            } else {
                assert_same(&found, &all, label);
            }
        }
    })
    .await;
}

/// A run in which texts and calls lie far apart, so that translation looks back a long way.
fn long_run(records: usize) -> Vec<(Option<String>, Vec<u8>)> {
    let mut frames = vec![r#"{"type":"tool.args_started","call_id":"c0","name":"search"}"#.to_owned()];
    let filler = "x".repeat(900);
    for at in 0..records {
        frames.push(format!(r#"{{"type":"tool.args_delta","call_id":"c0","delta":"{}"}}"#, at % 10));
        let (message, rest) = (at / 700, at % 700);
        if rest == 0 {
            frames.push(format!(r#"{{"type":"text.started","message_id":"m{message}"}}"#));
        }
        frames.push(format!(
            r#"{{"type":"text.delta","message_id":"m{message}","content":"{}","note":"{filler}"}}"#,
            at % 7
        ));
        if rest == 699 {
            frames.push(format!(r#"{{"type":"text.finished","message_id":"m{message}"}}"#));
        }
    }
    frames.push(r#"{"type":"tool.called","call_id":"c0","name":"search","arguments":{}}"#.to_owned());
    frames.push(r#"{"type":"run.completed"}"#.to_owned());
    frames.into_iter().map(|frame| (None, frame.into_bytes())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_falls_behind_what_is_kept_in_memory_reads_on_from_the_store() {
    let store = Store::open();
    let target = Target::Run(RunKey::new(TENANT, "long"));
    let frames = long_run(1500);
    store.append(&target, Dialect::Runwire, &frames[..2], false).await;
    let thread = store.thread_of(&target).await;
    let mut readers = Vec::new();
    for dialect in [Dialect::AgUi, Dialect::SocialApp, Dialect::Runwire] {
        let form = Some(ReadFormat::new(dialect));
        let key = FeedKey { thread: thread.clone(), run: Some("long".into()), in_thread: false, form };
        let mut slow = store.reader(&key, FeedCursor::START, true);
        let mut fewer = store.reader(&key, FeedCursor::START, true).compact(true);
        for reader in [&mut slow, &mut fewer] {
            while !matches!(reader.next().await.unwrap(), Next::CaughtUp) {}
        }
        let quick = tokio::spawn(collect(store.reader(&key, FeedCursor::START, true)));
        readers.push((key, slow, fewer, quick));
    }
    for some in frames[2..].chunks(50) {
        store.append(&target, Dialect::Runwire, some, false).await;
    }
    let records = store.records(&thread).await;
    for (key, slow, fewer, quick) in readers {
        let all = expected(&key, &records, u64::MAX);
        let label = || format!("{:?}", key.form);
        assert_same(&quick.await.unwrap(), &all, label);
        let kept = lock(&store.feeds.of(&store.log, &key).ring).segments.front().unwrap().after;
        assert!(kept > slow.at().whole_records(), "the slow reader is not behind");
        let from = slow.at();
        assert_same(&collect(slow).await, after(&all, from), label);
        let last = collect(fewer).await.last().map(|(cursor, ..)| *cursor);
        assert_eq!(last, all.last().map(|(cursor, ..)| *cursor));
    }
}

/// Counts what it is told.
struct CountingListener(watch::Sender<usize>);

impl FeedListener for CountingListener {
    fn feed_changed(&self, subscription: SubscriptionId, ended: bool) {
        assert_eq!((subscription, ended), (SUBSCRIPTION, false));
        self.0.send_modify(|count| *count += 1);
    }
}

const SUBSCRIPTION: SubscriptionId = SubscriptionId { place: 3, number: 7 };

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_ring_is_announced_whoever_makes_it() {
    let store = Store::open();
    let target = Target::Run(RunKey::new(TENANT, "r"));
    let frames = long_run(10);
    store.append(&target, Dialect::Runwire, &frames[..2], false).await;
    let key = FeedKey {
        thread: store.thread_of(&target).await,
        run: Some("r".into()),
        in_thread: false,
        form: Some(ReadFormat::new(Dialect::AgUi)),
    };
    let mut reader = store.reader(&key, FeedCursor::START, true);
    while !matches!(reader.next().await.unwrap(), Next::CaughtUp) {}
    let feed = store.feeds.of(&store.log, &key);
    // The task that follows the feed for loops never runs here: it may be reading pages of its own.
    let idle = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let listener = Arc::new(CountingListener(watch::Sender::new(0)));
    let told = || *listener.0.borrow();
    feed.subscribe(listener.clone(), SUBSCRIPTION, feed.last_encoded().unwrap(), idle.handle());
    assert_eq!(told(), 0);
    store.append(&target, Dialect::Runwire, &frames[2..4], false).await;
    assert!(matches!(reader.next().await.unwrap(), Next::Frames { .. }));
    let before = told();
    assert!(before > 0, "the ring has a new segment, and no loop was told");
    // A ring that was lost is begun anew by the reader that gets to the end first.
    *feed.encoder.lock().await = EncoderState::Missing;
    *lock(&feed.ring) = SegmentRing::default();
    let mut late = store.reader(&key, FeedCursor::START, true);
    while !matches!(late.next().await.unwrap(), Next::CaughtUp) {}
    assert!(feed.last_encoded().is_some());
    assert!(told() > before, "the ring begins elsewhere, and no loop was told");
    idle.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_feed_adopts_the_encoder_of_a_reader_at_the_end() {
    let store = Store::open();
    let target = Target::Run(RunKey::new(TENANT, "long"));
    let frames = long_run(1500);
    store.append(&target, Dialect::Runwire, &frames[..2], false).await;
    let thread = store.thread_of(&target).await;
    let form = Some(ReadFormat::new(Dialect::Loom));
    let key = FeedKey { thread: thread.clone(), run: Some("long".into()), in_thread: false, form };
    let mut stalled = store.reader(&key, FeedCursor::START, true);
    while !matches!(stalled.next().await.unwrap(), Next::CaughtUp) {}
    for some in frames[2..frames.len() - 1].chunks(50) {
        store.append(&target, Dialect::Runwire, some, false).await;
    }
    let head = store.records(&thread).await.len() as u64;
    // It comes back near the end, and the feed goes on from there without all that lies between.
    let from = FeedCursor::after(head - 10);
    let mut late = store.reader(&key, from, true);
    let mut found = Vec::new();
    while let Next::Frames { segment, from, to } = late.next().await.unwrap() {
        found.extend(frames_of(&segment, from, to));
    }
    let feed = store.feeds.of(&store.log, &key);
    assert!(matches!(&*feed.encoder.lock().await, EncoderState::Ready(encoder) if encoder.next == head + 1));
    assert!(lock(&feed.ring).segments.is_empty());
    store.append(&target, Dialect::Runwire, &frames[frames.len() - 1..], false).await;
    let all = expected(&key, &store.records(&thread).await, u64::MAX);
    found.extend(collect(late).await);
    assert_same(&found, after(&all, from), || "late".to_owned());
    let from = stalled.at();
    assert_same(&collect(stalled).await, after(&all, from), || "stalled".to_owned());
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_late_begins_at_a_checkpoint_and_does_without_one() {
    let store = Store::open();
    let run = RunKey::new(TENANT, "long");
    let target = Target::Run(run.clone());
    store.append(&target, Dialect::Runwire, &long_run(1200), true).await;
    let thread = store.thread_of(&target).await;
    let records = store.records(&thread).await;
    assert!(records.len() > 2000);
    let head = records.len() as u64;
    for dialect in Dialect::ALL {
        let form = ReadFormat::new(dialect);
        let key =
            FeedKey { thread: thread.clone(), run: Some(run.id.clone()), in_thread: false, form: Some(form) };
        let all = expected(&key, &records, u64::MAX);
        let late = [
            FeedCursor { seq: 513, frame: 0 },
            FeedCursor::after(1024),
            FeedCursor::after(1500),
            FeedCursor { seq: head, frame: 0 },
        ];
        let check = |when: &'static str| {
            let (store, key, all) = (&store, &key, &all);
            async move {
                for at in late {
                    assert_same(&store.rest(key, at).await, after(all, at), || {
                        format!("{dialect} {when} {at}")
                    });
                }
            }
        };
        assert!(store.log.checkpoint(&run, form, head).await.unwrap().is_none());
        check("without").await;
        // The replay leaves some, which the writer keeps when it has time.
        store.rest(&key, FeedCursor::START).await;
        if dialect == Dialect::Runwire {
            assert!(store.log.checkpoint(&run, form, head).await.unwrap().is_none(), "it needs none");
            continue;
        }
        tokio::time::timeout(TIMEOUT, async {
            while store.log.checkpoint(&run, form, head).await.unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
        .unwrap();
        let begun =
            FeedEncoder::begin(store.log.clone(), key.clone(), FeedCursor::after(1500)).await.unwrap();
        assert!((1024..=1501).contains(&begun.next), "{dialect} begins at {}", begun.next);
        check("with").await;
        // A cache may be lost, or hold what no version can read.
        let file = rusqlite::Connection::open(store.directory.path().join("runwire.db")).unwrap();
        file.busy_timeout(TIMEOUT).unwrap();
        file.execute("UPDATE checkpoint SET state = '{\"of\":\"another version\"}'", []).unwrap();
        check("damaged").await;
        file.execute("DELETE FROM checkpoint", []).unwrap();
        check("lost").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_a_thread_is_its_runs_frames_in_order() {
    let store = Store::open();
    let thread = ThreadKey::new(TENANT, "side-by-side");
    let thread_id = Some("side-by-side".to_owned());
    store.log.create_thread(NewThread { tenant: TENANT.into(), thread_id, parallel: true }).await.unwrap();
    let cases = vectors::cases();
    let cases: Vec<_> = cases.iter().filter(|case| !case.several).step_by(9).collect();
    let targets: Vec<_> = cases.iter().map(|case| target_of(case)).collect();
    for at in 0..cases.iter().map(|case| case.frames.len()).max().unwrap() {
        for (case, target) in cases.iter().zip(&targets) {
            if let Some(frame) = case.frames.get(at) {
                let frame = std::slice::from_ref(frame);
                store
                    .append_to(target, Some(&thread.id), case.dialect, frame, at + 1 == case.frames.len())
                    .await;
            }
        }
    }
    let records = store.records(&thread).await;
    for form in forms().filter(|form| form.is_none_or(|form| form.dialect.names_its_run())) {
        let mut merged = Vec::new();
        let mut keys = keys(&thread, &records, form);
        let whole = keys.pop().unwrap();
        // In a run's own stream, ordering values begin anew.
        for key in keys.into_iter().map(|key| FeedKey { in_thread: true, ..key }) {
            merged.extend(store.rest(&key, FeedCursor::START).await);
        }
        merged.sort_by_key(|(cursor, ..)| *cursor);
        for at in [FeedCursor::START].into_iter().chain(merged.iter().step_by(7).map(|(cursor, ..)| *cursor))
        {
            assert_same(&store.rest(&whole, at).await, after(&merged, at), || format!("{form:?} after {at}"));
        }
    }
}

/// Follows a run to its end, or a thread to the run that says so.
async fn follow(mut reader: FeedReader) -> Vec<CursoredFrame> {
    let mut out: Vec<CursoredFrame> = Vec::new();
    loop {
        match reader.next().await.unwrap() {
            Next::Frames { segment, from, to } => {
                out.extend(frames_of(&segment, from, to));
                if out.iter().any(|(.., data)| String::from_utf8_lossy(data).contains(END_MARK)) {
                    return out;
                }
            }
            Next::CaughtUp => {}
            Next::Ended => return out,
        }
    }
}

/// A run with a text of four pieces of a mebibyte.
fn large_run() -> Vec<(Option<String>, Vec<u8>)> {
    let piece = "x".repeat(1000 << 10);
    let mut frames = vec![r#"{"type":"text.started","message_id":"m"}"#.to_owned()];
    for _ in 0..4 {
        frames.push(format!(r#"{{"type":"text.delta","message_id":"m","content":"{piece}"}}"#));
    }
    frames.push(r#"{"type":"text.finished","message_id":"m"}"#.to_owned());
    frames.push(r#"{"type":"run.completed"}"#.to_owned());
    frames.into_iter().map(|frame| (None, frame.into_bytes())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_from_the_store_has_a_share_until_it_is_dropped() {
    let store = Store::open();
    let target = Target::Run(RunKey::new(TENANT, "large"));
    store.append(&target, Dialect::Runwire, &large_run(), false).await;
    let thread = store.thread_of(&target).await;
    // Agio sends a text as pieces, and as a whole at its end.
    let form = ReadFormat::new(Dialect::Agio);
    let key = FeedKey { thread, run: Some("large".into()), in_thread: false, form: Some(form) };
    let mut largest = 0;
    let mut reader = store.reader(&key, FeedCursor::START, false);
    while let Next::Frames { segment, .. } = reader.next().await.unwrap() {
        assert!(store.memory.taken() >= segment.memory_bytes() as u64);
        largest = largest.max(segment.memory_bytes());
    }
    assert!(largest > 8 << 20, "the whole text is in one segment");
    assert_eq!(store.memory.taken(), 0);

    let mut gathering = store.reader(&key, FeedCursor::START, false).gather();
    gathering.hold(3 << 20).await.unwrap();
    while let Next::Frames { segment, .. } = gathering.next().await.unwrap() {
        assert!(store.memory.taken() >= (3 << 20) + segment.memory_bytes() as u64);
    }
    let share = gathering.into_share();
    assert!(share.is_some() && store.memory.taken() >= 3 << 20);
    drop(share);

    let (log, run, share) = (store.log.clone(), Arc::from("large"), store.memory.answer());
    let form = ReadFormat::new(Dialect::Runwire);
    let key = FeedKey { form: Some(form), ..key };
    let snapshot = FeedEncoder::snapshot(log, key, form, run, Some(1), share).await.unwrap();
    let (_, segment) = snapshot.unwrap();
    assert!(segment.memory_bytes() > 7 << 20 && store.memory.taken() >= segment.memory_bytes() as u64);
    drop(segment);
    assert_eq!(store.memory.taken(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_too_large_has_no_snapshot() {
    let store = Store::open();
    let target = Target::Run(RunKey::new(TENANT, "large"));
    let content = "x".repeat(1000 << 10);
    for at in 0..18 {
        let frame = format!(
            r#"{{"type":"activity.snapshot","message_id":"a{at}","activity_type":"x","content":{{"x":"{content}"}}}}"#
        );
        store.append(&target, Dialect::Runwire, &[(None, frame.into_bytes())], false).await;
    }
    let thread = store.thread_of(&target).await;
    let form = ReadFormat::new(Dialect::Runwire);
    let key = FeedKey { thread, run: Some("large".into()), in_thread: false, form: Some(form) };
    let (log, run, share) = (store.log.clone(), Arc::from("large"), store.memory.answer());
    let snapshot = FeedEncoder::snapshot(log, key, form, run, Some(1), share).await.unwrap();
    assert!(snapshot.is_none());
    assert_eq!(store.memory.taken(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_do_not_fit_at_once_are_served_one_after_the_other() {
    // Each page takes all that there is.
    let store = Store::with_budget(8 << 20);
    let target = Target::Run(RunKey::new(TENANT, "large"));
    store.append(&target, Dialect::Runwire, &large_run(), false).await;
    let thread = store.thread_of(&target).await;
    let form = Some(ReadFormat::new(Dialect::Agio));
    let key = FeedKey { thread, run: Some("large".into()), in_thread: false, form };
    let all = expected(&key, &store.records(&key.thread).await, u64::MAX);
    let readers: Vec<_> = (0..12)
        .map(|_| tokio::spawn(collect(store.reader(&key, FeedCursor::START, false).wait_out_outages())))
        .collect();
    for reader in readers {
        assert_same(&reader.await.unwrap(), &all, || "a reader".into());
    }
    assert_eq!(store.memory.taken(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rings_of_all_feeds_stay_within_their_part_of_the_budget() {
    let store = Store::with_budget(8 << 20);
    let form = Some(ReadFormat::new(Dialect::Runwire));
    let content = "x".repeat(40 << 10);
    let delta = |at: usize| {
        let frame = format!(r#"{{"type":"text.delta","message_id":"m","content":"{at}{content}"}}"#);
        [(None, frame.into_bytes())]
    };
    let mut readers = Vec::new();
    for run in 0..30 {
        let target = Target::Run(RunKey::new(TENANT, format!("r{run}").as_str()));
        store.append(&target, Dialect::Runwire, &delta(0), false).await;
        let thread = store.thread_of(&target).await;
        let key = FeedKey { thread, run: Some(format!("r{run}").into()), in_thread: false, form };
        let mut reader = store.reader(&key, FeedCursor::START, true);
        while !matches!(reader.next().await.unwrap(), Next::CaughtUp) {}
        readers.push((target, reader));
    }
    for at in 1..4 {
        for (target, reader) in &mut readers {
            store.append(target, Dialect::Runwire, &delta(at), false).await;
            let Next::Frames { segment, from, to } = reader.next().await.unwrap() else { panic!("no frame") };
            let frames = frames_of(&segment, from, to);
            let begin = format!(r#""content":"{at}x"#);
            assert!(matches!(&frames[..], [(_, _, data)] if String::from_utf8_lossy(data).contains(&begin)));
            let held = store.feeds.shared.ring_bytes.load(Ordering::Relaxed);
            assert!(held > 0 && held <= store.memory.ring_bytes(), "{held}");
        }
    }
    drop(readers);
    assert_eq!(store.feeds.shared.ring_bytes.load(Ordering::Relaxed), 0);
}
