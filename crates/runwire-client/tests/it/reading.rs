//! Streams over both transports equal the server's pages.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use runwire_client::{
    Body, Cursor, Dialect, Error, FrameStream, Framing, NewThread, RunStatus, Slots, StreamUpdate, Transport,
};
use runwire_model::ErrorCode;
use serde_json::Value;

use crate::fake_servers::{COMPLETED, CursorAndText, all, delta, write};
use crate::test_server::{TestServer, within_timeout};

const TRANSPORTS: [Transport; 2] = [Transport::Sse, Transport::WebSocket];

struct Vector {
    dialect: Dialect,
    folder: PathBuf,
    label: String,
    several: bool,
}

fn vectors() -> Vec<Vector> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let mut vectors = Vec::new();
    for dialect in Dialect::READABLE {
        let folders = fs::read_dir(root.join(dialect.name())).unwrap().map(|entry| entry.unwrap().path());
        let mut folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
        folders.sort();
        for folder in folders {
            let messages = fs::read(folder.join("message.json")).unwrap();
            let messages: Value = serde_json::from_slice(&messages).unwrap();
            let name = folder.file_name().unwrap().to_string_lossy();
            let label = format!("{dialect}.{name}");
            vectors.push(Vector { dialect, label, several: messages.as_array().unwrap().len() > 1, folder });
        }
    }
    assert!(vectors.len() > 50);
    vectors
}

async fn upload(server: &TestServer, vector: &Vector) {
    let (bytes, framing) = match fs::read(vector.folder.join("input.ndjson")) {
        Ok(bytes) => (bytes, Framing::Ndjson),
        Err(_) => (fs::read(vector.folder.join("input.sse")).unwrap(), Framing::Sse),
    };
    let client = server.client();
    let upload = match vector.several {
        true => client.thread(&vector.label).upload(),
        false => client.run(&vector.label).upload(),
    };
    let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from(bytes))]);
    let sent = upload.dialect(vector.dialect).framing(framing).end(true).send(bytes);
    within_timeout(sent).await.unwrap_or_else(|error| panic!("{}: {error}", vector.label));
}

/// Reads a vector page by page, without a stream.
async fn paged(server: &TestServer, vector: &Vector, dialect: Dialect) -> Vec<CursorAndText> {
    let client = server.client();
    let (mut frames, mut after) = (Vec::new(), None);
    loop {
        let page = match vector.several {
            true => client.thread(&vector.label).page(dialect, after, Some(7)).await.unwrap(),
            false => client.run(&vector.label).page(dialect, after, Some(7)).await.unwrap(),
        };
        for frame in page.frames {
            let text = if dialect == Dialect::Text {
                frame.frame.as_string().unwrap()
            } else {
                frame.frame.text().into()
            };
            frames.push((frame.cursor, text.into_owned()));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return frames,
        }
    }
}

fn frames_of(server: &TestServer, vector: &Vector, dialect: Dialect) -> FrameStream {
    let client = server.client();
    match vector.several {
        // The stream of a thread does not end by itself.
        true => client.thread(&vector.label).frames(dialect).follow(false),
        false => client.run(&vector.label).frames(dialect),
    }
}

#[tokio::test]
async fn every_vector_reads_the_same_over_every_transport() {
    let server = TestServer::start().await;
    for vector in vectors() {
        upload(&server, &vector).await;
        for dialect in [Dialect::Runwire, Dialect::AgUi, Dialect::Text, vector.dialect] {
            let expected = paged(&server, &vector, dialect).await;
            for transport in TRANSPORTS {
                let frames = all(frames_of(&server, &vector, dialect).transport(transport)).await;
                assert_eq!(frames, expected, "{} in {dialect} over {transport:?}", vector.label);
            }
        }
    }
}

#[tokio::test]
async fn text_and_message_equal_those_of_the_conversion() {
    let server = TestServer::start().await;
    for vector in vectors().into_iter().filter(|vector| !vector.several) {
        let options = fs::read_to_string(vector.folder.join("options.json")).unwrap_or_default();
        if options.contains("trusted") {
            // A conversion keeps the answers of a stream; from a producer they are ignored.
            continue;
        }
        upload(&server, &vector).await;
        let run = server.client().run(&vector.label);
        let text = fs::read_to_string(vector.folder.join("text.txt")).unwrap();
        for transport in TRANSPORTS {
            let pieces: Vec<String> =
                within_timeout(run.text().transport(transport).try_collect()).await.unwrap();
            assert_eq!(pieces.concat(), text.strip_suffix('\n').unwrap_or(&text), "{}", vector.label);
        }
        let states = run.message_states().map(Result::unwrap);
        let last = within_timeout(states.fold(None, async |_, state| Some(state))).await;
        let last = serde_json::to_value(&*last.unwrap()).unwrap();
        assert_eq!(last, run.message().await.unwrap(), "{}", vector.label);
    }
}

