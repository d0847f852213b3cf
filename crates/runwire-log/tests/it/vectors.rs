//! The golden vectors written to the log: what is stored is what a conversion gives, and what readers get is
//! the same whether earlier records are looked up in the log or kept in memory.

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runwire_log::conformance::{Bed, Timing};
use runwire_log::transfer::line;
use runwire_log::{
    Append, ExportRequest, FrameBatch, HistoryCache, Log, RecordSource, RunHistory, RunKey, Stamp,
    StoredRecord, Target, ThreadKey, TransferItem, Wanted,
};
use runwire_model::convert::{Converted, Converter, Options};
use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::framing::{Framing, Unframer};
use runwire_model::record::Entry;
use runwire_model::window::Window;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::bed::SqliteBed;

/// Frames between two reopenings of the store.
const REOPENED_AFTER: usize = 7;

struct Case {
    label: String,
    dialect: Dialect,
    frames: Vec<(Option<String>, Vec<u8>)>,
}

fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let mut cases = Vec::new();
    for dialect in Dialect::READABLE {
        let entries = fs::read_dir(root.join(dialect.name())).unwrap();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            let label = format!("{dialect}/{}", folder.file_name().unwrap().to_string_lossy());
            cases.push(Case { label, dialect, frames: input(&folder) });
        }
    }
    assert!(cases.len() > 100, "the vectors are missing");
    cases
}

fn input(folder: &Path) -> Vec<(Option<String>, Vec<u8>)> {
    let (bytes, framing) = match fs::read(folder.join("input.ndjson")) {
        Ok(bytes) => (bytes, Framing::Ndjson),
        Err(_) => (fs::read(folder.join("input.sse")).unwrap(), Framing::Sse),
    };
    let mut unframer = Unframer::new(framing);
    unframer.push(&bytes);
    unframer.finish();
    let mut frames = Vec::new();
    while let Some(frame) = unframer.next() {
        let frame = frame.unwrap();
        frames.push((frame.name.map(str::to_owned), frame.data.to_vec()));
    }
    frames
}

/// The records of a conversion: run and entries.
fn converted(case: &Case, run: Option<&str>) -> Vec<(String, Vec<Entry>)> {
    let options = Options {
        from: Some(case.dialect),
        thread: Some("thread".to_owned()),
        run: run.map(str::to_owned),
        ..Options::to(Dialect::Runwire)
    };
    let mut converter = Converter::new(options);
    let mut records = Vec::new();
    for (at, (name, data)) in case.frames.iter().enumerate() {
        let mut sink = |converted: Converted<'_>| {
            records.push((converted.run_id.to_owned(), converted.record.entries.clone()));
        };
        converter.push(at as u64 + 1, name.as_deref(), data, &mut sink).unwrap();
    }
    records
}

/// Replaces in what events say the ids of runs that are minted on either side by the order of the runs.
fn with_numbered_runs(records: &[(String, Vec<Entry>)]) -> Vec<(usize, Vec<String>)> {
    let mut order: Vec<&str> = Vec::new();
    let mut numbered = Vec::new();
    for (run, entries) in records {
        if !order.contains(&run.as_str()) {
            order.push(run);
        }
        let told = entries.iter().map(|entry| {
            let mut text = format!("{:?} {}", entry.origin, entry.event.to_json().text());
            for (at, run) in order.iter().enumerate() {
                text = text.replace(&format!("\"{run}:"), &format!("\"<{at}>:"));
            }
            text
        });
        let told = told.collect();
        numbered.push((order.iter().position(|known| known == run).unwrap(), told));
    }
    numbered
}

