//! A strict HTTP client: it distinguishes a complete response from one that broke off.
//!
//! It keeps connections open, and says nothing about that: a server serves what closes its connection in another way than
//! what most producers send.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::TIMEOUT;

/// How long a read waits before the caller may look at something else.
const TICK: Duration = Duration::from_millis(25);

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the counts of a successful write.
    pub(crate) fn written(&self) -> WriteCounts {
        let counts = self.json();
        let count = |name: &str| usize::try_from(counts[name].as_u64().unwrap()).unwrap();
        WriteCounts { accepted: count("accepted"), duplicates: count("duplicates") }
    }
}

/// The counts of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteCounts {
    pub(crate) accepted: usize,
    pub(crate) duplicates: usize,
}

impl WriteCounts {
    pub(crate) fn all(self) -> usize {
        self.accepted + self.duplicates
    }
}

/// Header fields of a request.
pub(crate) type Fields<'a> = &'a [(&'a str, String)];

pub(crate) fn get(server: SocketAddr, path: &str) -> io::Result<Answer> {
    Exchange::begin(server, "GET", path, &[], None)?.answer()
}

pub(crate) fn post(server: SocketAddr, path: &str, fields: Fields, body: &str) -> io::Result<Answer> {
    Exchange::begin(server, "POST", path, fields, Some(body.as_bytes()))?.answer()
}

/// The kinds of what socket loops serve: writers, readers.
const LOOP_ROLES: [&str; 2] = ["writer", "reader"];

/// Returns how many appends a server's socket loops have answered since its start, and how many streams they have taken over.
pub(crate) fn loop_requests(server: SocketAddr) -> io::Result<[u64; 2]> {
    let metrics = get(server, "/metrics")?.body;
    Ok(LOOP_ROLES.map(|role| {
        let name = format!("runwire_socket_loop_requests_total{{role=\"{role}\"}} ");
        let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
        count.unwrap_or_else(|| panic!("{name}is missing")).parse().unwrap()
    }))
}

/// A connection for one request after the other.
#[derive(Default)]
pub(crate) struct KeptConnection(Option<(SocketAddr, TcpStream)>);

impl KeptConnection {
    /// Sends a request over the connection, or over a new one where there is none; keeps it if the answer is complete.
    pub(crate) fn post(
        &mut self,
        server: SocketAddr,
        path: &str,
        fields: Fields,
        body: &str,
    ) -> io::Result<Answer> {
        let stream = match self.0.take() {
            Some((kept, stream)) if kept == server => stream,
            _ => connect(server)?,
        };
        let mut exchange = Exchange::begin_over(stream, server, "POST", path, fields, Some(body.as_bytes()))?;
        let answer = exchange.read_answer()?;
        if exchange.keeps_open {
            assert!(exchange.received.is_empty(), "bytes after an answer: {:?}", exchange.received);
            self.0 = Some((server, exchange.stream));
        }
        Ok(answer)
    }
}

fn connect(server: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// A request, and its answer as far as it has come.
pub(crate) struct Exchange {
    stream: TcpStream,
    received: Vec<u8>,
    left: RemainingBody,
    /// Whether the server has not said that it closes the connection.
    keeps_open: bool,
}

/// What is still to come of an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemainingBody {
    /// So many bytes.
    Bytes(usize),
    /// So many bytes of a chunk and its line end, then the next chunk.
    Chunk(usize),
    /// So many bytes after the last chunk.
    End(usize),
    Nothing,
}

/// What has come of an answer's body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyPiece {
    Bytes(Vec<u8>),
    /// Nothing for the moment.
    Quiet,
    /// The proper end.
    End,
}

impl Exchange {
    /// Sends a request; without a body, chunks of one may follow.
    pub(crate) fn begin(
        server: SocketAddr,
        method: &str,
        path: &str,
        fields: Fields,
        body: Option<&[u8]>,
    ) -> io::Result<Self> {
        Self::begin_over(connect(server)?, server, method, path, fields, body)
    }

    fn begin_over(
        stream: TcpStream,
        server: SocketAddr,
        method: &str,
        path: &str,
        fields: Fields,
        body: Option<&[u8]>,
    ) -> io::Result<Self> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {server}\r\n");
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match (method, body) {
            ("GET", _) => {}
            (_, Some(body)) => head.push_str(&format!("content-length: {}\r\n", body.len())),
            (_, None) => head.push_str("transfer-encoding: chunked\r\n"),
        }
        let mut request = (head + "\r\n").into_bytes();
        request.extend_from_slice(body.unwrap_or_default());
        let left = RemainingBody::Nothing;
        let mut exchange = Self { stream, received: Vec::new(), left, keeps_open: true };
        exchange.stream.write_all(&request)?;
        Ok(exchange)
    }

    /// Sends a chunk of the body; an empty one is its end.
    pub(crate) fn send(&mut self, data: &[u8]) -> io::Result<()> {
        let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
        chunk.extend_from_slice(data);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk)
    }

    /// Returns true if the response has started.
    pub(crate) fn has_response(&mut self) -> io::Result<bool> {
        Ok(!self.received.is_empty() || self.receive()?)
    }

    /// Reads the answer to its end.
    pub(crate) fn answer(mut self) -> io::Result<Answer> {
        self.read_answer()
    }

    fn read_answer(&mut self) -> io::Result<Answer> {
        let status = self.status()?;
        let (mut body, begun) = (Vec::new(), Instant::now());
        loop {
            match self.piece()? {
                BodyPiece::Bytes(bytes) => body.extend_from_slice(&bytes),
                BodyPiece::Quiet => check_timeout(begun)?,
                BodyPiece::End => return Ok(Answer { status, body: String::from_utf8(body).unwrap() }),
            }
        }
    }

    /// Waits for the answer's head.
    pub(crate) fn status(&mut self) -> io::Result<u16> {
        let begun = Instant::now();
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if !self.receive()? {
                check_timeout(begun)?;
            }
        };
        let head: Vec<u8> = self.received.drain(..end + 4).collect();
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        self.left = match (field("content-length:"), field("transfer-encoding:")) {
            (Some(length), _) => RemainingBody::Bytes(length.parse().unwrap()),
            (None, Some(_)) => RemainingBody::Chunk(0),
            (None, None) => RemainingBody::Nothing,
        };
        self.keeps_open = field("connection:") != Some("close");
        Ok(status)
    }

    /// Waits a moment for more of the answer's body. A connection that breaks before its end is an error.
    pub(crate) fn piece(&mut self) -> io::Result<BodyPiece> {
        loop {
            match self.left {
                RemainingBody::Nothing | RemainingBody::Bytes(0) => return Ok(BodyPiece::End),
                RemainingBody::Bytes(left) if !self.received.is_empty() => {
                    let bytes: Vec<u8> = self.received.drain(..left.min(self.received.len())).collect();
                    self.left = RemainingBody::Bytes(left - bytes.len());
                    return Ok(BodyPiece::Bytes(bytes));
                }
                RemainingBody::Chunk(0) => {
                    if let Some(at) = self.received.windows(2).position(|two| two == b"\r\n") {
                        let size: Vec<u8> = self.received.drain(..at + 2).collect();
                        let size = std::str::from_utf8(&size[..at]).unwrap();
                        self.left = match usize::from_str_radix(size, 16).unwrap() {
                            0 => RemainingBody::End(2),
                            size => RemainingBody::Chunk(size + 2),
                        };
                        continue;
                    }
                }
                RemainingBody::Chunk(left) if self.received.len() >= left => {
                    let mut bytes: Vec<u8> = self.received.drain(..left).collect();
                    bytes.truncate(left - 2);
                    self.left = RemainingBody::Chunk(0);
                    return Ok(BodyPiece::Bytes(bytes));
                }
                RemainingBody::End(left) if self.received.len() >= left => {
                    self.received.drain(..left);
                    self.left = RemainingBody::Nothing;
                    continue;
                }
                RemainingBody::Bytes(_) | RemainingBody::Chunk(_) | RemainingBody::End(_) => {}
            }
            if !self.receive()? {
                return Ok(BodyPiece::Quiet);
            }
        }
    }

    /// Waits a moment for bytes; returns true if any arrived.
    fn receive(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 16 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.received.extend_from_slice(&bytes[..count]);
                Ok(true)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

fn check_timeout(begun: Instant) -> io::Result<()> {
    assert!(begun.elapsed() < TIMEOUT, "the server neither answers nor ends");
    Ok(())
}
