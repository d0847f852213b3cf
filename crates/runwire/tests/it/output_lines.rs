//! Reads the output of a running command line by line.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;

use crate::command::TIMEOUT;

pub(crate) struct Lines {
    child: Child,
    lines: Receiver<String>,
}

impl Lines {
    /// Starts a command; what it says on standard error is shown where a test fails.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while stdout.read_line(&mut line).is_ok_and(|count| count > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for the next line, with its end.
    pub(crate) fn next(&mut self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("another line comes in time")
    }

    pub(crate) fn next_json(&mut self) -> Value {
        serde_json::from_str(&self.next()).unwrap()
    }

    pub(crate) fn next_type(&mut self) -> String {
        self.next_json()["type"].as_str().unwrap().to_owned()
    }

    /// Takes all lines to the end of the output.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        let begun = Instant::now();
        let mut rest = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(TIMEOUT.saturating_sub(begun.elapsed())) {
            rest.push(line);
        }
        assert!(begun.elapsed() < TIMEOUT, "the output does not end");
        rest
    }

    /// Waits for the end of a command whose output has ended.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
