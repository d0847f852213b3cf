//! `runwire exec`: answers, cancel requests, signals and restarts of the server.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::command::{TIMEOUT, run, runwire};
use crate::server::Server;

/// A program that runs as run `r1`, in the server's directory.
struct Program {
    child: Child,
}

impl Program {
    fn start(server: &Server, options: &[&str], script: &str) -> Self {
        let url = server.url();
        let all = [&["exec", "--url", &url, "--run", "r1"], options, &["--", "sh", "-c", script]].concat();
        let mut command = runwire(&all);
        command.current_dir(server.directory()).stdin(Stdio::null()).stdout(Stdio::null());
        Self { child: command.spawn().unwrap() }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end; returns the exit code and standard error.
    fn wait(mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if begun.elapsed() > TIMEOUT {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

fn wait_for(file: &Path) {
    let begun = Instant::now();
    while !fs::exists(file).unwrap() {
        assert!(begun.elapsed() < TIMEOUT, "there is no {}", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn events(server: &Server) -> Vec<Value> {
    let read = run(&["tail", "r1", "-o", "ndjson", "--url", &server.url()], "");
    read.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn cancel(server: &Server) {
    let cancelled = run(&["cancel", "r1", "--reason", "enough 够了", "--url", &server.url()], "");
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
}

const BEGIN: &str = "echo '{\"type\":\"run.started\"}'; touch begun;";

#[test]
fn what_becomes_of_a_question_arrives_on_the_programs_stdin() {
    let server = Server::start();
    let script = format!(
        "{BEGIN} echo '{{\"type\":\"interaction.requested\",\"interaction_id\":\"q\",\"kind\":\"approval\",\"name\":\"x\"}}'
        echo '{{\"type\":\"interaction.resolved\",\"interaction_id\":\"q\",\"decision\":\"cancelled\"}}'
        read answer; echo \"$answer\" > answer"
    );
    let (code, said) = Program::start(&server, &[], &script).wait();
    assert_eq!(code, Some(0), "{said}");
    let answer = fs::read_to_string(server.directory().join("answer")).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let of = |field: &str| answer[field].as_str().unwrap();
    assert_eq!((of("type"), of("interaction_id"), of("run_id")), ("interaction.resolved", "q", "r1"));
}

#[test]
fn a_cancel_is_read_by_the_program_which_may_end_in_its_own_words() {
    let server = Server::start();
    let script = format!(
        "{BEGIN} read cancel; echo \"$cancel\" > cancel
        echo '{{\"type\":\"run.cancelled\",\"reason\":\"as you wish\"}}'; exit 4"
    );
    let program = Program::start(&server, &[], &script);
    wait_for(&server.directory().join("begun"));
    cancel(&server);
    let (code, said) = program.wait();
    assert_eq!(code, Some(4), "{said}");
    let told: Value =
        serde_json::from_str(&fs::read_to_string(server.directory().join("cancel")).unwrap()).unwrap();
    // A run that is not running yet is cancelled at once, which is told too.
    assert!(["run.cancel_requested", "run.cancelled"].contains(&told["type"].as_str().unwrap()), "{told}");
    assert_eq!(told["reason"], "enough 够了");
    assert_eq!(events(&server).last().unwrap()["type"], "run.cancelled");
}

#[test]
fn a_program_that_does_not_read_is_told_by_a_signal() {
    let server = Server::start();
    let script = format!("trap 'exit 6' TERM; {BEGIN} while :; do sleep 0.05; done");
    let program = Program::start(&server, &[], &script);
    server.wait_for_run("r1");
    wait_for(&server.directory().join("begun"));
    cancel(&server);
    assert_eq!(program.wait().0, Some(6));
    let events = events(&server);
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["reason"]), (&"run.cancelled".into(), &"enough 够了".into()));
}

#[test]
fn a_program_that_ignores_everything_is_killed_with_all_that_it_started() {
    let server = Server::start();
    let script = format!(
        "trap '' TERM INT; {BEGIN} (trap '' TERM; while :; do sleep 0.05; date > child; done) & while :; do sleep 0.05; done"
    );
    let program = Program::start(&server, &["--grace", "0.1"], &script);
    wait_for(&server.directory().join("child"));
    cancel(&server);
    // Standard error ends when the last that has it open is gone.
    assert_eq!(program.wait().0, Some(137));
    assert_eq!(events(&server).last().unwrap()["type"], "run.cancelled");
}

#[test]
fn a_command_that_is_killed_takes_a_stubborn_program_and_its_children_along() {
    let server = Server::start();
    let script = format!(
        "trap '' TERM INT PIPE; {BEGIN} (trap '' TERM PIPE; while :; do sleep 0.05; date > child; done) & while :; do sleep 0.05; done"
    );
    let program = Program::start(&server, &[], &script);
    wait_for(&server.directory().join("child"));
    program.signal(Signal::KILL);
    // Standard error ends when the last that has it open is gone.
    assert_eq!(program.wait().0, None);
}

#[test]
fn signals_are_passed_on_to_the_program() {
    for (signal, name, code) in [(Signal::INT, "INT", 7), (Signal::TERM, "TERM", 8), (Signal::HUP, "HUP", 9)]
    {
        let server = Server::start();
        let script = format!("trap 'exit {code}' {name}; {BEGIN} while :; do sleep 0.05; done");
        let program = Program::start(&server, &[], &script);
        wait_for(&server.directory().join("begun"));
        program.signal(signal);
        assert_eq!(program.wait().0, Some(code));
        assert_eq!(events(&server).last().unwrap()["error"]["details"]["exit_code"], code);
    }
}

#[test]
fn a_second_interrupt_kills() {
    let server = Server::start();
    let script = format!("trap 'touch first' INT; {BEGIN} while :; do sleep 0.05; done");
    let program = Program::start(&server, &[], &script);
    wait_for(&server.directory().join("begun"));
    program.signal(Signal::INT);
    wait_for(&server.directory().join("first"));
    program.signal(Signal::INT);
    assert_eq!(program.wait().0, Some(137));
    assert_eq!(events(&server).last().unwrap()["error"]["code"], "killed");
}

#[test]
fn a_server_that_is_killed_and_restarted_costs_no_line_and_repeats_none() {
    let mut server = Server::start();
    let script = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); \
        echo \"{\\\"type\\\":\\\"text.delta\\\",\\\"message_id\\\":\\\"m\\\",\\\"content\\\":\\\"$i \\\"}\"; \
        if [ $i = 100 ]; then touch half; while [ ! -e away ]; do sleep 0.02; done; fi; \
        if [ $i = 200 ]; then touch more; fi; done";
    let program = Program::start(&server, &[], script);
    let directory = server.directory().to_owned();
    wait_for(&directory.join("half"));
    server.kill();
    fs::write(directory.join("away"), "").unwrap();
    wait_for(&directory.join("more"));
    server.restart();
    let (code, said) = program.wait();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("trying again"), "{said}");
    let expected: String = (1..=300).map(|i| format!("{i} ")).collect();
    let text = run(&["tail", "r1", "-o", "text", "--url", &server.url()], "").stdout;
    assert_eq!(text.trim_end(), expected.trim_end());
    assert_eq!(events(&server).last().unwrap()["type"], "run.completed");
}

#[test]
fn a_person_who_does_not_want_to_wait_for_a_server_can_leave() {
    let mut server = Server::start();
    let script = format!(
        "{BEGIN} while [ ! -e away ]; do sleep 0.02; done; echo '{{\"type\":\"text.delta\",\"content\":\"x\"}}'; touch ended"
    );
    let mut program = Program::start(&server, &["-q"], &script);
    wait_for(&server.directory().join("begun"));
    server.kill();
    fs::write(server.directory().join("away"), "").unwrap();
    wait_for(&server.directory().join("ended"));
    // The first signals may still find the program, which ends by itself.
    let begun = Instant::now();
    while program.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < TIMEOUT);
        program.signal(Signal::TERM);
        std::thread::sleep(Duration::from_millis(50));
    }
    let (code, said) = program.wait();
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("what is missing of run r1 is lost"), "{said}");
}

#[test]
fn a_program_that_has_closed_its_output_keeps_its_run_until_it_ends() {
    let server = Server::start_with(&["--lease", "4"]);
    let script = format!("{BEGIN} exec >&-; while [ ! -e enough ]; do sleep 0.05; done; exit 0");
    let program = Program::start(&server, &[], &script);
    wait_for(&server.directory().join("begun"));
    // Another run, which nobody keeps, tells when a lease is over.
    let frame = "{\"type\":\"run.started\"}\n";
    assert_eq!(run(&["push", "r2", "--dialect", "runwire", "--url", &server.url()], frame).code, 0);
    assert_eq!(run(&["tail", "r2", "--exit-status", "--url", &server.url()], "").code, 1);
    fs::write(server.directory().join("enough"), "").unwrap();
    assert_eq!(program.wait().0, Some(0));
    assert_eq!(events(&server).last().unwrap()["type"], "run.completed");
}

#[test]
fn a_server_that_stands_still_makes_the_program_wait_and_not_the_memory_grow() {
    const MEGABYTES: usize = 60;
    let server = Server::start();
    let frame = format!("{{\"type\":\"custom\",\"name\":\"x\",\"value\":\"{}\"}}\n", "x".repeat(1000));
    fs::write(server.directory().join("megabyte"), frame.repeat((1 << 20) / frame.len())).unwrap();
    let script = format!(
        "{BEGIN} while [ ! -e still ]; do sleep 0.02; done; i=0; \
         while [ $i -lt {MEGABYTES} ]; do i=$((i+1)); cat megabyte; echo $i > written; done"
    );
    let program = Program::start(&server, &["-q", "--dialect", "runwire"], &script);
    wait_for(&server.directory().join("begun"));
    server.wait_for_run("r1");
    server.signal(Signal::STOP);
    fs::write(server.directory().join("still"), "").unwrap();
    let written = || {
        let count = fs::read_to_string(server.directory().join("written")).unwrap_or_default();
        count.trim().parse::<usize>().unwrap_or(0)
    };
    // Until it has not moved for a while; less than it could have written is no fault of a slow machine.
    let (mut last, mut same) = (0, 0);
    while same < 20 && last < MEGABYTES {
        std::thread::sleep(Duration::from_millis(25));
        same = if written() == last { same + 1 } else { 0 };
        last = written();
    }
    assert!(last < 10, "the program has written {last} MiB that nobody took");
    server.signal(Signal::CONT);
    program.signal(Signal::INT);
    program.signal(Signal::INT);
    assert_ne!(program.wait().0, Some(0));
}
