//! Sends a request to an agent and reads the stream of its response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use runwire_log::FrameBatch;
use runwire_model::RunFailureCode;
use runwire_model::event::ErrorInfo;
use runwire_model::framing::{Framing, FramingError, Unframer};
use runwire_producer::Backoff;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

use super::client::{AgentHttpClient, error_chain, host_and_port};
use super::error_response;
use super::request::AgentRequest;
use crate::config::HttpAgent;
use crate::limits;

/// The delays between attempts to reach an agent.
const AGENT_BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), limits::AGENT_RETRY_TIME)
    .factor(4)
    .max_asked(limits::AGENT_RETRY_TIME);

/// An event of a response stream.
#[derive(Debug)]
pub(super) enum StreamEvent {
    /// Frames, in order.
    Frames(FrameBatch),
    /// A frame above the size limit.
    TooLong { line: u64 },
    /// The stream has ended.
    End(StreamEnd),
}

/// How a stream ended.
#[derive(Debug, PartialEq)]
pub(super) enum StreamEnd {
    /// Cleanly.
    Complete,
    /// The receiver is closed: the run has ended.
    NoReceiver,
    /// The request was accepted without a stream.
    Acknowledged,
    /// With an error.
    Failed(Box<ErrorInfo>),
}

/// Sends requests to an agent and forwards the events of their streams.
#[derive(Clone)]
pub(super) struct AgentClient {
    pub(super) client: AgentHttpClient,
    pub(super) agent: HttpAgent,
    pub(super) run_permits: Arc<Semaphore>,
    pub(super) events: mpsc::Sender<StreamEvent>,
}

impl AgentClient {
    /// Waits for a permit, then sends a request and forwards its stream; holds the permit until the stream ends.
    pub(super) async fn send_in_turn(self, request: AgentRequest) {
        let Ok(permit) = self.run_permits.clone().acquire_owned().await else { return };
        self.send_and_stream(request).await;
        drop(permit);
    }

    /// Sends a request and forwards its stream.
    pub(super) async fn send_and_stream(self, request: AgentRequest) {
        let end = match self.response(&request).await {
            Ok(response) => match self.stream(&request, response).await {
                Ok(end) | Err(end) => end,
            },
            Err(error) => StreamEnd::Failed(Box::new(error)),
        };
        // A closed receiver means that the run has ended.
        let _ = self.events.send(StreamEvent::End(end)).await;
    }

    /// Sends a request; retries failures that are safe to repeat.
    async fn response(&self, request: &AgentRequest) -> Result<Response<Incoming>, ErrorInfo> {
        let mut backoff = AGENT_BACKOFF;
        for attempt in 1.. {
            let sent = timeout(self.agent.answer_time, self.send(request)).await;
            let (error, retry_delay) = match sent {
                Err(_) => {
                    let seconds = self.agent.answer_time.as_secs();
                    let message = format!("the agent did not answer within {seconds} s");
                    // Not retried: the agent may be working on it.
                    return Err(retryable(RunFailureCode::AgentSilent.error(message)));
                }
                Ok(Err(SendFailure { error, can_retry: false })) => return Err(error),
                Ok(Err(SendFailure { error, can_retry: true })) => (Some(error), None),
                Ok(Ok(response))
                    if error_response::is_temporary(response.status())
                        && attempt < limits::AGENT_ATTEMPTS =>
                {
                    (None, retry_after(&response))
                }
                Ok(Ok(response)) => return Ok(response),
            };
            if let Some(error) = error.filter(|_| attempt >= limits::AGENT_ATTEMPTS) {
                return Err(error);
            }
            tokio::time::sleep(backoff.next_delay_or(retry_delay)).await;
        }
        Err(RunFailureCode::AgentUnreachable.error("the agent cannot be reached"))
    }

