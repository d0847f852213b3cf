//! `runwire run`, `cancel` and `retry`.

use rustix::process::Signal;
use serde_json::Value;

use crate::command::{Outcome, run, runwire};
use crate::output_lines::Lines;
use crate::server::Server;
use crate::terminal::Terminal;

fn ask(server: &Server, arguments: &[&str]) -> Outcome {
    run(&[arguments, &["--url", &server.url()]].concat(), "")
}

/// Starts a server whose agents write nothing.
fn with_silent_agents() -> Server {
    let agent = |name: &str| {
        format!(
            "[agents.{name}]\nkind = \"exec\"\ncommand = [\"sh\", \"-c\", \"cat > /dev/null\"]\n\
             dialect = \"loom\"\n"
        )
    };
    Server::configured(&[agent("weather"), agent("shop")].concat())
}

fn status(server: &Server, run_id: &str) -> String {
    let shown: Value = serde_json::from_str(&ask(server, &["show", run_id, "--json"]).stdout).unwrap();
    shown["run"]["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_detached_run_is_its_id_and_waits_for_whoever_works_on_it() {
    let server = with_silent_agents();
    let input = r#"{"city":"北京"}"#;
    let started = ask(&server, &["run", "weather", "天气？", "--input", input, "--thread", "t1", "--detach"]);
    assert_eq!((started.code, started.stderr.as_str()), (0, ""));
    let id = started.stdout.trim_end();
    assert_eq!(status(&server, id), "pending");
    let url = server.url();
    let elsewhere = run(&["exec", "--run", id, "--thread", "t2", "--url", &url, "--", "true"], "");
    assert_eq!(elsewhere.code, 125);
    assert!(elsewhere.stderr.contains("is in thread t1"), "{}", elsewhere.stderr);
    let script = "echo '{\"type\":\"run_start\"}'; echo '{\"reply\":\"晴\"}'";
    let exec =
        run(&["exec", "-q", "--run", id, "--dialect", "loom", "--url", &url, "--", "sh", "-c", script], "");
    assert_eq!(exec.code, 0, "{}", exec.stderr);
    let events = ask(&server, &["tail", id, "-o", "ndjson"]).stdout;
    let first: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!((&first["message"], &first["input"]["city"]), (&"天气？".into(), &"北京".into()));
    assert_eq!((&first["agent"], &first["thread_id"]), (&"weather".into(), &"t1".into()));
}

#[test]
fn a_name_that_no_agent_has_starts_nothing_and_is_told_what_there_is() {
    let server = with_silent_agents();
    let refused = ask(&server, &["run", "wether", "Weather?", "--run", "r1", "--detach"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    for part in ["`wether`", "is `weather` meant?", "weather, shop"] {
        assert!(refused.stderr.contains(part), "`{part}` is missing: {}", refused.stderr);
    }
    let refused = ask(&server, &["run", "nobody", "Weather?"]);
    assert!(refused.stderr.contains("there are weather, shop"), "{}", refused.stderr);
    assert_eq!(ask(&server, &["show", "r1"]).code, 1);
    let without = Server::start();
    let refused = ask(&without, &["run", "demo", "Weather?"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("runwire dev"), "{}", refused.stderr);
}

#[test]
fn a_run_is_watched_to_its_end() {
    let server = with_silent_agents();
    let url = server.url();
    let all = ["run", "weather", "Weather?", "--run", "r1", "-o", "ndjson", "--exit-status", "--url", &url];
    let mut watched = Lines::of(&mut runwire(&all));
    server.wait_for_run("r1");
    let frames = "{\"type\":\"run_start\"}\n{\"reply\":\"Sunny.\"}\n";
    assert_eq!(run(&["push", "r1", "--dialect", "loom", "--url", &url], frames).code, 0);
    assert_eq!(watched.next_type(), "run.started");
    assert!(watched.rest().last().unwrap().contains("run.completed"));
    assert_eq!(watched.wait(), Some(0));
}

#[test]
fn leaving_is_not_stopping_and_says_so() {
    let server = with_silent_agents();
    let all = ["run", "weather", "Weather?", "--run", "r1", "--url", &server.url()];
    let mut terminal = Terminal::start(&mut runwire(&all), 60);
    terminal.wait_for("run r1");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.wait().code(), Some(130));
    for part in ["runwire tail r1", "leaving is not stopping", "runwire cancel r1"] {
        assert!(terminal.shows(part), "`{part}` is missing:\n{}", terminal.screen.screen().contents());
    }
    assert_eq!(status(&server, "r1"), "pending");
}

#[test]
fn a_cancel_says_what_becomes_of_the_run() {
    let server = with_silent_agents();
    assert_eq!(ask(&server, &["run", "weather", "--run", "r1", "-d"]).stdout, "r1\n");
    assert_eq!(ask(&server, &["cancel", "r1"]).stdout, "cancelled\n");
    assert_eq!(ask(&server, &["cancel", "r1"]).stdout, "cancelled\n");
    let frame = "{\"type\":\"run_start\"}\n";
    assert_eq!(run(&["push", "r2", "--dialect", "loom", "--url", &server.url()], frame).code, 0);
    let asked = ask(&server, &["cancel", "r2", "--reason", "no longer needed"]);
    assert!(asked.stdout.starts_with("asked to stop"), "{}", asked.stdout);
    let json: Value = serde_json::from_str(&ask(&server, &["cancel", "r2", "--json"]).stdout).unwrap();
    assert_eq!(json["cancel_requested"], true);
    let unknown = ask(&server, &["cancel", "nobody"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("[run_unknown]"), "{}", unknown.stderr);
}

#[test]
fn whoever_watches_at_a_terminal_is_asked_what_the_run_asks_and_sees_it_go_on() {
    let server = with_silent_agents();
    let url = server.url();
    let all = ["run", "shop", "Buy it", "--run", "r1", "--url", &url];
    let mut terminal = Terminal::start(&mut runwire(&all), 100);
    server.wait_for_run("r1");
    let asked = "{\"type\":\"interaction.requested\",\"interaction_id\":\"pay\",\"kind\":\"approval\",\
                 \"title\":\"Pay 120?\"}\n";
    assert_eq!(run(&["push", "r1", "--dialect", "runwire", "--url", &url], asked).code, 0);
    terminal.wait_for("approve, reject or cancel?");
    // A run that waits already may ask more.
    let more = "{\"type\":\"interaction.requested\",\"interaction_id\":\"ship\",\"kind\":\"form\",\"schema\":\
                {\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"}}}}\n";
    assert_eq!(run(&["push", "r1", "--dialect", "runwire", "--url", &url], more).code, 0);
    terminal.types("approve");
    terminal.wait_for("approved");
    terminal.wait_for("(may be left empty)");
    terminal.types("High Street");
    terminal.wait_for("send it?");
    terminal.types("yes");
    terminal.wait_for("submitted");
    let rest = "{\"type\":\"run.completed\",\"reply\":\"Bought.\"}\n";
    assert_eq!(run(&["push", "r1", "--dialect", "runwire", "--url", &url], rest).code, 0);
    assert!(terminal.wait().success());
    assert!(terminal.shows("completed"), "{}", terminal.screen.screen().contents());
    assert_eq!(status(&server, "r1"), "completed");
}