/// Writes one frame per append to a thread or one run of it, and reopens the store every few frames.
async fn write(
    bed: &SqliteBed,
    mut log: Arc<dyn Log>,
    number: usize,
    case: &Case,
    one_run: bool,
) -> (Arc<dyn Log>, ThreadKey) {
    // The ids of runs are taken only once in a tenant, and cases share them.
    let tenant = format!("tenant-{number}-{one_run}");
    let thread = ThreadKey::new(tenant.as_str(), "thread");
    let target = match one_run {
        true => Target::Run(RunKey::new(tenant.as_str(), "run")),
        false => Target::Thread(thread.clone()),
    };
    for (at, (name, data)) in case.frames.iter().enumerate() {
        let mut frames = FrameBatch::default();
        frames.push(at as u64 + 1, name.as_deref(), data);
        let append = Append {
            target: target.clone(),
            thread: Some("thread".to_owned()),
            dialect: Some(case.dialect),
            stamp: Some(Stamp { producer: "p".into(), epoch: 0, index: at as u64 }),
            frames,
            end: false,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        };
        let appended = log.append(append).await.unwrap();
        assert_eq!(appended.fault, None, "{} frame {}", case.label, at + 1);
        if (at + number).is_multiple_of(REOPENED_AFTER) {
            log = bed.reopen(log, Timing::default()).await;
        }
    }
    (log, thread)
}

async fn read(log: &Arc<dyn Log>, thread: &ThreadKey) -> Vec<Arc<StoredRecord>> {
    let mut records: Vec<Arc<StoredRecord>> = Vec::new();
    loop {
        let after = records.last().map_or(0, |record| record.record.seq);
        let page = log.read(thread, after).await.unwrap();
        if page.records.is_empty() {
            return records;
        }
        records.extend(page.records);
    }
}

/// Looks records up in the pages of the log.
struct InLog<'l> {
    log: &'l Arc<dyn Log>,
    thread: &'l ThreadKey,
    records: &'l [Arc<StoredRecord>],
}

impl RecordSource for InLog<'_> {
    fn visit(
        &self,
        after: u64,
        _wanted: Wanted<'_>,
        visit: &mut dyn FnMut(&StoredRecord) -> ControlFlow<()>,
    ) {
        let from = self.records.partition_point(|stored| stored.record.seq <= after);
        let _ = self.records[from..].iter().try_for_each(|stored| visit(stored));
    }

    fn before(&self, first_seq: u64) -> Window {
        block_in_place(|| Handle::current().block_on(self.log.before(self.thread, first_seq))).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_vector_is_stored_as_it_is_converted_and_read_back_the_same() {
    let bed = SqliteBed::new();
    let mut log = bed.open(Timing::default()).await;
    for (number, case) in cases().iter().enumerate() {
        let expected = with_numbered_runs(&converted(case, None));
        let mut thread;
        (log, thread) = write(&bed, log, number, case, false).await;
        compare(&read(&log, &thread).await, &expected, &case.label);
        if expected.iter().all(|(run, _)| *run == 0) {
            (log, thread) = write(&bed, log, number, case, true).await;
            let expected = with_numbered_runs(&converted(case, Some("run")));
            compare(&read(&log, &thread).await, &expected, &case.label);
        }
        let records = read(&log, &thread).await;
        for to in Dialect::ALL {
            for fidelity in [Fidelity::Native, Fidelity::Full] {
                same_frames(&log, &thread, &records, to, fidelity, &case.label);
            }
        }
    }
    log.close().await;
}

/// Moves a thread to another tenant, as lines.
async fn moved(log: &Arc<dyn Log>, from: &ThreadKey, to: &ThreadKey) {
    let items = exported(log, from).await;
    let mut numbered = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let mut text = Vec::new();
        line::write(&mut text, item);
        numbered.push((at as u64 + 1, line::read(text.trim_ascii_end()).unwrap()));
    }
    let imported = log.import(to, numbered).await.unwrap();
    assert_eq!(imported.fault, None);
    assert_eq!(exported(log, to).await, items);
}

