//! Commands and look-ups of a log, the same for every store: a command goes to a writer, a look-up to a reader.

use async_trait::async_trait;
use runwire_model::Timestamp;

use crate::error::LogError;
use crate::info::{Created, NewRun, NewThread, ProducerInfo, RunInfo, RunQuery, ThreadInfo};
use crate::interaction::{Answer, Answered, Interaction, InteractionPage, InteractionQuery};
use crate::key::{RunKey, ThreadKey};
use crate::log::{Cancel, Cancelled, LogLookups, LogRuns, LogUpkeep, RetentionLimits};
use crate::query::{self, ReadRows, ReadStore};
use crate::sql::{self, BytePage, TrimProgress};
use crate::transfer::{ExportPage, ExportRequest, Imported, NumberedItem};
use crate::txn::{BaseState, LogCommand, Pending, ThreadTrim};
use crate::unreadable_rows::{UnreadableRows, UnreadableTable};

/// What a read must see of the commits before it.
pub(crate) enum ReadScope {
    Thread(ThreadKey),
    Run(RunKey),
    Everything,
    /// What is in the tables: the read is of what is never pending.
    Tables,
}

/// A store with writers that execute commands, and readers.
pub(crate) trait StoreHandle: Send + Sync + 'static {
    /// A read connection.
    type Reader: ReadStore;

    /// Submits a command to a writer, and waits for its reply.
    fn submit<C: Send, T: Send + 'static>(
        &self,
        request: C,
        command: impl FnOnce(Pending<C, T>) -> LogCommand + Send,
    ) -> impl Future<Output = Result<T, LogError>> + Send;

    /// Reads in one snapshot, which has all commits of the scope.
    fn read_in<T: Send + 'static>(
        &self,
        scope: ReadScope,
        read: impl Fn(&mut Self::Reader) -> Result<T, LogError> + Send + 'static,
    ) -> impl Future<Output = Result<T, LogError>> + Send;

    /// Returns the rows that could not be read.
    fn unreadable(&self) -> &UnreadableRows;

    /// Assigns a run that was created to a writer, where a store has several.
    fn assign_run(&self, _tenant: &str, _run: &RunInfo) {}

    /// Returns the time of the store's clock.
    fn now(&self) -> impl Future<Output = Result<Timestamp, LogError>> + Send;

    /// Removes runs from a thread, and returns their number; 0 if it was deleted or trimmed meanwhile.
    fn trim_thread(&self, trim: TrimCommand) -> impl Future<Output = Result<usize, LogError>> + Send;
}

/// The runs that retention removes from a thread, and the base state of what remains, as JSON.
pub(crate) struct TrimCommand {
    pub(crate) thread_trim: ThreadTrim,
    pub(crate) base: String,
}

impl TrimCommand {
    /// Returns the bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.base.len() + self.thread_trim.runs.iter().map(String::len).sum::<usize>()
    }
}

#[async_trait]
impl<S: StoreHandle> LogRuns for S {
    async fn create_thread(&self, thread: NewThread) -> Result<Created<ThreadInfo>, LogError> {
        let key = thread.thread_id.clone().map(|id| ThreadKey::new(thread.tenant.as_str(), id));
        let created = self.submit(thread, LogCommand::CreateThread).await?;
        match key.filter(|_| !created.new) {
            Some(key) => Ok(Created { value: self.thread(&key).await?, new: false }),
            None => Ok(created),
        }
    }

    async fn create_run(&self, run: NewRun) -> Result<Created<RunInfo>, LogError> {
        let tenant = run.tenant.clone();
        let created = self.submit(run, LogCommand::CreateRun).await?;
        self.assign_run(&tenant, &created.value);
        Ok(created)
    }

    async fn cancel(&self, run: &RunKey, cancel: Cancel) -> Result<Cancelled, LogError> {
        self.submit((run.clone(), cancel), LogCommand::Cancel).await
    }

    async fn answer_all(&self, run: &RunKey, answers: Vec<Answer>) -> Result<Vec<Answered>, LogError> {
        self.submit((run.clone(), answers), LogCommand::Answer).await
    }

    async fn heartbeat_all(&self, runs: Vec<RunKey>) -> Result<Vec<Result<RunInfo, LogError>>, LogError> {
        self.submit(runs, LogCommand::Heartbeat).await
    }
}

#[async_trait]
impl<S: StoreHandle> LogLookups for S {
    async fn run(&self, run: &RunKey) -> Result<RunInfo, LogError> {
        let key = run.clone();
        self.read_in(ReadScope::Run(run.clone()), move |reader| reader.run_info(&key)).await
    }

    async fn runs(&self, query: RunQuery) -> Result<Vec<RunInfo>, LogError> {
        self.read_in(ReadScope::Everything, move |reader| sql::runs(reader, &query)).await
    }