    async fn send(&self, request: &AgentRequest) -> Result<Response<Incoming>, SendFailure> {
        let permanent = |error: ErrorInfo| SendFailure { error, can_retry: false };
        let mut http_request = Request::builder()
            .method(Method::POST)
            .uri(&request.url)
            .body(Full::new(request.body.clone()))
            .map_err(|error| {
                permanent(RunFailureCode::AgentUnreachable.error(format!("the url is none: {error}")))
            })?;
        let headers = http_request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("text/event-stream, application/x-ndjson, application/json;q=0.5"),
        );
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("runwire/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in &self.agent.headers {
            headers.insert(name, value.clone());
        }
        self.client.request(http_request).await.map_err(|error| {
            let message = error_chain(&error);
            if error.is_connect() {
                // The error of rustls for a response that is not TLS.
                let no_tls = message.contains("InvalidContentType");
                let hint = if no_tls { ": its address may speak `http`, not `https`" } else { "" };
                let at = host_and_port(&request.url);
                let message = format!("the agent cannot be reached at {at}: {message}{hint}");
                let error = RunFailureCode::AgentUnreachable.error(message);
                return SendFailure { error: retryable(error), can_retry: true };
            }
            let message = format!("the agent broke the connection off before it answered: {message}");
            permanent(retryable(RunFailureCode::AgentBrokenOff.error(message)))
        })
    }

    /// Forwards the frames of a response to its end.
    async fn stream(
        &self,
        request: &AgentRequest,
        response: Response<Incoming>,
    ) -> Result<StreamEnd, StreamEnd> {
        let (parts, mut body) = response.into_parts();
        let media = parts.headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media =
            media.map(|media| media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        if parts.status.is_redirection() {
            let location = parts.headers.get(LOCATION).and_then(|location| location.to_str().ok());
            return Err(StreamEnd::Failed(error_response::of_redirect(parts.status, location).into()));
        }
        if !parts.status.is_success() {
            let body = read_start(body, &self.agent).await;
            return Err(StreamEnd::Failed(
                error_response::of_status(parts.status, media.as_deref(), &body).into(),
            ));
        }
        let framing = match media.as_deref() {
            Some("text/event-stream") => Some(Framing::Sse),
            Some(media) if media.contains("ndjson") || media.contains("jsonl") => Some(Framing::Ndjson),
            _ if request.takes_acknowledgement => return Ok(StreamEnd::Acknowledged),
            Some("application/json") => Some(Framing::Json),
            Some(media) if media.contains("html") || media.contains("xml") => {
                let body = read_start(body, &self.agent).await;
                return Err(StreamEnd::Failed(error_response::of_media(media, &body).into()));
            }
            Some(media) if error_response::is_binary(media) => {
                return Err(StreamEnd::Failed(error_response::of_media(media, &[]).into()));
            }
            _ => None,
        };
        let mut unframer = ResponseUnframer {
            framing,
            unframer: None,
            first: Vec::new(),
            unframed_start: Some(Vec::new()),
            heartbeats: 0,
        };
        let mut heard_at = Instant::now();
        loop {
            // Bytes alone do not count as activity: an endless line is no output.
            let frame = match timeout_at(heard_at + self.agent.silence_time, body.frame()).await {
                Err(_) => {
                    let seconds = self.agent.silence_time.as_secs();
                    let message = format!("the agent was silent for {seconds} s");
                    return Err(failed(RunFailureCode::AgentSilent, message));
                }
                Ok(None) => break,
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    // Complete frames before the error were forwarded; a partial one is dropped.
                    let message = format!("the agent's stream broke off: {}", error_chain(&error));
                    return Err(failed(RunFailureCode::AgentBrokenOff, message));
                }
            };
            // Trailers are ignored.
            if let Ok(bytes) = frame.into_data() {
                let heartbeats = unframer.heartbeats();
                unframer.push(&bytes);
                self.forward_frames(&mut unframer).await?;
                if unframer.heartbeats() != heartbeats {
                    heard_at = Instant::now();
                }
            }
        }
        unframer.finish();
        self.forward_frames(&mut unframer).await?;
        match unframer
            .unframed_start
            .filter(|_| framing == Some(Framing::Sse))
            .and_then(|bytes| error_response::of_no_events(&bytes))
        {
            Some(error) => Err(StreamEnd::Failed(error.into())),
            None => Ok(StreamEnd::Complete),
        }
    }

    async fn forward_frames(&self, unframer: &mut ResponseUnframer) -> Result<(), StreamEnd> {
        let sent =
            |sent: Result<(), mpsc::error::SendError<StreamEvent>>| sent.map_err(|_| StreamEnd::NoReceiver);
        loop {
            let (frames, error) = unframer.take();
            if !frames.is_empty() {
                sent(self.events.send(StreamEvent::Frames(frames)).await)?;
            } else if error.is_none() {
                return Ok(());
            }
            match error {
                None => {}
                Some(FramingError::TooLong { line } | FramingError::NameTooLong { line }) => {
                    sent(self.events.send(StreamEvent::TooLong { line }).await)?;
                }
                Some(error @ FramingError::NotJson { .. }) => {
                    let message = format!("line {} of the agent's answer: {error}", error.line());
                    return Err(failed(RunFailureCode::AgentGarbled, message));
                }
            }
        }
    }
}

