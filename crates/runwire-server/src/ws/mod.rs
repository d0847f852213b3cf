//! The WebSocket endpoint `GET /v1/ws`: reads and writes several runs over one socket.
//!
//! Messages are handled in order, so that writes keep theirs; each subscription has its own reader.

mod message;
mod written_targets;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use http::HeaderMap;
use runwire_log::{Append, Cancel, Cancelled, ReadFormat, RunKey, Stamp, Target, ThreadKey};
use runwire_model::ErrorCode;
use runwire_model::dialect::Dialect;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::auth::tenant_of;
use crate::facade::easyflow;
use crate::facade::start_run::BodyFields;
use crate::feed::{FeedReader, Next, SegmentFrame, StreamFormat};
use crate::listener::ConnectionPermit;
use crate::metrics::{OpenReader, ReaderTransport};
use crate::problem::Problem;
use crate::read::{ReadParams, ResponseFormat};
use crate::resources::agents::retry_run;
use crate::resources::interactions::{InteractionView, PostedAnswer};
use crate::websocket::{self, Outbox};
use crate::write::check_mode;
use crate::{AppState, ids, interactions, limits};
use message::{ClientMessage, OPS, acknowledgement, bad, error, signal};
use runwire_log::outage;
use written_targets::WrittenTargets;

/// Opens a WebSocket: several runs, both ways, over one socket.
///
/// A message without `op` that has `conversation_id` and `form_id` is EasyFlow's answer to a form, and gets
/// `{"op":"ack","form_id",…}`.
#[utoipa::path(
    get, path = "/v1/ws", operation_id = "openWebSocket", tag = "reading",
    responses((status = 101, description = "The connection is a WebSocket now.")),
)]
pub(crate) async fn upgrade(
    State(state): State<Arc<AppState>>,
    Extension(permit): Extension<ConnectionPermit>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let (tenant, of) = (tenant_of(&headers), state.clone());
    let session = |out: Outbox| {
        let written_targets = WrittenTargets::new(&of, out.clone());
        SocketSession { state: of, tenant, out, subscriptions: HashMap::new(), written_targets }
    };
    websocket::open(&state, permit, &headers, upgrade, session)
}

struct SocketSession {
    state: Arc<AppState>,
    tenant: Arc<str>,
    out: Outbox,
    subscriptions: HashMap<String, JoinHandle<()>>,
    written_targets: WrittenTargets,
}

impl websocket::MessageHandler for SocketSession {
    async fn handle(&mut self, text: &str) -> bool {
        let incoming = match ClientMessage::read(text) {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return self.answer_form(text).await,
            Err(wrong) => {
                let (id, problem) = *wrong;
                return self.send(error(id.as_deref(), problem)).await;
            }
        };
        if incoming.op == "ping" {
            self.renew_leases().await;
            return self.send(signal("pong", incoming.id().ok())).await;
        }
        let id = match incoming.id() {
            Ok(id) => id.to_owned(),
            Err(problem) => return self.send(error(None, problem)).await,
        };
        let done = match incoming.op.as_str() {
            "subscribe" => self.subscribe(&id, &incoming).await.map(|()| None),
            "unsubscribe" => self.unsubscribe(&id).map(Some),
            "write" => self.write(&id, &incoming).await.map(Some),
            "answer" => self.answer(&id, incoming).await.map(Some),
            "cancel" => self.cancel(&id, &incoming).await.map(Some),
            "retry" => self.retry(&id, incoming).await.map(Some),
            op => Err(bad(format!("there is no op `{op}`; known are {}", OPS.join(", ")))),
        };
        match done {
            Ok(None) => true,
            Ok(Some(answer)) => self.send(answer).await,
            Err(problem) => self.send(error(Some(&id), problem)).await,
        }
    }

    async fn refuse(&mut self, problem: Problem) -> bool {
        self.send(error(None, problem)).await
    }

    async fn on_ping(&mut self) {
        self.renew_leases().await;
    }

    fn close(&mut self) {
        self.subscriptions.drain().for_each(|(_, subscription)| subscription.abort());
    }
}

impl SocketSession {
    /// Queues a message; returns false if the socket is closed.
    async fn send(&self, text: String) -> bool {
        self.out.send(text).await
    }

    /// Renews the leases of written runs, with a timeout: an unavailable store must not delay the reply to a ping.
    async fn renew_leases(&mut self) {
        let _ = tokio::time::timeout(limits::RENEWAL_TIME, self.written_targets.renew_leases()).await;
    }

