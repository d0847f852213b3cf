//! Whether an answer fits its question.

use std::sync::Arc;

use runwire_log::Answer;
use runwire_model::Json;
use runwire_model::event::{Decision, InteractionKind, InteractionRequested};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use super::schema::{Schema, Unusable, Wrong};
use crate::limits;
use crate::problem::Problem;

/// Tells what may become of a question when a person answers it.
pub(crate) fn decisions(kind: InteractionKind) -> &'static [Decision] {
    match kind {
        InteractionKind::Form => &[Decision::Submitted, Decision::Cancelled],
        InteractionKind::Approval => &[Decision::Approved, Decision::Rejected, Decision::Cancelled],
    }
}

/// Refuses an answer that does not fit its question, and says what is wrong with it.
pub(super) async fn fits(
    checks: &Arc<Semaphore>,
    question: &InteractionRequested,
    answer: &Answer,
) -> Result<(), Problem> {
    let allowed = decisions(question.kind);
    if !allowed.contains(&answer.decision) {
        return Err(wrong_decision(question.kind, answer.decision.as_str()));
    }
    let values = match (answer.decision, &answer.values, &question.schema) {
        (Decision::Cancelled, Some(_), _) => {
            return Err(wrong_field("values", "a question that is withdrawn has no `values`"));
        }
        (Decision::Submitted, None, Some(_)) => {
            return Err(wrong_field("values", "the form is submitted without `values`"));
        }
        (_, Some(values), _) => values.to_value(),
        (_, None, _) => return Ok(()),
    };
    let values = match question.kind {
        InteractionKind::Form => values,
        InteractionKind::Approval => with_decision(values, answer.decision, question.schema.as_ref())?,
    };
    let Some(schema) = &question.schema else { return Ok(()) };
    let errors = check(checks, schema.clone(), values).await.map_err(|unusable| {
        let detail = format!("the schema of `{}` cannot be used: {unusable}", question.interaction_id);
        Problem::new("schema_unusable", detail)
    })?;
    match errors.as_slice() {
        [] => Ok(()),
        errors => {
            let fields =
                if errors.len() == 1 { "1 field".to_owned() } else { format!("{} fields", errors.len()) };
            let first = &errors[0];
            let at = if first.pointer.is_empty() { "the values" } else { &first.pointer };
            let detail = format!("{fields} of the answer cannot be taken; {at}: {}", first.message);
            let errors = serde_json::to_value(errors).unwrap_or_default();
            Err(Problem::new("invalid_answer", detail).with("errors", errors))
        }
    }
}

/// Says which decisions a question can have.
pub(crate) fn wrong_decision(kind: InteractionKind, said: &str) -> Problem {
    let expected: Vec<_> = decisions(kind).iter().map(|decision| decision.as_str()).collect();
    let what = match kind {
        InteractionKind::Form => "a form",
        InteractionKind::Approval => "an approval",
    };
    let detail = format!("`decision` of {what} is one of {}, not `{said}`", expected.join(", "));
    Problem::new("invalid_answer", detail).with("field", "decision").with("expected", expected)
}

fn wrong_field(field: &str, detail: &str) -> Problem {
    Problem::new("invalid_answer", detail).with("field", field)
}

/// In the dialects whose approvals are forms, the decision is the form's `approved`: it may be left out, and may
/// not say the opposite.
fn with_decision(mut values: Value, decision: Decision, schema: Option<&Json>) -> Result<Value, Problem> {
    let approved = decision == Decision::Approved;
    let Value::Object(object) = &mut values else { return Ok(values) };
    match object.get("approved") {
        Some(Value::Bool(said)) if *said != approved => {
            let message = format!("is {said}, and the decision is {}", decision.as_str());
            let wrong = Wrong { pointer: "/approved".into(), keyword: "const".into(), message };
            let detail = format!("/approved: {}", wrong.message);
            let errors = serde_json::to_value([wrong]).unwrap_or_default();
            return Err(Problem::new("invalid_answer", detail).with("errors", errors));
        }
        None if schema.is_some_and(|schema| schema.to_value().pointer("/properties/approved").is_some()) => {
            object.insert("approved".into(), approved.into());
        }
        _ => {}
    }
    Ok(values)
}

/// Checks values on a thread of its own: a schema may take a while, and go deep.
async fn check(checks: &Arc<Semaphore>, schema: Json, values: Value) -> Result<Vec<Wrong>, Unusable> {
    if schema.text().len() > limits::ANSWER_BYTES {
        return Err(Unusable::TooLarge { what: "bytes", limit: limits::ANSWER_BYTES });
    }
    let permit = checks.clone().acquire_owned().await.ok();
    let (reply, checked) = oneshot::channel();
    let work = move || {
        let _permit = permit;
        let found = Schema::compile(schema.to_value()).and_then(|schema| schema.check(&values));
        // Whoever asked may have gone.
        let _ = reply.send(found);
    };
    let thread =
        std::thread::Builder::new().name("answer-check".into()).stack_size(limits::CHECK_STACK_BYTES);
    if thread.spawn(work).is_err() {
        return Err(Unusable::TooCostly);
    }
    match tokio::time::timeout(limits::CHECK_TIME, checked).await {
        Ok(Ok(found)) => found,
        // It takes too long, or the thread is gone.
        Ok(Err(_)) | Err(_) => Err(Unusable::TooCostly),
    }
}
