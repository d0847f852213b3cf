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
use crate::keeper::Keeper;

/// How long an engine may take to get ready, or to end when it was asked to.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked at meanwhile.
const PACE: Duration = Duration::from_millis(5);
/// Bytes of a log that an error shows.
const SHOWN: usize = 2000;

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    /// Ends the server if this process cannot; let go of after the server has ended.
    _keeper: Keeper,
}

impl Process {
    /// Starts a server; what it writes goes to a log.
    pub(crate) fn start(mut command: Command, user: Option<User>, log: &Path) -> Result<Self, EngineError> {
        let what = || EngineError::system(format!("start {}", command.get_program().display()));
        let failed = (what(), what(), what(), what());
        let file = File::options().create(true).append(true).open(log).map_err(failed.0)?;
        let copy = file.try_clone().map_err(failed.1)?;
        let mut keeper = Keeper::start().map_err(failed.2)?;
        command.stdin(Stdio::null()).stdout(copy).stderr(file);
        command.current_dir("/").process_group(keeper.group());
        if let Some(User { uid, gid }) = user {
            command.uid(uid).gid(gid);
        }
        let child = command.spawn().map_err(failed.3)?;
        let pid = Pid::from_child(&child);
        // A keeper that does not hear of it ends the group all the same.
        let _ = keeper.keep(child.id());
        Ok(Self { child, pid, _keeper: keeper })
    }

    /// Tells the number of the process.
    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server is ready; tells whether it is, or has ended.
    pub(crate) fn wait_until(&mut self, mut ready: impl FnMut() -> bool) -> bool {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.has_ended() {
            if ready() {
                return true;
            }
            thread::sleep(PACE);
        }
        false
    }

    /// Tells whether the server has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal to the server alone; one that has ended needs none.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if !self.has_ended() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Sends a signal to the server and to its children.
    ///
    /// The server comes first, so that it starts no others meanwhile.
    pub(crate) fn signal_all(&mut self, signal: Signal) {
        let before = self.children();
        self.signal(signal);
        for child in before.into_iter().chain(self.children()) {
            let _ = kill_process(child, signal);
        }
    }

    /// Asks the server to end, and kills it if it does not.
    pub(crate) fn end(mut self, signal: Signal) {
        self.signal(signal);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.has_ended() {
            thread::sleep(PACE);
        }
        self.kill();
    }

    /// Ends the server and its children without asking, and waits until all are gone.
    pub(crate) fn kill(mut self) {
        let children = self.children();
        self.signal_all(Signal::KILL);
        let _ = self.child.wait();
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && children.iter().any(|child| is_there(*child)) {
            thread::sleep(PACE);
        }
    }

    /// Lists the processes that the server started.
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

/// What lets go of it ends it.
impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.signal_all(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Shows the end of a log.
pub(crate) fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(SHOWN)..]).into_owned()
}

fn parent_of(process: i32) -> Option<i32> {
    after_name(process)?.get(1)?.parse().ok()
}

/// Tells whether a process is there and not just waiting to be reaped by somebody else.
fn is_there(process: Pid) -> bool {
    let fields = after_name(process.as_raw_nonzero().get());
    fields.and_then(|fields| fields.first().cloned()).is_some_and(|state| state != "Z")
}

/// Reads what the system tells of a process: state, parent, and so on. Its name may hold anything, also brackets.
fn after_name(process: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}
