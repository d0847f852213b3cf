//! `runwire export` and `runwire import`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Outcome, TIMEOUT, run, run_command, runwire, vectors};
use crate::server::Server;
use crate::terminal::Terminal;

const RUN: &str = "{\"type\":\"run.started\"}\n{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"茶\"}\n\
                   {\"type\":\"run.completed\"}\n";

fn push(server: &Server, arguments: &[&str], frames: impl AsRef<[u8]>) {
    let pushed = run(&[&["push", "--url", &server.url()], arguments].concat(), frames);
    assert_eq!(pushed.code, 0, "{arguments:?}: {}", pushed.stderr);
}

/// Two conversations, one of them with a run that is open.
fn some_runs(server: &Server) {
    for id in ["r1", "r2"] {
        push(server, &[id, "--thread", "t"], RUN);
    }
    push(server, &["open", "--thread", "u"], RUN.lines().take(2).collect::<Vec<_>>().join("\n"));
}

fn export(server: &Server, arguments: &[&str]) -> Outcome {
    run(&[&["export", "--url", &server.url()], arguments].concat(), "")
}

fn import(server: &Server, arguments: &[&str], input: impl AsRef<[u8]>) -> Outcome {
    run(&[&["import", "--url", &server.url()], arguments].concat(), input)
}

fn tail(server: &Server, run_id: &str, dialect: &str) -> String {
    let url = server.url();
    run(&["tail", run_id, "--no-follow", "-o", "sse", "--dialect", dialect, "--url", &url], "").stdout
}

