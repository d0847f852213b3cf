//! Writers: connections that send appends to runs, one small request after the other.
//!
//! Bytes are read into a buffer of the loop and parsed there, so an idle writer holds none. Requests of one connection are
//! answered in order: the next one is looked at when the one before is answered. As soon as a request is unusual (another
//! path, a body that is long, chunked or late, a head that hyper should parse), the connection is handed over to hyper for
//! good, with the bytes that were read and not yet answered.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::ops::Range;
use std::time::Instant;

use http::request::Parts;
use runwire_log::{AppendReply, QueuedAppend};

use super::event_loop::EventLoop;
use super::handover::{status_of, write_answer};
use super::inbox::TaskAnswer;
use super::socket::{LoopSocket, Role, SocketId};
use crate::metrics::{LoopRole, RouteClass};
use crate::problem::Problem;
use crate::request_head::{RequestHead, body_length};
use crate::routes::{self, HttpRoute};
use crate::write::{SentAppend, SingleAppend, WriteParams, WriteSummary};
use crate::{hosts, limits, origin};

/// The first bytes of every request that can be served here.
const REQUEST_PREFIX: &[u8] = b"POST /v1/runs/";

/// Returns true if a connection with these first bytes can be served by a loop.
pub(crate) fn accepts(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(REQUEST_PREFIX)
}

/// What a writer's connection is at.
#[derive(Default)]
pub(super) struct LoopWriter {
    /// The local address of the connection.
    local: Option<IpAddr>,
    /// Bytes that were read and belong to no answered request; empty most of the time.
    received: Received,
    /// The request that waits for its answer.
    in_flight: Option<InFlight>,
    /// The rest of a response that the socket did not take.
    unsent: Vec<u8>,
    /// Whether the socket may have bytes that were not read.
    readable: bool,
    /// Whether the client has closed its side.
    read_closed: bool,
    /// Whether the last response was written.
    last_answered: bool,
    /// When a body that is incomplete is left to hyper: counted from its head, however its pieces come.
    late_at: Option<Instant>,
    /// Whether the next turn continues with it.
    queued: bool,
}

/// Bytes of a connection that were read. Those of answered requests are not moved out of the way one by one.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    answered: usize,
}

impl Received {
    fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), answered: 0 }
    }

    fn unanswered(&self) -> &[u8] {
        &self.bytes[self.answered..]
    }

    fn is_empty(&self) -> bool {
        self.answered == self.bytes.len()
    }

    /// Lets go of a request; of the memory too, if nothing follows.
    fn advance(&mut self, count: usize) {
        self.answered += count;
        if self.is_empty() {
            *self = Self::default();
        }
    }

    fn extend(&mut self, more: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.answered));
        self.bytes.extend_from_slice(more);
    }

    fn into_unanswered(mut self) -> Vec<u8> {
        self.bytes.drain(..self.answered);
        self.bytes
    }
}

/// A request that was sent to the log.
struct InFlight {
    class: RouteClass,
    /// What the answer needs; none if a task makes it.
    sent: Option<SentAppend>,
}

impl LoopWriter {
    pub(super) fn new(local: Option<IpAddr>) -> Self {
        // What the client has sent may be there before the poller tells.
        Self { local, readable: true, ..Self::default() }
    }

    /// Notes an event of the socket.
    pub(super) fn note(&mut self, readable: bool, read_closed: bool) {
        self.readable |= readable || read_closed;
        self.read_closed |= read_closed;
    }

    /// Returns true if a response is only partly written.
    pub(super) fn is_answering(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Returns true if an incomplete body was due at this time.
    pub(super) fn is_late(&self, due: Instant) -> bool {
        self.late_at == Some(due)
    }

    /// Takes the bytes that were not answered.
    pub(super) fn take_received(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.received).into_unanswered()
    }

    /// Returns true if a part of a body has arrived.
    pub(super) fn is_in_body(&self) -> bool {
        self.late_at.is_some()
    }
}

