//! Handlers of export and import: the complete records of a thread as NDJSON.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http_body_util::BodyExt;
use runwire_log::transfer::{NumberedItem, line};
use runwire_log::{ExportPage, ExportRequest, Imported, LogError, ThreadKey, TransferItem};
use runwire_model::ErrorCode;
use runwire_model::framing::Framing;
use serde::Serialize;
use tokio::task::JoinHandle;
use utoipa::ToSchema;

use super::import_lines::ImportLines;
use crate::ids::{self, ThreadParam};
use crate::memory_budget::{self, MemoryShare, Wait};
use crate::openapi::params::ExportPart;
use crate::openapi::schemas::ExportedLines;
use crate::problem::Problem;
use crate::query::Query;
use crate::write::drain_and_close;
use crate::{AppState, content_type, limits};

/// Exports everything that is stored of a thread, or of one run in it.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/records", operation_id = "exportThread", tag = "moving",
    params(ThreadParam, ExportPart),
    responses((
        status = 200, body = String, content_type = "application/x-ndjson",
        description = "One JSON object a line, as `importThread` takes them. The last line is of type `end`; an answer without it was cut off.",
    )),
)]
pub(crate) async fn export(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut query = Query::parse(query.as_deref());
    let after = query.number("after", 0..=usize::MAX)?.map(|after| after as u64);
    let part = ExportRequest { run: query.id("run")?, after };
    query.finish()?;
    let mut export = ExportStream { state, thread, part, over: false };
    // A problem with the first page can still be told.
    let first = export.next(Wait::InTime).await?;
    let rest = stream::try_unfold(export, |mut export| async move {
        let lines = export.next(Wait::Unlimited).await.map_err(|error| {
            tracing::debug!(%error, "an export was cut");
            io::Error::other("the export was cut")
        })?;
        Ok::<_, io::Error>(lines.map(|lines| (lines, export)))
    });
    let mut response = Body::from_stream(stream::iter(first.map(Ok)).chain(rest)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The body of an export, page by page.
struct ExportStream {
    state: Arc<AppState>,
    thread: ThreadKey,
    part: ExportRequest,
    over: bool,
}

impl ExportStream {
    /// Returns the lines of the next page, which keep their share of the memory budget until they are sent; none at the
    /// end. An export that is cut off has no `end` line, and can be continued.
    async fn next(&mut self, wait: Wait) -> Result<Option<Bytes>, LogError> {
        if self.over {
            return Ok(None);
        }
        if self.part.after.is_some() && *self.state.shutdown.borrow() && wait == Wait::Unlimited {
            return Err(LogError::Unavailable("the server is stopping".into()));
        }
        let mut share = self.state.memory.answer();
        share.grow(limits::CATCH_UP_BYTES, wait).await?;
        let ExportPage { items, next } = self.state.log.export(&self.thread, &self.part).await?;
        let mut lines = Vec::new();
        for item in items {
            line::write(&mut lines, &item);
        }
        self.over = next.is_none();
        self.part.after = next.or(self.part.after);
        share.grow(lines.len(), wait).await?;
        share.shrink_to(lines.len());
        Ok(Some(memory_budget::hold(lines, Arc::new(share))))
    }
}

/// Counts of an import; the response.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Imported)]
pub(crate) struct ImportSummary {
    /// Records that are written now.
    imported: u64,
    /// Records that were there before.
    skipped: u64,
    /// The thread's last record.
    last_seq: u64,
    /// Whether the last line was of type `end`.
    complete: bool,
}

/// Imports a thread that was exported.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/records", operation_id = "importThread", tag = "moving",
    params(ThreadParam),
    request_body(content = inline(ExportedLines), content_type = "application/x-ndjson"),
    responses((status = 200, description = "Everything is durable.", body = ImportSummary)),
)]
pub(crate) async fn import(
    State(state): State<Arc<AppState>>,
    ThreadParam(thread): ThreadParam,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    mut body: Body,
) -> Response {
    if let Err(problem) = check(query.as_deref(), &headers) {
        drain_and_close(body);
        return problem.into_response();
    }
    let mut importer = Importer::new(state, thread);
    match importer.read(&mut body).await {
        Ok(()) => Json(importer.summary).into_response(),
        Err(problem) => {
            drain_and_close(body);
            // Counts the batch in flight, which becomes durable, too.
            let _ = importer.finish_in_flight().await;
            let ImportSummary { imported, skipped, last_seq, .. } = importer.summary;
            let problem = problem.with("imported", imported).with("skipped", skipped);
            problem.with("last_seq", last_seq).into_response()
        }
    }
}

