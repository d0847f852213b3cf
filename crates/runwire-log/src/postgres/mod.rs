//! The store of a cluster: Postgres is the truth, and any node writes to any thread.
//!
//! Whoever writes to a thread has locked its row until the commit, so the first commit wins every race. A node has
//! one thread that writes, and a few connections that read.

mod connection;
mod failure;
mod flush;
mod lists;
mod notices;
mod read;
mod retention;
mod rows;
mod schema;
mod tables;
mod writer;

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use runwire_model::dialect::Encoder;
use runwire_model::window::Window;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_postgres::Config;

use crate::append::{Append, Appended};
use crate::error::LogError;
use crate::figures::{Figures, Meter};
use crate::info::{Created, NewRun, NewThread, ProducerInfo, RunInfo, RunQuery, RunSpan, ThreadInfo};
use crate::interaction::{Answer, Answered, Interaction, InteractionPage, InteractionQuery};
use crate::key::{RunKey, ThreadKey};
use crate::moved::{Exported, Imported, Numbered, Part};
use crate::notice::{Notice, Subscriber, Told};
use crate::reading::{self, Rows};
use crate::tail::{Tail, Tails};
use crate::work::{Asked, Op};
use crate::{Cancel, Cancelled, Form, Log, Page, Retention, limits};
use connection::Connection;
use failure::{Db, Failure};
use read::Reader;
use rows::whole_number;
use writer::{Listeners, Order, Terms, Writer};

/// How the store behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a run may be silent.
    pub lease: Duration,
    /// How long a producer has to end a run that was asked to stop.
    pub cancel_grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(limits::LEASE_SECONDS),
            cancel_grace: Duration::from_secs(limits::CANCEL_SECONDS),
        }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// What names it cannot be read.
    #[error("the store cannot be named like that: {0}")]
    Unreadable(String),
    /// It cannot be reached or used.
    #[error("cannot open the store: {0}")]
    Unusable(String),
    /// A newer version has written it.
    #[error(
        "the store has schema version {found}, and this program knows versions up to {known}; use a newer runwire"
    )]
    Newer {
        /// The version that it has.
        found: u32,
        /// The newest version that is known here.
        known: u32,
    },
}

/// Connections that read.
const READERS: usize = 4;

/// A log in Postgres.
pub struct Postgres {
    config: Config,
    requests: mpsc::Sender<Order>,
    tails: Arc<Tails>,
    noticed: Arc<watch::Sender<()>>,
    meter: Arc<Meter>,
    idle: Arc<Mutex<Vec<Reader>>>,
    readers: Arc<Semaphore>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

impl Postgres {
    /// Opens a store, or makes its tables. Blocks while it connects and migrates.
    pub fn open(url: &str, options: &Options) -> Result<Self, OpenError> {
        let config = Config::from_str(url).map_err(|error| OpenError::Unreadable(error.to_string()))?;
        let unusable = |failure: Failure| OpenError::Unusable(failure.to_string());
        let connection = Connection::open(&config).map_err(unusable)?;
        let found = schema::migrate(&connection).map_err(unusable)?;
        if found > schema::newest() {
            return Err(OpenError::Newer { found, known: schema::newest() });
        }
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let terms = Terms { lease: millis(options.lease), grace: millis(options.cancel_grace) };
        renew_leases(&connection, terms).map_err(unusable)?;
        let tails = Arc::new(Tails::default());
        let noticed = Arc::new(watch::Sender::new(()));
        let meter = Arc::new(Meter::default());
        let (requests, inbox) = mpsc::channel(limits::WRITER_QUEUE);
        let listeners = Listeners { tails: tails.clone(), noticed: noticed.clone(), meter: meter.clone() };
        let writer = Writer::new(config.clone(), connection, terms, listeners);
        std::thread::Builder::new()
            .name("log-writer".into())
            .spawn(move || writer.run(inbox))
            .map_err(|error| OpenError::Unusable(error.to_string()))?;
        let (idle, readers) = (Arc::default(), Arc::new(Semaphore::new(READERS)));
        Ok(Self { config, requests, tails, noticed, meter, idle, readers })
    }

