//! A private Redis server.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::error::EngineError;
use crate::folder::{self, User};
use crate::process::{Process, end_of};
use crate::{programs, proxy};

/// Attempts to start: another process may be on the port.
const MAX_STARTS: usize = 10;
/// Timeout of a command.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Options of a Redis server.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    /// Whether its port uses TLS, with a self-signed certificate.
    pub tls: bool,
    /// The password that clients need.
    pub password: Option<String>,
}

/// A private Redis server without persistence; it ends when it is dropped.
#[derive(Debug)]
pub struct Redis {
    process: Option<Process>,
    options: RedisOptions,
    program: PathBuf,
    user: Option<User>,
    port: u16,
    certificate: Option<Certificate>,
    folder: TempDir,
}

impl Redis {
    /// Starts a server.
    pub fn start() -> Result<Self, EngineError> {
        Self::start_with(RedisOptions::default())
    }

    /// Starts a server with options.
    pub fn start_with(options: RedisOptions) -> Result<Self, EngineError> {
        let program = programs::redis()?;
        let user = User::for_engines()?;
        let folder = folder::make(user)?;
        let certificate = options.tls.then(|| Certificate::sign(folder.path(), user)).transpose()?;
        let port = proxy::free_port()?;
        let mut server = Self { process: None, options, program, user, port, certificate, folder };
        let mut result = server.restart();
        for _ in 1..MAX_STARTS {
            if result.is_ok() {
                break;
            }
            server.port = proxy::free_port()?;
            result = server.restart();
        }
        result.map(|()| server)
    }

    /// Restarts the server, empty, on the same port.
    pub fn restart(&mut self) -> Result<(), EngineError> {
        self.stop();
        let log = self.folder.path().join("log");
        // Do not report the errors of an earlier start.
        let _ = fs::remove_file(&log);
        let mut process = Process::start(self.command(), self.user, &log)?;
        if process.wait_until(|| self.send_command(&["PING"]).is_ok_and(|answer| answer == "+PONG")) {
            self.process = Some(process);
            return Ok(());
        }
        Err(EngineError::Failed { what: "redis-server did not get ready".to_owned(), log: end_of(&log) })
    }

    /// Stops the server gracefully.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal(Signal::CONT);
            process.end(Signal::TERM);
        }
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Pauses the server: connections stay open without responses.
    pub fn pause(&mut self) {
        if let Some(process) = &mut self.process {
            process.signal(Signal::STOP);
        }
    }

    /// Resumes a paused server.
    pub fn resume(&mut self) {
        if let Some(process) = &mut self.process {
            process.signal(Signal::CONT);
        }
    }

    /// Deletes all keys.
    pub fn flush(&self) -> Result<(), EngineError> {
        self.query(&["FLUSHALL"]).map(|_| ())
    }

    /// Terminates all client connections.
    pub fn cut_connections(&self) -> Result<(), EngineError> {
        for kind in ["normal", "pubsub"] {
            self.query(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"])?;
        }
        Ok(())
    }

    /// Runs a command, and returns its raw reply without the last line break.
    pub fn query(&self, words: &[&str]) -> Result<String, EngineError> {
        let answer = self.send_command(words).map_err(EngineError::system(words.join(" ")))?;
        match answer.strip_prefix('-') {
            Some(refusal) => Err(EngineError::Failed { what: words.join(" "), log: refusal.to_owned() }),
            None => Ok(answer),
        }
    }

    /// Returns the server's URL.
    pub fn url(&self) -> String {
        self.url_by(self.address())
    }

    /// Returns the server's URL through another address, such as a proxy's.
    pub fn url_by(&self, address: SocketAddr) -> String {
        let scheme = if self.certificate.is_some() { "rediss" } else { "redis" };
        let password = self.options.password.as_ref().map(|word| format!(":{word}@")).unwrap_or_default();
        format!("{scheme}://{password}{address}")
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Returns the server's self-signed certificate as PEM.
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_ref().map(|certificate| certificate.pem.as_str())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn command(&self) -> Command {
        let port = self.port.to_string();
        let mut command = Command::new(&self.program);
        let mut set = |name: &str, value: &Path| {
            command.arg(format!("--{name}")).arg(value);
        };
        set("bind", Path::new("127.0.0.1"));
        set("dir", self.folder.path());
        set("unixsocket", &self.socket());
        set("save", Path::new(""));
        if let Some(word) = &self.options.password {
            set("requirepass", Path::new(word));
        }
        match &self.certificate {
            None => set("port", Path::new(&port)),
            Some(certificate) => {
                set("port", Path::new("0"));
                set("tls-port", Path::new(&port));
                set("tls-cert-file", &certificate.file);
                set("tls-key-file", &certificate.key_file);
                set("tls-ca-cert-file", &certificate.file);
                set("tls-auth-clients", Path::new("no"));
            }
        }
        command
    }

    /// Sends a command over the Unix socket. The reply is one line, or the lines that arrived with it.
    fn send_command(&self, words: &[&str]) -> std::io::Result<String> {
        let mut stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        if let Some(word) = &self.options.password {
            ask(&mut stream, &["AUTH", word])?;
        }
        ask(&mut stream, words)
    }
}

fn ask(stream: &mut UnixStream, words: &[&str]) -> std::io::Result<String> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    while !answer.ends_with(b"\r\n") {
        match stream.read(&mut chunk)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            length => answer.extend_from_slice(&chunk[..length]),
        }
    }
    Ok(String::from_utf8_lossy(&answer).trim_end().to_owned())
}