    async fn subscribe(&mut self, id: &str, incoming: &ClientMessage) -> Result<(), Problem> {
        self.subscriptions.retain(|_, task| !task.is_finished());
        if self.subscriptions.contains_key(id) {
            return Err(bad(format!("there is a subscription {id} already")));
        }
        if self.subscriptions.len() >= limits::SUBSCRIPTIONS {
            let detail = format!("a socket has at most {} subscriptions", limits::SUBSCRIPTIONS);
            return Err(Problem::new(ErrorCode::TooManySubscriptions, detail));
        }
        let dialect = incoming.dialect(&Dialect::ALL)?.unwrap_or(Dialect::Runwire);
        let form = ReadFormat::with(dialect, incoming.options()?);
        let after = incoming.after()?;
        let params = ReadParams {
            format: ResponseFormat::Stream(StreamFormat::NdjsonWithCursors),
            form: (!incoming.raw).then_some(form),
            after,
            follow: true,
            limit: None,
            compact: incoming.compact && !incoming.raw,
            attach: incoming.attach()? && !incoming.raw && after.is_none(),
        };
        let reader = match (&incoming.run, &incoming.thread) {
            (Some(run), None) => params.check_attach()?.read_run(&self.state, &self.run(run)?).await?,
            (None, Some(thread)) => {
                ids::check("thread", thread)?;
                let key = ThreadKey { tenant: self.tenant.clone(), id: thread.as_str().into() };
                Some(params.read_thread(&self.state, &key).await?)
            }
            _ => return Err(bad("`subscribe` needs a `run` or a `thread`, not both")),
        };
        let Some(reader) = reader else {
            let _ = self.send(signal("end", Some(id))).await;
            return Ok(());
        };
        let open = self.state.metrics.reader(ReaderTransport::WebSocket);
        let forwarding =
            forward_frames(reader.until_run_ends().wait_out_outages(), id.to_owned(), self.out.clone(), open);
        self.subscriptions.insert(id.to_owned(), tokio::spawn(forwarding));
        Ok(())
    }

    fn unsubscribe(&mut self, id: &str) -> Result<String, Problem> {
        match self.subscriptions.remove(id) {
            Some(subscription) => {
                subscription.abort();
                Ok(signal("end", Some(id)))
            }
            None => Err(bad(format!("there is no subscription {id}"))),
        }
    }

    async fn write(&mut self, id: &str, incoming: &ClientMessage) -> Result<String, Problem> {
        let target = match (&incoming.run, &incoming.thread) {
            (Some(run), None) => Target::Run(self.run(run)?),
            (None, Some(thread)) => {
                ids::check("thread", thread)?;
                Target::Thread(ThreadKey { tenant: self.tenant.clone(), id: thread.as_str().into() })
            }
            _ => return Err(bad("`write` needs a `run` or a `thread`, not both")),
        };
        let stamp = match (&incoming.producer, incoming.seq) {
            (Some(producer), Some(index)) => {
                ids::check("producer", producer)?;
                Some(Stamp { producer: producer.as_str().into(), epoch: incoming.epoch, index })
            }
            (Some(_), None) => return Err(bad("`producer` needs `seq`: the index of the first frame")),
            (None, _) => None,
        };
        let dialect = incoming.dialect(&Dialect::READABLE)?;
        let frames = incoming.frames();
        let append = Append {
            target: target.clone(),
            thread: None,
            dialect,
            stamp,
            frames,
            end: incoming.end,
            check: check_mode(incoming.strict),
            whole: incoming.whole.unwrap_or_default(),
            parallel: false,
        };
        let appended =
            match outage::append(&*self.state.log, &self.state.shutdown, self.state.config.outage, append)
                .await
            {
                Ok(appended) => appended,
                Err(error) if outage::is_outage(&error) => {
                    return Err(Problem::from(error).with("accepted", 0).with("duplicates", 0));
                }
                Err(error) => return Err(error.into()),
            };
        self.written_targets.add(&target, appended.last_seq).await;
        match appended.fault.clone() {
            None => Ok(acknowledgement(id, &appended)),
            Some(fault) => Err(Problem::from(fault)
                .with("accepted", appended.accepted)
                .with("duplicates", appended.duplicates)
                .with("last_seq", appended.last_seq)),
        }
    }