    async fn order<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<T, LogError>>) -> Order,
    ) -> Result<T, LogError> {
        let (reply, answer) = oneshot::channel();
        let stopped = || LogError::Unavailable("the store has stopped".into());
        self.requests.send(order(reply)).await.map_err(|_| stopped())?;
        let unknown = || LogError::Unavailable("the store failed; it is not known what was written".into());
        answer.await.map_err(|_| unknown())?
    }

    /// Has one of the log's verbs performed.
    async fn ask<Q, T: Send + 'static>(
        &self,
        request: Q,
        op: impl FnOnce(Asked<Q, T>) -> Op,
    ) -> Result<T, LogError> {
        self.order(|reply| Order::Op(op(Asked::new(request, reply)))).await
    }

    /// Uses a connection on a thread where waiting for it stops nobody.
    async fn using<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Reader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let stopped = |error: &dyn std::fmt::Display| LogError::Unavailable(error.to_string());
        let permit = self.readers.clone().acquire_owned().await.map_err(|error| stopped(&error))?;
        let (idle, config) = (self.idle.clone(), self.config.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let reader = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut reader = match reader.filter(|reader| !reader.connection.is_closed()) {
                Some(reader) => reader,
                None => Reader::new(Connection::open(&config)?),
            };
            let result = work(&mut reader);
            // After a failure nobody knows what state a connection is in.
            if !matches!(result, Err(LogError::Unavailable(_))) {
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            }
            result
        });
        reading.await.map_err(|error| stopped(&error))?
    }

    /// Reads at one moment.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        self.using(move |reader| reader.at_one_moment(read)?).await
    }
}

/// Gives every open run a full term: while no node was there, no producer could show a sign of life.
fn renew_leases(connection: &Connection, terms: Terms) -> Db<()> {
    let now = tables::now(connection)?.0;
    let sql = "UPDATE run SET lease_until = greatest(lease_until, $2) WHERE lease = $1";
    for (lease, term) in [(1_i16, terms.lease), (2_i16, terms.grace)] {
        connection.execute(sql, &[&lease, &whole_number(now.saturating_add(term))])?;
    }
    Ok(())
}

#[async_trait]
impl Log for Postgres {
    async fn create_thread(&self, thread: NewThread) -> Result<Created<ThreadInfo>, LogError> {
        let key = thread.thread_id.clone().map(|id| ThreadKey::new(thread.tenant.as_str(), id));
        let created = self.ask(thread, Op::CreateThread).await?;
        match key.filter(|_| !created.new) {
            Some(key) => Ok(Created { value: self.thread(&key).await?, new: false }),
            None => Ok(created),
        }
    }

    async fn create_run(&self, run: NewRun) -> Result<Created<RunInfo>, LogError> {
        self.ask(run, Op::CreateRun).await
    }

    async fn append(&self, append: Append) -> Result<Appended, LogError> {
        self.ask(append, Op::Append).await
    }

    async fn cancel(&self, run: &RunKey, cancel: Cancel) -> Result<Cancelled, LogError> {
        self.ask((run.clone(), cancel), Op::Cancel).await
    }

    async fn answer_all(&self, run: &RunKey, answers: Vec<Answer>) -> Result<Vec<Answered>, LogError> {
        self.ask((run.clone(), answers), Op::Answer).await
    }

    async fn heartbeat(&self, run: &RunKey) -> Result<RunInfo, LogError> {
        self.ask(run.clone(), Op::Heartbeat).await
    }

    async fn sweep(&self) -> Result<usize, LogError> {
        self.ask((), Op::Sweep).await
    }

    async fn export(&self, thread: &ThreadKey, part: &Part) -> Result<Exported, LogError> {
        let (thread, part) = (thread.clone(), part.clone());
        self.reading(move |reader| reading::export(reader, &thread, &part)).await
    }

    async fn import(&self, thread: &ThreadKey, pieces: Vec<Numbered>) -> Result<Imported, LogError> {
        self.ask((thread.clone(), pieces), Op::Import).await
    }

    async fn delete_thread(&self, thread: &ThreadKey, force: bool) -> Result<(), LogError> {
        self.ask((thread.clone(), force), Op::Delete).await
    }

    async fn trim(&self, retention: Retention) -> Result<usize, LogError> {
        let trims = self.reading(move |reader| reader.plan(retention)).await?;
        self.using(move |reader| trims.iter().try_fold(0, |runs, trim| Ok(runs + reader.trim(trim)?))).await
    }

    async fn run(&self, run: &RunKey) -> Result<RunInfo, LogError> {
        let run = run.clone();
        self.reading(move |reader| reader.run_info(&run)).await
    }

