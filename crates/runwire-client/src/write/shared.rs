//! State shared by the engine's handles and its task, behind a mutex.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::emission::Emission;
use super::preflight::{Preflight, Start};
use super::queue::{SendBatch, SendQueue};
use super::state::{ConnectionState, EngineState};
use super::{EmitError, EngineFailure, WhenFull};

/// Limits of unacknowledged events.
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferLimits {
    /// Events in flight while the sink answers; as many may be queued behind them.
    pub(super) window: u64,
    /// Events in total while the sink does not answer.
    pub(super) events: u64,
    pub(super) bytes: usize,
    pub(super) when_full: WhenFull,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) request_id: String,
    pub(super) limits: BufferLimits,
    inner: Mutex<Inner>,
    /// Wakes the task: frames are queued, or the engine is being closed.
    pub(super) work: Notify,
    /// Wakes callers that wait for an acknowledgement, for space in the buffer, or for the end.
    progress: Notify,
    /// Wakes the task's linger timer when the engine is closed.
    closed: Notify,
}

#[derive(Debug)]
struct Inner {
    preflight: Preflight,
    queue: SendQueue,
    /// The sequence of the next event.
    next: u64,
    /// The sequence of the first event that is not acknowledged.
    acknowledged: u64,
    unacknowledged_bytes: usize,
    /// Bytes of the batch in flight.
    in_flight_bytes: usize,
    /// Newest timestamp written: timestamps of a run never decrease.
    clock: u64,
    thread: Option<String>,
    last_seq: Option<u64>,
    connection: ConnectionState,
    cancel_requested: bool,
    ended: bool,
    closing: Option<Closing>,
    stopped: bool,
    failure: Option<EngineFailure>,
}

/// How the engine is being closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// `close` was called and waits until everything is written.
    Requested,
    /// The last handle was dropped; the task may flush until then.
    Dropped(Instant),
}

/// Why an event was not queued.
enum PutError {
    Full(u64),
    Refused(EmitError),
}

impl Shared {
    pub(super) fn new(
        request_id: String,
        thread: Option<String>,
        limits: BufferLimits,
        start: Start,
    ) -> Self {
        let next = start.sequence();
        let preflight = Preflight::new(&request_id, start);
        let inner = Inner {
            preflight,
            queue: SendQueue::new(limits.window),
            next,
            acknowledged: next,
            unacknowledged_bytes: 0,
            in_flight_bytes: 0,
            clock: 0,
            thread,
            last_seq: None,
            connection: ConnectionState::Idle,
            cancel_requested: false,
            ended: false,
            closing: None,
            stopped: false,
            failure: None,
        };
        Self {
            request_id,
            limits,
            inner: Mutex::new(inner),
            work: Notify::new(),
            progress: Notify::new(),
            closed: Notify::new(),
        }
    }

    /// Locks the state; a poisoned lock is ignored, as no panic leaves the state inconsistent.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Called by emitters

    /// Queues an event, waits while the buffer is full, and returns the event's sequence.
    pub(super) async fn enqueue(&self, mut emission: Emission) -> Result<u64, EmitError> {
        emission.check_fields()?;
        loop {
            let progress = self.progress.notified();
            tokio::pin!(progress);
            match self.try_enqueue(&mut emission) {
                Ok(sequence) => return Ok(sequence),
                Err(PutError::Refused(refused)) => return Err(refused),
                Err(PutError::Full(events)) if self.limits.when_full == WhenFull::Refuse => {
                    return Err(EmitError::Full { events });
                }
                Err(PutError::Full(_)) => {}
            }
            progress.as_mut().enable();
            // An acknowledgement between the attempt and `enable` has not woken this caller.
            if self.lock().is_full(&self.limits) {
                progress.await;
            }
        }
    }

