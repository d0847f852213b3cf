//! A watchdog process that kills a program's process group when this process dies.
//!
//! A killed process cannot clean up its children. So a shell leads the program's process group and reads from a pipe
//! that only this process holds. The pipe closes when this process ends, however it ends; then the shell kills the
//! group and itself. It starts before the program, so the program is never unguarded.

use std::io;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// Ignores signals to the group, which are for the program; only SIGKILL ends the watchdog early.
const SCRIPT: &str = "trap '' HUP INT QUIT TERM USR1 USR2 ALRM; read -r nothing; kill -s KILL -- -$$";

/// The leader of a program's process group.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// Holds the pipe and reaps the process.
    child: Child,
}

impl Watchdog {
    /// Starts a watchdog as the leader of a new group.
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        Ok(Self { child: command.spawn()? })
    }

    /// Returns the id of its group.
    pub(super) fn group(&self) -> Option<i32> {
        self.child.id().and_then(|id| i32::try_from(id).ok())
    }
}