    async fn runs(&self, query: RunQuery) -> Result<Vec<RunInfo>, LogError> {
        self.reading(move |reader| reader.runs(&query)).await
    }

    async fn tenants_with_open_runs(&self) -> Result<Vec<String>, LogError> {
        self.reading(|reader| reader.tenants_with_open_runs()).await
    }

    async fn interaction(&self, run: &RunKey, interaction_id: &str) -> Result<Interaction, LogError> {
        let (run, id) = (run.clone(), interaction_id.to_owned());
        self.reading(move |reader| reading::interaction(reader, &run, &id)).await
    }

    async fn interactions(&self, query: InteractionQuery) -> Result<InteractionPage, LogError> {
        self.reading(move |reader| reading::interactions(reader, &query)).await
    }

    async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), LogError> {
        let kept = subscribers.clone();
        self.order(|reply| Order::Subscribe(subscribers, reply)).await?;
        self.using(move |reader| reader.keep_notices_of(&kept)).await
    }

    async fn notices(&self, subscriber: &str, limit: usize) -> Result<Vec<Notice>, LogError> {
        let subscriber = subscriber.to_owned();
        self.reading(move |reader| reader.notices(&subscriber, limit)).await
    }

    async fn told(&self, notice: u64, told: Told) -> Result<(), LogError> {
        self.using(move |reader| reader.told(notice, told)).await
    }

    fn noticed(&self) -> watch::Receiver<()> {
        self.noticed.subscribe()
    }

    async fn thread(&self, thread: &ThreadKey) -> Result<ThreadInfo, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| reader.thread(&thread)).await
    }

    async fn threads(
        &self,
        tenant: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ThreadInfo>, LogError> {
        let (tenant, before) = (tenant.to_owned(), before.map(str::to_owned));
        self.reading(move |reader| reader.threads(&tenant, before.as_deref(), limit)).await
    }

    async fn spans(&self, thread: &ThreadKey) -> Result<Vec<RunSpan>, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| reader.spans(&thread)).await
    }

    async fn producer(&self, run: &RunKey, producer: &str) -> Result<Option<ProducerInfo>, LogError> {
        let (run, producer) = (run.clone(), producer.to_owned());
        self.reading(move |reader| reader.producer(&run, &producer)).await
    }

    async fn thread_producer(
        &self,
        thread: &ThreadKey,
        producer: &str,
    ) -> Result<Option<ProducerInfo>, LogError> {
        let (thread, producer) = (thread.clone(), producer.to_owned());
        self.reading(move |reader| reader.thread_producer(&thread, &producer)).await
    }

    async fn read(&self, thread: &ThreadKey, after: u64) -> Result<Page, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| Ok(reading::page(reader, &thread, after)?.0)).await
    }

    async fn before(&self, thread: &ThreadKey, seq: u64) -> Result<Window, LogError> {
        let thread = thread.clone();
        self.reading(move |reader| reading::before(reader, &thread, seq)).await
    }

    async fn checkpoint(
        &self,
        run: &RunKey,
        form: Form,
        seq: u64,
    ) -> Result<Option<(u64, Encoder)>, LogError> {
        let run = run.clone();
        self.reading(move |reader| reader.checkpoint(&run, form, seq)).await
    }

    fn keep_checkpoint(&self, run: &RunKey, form: Form, seq: u64, encoder: &Encoder) {
        if let Ok(state) = serde_json::to_string(encoder) {
            let checkpoint = writer::Checkpoint { run: run.clone(), form, seq, state };
            // A full queue means that there is no time for it.
            let _ = self.requests.try_send(Order::Checkpoint(checkpoint));
        }
    }

    fn tail(&self, thread: &ThreadKey) -> Arc<Tail> {
        self.tails.of(thread)
    }

    async fn figures(&self) -> Result<Figures, LogError> {
        let figures = self.reading(|reader| reader.figures()).await?;
        Ok(Figures { written: self.meter.written(), ..figures })
    }

    async fn ready(&self) -> Result<(), LogError> {
        if self.requests.is_closed() {
            return Err(LogError::Unavailable("the store has stopped".into()));
        }
        self.using(|reader| Ok(reader.connection.run("SELECT 1")?)).await
    }

    async fn close(&self) {
        let reads = self.readers.acquire_many(READERS as u32).await;
        self.readers.close();
        drop(reads);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        // The writer lets go of its requests after everything else.
        let _ = self.requests.send(Order::Close).await;
        self.requests.closed().await;
    }
}