fn check(query: Option<&str>, headers: &HeaderMap) -> Result<(), Problem> {
    Query::parse(query).finish()?;
    match content_type::framing_of(headers)? {
        None | Some(Framing::Ndjson) => Ok(()),
        Some(_) => {
            let detail = "lines are sent as `application/x-ndjson`";
            Err(Problem::new(ErrorCode::UnsupportedMediaType, detail)
                .with("expected", vec!["application/x-ndjson"]))
        }
    }
}

/// Parses imported lines and submits them to the log in batches.
struct Importer {
    state: Arc<AppState>,
    thread: ThreadKey,
    lines: ImportLines,
    items: Vec<NumberedItem>,
    batch_bytes: usize,
    /// The batch that the log imports while the next lines are read.
    in_flight: Option<JoinHandle<Result<Imported, LogError>>>,
    summary: ImportSummary,
    /// The share of the memory budget of a large line.
    share: MemoryShare,
}

impl Importer {
    fn new(state: Arc<AppState>, thread: ThreadKey) -> Self {
        let (lines, share) = (ImportLines::default(), state.memory.request());
        Self {
            state,
            thread,
            lines,
            items: Vec::new(),
            batch_bytes: 0,
            in_flight: None,
            summary: ImportSummary::default(),
            share,
        }
    }

    async fn read(&mut self, body: &mut Body) -> Result<(), Problem> {
        let mut stopping = self.state.shutdown.clone();
        loop {
            let mut idle_timeout: Duration = self.state.config.body_idle;
            if self.share.is_beyond() {
                // Others wait for it.
                idle_timeout = idle_timeout.min(limits::BUDGET_TIME);
            }
            let frame = tokio::select! {
                biased;
                _ = stopping.wait_for(|stops| *stops) => {
                    return Err(Problem::new(ErrorCode::ShuttingDown, "the server is stopping"));
                }
                frame = tokio::time::timeout(idle_timeout, body.frame()) => frame,
            };
            match frame {
                Err(_) => return Err(Problem::new(ErrorCode::BodyIdle, "no line came for too long")),
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    return Err(Problem::new(ErrorCode::BodyBroken, format!("the body broke off: {error}")));
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        // A large line is held as text, and as the record that it is read into.
                        let buffered = self.lines.buffered() + bytes.len();
                        if buffered > limits::FREE_BYTES {
                            self.share.grow_in_time(3 * buffered).await?;
                        }
                        self.lines.push(&bytes);
                        self.parse_lines().await?;
                        if buffered > limits::IMPORT_BYTES && self.lines.buffered() < limits::FREE_BYTES {
                            // What it was read into is held until it is durable.
                            self.submit_batch().await?;
                            self.finish_in_flight().await?;
                        }
                        self.share.shrink_to(3 * self.lines.buffered());
                    }
                }
            }
        }
        self.lines.finish();
        self.parse_lines().await?;
        self.submit_batch().await?;
        self.finish_in_flight().await
    }

    async fn parse_lines(&mut self) -> Result<(), Problem> {
        while let Some((number, text)) = self.lines.next()? {
            let read = line::read(text).map_err(|bad| bad.to_string());
            let piece =
                read.map_err(|reason| Problem::new(ErrorCode::BadRecord, reason).with("line", number))?;
            if let TransferItem::Run(facts) = &piece {
                ids::check("run_id", &facts.run_id).map_err(|problem| problem.with("line", number))?;
            }
            self.summary.complete = matches!(piece, TransferItem::End { .. });
            self.batch_bytes += text.len();
            self.items.push((number, piece));
            if self.batch_bytes >= limits::IMPORT_BYTES || self.items.len() >= limits::IMPORT_LINES {
                self.submit_batch().await?;
            }
        }
        Ok(())
    }

    /// Submits the collected items, after the batch in flight is durable.
    async fn submit_batch(&mut self) -> Result<(), Problem> {
        self.finish_in_flight().await?;
        self.batch_bytes = 0;
        let items = std::mem::take(&mut self.items);
        if !items.is_empty() {
            let (state, thread) = (self.state.clone(), self.thread.clone());
            self.in_flight = Some(tokio::spawn(async move { state.log.import(&thread, items).await }));
        }
        Ok(())
    }

    /// Waits until the batch in flight is durable.
    async fn finish_in_flight(&mut self) -> Result<(), Problem> {
        let Some(in_flight) = self.in_flight.take() else { return Ok(()) };
        let imported_batch =
            in_flight.await.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
        let Imported { imported, skipped, head, fault } = imported_batch?;
        self.summary.imported += imported;
        self.summary.skipped += skipped;
        self.summary.last_seq = head;
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }
}
