//! What the engine's handles and its task share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::batch::{Batch, Queue};
use super::check::{Check, Start};
use super::frame::Says;
use super::state::{Connection, EngineState};
use super::{EmitError, Failure, WhenFull};

/// How much may be unacknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Events on their way, while the sink answers; as many may be queued behind them.
    pub(super) window: u64,
    /// Events in all, while it does not.
    pub(super) events: u64,
    pub(super) bytes: usize,
    pub(super) when_full: WhenFull,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) request_id: String,
    pub(super) bounds: Bounds,
    inner: Mutex<Inner>,
    /// Wakes the task: there is something to send, or the engine is being closed.
    pub(super) work: Notify,
    /// Wakes whoever waits for an acknowledgement, for room, or for the end.
    progress: Notify,
    /// Wakes the task's watch over its time when the engine is closed.
    closed: Notify,
}

#[derive(Debug)]
struct Inner {
    check: Check,
    queue: Queue,
    /// The sequence of the next event.
    next: u64,
    /// The sequence of the first event that is not acknowledged.
    acknowledged: u64,
    unacknowledged_bytes: usize,
    /// Bytes of the batch that is under way.
    under_way: usize,
    /// The newest time that was written: time never goes backwards in a run.
    clock: u64,
    thread: Option<String>,
    last_seq: Option<u64>,
    connection: Connection,
    cancel_requested: bool,
    ended: bool,
    closing: Option<Closing>,
    stopped: bool,
    failure: Option<Failure>,
}

/// How the engine is being closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// Somebody waits until everything is written.
    Asked,
    /// Nobody holds the engine any more; there is time until then.
    Dropped(Instant),
}

/// What stands in the way of an event.
enum Obstacle {
    Full(u64),
    Refused(EmitError),
}

impl Shared {
    pub(super) fn new(request_id: String, thread: Option<String>, bounds: Bounds, start: Start) -> Self {
        let next = start.sequence();
        let check = Check::new(&request_id, start);
        let inner = Inner {
            check,
            queue: Queue::new(bounds.window),
            next,
            acknowledged: next,
            unacknowledged_bytes: 0,
            under_way: 0,
            clock: 0,
            thread,
            last_seq: None,
            connection: Connection::Idle,
            cancel_requested: false,
            ended: false,
            closing: None,
            stopped: false,
            failure: None,
        };
        Self {
            request_id,
            bounds,
            inner: Mutex::new(inner),
            work: Notify::new(),
            progress: Notify::new(),
            closed: Notify::new(),
        }
    }

    /// A panic while the lock was held leaves nothing half done that matters more than going on.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // What emitters do

    /// Puts an event into the queue, and waits for room in it if it must. Tells the event's sequence.
    pub(super) async fn put(&self, mut says: Says) -> Result<u64, EmitError> {
        says.check_fields()?;
        loop {
            let progress = self.progress.notified();
            tokio::pin!(progress);
            match self.try_put(&mut says) {
                Ok(sequence) => return Ok(sequence),
                Err(Obstacle::Refused(refused)) => return Err(refused),
                Err(Obstacle::Full(events)) if self.bounds.when_full == WhenFull::Refuse => {
                    return Err(EmitError::Full { events });
                }
                Err(Obstacle::Full(_)) => {}
            }
            progress.as_mut().enable();
            // What was acknowledged between the attempt and now has woken nobody.
            if self.lock().has_no_room(&self.bounds) {
                progress.await;
            }
        }
    }

