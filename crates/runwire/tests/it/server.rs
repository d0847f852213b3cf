//! A `runwire serve` process that a test can kill and restart.
//!
//! ```ignore
//! let mut server = Server::start();
//! let pushed = run(&["push", "r1", "--url", &server.url()], frames);
//! server.kill();    // SIGKILL: nothing is flushed, nothing is said
//! server.restart(); // the same port, the same store
//! ```

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::command::{TIMEOUT, run, runwire};

const ANNOUNCEMENT: &str = "runwire listening on http://";

/// A `runwire serve` in a temporary directory.
pub(crate) struct Server {
    directory: TempDir,
    arguments: Vec<String>,
    address: SocketAddr,
    child: Option<Child>,
}

/// How much a server may write.
#[derive(Debug, Clone, Copy)]
enum Disk {
    Whole,
    /// A few hundred kilobytes in each file.
    Small,
}

impl Server {
    /// Starts a server on a port that is free.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with further arguments: `&["--lease", "1"]`. `--store` names another store than one of its own.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        Self::start_on(Disk::Whole, arguments)
    }

    /// Starts a server whose directory has this `runwire.toml`.
    pub(crate) fn configured(file: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("runwire.toml"), file).unwrap();
        Self::start_in(directory, Disk::Whole, &[])
    }

    /// Starts a server whose files cannot grow far: its store fails soon. Restarted, it has the whole disk.
    pub(crate) fn start_on_a_small_disk() -> Self {
        Self::start_on(Disk::Small, &[])
    }

    fn start_on(disk: Disk, arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), disk, arguments)
    }

    fn start_in(directory: TempDir, disk: Disk, arguments: &[&str]) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let (child, address) = spawn(directory.path(), disk, any_port, &arguments)
            .unwrap_or_else(|said| panic!("the server did not start:\n{said}"));
        Self { directory, arguments, address, child: Some(child) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`, as `--url` takes it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where the server runs: its store, its log, and whatever the test puts there.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.directory.path().join("runwire.db")
    }

    /// What the server has written to standard error so far, all its lives together.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(log_file(self.directory.path())).unwrap_or_default()
    }

    /// Waits until a run exists: until the first frame of a body that stays open is durable.
    pub(crate) fn wait_for_run(&self, run_id: &str) {
        let begun = Instant::now();
        while run(&["tail", run_id, "--no-follow", "--url", &self.url()], "").code != 0 {
            assert!(begun.elapsed() < TIMEOUT, "there is no run {run_id}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills the server with SIGKILL: nothing is flushed.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().expect("the server runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Restarts the server with the same port, store and arguments.
    pub(crate) fn restart(&mut self) {
        assert!(self.child.is_none(), "end the server before it is restarted");
        let begun = Instant::now();
        loop {
            match spawn(self.directory.path(), Disk::Whole, self.address, &self.arguments) {
                Ok((child, address)) => {
                    assert_eq!(address, self.address);
                    self.child = Some(child);
                    return;
                }
                // The port was free a moment ago; somebody's outgoing connection may hold it for another.
                Err(said) => assert!(begun.elapsed() < TIMEOUT, "the server did not come back:\n{said}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asks the server to stop, without waiting.
    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("the server runs");
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// Returns the id of the server's process.
    #[cfg(target_os = "linux")]
    pub(crate) fn process(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// Returns the server's resident memory.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident_bytes(&self) -> u64 {
        let child = self.child.as_ref().expect("the server runs");
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Waits for the server's end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("the server runs");
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            if begun.elapsed() > TIMEOUT {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the server did not end:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops the server in an orderly way.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }
}

impl Drop for Server {
    #[expect(clippy::print_stderr, reason = "a test that fails tells what its server said")]
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("what the server logged:\n{}", self.log());
        }
    }
}

/// Starts the binary and waits for the line that tells its address; otherwise tells what it said instead.
fn spawn(
    directory: &Path,
    disk: Disk,
    address: SocketAddr,
    arguments: &[String],
) -> Result<(Child, SocketAddr), String> {
    let log = File::options().create(true).append(true).open(log_file(directory)).unwrap();
    let said_before = log.metadata().unwrap().len();
    let mut command = match disk {
        Disk::Whole => runwire(&[]),
        Disk::Small => {
            let mut shell = Command::new("sh");
            let limited = "trap '' XFSZ; ulimit -f 800; exec \"$0\" \"$@\"";
            shell.args(["-c", limited, env!("CARGO_BIN_EXE_runwire")]);
            shell
        }
    };
    let own_store = if arguments.iter().any(|argument| argument == "--store") {
        &[][..]
    } else {
        &["--store", "sqlite:runwire.db"]
    };
    let mut child = command
        .args(["serve", "--listen", &address.to_string()])
        .args(own_store)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::from(log))
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    match line.trim_end().strip_prefix(ANNOUNCEMENT).map(str::parse) {
        Some(Ok(address)) => {
            // Whatever it prints later must not fill the pipe and stop it.
            std::thread::spawn(move || stdout.read_to_end(&mut Vec::new()));
            Ok((child, address))
        }
        _ => {
            let _ = child.kill();
            let status = child.wait().unwrap();
            let said = fs::read_to_string(log_file(directory)).unwrap_or_default();
            let said = said.get(usize::try_from(said_before).unwrap()..).unwrap_or_default();
            Err(format!("{status}\n{line}{said}"))
        }
    }
}

fn log_file(directory: &Path) -> PathBuf {
    directory.join("server.log")
}
