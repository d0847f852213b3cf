//! `runwire tail`: a run from any cursor to its end, over as many connections as it takes.

use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::block_on;
use super::connection::Client;
use super::events::Events;
use super::printer::Printer;
use super::url::Target;
use crate::Verdict;
use crate::arguments::TailArguments;
use crate::failure::Failure;
use crate::screen;

/// Time of silence after which a connection counts as dead; the server shows signs of life far more often.
const SILENCE: Duration = Duration::from_secs(90);

/// The first wait before a connection is tried again, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Prints a run's frames until it ends.
pub(crate) fn run(arguments: &TailArguments) -> Result<Verdict, Failure> {
    let printer = Printer::new(arguments)?;
    let client = Client::new(&arguments.server.url)?;
    let cursor = arguments.after.clone();
    let mut tail =
        Tail { arguments, client, printer, cursor, wait: WAITS.0, is_cut: false, has_streamed: false };
    block_on(async move {
        tail.follow().await?;
        tail.printer.finish()?;
        Ok(Verdict::Fine)
    })
}

struct Tail<'a> {
    arguments: &'a TailArguments,
    client: Client,
    printer: Printer,
    /// Where to go on: everything up to it has been printed.
    cursor: Option<String>,
    /// How long to wait before the next attempt, should it be needed.
    wait: Duration,
    /// Whether a person has been told that the connection is gone.
    is_cut: bool,
    /// Whether the server has streamed anything: from then on its faults are taken to pass.
    has_streamed: bool,
}

/// How a connection ended.
enum Ending {
    /// The server said that this is all.
    Finished { progressed: bool },
    /// The server stops and asks to come back.
    Postponed(Duration),
    /// It broke.
    Cut(Failure),
}

impl Tail<'_> {
    async fn follow(&mut self) -> Result<(), Failure> {
        let mut response = self.connect().await?;
        loop {
            let failure = match response.status() {
                StatusCode::NO_CONTENT => return Ok(()),
                StatusCode::OK => match self.print(response).await? {
                    Ending::Finished { progressed } => {
                        if self.arguments.no_follow || (!progressed && self.is_closed().await?) {
                            return Ok(());
                        }
                        // The end of the run, which the next answer confirms, or of the server.
                        if progressed { None } else { Some("the server ended the stream".to_owned()) }
                    }
                    Ending::Postponed(wait) => {
                        self.wait = wait.clamp(WAITS.0, WAITS.1);
                        Some("the server is stopping".to_owned())
                    }
                    Ending::Cut(failure) => Some(failure.to_string()),
                },
                status if status.is_server_error() && self.has_streamed => {
                    Some(format!("the server answers {status}"))
                }
                _ => return Err(self.client.refusal(response).await),
            };
            response = self.reconnect(failure).await?;
        }
    }

    /// Connects again, as often as it takes.
    async fn reconnect(&mut self, mut reason: Option<String>) -> Result<Response<Incoming>, Failure> {
        loop {
            if let Some(reason) = reason.take() {
                if !std::mem::replace(&mut self.is_cut, true) {
                    screen::say_note(format_args!("{reason}; trying again"));
                }
                tokio::time::sleep(self.wait).await;
                self.wait = (self.wait * 2).min(WAITS.1);
            }
            match self.connect().await {
                Ok(response) => return Ok(response),
                Err(failure @ (Failure::Unreachable { .. } | Failure::Broken { .. })) => {
                    reason = Some(failure.to_string());
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn connect(&self) -> Result<Response<Incoming>, Failure> {
        let arguments = self.arguments;
        // A cursor says more than a snapshot: what was printed is not to be told again.
        let attach = (arguments.attach && self.cursor.is_none()).then_some("snapshot");
        let target = self
            .place()
            .segment("events")
            .parameter("dialect", self.printer.dialect.name())
            .parameter_if("after", self.cursor.as_deref())
            .parameter_if("follow", arguments.no_follow.then_some("false"))
            .parameter_if("compact", arguments.compact.then_some("true"))
            .parameter_if("attach", attach);
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))]);
        self.client.get(&target, headers).await
    }

    /// Prints the events of one connection.
    async fn print(&mut self, response: Response<Incoming>) -> Result<Ending, Failure> {
        let mut body = response.into_body();
        let mut events = Events::default();
        let (mut progressed, mut postponed) = (false, None);
        self.has_streamed = true;
        let ending = loop {
            let frame = match tokio::time::timeout(SILENCE, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => break Ending::Cut(self.client.broken(&error)),
                Ok(None) => match postponed {
                    Some(wait) => break Ending::Postponed(wait),
                    None => break Ending::Finished { progressed },
                },
                Err(_) => break Ending::Cut(self.client.silent()),
            };
            let Ok(bytes) = frame.into_data() else { continue };
            events.push(&bytes).map_err(|error| self.client.strange(error.to_string()))?;
            while let Some(event) = events.next() {
                postponed = event.retry.map(Duration::from_millis).or(postponed);
                self.printer.gather(&event);
                // Frames of a snapshot have no cursor until its last one. Printed earlier, they would come
                // twice if the connection broke between them.
                if let Some(id) = event.id {
                    progressed |= event.data.is_some() || self.cursor.as_ref() != Some(&id);
                    self.cursor = Some(id);
                    self.printer.flush()?;
                }
            }
            if progressed {
                self.wait = WAITS.0;
                self.is_cut = false;
            }
        };
        match ending {
            Ending::Finished { .. } => self.printer.flush()?,
            Ending::Postponed(_) | Ending::Cut(_) => self.printer.forget(),
        }
        Ok(ending)
    }

    /// Asks whether the run has ended. A dialect that shows nothing of the end leaves its reader before it.
    async fn is_closed(&self) -> Result<bool, Failure> {
        if self.arguments.thread {
            return Ok(false);
        }
        match self.client.get_json(&self.place()).await {
            Ok(run) => {
                let status = run.get("status").and_then(serde_json::Value::as_str);
                Ok(matches!(status, Some("completed" | "failed" | "cancelled")))
            }
            Err(Failure::Unreachable { .. } | Failure::Broken { .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    fn place(&self) -> Target {
        let kind = if self.arguments.thread { "threads" } else { "runs" };
        self.client.target().segment(kind).segment(&self.arguments.run)
    }
}
