//! A pseudo-terminal of any size for a command.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::command::TIMEOUT;

/// A command at a terminal, and what that shows.
pub(crate) struct Terminal {
    child: Child,
    output: Receiver<Vec<u8>>,
    pub(crate) screen: vt100::Parser,
    /// Everything that was written to it.
    pub(crate) written: Vec<u8>,
    /// Where a person types.
    input: File,
    /// Keeps the terminal there: what was written to one that nobody has open is lost.
    _held: File,
}

impl Terminal {
    /// Starts a command on a terminal of so many columns.
    pub(crate) fn start(command: &mut Command, columns: u16) -> Self {
        const ROWS: u16 = 40;
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let held = open();
        command.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("COLUMNS");
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
        let mut master = File::from(master);
        let input = master.try_clone().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count) = master.read(&mut piece) {
                if count == 0 || sender.send(piece[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let screen = vt100::Parser::new(ROWS, columns, 1000);
        Self { child, output, screen, written: Vec::new(), input, _held: held }
    }

    /// Waits until the terminal shows this.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.shows(text) {
            let left = TIMEOUT.saturating_sub(begun.elapsed());
            match self.output.recv_timeout(left) {
                Ok(piece) => self.take(&piece),
                Err(_) => panic!("`{text}` is not shown:\n{}", self.screen.screen().contents()),
            }
        }
    }

    /// Types a line.
    pub(crate) fn types(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn shows(&self, text: &str) -> bool {
        self.screen.screen().contents().contains(text)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the command's end and takes what it has still written.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < TIMEOUT, "it does not end:\n{}", self.screen.screen().contents());
            if let Ok(piece) = self.output.recv_timeout(std::time::Duration::from_millis(10)) {
                self.take(&piece);
            }
        };
        // What was written before the end is in the terminal; a mark behind it tells when all was read.
        Write::write_all(&mut self._held, b"\x1b[0m\x07<the end>").unwrap();
        while !self.written.ends_with(b"\x07<the end>") {
            let piece = self.output.recv_timeout(TIMEOUT).unwrap();
            self.take(&piece);
        }
        status
    }

    fn take(&mut self, piece: &[u8]) {
        self.screen.process(piece);
        self.written.extend_from_slice(piece);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
