//! What ends an engine when the test can no longer do it: a shell that waits for the end of the test.
//!
//! The shell leads the engine's process group and reads from a pipe that only this process holds. The pipe closes with
//! this process, however that ends; then the shell ends the engine, the group, and itself with it.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use std::os::unix::process::CommandExt;

/// The children of PostgreSQL leave its group. They end with their parent unless they are paused, so they are killed
/// by name of that parent, where `pkill` is installed.
const KEEPS: &str = "trap '' HUP INT QUIT TERM USR1 USR2; read -r engine; read -r nothing; \
    pkill -KILL -P \"$engine\"; kill -s KILL -- -$$";

/// The process that leads an engine's group.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// Holds the pipe.
    child: Child,
}

impl Keeper {
    /// Starts one, at the head of a group of its own.
    pub(crate) fn start() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", KEEPS]).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn()? })
    }

    /// Tells the number of its group.
    pub(crate) fn group(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or_default()
    }

    /// Says which process it is to see to.
    pub(crate) fn keep(&mut self, engine: u32) -> io::Result<()> {
        self.child.stdin.as_mut().map_or(Ok(()), |pipe| writeln!(pipe, "{engine}"))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
