use runwire_log::sqlite::{Options, Sqlite};
use runwire_log::{Append, FrameBatch, Log, RunKey, Target};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_read_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/hello.loom.ndjson")).unwrap();
    {
        let log = Sqlite::open(&path, Options::default()).unwrap();
        let run = RunKey::new("default", "r1");
        for (line, frame) in text.lines().enumerate() {
            let mut frames = FrameBatch::default();
            frames.push(line as u64 + 1, None, frame.as_bytes());
            let append = Append { target: Target::Run(run.clone()), thread: None, dialect: None, stamp: None, frames, end: false };
            let appended = log.append(append).await.unwrap();
            assert_eq!(appended.fault, None);
            assert_eq!(appended.last_seq, line as u64 + 1);
        }
        log.close().await;
    }
    let log = Sqlite::open(&path, Options::default()).unwrap();
    let run = log.run(&RunKey::new("default", "r1")).await.unwrap();
    assert_eq!(run.status.as_str(), "completed");
    let page = log.read(&runwire_log::ThreadKey::new("default", "r1"), 0).await.unwrap();
    assert_eq!(page.records.len(), 9);
}
