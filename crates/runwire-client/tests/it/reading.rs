//! What is read is what the server has, whatever carries it.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use runwire_client::{
    Body, Cursor, Dialect, Error, Frames, Framing, NewThread, RunStatus, Signal, Slots, Transport,
};
use serde_json::Value;

use crate::reading_way::{COMPLETED, Told, all, delta, write};
use crate::writing_stage::{Stage, patient};

const CARRIERS: [Transport; 2] = [Transport::Sse, Transport::WebSocket];

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

async fn upload(stage: &Stage, vector: &Vector) {
    let (bytes, framing) = match fs::read(vector.folder.join("input.ndjson")) {
        Ok(bytes) => (bytes, Framing::Ndjson),
        Err(_) => (fs::read(vector.folder.join("input.sse")).unwrap(), Framing::Sse),
    };
    let client = stage.client();
    let upload = match vector.several {
        true => client.thread(&vector.label).upload(),
        false => client.run(&vector.label).upload(),
    };
    let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from(bytes))]);
    let sent = upload.dialect(vector.dialect).framing(framing).end(true).send(bytes);
    patient(sent).await.unwrap_or_else(|error| panic!("{}: {error}", vector.label));
}

/// Reads a vector by pages, which no stream has a part in.
async fn paged(stage: &Stage, vector: &Vector, dialect: Dialect) -> Vec<Told> {
    let client = stage.client();
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

fn frames_of(stage: &Stage, vector: &Vector, dialect: Dialect) -> Frames {
    let client = stage.client();
    match vector.several {
        // A thread's stream does not end by itself.
        true => client.thread(&vector.label).frames(dialect).follow(false),
        false => client.run(&vector.label).frames(dialect),
    }
}

#[tokio::test]
async fn every_vector_reads_the_same_over_every_carrier() {
    let stage = Stage::start().await;
    for vector in vectors() {
        upload(&stage, &vector).await;
        for dialect in [Dialect::Runwire, Dialect::AgUi, Dialect::Text, vector.dialect] {
            let expected = paged(&stage, &vector, dialect).await;
            for carrier in CARRIERS {
                let frames = all(frames_of(&stage, &vector, dialect).transport(carrier)).await;
                assert_eq!(frames, expected, "{} in {dialect} over {carrier:?}", vector.label);
            }
        }
    }
}

#[tokio::test]
async fn the_text_alone_and_the_message_are_those_of_the_conversion() {
    let stage = Stage::start().await;
    for vector in vectors().into_iter().filter(|vector| !vector.several) {
        let options = fs::read_to_string(vector.folder.join("options.json")).unwrap_or_default();
        if options.contains("trusted") {
            // A conversion takes the answers in it as they stand; from a producer they mean nothing.
            continue;
        }
        upload(&stage, &vector).await;
        let run = stage.client().run(&vector.label);
        let text = fs::read_to_string(vector.folder.join("text.txt")).unwrap();
        for carrier in CARRIERS {
            let pieces: Vec<String> = patient(run.text().transport(carrier).try_collect()).await.unwrap();
            assert_eq!(pieces.concat(), text.strip_suffix('\n').unwrap_or(&text), "{}", vector.label);
        }
        let states = run.message_states().map(Result::unwrap);
        let last = patient(states.fold(None, async |_, state| Some(state))).await;
        let last = serde_json::to_value(&*last.unwrap()).unwrap();
        assert_eq!(last, run.message().await.unwrap(), "{}", vector.label);
    }
}

#[tokio::test]
async fn a_stream_says_when_it_has_caught_up_and_goes_on_with_what_happens() {
    let stage = Stage::start().await;
    for carrier in CARRIERS {
        let run = stage.client().run(format!("{carrier:?}"));
        write(&run, &delta("one")).await;
        let mut events = run.events().transport(carrier);
        let mut seen = Vec::new();
        while let Some(signal) = patient(events.signal()).await {
            match signal.unwrap() {
                Signal::Item(received) => seen.push(received.type_name()),
                Signal::CaughtUp => {
                    assert!(events.is_caught_up());
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, ["run.started", "text.started", "text.delta"]);
        write(&run, &(delta("two") + COMPLETED)).await;
        let rest: Vec<_> =
            patient(events.map_ok(|received| received.type_name()).try_collect()).await.unwrap();
        assert_eq!(rest, ["text.delta", "text.finished", "run.completed"]);
    }
}

#[tokio::test]
async fn reading_from_the_end_gives_what_happens_from_then_on() {
    let stage = Stage::start().await;
    for carrier in CARRIERS {
        let run = stage.client().run(format!("{carrier:?}"));
        write(&run, &delta("one")).await;
        let mut events = run.events().transport(carrier).from_end();
        assert_eq!(events.cursor(), None);
        assert_eq!(patient(events.signal()).await.unwrap().unwrap(), Signal::CaughtUp, "{carrier:?}");
        let start = events.cursor().expect("the place is known");
        write(&run, &(delta("two") + COMPLETED)).await;
        let rest: Vec<_> =
            patient(events.map_ok(|received| received.type_name()).try_collect()).await.unwrap();
        assert_eq!(rest, ["text.delta", "text.finished", "run.completed"], "{carrier:?}");
        // From the place that was told, nothing is missing.
        let again = run.events().transport(carrier).after(start);
        let again: Vec<_> =
            patient(again.map_ok(|received| received.type_name()).try_collect()).await.unwrap();
        assert_eq!(again, rest);
        let mut closed = run.events().transport(carrier).from_end();
        assert!(patient(closed.signal()).await.is_none(), "{carrier:?}");
    }
}

#[tokio::test]
async fn reading_begins_and_ends_where_it_is_asked_to() {
    let stage = Stage::start().await;
    let run = stage.client().run("r1");
    write(&run, &(delta("one") + &delta("two"))).await;
    for carrier in CARRIERS {
        let frames = || run.frames(Dialect::AgUi).transport(carrier);
        let whole = all(frames().follow(false)).await;
        for at in 0..whole.len() {
            let after = whole[at].0.unwrap();
            assert_eq!(
                all(frames().after(after).follow(false)).await,
                whole[at + 1..],
                "{carrier:?} {after}"
            );
            let limit = u64::try_from(at).unwrap();
            assert_eq!(all(frames().limit(limit)).await, whole[..at], "{carrier:?}");
        }
        assert_eq!(all(frames().after(Cursor::START).follow(false)).await, whole);
    }
    write(&run, COMPLETED).await;
    let end = run.info().await.unwrap().cursor.unwrap();
    for carrier in CARRIERS {
        assert_eq!(all(run.frames(Dialect::AgUi).after(end).transport(carrier)).await, []);
    }
}

#[tokio::test]
async fn a_snapshot_and_merged_pieces_are_read_like_anything_else() {
    let stage = Stage::start().await;
    let run = stage.client().run("r1");
    write(&run, &(delta("a").repeat(20) + COMPLETED)).await;
    for carrier in CARRIERS {
        let attached = all(run.frames(Dialect::AgUi).attach(true).transport(carrier)).await;
        assert!(attached[0].1.contains("RUN_STARTED"), "{attached:?}");
        assert!(attached.iter().any(|(_, frame)| frame.contains("MESSAGES_SNAPSHOT")), "{attached:?}");
        assert!(attached.last().unwrap().1.contains("RUN_FINISHED"), "{attached:?}");
        let pieces: Vec<_> =
            patient(run.text().compact(true).transport(carrier).try_collect()).await.unwrap();
        assert_eq!((pieces.concat(), pieces.len() < 20), ("a".repeat(20), true));
        let raw = all(run.frames(Dialect::Runwire).raw(true).transport(carrier)).await;
        assert_eq!(raw[0].1, delta("a").trim_end());
    }
}

#[tokio::test]
async fn a_reader_sees_the_extension_frames_that_it_asks_for() {
    let stage = Stage::start().await;
    let run = stage.client().run("r1");
    let thought = r#"{"type":"thinking.started","message_id":"t"}"#.to_owned() + "\n";
    let thought = thought + r#"{"type":"thinking.delta","message_id":"t","content":"Hm."}"# + "\n";
    let asked = r#"{"type":"interaction.requested","interaction_id":"q","kind":"form"}"#.to_owned() + "\n";
    write(&run, &(thought + &delta("a") + &asked + COMPLETED)).await;
    for carrier in CARRIERS {
        let read = |slots| all(run.frames(Dialect::Agio).slots(slots).transport(carrier));
        let shows = |told: &[Told], what: &str| told.iter().any(|(_, frame)| frame.contains(what));
        let (every, asks, none) = (read(Slots::All).await, read(Slots::Asks).await, read(Slots::None).await);
        assert!(shows(&every, "thinking.delta") && shows(&every, "interaction.requested"));
        assert!(!shows(&asks, "thinking.delta") && shows(&asks, "interaction.requested"), "{asks:?}");
        assert!(!shows(&none, "\"debug\"") && shows(&none, "run_completed"), "{none:?}");
        let after = asks[0].0.unwrap();
        let rest = run.frames(Dialect::Agio).slots(Slots::Asks).transport(carrier).after(after);
        assert_eq!(all(rest).await, asks[1..]);
    }
}

#[tokio::test]
async fn a_thread_is_read_run_after_run() {
    let stage = Stage::start().await;
    let client = stage.client();
    let thread = NewThread { thread_id: Some("t1".into()), ..NewThread::default() };
    assert_eq!(client.create_thread(&thread).await.unwrap().thread_id, "t1");
    let mut events = client.thread("t1").events();
    for run_id in ["one", "two"] {
        let bytes = stream::iter([Ok::<_, std::io::Error>(Bytes::from(delta(run_id) + COMPLETED))]);
        let upload = client.run(run_id).upload().dialect(Dialect::Runwire).thread("t1");
        patient(upload.send(bytes)).await.unwrap();
        loop {
            let received = patient(events.next()).await.unwrap().unwrap();
            assert_eq!((&*received.thread_id, &*received.run_id), ("t1", run_id));
            if let Body::RunCompleted(_) = received.body {
                break;
            }
        }
    }
    let messages = client.thread("t1").messages(None, None).await.unwrap().messages;
    assert_eq!(messages.iter().map(|message| &message["mainContent"]).collect::<Vec<_>>(), ["one", "two"]);
    client.thread("t1").delete(false).await.unwrap();
    assert_eq!(client.thread("t1").info().await.unwrap_err().code(), Some("thread_deleted"));
}

#[tokio::test]
async fn an_event_that_is_not_known_is_handed_on() {
    let stage = Stage::start().await;
    let run = stage.client().run("r1");
    write(&run, &format!("{{\"type\":\"mood.changed\",\"to\":\"😀\"}}\n{COMPLETED}")).await;
    let events: Vec<_> = patient(run.events().try_collect()).await.unwrap();
    let mood = events.iter().find(|received| received.type_name() == "mood.changed").unwrap();
    let Body::Foreign(foreign) = &mood.body else { panic!("{mood:?}") };
    assert!(foreign.frame.text().contains("😀"));
}

#[tokio::test]
async fn a_refusal_is_typed_and_ends_the_stream() {
    let stage = Stage::start().await;
    let client = stage.client();
    write(&client.run("r1"), &delta("one")).await;
    for carrier in CARRIERS {
        let refused = async |frames: Frames| {
            let mut frames = frames.transport(carrier);
            let error = patient(frames.next()).await.unwrap().unwrap_err();
            assert!(patient(frames.next()).await.is_none());
            let Error::Refused(problem) = error else { panic!("{error}") };
            assert!(problem.hint().is_some() && problem.detail().is_some(), "{problem}");
            (problem.status(), problem.code().unwrap().to_owned())
        };
        let refusal = |status, code: &str| (status, code.to_owned());
        assert_eq!(refused(client.run("none").frames(Dialect::Loom)).await, refusal(404, "run_unknown"));
        let beyond = client.run("r1").frames(Dialect::Loom).after(Cursor::after(99));
        assert_eq!(refused(beyond).await, refusal(400, "cursor_beyond_end"));
        let attach = client.run("r1").frames(Dialect::Loom).attach(true);
        assert_eq!(refused(attach).await, refusal(400, "attach_not_offered"));
    }
    let info = client.run("r1").info().await.unwrap();
    assert_eq!(info.status, RunStatus::Running);
    client.thread(&info.thread_id).delete(true).await.unwrap();
    let error = patient(client.run("r1").events().next()).await.unwrap().unwrap_err();
    assert_eq!((error.problem().unwrap().status() >= 404, error.is_temporary()), (true, false), "{error}");
}
