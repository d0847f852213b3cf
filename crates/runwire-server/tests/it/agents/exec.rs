//! Agents that are programs: input, output, exit, cancel.

use std::time::Duration;

use runwire_server::Config;
use serde_json::{Value, json};

use super::fake_agents::{RunAssertions, count};
use super::with_program;
use crate::harness::{Served, within_timeout};

const SHORT: Duration = Duration::from_millis(200);

async fn serving(script: &str) -> Served {
    Served::with(|config: &mut Config| {
        with_program(config, script);
        config.agent_grace = SHORT;
    })
    .await
}

/// Runs a program to the end of its run.
async fn run_of(script: &str) -> (Value, Vec<Value>) {
    let served = serving(script).await;
    let body = json!({"run_id": "r", "agent": "a", "message": "天气怎么样", "input": {"k": [1]}});
    served.post("/v1/runs", &body.to_string()).await;
    let run = served.closed("r").await;
    let events = served.happened("r").await;
    served.stopped().await;
    (run, events)
}

/// Asserts that no process is left that carries a mark in its command line.
async fn no_process_left(mark: &str) {
    within_timeout(async {
        while processes(mark) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

fn processes(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let has_mark = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    entries.filter(has_mark).count()
}

/// A number of seconds to sleep that no other test has.
fn mark(test: u32) -> String {
    format!("{}.{test}", 600_000 + std::process::id())
}

#[tokio::test]
async fn a_program_gets_its_input_and_its_output_is_the_run() {
    let script = r#"read line; echo "{\"type\":\"run_start\",\"message\":\"other\"}"
        echo "{\"type\":\"message_chunk\",\"content\":\"$RUNWIRE_MESSAGE \",\"id\":\"n\"}"
        case "$line" in *'"type":"run.started"'*'"k":[1]'*) echo '{"type":"message_chunk","content":"heard","id":"n"}';; esac"#;
    let (run, events) = run_of(script).await;
    assert_eq!((&run["status"], &run["agent"]), (&"completed".into(), &"a".into()));
    assert_eq!((&events[0]["type"], &events[0]["message"]), (&"run.started".into(), &"天气怎么样".into()));
    let text: String = events.iter().filter_map(|event| event["content"].as_str()).collect();
    assert_eq!(text, "天气怎么样 heard");
}

#[tokio::test]
async fn half_a_line_before_a_death_is_kept_and_the_failure_says_why() {
    let script = r#"echo '{"type":"run_start"}'; echo "out of luck" >&2; printf '{"type":"message_chunk","cont'; kill -9 $$"#;
    let (run, events) = run_of(script).await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&"failed".into(), &"killed".into()));
    let foreign = events.iter().find(|event| event["type"] == "foreign").unwrap();
    assert_eq!(foreign["frame"], r#"{"type":"message_chunk","cont"#);
    let error = &events.last().unwrap()["error"];
    assert_eq!(
        (&error["details"]["signal"], &error["details"]["stderr"]),
        (&9.into(), &"out of luck".into())
    );
    assert!(error["message"].as_str().unwrap().contains("out of luck"));
}

#[tokio::test]
async fn a_program_that_only_writes_to_standard_error_fails_with_its_last_lines() {
    let (run, events) = run_of("for i in $(seq 1 100); do echo line $i >&2; done; exit 3").await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&"failed".into(), &"exit_status".into()));
    let details = &events.last().unwrap()["error"]["details"];
    assert_eq!(details["exit_code"], 3);
    assert_eq!(&run["error"]["details"], details, "the run tells them too");
    let stderr = details["stderr"].as_str().unwrap();
    assert!(stderr.starts_with("line 81\n") && stderr.ends_with("line 100"), "{stderr}");
}

#[tokio::test]
async fn a_program_that_says_nothing_and_ends_well_completes_its_run() {
    let (run, events) = run_of("exit 0").await;
    assert_eq!((&run["status"], events.len()), (&"completed".into(), 2));
}

