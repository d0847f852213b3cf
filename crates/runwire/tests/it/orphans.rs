//! No program that a server started outlives it, nor its children, however the server ends.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::command::{TIMEOUT, run};
use crate::server::Server;

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Counts the processes with a mark on their command line.
fn processes(mark: &str) -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let carries = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    entries.filter(carries).count()
}

/// A number of seconds to sleep that no other test has.
fn mark(test: u32) -> String {
    format!("{}.{test}", 700_000 + std::process::id())
}

fn serving(place: &Path, script: &str) -> Server {
    let file = place.join("agents.toml");
    let agent = format!(
        "[agents.a]\nkind = \"exec\"\ncommand = [\"sh\", \"-c\", '''{script}''']\ndialect = \"loom\"\n"
    );
    fs::write(&file, agent).unwrap();
    Server::start_with(&["--config", file.to_str().unwrap()])
}

fn start(server: &Server) {
    let started = run(&["run", "a", "--run", "r", "--detach", "--url", &server.url()], "");
    assert_eq!(started.code, 0, "{}", started.stderr);
}

/// The run, as a list shows it: reading all of its text would hold up whoever waits for it.
fn shown(server: &Server) -> Value {
    let listed = run(&["runs", "--json", "--url", &server.url()], "").stdout;
    let mut runs = listed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    runs.find(|run| run["run_id"] == "r").unwrap_or_default()
}

/// Returns a program that ignores all signals, with a child and a grandchild that do too.
fn stubborn(mark: &str) -> String {
    format!(
        "trap \"\" TERM HUP INT PIPE; (sleep {mark} & exec sleep {mark}) & \
         echo \"{{\\\"type\\\":\\\"run_start\\\"}}\"; while :; do sleep {mark}; done"
    )
}

#[test]
fn a_killed_server_takes_a_stubborn_program_and_its_children_along() {
    let (place, mark) = (tempfile::tempdir().unwrap(), mark(1));
    let mut server = serving(place.path(), &stubborn(&mark));
    start(&server);
    wait_for("the program does not run", || processes(&mark) >= 4 && shown(&server)["status"] == "running");
    server.kill();
    wait_for("something is left", || processes(&mark) == 0);
    server.restart();
    let ended = shown(&server);
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&"failed".into(), &"producer_lost".into()));
    assert!(server.stop().success());
}

#[test]
fn a_server_that_is_told_twice_to_stop_takes_a_stubborn_program_along() {
    let (place, mark) = (tempfile::tempdir().unwrap(), mark(2));
    let mut server = serving(place.path(), &stubborn(&mark));
    start(&server);
    wait_for("the program does not run", || processes(&mark) >= 4);
    for _ in 0..2 {
        server.signal(Signal::TERM);
        std::thread::sleep(Duration::from_millis(100));
    }
    server.wait();
    wait_for("something is left", || processes(&mark) == 0);
    server.restart();
    assert_eq!(shown(&server)["status"], "failed");
}

#[test]
fn a_program_that_floods_its_output_waits_for_the_store_and_fills_no_memory() {
    let (place, mark) = (tempfile::tempdir().unwrap(), mark(3));
    let floods = format!(
        "pad=$(head -c 10000 /dev/zero | tr \"\\0\" x); \
         exec yes \"{{\\\"type\\\":\\\"message_chunk\\\",\\\"content\\\":\\\"\\\",\\\"id\\\":\\\"{mark}\\\",\\\"pad\\\":\\\"$pad\\\"}}\""
    );
    let mut server = serving(place.path(), &floods);
    start(&server);
    let memory_at = |records: u64| {
        wait_for("the flood does not come", || shown(&server)["counts"]["records"].as_u64() >= Some(records));
        server.resident_bytes()
    };
    let (early, late) = (memory_at(500), memory_at(3500));
    assert!(late < early + (24 << 20), "{early} bytes became {late} while 30 MB came");
    server.kill();
    wait_for("something is left", || processes(&mark) == 0);
    server.restart();
    let ended = shown(&server);
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&"failed".into(), &"producer_lost".into()));
}

#[test]
fn a_cancel_from_the_command_line_reaches_the_program() {
    let place = tempfile::tempdir().unwrap();
    let heeds = r#"read start; echo "{\"type\":\"run_start\"}"; read cancel
        case "$cancel" in *run.cancel_requested*enough*) echo "{\"reply\":\"heard\",\"stop_reason\":\"cancelled\"}";; esac"#;
    let mut server = serving(place.path(), heeds);
    start(&server);
    wait_for("the program does not run", || shown(&server)["status"] == "running");
    let asked = run(&["cancel", "r", "--reason", "enough", "--url", &server.url()], "");
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    wait_for("the run does not end", || shown(&server)["status"] == "cancelled");
    let text = run(&["tail", "r", "--no-follow", "-o", "ndjson", "--url", &server.url()], "").stdout;
    assert!(text.contains("heard"), "{text}");
    assert!(server.stop().success());
}
