//! A server as a child process: its address, CPU time and memory.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::{client, frame};
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
    /// `durable-streams-server`, or the reference server of the same protocol.
    DurableStreams,
    /// nginx with nchan, or the relay in front of Redis: a path to publish to, and one to subscribe to.
    PubSub,
}

impl ServerKind {
    /// Renders the request that must come before the first event of a run, if there is one.
    pub(crate) fn begin_request(self, run: &str) -> Option<Vec<u8>> {
        match self {
            Self::Runwire => {
                Some(client::post(&frame::write_path(run), frame::CONTENT_TYPE, &frame::typical(run)))
            }
            Self::DurableStreams => Some(client::request("PUT", &format!("/{run}"), PLAIN, &[], b"")),
            Self::Floor | Self::PubSub => None,
        }
    }

    /// Renders a request that writes events.
    pub(crate) fn write_request(self, run: &str, events: &[u8]) -> Vec<u8> {
        match self {
            Self::Runwire | Self::Floor => client::post(&frame::write_path(run), frame::CONTENT_TYPE, events),
            Self::DurableStreams => client::post(&format!("/{run}"), PLAIN, events),
            Self::PubSub => client::post(&format!("/pub?id={run}"), PLAIN, events),
        }
    }

    /// Renders a request that follows a run as server-sent events, from its end.
    pub(crate) fn read_request(self, run: &str) -> Vec<u8> {
        let path = match self {
            Self::Runwire => frame::read_path(run),
            Self::Floor => "/broadcast".to_owned(),
            Self::DurableStreams => format!("/{run}?offset=now&live=sse"),
            Self::PubSub => format!("/sub?id={run}"),
        };
        client::get(&path, "text/event-stream")
    }
}

/// The content type of events in servers that store bytes.
const PLAIN: &str = "text/plain";

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
        Self::start_at(kind, command, None)
    }

    /// Starts a server that does not print the address that it was told to listen at.
    pub(crate) fn start_at(
        kind: ServerKind,
        command: &mut Command,
        known: Option<SocketAddr>,
    ) -> Result<Self, Failure> {
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
        let address = match known {
            None => address.recv_timeout(START).ok(),
            Some(known) => is_listening(known, &mut child).then_some(known),
        };
        match address {
            Some(address) => Ok(Self { kind, address, child, last_lines }),
            None => {
                // It may have exited.
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("the server did not say where it listens\n{}", text_of(&last_lines)).into())
            }
        }
    }

    /// Reads its CPU time and that of its workers, user and system.
    pub(crate) fn cpu_time(&self) -> Result<Duration, Failure> {
        let ticks: u64 = self.processes().map(|process| process.ticks).sum();
        if ticks == 0 && self.processes().next().is_none() {
            return Err("no CPU time in /proc".into());
        }
        Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
    }

    /// Reads its resident memory and that of its workers, in KiB.
    pub(crate) fn resident_kibibytes(&self) -> Result<f64, Failure> {
        let resident = |process: ProcessStat| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", process.id)).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
        };
        let resident: Vec<f64> = self.processes().filter_map(resident).collect();
        if resident.is_empty() {
            Err("no resident memory in /proc".into())
        } else {
            Ok(resident.iter().sum())
        }
    }

    /// Lists the process and its children.
    fn processes(&self) -> impl Iterator<Item = ProcessStat> {
        let server = self.child.id();
        let ids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter_map(ProcessStat::read).filter(move |stat| stat.id == server || stat.parent == server)
    }
}

/// A process, as `/proc` shows it.
struct ProcessStat {
    id: u32,
    parent: u32,
    /// CPU time, user and system.
    ticks: u64,
}

impl ProcessStat {
    fn read(id: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The program's name in brackets may hold blanks; after it come the state, the parent, and much later the times.
        let (_, values) = stat.rsplit_once(')')?;
        let values: Vec<&str> = values.split_ascii_whitespace().collect();
        let number = |at: usize| values.get(at)?.parse::<u64>().ok();
        let parent = u32::try_from(number(1)?).ok()?;
        Some(Self { id, parent, ticks: number(11)? + number(12)? })
    }
}

/// Waits until a server accepts connections.
fn is_listening(address: SocketAddr, child: &mut Child) -> bool {
    let until = Instant::now() + START;
    while Instant::now() < until {
        if TcpStream::connect(address).is_ok() {
            return true;
        }
        if !matches!(child.try_wait(), Ok(None)) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
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
