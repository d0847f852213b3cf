//! `GET /ag-ui/{agent}/{thread}`: the official AG-UI client attaches to whatever the thread's run is doing.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::request::Parts;
use runwire_log::{Form, RunKey, RunQuery};
use runwire_model::dialect::{Dialect, Fidelity};

use crate::Wire;
use crate::feed::Shape;
use crate::ids::ThreadAt;
use crate::problem::Problem;
use crate::read::{Answer, Ask, answer, last_event_id};

const FORM: Form = Form { dialect: Dialect::AgUi, fidelity: Fidelity::Native };

pub(super) fn routes() -> Router<Arc<Wire>> {
    Router::new().route("/ag-ui/{agent}/{thread}", get(attach))
}

/// Tells the present of the thread's newest run, then follows it to its end or its next question.
async fn attach(
    State(wire): State<Arc<Wire>>,
    ThreadAt(thread): ThreadAt,
    parts: Parts,
) -> Result<Response, Problem> {
    wire.log.thread(&thread).await?;
    let (tenant, id) = (thread.tenant.to_string(), thread.id.to_string());
    let query = RunQuery { tenant, thread: Some(id), limit: 1, ..RunQuery::default() };
    let newest = wire.log.runs(query).await?.pop();
    let Some(run) = newest else {
        let detail = format!("the thread `{}` has no run to attach to", thread.id);
        return Err(Problem::new("run_unknown", detail).with("thread_id", &*thread.id));
    };
    let after = last_event_id(&parts.headers)?;
    let ask = Ask {
        answer: Answer::Stream(Shape::Sse),
        form: Some(FORM),
        after,
        follow: true,
        limit: None,
        compact: false,
        attach: after.is_none(),
    };
    let run = RunKey { tenant: thread.tenant, id: run.run_id.into() };
    let reader = ask.read_run(&wire, &run).await?;
    answer(wire, ask, reader).await
}
