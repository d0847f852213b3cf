//! The façade of Loom: its WebSocket `GET /loom`.
//!
//! In: `run`, `answer`, `cancel`, `ping`. Out: `run_stream_event` for each frame of a run, then one `run_end` that is
//! its reply, or an `error`; `answered`, `pong`. An invalid message gets an error, and the socket stays open. Runs
//! outlive the socket. With `?frames=plain` the frames of runs come as the document has them, without a wrapper.

mod answer;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use runwire_log::{Cancel, NewRun, RunKey};
use runwire_model::dialect::Dialect;
use runwire_model::json::{Object, ObjectWriter};
use runwire_model::{ErrorCode, Json};
use tokio::task::JoinHandle;

use super::start_run::{BodyFields, StartAt, agent_in_query, agent_of, missing_field, read_params, start};
use crate::auth::tenant_of;
use crate::feed::{FeedReader, Next, SegmentFrame};
use crate::listener::ConnectionPermit;
use crate::metrics::{OpenReader, ReaderTransport};
use crate::openapi::params::{FacadeAgent, LoomFrames};
use crate::problem::{Problem, text_of};
use crate::query::Query;
use crate::websocket::{self, Outbox};
use crate::{AppState, limits};

/// The types of client messages.
const KINDS: &str = "run, answer, cancel, ping";

/// Opens a WebSocket as Loom's front end does.
#[utoipa::path(
    get, path = "/loom", operation_id = "openLoomSocket", tag = "façades",
    params(FacadeAgent, LoomFrames),
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
    let frames = FrameWrapping::in_query(query.as_deref())?;
    let of = state.clone();
    let session = move |out| LoomSocket { state: of, tenant, agent, frames, out, runs: HashMap::new() };
    websocket::open(&state, permit, &headers, upgrade, session)
}

/// How frames are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameWrapping {
    /// In a message that names the run.
    Wrapped,
    /// Bare, as in Loom's document.
    Plain,
}

impl FrameWrapping {
    fn in_query(query: Option<&str>) -> Result<Self, Problem> {
        match Query::parse(query).take("frames")?.as_deref() {
            None | Some("wrapped") => Ok(Self::Wrapped),
            Some("plain") => Ok(Self::Plain),
            Some(_) => Err(Problem::bad_query("frames", "`frames` is `wrapped` or `plain`")),
        }
    }
}

struct LoomSocket {
    state: Arc<AppState>,
    tenant: Arc<str>,
    /// Default agent of the socket's runs.
    agent: Option<String>,
    frames: FrameWrapping,
    out: Outbox,
    /// The runs that are being sent, by message id.
    runs: HashMap<String, (RunKey, JoinHandle<()>)>,
}

impl websocket::MessageHandler for LoomSocket {
    async fn handle(&mut self, text: &str) -> bool {
        let mut fields = match read(text) {
            Ok(fields) => fields,
            Err(problem) => return self.send(error(None, problem)).await,
        };
        let id = match fields.json("id") {
            Some(id) if is_id(&id) => Some(id),
            None => None,
            Some(_) => {
                let problem = bad("`id` must be a string of at most 256 bytes, or a whole number");
                return self.send(error(None, problem)).await;
            }
        };
        match self.dispatch(id.as_ref(), fields).await {
            Ok(None) => true,
            Ok(Some(answer)) => self.send(answer).await,
            Err(problem) => self.send(error(id.as_ref(), problem)).await,
        }
    }

    async fn refuse(&mut self, problem: Problem) -> bool {
        self.send(error(None, problem)).await
    }

    fn close(&mut self) {
        self.runs.drain().for_each(|(_, (_, forwarding))| forwarding.abort());
    }
}

impl LoomSocket {
    /// Queues a message; returns false if the socket is closed.
    async fn send(&self, text: String) -> bool {
        self.out.send(text).await
    }

    async fn dispatch(
        &mut self,
        id: Option<&Json>,
        mut fields: BodyFields,
    ) -> Result<Option<String>, Problem> {
        let kind = fields.text(&["type"])?;
        match (kind.as_deref(), id) {
            (Some("ping"), id) => Ok(Some(message("pong", id, |_| {}))),
            (Some("run"), Some(id)) => self.run(id, fields).await.map(|()| None),
            (Some("answer"), Some(id)) => self.answer(id, fields).await.map(Some),
            (Some("cancel"), Some(id)) => self.cancel(id).await.map(|()| None),
            (Some(kind @ ("run" | "answer" | "cancel")), None) => Err(bad(format!("`{kind}` needs an `id`"))),
            (Some(kind), _) => Err(bad(format!("there is no type `{kind}`; known are {KINDS}"))),
            (None, _) => Err(bad(format!("the message has no `type`; known are {KINDS}"))),
        }
    }

