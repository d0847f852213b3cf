//! A server of its own for a test of writing: killed in the middle of things, started again where it was; and a
//! connection to it that loses what it is told to lose.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runwire_client::Client;
use runwire_client::model::Event;
use runwire_client::write::{EngineBuilder, StreamingEngine};
use runwire_log::Log;
use runwire_log::sqlite::{SqliteOptions, SqliteLog};
use runwire_server::{Config, Server};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use futures_util::StreamExt;

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for what must happen soon.
pub(crate) async fn patient<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened for a long time")
}

/// Waits until something is so.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    patient(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
    directory: TempDir,
    lease: Duration,
}

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::with_lease(SqliteOptions::default().lease).await
    }

    pub(crate) async fn with_lease(lease: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (runtime, address) = serve(&directory, ([127, 0, 0, 1], 0).into(), lease).await;
        Self { address, runtime: Some(runtime), directory, lease }
    }

    /// Ends the server at once: every connection breaks, nothing is said or flushed.
    pub(crate) fn kill(&mut self) {
        self.runtime.take().expect("the server runs").shutdown_background();
    }

    /// Starts a server that was killed again: the same port, the same store.
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
        StreamingEngine::builder(run).patience(PATIENCE)
    }

    pub(crate) fn engine(&self, run: &str) -> StreamingEngine {
        self.builder(run).server(&self.client()).unwrap()
    }

    /// Reads what a run has come to so far.
    pub(crate) async fn events(&self, run: &str) -> Vec<Event> {
        let events = self.client().run(run).events().follow(false);
        patient(events.map(|received| received.unwrap().event).collect()).await
    }

    /// Reads the texts of the run, one after another.
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

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) fn client_of(address: SocketAddr) -> Client {
    let wait = Duration::from_millis(10);
    Client::builder().url(format!("http://{address}")).waits(wait, 10 * wait).build().unwrap()
}

/// Starts a server on a runtime of its own, which can be ended like a process.
async fn serve(directory: &TempDir, listen: SocketAddr, lease: Duration) -> (Runtime, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let path = directory.path().join("runwire.db");
    let server = patient(async {
        loop {
            // The store and the port of the one before are free a moment after it is gone.
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

/// A way to a server that can lose answers: the request arrives, and its sender never learns of it.
pub(crate) struct Lossy {
    pub(crate) address: SocketAddr,
    lose: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Lossy {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (lose, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (losing, losing_count) = (lose.clone(), lost.clone());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, server, losing.clone(), losing_count.clone()));
            }
        });
        Self { address, lose, lost, task }
    }

    /// Loses the next answers, and the connections that they come on.
    pub(crate) fn lose(&self, answers: usize) {
        self.lose.store(answers, Ordering::SeqCst);
    }

    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(client: TcpStream, server: SocketAddr, lose: Arc<AtomicUsize>, lost: Arc<AtomicUsize>) {
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
