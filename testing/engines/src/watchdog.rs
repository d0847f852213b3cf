//! A watchdog that kills an engine when the test process has ended, however that ended.
//!
//! It is a shell that leads the engine's process group and reads from a pipe that only this process holds. The pipe closes
//! with this process; then the shell kills the engine and the group, itself included.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use std::os::unix::process::CommandExt;

/// PostgreSQL's children leave its group. They exit with their parent unless they are paused, so `pkill` kills them by
/// parent, if it is installed.
const SCRIPT: &str = "trap '' HUP INT QUIT TERM USR1 USR2; read -r engine; read -r nothing; \
    pkill -KILL -P \"$engine\"; kill -s KILL -- -$$";

/// The process that leads an engine's group.
#[derive(Debug)]
pub(crate) struct EngineWatchdog {
    /// The shell, which holds the pipe.
    child: Child,
}

impl EngineWatchdog {
    /// Starts the shell as the leader of a new process group.
    pub(crate) fn start() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn()? })
    }

    /// Returns the id of its process group.
    pub(crate) fn group(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or_default()
    }

    /// Sets the process to kill.
    pub(crate) fn watch(&mut self, engine: u32) -> io::Result<()> {
        self.child.stdin.as_mut().map_or(Ok(()), |pipe| writeln!(pipe, "{engine}"))
    }
}

impl Drop for EngineWatchdog {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
