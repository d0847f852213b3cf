//! The option `slots`: which extension frames a reader gets, and their cursors.

use runwire_model::dialect::Slots;
use serde_json::{Value, json};

use crate::harness::{COMPLETED, Served, delta};
use crate::reading::{Event, JSON, NDJSON, SSE, Socket};

const ASKED: &str = r#"{"type":"interaction.requested","interaction_id":"q","kind":"form","title":"Where?"}"#;
const THOUGHT: &str = r#"{"type":"thinking.delta","message_id":"t","content":"Hm."}"#;

/// Writes a run that thinks, asks, is answered and ends.
async fn asking() -> Served {
    let served = Served::start().await;
    ask(&served).await;
    answer(&served).await;
    served
}

async fn ask(served: &Served) {
    let thought = r#"{"type":"thinking.started","message_id":"t"}"#;
    let body = format!("{thought}\n{THOUGHT}\n{}{ASKED}\n", delta("a"));
    served.post("/v1/runs/r/events?thread=t&dialect=runwire", &body).await.written(4, 0);
}

async fn answer(served: &Served) {
    let answered = served.post("/v1/runs/r/interactions/q", r#"{"decision":"submitted","values":{}}"#).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    served.post("/v1/runs/r/events?dialect=runwire", &(delta("b") + COMPLETED)).await.written(2, 0);
}

/// Lists the types of the events that extension frames of agio carry.
fn slots(frames: &[Value]) -> Vec<String> {
    let slots = frames.iter().map(|frame| &frame["data"]["runwire"]["type"]).filter_map(Value::as_str);
    slots.map(ToOwned::to_owned).collect()
}

const ASKS: [&str; 4] = ["interaction.requested", "run.suspended", "interaction.resolved", "run.resumed"];

#[tokio::test(flavor = "multi_thread")]
async fn slots_choose_the_extension_frames_on_every_way_to_read() {
    let served = asking().await;
    for (choice, expected) in [("asks", &ASKS[..]), ("none", &[])] {
        for path in ["/v1/runs/r/events", "/v1/threads/t/events"] {
            let path = format!("{path}?dialect=agio&follow=false&slots={choice}");
            let sse = served.events(&path, &[SSE]).await;
            let sse: Vec<Value> = sse.iter().map(Event::json).collect();
            assert_eq!(slots(&sse), expected);
            let lines = served.get_with(&path, &[NDJSON]).await.text;
            let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines, sse);
            let page = served.get_with(&path, &[JSON]).await.json();
            let page: Vec<Value> =
                page["frames"].as_array().unwrap().iter().map(|item| item["frame"].clone()).collect();
            assert_eq!(page, sse);
            let mut socket = Socket::connect(&format!("ws://{}/v1/ws", served.address)).await;
            socket.subscribe("s", json!({"run": "r", "dialect": "agio", "slots": choice})).await;
            let frames = socket.frames_until("end").await;
            let frames: Vec<Value> = frames.iter().map(|message| message["frame"].clone()).collect();
            assert_eq!(frames, sse);
        }
    }
    let all = served.events("/v1/runs/r/events?dialect=agio", &[SSE]).await;
    let all: Vec<Value> = all.iter().map(Event::json).collect();
    assert!(slots(&all).contains(&"thinking.delta".to_owned()));
    let problem = served.get("/v1/runs/r/events?slots=few").await.problem(400, "bad_query");
    assert_eq!(problem["parameter"], "slots");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_attaches_gets_the_slots_it_asked_for() {
    let served = Served::start().await;
    ask(&served).await;
    for (choice, expected) in [("asks", &["interaction.requested", "run.suspended"][..]), ("none", &[])] {
        let path =
            format!("/v1/runs/r/events?dialect=streaming-engine&attach=snapshot&follow=false&slots={choice}");
        let events = served.events(&path, &[SSE]).await;
        let frames: Vec<Value> = events.iter().map(Event::json).collect();
        let shown = frames.iter().filter(|frame| frame["type"] == "runwire");
        let shown: Vec<&str> = shown.map(|frame| frame["data"]["type"].as_str().unwrap()).collect();
        assert_eq!(shown, expected, "{frames:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_valid_for_the_options_that_gave_it() {
    let served = asking().await;
    let options = ["", "&slots=asks", "&slots=none", "&fidelity=full", "&fidelity=full&slots=asks"];
    for dialect in ["agio", "loom", "streaming-engine", "ag-ui", "social-app", "easyflow-chat"] {
        let path = |options: &str| format!("/v1/runs/r/events?dialect={dialect}{options}");
        for given in options {
            let all = served.events(&path(given), &[SSE]).await;
            for (at, event) in all.iter().enumerate() {
                let id = event.id.as_deref().unwrap();
                let (seq, frame) = id.split_once('-').unwrap();
                let number: u64 = frame.parse().unwrap();
                assert_eq!(number < 1 << 20, given.is_empty(), "{dialect}{given}: {id}");
                if at + 1 < all.len() {
                    let after = format!("{given}&after={id}");
                    assert_eq!(served.events(&path(&after), &[SSE]).await, all[at + 1..], "{dialect}{after}");
                }
                if at == 1 {
                    for other in options.iter().filter(|other| **other != given) {
                        let wrong = path(&format!("{other}&after={id}"));
                        served.get_with(&wrong, &[SSE]).await.problem(400, "bad_cursor");
                        let last = [SSE, ("last-event-id", id)];
                        served.get_with(&path(other), &last).await.problem(400, "bad_cursor");
                        // The place after a whole record is the same with any options.
                        let whole = served.get_with(&path(&format!("{other}&after={seq}")), &[SSE]).await;
                        assert_eq!(whole.status, 200);
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_change_no_frame_change_no_cursor() {
    let served = asking().await;
    for dialect in ["runwire", "text"] {
        let path = format!("/v1/runs/r/events?dialect={dialect}");
        let plain = served.events(&path, &[SSE]).await;
        assert_eq!(served.events(&format!("{path}&slots=none&fidelity=full"), &[SSE]).await, plain);
    }
    let raw = served.events("/v1/runs/r/events?raw=true", &[SSE]).await;
    assert_eq!(served.events("/v1/runs/r/events?raw=true&slots=none", &[SSE]).await, raw);
}

#[tokio::test(flavor = "multi_thread")]
async fn agios_facade_shows_only_interaction_slots_unless_configured() {
    let served = asking().await;
    let events = |page: Value| page["events"].as_array().unwrap().clone();
    assert_eq!(slots(&events(served.get("/api/runs/r/events").await.json())), ASKS);
    let stream = served.events("/api/runs/r/events", &[SSE]).await;
    assert_eq!(stream, served.events("/v1/runs/r/events?dialect=agio&slots=asks", &[SSE]).await);

    let served = served.restarted_with(|config| config.facades.agio = Slots::All).await;
    let all = slots(&events(served.get("/api/runs/r/events").await.json()));
    assert!(all.contains(&"thinking.delta".to_owned()), "{all:?}");
    let served = served.restarted_with(|config| config.facades.agio = Slots::None).await;
    assert!(slots(&events(served.get("/api/runs/r/events").await.json())).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producers_own_debug_events_are_no_slots() {
    let served = Served::start().await;
    let debug = r#"{"type":"debug","run_id":"r","data":{"message":"cache miss"},"metadata":{}}"#;
    served.post("/v1/runs/r/events?dialect=agio", &format!("{debug}\n")).await.written(1, 0);
    let page = served.get("/api/runs/r/events").await.json();
    let messages: Vec<&Value> =
        page["events"].as_array().unwrap().iter().map(|event| &event["data"]["message"]).collect();
    assert!(messages.contains(&&json!("cache miss")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_offset_of_a_live_run_continues_it() {
    let served = Served::start().await;
    ask(&served).await;
    let page = async |offset: u64| served.get(&format!("/api/runs/r/events?offset={offset}")).await.json();
    let first = page(0).await;
    let count = first["events"].as_array().unwrap().len() as u64;
    assert!(count > 0);
    assert_eq!(first["next_offset"], count);
    let nothing = page(count).await;
    assert_eq!((&nothing["events"], &nothing["next_offset"]), (&json!([]), &json!(count)));
    let beyond = page(count + 1000).await;
    assert_eq!((&beyond["events"], &beyond["next_offset"]), (&json!([]), &json!(count)));
    answer(&served).await;
    let rest = page(count).await;
    assert_eq!(rest["events"].as_array().unwrap().last().unwrap()["type"], "run_completed");
    assert_eq!(rest["next_offset"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn social_apps_facade_shows_the_slots_it_is_configured_for() {
    let served = Served::with(|config| config.facades.social_app = Slots::None).await;
    ask(&served).await;
    let page = served.get("/api/v1/agent/runs/t/history").await.json();
    let customs = page["events"].as_array().unwrap().iter().filter(|event| event["type"] == "CUSTOM");
    assert_eq!(customs.count(), 0, "{page}");
    let mut stream = served.read("/api/v1/agent/runs/t/events", &[SSE]).await;
    let first = stream.event().await.unwrap();
    let id = first.id.clone().unwrap();
    // The reader without hyper goes by the same setting.
    let resumed = served.read("/api/v1/agent/runs/t/events", &[SSE, ("last-event-id", &id)]).await;
    assert_eq!(resumed.status, 200);
}