    fn try_enqueue(&self, emission: &mut Emission) -> Result<u64, PutError> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.check_open().map_err(PutError::Refused)?;
        inner.preflight.check_references(emission).map_err(PutError::Refused)?;
        if inner.is_full(&self.limits) {
            return Err(PutError::Full(inner.next - inner.acknowledged));
        }
        if let Emission::Event(event) = emission
            && event.step_id.is_none()
            && !event.body.type_name().starts_with("run.")
            && !event.body.type_name().starts_with("step.")
        {
            event.step_id = inner.preflight.current_step();
        }
        let (sequence, now) = (inner.next, now().max(inner.clock));
        let preflight = &mut inner.preflight;
        let pushed = inner.queue.push(
            sequence,
            |out| emission.write(out, &self.request_id, now, sequence),
            |frame| preflight.admit(emission, frame),
        );
        let bytes = pushed.map_err(PutError::Refused)?;
        inner.unacknowledged_bytes += bytes;
        inner.clock = now;
        inner.next += 1;
        inner.ended |= emission.ends_session();
        // A run that exists already has its thread.
        if let (true, None, Emission::SessionStart { session_id }) =
            (inner.preflight.is_fresh(), &inner.thread, &*emission)
        {
            inner.thread = Some(session_id.clone());
        }
        self.work.notify_one();
        Ok(sequence)
    }

    /// Waits until every event before a sequence is acknowledged.
    pub(super) async fn acknowledged_up_to(&self, sequence: u64) -> Result<(), EngineFailure> {
        self.until(|inner| {
            if inner.acknowledged >= sequence {
                return Some(Ok(()));
            }
            inner.failure.clone().map(Err)
        })
        .await
    }

    /// Waits until the task has ended.
    pub(super) async fn stopped(&self) -> Result<(), EngineFailure> {
        self.until(|inner| inner.stopped.then(|| inner.failure.clone().map_or(Ok(()), Err))).await
    }

    /// Waits until an event is acknowledged; returns false if the engine ended without one.
    pub(super) async fn has_written(&self) -> bool {
        self.until(|inner| {
            let over = inner.failure.is_some() || inner.stopped;
            (inner.acknowledged > 0 || over).then_some(inner.acknowledged > 0)
        })
        .await
    }

    /// Returns true if the engine has failed or was closed.
    pub(super) fn is_over(&self) -> bool {
        let inner = self.lock();
        inner.failure.is_some() || inner.stopped
    }

    async fn until<T>(&self, mut done: impl FnMut(&Inner) -> Option<T>) -> T {
        loop {
            let progress = self.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            if let Some(done) = done(&self.lock()) {
                return done;
            }
            progress.await;
        }
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.lock().next
    }

    pub(super) fn state(&self) -> EngineState {
        let inner = self.lock();
        EngineState {
            emitted: inner.next,
            acknowledged: inner.acknowledged,
            buffered: inner.next - inner.acknowledged,
            buffered_bytes: inner.unacknowledged_bytes,
            last_seq: inner.last_seq,
            cancel_requested: inner.cancel_requested,
            connection: match &inner.failure {
                Some(failure) => ConnectionState::Failed(failure.clone()),
                None if inner.stopped => ConnectionState::Closed,
                None => inner.connection.clone(),
            },
        }
    }

    pub(super) fn close(&self, how: Closing) {
        let mut inner = self.lock();
        if inner.closing != Some(Closing::Requested) {
            inner.closing = Some(how);
        }
        drop(inner);
        self.work.notify_one();
        self.closed.notify_one();
        self.progress.notify_waiters();
    }

    // Called by the task

    /// Waits until the engine is closed or dropped.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Takes the next batch.
    pub(super) fn take(&self) -> Option<SendBatch> {
        let mut inner = self.lock();
        let batch = inner.queue.take()?;
        inner.in_flight_bytes = batch.lines().len();
        Some(batch)
    }

    pub(super) fn closing(&self) -> Option<Closing> {
        self.lock().closing
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    pub(super) fn thread(&self) -> Option<String> {
        self.lock().thread.clone()
    }

    /// Marks frames as written, and wakes waiting callers.
    pub(super) fn acknowledge(&self, frames: u64, last_seq: Option<u64>) {
        let mut inner = self.lock();
        inner.acknowledged += frames;
        inner.unacknowledged_bytes -= std::mem::take(&mut inner.in_flight_bytes);
        inner.last_seq = last_seq.or(inner.last_seq);
        inner.connection = ConnectionState::Connected;
        drop(inner);
        self.progress.notify_waiters();
    }

    pub(super) fn set_connection(&self, connection: ConnectionState) {
        let mut inner = self.lock();
        let uses_buffer = matches!(connection, ConnectionState::Retrying { .. });
        inner.connection = connection;
        drop(inner);
        if uses_buffer {
            self.progress.notify_waiters();
        }
    }

    pub(super) fn set_cancel_requested(&self) {
        self.lock().cancel_requested = true;
        self.progress.notify_waiters();
    }

    pub(super) fn fail(&self, failure: EngineFailure) {
        let mut inner = self.lock();
        inner.failure.get_or_insert(failure);
        drop(inner);
        self.progress.notify_waiters();
    }

    /// Marks the task as ended; queued frames will not be sent.
    pub(super) fn set_stopped(&self) {
        let mut inner = self.lock();
        inner.stopped = true;
        if inner.acknowledged < inner.next {
            inner.failure.get_or_insert(EngineFailure::Stopped);
        }
        drop(inner);
        self.progress.notify_waiters();
    }
}

impl Inner {
    fn check_open(&self) -> Result<(), EmitError> {
        match (&self.failure, self.closing) {
            (Some(failure), _) => Err(EmitError::Failed(failure.clone())),
            (None, Some(_)) => Err(EmitError::Closed),
            (None, None) => Ok(()),
        }
    }

    fn is_full(&self, limits: &BufferLimits) -> bool {
        if self.failure.is_some() || self.closing.is_some() {
            return false;
        }
        // While the sink answers, the window is the limit; while it does not, the buffer is.
        let window = limits.window.saturating_mul(2);
        let events = match self.connection {
            ConnectionState::Retrying { .. } => limits.events.max(window),
            _ => window,
        };
        self.next - self.acknowledged >= events || self.unacknowledged_bytes >= limits.bytes
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