#[test]
fn whoever_leaves_while_being_asked_leaves_at_once_and_is_told_how_to_come_back() {
    let server = with_silent_agents();
    let url = server.url();
    let mut terminal =
        Terminal::start(&mut runwire(&["run", "shop", "Buy it", "--run", "r1", "--url", &url]), 100);
    server.wait_for_run("r1");
    let asked = "{\"type\":\"interaction.requested\",\"interaction_id\":\"pay\",\"kind\":\"approval\"}\n";
    assert_eq!(run(&["push", "r1", "--dialect", "runwire", "--url", &url], asked).code, 0);
    terminal.wait_for("approve, reject or cancel?");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.wait().code(), Some(130));
    let again = format!("`runwire answer r1 --url {url}` asks again");
    assert!(terminal.shows(&again), "{}", terminal.screen.screen().contents());
    assert_eq!(status(&server, "r1"), "suspended");
}

#[test]
fn a_run_is_done_again_by_the_same_agent_in_the_same_thread() {
    let server = Server::configured("[agents.report]\nkind = \"demo\"\nscript = \"failing\"\nfast = true\n");
    let first =
        ask(&server, &["run", "report", "The year", "--run", "r1", "--thread", "t1", "--exit-status"]);
    assert_eq!(first.code, 1, "{}", first.stderr);
    let again = ask(&server, &["retry", "r1"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let again = again.stdout.trim_end();
    assert_ne!(again, "r1");
    assert_eq!(ask(&server, &["tail", again, "-o", "text"]).code, 0);
    assert_eq!(status(&server, again), "failed");
    let shown: Value = serde_json::from_str(&ask(&server, &["show", again, "--json"]).stdout).unwrap();
    assert_eq!((&shown["run"]["thread_id"], &shown["run"]["agent"]), (&"t1".into(), &"report".into()));
    let refused = ask(&server, &["retry", "nobody"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("[run_unknown]"), "{}", refused.stderr);
}
