//! Ctrl-C, and what else ends a command from outside.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::screen;

/// What shells add to a signal's number where it ended a process.
pub(crate) const BY_SIGNAL: u8 = 128;

/// How long a command may take to leave; one that cannot write to its output any more is ended.
const LEAVING_TIME: Duration = Duration::from_secs(2);

/// What to say to a person who leaves while being asked: whoever waits for the signal otherwise waits for the answer.
static FAREWELL: Mutex<Option<String>> = Mutex::new(None);

/// Asks a person who may leave at any time, and is then told this.
pub(crate) fn or_leave<T>(farewell: String, ask: impl FnOnce() -> T) -> T {
    let say = |said| *FAREWELL.lock().unwrap_or_else(PoisonError::into_inner) = said;
    say(Some(farewell));
    let asked = ask();
    say(None);
    asked
}

/// Waits for the first signal that ends a command. After it, and a little time, nothing holds the process.
pub(crate) struct Interrupt(mpsc::Receiver<Cause>);

/// Why a command leaves before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A signal says so.
    Signal(u8),
    /// Nobody reads the output any more.
    ReaderGone,
}

impl Interrupt {
    /// Takes over SIGINT, SIGTERM, SIGHUP and SIGQUIT; elsewhere than on Unix, Control-C.
    ///
    /// They are waited for on a thread of their own: whoever writes to a reader that does not read stands still.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(2);
        let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        #[cfg(unix)]
        notice_a_reader_that_leaves(sender.clone());
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let mut signals = match Signals::listen() {
                    Ok(signals) => signals,
                    Err(error) => return drop(begun.send(Err(error))),
                };
                let _ = begun.send(Ok(()));
                let first = signals.next().await;
                if let Some(farewell) = FAREWELL.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    screen::say_plainly(format_args!("\n{farewell}"));
                    std::process::exit(i32::from(BY_SIGNAL + first));
                }
                // Where nobody waits any more, the command is ending already.
                let _ = sender.try_send(Cause::Signal(first));
                let second = tokio::time::timeout(LEAVING_TIME, signals.next()).await;
                std::process::exit(i32::from(BY_SIGNAL + second.unwrap_or(first)));
            });
        });
        has_begun.recv().map_err(io::Error::other)??;
        Ok(Self(receiver))
    }

    /// Waits for somebody else's word instead of a signal.
    pub(crate) fn by_hand() -> (mpsc::Sender<Cause>, Self) {
        let (sender, receiver) = mpsc::channel(1);
        (sender, Self(receiver))
    }

    /// Waits for a signal's number.
    pub(crate) async fn come(&mut self) -> u8 {
        loop {
            if let Cause::Signal(number) = self.cause().await {
                return number;
            }
        }
    }

    /// Waits for a signal's number, or for the reader of the output to leave, which the next write would meet.
    pub(crate) async fn come_or_no_reader(&mut self) -> Result<u8, Failure> {
        match self.cause().await {
            Cause::Signal(number) => Ok(number),
            Cause::ReaderGone => Err(Failure::Write(io::ErrorKind::BrokenPipe.into())),
        }
    }

    async fn cause(&mut self) -> Cause {
        match self.0.recv().await {
            Some(cause) => cause,
            None => std::future::pending().await,
        }
    }
}

/// Notices a pipe without a reader although nothing is written to it (`runwire tail r1 | head -1`).
#[cfg(unix)]
fn notice_a_reader_that_leaves(sender: mpsc::Sender<Cause>) {
    use rustix::event::{PollFd, PollFlags, poll};

    std::thread::spawn(move || {
        let stdout = io::stdout();
        loop {
            // Nothing is asked for: what comes is only that it is broken.
            let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut watched, None) {
                Ok(_) if watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                    let _ = sender.try_send(Cause::ReaderGone);
                    return;
                }
                Err(rustix::io::Errno::INTR) => {}
                // An output that cannot be watched is found out by writing to it.
                _ => return,
            }
        }
    });
}

/// The signals that end a command.
#[cfg(unix)]
pub(crate) struct Signals([(u8, tokio::signal::unix::Signal); 4]);

#[cfg(unix)]
impl Signals {
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
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) -> u8 {
        let _ = tokio::signal::ctrl_c().await;
        2
    }
}
