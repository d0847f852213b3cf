//! The store of a cluster passes the suite.
//!
//! `RUNWIRE_TEST_POSTGRES` names a server to test with, as `host=… user=…`; without it each test starts one of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use runwire_log::Log;
use runwire_log::conformance::{Bed, Timing};
use runwire_log::postgres::{Options, Postgres};

/// A schema that a test has for itself.
pub(crate) struct PostgresBed {
    url: String,
    _server: Option<Server>,
}

impl PostgresBed {
    pub(crate) fn new() -> Self {
        let server = match std::env::var("RUNWIRE_TEST_POSTGRES") {
            Ok(_) => None,
            Err(_) => Some(Server::start()),
        };
        let named = || std::env::var("RUNWIRE_TEST_POSTGRES").unwrap();
        let base = server.as_ref().map_or_else(named, |server| {
            format!("host={} user=postgres dbname=postgres", server.folder.path().display())
        });
        let schema = format!("test_{}", uuid::Uuid::now_v7().simple());
        std::thread::scope(|scope| scope.spawn(|| create(&base, &schema)).join().unwrap());
        Self { url: format!("{base} options='-c search_path={schema}'"), _server: server }
    }
}

fn create(base: &str, schema: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(base, tokio_postgres::NoTls).await.unwrap();
        let driven = tokio::spawn(connection);
        client.batch_execute(&format!("CREATE SCHEMA {schema}")).await.unwrap();
        drop(client);
        driven.await.unwrap().unwrap();
    });
}

#[async_trait]
impl Bed for PostgresBed {
    async fn open(&self, timing: Timing) -> Arc<dyn Log> {
        let options = Options { lease: timing.lease, cancel_grace: timing.cancel_grace };
        let url = self.url.clone();
        // Opening waits, which a thread of the runtime must not.
        let opened = tokio::task::spawn_blocking(move || Postgres::open(&url, &options).unwrap());
        Arc::new(opened.await.unwrap())
    }

    async fn reopen(&self, log: Arc<dyn Log>, timing: Timing) -> Arc<dyn Log> {
        log.close().await;
        drop(log);
        self.open(timing).await
    }
}

/// A Postgres of its own, reached by a socket in its folder.
struct Server {
    folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        if is_root() {
            // Postgres does not run as root.
            run(Command::new("chown").arg("postgres").arg(folder.path()));
        }
        run(unprivileged("initdb").args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"]).arg(&data));
        let options = format!(
            "-c listen_addresses='' -c max_connections=200 -c unix_socket_directories={}",
            folder.path().display()
        );
        let log = folder.path().join("log");
        run(unprivileged("pg_ctl")
            .arg("-D")
            .arg(&data)
            .arg("-l")
            .arg(&log)
            .args(["-o", &options, "-w", "start"]));
        Self { folder }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let data = self.folder.path().join("data");
        let _ = unprivileged("pg_ctl").arg("-D").arg(&data).args(["-m", "immediate", "stop"]).output();
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0)
}

fn unprivileged(program: &str) -> Command {
    let program = program_of_postgres(program);
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

/// Debian keeps the server's programs out of the search path.
fn program_of_postgres(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = versions.map(|version| version.path().join("bin").join(name)).collect();
    found.sort();
    found.into_iter().rfind(|path| path.exists()).unwrap_or_else(|| Path::new(name).to_owned())
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

runwire_log::log_conformance!(PostgresBed::new());
