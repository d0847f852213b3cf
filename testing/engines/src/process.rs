//! A server process that can be killed, stopped and paused.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::EngineError;
use crate::folder::User;
use crate::watchdog::EngineWatchdog;

/// How long an engine may take to become ready or to stop.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// Interval of polling meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes of the log in an error.
const MAX_LOG_BYTES: usize = 2000;

/// A running server.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    /// Kills the server if this process ends; dropped after the server has exited.
    _keeper: EngineWatchdog,
}

impl Process {
    /// Starts a server with its output in a log file.
    pub(crate) fn start(mut command: Command, user: Option<User>, log: &Path) -> Result<Self, EngineError> {
        let what = || EngineError::system(format!("start {}", command.get_program().display()));
        let failed = (what(), what(), what(), what());
        let file = File::options().create(true).append(true).open(log).map_err(failed.0)?;
        let copy = file.try_clone().map_err(failed.1)?;
        let mut watchdog = EngineWatchdog::start().map_err(failed.2)?;
        command.stdin(Stdio::null()).stdout(copy).stderr(file);
        command.current_dir("/").process_group(watchdog.group());
        if let Some(User { uid, gid }) = user {
            command.uid(uid).gid(gid);
        }
        let child = command.spawn().map_err(failed.3)?;
        let pid = Pid::from_child(&child);
        // Without the process id, the watchdog still kills the group.
        let _ = watchdog.watch(child.id());
        Ok(Self { child, pid, _keeper: watchdog })
    }

    /// Returns the process id.
    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server is ready; false if it has exited.
    pub(crate) fn wait_until(&mut self, mut ready: impl FnMut() -> bool) -> bool {
        let until = Instant::now() + TIMEOUT;
        while Instant::now() < until && !self.has_ended() {
            if ready() {
                return true;
            }
            thread::sleep(POLL_INTERVAL);
        }
        false
    }

    /// Returns true if the server has exited.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal to the server only, unless it has exited.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if !self.has_ended() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Sends a signal to the server and its children.
    ///
    /// The server comes first, so that it starts no further children.
    pub(crate) fn signal_all(&mut self, signal: Signal) {
        let before = self.children();
        self.signal(signal);
        for child in before.into_iter().chain(self.children()) {
            let _ = kill_process(child, signal);
        }
    }

    /// Stops the server with a signal, and kills it after the timeout.
    pub(crate) fn end(mut self, signal: Signal) {
        self.signal(signal);
        let until = Instant::now() + TIMEOUT;
        while Instant::now() < until && !self.has_ended() {
            thread::sleep(POLL_INTERVAL);
        }
        self.kill();
    }

    /// Kills the server and its children, and waits until all have exited.
    pub(crate) fn kill(mut self) {
        let children = self.children();
        self.signal_all(Signal::KILL);
        let _ = self.child.wait();
        let until = Instant::now() + TIMEOUT;
        while Instant::now() < until && children.iter().any(|child| is_there(*child)) {
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns the server's child processes.
    fn children(&mut self) -> Vec<Pid> {
        if self.has_ended() {
            return Vec::new();
        }
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let parent = self.pid.as_raw_nonzero().get();
        numbers.filter(|number| parent_of(*number) == Some(parent)).filter_map(Pid::from_raw).collect()
    }
}

/// Dropping it kills the server.
impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.signal_all(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Returns the end of a log.
pub(crate) fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(MAX_LOG_BYTES)..]).into_owned()
}

fn parent_of(process: i32) -> Option<i32> {
    after_name(process)?.get(1)?.parse().ok()
}

/// Returns true if a process exists and is not a zombie.
fn is_there(process: Pid) -> bool {
    let fields = after_name(process.as_raw_nonzero().get());
    fields.and_then(|fields| fields.first().cloned()).is_some_and(|state| state != "Z")
}

/// Reads the fields of `/proc/PID/stat` after the name, which may contain brackets.
fn after_name(process: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}