#[tokio::test]
async fn a_line_that_is_no_frame_is_foreign_and_the_run_goes_on() {
    let script = r#"echo 'loading...'; echo '{"type":"message_chunk","content":5,"id":"n"}'; echo '[1]'; echo '{"reply":"done"}'"#;
    let (run, events) = run_of(script).await;
    assert_eq!(run["status"], "completed");
    assert_eq!(count(&events, "foreign"), 3);
    assert_eq!(events[0]["type"], "run.started");
}

#[tokio::test]
async fn a_program_that_floods_nonsense_is_stopped_with_the_first_of_it() {
    let mark = mark(1);
    let (run, events) = run_of(&format!("yes nonsense {mark}")).await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&"failed".into(), &"agent_garbled".into()));
    assert!(run["error"]["message"].as_str().unwrap().contains("line 1: "), "{run}");
    assert_eq!(count(&events, "foreign"), runwire_agents::limits::AGENT_UNREADABLE_FRAMES);
    no_process_left(&mark).await;
}

#[tokio::test]
async fn a_program_that_floods_frames_can_be_cancelled() {
    let mark = mark(2);
    let served = serving(&format!(r#"yes '{{"type":"message_chunk","content":"","id":"{mark}"}}'"#)).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.until_records("r", 5000).await;
    served.post("/v1/runs/r/cancel", r#"{"reason":"enough"}"#).await;
    let run = within_timeout(async {
        loop {
            let run = served.get("/v1/runs/r").await.json();
            if run["ended_at"].is_string() {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(run["status"], "cancelled");
    no_process_left(&mark).await;
    served.stopped().await;
}

#[tokio::test]
async fn a_too_long_line_becomes_a_warning_and_the_run_continues() {
    let script = r#"head -c 3000000 /dev/zero | tr '\0' x; echo; echo '{"reply":"still here"}'"#;
    let (run, events) = run_of(script).await;
    assert_eq!(run["status"], "completed");
    let notice = events.iter().find(|event| event["type"] == "notice").unwrap();
    assert_eq!(notice["code"], "frame_too_long");
}

#[tokio::test]
async fn what_a_program_leaves_behind_goes_with_it() {
    let mark = mark(3);
    let script = format!(r#"echo '{{"type":"run_start"}}'; sleep {mark} & sleep {mark} & exit 0"#);
    let (run, _) = run_of(&script).await;
    assert_eq!(run["status"], "completed");
    no_process_left(&mark).await;
}

#[tokio::test]
async fn a_program_that_ignores_cancel_is_killed() {
    let mark = mark(4);
    let served =
        serving(&format!(r#"trap '' TERM; echo '{{"type":"run_start"}}'; while :; do sleep {mark}; done"#))
            .await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.until_status("r", "running").await;
    served.post("/v1/runs/r/cancel", r#"{"reason":"enough"}"#).await;
    assert_eq!(served.closed("r").await["status"], "cancelled");
    assert_eq!(served.happened("r").await.last().unwrap()["reason"], "enough");
    no_process_left(&mark).await;
    served.stopped().await;
}

#[tokio::test]
async fn a_program_reads_that_it_is_cancelled_and_may_have_the_last_word() {
    let script = r#"echo '{"type":"run_start"}'; read start; read cancel
        case "$cancel" in *run.cancel_requested*enough*) echo '{"reply":"tidied up","stop_reason":"cancelled"}';; esac"#;
    let served = serving(script).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.until_status("r", "running").await;
    served.post("/v1/runs/r/cancel", r#"{"reason":"enough"}"#).await;
    assert_eq!(served.closed("r").await["status"], "cancelled");
    assert_eq!(served.texts("r").await, "tidied up");
    served.stopped().await;
}

#[tokio::test]
async fn an_answer_reaches_the_program_on_its_standard_input() {
    let script = r#"read start
        echo '{"type":"tool_approval","name":"rm","arguments":{"f":1},"call_id":"c1"}'
        read answer
        case "$answer" in *interaction.resolved*c1*approved*) echo '{"reply":"removed"}';; *) echo "$answer"; exit 4;; esac"#;
    let served = serving(script).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    let asked = served.until_status("r", "suspended").await["interactions"][0]["interaction_id"].clone();
    let path = format!("/v1/runs/r/interactions/{}", asked.as_str().unwrap());
    let answered = served.post(&path, r#"{"decision":"approved"}"#).await;
    assert!(answered.status.is_success(), "{answered:?}");
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "removed");
    served.stopped().await;
}

#[tokio::test]
async fn a_cancel_during_an_open_interaction_ends_the_program_too() {
    let mark = mark(5);
    let script = format!(
        r#"echo '{{"type":"tool_approval","name":"rm","arguments":{{}},"call_id":"c1"}}'; sleep {mark}"#
    );
    let served = serving(&script).await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.until_status("r", "suspended").await;
    assert_eq!(served.post("/v1/runs/r/cancel", "").await.json()["status"], "cancelled");
    no_process_left(&mark).await;
    served.closed("r").await;
    served.stopped().await;
}

#[tokio::test]
async fn a_program_that_ends_its_run_and_keeps_running_is_stopped() {
    let mark = mark(6);
    let (run, _) =
        run_of(&format!(r#"echo '{{"reply":"bye"}}'; echo '{{"reply":"twice"}}'; sleep {mark}"#)).await;
    assert_eq!(run["status"], "completed");
    no_process_left(&mark).await;
}

#[tokio::test]
async fn a_program_that_does_not_exist_fails_its_run_and_says_which() {
    let served = Served::with(|config| {
        with_program(config, "");
        let mut agent = super::exec_of("");
        agent.command = vec!["/nowhere/agent".into()];
        config.agents[0].kind = runwire_agents::AgentKind::Exec(agent);
    })
    .await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    let run = served.closed("r").await;
    assert_eq!(run["error"]["code"], "not_started");
    assert!(run["error"]["message"].as_str().unwrap().contains("/nowhere/agent"));
}

#[tokio::test]
async fn a_server_that_stops_takes_its_programs_along_and_ends_their_runs() {
    let mark = mark(7);
    let served =
        serving(&format!(r#"trap '' TERM; echo '{{"type":"run_start"}}'; while :; do sleep {mark}; done"#))
            .await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served.until_status("r", "running").await;
    let served = served.restarted().await;
    assert_eq!(processes(&mark), 0);
    let run = served.closed("r").await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&"failed".into(), &"server_stopped".into()));
}

#[tokio::test]
async fn a_deleted_thread_takes_its_program_along() {
    let mark = mark(8);
    let served = serving(&format!(r#"echo '{{"type":"run_start"}}'; sleep {mark}"#)).await;
    served.post("/v1/runs", r#"{"run_id":"r","thread_id":"t","agent":"a"}"#).await;
    served.until_status("r", "running").await;
    let delete = served.request(http::Method::DELETE, "/v1/threads/t?force=true", &[]).body("").unwrap();
    assert!(served.send(delete).await.status.is_success());
    no_process_left(&mark).await;
    served.stopped().await;
}

#[tokio::test]
async fn cancel_races_the_end_and_one_of_them_wins() {
    let served = serving(r#"echo '{"type":"run_start"}'; echo '{"reply":"done"}'"#).await;
    for round in 0..20 {
        let run = format!("r{round}");
        served.post("/v1/runs", &json!({"run_id": run, "agent": "a"}).to_string()).await;
        tokio::time::sleep(Duration::from_micros(500 * round)).await;
        served.post(&format!("/v1/runs/{run}/cancel"), "").await;
        let status = served.closed(&run).await["status"].clone();
        assert!(status == "completed" || status == "cancelled", "{status}");
    }
    served.stopped().await;
}
