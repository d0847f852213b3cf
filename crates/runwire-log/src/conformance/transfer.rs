//! A thread is exported and imported completely, and continues in the other log.

use std::sync::Arc;
use std::time::Duration;

use runwire_model::Timestamp;
use runwire_model::record::History;
use runwire_model::run::Status;

use super::fixture::{
    COMPLETED, Fixture, STARTED, TENANT, delta, run, stamped, thread, to_run, to_run_of, to_thread,
};
use super::{Bed, Timing};
use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::record::StoredRecord;
use crate::transfer::{ExportRequest, ImportProblem, Imported, TransferItem, line};
use crate::{Append, Cancel, Log, RetentionLimits, Target};

const ELSEWHERE: &str = "elsewhere";

const ASKED: &str =
    r#"{"type":"interaction.requested","interaction_id":"i","kind":"approval","title":"Go?"}"#;

/// Another tenant has a log of its own as far as threads and runs go.
fn there(id: &str) -> ThreadKey {
    ThreadKey::new(ELSEWHERE, id)
}

async fn exported(log: &Arc<dyn Log>, key: &ThreadKey, run: Option<&str>) -> Vec<TransferItem> {
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let part = ExportRequest { run: run.map(str::to_owned), after };
        let page = log.export(key, &part).await.expect("the thread can be exported");
        items.extend(page.items);
        let Some(next) = page.next else { return items };
        after = Some(next);
    }
}

/// Imports items as lines, a few at a time.
async fn import(log: &Arc<dyn Log>, key: &ThreadKey, items: &[TransferItem]) -> Imported {
    let mut sum = Imported::default();
    let numbered = items.iter().enumerate().map(|(at, item)| {
        let mut text = Vec::new();
        line::write(&mut text, item);
        (at as u64 + 1, line::read(text.trim_ascii_end()).expect("what was written can be read"))
    });
    let numbered: Vec<_> = numbered.collect();
    for some in numbered.chunks(3) {
        let imported = log.import(key, some.to_vec()).await.expect("the thread is taken");
        sum.imported += imported.imported;
        sum.skipped += imported.skipped;
        (sum.head, sum.fault) = (imported.head, imported.fault);
        if sum.fault.is_some() {
            break;
        }
    }
    sum
}

async fn problem(log: &Arc<dyn Log>, key: &ThreadKey, items: &[TransferItem]) -> ImportProblem {
    import(log, key, items).await.fault.expect("it is refused").problem
}

fn records(items: &[TransferItem]) -> Vec<Arc<StoredRecord>> {
    let records = items.iter().filter_map(|item| match item {
        TransferItem::Record(stored) => Some(stored.clone()),
        _ => None,
    });
    records.collect()
}

/// Writes to the same run or thread of the other tenant.
fn moved_append(mut append: Append) -> Append {
    match &mut append.target {
        Target::Run(key) => key.tenant = ELSEWHERE.into(),
        Target::Thread(key) => key.tenant = ELSEWHERE.into(),
        Target::Tenant(tenant) => *tenant = ELSEWHERE.into(),
    }
    append
}

/// Closed, cancelled, lost and open runs, and one that nothing was written to: all is the same there.
pub async fn an_import_equals_its_export(bed: &dyn Bed) {
    let fixture = Fixture::with(bed, Timing { lease: Duration::from_millis(50), ..Timing::default() }).await;
    fixture.closed_run("t", "done", "你好").await;
    fixture.write(to_run_of("t", "cancelled", &[STARTED, ASKED])).await;
    fixture
        .log
        .cancel(&run("cancelled"), Cancel { reason: Some("no".into()), by: None })
        .await
        .expect("a cancel");
    fixture.write(to_run_of("t", "lost", &[STARTED.to_owned(), delta("x")])).await;
    fixture.sweep_until("lost", "failed").await;
    let fixture = fixture.reopen().await;
    fixture.write(stamped(to_run_of("t", "open", &[STARTED.to_owned(), delta("a")]), "p", 3, 0)).await;
    let items = exported(&fixture.log, &thread("t"), None).await;
    assert_eq!(records(&items).len(), 11);
    let imported = import(&fixture.log, &there("t"), &items).await;
    assert_eq!((imported.imported, imported.skipped, imported.head, imported.fault), (11, 0, 11, None));
    let mut fixture = fixture;
    for _ in 0..2 {
        assert_eq!(exported(&fixture.log, &there("t"), None).await, items);
        for id in ["done", "cancelled", "lost", "open"] {
            let here = fixture.info(id).await;
            let moved = fixture.log.run(&RunKey::new(ELSEWHERE, id)).await.expect("the run moved");
            assert_eq!(moved, here);
        }
        fixture = fixture.reopen().await;
    }
}

