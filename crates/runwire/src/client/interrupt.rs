//! Signals and a closed standard output, which end a command early.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::screen;

/// Offset of a shell's exit codes for signals.
pub(crate) const SIGNAL_EXIT_BASE: u8 = 128;

/// How long a command may take to exit after a signal, as its output may block.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Text to print on a signal during a blocking prompt.
static FAREWELL: Mutex<Option<String>> = Mutex::new(None);

/// Runs a blocking prompt; on a signal, the process prints the farewell and exits.
pub(crate) fn with_farewell<T>(farewell: String, ask: impl FnOnce() -> T) -> T {
    let say = |said| *FAREWELL.lock().unwrap_or_else(PoisonError::into_inner) = said;
    say(Some(farewell));
    let asked = ask();
    say(None);
    asked
}

/// Receives the first signal that ends a command. The process exits soon after it in any case.
pub(crate) struct Interrupt(mpsc::Receiver<InterruptCause>);

/// Why a command ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterruptCause {
    /// A signal.
    Signal(u8),
    /// The reader of standard output is gone.
    OutputClosed,
}

impl Interrupt {
    /// Handles SIGINT, SIGTERM, SIGHUP and SIGQUIT; Control-C where there is no Unix.
    ///
    /// They are received on a separate thread, as writing to a blocked reader blocks the runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(2);
        let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        #[cfg(unix)]
        watch_for_closed_stdout(sender.clone());
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let mut signals = match OsSignals::listen() {
                    Ok(signals) => signals,
                    Err(error) => return drop(begun.send(Err(error))),
                };
                let _ = begun.send(Ok(()));
                let first = signals.next().await;
                if let Some(farewell) = FAREWELL.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    screen::say_plainly(format_args!("\n{farewell}"));
                    std::process::exit(i32::from(SIGNAL_EXIT_BASE + first));
                }
                // The receiver is dropped if the command is ending already.
                let _ = sender.try_send(InterruptCause::Signal(first));
                let second = tokio::time::timeout(EXIT_TIMEOUT, signals.next()).await;
                std::process::exit(i32::from(SIGNAL_EXIT_BASE + second.unwrap_or(first)));
            });
        });
        has_begun.recv().map_err(io::Error::other)??;
        Ok(Self(receiver))
    }

    /// Returns an interrupt that a sender triggers instead of a signal.
    pub(crate) fn manual() -> (mpsc::Sender<InterruptCause>, Self) {
        let (sender, receiver) = mpsc::channel(1);
        (sender, Self(receiver))
    }

    /// Waits for a signal, and returns its number.
    pub(crate) async fn signal(&mut self) -> u8 {
        loop {
            if let InterruptCause::Signal(number) = self.cause().await {
                return number;
            }
        }
    }

    /// Waits for a signal; fails with a broken pipe if standard output is closed.
    pub(crate) async fn signal_or_closed_output(&mut self) -> Result<u8, Failure> {
        match self.cause().await {
            InterruptCause::Signal(number) => Ok(number),
            InterruptCause::OutputClosed => Err(Failure::Write(io::ErrorKind::BrokenPipe.into())),
        }
    }

    async fn cause(&mut self) -> InterruptCause {
        match self.0.recv().await {
            Some(cause) => cause,
            None => std::future::pending().await,
        }
    }
}

/// Polls standard output for a closed pipe while nothing is written to it (`runwire tail r1 | head -1`).
#[cfg(unix)]
fn watch_for_closed_stdout(sender: mpsc::Sender<InterruptCause>) {
    use rustix::event::{PollFd, PollFlags, poll};

    std::thread::spawn(move || {
        let stdout = io::stdout();
        loop {
            // Without requested events, `poll` only reports errors.
            let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut watched, None) {
                Ok(_) if watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                    let _ = sender.try_send(InterruptCause::OutputClosed);
                    return;
                }
                Err(rustix::io::Errno::INTR) => {}
                // An output that cannot be polled fails on the next write.
                _ => return,
            }
        }
    });
}

/// The signals that end a command.
#[cfg(unix)]
pub(crate) struct OsSignals([(u8, tokio::signal::unix::Signal); 4]);

#[cfg(unix)]
impl OsSignals {
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let taken = |number: u8, kind| signal(kind).map(|signal| (number, signal));
        Ok(Self([
            taken(2, SignalKind::interrupt())?,
            taken(15, SignalKind::terminate())?,
            taken(1, SignalKind::hangup())?,
            taken(3, SignalKind::quit())?,
        ]))
    }

    /// Waits for the next signal's number.
    pub(crate) async fn next(&mut self) -> u8 {
        std::future::poll_fn(|context| {
            let come = self
                .0
                .iter_mut()
                .find_map(|(number, signal)| signal.poll_recv(context).is_ready().then_some(*number));
            come.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        })
        .await
    }
}

#[cfg(not(unix))]
pub(crate) struct OsSignals;

#[cfg(not(unix))]
impl OsSignals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) -> u8 {
        let _ = tokio::signal::ctrl_c().await;
        2
    }
}