/// What follows a look at a writer.
enum Step {
    /// Look again: a request was answered, or bytes were read.
    Again,
    /// An event will tell.
    Wait,
    /// Nothing more comes.
    Close,
    /// The last answer was sent, and the client may have sent more.
    CloseAnswered,
    /// hyper continues, with the unanswered bytes.
    HandOver(Vec<u8>),
}

/// What buffered bytes are.
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for a moment, and a box for every request would cost"
)]
enum Parsed {
    Request {
        route: &'static HttpRoute,
        request: Parts,
        body: Range<usize>,
    },
    /// The beginning of a request: of its head, or with only a part of its body.
    Incomplete {
        in_head: bool,
    },
    Unusual,
}

impl EventLoop {
    /// Serves a writer until it has to wait for something, or until others have their turn.
    pub(super) fn serve_writer(&mut self, key: usize) {
        for _ in 0..limits::WRITER_STEPS {
            match self.serve_step(key) {
                Step::Again => {}
                Step::Wait => return,
                Step::Close => return drop(self.take_socket(key)),
                Step::CloseAnswered => return self.close_answered(key),
                Step::HandOver(unanswered) => return self.hand_to_hyper(key, unanswered),
            }
        }
        let Some(socket) = self.sockets.get_mut(key) else { return };
        let id = SocketId { key, generation: socket.generation };
        if let Role::Writer(writer) = &mut socket.role
            && !std::mem::replace(&mut writer.queued, true)
        {
            self.queued_writers.push(id);
        }
    }

    /// Continues with the writers that the last turn has not finished.
    pub(super) fn serve_queued_writers(&mut self) {
        for id in std::mem::take(&mut self.queued_writers) {
            let Some(writer) = self.writer_with(id) else { continue };
            writer.queued = false;
            self.serve_writer(id.key);
        }
    }

