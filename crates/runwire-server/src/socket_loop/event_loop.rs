//! The thread of a loop: one turn after the other.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Events, Poll};
use runwire_log::{QueuedAppend, ReplySink};
use slab::Slab;
use socket2::SockRef;

use super::CaughtUpStream;
use super::inbox::{Inbox, InboxMessages, NewSocket, WAKE};
use super::pump::FeedReaders;
use super::reader::LoopReader;
use super::socket::{LoopSocket, Role, SocketId};
use super::writer::LoopWriter;
use crate::auth::tenant_of;
use crate::listener::{ConnectionPermit, Connections};
use crate::metrics::LoopRole;
use crate::{feed, limits};

/// Events that are taken from the kernel at once.
const EVENTS: usize = 512;
/// Bytes that are read from a socket at once.
const READ_BYTES: usize = 64 << 10;

/// A loop: its poller, its sockets, and what waits for the next turn.
pub(super) struct EventLoop {
    pub(super) poll: Poll,
    pub(super) inbox: Arc<Inbox>,
    pub(super) sink: Arc<dyn ReplySink>,
    pub(super) listener: Arc<dyn feed::FeedListener>,
    pub(super) connections: Arc<Connections>,
    pub(super) sockets: Slab<LoopSocket>,
    /// Numbers the sockets.
    generation: u32,
    /// The feeds that have readers here, and where each is, by its address.
    pub(super) feeds: Slab<FeedReaders>,
    pub(super) feed_places: HashMap<usize, usize>,
    /// Numbers the subscriptions to feeds.
    pub(super) subscriptions: u32,
    /// Feeds whose readers are being written to.
    pub(super) passes: VecDeque<usize>,
    /// Feeds that have changed, and rest after a pass.
    pub(super) resting: Vec<usize>,
    /// The appends of this turn.
    pub(super) batch: Vec<QueuedAppend>,
    /// Writers that have more to do than one turn allows.
    pub(super) queued_writers: Vec<SocketId>,
    /// Bodies that are left to hyper if they are still incomplete then.
    pub(super) late_bodies: VecDeque<(Instant, SocketId)>,
    pub(super) read_buffer: Vec<u8>,
    pub(super) answer: Vec<u8>,
    /// The time of this turn.
    pub(super) now: Instant,
    tick: Duration,
    next_tick: Instant,
    pub(super) stopping: bool,
    /// Whether the loop was asked to end.
    closed: bool,
}

impl EventLoop {
    pub(super) fn new(poll: Poll, inbox: Arc<Inbox>, connections: Arc<Connections>) -> Self {
        let config = &connections.state.config;
        // Deadlines and keep-alives may be late by this.
        let tick = config.header_time.min(config.keep_alive) / 8;
        let now = Instant::now();
        Self {
            poll,
            sink: inbox.clone(),
            listener: inbox.clone(),
            inbox,
            sockets: Slab::new(),
            generation: 0,
            feeds: Slab::new(),
            feed_places: HashMap::new(),
            subscriptions: 0,
            passes: VecDeque::new(),
            resting: Vec::new(),
            batch: Vec::new(),
            queued_writers: Vec::new(),
            late_bodies: VecDeque::new(),
            read_buffer: vec![0; READ_BYTES],
            answer: Vec::new(),
            now,
            tick: tick.clamp(Duration::from_millis(1), Duration::from_secs(1)),
            next_tick: now,
            stopping: false,
            closed: false,
            connections,
        }
    }