#[tokio::test]
async fn a_stream_reports_that_it_has_caught_up_and_continues_live() {
    let server = TestServer::start().await;
    for transport in TRANSPORTS {
        let run = server.client().run(format!("{transport:?}"));
        write(&run, &delta("one")).await;
        let mut events = run.events().transport(transport);
        let mut seen = Vec::new();
        while let Some(signal) = within_timeout(events.next_update()).await {
            match signal.unwrap() {
                StreamUpdate::Item(received) => seen.push(received.type_name()),
                StreamUpdate::CaughtUp => {
                    assert!(events.is_caught_up());
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, ["run.started", "text.started", "text.delta"]);
        write(&run, &(delta("two") + COMPLETED)).await;
        let rest: Vec<_> =
            within_timeout(events.map_ok(|received| received.type_name()).try_collect()).await.unwrap();
        assert_eq!(rest, ["text.delta", "text.finished", "run.completed"]);
    }
}

#[tokio::test]
async fn reading_from_the_end_returns_new_events() {
    let server = TestServer::start().await;
    for transport in TRANSPORTS {
        let run = server.client().run(format!("{transport:?}"));
        write(&run, &delta("one")).await;
        let mut events = run.events().transport(transport).from_end();
        assert_eq!(events.cursor(), None);
        assert_eq!(
            within_timeout(events.next_update()).await.unwrap().unwrap(),
            StreamUpdate::CaughtUp,
            "{transport:?}"
        );
        let start = events.cursor().expect("the place is known");
        write(&run, &(delta("two") + COMPLETED)).await;
        let rest: Vec<_> =
            within_timeout(events.map_ok(|received| received.type_name()).try_collect()).await.unwrap();
        assert_eq!(rest, ["text.delta", "text.finished", "run.completed"], "{transport:?}");
        // Nothing is missing after the reported cursor.
        let again = run.events().transport(transport).after(start);
        let again: Vec<_> =
            within_timeout(again.map_ok(|received| received.type_name()).try_collect()).await.unwrap();
        assert_eq!(again, rest);
        let mut closed = run.events().transport(transport).from_end();
        assert!(within_timeout(closed.next_update()).await.is_none(), "{transport:?}");
    }
}

#[tokio::test]
async fn reading_starts_after_a_cursor_and_ends_at_a_limit() {
    let server = TestServer::start().await;
    let run = server.client().run("r1");
    write(&run, &(delta("one") + &delta("two"))).await;
    for transport in TRANSPORTS {
        let frames = || run.frames(Dialect::AgUi).transport(transport);
        let whole = all(frames().follow(false)).await;
        for at in 0..whole.len() {
            let after = whole[at].0.unwrap();
            assert_eq!(
                all(frames().after(after).follow(false)).await,
                whole[at + 1..],
                "{transport:?} {after}"
            );
            let limit = u64::try_from(at).unwrap();
            assert_eq!(all(frames().limit(limit)).await, whole[..at], "{transport:?}");
        }
        assert_eq!(all(frames().after(Cursor::START).follow(false)).await, whole);
    }
    write(&run, COMPLETED).await;
    let end = run.info().await.unwrap().cursor.unwrap();
    for transport in TRANSPORTS {
        assert_eq!(all(run.frames(Dialect::AgUi).after(end).transport(transport)).await, []);
    }
}

#[tokio::test]
async fn snapshots_and_compacted_pieces_are_read() {
    let server = TestServer::start().await;
    let run = server.client().run("r1");
    write(&run, &(delta("a").repeat(20) + COMPLETED)).await;
    for transport in TRANSPORTS {
        let attached = all(run.frames(Dialect::AgUi).attach(true).transport(transport)).await;
        assert!(attached[0].1.contains("RUN_STARTED"), "{attached:?}");
        assert!(attached.iter().any(|(_, frame)| frame.contains("MESSAGES_SNAPSHOT")), "{attached:?}");
        assert!(attached.last().unwrap().1.contains("RUN_FINISHED"), "{attached:?}");
        let pieces: Vec<_> =
            within_timeout(run.text().compact(true).transport(transport).try_collect()).await.unwrap();
        assert_eq!((pieces.concat(), pieces.len() < 20), ("a".repeat(20), true));
        let raw = all(run.frames(Dialect::Runwire).raw(true).transport(transport)).await;
        assert_eq!(raw[0].1, delta("a").trim_end());
    }
}

#[tokio::test]
async fn a_reader_gets_the_selected_extension_frames() {
    let server = TestServer::start().await;
    let run = server.client().run("r1");
    let thought = r#"{"type":"thinking.started","message_id":"t"}"#.to_owned() + "\n";
    let thought = thought + r#"{"type":"thinking.delta","message_id":"t","content":"Hm."}"# + "\n";
    let asked = r#"{"type":"interaction.requested","interaction_id":"q","kind":"form"}"#.to_owned() + "\n";
    write(&run, &(thought + &delta("a") + &asked + COMPLETED)).await;
    for transport in TRANSPORTS {
        let read = |slots| all(run.frames(Dialect::Agio).slots(slots).transport(transport));
        let shows =
            |frames: &[CursorAndText], what: &str| frames.iter().any(|(_, frame)| frame.contains(what));
        let (every, asks, none) = (read(Slots::All).await, read(Slots::Asks).await, read(Slots::None).await);
        assert!(shows(&every, "thinking.delta") && shows(&every, "interaction.requested"));
        assert!(!shows(&asks, "thinking.delta") && shows(&asks, "interaction.requested"), "{asks:?}");
        assert!(!shows(&none, "\"debug\"") && shows(&none, "run_completed"), "{none:?}");
        let after = asks[0].0.unwrap();
        let rest = run.frames(Dialect::Agio).slots(Slots::Asks).transport(transport).after(after);
        assert_eq!(all(rest).await, asks[1..]);
    }
}

#[tokio::test]
async fn a_thread_is_read_run_after_run() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = NewThread { thread_id: Some("t1".into()), ..NewThread::default() };
    assert_eq!(client.create_thread(&thread).await.unwrap().thread_id, "t1");
    let mut events = client.thread("t1").events();
    for run_id in ["one", "two"] {
        let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from(delta(run_id) + COMPLETED))]);
        let upload = client.run(run_id).upload().dialect(Dialect::Runwire).thread("t1");
        within_timeout(upload.send(bytes)).await.unwrap();
        loop {
            let received = within_timeout(events.next()).await.unwrap().unwrap();
            assert_eq!((&*received.thread_id, &*received.run_id), ("t1", run_id));
            if let Body::RunCompleted(_) = received.body {
                break;
            }
        }
    }
    let messages = client.thread("t1").messages(None, None).await.unwrap().messages;
    assert_eq!(messages.iter().map(|message| &message["mainContent"]).collect::<Vec<_>>(), ["one", "two"]);
    client.thread("t1").delete(false).await.unwrap();
    assert_eq!(client.thread("t1").info().await.unwrap_err().code(), Some(ErrorCode::ThreadDeleted));
}