    fn try_put(&self, says: &mut Says) -> Result<u64, Obstacle> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.check_open().map_err(Obstacle::Refused)?;
        inner.check.check_meaning(says).map_err(Obstacle::Refused)?;
        if inner.has_no_room(&self.bounds) {
            return Err(Obstacle::Full(inner.next - inner.acknowledged));
        }
        if let Says::Event(event) = says
            && event.step_id.is_none()
            && !event.body.type_name().starts_with("run.")
            && !event.body.type_name().starts_with("step.")
        {
            event.step_id = inner.check.current_step();
        }
        let (sequence, now) = (inner.next, now().max(inner.clock));
        let check = &mut inner.check;
        let pushed = inner.queue.push(
            sequence,
            |out| says.write(out, &self.request_id, now, sequence),
            |frame| check.admit(says, frame),
        );
        let bytes = pushed.map_err(Obstacle::Refused)?;
        inner.unacknowledged_bytes += bytes;
        inner.clock = now;
        inner.next += 1;
        inner.ended |= says.ends_the_session();
        // A run that is there already is in its thread already.
        if let (true, None, Says::SessionStart { session_id }) =
            (inner.check.is_fresh(), &inner.thread, &*says)
        {
            inner.thread = Some(session_id.clone());
        }
        self.work.notify_one();
        Ok(sequence)
    }

    /// Waits until every event before a sequence is acknowledged.
    pub(super) async fn acknowledged_up_to(&self, sequence: u64) -> Result<(), Failure> {
        self.until(|inner| {
            if inner.acknowledged >= sequence {
                return Some(Ok(()));
            }
            inner.failure.clone().map(Err)
        })
        .await
    }

    /// Waits until the task has ended.
    pub(super) async fn stopped(&self) -> Result<(), Failure> {
        self.until(|inner| inner.stopped.then(|| inner.failure.clone().map_or(Ok(()), Err))).await
    }

    /// Waits until something of the run is written; tells `false` if nothing will be.
    pub(super) async fn has_written(&self) -> bool {
        self.until(|inner| {
            let over = inner.failure.is_some() || inner.stopped;
            (inner.acknowledged > 0 || over).then_some(inner.acknowledged > 0)
        })
        .await
    }

    /// Tells whether the engine has failed or was closed.
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
                Some(failure) => Connection::Failed(failure.clone()),
                None if inner.stopped => Connection::Closed,
                None => inner.connection.clone(),
            },
        }
    }

    pub(super) fn close(&self, how: Closing) {
        let mut inner = self.lock();
        if inner.closing != Some(Closing::Asked) {
            inner.closing = Some(how);
        }
        drop(inner);
        self.work.notify_one();
        self.closed.notify_one();
        self.progress.notify_waiters();
    }

    // What the task does

    /// Waits until the engine is closed, in whichever way.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Takes what can be sent at once.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut inner = self.lock();
        let batch = inner.queue.take()?;
        inner.under_way = batch.lines().len();
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

    /// Releases whoever waited for frames that are written now.
    pub(super) fn acknowledge(&self, frames: u64, last_seq: Option<u64>) {
        let mut inner = self.lock();
        inner.acknowledged += frames;
        inner.unacknowledged_bytes -= std::mem::take(&mut inner.under_way);
        inner.last_seq = last_seq.or(inner.last_seq);
        inner.connection = Connection::Connected;
        drop(inner);
        self.progress.notify_waiters();
    }

    pub(super) fn set_connection(&self, connection: Connection) {
        let mut inner = self.lock();
        let opens_the_buffer = matches!(connection, Connection::Retrying { .. });
        inner.connection = connection;
        drop(inner);
        if opens_the_buffer {
            self.progress.notify_waiters();
        }
    }

    pub(super) fn set_cancel_requested(&self) {
        self.lock().cancel_requested = true;
        self.progress.notify_waiters();
    }

    pub(super) fn fail(&self, failure: Failure) {
        let mut inner = self.lock();
        inner.failure.get_or_insert(failure);
        drop(inner);
        self.progress.notify_waiters();
    }

    /// Marks the task as ended; what is left in the queue will not be sent.
    pub(super) fn set_stopped(&self) {
        let mut inner = self.lock();
        inner.stopped = true;
        if inner.acknowledged < inner.next {
            inner.failure.get_or_insert(Failure::Stopped);
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

    fn has_no_room(&self, bounds: &Bounds) -> bool {
        if self.failure.is_some() || self.closing.is_some() {
            return false;
        }
        // A sink that answers sets the pace; one that does not must not stop the agent before the buffer is full.
        let window = bounds.window.saturating_mul(2);
        let events = match self.connection {
            Connection::Retrying { .. } => bounds.events.max(window),
            _ => window,
        };
        self.next - self.acknowledged >= events || self.unacknowledged_bytes >= bounds.bytes
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