/// A request that got no response.
struct SendFailure {
    error: ErrorInfo,
    can_retry: bool,
}

/// Splits a response into frames.
struct ResponseUnframer {
    framing: Option<Framing>,
    unframer: Option<Unframer>,
    /// Bytes that arrived before the framing was detected.
    first: Vec<u8>,
    /// The first bytes of the response, until it has a frame.
    unframed_start: Option<Vec<u8>>,
    /// Number of frames, and of line ends before the framing was known.
    heartbeats: u64,
}

impl ResponseUnframer {
    fn push(&mut self, bytes: &[u8]) {
        if let Some(unframed_start) = &mut self.unframed_start {
            let bytes_left = limits::AGENT_ERROR_BYTES.saturating_sub(unframed_start.len());
            unframed_start.extend_from_slice(&bytes[..bytes.len().min(bytes_left)]);
        }
        if let Some(unframer) = &mut self.unframer {
            return unframer.push(bytes);
        }
        self.heartbeats += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.first.extend_from_slice(bytes);
        let found = self.framing.or_else(|| Framing::detect(&self.first));
        let enough = self.first.len() >= limits::SNIFFED_BYTES;
        if let Some(framing) = found.or(enough.then_some(Framing::Ndjson)) {
            self.begin(framing);
        }
    }

    /// Counts the agent's activity: complete frames, comments, blank lines.
    fn heartbeats(&self) -> u64 {
        self.heartbeats + self.unframer.as_ref().map_or(0, Unframer::beats)
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

    /// Returns the complete frames up to the limit of one append, and the error that stopped it.
    fn take(&mut self) -> (FrameBatch, Option<FramingError>) {
        let mut batch = FrameBatch::default();
        let Some(unframer) = &mut self.unframer else { return (batch, None) };
        while batch.len() < runwire_producer::limits::BATCH_FRAMES
            && batch.bytes() < runwire_producer::limits::BATCH_BYTES
        {
            let next = unframer.next();
            if next.is_some() {
                self.unframed_start = None;
                self.heartbeats += 1;
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

/// Reads the start of a body that is not a stream.
async fn read_start(body: Incoming, agent: &HttpAgent) -> Bytes {
    let mut body = Limited::new(body, limits::AGENT_ERROR_BYTES);
    let mut read = Vec::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            if let Ok(bytes) = frame.into_data() {
                read.extend_from_slice(&bytes);
            }
        }
    };
    // What arrived before the timeout is enough.
    let _ = timeout(agent.connect_time, reading).await;
    read.into()
}

fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn failed(code: RunFailureCode, message: String) -> StreamEnd {
    StreamEnd::Failed(Box::new(retryable(code.error(message))))
}

fn retryable(error: ErrorInfo) -> ErrorInfo {
    ErrorInfo { retryable: Some(true), ..error }
}
