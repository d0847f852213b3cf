//! A PostgreSQL server of one's own.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::error::EngineError;
use crate::folder::{self, User};
use crate::process::{Process, end_of};
use crate::template::{self, SUPERUSER};
use crate::{programs, proxy};

/// How often a start is tried: what a killed server leaves behind may be in the way for a moment, and so may somebody
/// else on the port.
const STARTS: usize = 10;

/// How a PostgreSQL server is set up.
#[derive(Debug, Clone, Default)]
pub struct PostgresOptions {
    /// Whether it waits for the disk. What a test kills is a process, not a machine: without it nothing is lost either.
    pub fsync: bool,
    /// Whether it offers TLS, with a certificate that it signed itself.
    pub tls: bool,
    /// Further settings, as `name=value`.
    pub settings: Vec<String>,
}

/// A PostgreSQL server of one's own; it ends when it is dropped.
#[derive(Debug)]
pub struct Postgres {
    process: Option<Process>,
    options: PostgresOptions,
    programs: PathBuf,
    user: Option<User>,
    port: u16,
    certificate: Option<Certificate>,
    folder: TempDir,
}

impl Postgres {
    /// Starts a server that does not wait for the disk.
    pub fn start() -> Result<Self, EngineError> {
        Self::start_with(PostgresOptions::default())
    }

    /// Starts a server.
    pub fn start_with(options: PostgresOptions) -> Result<Self, EngineError> {
        let programs = programs::postgres()?;
        let user = User::for_engines()?;
        let folder = folder::make(user)?;
        template::make(&programs, &folder.path().join("data"), user)?;
        let certificate = options.tls.then(|| Certificate::sign(folder.path(), user)).transpose()?;
        let port = proxy::free_port()?;
        let mut server = Self { process: None, options, programs, user, port, certificate, folder };
        let mut result = server.restart();
        for _ in 1..STARTS {
            if result.is_ok() {
                break;
            }
            server.port = proxy::free_port()?;
            result = server.restart();
        }
        result.map(|()| server)
    }

    /// Starts the server again on the same data and port; one that runs is stopped before.
    pub fn restart(&mut self) -> Result<(), EngineError> {
        self.stop();
        let mut result = self.launch();
        for _ in 1..STARTS {
            // The only thing that passes by itself: what a killed server has left is still held by its children.
            if !matches!(&result, Err(EngineError::Failed { log, .. }) if log.contains("still in use")) {
                break;
            }
            result = self.launch();
        }
        result
    }

    /// Stops the server as an operator does: connections are closed, everything is written.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal_all(Signal::CONT);
            process.end(Signal::INT);
        }
    }

    /// Kills the server and everything that belongs to it, without a word.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Pauses the server: connections stay open, and nothing answers.
    pub fn pause(&mut self) {
        if let Some(process) = &mut self.process {
            process.signal_all(Signal::STOP);
        }
    }

    /// Lets a paused server go on.
    pub fn resume(&mut self) {
        if let Some(process) = &mut self.process {
            process.signal_all(Signal::CONT);
        }
    }

    /// Cuts all connections, and tells how many there were.
    pub fn cut_connections(&self) -> Result<usize, EngineError> {
        let cut = self.query(
            "postgres",
            "select count(pg_terminate_backend(pid)) from pg_stat_activity \
             where pid <> pg_backend_pid() and backend_type = 'client backend'",
        )?;
        Ok(cut.parse().unwrap_or_default())
    }

    /// Creates a database, and tells its URL.
    pub fn create_database(&self, name: &str) -> Result<String, EngineError> {
        self.query("postgres", &format!("create database \"{}\"", name.replace('"', "\"\"")))?;
        Ok(self.url(name))
    }

    /// Runs a statement in a database, as a superuser, and tells what it gave: a line a row, `|` between columns.
    pub fn query(&self, database: &str, statement: &str) -> Result<String, EngineError> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]);
        command.args(["--username", SUPERUSER, "--dbname", database, "--port", &self.port.to_string()]);
        command.arg("--host").arg(self.folder.path()).args(["--command", statement]);
        let output = command.output().map_err(EngineError::system("start psql"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(EngineError::Failed { what: format!("psql ended with {}", output.status), log })
    }

    /// Tells the URL of a database; `postgres` is always there.
    pub fn url(&self, database: &str) -> String {
        self.url_by(self.address(), database)
    }

    /// Tells the URL of a database by another address, that of a proxy.
    pub fn url_by(&self, address: SocketAddr, database: &str) -> String {
        let mode = if self.certificate.is_some() { "?sslmode=require" } else { "" };
        format!("postgres://{SUPERUSER}@{address}/{database}{mode}")
    }

    /// Tells the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Tells the folder with the server's socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Tells the certificate that the server signed itself, as PEM.
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_ref().map(|certificate| certificate.pem.as_str())
    }

    fn launch(&mut self) -> Result<(), EngineError> {
        let (log, data) = (self.folder.path().join("log"), self.folder.path().join("data"));
        // An older log would tell why an earlier start failed.
        let _ = fs::remove_file(&log);
        let mut process = Process::start(self.command(&data), self.user, &log)?;
        let lock = data.join("postmaster.pid");
        let number = process.number().to_string();
        // The file's first line is whose it is, its eighth how far that one is.
        let ready = || {
            let text = fs::read_to_string(&lock).unwrap_or_default();
            let mut lines = text.lines();
            lines.next() == Some(&number) && lines.nth(6).is_some_and(|status| status.trim() == "ready")
        };
        if process.wait_until(ready) {
            self.process = Some(process);
            return Ok(());
        }
        Err(EngineError::Failed { what: "postgres did not get ready".to_owned(), log: end_of(&log) })
    }

    fn command(&self, data: &Path) -> Command {
        let on = |yes| if yes { "on" } else { "off" };
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.folder.path().display()),
            format!("fsync={}", on(self.options.fsync)),
            format!("full_page_writes={}", on(self.options.fsync)),
            "max_connections=200".to_owned(),
            "shared_buffers=32MB".to_owned(),
            // In the data folder, so that a killed server leaves nothing elsewhere.
            "dynamic_shared_memory_type=mmap".to_owned(),
        ];
        if let Some(certificate) = &self.certificate {
            settings.push("ssl=on".to_owned());
            settings.push(format!("ssl_cert_file={}", certificate.file.display()));
            settings.push(format!("ssl_key_file={}", certificate.key_file.display()));
        }
        settings.extend(self.options.settings.iter().cloned());
        let mut command = Command::new(self.programs.join("postgres"));
        command.arg("-D").arg(data);
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Ends at once, and unlike a kill gives back the system's shared memory.
            process.signal_all(Signal::CONT);
            process.end(Signal::QUIT);
        }
    }
}