    /// Runs until it is closed, or the poller fails.
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        let mut messages = InboxMessages::default();
        loop {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return tracing::error!(%error, "a socket loop has ended: its poller failed");
                }
                _ => {}
            }
            self.now = Instant::now();
            self.inbox.take(&mut messages);
            if messages.close {
                self.closed = true;
                return;
            }
            // Answers first: clients wait for them.
            for reply in messages.replies.drain(..) {
                self.take_reply(reply);
            }
            for answer in messages.answers.drain(..) {
                self.take_answer(answer);
            }
            self.serve_queued_writers();
            for event in &events {
                self.take_event(event);
            }
            for (feed, ended) in messages.feeds.drain(..) {
                self.feed_changed(feed, ended);
            }
            for socket in messages.sockets.drain(..) {
                self.adopt(socket);
            }
            if std::mem::take(&mut messages.stop) {
                self.stop();
            }
            if std::mem::take(&mut messages.reset) {
                self.reset_all();
            }
            self.hand_over_late_bodies();
            self.submit();
            self.end_rests();
            self.pump();
            if self.now >= self.next_tick {
                self.next_tick = self.now + self.tick;
                self.close_overdue();
                self.keep_alive();
            }
        }
    }

    /// Returns how long the poller may wait: not at all while there is something to do.
    fn timeout(&self) -> Option<Duration> {
        if !self.passes.is_empty() || !self.queued_writers.is_empty() || !self.inbox.begin_sleep() {
            return Some(Duration::ZERO);
        }
        let tick = (!self.sockets.is_empty()).then_some(self.next_tick);
        let late = self.late_bodies.front().map(|(due, _)| *due);
        let due = [tick, late, self.rest_ends()].into_iter().flatten().min();
        due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    fn take_event(&mut self, event: &Event) {
        if event.token() == WAKE {
            return;
        }
        let key = event.token().0;
        // An event may be of a socket that has left in this turn; no other has its place before the next.
        let Some(socket) = self.sockets.get_mut(key) else { return };
        let is_readable = event.is_readable() || event.is_read_closed() || event.is_error();
        if let Role::Writer(writer) = &mut socket.role {
            writer.note(is_readable, event.is_read_closed() || event.is_error());
            self.serve_writer(key);
        } else if is_readable && socket.has_left() {
            drop(self.take_socket(key));
        } else if event.is_writable() {
            self.resume_reader(key);
        }
    }

    /// Takes over a socket.
    fn adopt(&mut self, socket: NewSocket) {
        match socket {
            NewSocket::Writer(stream, permit) => {
                let local = stream.local_addr().ok().map(|local| local.ip());
                let role = Role::Writer(Box::new(LoopWriter::new(local)));
                let owner = tenant_of(&http::HeaderMap::new());
                if let Some(key) = self.insert(stream, permit, owner, role) {
                    self.sockets[key].deadline = Some(self.now + limits::IDLE_TIME);
                    self.serve_writer(key);
                }
            }
            NewSocket::Reader(stream, permit, reader) => {
                let CaughtUpStream { position, sent, owner, open } = *reader;
                let at = position.at;
                let feed = self.feed_readers(position.feed, at);
                let role = Role::Reader(LoopReader::new(feed, at, sent, position.options, open));
                match self.insert(stream, permit, owner, role) {
                    Some(key) if self.stopping => self.hand_to_task(key),
                    Some(key) => self.catch_up(key),
                    None => self.drop_feed_without_readers(feed),
                }
            }
        }
    }

    fn insert(
        &mut self,
        stream: std::net::TcpStream,
        permit: ConnectionPermit,
        owner: Arc<str>,
        role: Role,
    ) -> Option<usize> {
        self.generation = self.generation.wrapping_add(1);
        let stream = mio::net::TcpStream::from_std(stream);
        let feed = match &role {
            Role::Reader(reader) => Some(reader.feed()),
            Role::Writer(_) => None,
        };
        let socket = LoopSocket { stream, generation: self.generation, owner, deadline: None, permit, role };
        let entry = self.sockets.vacant_entry();
        let key = entry.key();
        let socket = entry.insert(socket);
        if let Err(error) = socket.register(self.poll.registry(), key) {
            tracing::debug!(%error, "a socket could not be registered");
            self.sockets.remove(key);
            self.inbox.forget_socket();
            return None;
        }
        let role = match feed {
            Some(feed) => {
                self.feeds[feed].readers += 1;
                LoopRole::Reader
            }
            None => LoopRole::Writer,
        };
        self.connections.state.metrics.add_loop_connection(role);
        if role == LoopRole::Reader {
            self.connections.state.metrics.count_loop_request(role);
        }
        Some(key)
    }

    /// Takes a socket out of the loop, and out of everything that names it.
    pub(super) fn take_socket(&mut self, key: usize) -> Option<LoopSocket> {
        self.unlist(key);
        let socket = self.sockets.try_remove(key)?;
        self.inbox.forget_socket();
        let role = match &socket.role {
            Role::Reader(reader) => {
                self.feeds[reader.feed()].readers -= 1;
                self.drop_feed_without_readers(reader.feed());
                LoopRole::Reader
            }
            Role::Writer(_) => LoopRole::Writer,
        };
        self.connections.state.metrics.remove_loop_connection(role);
        Some(socket)
    }

    /// Answers writers for the last time, and gives readers to tasks, which end their streams.
    fn stop(&mut self) {
        self.stopping = true;
        for key in self.keys() {
            match self.sockets.get_mut(key).map(|socket| &mut socket.role) {
                Some(Role::Writer(writer)) => {
                    // What has arrived is still answered.
                    writer.note(true, false);
                    self.serve_writer(key);
                }
                Some(Role::Reader(_)) => self.hand_to_task(key),
                None => {}
            }
        }
    }

    fn reset_all(&mut self) {
        for key in self.keys() {
            if let Some(socket) = self.take_socket(key) {
                socket.reset();
            }
        }
    }

    /// Closes sockets whose deadline has passed.
    fn close_overdue(&mut self) {
        let overdue: Vec<usize> = self
            .sockets
            .iter()
            .filter(|(_, socket)| socket.deadline.is_some_and(|deadline| deadline <= self.now))
            .map(|(key, _)| key)
            .collect();
        for key in overdue {
            // Its complete frames are still written.
            if let Some(Role::Writer(writer)) = self.sockets.get_mut(key).map(|socket| &mut socket.role)
                && writer.is_in_body()
            {
                let received = writer.take_received();
                self.hand_to_hyper(key, received);
                continue;
            }
            let Some(socket) = self.take_socket(key) else { continue };
            // A client that does not take its answer is not waited for.
            if matches!(&socket.role, Role::Writer(writer) if writer.is_answering()) {
                socket.reset();
            }
        }
    }

    pub(super) fn keys(&self) -> Vec<usize> {
        self.sockets.iter().map(|(key, _)| key).collect()
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        // Also where the thread panics: nothing may wait for it.
        self.inbox.retire();
        if !self.closed {
            self.connections.loop_has_failed();
        }
        for (_, feed) in &self.feeds {
            feed.unsubscribe(&self.listener);
        }
        for (_, socket) in &self.sockets {
            let _ = SockRef::from(&socket.stream).set_linger(Some(Duration::ZERO));
        }
    }
}
