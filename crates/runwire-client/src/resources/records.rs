//! Everything that is stored of a thread, as lines that another server takes.

use std::hash::{DefaultHasher, Hasher};
use std::time::Instant;

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
use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::Error;
use crate::http::{BodyError, Target, body_of};

/// Bytes of one line.
const LINE_BYTES: usize = 64 << 20;

/// What begins the line of a record, before its number.
const RECORD: &[u8] = br#"{"type":"record","seq":"#;

/// What was taken in of a thread that moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Imported {
    /// Records that are written now.
    pub imported: u64,
    /// Records that were there before.
    pub skipped: u64,
    /// The thread's last record.
    pub last_seq: u64,
    /// Whether the last line said that this is the end.
    #[serde(default)]
    pub complete: bool,
}

/// The lines of a thread, over as many connections as it takes.
#[derive(Debug)]
pub struct Records {
    client: Client,
    target: Target,
    body: Option<Incoming>,
    /// Bytes that came and are not cut yet, and up to where they hold no line end.
    bytes: BytesMut,
    scanned: usize,
    /// The last record that was handed out, and the lines after it: they come again with a new connection.
    last: Option<u64>,
    after_last: Tally,
    /// What comes again and was handed out before.
    again: Again,
    /// Waits between connections, which a new line begins anew.
    backoff: Backoff,
    /// Whether anything was handed out.
    begun: bool,
    ended: bool,
}

/// Lines, as far as they are needed to recognise them.
#[derive(Debug, Clone, Default)]
struct Tally {
    lines: u64,
    hasher: DefaultHasher,
}

impl Tally {
    fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.hasher.write(line);
        self.hasher.write_u8(b'\n');
    }
}

#[derive(Debug, Default)]
enum Again {
    #[default]
    Nothing,
    /// Everything up to the last record.
    UpToLast,
    /// The lines after it, as far as they have come again.
    After(Tally),
}

impl ThreadHandle {
    /// Exports everything that is stored of the thread, line by line.
    pub fn records(&self) -> Records {
        Records::new(&self.client, self.target().segment("records"))
    }

    /// Exports what is stored of one run of the thread, with those that lie side by side with it.
    pub fn records_of(&self, run: &str) -> Records {
        Records::new(&self.client, self.target().segment("records").parameter("run", run))
    }

    /// Imports the lines of an export, and waits until all of them are on disk.
    ///
    /// What is there already and is the same is passed over, so an import that broke can be repeated.
    pub async fn import<S, E>(&self, lines: S) -> Result<Imported, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BodyError> + 'static,
    {
        let headers =
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))]);
        let body = body_of(StreamBody::new(lines.map_ok(Frame::data)));
        let target = self.target().segment("records");
        let response = self.client.http.send(Method::POST, &target, headers, body).await?;
        self.client.http.json(response).await
    }
}

impl Records {
    fn new(client: &Client, target: Target) -> Self {
        Self {
            client: client.clone(),
            target,
            body: None,
            bytes: BytesMut::new(),
            scanned: 0,
            last: None,
            after_last: Tally::default(),
            again: Again::Nothing,
            backoff: Backoff::new(&client.patience),
            begun: false,
            ended: false,
        }
    }

    /// Gives the next line, without its end; nothing after the last.
    ///
    /// A connection that breaks is tried again, and gone on with after the last line.
    pub async fn next_line(&mut self) -> Result<Option<Bytes>, Error> {
        while !self.ended {
            let Some(line) = self.read_line().await? else { continue };
            if self.is_known(&line)? {
                continue;
            }
            self.begun = true;
            self.backoff.reset();
            if let Some(seq) = seq_of(&line) {
                self.last = Some(seq);
                self.after_last = Tally::default();
            } else {
                self.after_last.add(&line);
            }
            self.ended = line.starts_with(br#"{"type":"end","#);
            return Ok(Some(line));
        }
        Ok(None)
    }

    /// Tells whether a line was handed out over an earlier connection.
    fn is_known(&mut self, line: &Bytes) -> Result<bool, Error> {
        match &mut self.again {
            Again::Nothing => Ok(false),
            Again::UpToLast => {
                if seq_of(line).is_some_and(|seq| Some(seq) == self.last) {
                    self.await_again();
                }
                Ok(true)
            }
            Again::After(come) => {
                come.add(line);
                if come.lines == self.after_last.lines {
                    let same = come.hasher.finish() == self.after_last.hasher.finish();
                    self.again = Again::Nothing;
                    if !same {
                        self.ended = true;
                        let reason = "the thread has changed while it was read; export it again";
                        return Err(self.client.http.closed(reason));
                    }
                }
                Ok(true)
            }
        }
    }

    /// Expects the lines after the last record once more, if there were any.
    fn await_again(&mut self) {
        self.again = match self.after_last.lines {
            0 => Again::Nothing,
            _ => Again::After(Tally::default()),
        };
    }

    /// Cuts a line out of what has come, or waits for more; nothing where the connection had to be made anew.
    async fn read_line(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.bytes[self.scanned..]) {
                let line = self.bytes.split_to(self.scanned + at + 1).freeze();
                self.scanned = 0;
                return Ok(Some(line.slice(..line.len() - 1)));
            }
            self.scanned = self.bytes.len();
            if self.scanned > LINE_BYTES {
                return Err(self.client.http.strange("it sends a line without end"));
            }
            let Some(body) = &mut self.body else {
                self.connect().await?;
                continue;
            };
            let silence = self.client.patience.silence;
            let broken = match tokio::time::timeout(silence, body.frame()).await {
                Err(_) => self.client.http.silent(),
                Ok(None) => self.client.http.closed("it ended too early"),
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
            tracing::debug!(%broken, "an export is gone on with over another connection");
            tokio::time::sleep(self.backoff.next_wait(None)).await;
            return Ok(None);
        }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let (mut tries, began) = (0, Instant::now());
        let target = match self.last {
            // The record is asked for again, because what follows it belongs to it.
            Some(last) => self.target.clone().parameter_if("after", Some(last.saturating_sub(1))),
            None => self.target.clone(),
        };
        loop {
            let asked = self.client.http.ask(Method::GET, &target, HeaderMap::new()).await;
            let error = match asked {
                Ok(response) if response.status() == StatusCode::OK => {
                    self.body = Some(response.into_body());
                    match self.last {
                        Some(_) => self.again = Again::UpToLast,
                        None => self.await_again(),
                    }
                    return Ok(());
                }
                Ok(response) => self.client.http.refusal(response).await,
                Err(error) => error,
            };
            tries += 1;
            let patience = &self.client.patience;
            let gives_up = match self.begun {
                false => tries >= patience.first_tries,
                true => patience.give_up_after.is_some_and(|most| began.elapsed() >= most),
            };
            if !error.is_temporary() || gives_up {
                return Err(error);
            }
            tokio::time::sleep(self.backoff.next_wait(error.retry_after())).await;
        }
    }
}

fn seq_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(RECORD)?.split(|byte| *byte == b',').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
