//! Export and import: a moved store gives every reader the same frames.

use std::time::Duration;

use runwire_log::sqlite::SqliteOptions;
use runwire_model::dialect::Dialect;
use serde_json::{Value, json};

use crate::harness::{Answer, COMPLETED, Served, delta};
use crate::vectors::{self, Case};

/// Writes a case to a thread of its own, as server-sent events, which carry names.
async fn write(served: &Served, case: &Case, number: usize) {
    let mut body = String::new();
    for (name, data) in &case.frames {
        if let Some(name) = name {
            body.push_str(&format!("event: {name}\n"));
        }
        for line in String::from_utf8_lossy(data).lines() {
            body.push_str(&format!("data: {line}\n"));
        }
        body.push('\n');
    }
    let path = format!("/v1/threads/{}/events?dialect={}", case.label, case.dialect);
    let path = if number.is_multiple_of(2) { format!("{path}&end=true") } else { path };
    let answer = served.post_with(&path, &[("content-type", "text/event-stream")], &body).await;
    assert_eq!(answer.status, 200, "{}: {}", case.label, answer.text);
}

async fn lines(served: &Served, thread: &str) -> String {
    let answer = served.get(&format!("/v1/threads/{thread}/records")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-type"]),
        (200, &"application/x-ndjson".parse().unwrap())
    );
    assert!(answer.text.lines().last().unwrap().starts_with(r#"{"type":"end","#), "{}", answer.text);
    answer.text
}

async fn import(served: &Served, thread: &str, lines: &str) -> Answer {
    let path = format!("/v1/threads/{thread}/records");
    served.post_with(&path, &[("content-type", "application/x-ndjson")], lines).await
}

#[track_caller]
fn taken(answer: &Answer, imported: u64, skipped: u64) {
    let found = answer.json();
    assert_eq!((&found["imported"], &found["skipped"]), (&imported.into(), &skipped.into()), "{found}");
    assert_eq!((answer.status.as_u16(), &found["complete"]), (200, &true.into()), "{found}");
}

/// The runs of a thread, the oldest first.
async fn runs(served: &Served, thread: &str) -> Vec<String> {
    let page = served.get(&format!("/v1/runs?thread={thread}&limit=200")).await.json();
    let runs = page["runs"].as_array().unwrap().iter().rev();
    runs.map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

/// Everything that can be asked of a run.
async fn views(served: &Served, run: &str) -> Vec<(String, String)> {
    let mut paths = vec![format!("/v1/runs/{run}"), format!("/v1/runs/{run}/message")];
    for dialect in Dialect::ALL {
        for more in ["", "&fidelity=full", "&raw=true", "&compact=true"] {
            paths.push(format!("/v1/runs/{run}/events?dialect={dialect}&follow=false{more}"));
        }
    }
    let mut views = Vec::new();
    for path in paths {
        let request =
            served.request(http::Method::GET, &path, &[("accept", "text/event-stream, application/json")]);
        let answer = served.send(request.body(bytes::Bytes::new()).unwrap()).await;
        // What a check found of frames does not move with them.
        let text = match serde_json::from_str::<Value>(&answer.text) {
            Ok(Value::Object(mut run)) => {
                run.remove("warnings");
                Value::Object(run).to_string()
            }
            _ => answer.text,
        };
        views.push((path, format!("{} {text}", answer.status)));
    }
    views
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_vector_is_read_the_same_in_every_dialect_after_it_moved() {
    let (here, there) = (Served::start().await, Served::start().await);
    for (number, case) in vectors::cases().iter().enumerate() {
        write(&here, case, number).await;
        let moved = lines(&here, &case.label).await;
        let records = moved.lines().filter(|line| line.starts_with(r#"{"type":"record","#)).count() as u64;
        taken(&import(&there, &case.label, &moved).await, records, 0);
        assert_eq!(lines(&there, &case.label).await, moved, "{}", case.label);
        taken(&import(&there, &case.label, &moved).await, 0, records);
        for run in runs(&here, &case.label).await {
            for (one, another) in views(&here, &run).await.into_iter().zip(views(&there, &run).await) {
                assert_eq!(one, another);
            }
        }
    }
}

#[tokio::test]
async fn cancelled_lost_suspended_and_parallel_runs_move_and_go_on() {
    let options = SqliteOptions { lease: Duration::from_millis(200), ..SqliteOptions::default() };
    let here = Served::with_store(options, |_| {}).await;
    here.post("/v1/runs/lost/events?thread=t", &delta("x")).await.written(1, 0);
    loop {
        if here.get("/v1/runs/lost").await.json()["status"] == "failed" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let here = here.restarted().await;
    here.post("/v1/runs", r#"{"run_id":"pending","thread_id":"t","agent":"a","input":{"n":1.50}}"#).await;
    here.post("/v1/runs/pending/cancel", r#"{"reason":"no"}"#).await;
    let asked = "{\"type\":\"interaction.requested\",\"interaction_id\":\"i\",\"kind\":\"approval\"}\n";
    here.post("/v1/runs/asks/events?thread=t", &(delta("a") + asked)).await.written(2, 0);
    here.post("/v1/threads", r#"{"thread_id":"p","parallel":true}"#).await;
    for text in ["a", "b"] {
        for run in ["p1", "p2"] {
            here.post(&format!("/v1/runs/{run}/events?thread=p"), &delta(text)).await.written(1, 0);
        }
    }
    here.write_as("/v1/runs/p1/events", ("worker", 2, 0), &delta("c")).await.written(1, 0);
    here.post("/v1/runs/answered/events?thread=a", asked).await.written(1, 0);
    let answer =
        here.post("/v1/runs/answered/interactions/i", r#"{"decision":"approved","reason":"yes"}"#).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let there = Served::start().await;
    for thread in ["t", "p", "a"] {
        let moved = lines(&here, thread).await;
        assert_eq!(import(&there, thread, &moved).await.status, 200);
        for run in runs(&here, thread).await {
            assert_eq!(views(&here, &run).await, views(&there, &run).await);
        }
    }
    // A retry is known, an older epoch refused, and the run goes on.
    there.write_as("/v1/runs/p1/events", ("worker", 2, 0), &delta("c")).await.written(0, 1);
    there.write_as("/v1/runs/p1/events", ("worker", 1, 1), &delta("d")).await.problem(403, "producer_fenced");
    there.write_as("/v1/runs/p1/events", ("worker", 2, 1), COMPLETED).await.written(1, 0);
    assert_eq!(there.get("/v1/runs/asks").await.json()["status"], "suspended");
    let inbox = there.get("/v1/interactions").await.json();
    assert_eq!(inbox["interactions"][0]["run_id"], "asks", "{inbox}");
    let won = there.post("/v1/runs/answered/interactions/i", r#"{"decision":"rejected"}"#).await;
    assert_eq!(won.status, 409, "{won:?}");
    assert_eq!(there.post("/v1/runs/asks/cancel", "{}").await.json()["status"], "cancelled");
    // The same request again is the same run.
    let same =
        there.post("/v1/runs", r#"{"run_id":"pending","thread_id":"t","agent":"a","input":{"n":1.5}}"#).await;
    assert_eq!((same.status.as_u16(), &same.json()["status"]), (200, &"cancelled".into()));
}

#[tokio::test]
async fn a_run_moves_alone_and_an_export_goes_on_after_a_record() {
    let (here, there) = (Served::start().await, Served::start().await);
    for run in ["r1", "r2", "r3"] {
        here.post(&format!("/v1/runs/{run}/events?thread=t"), &(delta(run) + COMPLETED)).await.written(2, 0);
    }
    let alone = here.get("/v1/threads/t/records?run=r2").await.text;
    taken(&import(&there, "t", &alone).await, 2, 0);
    assert_eq!(views(&here, "r2").await, views(&there, "r2").await);
    assert_eq!(there.get("/v1/runs/r1").await.status, 404);
    there.get("/v1/threads/t/events?after=0").await.problem(410, "cursor_trimmed");
    let all = lines(&here, "t").await;
    let rest = here.get("/v1/threads/t/records?after=3").await.text;
    assert!(all.ends_with(&rest) && rest.lines().next().unwrap().contains(r#""seq":4"#));
    // The whole is another thread than its part.
    import(&there, "t", &all).await.problem(409, "import_conflict");
    here.get("/v1/threads/t/records?after=99").await.problem(400, "cursor_beyond_end");
    here.get("/v1/threads/t/records?run=none").await.problem(404, "run_unknown");
    here.get("/v1/threads/none/records").await.problem(404, "thread_unknown");
}

#[tokio::test]
async fn a_line_that_does_not_fit_is_named_and_what_came_before_stays() {
    let (here, there) = (Served::start().await, Served::start().await);
    here.post("/v1/runs/r/events?thread=t", &(delta("a") + &delta("b") + COMPLETED)).await.written(3, 0);
    let moved = lines(&here, "t").await;
    let all: Vec<&str> = moved.lines().collect();
    assert_eq!(all.len(), 7, "{moved}");
    let without = |at: usize| [&all[..at], &all[at + 1..]].concat().join("\n");
    let problem = import(&there, "t", &without(3)).await.problem(409, "import_gap");
    assert_eq!(
        (&problem["line"], &problem["expected"], &problem["imported"]),
        (&4.into(), &2.into(), &1.into())
    );
    let unfit = moved.replace("text.started", "text.finished");
    assert_eq!(import(&there, "t", &unfit).await.problem(409, "import_conflict")["line"], 3);
    let cut = import(&there, "t", &all[..4].join("\n")).await.json();
    assert_eq!(cut, json!({"imported": 1, "skipped": 1, "last_seq": 2, "complete": false}));
    let broken = [all[0], all[1], all[2], "{\"type\":"].join("\n");
    assert_eq!(import(&there, "t", &broken).await.problem(422, "bad_record")["line"], 4);
    taken(&import(&there, "t", &moved).await, 1, 2);
    import(&there, "u", &moved).await.problem(422, "bad_record");
    import(&there, "u", all[2]).await.problem(404, "thread_unknown");
    let bad_run = moved.replace(r#""run_id":"r","created_at""#, r#""run_id":"\n","created_at""#);
    import(&there, "v", &bad_run.replace(r#""thread_id":"t""#, r#""thread_id":"v""#))
        .await
        .problem(400, "bad_id");
    let path = "/v1/threads/t/records";
    there
        .post_with(path, &[("content-type", "text/event-stream")], "")
        .await
        .problem(415, "unsupported_media_type");
    there.post(&format!("{path}?x=1"), "").await.problem(400, "bad_query");
}

#[tokio::test]
async fn numbers_beyond_all_numbers_are_refused_and_the_store_lives() {
    let (here, there) = (Served::start().await, Served::start().await);
    here.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    let moved = lines(&here, "t").await;
    let values: Vec<Value> = moved.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let huge = json!(u64::MAX);
    for (at, value) in values.iter().enumerate() {
        for (number, pointer) in pointers(value, "").into_iter().enumerate() {
            let mut changed = values.clone();
            *changed[at].pointer_mut(&pointer).unwrap() = huge.clone();
            let lines: Vec<_> = changed.iter().map(Value::to_string).collect();
            // A thread and a run of its own for each try.
            let (thread, run) = (format!("t-{at}-{number}"), format!("r-{at}-{number}"));
            let lines = lines
                .join("\n")
                .replace(r#""t""#, &format!("{thread:?}"))
                .replace(r#""r""#, &format!("{run:?}"));
            let answer = import(&there, &thread, &lines).await;
            assert!(answer.status.as_u16() < 500, "{pointer} of line {}: {answer:?}", at + 1);
            assert_eq!(there.get("/readyz").await.status, 200, "{pointer} of line {}", at + 1);
            let next = there.post(&format!("/v1/runs/{run}/events?thread={thread}"), &delta("b")).await;
            assert!(next.status.as_u16() < 500, "{pointer} of line {}: {next:?}", at + 1);
        }
    }
    assert_eq!(there.restarted().await.get("/readyz").await.status, 200);
}

/// The places of all numbers in a value.
fn pointers(value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::Number(_) => vec![at.to_owned()],
        Value::Object(members) => {
            members.iter().flat_map(|(name, value)| pointers(value, &format!("{at}/{name}"))).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(index, value)| pointers(value, &format!("{at}/{index}")))
            .collect(),
        _ => Vec::new(),
    }
}
