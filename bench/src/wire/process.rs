//! A server as a child process: its address, CPU time and memory.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::Failure;

/// How long a server may take until it prints its address.
const START: Duration = Duration::from_secs(20);

/// Lines of output that are kept for the error if the server exits.
const LAST_LINES: usize = 20;

type LastLines = Arc<Mutex<VecDeque<String>>>;

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// `runwire serve`.
    Runwire,
    /// The same HTTP stack with nothing behind it.
    Floor,
}

/// A server that runs until this value is dropped.
pub(crate) struct ServerProcess {
    pub(crate) kind: ServerKind,
    pub(crate) address: SocketAddr,
    child: Child,
    last_lines: LastLines,
}

impl ServerProcess {
    /// Starts a server and waits until it prints its address.
    pub(crate) fn start(kind: ServerKind, command: &mut Command) -> Result<Self, Failure> {
        // Do not inherit the settings of this environment.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"RUNWIRE_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
        let (found, address) = mpsc::channel();
        let last_lines = LastLines::default();
        if let Some(stdout) = child.stdout.take() {
            read_lines(stdout, found.clone(), Arc::clone(&last_lines));
        }
        if let Some(stderr) = child.stderr.take() {
            read_lines(stderr, found, Arc::clone(&last_lines));
        }
        match address.recv_timeout(START) {
            Ok(address) => Ok(Self { kind, address, child, last_lines }),
            Err(_) => {
                // It may have exited.
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("the server did not say where it listens\n{}", text_of(&last_lines)).into())
            }
        }
    }

    /// Reads its CPU time, user and system.
    pub(crate) fn cpu_time(&self) -> Result<Duration, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The program's name in brackets may hold blanks; the times are the 12th and 13th field after it.
        let values = stat.rsplit_once(')').map_or("", |(_, values)| values).split_ascii_whitespace();
        let ticks: Vec<u64> = values.skip(11).take(2).map_while(|value| value.parse().ok()).collect();
        let [user, system] = ticks[..] else { return Err("no CPU time in /proc".into()) };
        let per_second = rustix::param::clock_ticks_per_second();
        Ok(Duration::from_secs_f64((user + system) as f64 / per_second as f64))
    }

    /// Reads its resident memory, in KiB.
    pub(crate) fn resident_kibibytes(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let value = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        Ok(value.ok_or("no resident memory in /proc")?)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            eprintln!("the server ended by itself with {status}\n{}", text_of(&self.last_lines));
            return;
        }
        // It may have exited since.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads output to its end, so that the server never blocks on a full pipe.
fn read_lines(from: impl Read + Send + 'static, found: mpsc::Sender<SocketAddr>, last_lines: LastLines) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if let Some(address) = address_in(&line) {
                // Only the first address is used.
                let _ = found.send(address);
            }
            let mut last_lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner);
            if last_lines.len() == LAST_LINES {
                last_lines.pop_front();
            }
            last_lines.push_back(line);
        }
    });
}

fn text_of(last_lines: &LastLines) -> String {
    let last_lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner);
    last_lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// Finds a loopback address in a line.
fn address_in(line: &str) -> Option<SocketAddr> {
    let from = line.find("127.0.0.1:")?;
    let address = line[from..].split(|letter: char| !(letter.is_ascii_digit() || ".:".contains(letter)));
    address
        .into_iter()
        .next()?
        .trim_end_matches(['.', ':'])
        .parse()
        .ok()
        .filter(|address: &SocketAddr| address.port() != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_what_a_server_says() {
        let expected = Some(SocketAddr::from(([127, 0, 0, 1], 7420)));
        for line in
            ["listening on http://127.0.0.1:7420", "127.0.0.1:7420.", "at http://127.0.0.1:7420/v1 now"]
        {
            assert_eq!(address_in(line), expected, "{line}");
        }
        for line in ["", "listening", "--listen 127.0.0.1:0", "127.0.0.1"] {
            assert_eq!(address_in(line), None, "{line}");
        }
    }
}
