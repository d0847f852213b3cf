//! Agents that the server starts: configuration, defaults, and cleanup after a kill.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use crate::command::{TIMEOUT, run, runwire};
use crate::server::Server;

/// Counts the processes with a mark on their command line.
fn processes(mark: &str) -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let carries = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    entries.filter(carries).count()
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < TIMEOUT, "{what}");
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

#[test]
fn the_default_agent_is_the_demo_in_dev_or_the_only_configured_one() {
    let default = |file: &str| {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("runwire.toml"), file).unwrap();
        let mut command = runwire(&["dev", "--listen", "127.0.0.1:0", "--log-level", "error"]);
        let mut child = command.current_dir(directory.path()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("runwire listening on ").unwrap().to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runwire_client::Client::builder().url(url).build().unwrap();
        let agents = runtime.block_on(client.agents());
        child.kill().unwrap();
        child.wait().unwrap();
        agents.unwrap().into_iter().find(|agent| agent.default).map(|agent| agent.name)
    };
    assert_eq!(default("").as_deref(), Some("demo"));
    let mine = "[agents.mine]\nkind = \"demo\"\nscript = \"failing\"\n";
    assert_eq!(default(mine).as_deref(), Some("mine"));
    let other = "[agents.other]\nkind = \"demo\"\nscript = \"failing\"\n";
    assert_eq!(default(&format!("{mine}{other}")).as_deref(), Some("demo"));
    assert_eq!(default(&format!("default_agent = \"other\"\n{mine}{other}")).as_deref(), Some("other"));
    assert_eq!(default("default_agent = \"none\"\n"), None);
}

#[test]
fn a_failing_agent_is_logged_once_and_without_secrets() {
    let server = Server::configured(
        "[agents.gone]\nkind = \"http\"\nurl = \"http://li:s3cret@127.0.0.1:1/run?key=s3cret\"\ndialect = \"loom\"\n\n\
         [agents.broken]\nkind = \"exec\"\ncommand = [\"sh\", \"-c\", \"echo no model >&2; exit 3\"]\ndialect = \"loom\"\n",
    );
    let url = server.url();
    for (agent, words) in [
        ("gone", ["code=\"agent_unreachable\"", "at 127.0.0.1:1:", "address=\"http://127.0.0.1:1/run\""]),
        ("broken", ["code=\"exit_status\"", "exit code 3: no model", "address=\"sh\""]),
    ] {
        let id = format!("run-of-{agent}");
        run(&["run", agent, "--run", &id, "--url", &url], "");
        let log = server.log();
        let lines: Vec<_> = log.lines().filter(|line| line.contains("WARN") && line.contains(&id)).collect();
        let [line] = lines.as_slice() else { panic!("{log}") };
        for word in words {
            assert!(line.contains(word), "`{word}` is missing in: {line}");
        }
        assert!(!log.contains("s3cret"), "{log}");
    }
}
