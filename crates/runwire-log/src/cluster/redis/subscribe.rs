//! The task that subscribes to the channels of followed threads, and reads the entries that they missed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, RedisError, RedisResult, Value};
use runwire_producer::Backoff;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

use super::connect::{REDIS_BACKOFF, RedisConnector};
use super::entry::{ReceivedEntry, RedisKeys};
use super::received::EntrySender;
use super::stats::{Counters, Direction};
use super::subscriptions::{SubscriptionChange, Subscriptions};
use crate::limits;

/// Limits the reads of one stream: it may grow as fast as it is read, and the channel and the store cover the rest.
const MAX_CATCH_UP_READS: usize = 16;

/// Follows a thread until it is dropped.
#[derive(Debug)]
pub struct Subscription {
    thread: i64,
    threads: Arc<Subscriptions>,
}

impl Subscription {
    pub(super) fn new(thread: i64, threads: Arc<Subscriptions>) -> Self {
        Self { thread, threads }
    }

    /// Returns the thread's number.
    pub fn thread(&self) -> i64 {
        self.thread
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.threads.unfollow(self.thread);
    }
}

/// The subscriber task.
#[derive(Debug)]
pub(super) struct RedisSubscriber {
    connector: RedisConnector,
    threads: Arc<Subscriptions>,
    counters: Arc<Counters>,
    handler: PushHandler,
}

/// Handles messages that Redis pushes.
#[derive(Debug, Clone)]
struct PushHandler {
    keys: RedisKeys,
    threads: Arc<Subscriptions>,
    sender: EntrySender,
    counters: Arc<Counters>,
}

impl RedisSubscriber {
    pub(super) fn new(
        connector: RedisConnector,
        keys: RedisKeys,
        threads: Arc<Subscriptions>,
        sender: EntrySender,
        counters: Arc<Counters>,
    ) -> Self {
        let handler =
            PushHandler { keys, threads: Arc::clone(&threads), sender, counters: Arc::clone(&counters) };
        Self { connector, threads, counters, handler }
    }

    /// Reconnects and listens until it is aborted.
    pub(super) async fn run(self) {
        let mut backoff = REDIS_BACKOFF;
        loop {
            let error = self.connect_and_listen(&mut backoff).await;
            self.counters.down(Direction::Subscribing, &error.to_string());
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Listens until the connection fails, and returns why.
    async fn connect_and_listen(&self, backoff: &mut Backoff) -> RedisError {
        let gone = Arc::new(Notify::new());
        let (handler, fallen) = (self.handler.clone(), Arc::clone(&gone));
        let push = move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                fallen.notify_one();
            } else {
                handler.on_push(push);
            }
            Ok(())
        };
        let mut subscribed = match self.connector.connect_with(push).await {
            Ok(connection) => {
                SubscribedConnection { connection, subscribed: HashSet::new(), handler: &self.handler }
            }
            Err(error) => return error,
        };
        tokio::select! {
            () = gone.notified() => {
                std::io::Error::new(std::io::ErrorKind::ConnectionReset, "Redis closed the connection").into()
            }
            result = self.listen(&mut subscribed, backoff) => match result {
                Ok(never) => match never {},
                Err(error) => error,
            },
        }
    }

    async fn listen(
        &self,
        subscribed: &mut SubscribedConnection<'_>,
        backoff: &mut Backoff,
    ) -> RedisResult<std::convert::Infallible> {
        subscribed.connection.subscribe(self.handler.keys.echo()).await?;
        self.threads.resubscribe_all();
        subscribed.apply_changes().await?;
        self.counters.up(Direction::Subscribing);
        backoff.reset();
        let mut ping = interval(Duration::from_millis(limits::REDIS_PING_MILLIS));
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.threads.changed() => subscribed.apply_changes().await?,
                _ = ping.tick() => redis::cmd("PING").exec_async(&mut subscribed.connection).await?,
            }
        }
    }
}

/// A connection and its subscriptions.
struct SubscribedConnection<'a> {
    connection: MultiplexedConnection,
    subscribed: HashSet<i64>,
    handler: &'a PushHandler,
}

