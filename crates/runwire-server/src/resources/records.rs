//! Everything that is stored of a thread, line by line: out of one log, and into another.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http_body_util::BodyExt;
use runwire_log::transfer::{NumberedItem, line};
use runwire_log::{
    ExportPage, ExportRequest, ImportFault, ImportProblem, Imported, LogError, ThreadKey, TransferItem,
};
use runwire_model::framing::Framing;
use serde::Serialize;
use tokio::task::JoinHandle;

use super::lines::Lines;
use crate::ids::{self, ThreadAt};
use crate::problem::Problem;
use crate::query::Query;
use crate::write::drop_slowly;
use crate::{Wire, limits, media};

/// Gives everything that is stored of a thread, or of a run in it, as lines that [`import`] takes.
pub(crate) async fn export(
    State(wire): State<Arc<Wire>>,
    ThreadAt(thread): ThreadAt,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::parse(query.as_deref());
    let after = query.number("after", 0..=usize::MAX)?.map(|after| after as u64);
    let part = ExportRequest { run: query.id("run")?, after };
    query.finish()?;
    let first = wire.log.export(&thread, &part).await?;
    let rest = Rest { wire, thread, part, page: Some(first) };
    let body = futures_util::stream::try_unfold(rest, |mut rest| async move {
        let lines = rest.next().await?;
        Ok::<_, io::Error>(lines.map(|lines| (lines, rest)))
    });
    let mut response = Body::from_stream(body).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// What is left of an export.
struct Rest {
    wire: Arc<Wire>,
    thread: ThreadKey,
    part: ExportRequest,
    page: Option<ExportPage>,
}

impl Rest {
    /// Gives the lines of the next page. What breaks off has no `end`, and can be gone on with.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let Some(ExportPage { items: pieces, next }) = self.page.take() else { return Ok(None) };
        let mut lines = Vec::new();
        for piece in &pieces {
            line::write(&mut lines, piece);
        }
        if let Some(next) = next {
            if *self.wire.shutdown.borrow() {
                return Err(io::Error::other("the server is stopping"));
            }
            self.part.after = Some(next);
            let page = self.wire.log.export(&self.thread, &self.part).await;
            self.page = Some(page.map_err(|error| {
                tracing::debug!(%error, "an export was cut");
                io::Error::other("the export was cut")
            })?);
        }
        Ok(Some(lines.into()))
    }
}

/// What was taken in.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Taken {
    imported: u64,
    skipped: u64,
    last_seq: u64,
    /// Whether the last line was `end`.
    complete: bool,
}

/// Takes in the lines of a thread that moves here.
pub(crate) async fn import(
    State(wire): State<Arc<Wire>>,
    ThreadAt(thread): ThreadAt,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    mut body: Body,
) -> Response {
    if let Err(problem) = check(query.as_deref(), &headers) {
        drop_slowly(body);
        return problem.into_response();
    }
    let mut intake = Intake::new(wire, thread);
    match intake.read(&mut body).await {
        Ok(()) => Json(intake.taken).into_response(),
        Err(problem) => {
            drop_slowly(body);
            // What is under way is durable, too, and is counted.
            let _ = intake.land().await;
            let Taken { imported, skipped, last_seq, .. } = intake.taken;
            let problem = problem.with("imported", imported).with("skipped", skipped);
            problem.with("last_seq", last_seq).into_response()
        }
    }
}

fn check(query: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
    Query::parse(query).finish()?;
    match media::framing_of(headers)? {
        None | Some(Framing::Ndjson) => Ok(()),
        Some(_) => {
            let detail = "lines are sent as `application/x-ndjson`";
            Err(Problem::new("unsupported_media_type", detail).with("expected", vec!["application/x-ndjson"]))
        }
    }
}

/// Lines that come in, cut into pieces that the log takes at once.
struct Intake {
    wire: Arc<Wire>,
    thread: ThreadKey,
    lines: Lines,
    pieces: Vec<NumberedItem>,
    weight: usize,
    /// What the log is taking in, while the next lines are read.
    flying: Option<JoinHandle<Result<Imported, LogError>>>,
    taken: Taken,
}

impl Intake {
    fn new(wire: Arc<Wire>, thread: ThreadKey) -> Self {
        let lines = Lines::default();
        Self { wire, thread, lines, pieces: Vec::new(), weight: 0, flying: None, taken: Taken::default() }
    }

    async fn read(&mut self, body: &mut Body) -> Result<(), Problem> {
        let mut stopping = self.wire.shutdown.clone();
        let patience: Duration = self.wire.config.body_idle;
        loop {
            let frame = tokio::select! {
                biased;
                _ = stopping.wait_for(|stops| *stops) => {
                    return Err(Problem::new("shutting_down", "the server is stopping"));
                }
                frame = tokio::time::timeout(patience, body.frame()) => frame,
            };
            match frame {
                Err(_) => return Err(Problem::new("body_idle", "no line came for too long")),
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    return Err(Problem::new("body_broken", format!("the body broke off: {error}")));
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.lines.push(&bytes);
                        self.take_lines().await?;
                    }
                }
            }
        }
        self.lines.finish();
        self.take_lines().await?;
        self.launch().await?;
        self.land().await
    }

    async fn take_lines(&mut self) -> Result<(), Problem> {
        while let Some((number, text)) = self.lines.next()? {
            let read = line::read(text).map_err(|bad| bad.to_string());
            let piece = read.map_err(|reason| Problem::new("bad_record", reason).with("line", number))?;
            if let TransferItem::Run(facts) = &piece {
                ids::check("run_id", &facts.run_id).map_err(|problem| problem.with("line", number))?;
            }
            self.taken.complete = matches!(piece, TransferItem::End { .. });
            self.weight += text.len();
            self.pieces.push((number, piece));
            if self.weight >= limits::IMPORT_BYTES || self.pieces.len() >= limits::IMPORT_LINES {
                self.launch().await?;
            }
        }
        Ok(())
    }

    /// Gives what has gathered to the log, once it has taken what was given before.
    async fn launch(&mut self) -> Result<(), Problem> {
        self.land().await?;
        self.weight = 0;
        let pieces = std::mem::take(&mut self.pieces);
        if !pieces.is_empty() {
            let (wire, thread) = (self.wire.clone(), self.thread.clone());
            self.flying = Some(tokio::spawn(async move { wire.log.import(&thread, pieces).await }));
        }
        Ok(())
    }

    /// Waits until what was given to the log is durable.
    async fn land(&mut self) -> Result<(), Problem> {
        let Some(flying) = self.flying.take() else { return Ok(()) };
        let landed = flying.await.map_err(|error| Problem::new("internal", error.to_string()))?;
        let Imported { imported, skipped, head, fault } = landed?;
        self.taken.imported += imported;
        self.taken.skipped += skipped;
        self.taken.last_seq = head;
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }
}

impl From<ImportFault> for Problem {
    fn from(fault: ImportFault) -> Self {
        let code = fault.problem.code();
        let detail = fault.problem.to_string();
        let problem = match fault.problem {
            ImportProblem::Gap { expected, got } => {
                Self::new(code, detail).with("expected", expected).with("got", got)
            }
            ImportProblem::Conflict(_) | ImportProblem::Bad(_) => Self::new(code, detail),
            ImportProblem::Log(error) => error.into(),
        };
        problem.with("line", fault.line)
    }
}