    async fn answer(&mut self, id: &str, incoming: ClientMessage) -> Result<String, Problem> {
        let ClientMessage {
            run: Some(run), interaction: Some(interaction), decision, values, reason, ..
        } = incoming
        else {
            return Err(bad("`answer` needs a `run` and an `interaction`"));
        };
        let answer = PostedAnswer { decision, values, reason }.to(&interaction)?;
        let (interaction, answered) = interactions::answer(&self.state, &self.run(&run)?, answer).await?;
        let interaction = serde_json::to_string(&InteractionView::from(interaction)).unwrap_or_default();
        let (accepted, duplicates) = if answered.new { (1, 0) } else { (0, 1) };
        Ok(format!(
            r#"{{"op":"ack","id":{id},"accepted":{accepted},"duplicates":{duplicates},"last_seq":{},"status":"{}","interaction":{interaction}}}"#,
            answered.run.last_seq,
            answered.run.status.as_str()
        ))
    }

    /// Handles an answer in EasyFlow's format (§12 of its document).
    async fn answer_form(&mut self, text: &str) -> bool {
        match BodyFields::of_message(text) {
            Ok(fields) => self.send(easyflow::answer_message(&self.state, &self.tenant, fields).await).await,
            Err(problem) => self.send(error(None, problem)).await,
        }
    }

    async fn cancel(&mut self, id: &str, incoming: &ClientMessage) -> Result<String, Problem> {
        let Some(run) = &incoming.run else { return Err(bad("`cancel` needs a `run`")) };
        if incoming.reason.as_deref().is_some_and(|reason| reason.len() > limits::REASON_BYTES) {
            let detail = format!("`reason` has more than {} bytes", limits::REASON_BYTES);
            return Err(Problem::new(ErrorCode::TooLarge, detail).with("field", "reason"));
        }
        let cancel = Cancel { reason: incoming.reason.clone(), by: None };
        let Cancelled { run, new } = self.state.log.cancel(&self.run(run)?, cancel).await?;
        let accepted = u8::from(new);
        Ok(format!(
            r#"{{"op":"ack","id":{id},"accepted":{accepted},"duplicates":0,"last_seq":{},"status":"{}"}}"#,
            run.last_seq,
            run.status.as_str()
        ))
    }

    async fn retry(&mut self, id: &str, incoming: ClientMessage) -> Result<String, Problem> {
        let Some(run) = &incoming.run else { return Err(bad("`retry` needs a `run`")) };
        let created = retry_run(&self.state, &self.run(run)?, incoming.run_id).await?;
        let (accepted, duplicates) = if created.new { (1, 0) } else { (0, 1) };
        let (run, status) = (Value::from(created.value.run_id), created.value.status.as_str());
        let last_seq = created.value.last_seq;
        Ok(format!(
            r#"{{"op":"ack","id":{id},"accepted":{accepted},"duplicates":{duplicates},"last_seq":{last_seq},"status":"{status}","run":{run}}}"#
        ))
    }

    fn run(&self, id: &str) -> Result<RunKey, Problem> {
        ids::check("run", id)?;
        Ok(RunKey { tenant: self.tenant.clone(), id: id.into() })
    }
}

/// Sends the frames of a reader as messages.
async fn forward_frames(mut reader: FeedReader, id: String, out: Outbox, _open: OpenReader) {
    loop {
        let next = match reader.next().await {
            Ok(next) => next,
            Err(problem) => {
                out.send(error(Some(&id), problem.into())).await;
                return;
            }
        };
        match next {
            Next::Frames { segment, from, to } => {
                for frame in segment.frames(from).take(to - from) {
                    let message = |frame: SegmentFrame<'_>| {
                        let mut text = format!(r#"{{"op":"frame","id":{id},"#).into_bytes();
                        text.extend_from_slice(&segment.with_cursor(frame)[1..]);
                        String::from_utf8(text)
                            .unwrap_or_else(|text| String::from_utf8_lossy(text.as_bytes()).into_owned())
                    };
                    if !out.send_frame(&segment, frame, message).await {
                        return;
                    }
                }
            }
            Next::CaughtUp => {
                let text = match reader.start_to_announce() {
                    Some(at) => format!(r#"{{"op":"caught_up","id":{id},"cursor":"{at}"}}"#),
                    None => signal("caught_up", Some(&id)),
                };
                if !out.send(text).await {
                    return;
                }
            }
            Next::Ended => {
                out.send(signal("end", Some(&id))).await;
                return;
            }
        }
    }
}