#[track_caller]
fn fine(outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

#[track_caller]
fn refused(outcome: &Outcome, code: i32, said: &str) {
    assert_eq!(outcome.code, code, "{}", outcome.stderr);
    assert!(outcome.stderr.contains(said), "`{said}` is missing:\n{}", outcome.stderr);
}

#[test]
fn everything_moves_and_every_stream_is_the_same() {
    let (here, there) = (Server::start(), Server::start());
    let mut threads = Vec::new();
    for dialect in ["ag-ui", "agio", "easyflow-chat", "loom", "runwire", "social-app", "streaming-engine"] {
        for case in ["two-runs", "every-event", "approval", "dies"] {
            let folder = vectors().join(dialect).join(case);
            let input =
                ["input.ndjson", "input.sse"].iter().find_map(|name| fs::read(folder.join(name)).ok());
            let Some(input) = input else { continue };
            let thread = format!("{dialect}.{case}");
            push(&here, &["--to-thread", &thread, "--dialect", dialect], input);
            threads.push(thread);
        }
    }
    some_runs(&here);
    let file = here.directory().join("all.ndjson");
    let exported = export(&here, &["--all", "-o", file.to_str().unwrap()]);
    fine(&exported);
    assert!(exported.stderr.contains("exported ") && exported.stdout.is_empty(), "{}", exported.stderr);
    assert!(!here.directory().join("all.ndjson.part").exists());
    fine(&run(&["import", "--check", file.to_str().unwrap()], ""));
    let imported = import(&there, &[file.to_str().unwrap()], "");
    fine(&imported);
    assert!(imported.stderr.contains("every stream is what the file says"), "{}", imported.stderr);
    let again = import(&there, &["-"], fs::read(&file).unwrap());
    fine(&again);
    assert!(again.stderr.contains("were there already"), "{}", again.stderr);
    let runs = run(&["runs", "--all", "--json", "--url", &here.url()], "").stdout;
    let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
    assert!(runs["runs"].as_array().unwrap().len() > threads.len());
    for id in runs["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap()) {
        for dialect in ["runwire", "ag-ui", "loom"] {
            assert_eq!(tail(&here, id, dialect), tail(&there, id, dialect), "{id} in {dialect}");
        }
    }
    // The lines of the two servers are the same, too; several threads are imported at once.
    let lines = |server: &Server| {
        let all = export(server, &["--all"]).stdout;
        let mut threads: Vec<_> = all.split("{\"type\":\"thread\",").skip(1).map(str::to_owned).collect();
        let last = threads.last_mut().unwrap();
        *last = last.split("{\"type\":\"runwire.export.end\"").next().unwrap().to_owned();
        threads.sort();
        threads
    };
    assert!(lines(&there) == lines(&here), "the exports differ");
    push(&there, &["open", "--end"], "{\"type\":\"text.delta\",\"message_id\":\"m\",\"content\":\"!\"}\n");
    assert!(run(&["tail", "open", "-o", "text", "--url", &there.url()], "").stdout.contains("茶!"));
}

#[test]
fn runs_and_threads_move_by_name() {
    let (here, there) = (Server::start(), Server::start());
    some_runs(&here);
    let one = export(&here, &["r2"]);
    fine(&one);
    assert_eq!(one.stdout.matches(r#"{"type":"run","#).count(), 1);
    fine(&import(&there, &[], &one.stdout));
    assert_eq!(tail(&there, "r2", "ag-ui"), tail(&here, "r2", "ag-ui"));
    let both = export(&here, &["r1", "r2", "--thread", "u"]);
    fine(&both);
    assert!(both.stderr.contains("exported whole"), "{}", both.stderr);
    refused(&import(&there, &[], &both.stdout), 1, "standard input, line ");
    refused(&export(&here, &["nobody"]), 1, "there is no run `nobody`");
    let nothing = export(&here, &["--thread", "nobody"]);
    refused(&nothing, 1, "there is no thread `nobody`");
    assert_eq!(nothing.stdout, "");
    for arguments in [&["export"][..], &["export", "r1", "--all"], &["import", "--check", "--no-verify"]] {
        assert_eq!(run(arguments, "").code, 2, "{arguments:?}");
    }
}

#[test]
fn a_file_that_is_not_whole_or_not_sound_is_told_with_its_line() {
    let (here, there) = (Server::start(), Server::start());
    some_runs(&here);
    let whole = export(&here, &["--all"]).stdout;
    let lines: Vec<&str> = whole.lines().collect();
    let changed = |from: &str, to: &str| whole.replacen(from, to, 1);
    let cases = [
        (String::new(), "empty"),
        ("{\"type\":\"run.started\"}\n".to_owned(), "line 1: this is no export"),
        (changed("\"version\":1", "\"version\":2"), "line 1: the file has version 2"),
        (lines[..lines.len() - 1].join("\n"), "the file is cut off"),
        (lines[..4].join("\n"), "line 4: the file is cut off"),
        (whole[..whole.len() / 2].to_owned(), "cut off"),
        (changed("\"records\":8", "\"records\":9"), "lines are missing"),
        (changed("{\"type\":\"end\",", "{\"type\":\"ende\","), "line "),
        (format!("{whole}{{}}\n"), "something follows the last line"),
        (format!("{whole}{whole}"), "something follows the last line"),
    ];
    for (text, said) in &cases {
        refused(&run(&["import", "--check"], text), 1, said);
        refused(&import(&there, &[], text), 1, said);
    }
    // What only the log can tell: the line is that of the file.
    let gap = [&lines[..3], &lines[4..]].concat().join("\n");
    refused(&run(&["import", "--check"], &gap), 1, "line 4: record 1 was expected next, not 2");
    let there = Server::start();
    refused(
        &import(&there, &["--no-verify"], &gap),
        1,
        "line 4: record 1 was expected next, not 2 [import_gap]",
    );
    let edited = changed(
        r#""by":"producer","event":{"type":"text.delta""#,
        r#""by":"producer","event":{"type":"text.started""#,
    );
    refused(&import(&there, &[], &edited), 1, "[bad_record]");
    fine(&import(&there, &[], &whole));
    refused(&import(&there, &[], changed("茶", "水")), 1, "[import_conflict]");
}

#[test]
fn a_full_disk_is_told_and_leaves_no_half_of_a_file() {
    let here = Server::start();
    let frames: String = (0..4000).map(|_| RUN.lines().nth(1).unwrap().to_owned() + "\n").collect();
    push(&here, &["big"], frames);
    let file = here.directory().join("big.ndjson");
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_runwire"), "export", "big", "--url", &here.url(), "-o"]);
    command.arg(&file).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let outcome = run_command(command.stderr(std::process::Stdio::piped()), "");
    refused(&outcome, 3, "cannot write ");
    assert!(outcome.stderr.contains("big.ndjson.part"), "{}", outcome.stderr);
    let left: Vec<_> =
        fs::read_dir(here.directory()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("big")), "{left:?}");
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" > /dev/full", env!("CARGO_BIN_EXE_runwire"), "export", "big"]);
    command.args(["--url", &here.url()]).stdin(std::process::Stdio::piped());
    let outcome =
        run_command(command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()), "");
    refused(&outcome, 3, "cannot write to standard output");
    refused(&export(&here, &["big", "-o", "/nowhere/x"]), 3, "cannot write /nowhere/x.part");
    // A device keeps its name, and so does a link.
    let null = here.directory().join("null");
    std::os::unix::fs::symlink("/dev/null", &null).unwrap();
    assert_eq!(export(&here, &["big", "-o", null.to_str().unwrap()]).code, 0);
    assert!(null.is_symlink() && !fs::metadata("/dev/null").unwrap().is_file());
    let link = here.directory().join("link.ndjson");
    fs::write(here.directory().join("target.ndjson"), "").unwrap();
    std::os::unix::fs::symlink("target.ndjson", &link).unwrap();
    assert_eq!(export(&here, &["big", "-o", link.to_str().unwrap()]).code, 0);
    assert!(link.is_symlink() && fs::metadata(&link).unwrap().len() > 0);
    // A reader that has enough is no failure.
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" \"$@\" | head -n 1", env!("CARGO_BIN_EXE_runwire"), "export", "big"]);
    command.args(["--url", &here.url()]).stdin(std::process::Stdio::piped());
    let outcome =
        run_command(command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()), "");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn an_import_that_is_interrupted_says_so_and_is_completed_by_repeating_it() {
    let (here, there) = (Server::start(), Server::start());
    some_runs(&here);
    let whole = export(&here, &["--thread", "t", "--thread", "u"]).stdout;
    let first_thread: String = whole
        .lines()
        .take(1 + whole.lines().skip(1).position(|line| line.contains(r#""type":"end""#)).unwrap() + 1)
        .map(|line| format!("{line}\n"))
        .collect();
    let mut child = runwire(&["import", "--url", &there.url()]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(first_thread.as_bytes()).unwrap();
    stdin.flush().unwrap();
    there.wait_for_run("r2");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < TIMEOUT, "Ctrl-C does not end it");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("repeating the import goes on from there"), "{said}");
    let again = import(&there, &[], &whole);
    fine(&again);
    assert!(again.stderr.contains("6 of the records were there already"), "{}", again.stderr);
}

#[test]
fn a_killed_server_keeps_a_beginning_that_repeating_the_import_completes() {
    let (here, mut there) = (Server::start(), Server::start());
    let piece = RUN.lines().nth(1).unwrap();
    let frames: String = (0..20_000).map(|_| format!("{piece}\n")).collect();
    push(&here, &["long", "--end"], frames);
    let file = here.directory().join("long.ndjson");
    fine(&export(&here, &["long", "-o", file.to_str().unwrap()]));
    let mut child = runwire(&["import", "--url", &there.url(), file.to_str().unwrap()]).spawn().unwrap();
    there.wait_for_run("long");
    there.kill();
    let broken = child.wait().unwrap().code();
    there.restart();
    if broken != Some(0) {
        assert_eq!(broken, Some(3), "a server that is gone is exit code 3");
    }
    fine(&import(&there, &[file.to_str().unwrap()], ""));
    assert_eq!(tail(&there, "long", "runwire"), tail(&here, "long", "runwire"));
}

#[test]
fn a_server_that_is_not_there_is_told_and_nothing_is_left_behind() {
    let mut gone = Server::start();
    some_runs(&gone);
    let whole = export(&gone, &["--all"]).stdout;
    let file = gone.directory().join("none.ndjson");
    gone.kill();
    refused(&export(&gone, &["--all", "-o", file.to_str().unwrap()]), 3, "cannot reach");
    assert!(!Path::new(&file).exists() && !gone.directory().join("none.ndjson.part").exists());
    refused(&import(&gone, &[], whole), 3, "cannot reach");
    refused(&import(&gone, &["/nowhere/x"], ""), 3, "cannot read /nowhere/x");
}

#[test]
fn an_export_is_not_poured_over_a_terminal_unless_it_is_asked_for() {
    let server = Server::start();
    some_runs(&server);
    let mut terminal = Terminal::start(&mut runwire(&["export", "r1", "--url", &server.url()]), 100);
    assert_eq!(terminal.wait().code(), Some(2));
    assert!(terminal.shows("-o FILE") && !terminal.shows("runwire.export"));
    let mut terminal =
        Terminal::start(&mut runwire(&["export", "r1", "-o", "-", "--url", &server.url()]), 100);
    assert_eq!(terminal.wait().code(), Some(0));
    assert!(terminal.shows("runwire.export.end"));
}
