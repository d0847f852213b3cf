//! Whether an answer fits its question.

use std::sync::Arc;

use runwire_log::Answer;
use runwire_model::Json;
use runwire_model::event::{Decision, InteractionKind, InteractionRequested};
use runwire_model::json::ValueError;
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
        (_, Some(values), _) => values.to_value().map_err(|error| unreadable(&error))?,
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
            Err(wrong_values(detail, errors))
        }
    }
}

fn wrong_values(detail: String, errors: &[Wrong]) -> Problem {
    let errors = serde_json::to_value(errors).unwrap_or_default();
    Problem::new("invalid_answer", detail).with("errors", errors)
}

/// Makes the problem of values that cannot be checked, such as a number beyond `f64`.
pub(crate) fn unreadable(error: &ValueError) -> Problem {
    let message = format!("cannot be checked: {}", error.problem);
    let wrong = Wrong { pointer: error.pointer.clone(), keyword: "type".into(), message };
    wrong_values(format!("a value of the answer cannot be checked; {error}"), &[wrong])
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
            return Err(wrong_values(detail, &[wrong]));
        }
        None if schema.is_some_and(asks_for_approved) => {
            object.insert("approved".into(), approved.into());
        }
        _ => {}
    }
    Ok(values)
}

/// Tells whether a form has a field `approved`. A schema that cannot be read is refused later.
fn asks_for_approved(schema: &Json) -> bool {
    schema.to_value().is_ok_and(|schema| schema.pointer("/properties/approved").is_some())
}

/// Checks values on a thread of its own: a schema may take a while, and go deep.
async fn check(checks: &Arc<Semaphore>, schema: Json, values: Value) -> Result<Vec<Wrong>, Unusable> {
    if schema.text().len() > limits::ANSWER_BYTES {
        return Err(Unusable::TooLarge { what: "bytes", limit: limits::ANSWER_BYTES });
    }
    let found = with_permit(checks, move || {
        let document = schema.to_value().map_err(|error| Unusable::Invalid(error.to_string()));
        document.and_then(Schema::compile).and_then(|schema| schema.check(&values))
    });
    // It takes too long, or its thread is gone.
    found.await.unwrap_or(Err(Unusable::TooCostly))
}

/// Runs work on a thread of its own; none where it has not ended in time.
///
/// The permit is held until the work has ended, also where nobody waits for it any longer.
async fn with_permit<T: Send + 'static>(
    checks: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let permit = checks.clone().acquire_owned().await.ok();
    let (reply, done) = oneshot::channel();
    let work = move || {
        let result = work();
        drop(permit);
        // The request may be gone.
        let _ = reply.send(result);
    };
    let thread =
        std::thread::Builder::new().name("answer-check".into()).stack_size(limits::CHECK_STACK_BYTES);
    thread.spawn(work).ok()?;
    tokio::time::timeout(limits::CHECK_TIME, done).await.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_permit_comes_back_when_its_work_has_ended() {
        let checks = Arc::new(Semaphore::new(1));
        let (begun, has_begun) = oneshot::channel();
        let (finish, may_finish) = mpsc::channel::<()>();
        let waiting = tokio::spawn({
            let checks = checks.clone();
            async move {
                let work = move || {
                    let _ = begun.send(());
                    may_finish.recv().is_ok()
                };
                with_permit(&checks, work).await
            }
        });
        has_begun.await.unwrap();
        // The request gives up, and the work goes on.
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(checks.available_permits(), 0);
        finish.send(()).unwrap();
        drop(checks.acquire().await.unwrap());
        assert_eq!(with_permit(&checks, || 7).await, Some(7));
    }

    #[tokio::test]
    async fn work_that_panics_gives_its_permit_back() {
        let checks = Arc::new(Semaphore::new(1));
        assert_eq!(with_permit(&checks, || panic!("broken")).await, None::<()>);
        assert_eq!(with_permit(&checks, || 7).await, Some(7));
    }
}
