//! Faulty programs: held pipes, ignored signals, floods.

use std::time::Duration;

use serde_json::Value;

use super::fake_agents::{RunAssertions, exec_agent};
use crate::harness::{Served, within_timeout};

const SHORT: Duration = Duration::from_millis(200);

async fn started(script: &str) -> Served {
    let agent = exec_agent(script);
    let served = Served::with(|config| {
        config.agents = vec![agent];
        config.agent_grace = SHORT;
    })
    .await;
    served.post("/v1/runs", r#"{"run_id":"r","agent":"a"}"#).await;
    served
}

/// Lists the processes that carry a mark on their command line.
fn processes(mark: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let carries = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    entries.filter(carries).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

async fn none_left(mark: &str) {
    within_timeout(async {
        while !processes(mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

fn mark(test: u32) -> String {
    format!("{}.{test}", 800_000 + std::process::id())
}

async fn cancelled(served: &Served) -> Value {
    served.post("/v1/runs/r/cancel", r#"{"reason":"enough"}"#).await;
    let run = served.closed("r").await;
    assert_eq!(run["status"], "cancelled", "{run}");
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_in_a_session_of_its_own_that_holds_the_output_does_not_hold_the_run() {
    let mark = mark(1);
    let served = started(&format!(r#"setsid sleep {mark} & echo '{{"type":"run_start"}}'; exit 0"#)).await;
    assert_eq!(served.closed("r").await["status"], "completed");
    served.stopped().await;
    // What has left the group is its own master, as the documents say.
    for left in processes(&mark).into_iter().filter_map(rustix::process::Pid::from_raw) {
        rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
    }
    none_left(&mark).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_reads_nothing_is_cancelled_by_a_signal() {
    let mark = mark(2);
    let served = started(&format!(
        r#"exec <&-; echo '{{"type":"run_start"}}'; trap 'exit 0' TERM; sleep {mark} & wait"#
    ))
    .await;
    served.until_status("r", "running").await;
    cancelled(&served).await;
    none_left(&mark).await;
    served.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_stands_still_is_killed_when_it_is_cancelled() {
    let mark = mark(3);
    let served = started(&format!(r#"echo '{{"type":"run_start"}}'; kill -STOP $$; sleep {mark}"#)).await;
    served.until_status("r", "running").await;
    cancelled(&served).await;
    none_left(&mark).await;
    served.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_floods_standard_error_without_a_line_end_does_no_harm() {
    let mark = mark(4);
    let script =
        format!(r#"echo '{{"type":"run_start"}}'; : {mark}; head -c 20000000 /dev/zero >&2; echo; exit 7"#);
    let served = started(&script).await;
    let run = served.closed("r").await;
    assert_eq!((&run["error"]["code"], &run["status"]), (&"exit_status".into(), &"failed".into()), "{run}");
    assert!(run.to_string().len() < 10_000);
    none_left(&mark).await;
    served.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_children_write_after_it_has_ended_is_heard_to_the_end() {
    let served = started(
        r#"echo '{"type":"run_start"}'; (sleep 0.05; echo '{"type":"message_chunk","content":"late","id":"n"}') & exit 0"#,
    )
    .await;
    assert_eq!(served.closed("r").await["status"], "completed");
    assert_eq!(served.texts("r").await, "late");
    served.stopped().await;
}
