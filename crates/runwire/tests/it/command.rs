//! Runs the binary and captures its output.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Upper bound for any passing test step on a slow machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn runwire(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runwire"));
    // Do not inherit settings of the environment.
    let own = std::env::vars_os().map(|(name, _)| name);
    for name in own.filter(|name| name.to_string_lossy().starts_with("RUNWIRE_")) {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command on an input and waits for its end.
pub(crate) fn run(arguments: &[&str], input: impl AsRef<[u8]>) -> Outcome {
    run_command(&mut runwire(arguments), input)
}

/// Runs a command that a test has set up, on an input, and waits for its end.
pub(crate) fn run_command(command: &mut Command, input: impl AsRef<[u8]>) -> Outcome {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_ref().to_vec();
    let writer = std::thread::spawn(move || {
        // A command that stops at a bad frame reads no further.
        let _ = stdin.write_all(&input);
    });
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let pid = rustix::process::Pid::from_child(&child);
    let guard = std::thread::spawn(move || {
        // A command that hangs is killed, so that its test fails with a message.
        if is_done.recv_timeout(TIMEOUT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    guard.join().unwrap();
    writer.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    let code = output.status.code().expect("the command ends by itself, and in time");
    Outcome { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

pub(crate) fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

/// A document's example.
pub(crate) fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name);
    path.to_str().unwrap().to_owned()
}