#[tokio::test]
async fn an_unknown_event_is_delivered() {
    let server = TestServer::start().await;
    let run = server.client().run("r1");
    write(&run, &format!("{{\"type\":\"mood.changed\",\"to\":\"😀\"}}\n{COMPLETED}")).await;
    let events: Vec<_> = within_timeout(run.events().try_collect()).await.unwrap();
    let mood = events.iter().find(|received| received.type_name() == "mood.changed").unwrap();
    let Body::Foreign(foreign) = &mood.body else { panic!("{mood:?}") };
    assert!(foreign.frame.text().contains("😀"));
}

#[tokio::test]
async fn a_refusal_is_typed_and_ends_the_stream() {
    let server = TestServer::start().await;
    let client = server.client();
    write(&client.run("r1"), &delta("one")).await;
    for transport in TRANSPORTS {
        let refused = async |frames: FrameStream| {
            let mut frames = frames.transport(transport);
            let error = within_timeout(frames.next()).await.unwrap().unwrap_err();
            assert!(within_timeout(frames.next()).await.is_none());
            let Error::Refused(problem) = error else { panic!("{error}") };
            assert!(problem.hint().is_some() && problem.detail().is_some(), "{problem}");
            (problem.status(), problem.code().unwrap())
        };
        assert_eq!(refused(client.run("none").frames(Dialect::Loom)).await, (404, ErrorCode::RunUnknown));
        let beyond = client.run("r1").frames(Dialect::Loom).after(Cursor::after(99));
        assert_eq!(refused(beyond).await, (400, ErrorCode::CursorBeyondEnd));
        let attach = client.run("r1").frames(Dialect::Loom).attach(true);
        assert_eq!(refused(attach).await, (400, ErrorCode::AttachNotOffered));
    }
    let info = client.run("r1").info().await.unwrap();
    assert_eq!(info.status, RunStatus::Running);
    client.thread(&info.thread_id).delete(true).await.unwrap();
    let error = within_timeout(client.run("r1").events().next()).await.unwrap().unwrap_err();
    assert_eq!((error.problem().unwrap().status() >= 404, error.is_temporary()), (true, false), "{error}");
}
