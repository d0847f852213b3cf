//! Several sessions in one stream or thread, and how Loom's readers see them.

use std::time::Duration;

use http::Method;
use runwire_log::sqlite::SqliteOptions;
use serde_json::Value;

use crate::harness::{Served, within_timeout};

/// Two sessions beside each other, frame by frame.
const SIDE_BY_SIDE: [&str; 6] = [
    r#"{"session_id":"a","event_id":1,"type":"run_start","run_id":"a1","agent":"react"}"#,
    r#"{"session_id":"b","event_id":1,"type":"run_start","run_id":"b1"}"#,
    r#"{"session_id":"a","event_id":2,"type":"message_chunk","content":"A","id":"agent"}"#,
    r#"{"session_id":"b","event_id":2,"type":"message_chunk","content":"B","id":"agent"}"#,
    r#"{"session_id":"b","event_id":3,"reply":"B"}"#,
    r#"{"session_id":"a","event_id":3,"reply":"A"}"#,
];

/// Reads all frames as Loom.
async fn loom(served: &Served, path: &str) -> Vec<Value> {
    let path = format!("{path}?dialect=loom&follow=false");
    let headers = [("accept", "application/x-ndjson")];
    let answer =
        served.send(served.request(Method::GET, &path, &headers).body(bytes::Bytes::new()).unwrap()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn parsed(lines: &[&str]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_session(frames: &[Value], session: &str) -> Vec<Value> {
    frames.iter().filter(|frame| frame["session_id"] == session).cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_session_of_a_stream_goes_to_its_own_thread_once() {
    let served = Served::start().await;
    let answer =
        served.write_as("/v1/events", ("p", 1, 0), &SIDE_BY_SIDE[..4].join("\n")).await.written(4, 0);
    assert_eq!(answer["threads"], serde_json::json!(["a", "b"]));
    let known = served.get("/v1/producers/p").await.json();
    assert_eq!(known, serde_json::json!({"epoch": 1, "next": 4, "dialect": "loom"}));
    served.write_as("/v1/events", ("p", 1, 0), &SIDE_BY_SIDE.join("\n")).await.written(2, 4);
    let gap = served.write_as("/v1/events", ("p", 1, 9), SIDE_BY_SIDE[0]).await.problem(409, "producer_gap");
    assert_eq!(gap["expected"], 6);
    served.write_as("/v1/events", ("p", 0, 6), SIDE_BY_SIDE[0]).await.problem(403, "producer_fenced");
    for session in ["a", "b"] {
        let frames = loom(&served, &format!("/v1/threads/{session}/events")).await;
        assert_eq!(
            frames,
            of_session(&parsed(&SIDE_BY_SIDE), session),
            "nothing is ended, invented or counted anew"
        );
    }
    let threads = served.get("/v1/threads").await.json();
    assert_eq!(threads["threads"].as_array().unwrap().len(), 2);
    // Nobody has written as this one.
    let unknown = served.get("/v1/producers/q").await.json();
    assert_eq!(unknown, serde_json::json!({"epoch": 0, "next": 0}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_names_neither_session_nor_run_is_refused_with_its_line() {
    let served = Served::start().await;
    let nameless = r#"{"type":"message_chunk","content":"x","id":"agent"}"#;
    let body = [SIDE_BY_SIDE[0], nameless, SIDE_BY_SIDE[1]].join("\n");
    let problem = served.post("/v1/events", &body).await.problem(422, "no_session");
    assert_eq!((&problem["line"], &problem["accepted"]), (&2.into(), &1.into()));
    served.get("/v1/runs/b1").await.problem(404, "run_unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn dialects_whose_frames_name_no_session_need_a_run() {
    let served = Served::start().await;
    let frame = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    for path in ["/v1/events?dialect=ag-ui", "/v1/events?dialect=loom-export", "/v1/events"] {
        let problem = served.post(path, frame).await.problem(400, "needs_run");
        assert!(problem["expected"].as_array().unwrap().contains(&"loom".into()), "{problem}");
    }
    served.post("/v1/events?dialect=social-app", frame).await.written(1, 0);
    served.post("/v1/events?end=true", SIDE_BY_SIDE[0]).await.problem(400, "bad_query");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_in_one_thread_lie_side_by_side_if_it_is_parallel() {
    let served = Served::start().await;
    let body = SIDE_BY_SIDE.join("\n");
    let busy = served.post("/v1/threads/one/events", &body).await.problem(409, "thread_busy");
    assert!(busy["hint"].as_str().unwrap().contains("/v1/events"), "{busy}");
    assert_eq!(busy["line"], 2);
    served.post("/v1/threads/many/events?parallel=true", &body).await.written(6, 0);
    let frames = loom(&served, "/v1/threads/many/events").await;
    assert_eq!(frames.len(), 6);
    for session in ["a", "b"] {
        let mut told = of_session(&frames, session);
        let ids: Vec<u64> = told.iter().map(|frame| frame["event_id"].as_u64().unwrap()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
        let source = of_session(&parsed(&SIDE_BY_SIDE), session);
        for (frame, source) in told.iter_mut().zip(&source) {
            frame["event_id"] = source["event_id"].clone();
            // The ids of the first request are taken, and a run's id is ours.
            if frame["type"] == "run_start" {
                frame["run_id"] = source["run_id"].clone();
            }
        }
        assert_eq!(told, source);
    }
    // It can be said again, and not of a thread that is made for one run at a time.
    served.post("/v1/threads/many/events?parallel=true", "").await.written(0, 0);
    served.post("/v1/threads/one/events?parallel=true", "").await.problem(409, "thread_exists");
    // A run that says no session is told by its own id.
    served.post("/v1/runs/mine/events?thread=many", r#"{"type":"run.started"}"#).await.written(1, 0);
    let mine = loom(&served, "/v1/runs/mine/events").await;
    assert_eq!((&mine[0]["session_id"], &mine[0]["event_id"]), (&"mine".into(), &1.into()));
}

/// A frame of a session in the canonical dialect, where every frame names its run.
fn named(kind: &str, run: &str) -> String {
    format!(r#"{{"type":"{kind}","thread_id":"s","run_id":"{run}"}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_of_a_session_is_told_what_it_waits_for() {
    let served = Served::start().await;
    let body = [named("run.started", "a"), named("run.started", "b"), named("run.completed", "a")].join("\n");
    let busy = served.post("/v1/events", &body).await.problem(409, "thread_busy");
    assert_eq!((&busy["line"], &busy["accepted"]), (&2.into(), &1.into()));
    assert_eq!((&busy["thread_id"], &busy["run_id"]), (&"s".into(), &"a".into()));
    assert!(busy["hint"].as_str().unwrap().contains("?parallel=true"), "{busy}");
    assert_eq!(served.get("/v1/runs/a").await.json()["status"], "running", "nothing is cut off");
    served.get("/v1/runs/b").await.problem(404, "run_unknown");
    // Threads that the stream makes for it take both.
    let body = body.replace(r#""s""#, r#""many""#).replace(r#""a""#, r#""c""#).replace(r#""b""#, r#""d""#);
    served.post("/v1/events?parallel=true", &body).await.written(3, 0);
    for (run, status) in [("c", "completed"), ("d", "running")] {
        assert_eq!(served.get(&format!("/v1/runs/{run}")).await.json()["status"], status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_frame_of_a_stream_of_sessions_is_told_with_its_thread_and_run() {
    let served = Served::start().await;
    served.write_as("/v1/events", ("p", 1, 0), &SIDE_BY_SIDE.join("\n")).await.written(6, 0);
    let frames = [SIDE_BY_SIDE[1].replace("b1", "b2"), SIDE_BY_SIDE[2].into(), SIDE_BY_SIDE[4].into()];
    let closed =
        served.write_as("/v1/events", ("p", 1, 6), &frames.join("\n")).await.problem(409, "run_closed");
    assert_eq!((&closed["line"], &closed["accepted"]), (&2.into(), &1.into()));
    assert_eq!((&closed["thread_id"], &closed["run_id"]), (&"a".into(), &"a1".into()));
    // Without it, the stream goes on under the index that it did not use up.
    served.write_as("/v1/events", ("p", 1, 7), &frames[2]).await.written(1, 0);
    let delete = served.request(Method::DELETE, "/v1/threads/a", &[]);
    served.send(delete.body(bytes::Bytes::new()).unwrap()).await;
    let gone = served.write_as("/v1/events", ("p", 1, 8), &frames[1]).await.problem(410, "thread_deleted");
    assert_eq!((&gone["line"], &gone["thread_id"]), (&1.into(), &"a".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_takes_the_frames_of_one_session() {
    let served = Served::start().await;
    let problem =
        served.post("/v1/runs/r/events", &SIDE_BY_SIDE.join("\n")).await.problem(422, "other_session");
    assert_eq!((&problem["line"], &problem["accepted"]), (&2.into(), &1.into()));
    assert_eq!(problem["session"], "a");
    assert!(problem["hint"].as_str().unwrap().contains("/v1/events"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_id_grows_through_a_session_and_starts_at_1_in_each_run() {
    let served = Served::start().await;
    let run = |id: &str| {
        [
            format!(r#"{{"session_id":"s","type":"run_start","run_id":"{id}"}}"#),
            r#"{"session_id":"s","reply":"x"}"#.to_owned(),
        ]
        .join("\n")
    };
    served.post("/v1/threads/s/events", &[run("r1"), run("r2"), run("r3")].join("\n")).await.written(6, 0);
    let ids = async |path: &str| -> Vec<u64> {
        loom(&served, path).await.iter().map(|frame| frame["event_id"].as_u64().unwrap()).collect()
    };
    let step = 65536;
    let expected = [1, 2, 2 * step + 1, 2 * step + 2, 4 * step + 1, 4 * step + 2];
    assert_eq!(ids("/v1/threads/s/events").await, expected);
    assert_eq!(ids("/v1/runs/r3/events").await, [1, 2]);
    // A reader that comes back goes on with the same ones.
    let path = "/v1/threads/s/events?dialect=loom&after=5-0";
    let request = served.request(Method::GET, path, &[("accept", "application/json")]);
    let page = served.send(request.body(bytes::Bytes::new()).unwrap()).await.json();
    assert_eq!(page["frames"][0]["frame"]["event_id"], 4 * step + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_producers_session_is_what_readers_of_its_run_see() {
    let served = Served::start().await;
    let frames = [
        r#"{"session_id":"sess-001","type":"run_start","run_id":"ours","agent":"react"}"#,
        r#"{"session_id":"sess-001","type":"message_chunk","content":"x","id":"agent"}"#,
    ];
    served.post("/v1/runs/r/events", &frames.join("\n")).await.written(2, 0);
    served.post("/v1/runs/r/cancel", "").await;
    served.post("/v1/runs/r/events", r#"{"reply":"x","stop_reason":"cancelled"}"#).await.written(1, 0);
    let told = loom(&served, "/v1/runs/r/events").await;
    assert_eq!(told.len(), 4, "the server's word of the cancel is among them");
    assert!(told.iter().all(|frame| frame["session_id"] == "sess-001"), "{told:?}");
    let info = served.get("/v1/runs/r").await.json();
    assert_eq!((&info["thread_id"], &info["agent"]), (&"r".into(), &"react".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_of_life_keep_the_runs_of_all_sessions() {
    let options = SqliteOptions { lease: Duration::from_secs(1), ..SqliteOptions::default() };
    let served = Served::with_store(options, |config| config.heartbeat = Duration::from_millis(100)).await;
    let mut body = served.open("/v1/events", &[("content-type", "application/x-ndjson")]).await;
    body.chunk(&(SIDE_BY_SIDE[..2].join("\n") + "\n")).await;
    served.post("/v1/runs/silent/events", r#"{"type":"run.started"}"#).await.written(1, 0);
    let status = async |run: &str| served.get(&format!("/v1/runs/{run}")).await.json()["status"].clone();
    within_timeout(async {
        while status("silent").await == "running" {
            body.chunk("\n").await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    for run in ["a1", "b1"] {
        assert_eq!(status(run).await, "running");
    }
    body.end().await;
    body.answer().await.unwrap().written(2, 0);
}
