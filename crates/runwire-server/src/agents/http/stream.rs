//! One request to an agent, and the stream that answers it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use runwire_log::FrameBatch;
use runwire_model::event::ErrorInfo;
use runwire_model::framing::{Framing, FramingError, Unframer};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

use super::client::{AgentHttpClient, error_chain, host_and_port};
use super::refusal;
use super::request::Prepared;
use crate::agents::config::HttpAgent;
use crate::limits;

/// Something that came on a stream.
#[derive(Debug)]
pub(super) enum Arrival {
    /// Frames, in order.
    Frames(FrameBatch),
    /// A frame that is longer than any may be.
    TooLong { line: u64 },
    /// The stream is over.
    Over(Over),
}

/// How a stream has ended.
#[derive(Debug, PartialEq)]
pub(super) enum Over {
    /// Properly.
    Clean,
    /// Nobody listens any more: the run has ended.
    Unheard,
    /// The request was taken, and no stream answers it.
    Acknowledged,
    /// Not as it should.
    Failed(Box<ErrorInfo>),
}

/// What is needed to ask an agent something.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) client: AgentHttpClient,
    pub(super) agent: HttpAgent,
    pub(super) turns: Arc<Semaphore>,
    pub(super) arrivals: mpsc::Sender<Arrival>,
}

impl Asking {
    /// Waits for a turn, sends a request, and hands on what answers it. A stream holds its turn to its end.
    pub(super) async fn ask_in_turn(self, prepared: Prepared) {
        let Ok(turn) = self.turns.clone().acquire_owned().await else { return };
        self.ask(prepared).await;
        drop(turn);
    }

    /// Sends a request, and hands on what answers it.
    pub(super) async fn ask(self, prepared: Prepared) {
        let over = match self.answer(&prepared).await {
            Ok(response) => match self.stream(&prepared, response).await {
                Ok(over) | Err(over) => over,
            },
            Err(error) => Over::Failed(Box::new(error)),
        };
        // Where nobody listens any more, the run has ended.
        let _ = self.arrivals.send(Arrival::Over(over)).await;
    }

    /// Sends a request, again while nothing has come of it.
    async fn answer(&self, prepared: &Prepared) -> Result<Response<Incoming>, ErrorInfo> {
        let mut wait = Duration::from_millis(200);
        for attempt in 1.. {
            let sent = timeout(self.agent.answer_time, self.send(prepared)).await;
            let (error, asked) = match sent {
                Err(_) => {
                    let seconds = self.agent.answer_time.as_secs();
                    let message = format!("the agent did not answer within {seconds} s");
                    // It may be at work: asking again might make it do everything twice.
                    return Err(retryable(ErrorInfo::coded("agent_silent", message)));
                }
                Ok(Err(Unsent { error, again: false })) => return Err(error),
                Ok(Err(Unsent { error, again: true })) => (Some(error), None),
                Ok(Ok(response))
                    if refusal::is_temporary(response.status()) && attempt < limits::AGENT_TRIES =>
                {
                    (None, retry_after(&response))
                }
                Ok(Ok(response)) => return Ok(response),
            };
            if let Some(error) = error.filter(|_| attempt >= limits::AGENT_TRIES) {
                return Err(error);
            }
            tokio::time::sleep(asked.unwrap_or(wait).min(limits::AGENT_RETRY_TIME)).await;
            wait *= 4;
        }
        Err(ErrorInfo::coded("agent_unreachable", "the agent cannot be reached"))
    }

