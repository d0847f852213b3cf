//! What is heard from Redis: the task that subscribes the threads that are followed, and reads what they missed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, RedisError, RedisResult, Value};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

use super::arrivals::Inbox;
use super::entry::{Arrival, Names};
use super::health::{Counters, Way};
use super::link::{Backoff, Connector};
use super::threads::{Task, Threads};
use crate::limits;

/// How often a stream is read on before it is left to the channel and the store: it may grow as fast as it is read.
const ROUNDS: usize = 16;

/// Keeps a thread followed until it is dropped.
#[derive(Debug)]
pub struct Following {
    thread: i64,
    threads: Arc<Threads>,
}

impl Following {
    pub(super) fn new(thread: i64, threads: Arc<Threads>) -> Self {
        Self { thread, threads }
    }

    /// Tells which thread.
    pub fn thread(&self) -> i64 {
        self.thread
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.threads.leave(self.thread);
    }
}

/// The task that listens.
#[derive(Debug)]
pub(super) struct Follower {
    connector: Connector,
    threads: Arc<Threads>,
    counters: Arc<Counters>,
    ear: Ear,
}

/// What takes in whatever Redis tells.
#[derive(Debug, Clone)]
struct Ear {
    names: Names,
    threads: Arc<Threads>,
    inbox: Inbox,
    counters: Arc<Counters>,
}

impl Follower {
    pub(super) fn new(
        connector: Connector,
        names: Names,
        threads: Arc<Threads>,
        inbox: Inbox,
        counters: Arc<Counters>,
    ) -> Self {
        let ear = Ear { names, threads: Arc::clone(&threads), inbox, counters: Arc::clone(&counters) };
        Self { connector, threads, counters, ear }
    }

    /// Listens until it is aborted.
    pub(super) async fn run(self) {
        let mut backoff = Backoff::new();
        loop {
            let error = self.listen(&mut backoff).await;
            self.counters.down(Way::Following, &error.to_string());
            backoff.pause().await;
        }
    }

    /// Listens until the connection falls, and tells why.
    async fn listen(&self, backoff: &mut Backoff) -> RedisError {
        let gone = Arc::new(Notify::new());
        let (ear, fallen) = (self.ear.clone(), Arc::clone(&gone));
        let push = move |told: PushInfo| {
            if told.kind == PushKind::Disconnection {
                fallen.notify_one();
            } else {
                ear.hear(told);
            }
            Ok(())
        };
        let mut session = match self.connector.connect_with(push).await {
            Ok(connection) => Session { connection, subscribed: HashSet::new(), ear: &self.ear },
            Err(error) => return error,
        };
        tokio::select! {
            () = gone.notified() => {
                std::io::Error::new(std::io::ErrorKind::ConnectionReset, "Redis closed the connection").into()
            }
            result = self.attend(&mut session, backoff) => match result {
                Ok(never) => match never {},
                Err(error) => error,
            },
        }
    }

    async fn attend(
        &self,
        session: &mut Session<'_>,
        backoff: &mut Backoff,
    ) -> RedisResult<std::convert::Infallible> {
        session.connection.subscribe(self.ear.names.echo()).await?;
        self.threads.forgotten();
        session.settle().await?;
        self.counters.up(Way::Following);
        *backoff = Backoff::new();
        let mut look = interval(Duration::from_millis(limits::REDIS_LOOK_MILLIS));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.threads.changed() => session.settle().await?,
                _ = look.tick() => redis::cmd("PING").exec_async(&mut session.connection).await?,
            }
        }
    }
}

/// A connection and what it is subscribed to.
struct Session<'a> {
    connection: MultiplexedConnection,
    subscribed: HashSet<i64>,
    ear: &'a Ear,
}

