//! A private PostgreSQL server.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::data_template::{self, SUPERUSER};
use crate::error::EngineError;
use crate::folder::{self, User};
use crate::process::{Process, end_of};
use crate::{programs, proxy};

/// Attempts to start: leftovers of a killed server or another process on the port may be in the way.
const MAX_STARTS: usize = 10;

/// Options of a PostgreSQL server.
#[derive(Debug, Clone, Default)]
pub struct PostgresOptions {
    /// Whether it waits for the disk. Not needed if only processes are killed.
    pub fsync: bool,
    /// Whether it offers TLS, with a self-signed certificate.
    pub tls: bool,
    /// Further settings, as `name=value`.
    pub settings: Vec<String>,
}

/// A private PostgreSQL server; it ends when it is dropped.
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
        data_template::make(&programs, &folder.path().join("data"), user)?;
        let certificate = options.tls.then(|| Certificate::sign(folder.path(), user)).transpose()?;
        let port = proxy::free_port()?;
        let mut server = Self { process: None, options, programs, user, port, certificate, folder };
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

    /// Restarts the server on the same data and port.
    pub fn restart(&mut self) -> Result<(), EngineError> {
        self.stop();
        let mut result = self.launch();
        for _ in 1..MAX_STARTS {
            // Children of the killed server still hold its resources: retry.
            if !matches!(&result, Err(EngineError::Failed { log, .. }) if log.contains("still in use")) {
                break;
            }
            result = self.launch();
        }
        result
    }

    /// Stops the server gracefully.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal_all(Signal::CONT);
            process.end(Signal::INT);
        }
    }

    /// Kills the server and its children.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Pauses the server: connections stay open without responses.
    pub fn pause(&mut self) {
        if let Some(process) = &mut self.process {
            process.signal_all(Signal::STOP);
        }
    }

    /// Resumes a paused server.
    pub fn resume(&mut self) {
        if let Some(process) = &mut self.process {
            process.signal_all(Signal::CONT);
        }
    }

    /// Terminates all connections, and returns their number.
    pub fn cut_connections(&self) -> Result<usize, EngineError> {
        let cut = self.query(
            "postgres",
            "select count(pg_terminate_backend(pid)) from pg_stat_activity \
             where pid <> pg_backend_pid() and backend_type = 'client backend'",
        )?;
        Ok(cut.parse().unwrap_or_default())
    }

    /// Creates a database, and returns its URL.
    pub fn create_database(&self, name: &str) -> Result<String, EngineError> {
        self.query("postgres", &format!("create database \"{}\"", name.replace('"', "\"\"")))?;
        Ok(self.url(name))
    }

    /// Runs a statement as a superuser, and returns the rows as lines, with `|` between columns.
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

    /// Returns the URL of a database; `postgres` always exists.
    pub fn url(&self, database: &str) -> String {
        self.url_by(self.address(), database)
    }

    /// Returns the URL of a database through another address, such as a proxy's.
    pub fn url_by(&self, address: SocketAddr, database: &str) -> String {
        let mode = if self.certificate.is_some() { "?sslmode=require" } else { "" };
        format!("postgres://{SUPERUSER}@{address}/{database}{mode}")
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Returns the folder with the server's socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the server's self-signed certificate as PEM.
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_ref().map(|certificate| certificate.pem.as_str())
    }

    fn launch(&mut self) -> Result<(), EngineError> {
        let (log, data) = (self.folder.path().join("log"), self.folder.path().join("data"));
        // Do not report the errors of an earlier start.
        let _ = fs::remove_file(&log);
        let mut process = Process::start(self.command(&data), self.user, &log)?;
        let lock = data.join("postmaster.pid");
        let number = process.number().to_string();
        // The first line of the PID file is the process, the eighth its status.
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
            // In the data folder, so that a killed server leaves nothing else behind.
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
            // An immediate shutdown frees the shared memory, unlike a kill.
            process.signal_all(Signal::CONT);
            process.end(Signal::QUIT);
        }
    }
}
