//! What ends a program when this process can no longer do it: one that waits for the end of this one.
//!
//! A process that is killed can end nobody, and nothing else tells a program's children that it is gone. So a shell
//! leads the program's process group and reads from a pipe that only this process holds. The pipe closes with this
//! process, however that ends; then the shell ends the group, and itself with it. It is there before the program is,
//! so there is no moment in which the program could be left alone.

use std::io;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// Whatever the group is sent is for the program; only SIGKILL ends the keeper before its time.
const KEEPS: &str = "trap '' HUP INT QUIT TERM USR1 USR2 ALRM; read -r nothing; kill -s KILL -- -$$";

/// The process that leads a program's group.
#[derive(Debug)]
pub(super) struct Keeper {
    /// Holds the pipe, and reaps the process.
    child: Child,
}

impl Keeper {
    /// Starts one, at the head of a group of its own.
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", KEEPS]).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        Ok(Self { child: command.spawn()? })
    }

    /// Tells the number of its group.
    pub(super) fn group(&self) -> Option<i32> {
        self.child.id().and_then(|id| i32::try_from(id).ok())
    }
}
