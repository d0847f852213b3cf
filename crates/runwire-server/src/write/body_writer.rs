//! Writes one request body to the log, from its first byte to its response.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body as Answer;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use runwire_log::{Append, Appended, FrameBatch, LogError, NewThread, RunKey, Stamp, Target, ThreadKey};
use runwire_model::ErrorCode;
use runwire_producer::limits::BATCH_BYTES;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use utoipa::ToSchema;

use super::body_events::{BodyEvent, broken, fenced, is_small, next_event};
use super::body_unframer::{BodyUnframer, FillResult};
use super::{ByteBody, WriteParams};
use crate::memory_budget::MemoryShare;
use crate::openapi::schemas::IdSchema;
use crate::problem::Problem;
use crate::{AppState, limits};
use runwire_log::outage::{self, is_outage};

/// How long a stopping server waits for bytes of an open body that were already sent.
const LAST_BYTES_TIME: Duration = Duration::from_millis(50);

/// Hint for frames that start a second run in a thread.
const SEVERAL_SESSIONS: &str = "Send a stream of several sessions to POST /v1/events; or create the thread with \
                                `?parallel=true`, wait for the run that `run_id` names, or cancel it.";

/// What to do with frames that begin a run beside an open one of their session.
const RUNS_OF_SESSION: &str = "Wait for the run that `run_id` names, or cancel it; or have the first request to the \
                               session say `?parallel=true`, so that its thread takes several runs at once.";

/// Counts of what was written of a body; the response.
#[derive(Debug, Clone, Default, PartialEq, Eq, ToSchema)]
#[schema(as = Written)]
pub(crate) struct WriteSummary {
    /// Frames that are written now.
    accepted: u64,
    /// Frames that were written before.
    duplicates: u64,
    /// The last `seq` of the run, or of the thread that was written to last.
    last_seq: u64,
    /// The threads that were written to, at `/v1/events` alone; of more than 1024, those that were written to last.
    #[schema(value_type = Option<Vec<IdSchema>>)]
    threads: Option<Vec<Arc<str>>>,
}

