//! A real server that a test can kill and restart, and a proxy to it that loses responses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runwire_client::Client;
use runwire_client::model::Event;
use runwire_client::write::{EngineBuilder, StreamingEngine};
use runwire_log::Log;
use runwire_log::sqlite::{SqliteLog, SqliteOptions};
use runwire_server::{Config, Server};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use futures_util::StreamExt;

/// Upper bound for any passing test step.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for a future that must complete soon.
pub(crate) async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("nothing happened for a long time")
}

/// Waits until a condition holds.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    within_timeout(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
    directory: TempDir,
    lease: Duration,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with_lease(SqliteOptions::default().lease).await
    }

    pub(crate) async fn with_lease(lease: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (runtime, address) = serve(&directory, ([127, 0, 0, 1], 0).into(), lease).await;
        Self { address, runtime: Some(runtime), directory, lease }
    }

    /// Kills the server: every connection breaks, nothing is flushed.
    pub(crate) fn kill(&mut self) {
        self.runtime.take().expect("the server runs").shutdown_background();
    }

    /// Restarts a killed server with the same port and store.
    pub(crate) async fn restart(&mut self) {
        assert!(self.runtime.is_none());
        let (runtime, address) = serve(&self.directory, self.address, self.lease).await;
        assert_eq!(address, self.address);
        self.runtime = Some(runtime);
    }

    pub(crate) fn client(&self) -> Client {
        client_of(self.address)
    }

    pub(crate) fn builder(&self, run: &str) -> EngineBuilder {
        StreamingEngine::builder(run).retry_timeout(TIMEOUT)
    }

    pub(crate) fn engine(&self, run: &str) -> StreamingEngine {
        self.builder(run).server(&self.client()).unwrap()
    }

    /// Reads the events of a run so far.
    pub(crate) async fn events(&self, run: &str) -> Vec<Event> {
        let events = self.client().run(run).events().follow(false);
        within_timeout(events.map(|received| received.unwrap().event).collect()).await
    }

    /// Reads the text of the run so far.
    pub(crate) async fn text(&self, run: &str) -> String {
        use runwire_client::model::Body;
        let events = self.events(run).await;
        let pieces = events.iter().filter_map(|event| match &event.body {
            Body::TextDelta(delta) => Some(delta.content.as_str()),
            _ => None,
        });
        pieces.collect()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) fn client_of(address: SocketAddr) -> Client {
    let wait = Duration::from_millis(10);
    Client::builder().url(format!("http://{address}")).retry_delays(wait, 10 * wait).build().unwrap()
}

/// Starts a server on its own runtime, which can be killed like a process.
async fn serve(directory: &TempDir, listen: SocketAddr, lease: Duration) -> (Runtime, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let path = directory.path().join("runwire.db");
    let server = within_timeout(async {
        loop {
            // The former server frees its store and port a moment after it was killed.
            let path = path.clone();
            let started = runtime.spawn(async move {
                let log = SqliteLog::open(&path, SqliteOptions { lease, ..SqliteOptions::default() })
                    .map_err(|error| error.to_string())?;
                let log: Arc<dyn Log> = Arc::new(log);
                let config = Config { listen, ..Config::default() };
                Server::bind(config, log).map_err(|error| error.to_string())
            });
            match started.await.unwrap() {
                Ok(server) => break server,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await;
    let address = server.address();
    drop(runtime.spawn(server.run(std::future::pending())));
    (runtime, address)
}

/// A proxy that can lose responses: the request arrives, and its sender never learns of it.
pub(crate) struct LossyProxy {
    pub(crate) address: SocketAddr,
    lose: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl LossyProxy {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (lose, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (losing, losing_count) = (lose.clone(), lost.clone());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server, losing.clone(), losing_count.clone()));
            }
        });
        Self { address, lose, lost, task }
    }

    /// Loses the next responses and their connections.
    pub(crate) fn lose(&self, answers: usize) {
        self.lose.store(answers, Ordering::SeqCst);
    }

    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }
}

impl Drop for LossyProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(client: TcpStream, server: SocketAddr, lose: Arc<AtomicUsize>, lost: Arc<AtomicUsize>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let there = async move {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
        let _ = to_server.shutdown().await;
    };
    let back = async move {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let count = from_server.read(&mut bytes).await.unwrap_or(0);
            if count == 0 {
                return;
            }
            let less = lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if less.is_ok() {
                lost.fetch_add(1, Ordering::SeqCst);
                return;
            }
            if to_client.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! { () = there => {}, () = back => {} }
}
