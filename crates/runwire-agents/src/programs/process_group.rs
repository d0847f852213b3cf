//! A child process and its descendants, as one process group.

use std::io;
use std::process::ExitStatus;

use tokio::process::{Child, Command};

use super::graceful_stop::StopStep;
#[cfg(unix)]
use super::watchdog::Watchdog;

const KILL: u8 = 9;
const TERMINATE: u8 = 15;

/// A program in its own process group; dropping it kills the group.
#[derive(Debug)]
pub struct ProcessGroup {
    /// The program itself.
    pub child: Child,
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    /// Kills the group if this process dies.
    #[cfg(unix)]
    _watchdog: Option<Watchdog>,
}

impl ProcessGroup {
    /// Starts a program with the standard streams of the command.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.kill_on_drop(true);
        // Signals of the terminal go to this process only, which forwards them or stops its programs in order.
        #[cfg(unix)]
        let watchdog = Watchdog::start()
            .inspect_err(
                |error| tracing::warn!(%error, "a program may outlive this process, should it be killed"),
            )
            .ok();
        #[cfg(unix)]
        let watchdog_group = watchdog.as_ref().and_then(Watchdog::group);
        #[cfg(unix)]
        command.process_group(watchdog_group.unwrap_or(0));
        let child = command.spawn()?;
        #[cfg(unix)]
        let leader = watchdog_group.or(child.id().and_then(|id| i32::try_from(id).ok()));
        Ok(Self {
            child,
            #[cfg(unix)]
            leader: leader.and_then(rustix::process::Pid::from_raw),
            #[cfg(unix)]
            _watchdog: watchdog,
        })
    }

    /// Applies a step of a graceful stop to the group.
    pub fn step(&mut self, step: StopStep) {
        self.signal(match step {
            StopStep::Terminate => TERMINATE,
            StopStep::Kill => KILL,
        });
    }

    /// Sends a signal to the group; ignores processes that have exited.
    #[cfg(unix)]
    pub fn signal(&mut self, number: u8) {
        let signal = rustix::process::Signal::from_named_raw(number.into());
        if let (Some(leader), Some(signal)) = (self.leader, signal) {
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }

    /// Kills the program: this platform has no signals.
    #[cfg(not(unix))]
    pub fn signal(&mut self, _: u8) {
        let _ = self.child.start_kill();
    }

    /// Kills the remaining processes of the group, once, after the program has exited.
    pub fn kill_remaining(&mut self) {
        self.step(StopStep::Kill);
        // The kernel may reuse the group id from here on.
        #[cfg(unix)]
        {
            self.leader = None;
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.step(StopStep::Kill);
    }
}

/// Returns the number of the signal that killed a program.
#[cfg(unix)]
pub fn exit_signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// Returns none: this platform has no signals.
#[cfg(not(unix))]
pub fn exit_signal(_: ExitStatus) -> Option<i32> {
    None
}