impl WriteSummary {
    pub(crate) fn to_json(&self) -> String {
        let Self { accepted, duplicates, last_seq, threads } = self;
        let threads = threads.iter().map(|threads| {
            let ids: Vec<&str> = threads.iter().map(|id| &**id).collect();
            format!(r#","threads":{}"#, serde_json::Value::from(ids))
        });
        let threads: String = threads.collect();
        format!(r#"{{"accepted":{accepted},"duplicates":{duplicates},"last_seq":{last_seq}{threads}}}"#)
    }

    /// Makes the summary of one append to a run.
    pub(super) fn of_run(appended: &Appended) -> Self {
        let Appended { accepted, duplicates, last_seq, .. } = *appended;
        Self { accepted, duplicates, last_seq, threads: None }
    }

    /// Adds threads that were written to; keeps the most recent [`limits::BODY_THREADS`].
    fn add_threads(&mut self, written: Vec<Arc<str>>) {
        let threads = self.threads.get_or_insert_default();
        threads.retain(|thread| !written.contains(thread));
        threads.extend(written);
        let forgotten = threads.len().saturating_sub(limits::BODY_THREADS);
        threads.drain(..forgotten);
    }
}

impl IntoResponse for WriteSummary {
    fn into_response(self) -> Response {
        let mut response = Response::new(Answer::from(self.to_json()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// Writes one body.
pub(super) struct BodyWriter<'a> {
    state: &'a AppState,
    params: WriteParams,
    unframer: BodyUnframer,
    /// Frames that are not yet appended: those that wait for a frame that identifies the dialect.
    batch: FrameBatch,
    decided: bool,
    /// Whether the body stays open, so that its client cannot simply retry it: appends are retried here.
    is_open: bool,
    /// Whether bytes arrived during an append; they are in the unframer.
    has_more: bool,
    /// How the body ended during an append.
    ended: Option<BodyEvent>,
    /// Frames that the log has accepted, duplicates included.
    frames_sent: u64,
    written: Option<WriteSummary>,
    heartbeats: u64,
    renewed: Option<Instant>,
    last_activity: Instant,
    /// The share of the memory budget of a large frame that has not arrived completely.
    share: MemoryShare,
}

impl<'a> BodyWriter<'a> {
    pub(super) fn new(state: &'a AppState, params: WriteParams) -> Self {
        Self {
            state,
            unframer: BodyUnframer::new(params.framing),
            batch: FrameBatch::default(),
            decided: params.dialect.is_some(),
            is_open: false,
            has_more: false,
            ended: None,
            frames_sent: 0,
            written: None,
            heartbeats: 0,
            renewed: None,
            last_activity: Instant::now(),
            share: state.memory.request(),
            params,
        }
    }

    /// Writes a body up to its end or its first error.
    pub(super) async fn write_body<B: ByteBody>(mut self, body: &mut B) -> Result<WriteSummary, Problem> {
        let read = match self.create_thread().await {
            Ok(()) => self.read(body).await,
            Err(problem) => Err(problem),
        };
        self.finish_with(read).await
    }

    /// Creates a parallel thread, if the request asks for one.
    async fn create_thread(&self) -> Result<(), Problem> {
        if let (true, Target::Thread(thread)) = (self.params.parallel, &self.params.target) {
            let (tenant, thread_id) = (thread.tenant.to_string(), Some(thread.id.to_string()));
            self.state.log.create_thread(NewThread { tenant, thread_id, parallel: true }).await?;
        }
        Ok(())
    }

    /// Writes a body that has arrived completely.
    pub(super) async fn write_whole_body(mut self, body: &[u8]) -> Result<WriteSummary, Problem> {
        let written = self.write_whole::<Answer>(body).await;
        self.finish_with(written).await
    }

    async fn finish_with(mut self, written: Result<(), Problem>) -> Result<WriteSummary, Problem> {
        let summary = self.written.take();
        match (written, summary) {
            (Ok(()), Some(summary)) => Ok(summary),
            (Ok(()), None) => empty_summary(self.state, &self.params.target).await,
            (Err(problem), summary) => {
                Err(with_counts(self.state, &self.params.target, problem, summary).await)
            }
        }
    }

    async fn read<B: ByteBody>(&mut self, body: &mut B) -> Result<(), Problem> {
        if is_small(body) {
            // A small body needs no watch for fences or shutdown.
            match self.next_bytes(body).await {
                BodyEvent::Bytes(bytes) if body.is_end_stream() => {
                    return self.write_whole::<B>(&bytes).await;
                }
                BodyEvent::End => return self.finish::<B>().await,
                BodyEvent::Bytes(bytes) => self.write(&bytes, body).await?,
                BodyEvent::Broken(reason) => return Err(broken(&reason)),
                BodyEvent::Fenced(_) | BodyEvent::Stopping | BodyEvent::Quiet => self.check_run().await?,
            }
        }
        self.is_open = true;
        let mut stopping = self.state.shutdown.clone();
        let state = self.state;
        let mut open =
            self.params.stamp.as_ref().map(|stamp| state.open_bodies.register(&self.params.target, stamp));
        loop {
            let event = tokio::select! {
                biased;
                epoch = fenced(&mut open) => BodyEvent::Fenced(epoch),
                _ = stopping.wait_for(|stopping| *stopping) => BodyEvent::Stopping,
                event = self.next_bytes(body) => event,
            };
            match event {
                BodyEvent::Bytes(bytes) if body.is_end_stream() => {
                    self.unframer.push(&bytes);
                    return self.finish::<B>().await;
                }
                BodyEvent::Bytes(bytes) => self.write(&bytes, body).await?,
                BodyEvent::End => return self.finish::<B>().await,
                BodyEvent::Broken(reason) => return Err(broken(&reason)),
                BodyEvent::Fenced(epoch) => return Err(LogError::ProducerFenced { epoch }.into()),
                BodyEvent::Stopping => return self.stop(body).await,
                BodyEvent::Quiet => self.check_run().await?,
            }
        }
    }

    /// Waits for the next event, with the idle timeout of open bodies.
    async fn next_bytes<B: ByteBody>(&mut self, body: &mut B) -> BodyEvent {
        if std::mem::take(&mut self.has_more) {
            return BodyEvent::Bytes(Bytes::new());
        }
        if let Some(ended) = self.ended.take() {
            return ended;
        }
        let idle_timeout = sleep_until(self.last_activity + self.state.config.body_idle);
        tokio::select! {
            biased;
            event = next_event(body) => event,
            () = sleep(limits::BUDGET_TIME), if self.share.is_beyond() => {
                BodyEvent::Broken("the rest of a large frame did not come, and others wait for its memory".into())
            }
            () = idle_timeout => BodyEvent::Quiet,
        }
    }

    /// Writes a body that arrived in one piece.
    async fn write_whole<B: ByteBody>(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        if self.unframer.take_single_line(bytes, &mut self.batch) {
            return self.append::<B>(self.params.end, None).await;
        }
        self.unframer.push(bytes);
        self.finish::<B>().await
    }

    /// Appends the complete frames that have arrived.
    async fn write<B: ByteBody>(&mut self, bytes: &[u8], body: &mut B) -> Result<(), Problem> {
        // A large frame is held as it arrives, as it is queued, and as it is stored.
        let buffered = self.unframer.buffered() + bytes.len();
        if buffered > limits::FREE_BYTES {
            self.share.grow_in_time(3 * buffered).await?;
        }
        self.unframer.push(bytes);
        self.write_frames(Some(body)).await?;
        self.share.shrink_to(3 * self.unframer.buffered());
        self.renew().await;
        Ok(())
    }

    /// Appends the remaining frames at the clean end of the body.
    async fn finish<B: ByteBody>(&mut self) -> Result<(), Problem> {
        self.unframer.finish();
        self.write_frames::<B>(None).await
    }

    /// Appends all complete frames; `body` is none at the end.
    async fn write_frames<B: ByteBody>(&mut self, mut body: Option<&mut B>) -> Result<(), Problem> {
        let over = body.is_none();
        loop {
            let before = self.batch.len();
            let fill = self.unframer.fill(&mut self.batch);
            let all = matches!(fill, FillResult::Complete);
            let end = over && all && self.params.end;
            let anything_new = self.batch.len() > before || (over && before > 0);
            if anything_new || end {
                self.append(end, body.as_deref_mut().filter(|_| all)).await?;
            }
            match fill {
                FillResult::Complete => return Ok(()),
                FillResult::Full => {}
                FillResult::Failed(error) => return Err(error.into()),
            }
        }
    }

    /// Appends the current batch.
    ///
    /// `rest` is the body that is still open: it is read during the append, and frames whose dialect is ambiguous wait for
    /// more of it.
    async fn append<B: ByteBody>(&mut self, end: bool, rest: Option<&mut B>) -> Result<(), Problem> {
        let frames = std::mem::take(&mut self.batch);
        let (count, line) = (frames.len() as u64, frames.iter().next().map(|frame| frame.line));
        let can_wait = frames.len() < limits::UNDECIDED_FRAMES && frames.bytes() < limits::UNDECIDED_BYTES;
        let kept = (rest.is_some() && !self.decided && can_wait).then(|| frames.clone());
        let stamp = self.params.stamp.as_ref().map(|stamp| Stamp {
            producer: stamp.producer.clone(),
            epoch: stamp.epoch,
            index: stamp.index.saturating_add(self.frames_sent),
        });
        let append = Append {
            target: self.params.target.clone(),
            thread: self.params.thread.clone(),
            dialect: self.params.dialect,
            stamp,
            frames,
            end,
            check: self.params.check,
            whole: self.params.whole,
            parallel: self.params.parallel,
        };
        let (state, is_open) = (self.state, self.is_open);
        let appending = async move {
            match is_open {
                true => outage::append(&*state.log, &state.shutdown, state.config.outage, append).await,
                false => state.log.append(append).await,
            }
        };
        let appended = match rest {
            Some(rest) => self.append_while_reading(appending, rest).await,
            None => appending.await,
        };
        match (appended, kept) {
            (Ok(appended), _) => {
                let now = Instant::now();
                (self.decided, self.renewed, self.last_activity) = (true, Some(now), now);
                self.frames_sent += count;
                let written = self.written.get_or_insert_default();
                written.accepted += appended.accepted;
                written.duplicates += appended.duplicates;
                written.last_seq = appended.last_seq;
                if let Target::Tenant(_) = self.params.target {
                    written.add_threads(appended.threads);
                }
                if let Some(stamp) = &self.params.stamp {
                    self.state.open_bodies.fence(&self.params.target, stamp);
                }
                appended.fault.map_or(Ok(()), |fault| Err(self.with_sessions_hint(fault.into())))
            }
            (Err(LogError::DialectAmbiguous(_)), Some(kept)) => {
                self.batch = kept;
                self.last_activity = Instant::now();
                Ok(())
            }
            (Err(error), _) => Err(Problem::from(error).with_some("line", line)),
        }
    }

    /// Adds a hint to `thread_busy`: where a stream of several sessions or runs can be written.
    fn with_sessions_hint(&self, problem: Problem) -> Problem {
        match &self.params.target {
            _ if problem.code() != ErrorCode::ThreadBusy => problem,
            Target::Thread(_) => problem.with("hint", SEVERAL_SESSIONS),
            Target::Tenant(_) => problem.with("hint", RUNS_OF_SESSION),
            Target::Run(_) => problem,
        }
    }

    /// Waits for an append while reading the bytes of the next one.
    async fn append_while_reading<B: ByteBody, T>(
        &mut self,
        appending: impl Future<Output = T>,
        rest: &mut B,
    ) -> T {
        let mut appending = pin!(appending);
        let mut gathered = 0;
        loop {
            tokio::select! {
                biased;
                appended = &mut appending => return appended,
                event = next_event(rest), if self.ended.is_none() && gathered < BATCH_BYTES => match event {
                    BodyEvent::Bytes(bytes) => {
                        gathered += bytes.len();
                        self.unframer.push(&bytes);
                        self.has_more = true;
                    }
                    ended => self.ended = Some(ended),
                }
            }
        }
    }

    /// Renews the lease after heartbeats, at most once per `Config::heartbeat`.
    async fn renew(&mut self) {
        let heartbeats = self.unframer.heartbeats();
        if heartbeats == std::mem::replace(&mut self.heartbeats, heartbeats) {
            return;
        }
        let now = Instant::now();
        self.last_activity = now;
        if self.renewed.is_some_and(|renewed| now - renewed < self.state.config.heartbeat) {
            return;
        }
        self.renewed = Some(now);
        // A run that does not exist yet has no lease; if the store fails, the next write reports it.
        let threads = match &self.params.target {
            Target::Run(run) => return drop(self.state.log.heartbeat(run).await),
            Target::Thread(thread) => vec![thread.clone()],
            Target::Tenant(_) => self.threads(),
        };
        let mut runs = Vec::new();
        for thread in threads {
            let open = self.state.log.thread(&thread).await.map(|thread| thread.open_runs);
            let key = |run| RunKey::new(thread.tenant.clone(), run);
            runs.extend(open.unwrap_or_default().into_iter().map(key));
        }
        for runs in runs.chunks(limits::RENEWED_RUNS) {
            drop(self.state.log.heartbeat_all(runs.to_vec()).await);
        }
    }

    /// Lists the threads that the body has written to, where its frames name their threads.
    fn threads(&self) -> Vec<ThreadKey> {
        let Target::Tenant(tenant) = &self.params.target else { return Vec::new() };
        let threads = self.written.iter().flat_map(|written| written.threads.iter().flatten());
        threads.map(|id| ThreadKey { tenant: tenant.clone(), id: id.clone() }).collect()
    }

    /// Returns true if a thread that the body has written to has an open run.
    async fn has_open_run(&self) -> Result<bool, LogError> {
        for thread in self.threads() {
            match self.state.log.thread(&thread).await {
                Ok(thread) if thread.open_runs.is_empty() => {}
                Ok(_) => return Ok(true),
                Err(error) if is_outage(&error) => return Err(error),
                // A deleted thread has no open run.
                Err(_) => {}
            }
        }
        Ok(false)
    }

    /// Fails for an idle body whose run is not open; others may stay idle.
    async fn check_run(&mut self) -> Result<(), Problem> {
        let open = match &self.params.target {
            Target::Run(run) => self.state.log.run(run).await.map(|run| !run.status.is_closed()),
            Target::Thread(thread) => {
                self.state.log.thread(thread).await.map(|thread| !thread.open_runs.is_empty())
            }
            Target::Tenant(_) => self.has_open_run().await,
        };
        let may_be_open = match &open {
            Ok(open) => *open,
            // Unknown during an outage: the body stays open.
            Err(error) => is_outage(error),
        };
        if !may_be_open {
            let quiet = self.state.config.body_idle.as_secs();
            let detail = format!("nothing came for {quiet} s, and there is no open run to wait for");
            return Err(Problem::new(ErrorCode::BodyIdle, detail));
        }
        self.last_activity = Instant::now();
        Ok(())
    }

    /// Writes the bytes that were sent before the server began to stop, then ends the body with `shutting_down`.
    async fn stop<B: ByteBody>(&mut self, body: &mut B) -> Result<(), Problem> {
        let until = Instant::now() + 4 * LAST_BYTES_TIME;
        while Instant::now() < until {
            match timeout(LAST_BYTES_TIME, self.next_bytes(body)).await {
                Ok(BodyEvent::Bytes(bytes)) => self.write(&bytes, body).await?,
                Ok(BodyEvent::End) => return self.finish::<B>().await,
                _ => break,
            }
        }
        let detail = "the server is stopping; the frames that are counted here are written";
        Err(Problem::new(ErrorCode::ShuttingDown, detail))
    }
}

/// Adds to a problem what was written before it.
pub(super) async fn with_counts(
    state: &AppState,
    target: &Target,
    problem: Problem,
    written: Option<WriteSummary>,
) -> Problem {
    let written = match written {
        Some(written) => Some(written),
        // Reading the position would wait for the unavailable store once more.
        None if problem.is_outage() => None,
        None => empty_summary(state, target).await.ok(),
    };
    let last_seq = written.as_ref().map(|written| written.last_seq);
    let WriteSummary { accepted, duplicates, .. } = written.unwrap_or_default();
    problem.with("accepted", accepted).with("duplicates", duplicates).with_some("last_seq", last_seq)
}

/// Returns the summary of a body without frames: the position of its run or thread.
async fn empty_summary(state: &AppState, target: &Target) -> Result<WriteSummary, Problem> {
    let last_seq = match target {
        Target::Run(run) => state.log.run(run).await.map(|run| run.last_seq),
        Target::Thread(thread) => state.log.thread(thread).await.map(|thread| thread.head),
        Target::Tenant(_) => {
            return Ok(WriteSummary { threads: Some(Vec::new()), ..WriteSummary::default() });
        }
    };
    match last_seq {
        Ok(last_seq) => Ok(WriteSummary { last_seq, ..WriteSummary::default() }),
        Err(LogError::RunUnknown(_) | LogError::ThreadUnknown(_)) => Ok(WriteSummary::default()),
        Err(error) => Err(error.into()),
    }
}
