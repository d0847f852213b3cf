//! One body, from its first byte to its answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body as Answer;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use runwire_log::{Append, FrameBatch, LogError, NewThread, Stamp, Target, ThreadKey};
use tokio::time::{Instant, sleep_until, timeout};

use super::arrival::{Arrival, arrival, broken, fenced, is_small};
use super::intake::{Filled, Intake};
use super::{ByteBody, Writing};
use crate::outage::{self, is_outage};
use crate::problem::Problem;
use crate::{AppState, limits};

/// How long the bytes of an open body may take that were sent before the server began to stop.
const LAST_BYTES_TIME: Duration = Duration::from_millis(50);

/// What to do with frames that begin a run beside an open one.
const SEVERAL_SESSIONS: &str = "Send a stream of several sessions to POST /v1/events; or create the thread with \
                                `?parallel=true`, wait for the run that `run_id` names, or cancel it.";

/// What was written of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Written {
    accepted: u64,
    duplicates: u64,
    last_seq: u64,
    /// The threads that were written to, where the frames name them.
    threads: Option<Vec<Arc<str>>>,
}

impl Written {
    pub(super) fn to_json(&self) -> String {
        let Self { accepted, duplicates, last_seq, threads } = self;
        let threads = threads.iter().map(|threads| {
            let ids: Vec<&str> = threads.iter().map(|id| &**id).collect();
            format!(r#","threads":{}"#, serde_json::Value::from(ids))
        });
        let threads: String = threads.collect();
        format!(r#"{{"accepted":{accepted},"duplicates":{duplicates},"last_seq":{last_seq}{threads}}}"#)
    }

    /// Takes note of threads that were written to; of very many, of those that were written to last.
    fn add_threads(&mut self, written: Vec<Arc<str>>) {
        let threads = self.threads.get_or_insert_default();
        threads.retain(|thread| !written.contains(thread));
        threads.extend(written);
        let forgotten = threads.len().saturating_sub(limits::THREADS_OF_BODY);
        threads.drain(..forgotten);
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = Response::new(Answer::from(self.to_json()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// The writing of one body.
pub(super) struct Session<'a> {
    state: &'a AppState,
    writing: Writing,
    intake: Intake,
    /// Frames that are cut and not yet written: those that wait for one that tells the dialect.
    batch: FrameBatch,
    decided: bool,
    /// Whether the body stays open, so that its client cannot send it again without losing its place.
    is_open: bool,
    /// Whether bytes came while an append was under way; they lie in the intake.
    more: bool,
    /// How the body ended while an append was under way.
    ended: Option<Arrival>,
    /// Frames that the log has taken, also those it knew.
    sent: u64,
    written: Option<Written>,
    beats: u64,
    renewed: Option<Instant>,
    last_sign: Instant,
}

impl<'a> Session<'a> {
    pub(super) fn new(state: &'a AppState, writing: Writing) -> Self {
        Self {
            state,
            intake: Intake::new(writing.framing),
            batch: FrameBatch::default(),
            decided: writing.dialect.is_some(),
            is_open: false,
            more: false,
            ended: None,
            sent: 0,
            written: None,
            beats: 0,
            renewed: None,
            last_sign: Instant::now(),
            writing,
        }
    }

    /// Writes a body to its end, or to where it must stop.
    pub(super) async fn take_in<B: ByteBody>(mut self, body: &mut B) -> Result<Written, Problem> {
        let read = match self.create_thread().await {
            Ok(()) => self.read(body).await,
            Err(problem) => Err(problem),
        };
        self.outcome(read).await
    }

    /// Makes the thread of several runs at once, if the request asks for that.
    async fn create_thread(&self) -> Result<(), Problem> {
        if let (true, Target::Thread(thread)) = (self.writing.parallel, &self.writing.target) {
            let (tenant, thread_id) = (thread.tenant.to_string(), Some(thread.id.to_string()));
            self.state.log.create_thread(NewThread { tenant, thread_id, parallel: true }).await?;
        }
        Ok(())
    }

    /// Writes a body that has come whole.
    pub(super) async fn take_in_whole(mut self, body: &[u8]) -> Result<Written, Problem> {
        let written = self.write_whole::<Answer>(body).await;
        self.outcome(written).await
    }

    async fn outcome(mut self, written: Result<(), Problem>) -> Result<Written, Problem> {
        match written {
            Ok(()) => match self.written.take() {
                Some(written) => Ok(written),
                None => self.unwritten().await,
            },
            Err(problem) => {
                let written = match self.written.take() {
                    Some(written) => Some(written),
                    // A store that is away would only be waited for once more.
                    None if problem.is_outage() => None,
                    None => self.unwritten().await.ok(),
                };
                let last_seq = written.as_ref().map(|written| written.last_seq);
                let Written { accepted, duplicates, .. } = written.unwrap_or_default();
                let problem = problem.with("accepted", accepted).with("duplicates", duplicates);
                Err(problem.with_some("last_seq", last_seq))
            }
        }
    }

    async fn read<B: ByteBody>(&mut self, body: &mut B) -> Result<(), Problem> {
        if is_small(body) {
            // No need to look out for anything but its bytes.
            match self.next_bytes(body).await {
                Arrival::Bytes(bytes) if body.is_end_stream() => return self.write_whole::<B>(&bytes).await,
                Arrival::End => return self.finish::<B>().await,
                Arrival::Bytes(bytes) => self.write(&bytes, body).await?,
                Arrival::Broken(reason) => return Err(broken(&reason)),
                Arrival::Fenced(_) | Arrival::Stopping | Arrival::Quiet => self.check_run().await?,
            }
        }
        self.is_open = true;
        let mut stopping = self.state.shutdown.clone();
        let state = self.state;
        let mut open =
            self.writing.stamp.as_ref().map(|stamp| state.bodies.enter(&self.writing.target, stamp));
        loop {
            let arrival = tokio::select! {
                biased;
                epoch = fenced(&mut open) => Arrival::Fenced(epoch),
                _ = stopping.wait_for(|stopping| *stopping) => Arrival::Stopping,
                arrival = self.next_bytes(body) => arrival,
            };
            match arrival {
                Arrival::Bytes(bytes) if body.is_end_stream() => {
                    self.intake.push(&bytes);
                    return self.finish::<B>().await;
                }
                Arrival::Bytes(bytes) => self.write(&bytes, body).await?,
                Arrival::End => return self.finish::<B>().await,
                Arrival::Broken(reason) => return Err(broken(&reason)),
                Arrival::Fenced(epoch) => return Err(LogError::ProducerFenced { epoch }.into()),
                Arrival::Stopping => return self.stop(body).await,
                Arrival::Quiet => self.check_run().await?,
            }
        }
    }

    /// Waits for bytes, and no longer than an open body may be quiet.
    async fn next_bytes<B: ByteBody>(&mut self, body: &mut B) -> Arrival {
        if std::mem::take(&mut self.more) {
            return Arrival::Bytes(Bytes::new());
        }
        if let Some(ended) = self.ended.take() {
            return ended;
        }
        let patience = sleep_until(self.last_sign + self.state.config.body_idle);
        tokio::select! {
            biased;
            arrival = arrival(body) => arrival,
            () = patience => Arrival::Quiet,
        }
    }

    /// Writes a body that came in one piece.
    async fn write_whole<B: ByteBody>(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        if self.intake.take_single_line(bytes, &mut self.batch) {
            return self.append::<B>(self.writing.end, None).await;
        }
        self.intake.push(bytes);
        self.finish::<B>().await
    }

    /// Writes the whole frames that have arrived.
    async fn write<B: ByteBody>(&mut self, bytes: &[u8], body: &mut B) -> Result<(), Problem> {
        self.intake.push(bytes);
        self.write_frames(Some(body)).await?;
        self.renew().await;
        Ok(())
    }

    /// Writes what is left at the body's clean end.
    async fn finish<B: ByteBody>(&mut self) -> Result<(), Problem> {
        self.intake.finish();
        self.write_frames::<B>(None).await
    }

    /// Writes what is cut; without a body there is nothing to come.
    async fn write_frames<B: ByteBody>(&mut self, mut body: Option<&mut B>) -> Result<(), Problem> {
        let over = body.is_none();
        loop {
            let before = self.batch.len();
            let filled = self.intake.fill(&mut self.batch);
            let all = matches!(filled, Filled::WithAll);
            let end = over && all && self.writing.end;
            let anything_new = self.batch.len() > before || (over && before > 0);
            if anything_new || end {
                self.append(end, body.as_deref_mut().filter(|_| all)).await?;
            }
            match filled {
                Filled::WithAll => return Ok(()),
                Filled::Full => {}
                Filled::UpTo(error) => return Err(error.into()),
            }
        }
    }

    /// Appends what is cut.
    ///
    /// Where more may come, it is `rest` that it comes from: its bytes are taken in while the append is under
    /// way, and frames that do not tell their dialect wait for it.
    async fn append<B: ByteBody>(&mut self, end: bool, rest: Option<&mut B>) -> Result<(), Problem> {
        let frames = std::mem::take(&mut self.batch);
        let (count, line) = (frames.len() as u64, frames.iter().next().map(|frame| frame.line));
        let can_wait = frames.len() < limits::UNDECIDED_FRAMES && frames.bytes() < limits::UNDECIDED_BYTES;
        let kept = (rest.is_some() && !self.decided && can_wait).then(|| frames.clone());
        let stamp = self.writing.stamp.as_ref().map(|stamp| Stamp {
            producer: stamp.producer.clone(),
            epoch: stamp.epoch,
            index: stamp.index.saturating_add(self.sent),
        });
        let append = Append {
            target: self.writing.target.clone(),
            thread: self.writing.thread.clone(),
            dialect: self.writing.dialect,
            stamp,
            frames,
            end,
            check: self.writing.check,
            whole: self.writing.whole,
        };
        let (state, is_open) = (self.state, self.is_open);
        let appending = async move {
            match is_open {
                true => outage::append(state, append).await,
                false => state.log.append(append).await,
            }
        };
        let appended = match rest {
            Some(rest) => self.take_in_during(appending, rest).await,
            None => appending.await,
        };
        match (appended, kept) {
            (Ok(appended), _) => {
                let now = Instant::now();
                (self.decided, self.renewed, self.last_sign) = (true, Some(now), now);
                self.sent += count;
                let written = self.written.get_or_insert_default();
                written.accepted += appended.accepted;
                written.duplicates += appended.duplicates;
                written.last_seq = appended.last_seq;
                if let Target::Tenant(_) = self.writing.target {
                    written.add_threads(appended.threads);
                }
                if let Some(stamp) = &self.writing.stamp {
                    self.state.bodies.fence(&self.writing.target, stamp);
                }
                appended.fault.map_or(Ok(()), |fault| Err(self.told_where_to(fault.into())))
            }
            (Err(LogError::DialectAmbiguous(_)), Some(kept)) => {
                self.batch = kept;
                self.last_sign = Instant::now();
                Ok(())
            }
            (Err(error), _) => Err(Problem::from(error).with_some("line", line)),
        }
    }

    /// Adds where a stream of several sessions can go, where the thread takes one run at a time.
    fn told_where_to(&self, problem: Problem) -> Problem {
        match &self.writing.target {
            Target::Thread(_) if problem.code() == "thread_busy" => problem.with("hint", SEVERAL_SESSIONS),
            _ => problem,
        }
    }

    /// Waits for an append, and meanwhile gathers what the next one will take.
    async fn take_in_during<B: ByteBody, T>(
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
                arrival = arrival(rest), if self.ended.is_none() && gathered < limits::BATCH_BYTES => match arrival {
                    Arrival::Bytes(bytes) => {
                        gathered += bytes.len();
                        self.intake.push(&bytes);
                        self.more = true;
                    }
                    ended => self.ended = Some(ended),
                }
            }
        }
    }

    /// Lets blank lines and comments renew the lease.
    async fn renew(&mut self) {
        let beats = self.intake.beats();
        if beats == std::mem::replace(&mut self.beats, beats) {
            return;
        }
        let now = Instant::now();
        self.last_sign = now;
        if self.renewed.is_some_and(|renewed| now - renewed < self.state.config.beat) {
            return;
        }
        self.renewed = Some(now);
        // A run that does not exist yet has no lease, and a store that fails will say so to the next write.
        match &self.writing.target {
            Target::Run(run) => drop(self.state.log.heartbeat(run).await),
            Target::Thread(thread) => self.renew_thread(thread).await,
            Target::Tenant(_) => {
                for thread in self.threads() {
                    self.renew_thread(&thread).await;
                }
            }
        }
    }

    async fn renew_thread(&self, thread: &ThreadKey) {
        let open = self.state.log.thread(thread).await.map(|thread| thread.open_runs);
        for run in open.unwrap_or_default() {
            let run = runwire_log::RunKey::new(thread.tenant.clone(), run);
            drop(self.state.log.heartbeat(&run).await);
        }
    }

    /// Lists the threads that the body has written to, where its frames name them.
    fn threads(&self) -> Vec<ThreadKey> {
        let Target::Tenant(tenant) = &self.writing.target else { return Vec::new() };
        let threads = self.written.iter().flat_map(|written| written.threads.iter().flatten());
        threads.map(|id| ThreadKey { tenant: tenant.clone(), id: id.clone() }).collect()
    }

    /// Tells whether any of the threads that the body has written to has an open run.
    async fn has_open_run(&self) -> Result<bool, LogError> {
        for thread in self.threads() {
            match self.state.log.thread(&thread).await {
                Ok(thread) if thread.open_runs.is_empty() => {}
                Ok(_) => return Ok(true),
                Err(error) if is_outage(&error) => return Err(error),
                // One that was deleted has none.
                Err(_) => {}
            }
        }
        Ok(false)
    }

    /// Gives up a quiet body whose run is not open; any other may be quiet for as long as it likes.
    async fn check_run(&mut self) -> Result<(), Problem> {
        let open = match &self.writing.target {
            Target::Run(run) => self.state.log.run(run).await.map(|run| !run.status.is_closed()),
            Target::Thread(thread) => {
                self.state.log.thread(thread).await.map(|thread| !thread.open_runs.is_empty())
            }
            Target::Tenant(_) => self.has_open_run().await,
        };
        let may_be_open = match &open {
            Ok(open) => *open,
            // Nobody can tell; whoever is quiet need not know.
            Err(error) => is_outage(error),
        };
        if !may_be_open {
            let quiet = self.state.config.body_idle.as_secs();
            let detail = format!("nothing came for {quiet} s, and there is no open run to wait for");
            return Err(Problem::new("body_idle", detail));
        }
        self.last_sign = Instant::now();
        Ok(())
    }

    /// Takes what was sent before the server began to stop, and says how far it came.
    async fn stop<B: ByteBody>(&mut self, body: &mut B) -> Result<(), Problem> {
        let until = Instant::now() + 4 * LAST_BYTES_TIME;
        while Instant::now() < until {
            match timeout(LAST_BYTES_TIME, self.next_bytes(body)).await {
                Ok(Arrival::Bytes(bytes)) => self.write(&bytes, body).await?,
                Ok(Arrival::End) => return self.finish::<B>().await,
                _ => break,
            }
        }
        let detail = "the server is stopping; the frames that are counted here are written";
        Err(Problem::new("shutting_down", detail))
    }

    /// Tells how far the run or thread is that a body without frames was for.
    async fn unwritten(&self) -> Result<Written, Problem> {
        let last_seq = match &self.writing.target {
            Target::Run(run) => self.state.log.run(run).await.map(|run| run.last_seq),
            Target::Thread(thread) => self.state.log.thread(thread).await.map(|thread| thread.head),
            Target::Tenant(_) => return Ok(Written { threads: Some(Vec::new()), ..Written::default() }),
        };
        match last_seq {
            Ok(last_seq) => Ok(Written { last_seq, ..Written::default() }),
            Err(LogError::RunUnknown(_) | LogError::ThreadUnknown(_)) => Ok(Written::default()),
            Err(error) => Err(error.into()),
        }
    }
}
