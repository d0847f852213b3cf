//! Agents that the server starts, with the real binary: configured, watched, and gone with a server that is killed.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::{Duration, Instant};

use crate::command::{PATIENCE, run};
use crate::server::Server;

/// Tells how many programs run that carry a mark on their command line.
fn processes(mark: &str) -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let carries = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    entries.filter(carries).count()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_server_leaves_no_program_and_no_run_without_an_end() {
    let place = tempfile::tempdir().unwrap();
    let mark = format!("agent-of-{}", std::process::id());
    let file = place.path().join("agents.toml");
    let reads_on = format!(r#"echo '{{"type":"run_start"}}'; while read line; do :; done; exit 0; # {mark}"#);
    let configuration = format!(
        "[agents.reader]\nkind = \"exec\"\ncommand = [\"sh\", \"-c\", '''{reads_on}''']\ndialect = \"loom\"\n\n\
         [agents.demo]\nkind = \"demo\"\nscript = \"thought-tree\"\nfast = true\n"
    );
    fs::write(&file, configuration).unwrap();
    let mut server = Server::start_with(&["--config", file.to_str().unwrap()]);
    let url = server.url();
    let started = run(&["run", "reader", "--run", "r1", "--detach", "--url", &url], "");
    assert_eq!(started.code, 0, "{}", started.stderr);
    let status = |run_id: &str| {
        let shown = run(&["runs", "--json", "--url", &url], "").stdout;
        let mut lines = shown.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines.find(|run| run["run_id"] == run_id).map_or_else(String::new, |run| run.to_string())
    };
    wait_for("the program does not run", || status("r1").contains("\"running\"") && processes(&mark) == 1);
    server.kill();
    wait_for("the program is still there", || processes(&mark) == 0);
    server.restart();
    let ended = status("r1");
    assert!(ended.contains("\"failed\"") && ended.contains("producer_lost"), "{ended}");

    let told = run(&["run", "demo", "4 7 8 8", "--exit-status", "--url", &url], "");
    assert_eq!(told.code, 0, "{}\n{}", told.stdout, told.stderr);
    assert!(server.stop().success());
}
