//! `GET /v1/ws`: several runs over one socket, read and written.
//!
//! Messages are taken in their order, so that writes keep theirs; each subscription is a reader of its own.

mod message;
mod producing;

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use http::HeaderMap;
use runwire_log::{Append, Cancel, Cancelled, ReadFormat, RunKey, Stamp, Target, ThreadKey};
use runwire_model::dialect::Dialect;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::auth::tenant_of;
use crate::facade::easyflow;
use crate::facade::start::Fields;
use crate::feed::{Next, Reader, Shape};
use crate::listener::Place;
use crate::metrics::{Framing, OpenReader};
use crate::problem::Problem;
use crate::read::{Answer, Ask};
use crate::resources::agents::again;
use crate::resources::interactions::{AnswerRequest, InteractionView};
use crate::socket::{self, Outbox};
use crate::write::check_of;
use crate::{Wire, ids, interactions, limits, outage};
use message::{Incoming, OPS, acknowledgement, bad, error, signal};
use producing::Producing;

pub(crate) fn routes() -> Router<Arc<Wire>> {
    Router::new().route("/v1/ws", get(upgrade))
}

async fn upgrade(
    State(wire): State<Arc<Wire>>,
    Extension(place): Extension<Place>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let (tenant, of) = (tenant_of(&headers), wire.clone());
    let session = |out: Outbox| {
        let producing = Producing::new(&of, out.clone());
        Session { wire: of, tenant, out, subscriptions: HashMap::new(), producing }
    };
    socket::open(&wire, place, &headers, upgrade, session)
}

struct Session {
    wire: Arc<Wire>,
    tenant: Arc<str>,
    out: Outbox,
    subscriptions: HashMap<String, JoinHandle<()>>,
    producing: Producing,
}

impl socket::Session for Session {
    async fn take(&mut self, text: &str) -> bool {
        let incoming = match Incoming::read(text) {
            Ok(Some(incoming)) => incoming,
            Ok(None) => return self.answer_form(text).await,
            Err(wrong) => {
                let (id, problem) = *wrong;
                return self.say(error(id.as_deref(), problem)).await;
            }
        };
        if incoming.op == "ping" {
            self.renew_leases().await;
            return self.say(signal("pong", incoming.id().ok())).await;
        }
        let id = match incoming.id() {
            Ok(id) => id.to_owned(),
            Err(problem) => return self.say(error(None, problem)).await,
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
            Ok(Some(answer)) => self.say(answer).await,
            Err(problem) => self.say(error(Some(&id), problem)).await,
        }
    }

    async fn refuse(&mut self, problem: Problem) -> bool {
        self.say(error(None, problem)).await
    }

    async fn note_ping(&mut self) {
        self.renew_leases().await;
    }

    fn close(&mut self) {
        self.subscriptions.drain().for_each(|(_, subscription)| subscription.abort());
    }
}

impl Session {
    /// Queues a message; false means that the socket is gone.
    async fn say(&self, text: String) -> bool {
        self.out.send(Message::Text(text.into())).await.is_ok()
    }

    /// Shows that producers are alive; a store that is away keeps nobody from hearing that the socket is.
    async fn renew_leases(&mut self) {
        let _ = tokio::time::timeout(limits::RENEWAL_TIME, self.producing.renew_leases()).await;
    }

    async fn subscribe(&mut self, id: &str, incoming: &Incoming) -> Result<(), Problem> {
        self.subscriptions.retain(|_, task| !task.is_finished());
        if self.subscriptions.contains_key(id) {
            return Err(bad(format!("there is a subscription {id} already")));
        }
        if self.subscriptions.len() >= limits::SUBSCRIPTIONS {
            let detail = format!("a socket has at most {} subscriptions", limits::SUBSCRIPTIONS);
            return Err(Problem::new("too_many_subscriptions", detail));
        }
        let dialect = incoming.dialect(&Dialect::ALL)?.unwrap_or(Dialect::Runwire);
        let form = ReadFormat::with(dialect, incoming.options()?);
        let after = incoming.after()?;
        let ask = Ask {
            answer: Answer::Stream(Shape::NdjsonWithCursors),
            form: (!incoming.raw).then_some(form),
            after,
            follow: true,
            limit: None,
            compact: incoming.compact && !incoming.raw,
            attach: incoming.attach()? && !incoming.raw && after.is_none(),
        };
        let reader = match (&incoming.run, &incoming.thread) {
            (Some(run), None) => ask.check_attach()?.read_run(&self.wire, &self.run(run)?).await?,
            (None, Some(thread)) => {
                ids::check("thread", thread)?;
                let key = ThreadKey { tenant: self.tenant.clone(), id: thread.as_str().into() };
                Some(ask.read_thread(&self.wire, &key).await?)
            }
            _ => return Err(bad("`subscribe` needs a `run` or a `thread`, not both")),
        };
        let Some(reader) = reader else {
            let _ = self.say(signal("end", Some(id))).await;
            return Ok(());
        };
        let open = self.wire.metrics.reader(Framing::WebSocket);
        let pump = pump(reader.outlive_responses().patient(), id.to_owned(), self.out.clone(), open);
        self.subscriptions.insert(id.to_owned(), tokio::spawn(pump));
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

    async fn write(&mut self, id: &str, incoming: &Incoming) -> Result<String, Problem> {
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
            check: check_of(incoming.strict),
            whole: incoming.whole.unwrap_or_default(),
        };
        let appended = match outage::append(&self.wire, append).await {
            Ok(appended) => appended,
            Err(error) if outage::is_outage(&error) => {
                return Err(Problem::from(error).with("accepted", 0).with("duplicates", 0));
            }
            Err(error) => return Err(error.into()),
        };
        self.producing.wrote(&target, appended.last_seq).await;
        match appended.fault.clone() {
            None => Ok(acknowledgement(id, &appended)),
            Some(fault) => Err(Problem::from(fault)
                .with("accepted", appended.accepted)
                .with("duplicates", appended.duplicates)
                .with("last_seq", appended.last_seq)),
        }
    }