    async fn thread(&self, thread: &ThreadKey) -> Result<ThreadInfo, LogError> {
        let key = thread.clone();
        let read = move |reader: &mut S::Reader| reader.thread_info(reader.thread_row(&key)?.id);
        self.read_in(ReadScope::Thread(thread.clone()), read).await
    }

    async fn threads(
        &self,
        tenant: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ThreadInfo>, LogError> {
        let (tenant, before) = (tenant.to_owned(), before.map(str::to_owned));
        let read = move |reader: &mut S::Reader| sql::threads(reader, &tenant, before.as_deref(), limit);
        self.read_in(ReadScope::Everything, read).await
    }

    async fn producer(&self, run: &RunKey, producer: &str) -> Result<Option<ProducerInfo>, LogError> {
        let (key, producer) = (run.clone(), producer.to_owned());
        let read = move |reader: &mut S::Reader| query::producer(reader, &key, &producer);
        self.read_in(ReadScope::Run(run.clone()), read).await
    }

    async fn thread_producer(
        &self,
        thread: &ThreadKey,
        producer: &str,
    ) -> Result<Option<ProducerInfo>, LogError> {
        let (key, producer) = (thread.clone(), producer.to_owned());
        let read = move |reader: &mut S::Reader| query::thread_producer(reader, &key, &producer);
        self.read_in(ReadScope::Thread(thread.clone()), read).await
    }

    async fn interaction(&self, run: &RunKey, interaction_id: &str) -> Result<Interaction, LogError> {
        let (key, id) = (run.clone(), interaction_id.to_owned());
        let read = move |reader: &mut S::Reader| query::interaction(reader, &key, &id);
        self.read_in(ReadScope::Run(run.clone()), read).await
    }

    async fn interactions(&self, query: InteractionQuery) -> Result<InteractionPage, LogError> {
        self.read_in(ReadScope::Everything, move |reader| query::interactions(reader, &query)).await
    }
}

#[async_trait]
impl<S: StoreHandle> LogUpkeep for S {
    async fn export(&self, thread: &ThreadKey, part: &ExportRequest) -> Result<ExportPage, LogError> {
        let (key, part) = (thread.clone(), part.clone());
        let read = move |reader: &mut S::Reader| query::export(reader, &key, &part);
        self.read_in(ReadScope::Thread(thread.clone()), read).await
    }

    async fn import(&self, thread: &ThreadKey, items: Vec<NumberedItem>) -> Result<Imported, LogError> {
        self.submit((thread.clone(), items), LogCommand::Import).await
    }

    async fn delete_thread(&self, thread: &ThreadKey, force: bool) -> Result<(), LogError> {
        self.submit((thread.clone(), force), LogCommand::Delete).await
    }

    async fn trim(&self, retention: RetentionLimits) -> Result<usize, LogError> {
        let limits = retention.at(self.now().await?);
        let (mut kept, mut after) = (0, (0, 0));
        while limits.max_bytes.is_some() {
            let read = move |reader: &mut S::Reader| sql::byte_page(reader.sql(), after).map_err(Into::into);
            let Some(BytePage { bytes, upto }) = self.read_in(ReadScope::Everything, read).await? else {
                break;
            };
            (kept, after) = (kept + bytes, upto);
        }
        let excess = limits.max_bytes.map_or(0, |most| kept.saturating_sub(most));
        let mut progress = TrimProgress { limits, excess, after: (0, 0) };
        let mut removed = 0;
        loop {
            let read =
                move |reader: &mut S::Reader| sql::plan_page(reader.sql(), progress).map_err(Into::into);
            let Some((trims, next)) = self.read_in(ReadScope::Everything, read).await? else { break };
            for trim in trims {
                let (key, oldest, thread) = (trim.key.clone(), trim.oldest, trim.thread);
                let scope = ReadScope::Thread(key.clone());
                let base = move |reader: &mut S::Reader| base_before(reader, &key, oldest);
                let trimmed = match self.read_in(scope, base).await {
                    Ok(base) => self.trim_thread(TrimCommand { thread_trim: trim, base }).await,
                    Err(failure) => Err(failure),
                };
                match trimmed {
                    Ok(runs) => removed += runs,
                    // It was deleted meanwhile.
                    Err(LogError::ThreadDeleted(_)) => {}
                    // It stays as it is, and the others are trimmed.
                    Err(failure @ LogError::Damaged(_)) => {
                        self.unreadable().insert(UnreadableTable::Thread, thread, &failure);
                    }
                    Err(failure) => return Err(failure),
                }
            }
            progress = next;
        }
        Ok(removed)
    }

    async fn sweep(&self) -> Result<usize, LogError> {
        self.submit((), LogCommand::Sweep).await
    }
}

/// Returns the messages and state of a thread before a `seq`, as JSON.
fn base_before(reader: &mut impl ReadStore, key: &ThreadKey, seq: u64) -> Result<String, LogError> {
    let base = BaseState::of(&query::before(reader, key, seq)?);
    serde_json::to_string(&base).map_err(|error| LogError::Damaged(error.to_string()))
}
