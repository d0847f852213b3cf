//! Write requests: framings, open and broken bodies, leases.

use std::time::Duration;

use runwire_log::sqlite::SqliteOptions;

use crate::harness::{COMPLETED, Served, delta, within_timeout};

const LOOM: &str = "{\"type\":\"message_chunk\",\"content\":\"Hi\",\"id\":\"think\"}\n";

#[tokio::test]
async fn every_framing_is_read_by_its_content_type() {
    let served = Served::start().await;
    let frame = r#"{"type":"custom","value":1}"#;
    let bodies = [
        ("application/x-ndjson", format!("{frame}\n{frame}\n")),
        ("application/jsonl", format!("{frame}\n{frame}")),
        ("text/event-stream", format!("data: {frame}\n\nevent: x\ndata: {frame}\n\n")),
        ("application/json", format!("[{frame},\n{frame}]")),
    ];
    for (at, (media, body)) in bodies.iter().enumerate() {
        let path = format!("/v1/runs/r{at}/events");
        served.post_with(&path, &[("content-type", media)], body).await.written(2, 0);
        // Without a content type, and with the one that `curl -d` sends, the first bytes tell.
        served.post(&path, body).await.written(2, 0);
        let form = [("content-type", "application/x-www-form-urlencoded")];
        served.post_with(&path, &form, body).await.written(2, 0);
    }
    let text = served.post_with("/v1/runs/r/events", &[("content-type", "text/plain")], frame).await;
    assert!(text.problem(415, "unsupported_media_type")["expected"].is_array());
}

#[tokio::test]
async fn frames_are_visible_while_the_body_is_open() {
    let served = Served::start().await;
    let mut body = served.open("/v1/runs/r/events", &[]).await;
    for count in 1..=3 {
        body.chunk(&delta("x")).await;
        served.until_records("r", count).await;
    }
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "running");
    body.end().await;
    body.answer().await.unwrap().written(3, 0);
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "running", "the end of a body ends nothing");
}

#[tokio::test]
async fn end_closes_the_run_at_the_clean_end_of_the_body() {
    let served = Served::start().await;
    served.post("/v1/runs/whole/events?end=true", &delta("a")).await.written(1, 0);
    assert_eq!(served.get("/v1/runs/whole").await.json()["status"], "completed");

    let mut body = served.open("/v1/runs/pieces/events?end=true", &[]).await;
    body.chunk(&delta("a")).await;
    served.until_records("pieces", 1).await;
    body.end().await;
    body.answer().await.unwrap().written(1, 0);
    assert_eq!(served.get("/v1/runs/pieces").await.json()["status"], "completed");
}

#[tokio::test]
async fn a_body_cut_in_the_middle_of_a_frame_keeps_the_whole_ones_and_ends_nothing() {
    let served = Served::start().await;
    let mut body = served.open("/v1/runs/r/events?end=true", &[]).await;
    body.chunk(&(delta("a") + &delta("b") + "{\"type\":\"text.delta\",\"mess")).await;
    served.until_records("r", 2).await;
    drop(body);
    // A cut is noticed when the connection is: writing on shows the run as it was left.
    served.post("/v1/runs/r/events", &delta("c")).await.written(1, 0);
    let message = served.get("/v1/runs/r/message").await.json();
    assert_eq!((&message["mainContent"], &message["status"]), (&"abc".into(), &"running".into()));
}

#[tokio::test]
async fn a_client_that_disconnects_early_has_written_all_the_same() {
    let served = Served::start().await;
    let mut cut = served.open("/v1/runs/cut/events?end=true", &[]).await;
    cut.chunk(&(delta("a").repeat(3000) + "{\"type\":\"te")).await;
    drop(cut);
    let mut whole = served.open("/v1/runs/whole/events?end=true", &[]).await;
    whole.chunk(&delta("a").repeat(3000)).await;
    whole.end().await;
    drop(whole);
    served.until_records("cut", 3000).await;
    served.until_records("whole", 3000).await;
    within_timeout(async { while served.get("/v1/runs/whole").await.json()["status"] != "completed" {} })
        .await;
    assert_eq!(served.get("/v1/runs/cut").await.json()["status"], "running");

    let mut short = served.raw().await;
    let body = delta("a") + &delta("b");
    let length = body.len() + 1;
    let head = format!(
        "POST /v1/runs/short/events?end=true HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n"
    );
    short.send((head + &body).as_bytes()).await.unwrap();
    served.until_records("short", 2).await;
    drop(short);
    served.post("/v1/runs/short/events", &delta("c")).await.written(1, 0);
}