    fn serve_step(&mut self, key: usize) -> Step {
        let Some((socket, writer)) = writer_of(&mut self.sockets, key) else { return Step::Wait };
        if writer.is_answering() {
            match (&*socket).write(&writer.unsent) {
                Ok(count) if count == writer.unsent.len() => writer.unsent = Vec::new(),
                Ok(count) => drop(writer.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Wait,
                Err(_) => return Step::Close,
            }
            return Step::Again;
        }
        if writer.in_flight.is_some() {
            return Step::Wait;
        }
        if writer.last_answered {
            return Step::CloseAnswered;
        }
        if !writer.received.is_empty() {
            let mut received = std::mem::take(&mut writer.received);
            match parse(received.unanswered()) {
                Parsed::Request { route, request, body } => {
                    let end = body.end;
                    self.begin_request(key, (route, &request), &received.unanswered()[body]);
                    received.advance(end);
                    self.keep_received(key, received);
                    return Step::Again;
                }
                Parsed::Incomplete { in_head } => {
                    writer.received = received;
                    if !writer.readable {
                        return self.wait_for_bytes(key, in_head);
                    }
                }
                Parsed::Unusual => return Step::HandOver(received.into_unanswered()),
            }
        }
        self.read(key)
    }

    /// Reads what has arrived. A request that is complete is taken from the loop's buffer.
    fn read(&mut self, key: usize) -> Step {
        let (now, header_time) = (self.now, self.connections.state.config.header_time);
        let Some((socket, writer)) = writer_of(&mut self.sockets, key) else { return Step::Wait };
        if !writer.readable {
            // A stopping server waits for no further request.
            return if self.stopping { Step::Close } else { Step::Wait };
        }
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let count = match (&*socket).read(&mut buffer) {
            // hyper answers a request that is cut off in the middle.
            Ok(0) if writer.received.is_empty() => Err(Step::Close),
            Ok(0) => Err(Step::HandOver(writer.take_received())),
            Ok(count) => Ok(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(Step::Again),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                writer.readable = false;
                // The loop looks again, and finds that it has to wait.
                Err(Step::Again)
            }
            Err(_) => Err(Step::Close),
        };
        let step = match count {
            Err(step) => step,
            Ok(count) => {
                // The poller tells when more comes. The end of the stream it may have told already.
                writer.readable = count == buffer.len() || writer.read_closed;
                if writer.received.is_empty() {
                    let deadline = Some(now + header_time);
                    match parse(&buffer[..count]) {
                        Parsed::Request { route, request, body } => {
                            let end = body.end;
                            self.begin_request(key, (route, &request), &buffer[body]);
                            self.keep_received(key, Received::of(&buffer[end..count]));
                            Step::Again
                        }
                        Parsed::Incomplete { .. } => {
                            writer.received = Received::of(&buffer[..count]);
                            if let Some(socket) = self.sockets.get_mut(key) {
                                socket.deadline = deadline;
                            }
                            Step::Again
                        }
                        Parsed::Unusual => Step::HandOver(buffer[..count].to_vec()),
                    }
                } else {
                    writer.received.extend(&buffer[..count]);
                    Step::Again
                }
            }
        };
        self.read_buffer = buffer;
        step
    }

    /// Waits for the rest of a request; hyper appends the complete frames of a slow body before the rest arrives.
    fn wait_for_bytes(&mut self, key: usize, in_head: bool) -> Step {
        let due = self.now + limits::LATE_BODY_TIME;
        let stopping = self.stopping;
        let Some(socket) = self.sockets.get_mut(key) else { return Step::Wait };
        let id = SocketId { key, generation: socket.generation };
        let Role::Writer(writer) = &mut socket.role else { return Step::Wait };
        if stopping {
            return Step::HandOver(writer.take_received());
        }
        if !in_head && writer.late_at.is_none() {
            writer.late_at = Some(due);
            self.late_bodies.push_back((due, id));
        }
        Step::Wait
    }

    /// Keeps the beginning of the next request.
    fn keep_received(&mut self, key: usize, rest: Received) {
        let deadline = self.now + self.connections.state.config.header_time;
        let Some(socket) = self.sockets.get_mut(key) else { return };
        let Role::Writer(writer) = &mut socket.role else { return };
        // The log has timeouts of its own.
        if !rest.is_empty() && writer.in_flight.is_none() {
            socket.deadline = Some(deadline);
        }
        writer.received = rest;
    }

    /// Checks a request, and queues its append; answers what needs no store at once.
    fn begin_request(&mut self, key: usize, (route, request): (&HttpRoute, &Parts), body: &[u8]) {
        let config = &self.connections.state.config;
        let Some((_, writer)) = writer_of(&mut self.sockets, key) else { return };
        writer.late_at = None;
        let named = (request.version, &request.uri, &request.headers);
        let params = hosts::check(&config.allowed_hosts, writer.local, named)
            .and_then(|()| origin::check(&request.headers))
            .and_then(|()| WriteParams::of_run(route.parameter(request.uri.path()), request));
        let params = match params {
            Ok(params) => params,
            Err(problem) => return self.answer(key, route.class, Err(problem)),
        };
        let Some(socket) = self.sockets.get_mut(key) else { return };
        let id = SocketId { key, generation: socket.generation };
        socket.deadline = None;
        let Role::Writer(writer) = &mut socket.role else { return };
        match SingleAppend::of(params, body) {
            SingleAppend::Ready(append, sent) => {
                writer.in_flight = Some(InFlight { class: route.class, sent: Some(sent) });
                self.batch.push(QueuedAppend { append, ticket: id.to_ticket() });
                if self.batch.len() >= limits::SUBMITTED_APPENDS {
                    self.submit();
                }
            }
            SingleAppend::Other(params) => {
                writer.in_flight = Some(InFlight { class: route.class, sent: None });
                self.write_in_task(id, params, body.to_vec());
            }
        }
    }

    /// Takes the log's reply to an append.
    pub(super) fn take_reply(&mut self, AppendReply { ticket, result }: AppendReply) {
        let id = SocketId::of_ticket(ticket);
        let Some(writer) = self.writer_with(id) else { return };
        let Some(InFlight { class, sent: Some(sent) }) = writer.in_flight.take() else { return };
        match sent.answer(&self.connections.state, result) {
            Ok(written) => {
                self.answer(id.key, class, Ok(written));
                self.serve_writer(id.key);
            }
            Err(failed) => {
                if let Some(writer) = self.writer_with(id) {
                    writer.in_flight = Some(InFlight { class, sent: None });
                }
                self.explain_in_task(id, failed);
            }
        }
    }

    /// Takes the answer of a task.
    pub(super) fn take_answer(&mut self, TaskAnswer { socket: id, answer }: TaskAnswer) {
        let Some(writer) = self.writer_with(id) else { return };
        let Some(InFlight { class, .. }) = writer.in_flight.take() else { return };
        match answer {
            Some(answer) => {
                self.answer(id.key, class, answer);
                self.serve_writer(id.key);
            }
            None => {
                if let Some(socket) = self.take_socket(id.key) {
                    socket.reset();
                }
            }
        }
    }

    /// Writes a response; what the socket does not take follows when it is writable.
    fn answer(&mut self, key: usize, class: RouteClass, answer: Result<WriteSummary, Problem>) {
        let state = &self.connections.state;
        state.metrics.count_request(class, status_of(&answer));
        state.metrics.count_loop_request(LoopRole::Writer);
        self.answer.clear();
        write_answer(&mut self.answer, answer, if self.stopping { "connection: close\r\n" } else { "" });
        let (now, header_time) = (self.now, state.config.header_time);
        let Some(socket) = self.sockets.get_mut(key) else { return };
        let Role::Writer(writer) = &mut socket.role else { return };
        writer.last_answered = self.stopping;
        let written = (&socket.stream).write(&self.answer);
        // Any error but these shows again when the rest is written.
        let count = written.unwrap_or(0);
        if count < self.answer.len() {
            writer.unsent = self.answer[count..].to_vec();
        }
        let is_idle = writer.unsent.is_empty() && writer.received.is_empty();
        socket.deadline = Some(now + if is_idle { limits::IDLE_TIME } else { header_time });
    }

    /// Hands over bodies that did not arrive in time.
    pub(super) fn hand_over_late_bodies(&mut self) {
        while let Some((due, id)) = self.late_bodies.front().copied()
            && due <= self.now
        {
            self.late_bodies.pop_front();
            let Some(writer) = self.writer_with(id).filter(|writer| writer.is_late(due)) else { continue };
            let received = writer.take_received();
            self.hand_to_hyper(id.key, received);
        }
    }

    fn writer_with(&mut self, id: SocketId) -> Option<&mut LoopWriter> {
        let socket = self.sockets.get_mut(id.key).filter(|socket| socket.generation == id.generation)?;
        match &mut socket.role {
            Role::Writer(writer) => Some(writer),
            Role::Reader(_) => None,
        }
    }
}

fn writer_of(
    sockets: &mut slab::Slab<LoopSocket>,
    key: usize,
) -> Option<(&mio::net::TcpStream, &mut LoopWriter)> {
    match sockets.get_mut(key) {
        Some(LoopSocket { stream, role: Role::Writer(writer), .. }) => Some((stream, writer)),
        _ => None,
    }
}

/// Parses buffered bytes.
fn parse(bytes: &[u8]) -> Parsed {
    let known = bytes.len().min(REQUEST_PREFIX.len());
    if bytes[..known] != REQUEST_PREFIX[..known] {
        return Parsed::Unusual;
    }
    match RequestHead::of(bytes) {
        RequestHead::Whole(request, end) => {
            let Some(length) = body_length(&request.headers) else { return Parsed::Unusual };
            let route = routes::find(&request.method, request.uri.path());
            let Some(route) = route.filter(|route| route.is_write_to_run()) else { return Parsed::Unusual };
            match end.checked_add(length) {
                Some(whole) if whole > limits::WHOLE_REQUEST_BYTES => Parsed::Unusual,
                Some(whole) if whole <= bytes.len() => Parsed::Request { route, request, body: end..whole },
                Some(_) => Parsed::Incomplete { in_head: false },
                None => Parsed::Unusual,
            }
        }
        RequestHead::Partial if bytes.len() < limits::HEAD_BYTES => Parsed::Incomplete { in_head: true },
        RequestHead::Partial | RequestHead::Unusual => Parsed::Unusual,
    }
}