    async fn answer(&mut self, id: &str, incoming: Incoming) -> Result<String, Problem> {
        let Incoming { run: Some(run), interaction: Some(interaction), decision, values, reason, .. } =
            incoming
        else {
            return Err(bad("`answer` needs a `run` and an `interaction`"));
        };
        let answer = AnswerRequest { decision, values, reason }.to(&interaction)?;
        let (asked, answered) = interactions::answer(&self.wire, &self.run(&run)?, answer).await?;
        let asked = serde_json::to_string(&InteractionView::from(asked)).unwrap_or_default();
        let (accepted, duplicates) = if answered.new { (1, 0) } else { (0, 1) };
        Ok(format!(
            r#"{{"op":"ack","id":{id},"accepted":{accepted},"duplicates":{duplicates},"last_seq":{},"status":"{}","interaction":{asked}}}"#,
            answered.run.last_seq,
            answered.run.status.as_str()
        ))
    }

    /// Takes an answer in the form that EasyFlow's document has for it (§12).
    async fn answer_form(&mut self, text: &str) -> bool {
        match Fields::of_message(text) {
            Ok(fields) => self.say(easyflow::answer_message(&self.wire, &self.tenant, fields).await).await,
            Err(problem) => self.say(error(None, problem)).await,
        }
    }

    async fn cancel(&mut self, id: &str, incoming: &Incoming) -> Result<String, Problem> {
        let Some(run) = &incoming.run else { return Err(bad("`cancel` needs a `run`")) };
        if incoming.reason.as_deref().is_some_and(|reason| reason.len() > limits::REASON_BYTES) {
            let detail = format!("`reason` has more than {} bytes", limits::REASON_BYTES);
            return Err(Problem::new("too_large", detail).with("field", "reason"));
        }
        let cancel = Cancel { reason: incoming.reason.clone(), by: None };
        let Cancelled { run, new } = self.wire.log.cancel(&self.run(run)?, cancel).await?;
        let accepted = u8::from(new);
        Ok(format!(
            r#"{{"op":"ack","id":{id},"accepted":{accepted},"duplicates":0,"last_seq":{},"status":"{}"}}"#,
            run.last_seq,
            run.status.as_str()
        ))
    }

    async fn retry(&mut self, id: &str, incoming: Incoming) -> Result<String, Problem> {
        let Some(run) = &incoming.run else { return Err(bad("`retry` needs a `run`")) };
        let created = again(&self.wire, &self.run(run)?, incoming.run_id).await?;
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

/// Sends everything that a reader gets.
async fn pump(mut reader: Reader, id: String, out: Outbox, _open: OpenReader) {
    loop {
        let next = match reader.next().await {
            Ok(next) => next,
            Err(problem) => {
                let _ = out.send(Message::Text(error(Some(&id), problem.into()).into())).await;
                return;
            }
        };
        match next {
            Next::Frames { segment, from, to } => {
                for frame in segment.frames(from).take(to - from) {
                    let mut text = format!(r#"{{"op":"frame","id":{id},"#).into_bytes();
                    text.extend_from_slice(&segment.with_cursor(frame)[1..]);
                    let text = String::from_utf8_lossy(&text).into_owned();
                    if out.send(Message::Text(text.into())).await.is_err() {
                        return;
                    }
                }
            }
            Next::CaughtUp => {
                let told = match reader.start_to_tell() {
                    Some(at) => format!(r#"{{"op":"caught_up","id":{id},"cursor":"{at}"}}"#),
                    None => signal("caught_up", Some(&id)),
                };
                if out.send(Message::Text(told.into())).await.is_err() {
                    return;
                }
            }
            Next::Ended => {
                let _ = out.send(Message::Text(signal("end", Some(&id)).into())).await;
                return;
            }
        }
    }
}