impl SubscribedConnection<'_> {
    /// Subscribes and unsubscribes until no change is pending.
    async fn apply_changes(&mut self) -> RedisResult<()> {
        loop {
            let changes = self.handler.threads.take_changes(limits::REDIS_SUBSCRIBE);
            if changes.is_empty() {
                return Ok(());
            }
            let (mut begin, mut end, mut missed) = (Vec::new(), Vec::new(), Vec::new());
            for (thread, change) in changes {
                match change {
                    SubscriptionChange::Subscribe(after) => {
                        missed.push((thread, format!("{after}-0")));
                        if self.subscribed.insert(thread) {
                            begin.push(self.handler.keys.of(thread));
                        }
                    }
                    SubscriptionChange::Unsubscribe if self.subscribed.remove(&thread) => {
                        end.push(self.handler.keys.of(thread))
                    }
                    SubscriptionChange::Unsubscribe => {}
                }
            }
            if !end.is_empty() {
                self.connection.unsubscribe(end).await?;
            }
            if !begin.is_empty() {
                self.connection.subscribe(begin).await?;
            }
            for missed in missed.chunks(limits::REDIS_CATCH_UP) {
                self.catch_up(missed).await?;
            }
        }
    }

    /// Reads the entries of streams after the given ids.
    async fn catch_up(&mut self, missed: &[(i64, String)]) -> RedisResult<()> {
        let mut missed = missed.to_vec();
        for _ in 0..MAX_CATCH_UP_READS {
            if missed.is_empty() {
                return Ok(());
            }
            match self.read(&missed).await? {
                CatchUp::Read { further } => missed = further,
                // One of the keys is no stream. The others must not suffer from it.
                CatchUp::Refused if missed.len() > 1 => {
                    for one in &missed {
                        self.read(std::slice::from_ref(one)).await?;
                    }
                    return Ok(());
                }
                CatchUp::Refused => return Ok(()),
            }
        }
        Ok(())
    }

    /// Reads streams once.
    async fn read(&mut self, missed: &[(i64, String)]) -> RedisResult<CatchUp> {
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(limits::REDIS_CATCH_UP).arg("STREAMS");
        for (thread, _) in missed {
            command.arg(self.handler.keys.of(*thread));
        }
        for (_, after) in missed {
            command.arg(after);
        }
        let answer = self.connection.send_packed_command(&command).await?;
        if let Value::ServerError(_) = answer {
            self.handler.counters.refused.fetch_add(1, Relaxed);
            return Ok(CatchUp::Refused);
        }
        Ok(CatchUp::Read { further: self.handler.on_streams(answer) })
    }
}

/// The answer to a catch-up read.
enum CatchUp {
    /// The entries were read; `further` are the positions of streams that have more.
    Read { further: Vec<(i64, String)> },
    /// Redis has refused the command.
    Refused,
}

impl PushHandler {
    /// Handles a pushed message.
    fn on_push(&self, push: PushInfo) {
        if push.kind != PushKind::Message {
            return;
        }
        let mut words = push.data.into_iter();
        let (Some(Value::BulkString(name)), Some(Value::BulkString(message))) = (words.next(), words.next())
        else {
            return self.count_garbage();
        };
        if name == self.keys.echo().as_bytes() {
            let sent = std::str::from_utf8(&message).ok().and_then(|sent| sent.parse().ok());
            return sent.map_or_else(|| self.count_garbage(), |sent| self.counters.echoed(sent));
        }
        let thread = self.keys.thread(&name);
        match thread.and_then(|thread| ReceivedEntry::from_message(thread, message)) {
            Some(entry) => self.forward(entry),
            None => self.count_garbage(),
        }
    }

    /// Handles the entries of streams; returns the positions of those that may have more.
    fn on_streams(&self, answer: Value) -> Vec<(i64, String)> {
        let mut further = Vec::new();
        let Value::Map(streams) = answer else { return further };
        for (name, entries) in streams {
            let (Value::BulkString(name), Value::Array(entries)) = (name, entries) else { continue };
            let Some(thread) = self.keys.thread(&name) else { continue };
            let is_full = entries.len() >= limits::REDIS_CATCH_UP;
            let mut last = None;
            for entry in entries {
                let Value::Array(parts) = entry else { continue };
                let mut parts = parts.into_iter();
                let (Some(Value::BulkString(id)), Some(Value::Array(fields))) = (parts.next(), parts.next())
                else {
                    continue;
                };
                match ReceivedEntry::from_stream(thread, &id, fields) {
                    Some(entry) => self.forward(entry),
                    None => self.count_garbage(),
                }
                last = String::from_utf8(id).ok();
            }
            further.extend(last.filter(|_| is_full).map(|last| (thread, last)));
        }
        further
    }

    fn forward(&self, entry: ReceivedEntry) {
        if self.threads.advance(entry.thread, entry.last) {
            self.sender.send(entry);
        }
    }

    fn count_garbage(&self) {
        self.counters.garbage.fetch_add(1, Relaxed);
    }
}