#[tokio::test]
async fn a_bad_frame_stops_there_and_what_came_before_it_stays() {
    let served = Served::start().await;
    let cases = [
        ("{\"type\":\n", 400, "not_json"),
        ("[1]\n", 400, "not_an_object"),
        ("{\"type\":\"text.delta\",\"message_id\":\"m1\"}\n", 422, "bad_field"),
        ("{\"type\":\"custom\",\"value\":\"\\ud83d\"}\n", 400, "lone_surrogate"),
    ];
    for (at, (bad, status, code)) in cases.into_iter().enumerate() {
        let path = format!("/v1/runs/r{at}");
        let body = delta("a") + "\n" + bad + &delta("never");
        let headers = [("content-type", "application/x-ndjson")];
        let answer = served.post_with(&format!("{path}/events?dialect=runwire"), &headers, &body).await;
        let problem = answer.problem(status, code);
        assert_eq!(
            (&problem["line"], &problem["accepted"], &problem["last_seq"]),
            (&3.into(), &1.into(), &1.into())
        );
        assert_eq!(served.get(&format!("{path}/message")).await.json()["mainContent"], "a");
    }
    let deep = format!("{{\"type\":\"custom\",\"value\":{}1{}}}\n", "[".repeat(200), "]".repeat(200));
    served.post("/v1/runs/deep/events", &(delta("a") + &deep)).await.problem(422, "too_deep");
}

#[tokio::test]
async fn a_frame_after_the_end_is_refused() {
    let served = Served::start().await;
    let body = delta("a") + COMPLETED + &delta("late");
    let problem = served.post("/v1/runs/r/events", &body).await.problem(409, "run_closed");
    assert_eq!((&problem["line"], &problem["accepted"]), (&3.into(), &2.into()));
    served.post("/v1/runs/r/events", &delta("later")).await.problem(409, "run_closed");
}

