//! EasyFlow over a WebSocket: `GET /api/v1/bot/ws` (§2 and §12 of its document).
//!
//! In: the chat request, which starts a run or attaches to one, and the answer to a form. Out: the run's frames, one a
//! message, as they stand in `data:` of the SSE stream; `ack` for an answer; `error` for a message that is refused. A
//! chat that is refused gets a `system/error` frame, as over HTTP. Runs outlive the socket.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;
use tokio::task::JoinHandle;

use super::{chat_run, conversation_in};
use crate::auth::tenant_of;
use crate::facade::error_frame::easyflow_frame;
use crate::facade::start_run::{BodyFields, StartAt, agent_in_query, read_params};
use crate::feed::{FeedReader, Next, SegmentFrame};
use crate::listener::ConnectionPermit;
use crate::metrics::{OpenReader, ReaderTransport};
use crate::openapi::params::SocketAgent;
use crate::problem::Problem;
use crate::websocket::{self, Outbox};
use crate::{AppState, limits};

/// Opens a WebSocket for EasyFlow's chats and forms.
///
/// In: the body of `POST /api/v1/bot/chat` or of `POST /api/v1/bot/form`, one a message. Out: the run's frames, one a
/// message; `{"op":"ack","form_id",…}` for an answer; `{"op":"error","form_id"?,<problem>}` for what is refused, and
/// EasyFlow's `system/error` for a chat that is.
#[utoipa::path(
    get, path = "/api/v1/bot/ws", operation_id = "easyflowSocket", tag = "façades",
    params(SocketAgent),
    responses((status = 101, description = "The connection is a WebSocket now.")),
)]
pub(crate) async fn upgrade(
    State(state): State<Arc<AppState>>,
    Extension(permit): Extension<ConnectionPermit>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let (tenant, agent) = (tenant_of(&headers), agent_in_query(query.as_deref())?);
    let of = state.clone();
    let session = |out| ChatSocket { state: of, tenant, agent, out, runs: HashMap::new() };
    websocket::open(&state, permit, &headers, upgrade, session)
}

struct ChatSocket {
    state: Arc<AppState>,
    tenant: Arc<str>,
    /// The agent of chats that name none.
    agent: Option<String>,
    out: Outbox,
    /// The tasks that send the frames of runs, by run.
    runs: HashMap<String, JoinHandle<()>>,
}

impl websocket::MessageHandler for ChatSocket {
    async fn handle(&mut self, text: &str) -> bool {
        let mut fields = match BodyFields::of_message(text) {
            Ok(fields) => fields,
            Err(problem) => return self.refuse(problem).await,
        };
        if fields.has("form_id") || fields.has("formId") {
            let answer = super::answer_message(&self.state, &self.tenant, fields).await;
            return self.say(answer).await;
        }
        let conversation = match conversation_in(&mut fields) {
            Ok(conversation) => conversation,
            Err(problem) => return self.refuse(problem).await,
        };
        if conversation.is_none() && !fields.has("prompt") {
            let detail = "a message is a chat (`prompt`, `conversationId`) or an answer (`conversation_id`, `form_id`, `values`)";
            return self.refuse(Problem::new(ErrorCode::BadMessage, detail)).await;
        }
        match self.chat(conversation.clone(), fields).await {
            Ok(()) => true,
            Err(problem) => self.say(easyflow_frame(problem, &conversation.unwrap_or_default())).await,
        }
    }

    async fn refuse(&mut self, problem: Problem) -> bool {
        self.say(super::error_message(None, problem)).await
    }

    fn close(&mut self) {
        self.runs.drain().for_each(|(_, sending)| sending.abort());
    }
}

impl ChatSocket {
    /// Queues a message; false means that the socket is gone.
    async fn say(&self, text: String) -> bool {
        self.out.send(text).await
    }

    /// Starts a run or attaches to one; a run that is sent already is sent anew from its present.
    async fn chat(&mut self, conversation: Option<String>, fields: BodyFields) -> Result<(), Problem> {
        self.runs.retain(|_, sending| !sending.is_finished());
        if self.runs.len() >= limits::SUBSCRIPTIONS {
            let detail = format!("a socket has at most {} runs", limits::SUBSCRIPTIONS);
            return Err(Problem::new(ErrorCode::TooManySubscriptions, detail));
        }
        let agent = self.agent.clone();
        let (run, begun) = chat_run(&self.state, &self.tenant, agent, conversation.clone(), fields).await?;
        let from = if begun { StartAt::Cursor(None) } else { StartAt::Snapshot };
        let Some(reader) =
            read_params(&self.state, Dialect::EasyflowChat, from).read_run(&self.state, &run).await?
        else {
            return Ok(());
        };
        let open = self.state.metrics.reader(ReaderTransport::WebSocket);
        let conversation = conversation.unwrap_or_default();
        let sending = tokio::spawn(send(reader.wait_out_outages(), conversation, self.out.clone(), open));
        if let Some(before) = self.runs.insert(run.id.to_string(), sending) {
            before.abort();
        }
        Ok(())
    }
}

/// Sends the frames of a run to its end.
async fn send(mut reader: FeedReader, conversation: String, out: Outbox, _open: OpenReader) {
    let problem = loop {
        match reader.next().await {
            Ok(Next::Frames { segment, from, to }) => {
                for frame in segment.frames(from).take(to - from) {
                    let message = |frame: SegmentFrame<'_>| String::from_utf8_lossy(frame.data).into_owned();
                    if !out.send_frame(&segment, frame, message).await {
                        return;
                    }
                }
            }
            Ok(Next::CaughtUp) => {}
            Ok(Next::Ended) if reader.is_run_over() => return,
            Ok(Next::Ended) => break Problem::new(ErrorCode::RunUnknown, "the run was deleted"),
            Err(error) => break error.into(),
        }
    };
    out.send(easyflow_frame(problem, &conversation)).await;
}