    async fn run(&mut self, id: &Json, mut fields: BodyFields) -> Result<(), Problem> {
        self.runs.retain(|_, (_, forwarding)| !forwarding.is_finished());
        if self.runs.contains_key(id.text()) {
            return Err(bad(format!("the run {} is not over", id.text())));
        }
        if self.runs.len() >= limits::SUBSCRIPTIONS {
            let detail = format!("a socket has at most {} runs", limits::SUBSCRIPTIONS);
            return Err(Problem::new(ErrorCode::TooManySubscriptions, detail));
        }
        let named = fields.id(&["agent"])?.or_else(|| self.agent.clone());
        let run = NewRun {
            tenant: self.tenant.to_string(),
            run_id: fields.id(&["run_id"])?,
            thread_id: fields.id(&["thread_id"])?,
            agent: Some(agent_of(&self.state, named)?),
            message: Some(fields.text(&["message"])?.ok_or_else(|| missing_field("message"))?),
            message_id: None,
            input: fields.into_input(),
            ..NewRun::default()
        };
        let (run, _) = start(&self.state, run).await?;
        let params = read_params(&self.state, Dialect::Loom, StartAt::Cursor(None));
        let reader = match self.frames {
            FrameWrapping::Wrapped => params.read_run(&self.state, &run).await?,
            // The socket is one stream in which a session may have several runs.
            FrameWrapping::Plain => params.read_run_in_thread(&self.state, &run).await?,
        };
        // A run that is read from its start has at least its end.
        let reader = reader.ok_or_else(|| Problem::new(ErrorCode::RunClosed, "the run has ended"))?;
        let open = self.state.metrics.reader(ReaderTransport::WebSocket);
        let forwarding =
            forward_frames(reader.wait_out_outages(), id.clone(), self.frames, self.out.clone(), open);
        let forwarding = tokio::spawn(forwarding);
        self.runs.insert(id.text().to_owned(), (run, forwarding));
        Ok(())
    }

    /// Answers an interaction of a run of this socket.
    async fn answer(&mut self, id: &Json, fields: BodyFields) -> Result<String, Problem> {
        let given = answer::answer(&self.state, self.key(id)?, fields).await?;
        Ok(message("answered", Some(id), |object| {
            object.str("interaction_id", &given.interaction);
            object.str("decision", given.decision.as_str());
        }))
    }

    /// Requests a run of this socket to be cancelled; `run_end` follows when it has ended.
    async fn cancel(&mut self, id: &Json) -> Result<(), Problem> {
        self.state.log.cancel(self.key(id)?, Cancel { reason: None, by: None }).await?;
        Ok(())
    }

    fn key(&self, id: &Json) -> Result<&RunKey, Problem> {
        let run = self.runs.get(id.text()).map(|(run, _)| run);
        run.ok_or_else(|| bad(format!("this socket has no run {}", id.text())))
    }
}

/// Sends the frames of a run to its end.
async fn forward_frames(
    mut reader: FeedReader,
    id: Json,
    frames: FrameWrapping,
    out: Outbox,
    _open: OpenReader,
) {
    loop {
        match reader.next().await {
            Ok(Next::Frames { segment, from, to }) => {
                for frame in segment.frames(from).take(to - from) {
                    let message = |frame: SegmentFrame<'_>| {
                        let text = String::from_utf8_lossy(frame.data);
                        match frames {
                            FrameWrapping::Wrapped => frame_message(&id, &text),
                            FrameWrapping::Plain => text.into_owned(),
                        }
                    };
                    if !out.send_frame(&segment, frame, message).await {
                        return;
                    }
                }
            }
            Ok(Next::CaughtUp) => {}
            Ok(Next::Ended) if reader.is_run_over() => return,
            Ok(Next::Ended) => {
                let problem = Problem::new(ErrorCode::RunUnknown, "the run was deleted");
                out.send(error(Some(&id), problem)).await;
                return;
            }
            Err(problem) => {
                out.send(error(Some(&id), problem.into())).await;
                return;
            }
        }
    }
}

/// Wraps a frame of a run; the reply, which has no `type`, becomes `run_end`.
fn frame_message(id: &Json, frame: &str) -> String {
    let reply = Object::of_stored(frame).filter(|frame| frame.has("reply") && !frame.has("type"));
    match reply {
        Some(reply) => message("run_end", Some(id), |object| {
            for (name, value) in reply.fields() {
                object.raw(name, value.get());
            }
        }),
        None => message("run_stream_event", Some(id), |object| object.raw("event", frame)),
    }
}

fn message(kind: &str, id: Option<&Json>, write: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    text_of(|object| {
        object.str("type", kind);
        object.opt_json("id", id);
        write(object);
    })
}

/// Writes an error: a message for people, and the whole problem.
fn error(id: Option<&Json>, problem: Problem) -> String {
    message("error", id, |object| {
        object.str("error", problem.detail());
        object.raw("problem", &problem.to_text());
    })
}

fn read(text: &str) -> Result<BodyFields, Problem> {
    let fields = runwire_model::json::check_frame(text.as_bytes()).map_err(|fault| bad(fault.to_string()));
    fields.and_then(|_| {
        serde_json::from_str(text).map_err(|error| bad(format!("a message is a JSON object: {error}")))
    })
}

fn is_id(id: &Json) -> bool {
    id.text().len() <= limits::MESSAGE_ID_BYTES
        && (id.as_string().is_some() || id.text().parse::<i64>().is_ok())
}

fn bad(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::BadMessage, detail)
}
