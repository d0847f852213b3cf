//! A program and everything that it starts, as far as that stays with it.

use std::future::pending;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::Instant;

/// A program, at the head of a process group of its own. Whoever lets go of it ends all of them.
pub(super) struct Group {
    pub(super) child: Child,
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    /// Starts a program with all three of its streams.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // What the terminal sends to the group in front is for the server, which ends its agents in order.
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

    /// Asks all of them to end. Those that are gone need no asking.
    pub(super) fn terminate(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
        #[cfg(not(unix))]
        let _ = self.child.start_kill();
    }

    /// Ends all of them.
    pub(super) fn kill(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        #[cfg(not(unix))]
        let _ = self.child.start_kill();
    }

    #[cfg(unix)]
    fn signal(&mut self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }

    /// Ends whatever the program has left behind, once, after its own end.
    pub(super) fn sweep_up(&mut self) {
        self.kill();
        // The number may be another's from here on.
        #[cfg(unix)]
        {
            self.leader = None;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The way from a request to an end that cannot be refused.
#[derive(Debug)]
pub(super) struct Stopping {
    grace: Duration,
    next: Option<(Step, Instant)>,
    was_killed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Terminate,
    Kill,
}

impl Stopping {
    pub(super) fn new(grace: Duration) -> Self {
        Self { grace, next: None, was_killed: false }
    }

    /// Sees to it that the program is asked to end after some time; asking twice keeps the earlier time.
    pub(super) fn begin(&mut self, after: Duration) {
        let due = Instant::now() + after;
        match &mut self.next {
            None if !self.was_killed => self.next = Some((Step::Terminate, due)),
            Some((Step::Terminate, known)) => *known = (*known).min(due),
            _ => {}
        }
    }

    /// Waits for the next step, and goes on to the one after it.
    pub(super) async fn step(&mut self) -> Step {
        let Some((step, due)) = self.next else { return pending().await };
        tokio::time::sleep_until(due).await;
        self.next = match step {
            Step::Terminate => Some((Step::Kill, Instant::now() + self.grace)),
            Step::Kill => None,
        };
        self.was_killed |= step == Step::Kill;
        step
    }
}

/// Tells the number of the signal that ended a program.
#[cfg(unix)]
pub(super) fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
pub(super) fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_asked_then_killed() {
        let mut stopping = Stopping::new(Duration::ZERO);
        stopping.begin(Duration::from_secs(60));
        stopping.begin(Duration::ZERO);
        assert_eq!(stopping.step().await, Step::Terminate);
        stopping.begin(Duration::ZERO);
        assert_eq!(stopping.step().await, Step::Kill);
        stopping.begin(Duration::ZERO);
        assert!(tokio::time::timeout(Duration::from_millis(20), stopping.step()).await.is_err());
    }
}