    async fn send(&self, prepared: &Prepared) -> Result<Response<Incoming>, Unsent> {
        let never = |error: ErrorInfo| Unsent { error, again: false };
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&prepared.url)
            .body(Full::new(prepared.body.clone()))
            .map_err(|error| {
                never(ErrorInfo::coded("agent_unreachable", format!("the url is none: {error}")))
            })?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("text/event-stream, application/x-ndjson, application/json;q=0.5"),
        );
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("runwire/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in &self.agent.headers {
            headers.insert(name, value.clone());
        }
        self.client.request(request).await.map_err(|error| {
            let message = error_chain(&error);
            if error.is_connect() {
                // What rustls says of an answer that is no TLS.
                let no_tls = message.contains("InvalidContentType");
                let hint = if no_tls { ": its address may speak `http`, not `https`" } else { "" };
                let at = host_and_port(&prepared.url);
                let message = format!("the agent cannot be reached at {at}: {message}{hint}");
                let error = ErrorInfo::coded("agent_unreachable", message);
                return Unsent { error: retryable(error), again: true };
            }
            let message = format!("the agent broke the connection off before it answered: {message}");
            never(retryable(ErrorInfo::coded("agent_broken_off", message)))
        })
    }

    /// Hands on the frames of an answer, to its end.
    async fn stream(&self, prepared: &Prepared, response: Response<Incoming>) -> Result<Over, Over> {
        let (parts, mut body) = response.into_parts();
        let media = parts.headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media =
            media.map(|media| media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        if parts.status.is_redirection() {
            let location = parts.headers.get(LOCATION).and_then(|location| location.to_str().ok());
            return Err(Over::Failed(refusal::of_redirect(parts.status, location).into()));
        }
        if !parts.status.is_success() {
            let body = beginning(body, &self.agent).await;
            return Err(Over::Failed(refusal::of_status(parts.status, media.as_deref(), &body).into()));
        }
        let framing = match media.as_deref() {
            Some("text/event-stream") => Some(Framing::Sse),
            Some(media) if media.contains("ndjson") || media.contains("jsonl") => Some(Framing::Ndjson),
            _ if prepared.takes_acknowledgement => return Ok(Over::Acknowledged),
            Some("application/json") => Some(Framing::Json),
            Some(media) if media.contains("html") || media.contains("xml") => {
                let body = beginning(body, &self.agent).await;
                return Err(Over::Failed(refusal::of_media(media, &body).into()));
            }
            Some(media) if refusal::is_binary(media) => {
                return Err(Over::Failed(refusal::of_media(media, &[]).into()));
            }
            _ => None,
        };
        let mut cutter =
            Cutter { framing, unframer: None, first: Vec::new(), uncut: Some(Vec::new()), signs: 0 };
        let mut heard_at = Instant::now();
        loop {
            // Bytes alone are no sign of life: a line that never ends says nothing, for as long as it goes on.
            let frame = match timeout_at(heard_at + self.agent.silence_time, body.frame()).await {
                Err(_) => {
                    let seconds = self.agent.silence_time.as_secs();
                    let message = format!("the agent was silent for {seconds} s");
                    return Err(failed("agent_silent", message));
                }
                Ok(None) => break,
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    // What arrived whole before it is written; half a frame is not.
                    let message = format!("the agent's stream broke off: {}", error_chain(&error));
                    return Err(failed("agent_broken_off", message));
                }
            };
            // Trailers say nothing here.
            if let Ok(bytes) = frame.into_data() {
                let signs = cutter.signs();
                cutter.push(&bytes);
                self.hand_on(&mut cutter).await?;
                if cutter.signs() != signs {
                    heard_at = Instant::now();
                }
            }
        }
        cutter.finish();
        self.hand_on(&mut cutter).await?;
        match cutter
            .uncut
            .filter(|_| framing == Some(Framing::Sse))
            .and_then(|said| refusal::of_no_events(&said))
        {
            Some(error) => Err(Over::Failed(error.into())),
            None => Ok(Over::Clean),
        }
    }

    async fn hand_on(&self, cutter: &mut Cutter) -> Result<(), Over> {
        let listens = |sent: Result<(), mpsc::error::SendError<Arrival>>| sent.map_err(|_| Over::Unheard);
        loop {
            let (frames, error) = cutter.take();
            if !frames.is_empty() {
                listens(self.arrivals.send(Arrival::Frames(frames)).await)?;
            } else if error.is_none() {
                return Ok(());
            }
            match error {
                None => {}
                Some(FramingError::TooLong { line } | FramingError::NameTooLong { line }) => {
                    listens(self.arrivals.send(Arrival::TooLong { line }).await)?;
                }
                Some(error @ FramingError::NotJson { .. }) => {
                    let message = format!("line {} of the agent's answer: {error}", error.line());
                    return Err(failed("agent_garbled", message));
                }
            }
        }
    }
}

/// A request of which nothing has come.
struct Unsent {
    error: ErrorInfo,
    again: bool,
}

/// Cuts an answer into frames.
struct Cutter {
    framing: Option<Framing>,
    unframer: Option<Unframer>,
    /// Bytes that do not tell the framing yet.
    first: Vec<u8>,
    /// How the answer begins, as long as there is no frame in it.
    uncut: Option<Vec<u8>>,
    /// Frames, and line ends before the framing was known.
    signs: u64,
}

impl Cutter {
    fn push(&mut self, bytes: &[u8]) {
        if let Some(uncut) = &mut self.uncut {
            let room = limits::AGENT_REFUSAL_BYTES.saturating_sub(uncut.len());
            uncut.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        if let Some(unframer) = &mut self.unframer {
            return unframer.push(bytes);
        }
        self.signs += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.first.extend_from_slice(bytes);
        let found = self.framing.or_else(|| Framing::detect(&self.first));
        let enough = self.first.len() >= limits::SNIFFED_BYTES;
        if let Some(framing) = found.or(enough.then_some(Framing::Ndjson)) {
            self.begin(framing);
        }
    }

    /// Counts what shows that the agent lives: whole frames, comments, blank lines.
    fn signs(&self) -> u64 {
        self.signs + self.unframer.as_ref().map_or(0, Unframer::beats)
    }

    fn begin(&mut self, framing: Framing) {
        self.unframer.insert(Unframer::new(framing)).push(&std::mem::take(&mut self.first));
    }

    fn finish(&mut self) {
        if self.unframer.is_none() {
            self.begin(self.framing.unwrap_or(Framing::Ndjson));
        }
        if let Some(unframer) = &mut self.unframer {
            unframer.finish();
        }
    }

    /// Takes as many whole frames as one append has room for, and what stands in the way of the next.
    fn take(&mut self) -> (FrameBatch, Option<FramingError>) {
        let mut batch = FrameBatch::default();
        let Some(unframer) = &mut self.unframer else { return (batch, None) };
        while batch.len() < limits::BATCH_FRAMES && batch.bytes() < limits::BATCH_BYTES {
            let next = unframer.next();
            if next.is_some() {
                self.uncut = None;
                self.signs += 1;
            }
            match next {
                Some(Ok(frame)) => batch.push(frame.line, frame.name, frame.data),
                Some(Err(error)) => return (batch, Some(error)),
                None => break,
            }
        }
        (batch, None)
    }
}

/// Reads the beginning of a body that is no stream.
async fn beginning(body: Incoming, agent: &HttpAgent) -> Bytes {
    let mut body = Limited::new(body, limits::AGENT_REFUSAL_BYTES);
    let mut read = Vec::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            if let Ok(bytes) = frame.into_data() {
                read.extend_from_slice(&bytes);
            }
        }
    };
    // What has come until then says enough.
    let _ = timeout(agent.connect_time, reading).await;
    read.into()
}

fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn failed(code: &str, message: String) -> Over {
    Over::Failed(Box::new(retryable(ErrorInfo::coded(code, message))))
}

fn retryable(error: ErrorInfo) -> ErrorInfo {
    ErrorInfo { retryable: Some(true), ..error }
}