/// An open run of each kind takes the next frames as it would have where it came from.
pub async fn an_imported_run_continues_as_if_it_were_written_here(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let item = |text: &str| format!(r#"{{"type":"message_chunk","content":"{text}","id":"n"}}"#);
    let first = Append {
        dialect: Some(runwire_model::dialect::Dialect::Loom),
        ..stamped(to_run_of("t", "r", &[item("a"), item("b")]), "p", 1, 0)
    };
    fixture.write(first.clone()).await;
    let items = exported(&fixture.log, &thread("t"), None).await;
    assert_eq!(import(&fixture.log, &there("t"), &items).await.fault, None);
    // The producer repeats itself, and goes on in the middle of a text that has no id.
    let again = fixture.write(moved_append(first)).await;
    assert_eq!((again.accepted, again.duplicates), (0, 2));
    let rest = |append: Append| Append { end: true, ..append };
    let more = rest(stamped(to_run("r", &[item("c")]), "p", 1, 2));
    fixture.write(more.clone()).await;
    fixture.write(moved_append(more)).await;
    let (here, moved) =
        (exported(&fixture.log, &thread("t"), None).await, exported(&fixture.log, &there("t"), None).await);
    let meaning = |items: &[TransferItem]| {
        records(items).iter().map(|one| one.record.entries.clone()).collect::<Vec<_>>()
    };
    assert_eq!(meaning(&moved), meaning(&here));
    // The next run, too.
    for tenant in [TENANT, ELSEWHERE] {
        let next = Append {
            target: Target::Run(RunKey::new(tenant, "r2")),
            ..to_run_of("t", "r2", &[STARTED, COMPLETED])
        };
        fixture.write(next).await;
    }
    let (here, moved) =
        (exported(&fixture.log, &thread("t"), None).await, exported(&fixture.log, &there("t"), None).await);
    assert_eq!(meaning(&moved), meaning(&here));
}

/// Parallel runs keep their order, and stay open.
pub async fn a_parallel_thread_is_exported_with_its_parallel_runs(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.create_parallel_thread("t").await;
    for text in ["a", "b"] {
        for id in ["r1", "r2"] {
            fixture.write(to_run_of("t", id, &[delta(text)])).await;
        }
    }
    fixture.create_run("pending", Some("t")).await;
    fixture.write(to_run_of("t", "r1", &[COMPLETED])).await;
    let items = exported(&fixture.log, &thread("t"), None).await;
    assert_eq!(import(&fixture.log, &there("t"), &items).await.fault, None);
    assert_eq!(exported(&fixture.log, &there("t"), None).await, items);
    let info = fixture.log.thread(&there("t")).await.expect("the thread moved");
    assert_eq!((info.parallel, info.open_runs), (true, vec!["r2".to_owned(), "pending".to_owned()]));
    // A run alone moves with what lies side by side with it.
    let alone = exported(&fixture.log, &thread("t"), Some("r1")).await;
    assert_eq!(records(&alone).len(), 5);
}

/// A source that writes a whole thread finds its runs again.
pub async fn a_producer_of_a_whole_thread_continues_after_the_import(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let frame = |run: &str, text: &str| {
        format!(r#"{{"type":"text.delta","run_id":"{run}","message_id":"m","content":"{text}"}}"#)
    };
    fixture.write(stamped(to_thread("t", &[frame("a", "1")]), "p", 0, 0)).await;
    let items = exported(&fixture.log, &thread("t"), None).await;
    assert_eq!(import(&fixture.log, &there("t"), &items).await.fault, None);
    let more = stamped(to_thread("t", &[frame("a", "2")]), "p", 0, 1);
    assert_eq!(fixture.write(moved_append(more)).await.last_seq, 2);
    assert_eq!(fixture.log.spans(&there("t")).await.expect("the thread").len(), 1);
}

/// Existing items are compared and skipped; an interrupted import is completed.
pub async fn repeating_an_import_changes_nothing_and_completes_what_was_cut_off(bed: &dyn Bed) {
    let fixture = Fixture::with(bed, Timing { lease: Duration::from_millis(1), ..Timing::default() }).await;
    fixture.closed_run("t", "r1", "a").await;
    fixture.closed_run("t", "r2", "b").await;
    let items = exported(&fixture.log, &thread("t"), None).await;
    let cut = import(&fixture.log, &there("t"), &items[..3]).await;
    assert_eq!((cut.imported, cut.fault), (1, None));
    // What is half there is not taken for lost, also not after a restart.
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(fixture.log.sweep().await, Ok(0));
    let fixture = fixture.reopen().await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(fixture.log.sweep().await, Ok(0));
    for (imported, skipped) in [(5, 1), (0, 6)] {
        let again = import(&fixture.log, &there("t"), &items).await;
        assert_eq!((again.imported, again.skipped, again.fault), (imported, skipped, None));
        assert_eq!(exported(&fixture.log, &there("t"), None).await, items);
    }
}

/// Whatever differs from what is there, or cannot be, is named and changes nothing.
pub async fn an_invalid_item_is_refused_with_its_line(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    fixture.closed_run("t", "r", "a").await;
    let items = exported(&fixture.log, &thread("t"), None).await;
    let with = |at: usize, change: &dyn Fn(&mut StoredRecord)| {
        let mut changed = items.clone();
        if let TransferItem::Record(stored) = &mut changed[at] {
            change(Arc::make_mut(stored));
        }
        changed
    };
    let log = &fixture.log;
    let mut gap = items.clone();
    gap.remove(3);
    assert_eq!(problem(log, &there("t"), &gap).await, ImportProblem::Gap { expected: 2, got: 3 });
    let unknown = with(3, &|stored| stored.run = "another".into());
    assert!(matches!(problem(log, &there("t"), &unknown).await, ImportProblem::Bad(_)));
    let back = with(3, &|stored| stored.record.at = Timestamp(1));
    assert!(matches!(problem(log, &there("t"), &back).await, ImportProblem::Bad(_)));
    let never = with(3, &|stored| stored.record.at = Timestamp(u64::MAX));
    assert!(matches!(problem(log, &there("t"), &never).await, ImportProblem::Bad(_)));
    // A item of text that nothing has begun is not what any run stores.
    let unfit = with(3, &|stored| drop(stored.record.entries.remove(0)));
    assert!(matches!(problem(log, &there("t"), &unfit).await, ImportProblem::Bad(_)));
    assert_eq!(import(log, &there("t"), &items).await.fault, None);
    let changed = with(2, &|stored| stored.frame = Some(bytes::Bytes::from_static(b"{}")));
    assert_eq!(problem(log, &there("t"), &changed).await, ImportProblem::Conflict("record 1".into()));
    // The ids are taken, by others.
    fixture.closed_run("u", "r2", "b").await;
    let mut others = exported(log, &thread("u"), None).await;
    assert_eq!(problem(log, &thread("t"), &others).await, ImportProblem::Conflict("the thread `t`".into()));
    if let TransferItem::Thread(facts) = &mut others[0] {
        facts.thread_id = "v".into();
    }
    let taken = ImportProblem::Log(LogError::RunExists("r2".into()));
    assert_eq!(problem(log, &thread("v"), &others).await, taken);
    let records_alone = log.import(&there("w"), vec![(1, items[2].clone())]).await;
    assert_eq!(records_alone.map(|_| ()), Err(LogError::ThreadUnknown("w".into())));
    fixture.log.delete_thread(&there("t"), false).await.expect("a deletion");
    let gone = log.import(&there("t"), vec![(1, items[0].clone())]).await;
    assert_eq!(gone.map(|_| ()), Err(LogError::ThreadDeleted("t".into())));
}

/// What retention left is exported with the messages and the state before it, and with all used ids.
pub async fn a_trimmed_thread_is_exported_with_its_base_state(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let state = r#"{"type":"state.snapshot","state":{"n":1e2}}"#.to_owned();
    fixture
        .write(to_run_of("t", "r1", &[STARTED.to_owned(), delta("old"), state, COMPLETED.to_owned()]))
        .await;
    let moment = fixture.info("r1").await.ended_at.expect("an end");
    while fixture.info("r1").await.ended_at.is_some_and(|at| at.0 + 3 > now()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    fixture.closed_run("t", "r2", "new").await;
    let cut = RetentionLimits { ended_before: Some(Timestamp(moment.0 + 1)), ..RetentionLimits::default() };
    assert_eq!(fixture.log.trim(cut).await, Ok(1));
    let items = exported(&fixture.log, &thread("t"), None).await;
    assert_eq!(import(&fixture.log, &there("t"), &items).await.fault, None);
    // A run alone is like a thread that was trimmed up to it.
    let alone = exported(&fixture.log, &thread("t"), Some("r2")).await;
    let third = ThreadKey::new("third", "t");
    assert_eq!(import(&fixture.log, &third, &alone).await.fault, None);
    let mut fixture = fixture.reopen().await;
    for _ in 0..2 {
        assert_eq!(exported(&fixture.log, &there("t"), None).await, items);
        let told = |window: &runwire_model::window::Window| (window.messages(), window.state());
        let here = told(&fixture.log.before(&thread("t"), 5).await.expect("the thread"));
        for key in [there("t"), third.clone()] {
            assert_eq!(told(&fixture.log.before(&key, 5).await.expect("the thread")), here);
            assert_eq!(records(&exported(&fixture.log, &key, None).await), records(&items));
        }
        let gone = fixture.log.run(&RunKey::new(ELSEWHERE, "r1")).await.expect("its id is used up");
        assert_eq!((gone.trimmed, gone.status), (true, Status::Completed));
        fixture = fixture.reopen().await;
    }
    // All of it may be gone.
    let all = RetentionLimits { ended_before: Some(Timestamp(u64::MAX)), ..RetentionLimits::default() };
    assert!(fixture.log.trim(all).await.expect("a trim") >= 1);
    let rest = exported(&fixture.log, &thread("t"), None).await;
    let fourth = ThreadKey::new("fourth", "t");
    assert_eq!(import(&fixture.log, &fourth, &rest).await.fault, None);
    let fixture = fixture.reopen().await;
    let next =
        Append { target: Target::Run(RunKey::new("fourth", "r3")), ..to_run_of("t", "r3", &[STARTED]) };
    assert_eq!(fixture.write(next).await.last_seq, 8);
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
