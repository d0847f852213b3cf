//! A program and everything that it starts, as far as that stays with it.

use std::io;
use std::process::ExitStatus;

use tokio::process::{Child, Command};

#[cfg(unix)]
use super::keeper::Keeper;
use super::stopping::Step;

const KILL: u8 = 9;
const TERMINATE: u8 = 15;

/// A program, in a process group of its own. Whoever lets go of it ends all of them.
#[derive(Debug)]
pub struct Group {
    /// The program itself.
    pub child: Child,
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    /// Ends all of them if this process cannot.
    #[cfg(unix)]
    _keeper: Option<Keeper>,
}

impl Group {
    /// Starts a program, with the streams that the command says.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.kill_on_drop(true);
        // What the terminal sends to the group in front is for this process, which passes it on, or ends its programs
        // in order.
        #[cfg(unix)]
        let keeper = Keeper::start()
            .inspect_err(
                |error| tracing::warn!(%error, "a program may outlive this process, should it be killed"),
            )
            .ok();
        #[cfg(unix)]
        let kept = keeper.as_ref().and_then(Keeper::group);
        #[cfg(unix)]
        command.process_group(kept.unwrap_or(0));
        let child = command.spawn()?;
        #[cfg(unix)]
        let leader = kept.or(child.id().and_then(|id| i32::try_from(id).ok()));
        Ok(Self {
            child,
            #[cfg(unix)]
            leader: leader.and_then(rustix::process::Pid::from_raw),
            #[cfg(unix)]
            _keeper: keeper,
        })
    }

    /// Takes a step towards the end of all of them.
    pub fn step(&mut self, step: Step) {
        self.signal(match step {
            Step::Terminate => TERMINATE,
            Step::Kill => KILL,
        });
    }

    /// Sends a signal to all of them. Those that are gone need none.
    #[cfg(unix)]
    pub fn signal(&mut self, number: u8) {
        let signal = rustix::process::Signal::from_named_raw(number.into());
        if let (Some(leader), Some(signal)) = (self.leader, signal) {
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }

    /// Ends the program: there are no signals here that it could take for anything else.
    #[cfg(not(unix))]
    pub fn signal(&mut self, _: u8) {
        let _ = self.child.start_kill();
    }

    /// Ends whatever the program has left behind, once, after its own end.
    pub fn sweep_up(&mut self) {
        self.step(Step::Kill);
        // The number may be another's from here on.
        #[cfg(unix)]
        {
            self.leader = None;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.step(Step::Kill);
    }
}

/// Tells the number of the signal that ended a program.
#[cfg(unix)]
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// Tells nothing: there are no signals here.
#[cfg(not(unix))]
pub fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}