#[tokio::test]
async fn one_run_at_a_time_in_a_thread_unless_it_is_parallel() {
    let served = Served::start().await;
    served.post("/v1/runs/r1/events?thread=t", &delta("a")).await.written(1, 0);
    let busy = served.post("/v1/runs/r2/events?thread=t", &delta("a")).await.problem(409, "thread_busy");
    assert_eq!((&busy["run_id"], &busy["thread_id"]), (&"r1".into(), &"t".into()));
    served.post("/v1/runs/r1/events?end=true", "").await.written(0, 0);
    served.post("/v1/runs/r2/events?thread=t", &delta("a")).await.written(1, 0);

    assert_eq!(served.post("/v1/threads", r#"{"thread_id":"p","parallel":true}"#).await.status, 201);
    served.post("/v1/runs/p1/events?thread=p", &delta("a")).await.written(1, 0);
    served.post("/v1/runs/p2/events?thread=p", &delta("a")).await.written(1, 0);
}

#[tokio::test]
async fn a_stream_of_several_runs_goes_to_a_thread() {
    let served = Served::start().await;
    let run = |id: &str| {
        let envelope = format!("\"thread_id\":\"elsewhere\",\"run_id\":\"{id}\"");
        format!("{{\"type\":\"run.started\",{envelope}}}\n{{\"type\":\"run.completed\",{envelope}}}\n")
    };
    let counts = served.post("/v1/threads/t/events", &(run("a") + &run("b"))).await.written(4, 0);
    assert_eq!(counts["last_seq"], 4);
    let messages = served.get("/v1/threads/t/messages").await.json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
    let thread = served.get("/v1/threads/t").await.json();
    assert_eq!((&thread["cursor"], &thread["runs"]), (&"4".into(), &2.into()));
}

#[tokio::test]
async fn an_ambiguous_dialect_waits_for_a_frame_that_identifies_it() {
    let served = Served::start().await;
    let vague = "{\"type\":\"hello\"}\n";
    let mut body = served.open("/v1/runs/r/events", &[]).await;
    body.chunk(vague).await;
    body.chunk(vague).await;
    body.chunk(LOOM).await;
    served.until_records("r", 3).await;
    body.end().await;
    body.answer().await.unwrap().written(3, 0);

    let whole = served.post("/v1/runs/q/events", vague).await.problem(422, "dialect_ambiguous");
    assert_eq!((&whole["line"], &whole["accepted"]), (&1.into(), &0.into()));
    let mut open = served.open("/v1/runs/q/events", &[]).await;
    open.chunk(&vague.repeat(20)).await;
    open.answer().await.unwrap().problem(422, "dialect_ambiguous");
    served.post("/v1/runs/q/events?dialect=loom", vague).await.written(1, 0);
}

#[tokio::test]
async fn a_producer_keeps_its_dialect() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events", LOOM).await.written(1, 0);
    let problem = served.post("/v1/runs/r/events?dialect=agio", LOOM).await.problem(409, "dialect_pinned");
    assert_eq!(problem["dialect"], "loom");
}

#[tokio::test]
async fn an_empty_body_writes_nothing_and_says_how_far_the_run_is() {
    let served = Served::start().await;
    assert_eq!(served.post("/v1/runs/r/events", "").await.written(0, 0)["last_seq"], 0);
    served.get("/v1/runs/r").await.problem(404, "run_unknown");
    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    assert_eq!(served.post("/v1/runs/r/events", "\n\n").await.written(0, 0)["last_seq"], 1);
}

#[tokio::test]
async fn a_silent_body_is_given_up_only_if_no_run_is_open() {
    let served = Served::with(|config| config.body_idle = Duration::from_millis(100)).await;
    let mut waiting = served.open("/v1/runs/r/events", &[]).await;
    waiting.chunk(&delta("a")).await;
    let mut idle = served.open("/v1/runs/nothing/events", &[]).await;
    idle.answer().await.unwrap().problem(408, "body_idle");
    // The other one had as much time, and its run is open.
    waiting.chunk(COMPLETED).await;
    let answer = waiting.answer().await.unwrap().problem(408, "body_idle");
    assert_eq!(answer["accepted"], 2);
    assert_eq!(served.get("/v1/runs/r").await.json()["status"], "completed");
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it() {
    let served = Served::start().await;
    let mut raw = served.raw().await;
    let frame = delta("a");
    let length = frame.len();
    let head = format!(
        "POST /v1/runs/r/events HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
    );
    raw.send(head.as_bytes()).await.unwrap();
    assert_eq!(raw.answer().await.unwrap().status, 100);
    raw.send(frame.as_bytes()).await.unwrap();
    raw.answer().await.unwrap().written(1, 0);
}

#[tokio::test]
async fn signs_of_life_keep_a_run_and_silence_ends_it() {
    let options = SqliteOptions { lease: Duration::from_secs(1), ..SqliteOptions::default() };
    let served = Served::with_store(options, |config| config.heartbeat = Duration::from_millis(100)).await;
    let mut lines = served.open("/v1/runs/lines/events", &[("content-type", "application/x-ndjson")]).await;
    let mut comments =
        served.open("/v1/runs/comments/events", &[("content-type", "text/event-stream")]).await;
    let silent = served.open("/v1/runs/silent/events", &[]).await;
    lines.chunk(&delta("a")).await;
    comments.chunk(&format!("data: {}\n", delta("a"))).await;
    served.post("/v1/runs/silent/events", &delta("a")).await.written(1, 0);
    let status = async |run: &str| served.get(&format!("/v1/runs/{run}")).await.json();
    within_timeout(async {
        while status("silent").await["status"] == "running" {
            lines.chunk("\n").await;
            comments.chunk(": still here\n\n").await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    // An open body that says nothing is no sign of life.
    let lost = status("silent").await;
    assert_eq!((&lost["status"], &lost["error"]["code"]), (&"failed".into(), &"producer_lost".into()));
    drop(silent);
    for (run, mut body) in [("lines", lines), ("comments", comments)] {
        assert_eq!(status(run).await["status"], "running");
        body.end().await;
        body.answer().await.unwrap().written(1, 0);
    }
}