async fn exported(log: &Arc<dyn Log>, thread: &ThreadKey) -> Vec<TransferItem> {
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let page = log.export(thread, &ExportRequest { run: None, after }).await.unwrap();
        items.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return items,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_vector_can_be_exported_after_any_third_and_means_the_same() {
    let bed = SqliteBed::new();
    let log = bed.open(Timing::default()).await;
    for (number, case) in cases().iter().enumerate() {
        for third in 1..=2 {
            let key = |tenant: &str| ThreadKey::new(format!("{tenant}-{number}-{third}"), "thread");
            let (here, there) = (key("here"), key("there"));
            let mut log = log.clone();
            let cut = case.frames.len() * third / 3;
            log = append_all(log, &here, case, 0..cut).await;
            if cut == 0 {
                continue;
            }
            moved(&log, &here, &there).await;
            for thread in [&here, &there] {
                log = append_all(log, thread, case, cut..case.frames.len()).await;
            }
            let told = |records: &[Arc<StoredRecord>]| -> Vec<_> {
                records.iter().map(|one| (one.run.to_string(), one.record.entries.clone())).collect()
            };
            let expected = with_numbered_runs(&told(&read(&log, &here).await));
            compare(&read(&log, &there).await, &expected, &case.label);
        }
    }
    log.close().await;
}

async fn append_all(
    log: Arc<dyn Log>,
    thread: &ThreadKey,
    case: &Case,
    range: std::ops::Range<usize>,
) -> Arc<dyn Log> {
    for at in range {
        let (name, data) = &case.frames[at];
        let mut frames = FrameBatch::default();
        frames.push(at as u64 + 1, name.as_deref(), data);
        let append = Append {
            target: Target::Thread(thread.clone()),
            thread: None,
            dialect: Some(case.dialect),
            stamp: Some(Stamp { producer: "p".into(), epoch: 0, index: at as u64 }),
            frames,
            end: false,
            check: Default::default(),
            whole: Default::default(),
            parallel: false,
        };
        assert_eq!(log.append(append).await.unwrap().fault, None, "{} frame {}", case.label, at + 1);
    }
    log
}

fn compare(records: &[Arc<StoredRecord>], expected: &[(usize, Vec<String>)], label: &str) {
    let stored: Vec<_> =
        records.iter().map(|record| (record.run.to_string(), record.record.entries.clone())).collect();
    let found = with_numbered_runs(&stored);
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!(found.get(at), Some(expected), "{label} record {}", at + 1);
    }
    assert_eq!(found.len(), expected.len(), "{label}");
}

/// Encodes the records of a thread with lookups in the log and with a window in memory.
fn same_frames(
    log: &Arc<dyn Log>,
    thread: &ThreadKey,
    records: &[Arc<StoredRecord>],
    to: Dialect,
    fidelity: Fidelity,
    label: &str,
) {
    let source = InLog { log, thread, records };
    let mut window = Window::default();
    let mut encoders: HashMap<&str, (Encoder, Encoder, HistoryCache, u64)> = HashMap::new();
    for stored in records {
        let record = &stored.record;
        let (looking, keeping, state, first_seq) = encoders.entry(&stored.run).or_insert_with(|| {
            window.next_run(&stored.run);
            let encoder = Encoder::new(to, &*thread.id, &*stored.run, fidelity);
            (encoder.clone(), encoder, HistoryCache::default(), record.seq)
        });
        window.absorb(record);
        let mut kept = Frames::default();
        keeping.step(record, &window, &mut kept);
        let mut found = Frames::default();
        let run = &*stored.run;
        let (first_seq, upto, current) = (*first_seq, record.seq, Some(record));
        let look = RunHistory { source: &source, run, first_seq, upto, current, cache: state };
        looking.step(record, &look, &mut found);
        assert_eq!(shown(&found), shown(&kept), "{label} to {to} {fidelity:?}, seq {}", record.seq);
    }
}

fn shown(frames: &Frames) -> Vec<(Option<&str>, String)> {
    frames.iter().map(|(name, data)| (name, String::from_utf8_lossy(data).into_owned())).collect()
}