impl Session<'_> {
    /// Does what is to be done about threads, until nothing is.
    async fn settle(&mut self) -> RedisResult<()> {
        loop {
            let tasks = self.ear.threads.take(limits::REDIS_SUBSCRIBE);
            if tasks.is_empty() {
                return Ok(());
            }
            let (mut begin, mut end, mut missed) = (Vec::new(), Vec::new(), Vec::new());
            for (thread, task) in tasks {
                match task {
                    Task::Follow(after) => {
                        missed.push((thread, format!("{after}-0")));
                        if self.subscribed.insert(thread) {
                            begin.push(self.ear.names.of(thread));
                        }
                    }
                    Task::Leave if self.subscribed.remove(&thread) => end.push(self.ear.names.of(thread)),
                    Task::Leave => {}
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

    /// Reads what streams hold after their places.
    async fn catch_up(&mut self, missed: &[(i64, String)]) -> RedisResult<()> {
        let mut missed = missed.to_vec();
        for _ in 0..ROUNDS {
            if missed.is_empty() {
                return Ok(());
            }
            match self.read(&missed).await? {
                Ok(further) => missed = further,
                // Something else lies under one of the names. The others have nothing to do with it.
                Err(Refused) if missed.len() > 1 => {
                    for one in &missed {
                        let _ = self.read(std::slice::from_ref(one)).await?;
                    }
                    return Ok(());
                }
                Err(Refused) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Reads streams once; tells where those go on that have more.
    async fn read(&mut self, missed: &[(i64, String)]) -> RedisResult<Result<Vec<(i64, String)>, Refused>> {
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(limits::REDIS_CATCH_UP).arg("STREAMS");
        for (thread, _) in missed {
            command.arg(self.ear.names.of(*thread));
        }
        for (_, after) in missed {
            command.arg(after);
        }
        let answer = self.connection.send_packed_command(&command).await?;
        if let Value::ServerError(_) = answer {
            self.ear.counters.refused.fetch_add(1, Relaxed);
            return Ok(Err(Refused));
        }
        Ok(Ok(self.ear.hear_streams(answer)))
    }
}

/// Redis did not want to.
struct Refused;

impl Ear {
    /// Takes in what came by itself.
    fn hear(&self, told: PushInfo) {
        if told.kind != PushKind::Message {
            return;
        }
        let mut words = told.data.into_iter();
        let (Some(Value::BulkString(name)), Some(Value::BulkString(message))) = (words.next(), words.next())
        else {
            return self.pass_over();
        };
        if name == self.names.echo().as_bytes() {
            let sent = std::str::from_utf8(&message).ok().and_then(|sent| sent.parse().ok());
            return sent.map_or_else(|| self.pass_over(), |sent| self.counters.echoed(sent));
        }
        let thread = self.names.thread(&name);
        match thread.and_then(|thread| Arrival::from_message(thread, message)) {
            Some(arrival) => self.hand_on(arrival),
            None => self.pass_over(),
        }
    }

    /// Takes in what streams hold; tells where those go on that may have more.
    fn hear_streams(&self, answer: Value) -> Vec<(i64, String)> {
        let mut further = Vec::new();
        let Value::Map(streams) = answer else { return further };
        for (name, entries) in streams {
            let (Value::BulkString(name), Value::Array(entries)) = (name, entries) else { continue };
            let Some(thread) = self.names.thread(&name) else { continue };
            let is_full = entries.len() >= limits::REDIS_CATCH_UP;
            let mut last = None;
            for entry in entries {
                let Value::Array(parts) = entry else { continue };
                let mut parts = parts.into_iter();
                let (Some(Value::BulkString(id)), Some(Value::Array(fields))) = (parts.next(), parts.next())
                else {
                    continue;
                };
                match Arrival::from_stream(thread, &id, fields) {
                    Some(arrival) => self.hand_on(arrival),
                    None => self.pass_over(),
                }
                last = String::from_utf8(id).ok();
            }
            further.extend(last.filter(|_| is_full).map(|last| (thread, last)));
        }
        further
    }

    fn hand_on(&self, arrival: Arrival) {
        if self.threads.heard(arrival.thread, arrival.last) {
            self.inbox.put(arrival);
        }
    }

    fn pass_over(&self) {
        self.counters.garbage.fetch_add(1, Relaxed);
    }
}
