//! Export and import of a thread's records, as lines of NDJSON.

use std::hash::{DefaultHasher, Hasher};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::TryStreamExt;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};

use super::thread::ThreadHandle;
use crate::attempts::Attempts;
use crate::client::Client;
use crate::error::Error;
use crate::http::{BodyError, Endpoint, boxed_body};

/// Limits the bytes of one line.
const LINE_BYTES: usize = 64 << 20;

/// Prefix of a record's line, before its number.
const RECORD: &[u8] = br#"{"type":"record","seq":"#;

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Imported {
    /// Records written.
    pub imported: u64,
    /// Records that existed before.
    pub skipped: u64,
    /// The thread's last record.
    pub last_seq: u64,
    /// Whether the export was complete.
    #[serde(default)]
    pub complete: bool,
}

/// The lines of a thread's export. Reconnects and resumes.
#[derive(Debug)]
pub struct ThreadExport {
    client: Client,
    endpoint: Endpoint,
    body: Option<Incoming>,
    /// Received bytes, and how many were searched for a line end.
    bytes: BytesMut,
    scanned: usize,
    /// The last returned record, and a digest of the lines after it: a new connection sends them again.
    last: Option<u64>,
    after_last: LineDigest,
    /// Which lines of a new connection were returned before.
    replay: Replay,
    /// Failed attempts, which a new line resets.
    attempts: Attempts,
    ended: bool,
}

/// Count and hash of lines, to recognise them.
#[derive(Debug, Clone, Default)]
struct LineDigest {
    lines: u64,
    hasher: DefaultHasher,
}

impl LineDigest {
    fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.hasher.write(line);
        self.hasher.write_u8(b'\n');
    }
}

#[derive(Debug, Default)]
enum Replay {
    #[default]
    Nothing,
    /// Lines up to the last record.
    UntilLast,
    /// Lines after it, with a digest of those received again.
    After(LineDigest),
}

impl ThreadHandle {
    /// Exports the whole thread.
    pub fn records(&self) -> ThreadExport {
        ThreadExport::new(&self.client, self.endpoint().segment("records"))
    }

    /// Exports one run of the thread, with the runs that overlap it.
    pub fn records_of(&self, run: &str) -> ThreadExport {
        ThreadExport::new(&self.client, self.endpoint().segment("records").parameter("run", run))
    }

    /// Imports the lines of an export, and waits until all of them are durable.
    ///
    /// Existing identical records are skipped, so an import that broke can be repeated.
    pub async fn import<S, E>(&self, lines: S) -> Result<Imported, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BodyError> + 'static,
    {
        let headers =
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))]);
        let body = boxed_body(StreamBody::new(lines.map_ok(Frame::data)));
        let endpoint = self.endpoint().segment("records");
        let response = self.client.http.send(Method::POST, &endpoint, headers, body).await?;
        self.client.http.json(response).await
    }
}

impl ThreadExport {
    fn new(client: &Client, endpoint: Endpoint) -> Self {
        Self {
            client: client.clone(),
            endpoint,
            body: None,
            bytes: BytesMut::new(),
            scanned: 0,
            last: None,
            after_last: LineDigest::default(),
            replay: Replay::Nothing,
            attempts: Attempts::new(client),
            ended: false,
        }
    }

    /// Returns the next line, without its line end; `None` after the last.
    ///
    /// If the connection breaks, it reconnects and resumes after the last line.
    pub async fn next_line(&mut self) -> Result<Option<Bytes>, Error> {
        while !self.ended {
            let Some(line) = self.read_line().await? else { continue };
            if self.is_duplicate(&line)? {
                continue;
            }
            self.attempts.progressed();
            if let Some(seq) = seq_of(&line) {
                self.last = Some(seq);
                self.after_last = LineDigest::default();
            } else {
                self.after_last.add(&line);
            }
            self.ended = line.starts_with(br#"{"type":"end","#);
            return Ok(Some(line));
        }
        Ok(None)
    }

    /// Returns true if a line was returned from an earlier connection.
    fn is_duplicate(&mut self, line: &Bytes) -> Result<bool, Error> {
        match &mut self.replay {
            Replay::Nothing => Ok(false),
            Replay::UntilLast => {
                if seq_of(line).is_some_and(|seq| Some(seq) == self.last) {
                    self.expect_replay();
                }
                Ok(true)
            }
            Replay::After(replayed) => {
                replayed.add(line);
                if replayed.lines == self.after_last.lines {
                    let same = replayed.hasher.finish() == self.after_last.hasher.finish();
                    self.replay = Replay::Nothing;
                    if !same {
                        self.ended = true;
                        let reason = "the thread has changed while it was read; export it again";
                        return Err(self.client.http.closed_error(reason));
                    }
                }
                Ok(true)
            }
        }
    }

    /// Starts to skip the lines after the last record, if there were any.
    fn expect_replay(&mut self) {
        self.replay = match self.after_last.lines {
            0 => Replay::Nothing,
            _ => Replay::After(LineDigest::default()),
        };
    }

    /// Reads a line; `None` if the connection broke.
    async fn read_line(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.bytes[self.scanned..]) {
                let line = self.bytes.split_to(self.scanned + at + 1).freeze();
                self.scanned = 0;
                return Ok(Some(line.slice(..line.len() - 1)));
            }
            self.scanned = self.bytes.len();
            if self.scanned > LINE_BYTES {
                return Err(self.client.http.protocol_error("it sends a line without end"));
            }
            let Some(body) = &mut self.body else {
                self.connect().await?;
                continue;
            };
            let idle_timeout = self.client.retry.idle_timeout;
            let broken = match tokio::time::timeout(idle_timeout, body.frame()).await {
                Err(_) => self.client.http.idle_error(),
                Ok(None) => self.client.http.closed_error("it ended too early"),
                Ok(Some(Err(error))) => self.client.http.broken(&error),
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.bytes.extend_from_slice(&bytes);
                    }
                    continue;
                }
            };
            self.body = None;
            self.bytes.clear();
            self.scanned = 0;
            let Some(delay) = self.attempts.next_delay(&broken, None) else { return Err(broken) };
            tracing::debug!(%broken, ?delay, "export reconnects");
            tokio::time::sleep(delay).await;
            return Ok(None);
        }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let endpoint = match self.last {
            // The last record is requested again, because the lines after it have no number of their own.
            Some(last) => self.endpoint.clone().parameter_if("after", Some(last.saturating_sub(1))),
            None => self.endpoint.clone(),
        };
        loop {
            let asked = self.client.http.request(Method::GET, &endpoint, HeaderMap::new()).await;
            let error = match asked {
                Ok(response) if response.status() == StatusCode::OK => {
                    self.body = Some(response.into_body());
                    self.attempts.connected();
                    match self.last {
                        Some(_) => self.replay = Replay::UntilLast,
                        None => self.expect_replay(),
                    }
                    return Ok(());
                }
                Ok(response) => self.client.http.refusal(response).await,
                Err(error) => error,
            };
            let Some(delay) = self.attempts.next_delay(&error, None) else { return Err(error) };
            tokio::time::sleep(delay).await;
        }
    }
}

fn seq_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(RECORD)?.split(|byte| *byte == b',').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
