//! The program and everything that it starts, as far as that stays with it.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::answers::Step;

/// A program, at the head of a process group of its own.
pub(super) struct Group {
    pub(super) child: Child,
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

/// What becomes of the program's standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stderr {
    /// It is ours.
    Ours,
    /// The view draws it, because it owns the terminal.
    Drawn,
}

impl Group {
    /// Starts a program.
    pub(super) fn start(command: &[OsString], with_stdin: bool, stderr: Stderr) -> io::Result<Self> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(if with_stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(if stderr == Stderr::Ours { Stdio::inherit() } else { Stdio::piped() })
            .kill_on_drop(true);
        // What the terminal sends to the group in front reaches this command alone, which passes it on once.
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn()?;
        #[cfg(unix)]
        let leader =
            child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Ok(Self {
            child,
            #[cfg(unix)]
            leader,
        })
    }

    /// Takes a step towards the end.
    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Nothing => {}
            Step::Terminate => self.signal(15),
            Step::Kill => self.signal(9),
        }
    }

    /// Sends a signal to all of them. Those that are gone need none.
    #[cfg(unix)]
    pub(super) fn signal(&mut self, number: u8) {
        let signal = rustix::process::Signal::from_named_raw(number.into());
        if let (Some(leader), Some(signal)) = (self.leader, signal) {
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }

    /// Ends the program: there are no signals here that it could take for anything else.
    #[cfg(not(unix))]
    pub(super) fn signal(&mut self, _: u8) {
        let _ = self.child.start_kill();
    }
}
