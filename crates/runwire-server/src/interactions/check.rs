//! Validates an answer: its decision, and its values against the interaction's schema.

use std::sync::Arc;

use runwire_log::Answer;
use runwire_model::event::{Decision, InteractionKind, InteractionRequested};
use runwire_model::json::ValueError;
use runwire_model::{ErrorCode, Json};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use super::schema::{AnswerSchema, SchemaViolation, UnusableSchema};
use crate::limits;
use crate::problem::Problem;

/// Returns the decisions that a person can make.
pub(crate) fn decisions(kind: InteractionKind) -> &'static [Decision] {
    match kind {
        InteractionKind::Form => &[Decision::Submitted, Decision::Cancelled],
        InteractionKind::Approval => &[Decision::Approved, Decision::Rejected, Decision::Cancelled],
    }
}

/// Validates an answer; the problem lists what is wrong.
pub(super) async fn fits(
    checks: &Arc<Semaphore>,
    interaction: &InteractionRequested,
    answer: &Answer,
) -> Result<(), Problem> {
    let allowed = decisions(interaction.kind);
    if !allowed.contains(&answer.decision) {
        return Err(wrong_decision(interaction.kind, answer.decision.as_str()));
    }
    let values = match (answer.decision, &answer.values, &interaction.schema) {
        (Decision::Cancelled, Some(_), _) => {
            return Err(wrong_field("values", "a question that is withdrawn has no `values`"));
        }
        (Decision::Submitted, None, Some(_)) => {
            return Err(wrong_field("values", "the form is submitted without `values`"));
        }
        (_, Some(values), _) => values.to_value().map_err(|error| unreadable(&error))?,
        (_, None, _) => return Ok(()),
    };
    let values = match interaction.kind {
        InteractionKind::Form => values,
        InteractionKind::Approval => with_decision(values, answer.decision, interaction.schema.as_ref())?,
    };
    let Some(schema) = &interaction.schema else { return Ok(()) };
    let errors = check(checks, schema.clone(), values).await.map_err(|unusable| {
        let detail = format!("the schema of `{}` cannot be used: {unusable}", interaction.interaction_id);
        Problem::new(ErrorCode::SchemaUnusable, detail)
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

fn wrong_values(detail: String, errors: &[SchemaViolation]) -> Problem {
    let errors = serde_json::to_value(errors).unwrap_or_default();
    Problem::new(ErrorCode::InvalidAnswer, detail).with("errors", errors)
}

/// Creates the problem of values that cannot be validated, such as a number beyond `f64`.
pub(crate) fn unreadable(error: &ValueError) -> Problem {
    let message = format!("cannot be checked: {}", error.problem);
    let violation = SchemaViolation { pointer: error.pointer.clone(), keyword: "type".into(), message };
    wrong_values(format!("a value of the answer cannot be checked; {error}"), &[violation])
}

/// Creates the problem of a decision that the interaction does not allow.
pub(crate) fn wrong_decision(kind: InteractionKind, word: &str) -> Problem {
    let expected: Vec<_> = decisions(kind).iter().map(|decision| decision.as_str()).collect();
    let what = match kind {
        InteractionKind::Form => "a form",
        InteractionKind::Approval => "an approval",
    };
    let detail = format!("`decision` of {what} is one of {}, not `{word}`", expected.join(", "));
    Problem::new(ErrorCode::InvalidAnswer, detail).with("field", "decision").with("expected", expected)
}

fn wrong_field(field: &str, detail: &str) -> Problem {
    Problem::new(ErrorCode::InvalidAnswer, detail).with("field", field)
}

/// Adds the decision of an approval as the form's field `approved`, which some dialects have; fails if the values
/// contradict the decision.
fn with_decision(mut values: Value, decision: Decision, schema: Option<&Json>) -> Result<Value, Problem> {
    let approved = decision == Decision::Approved;
    let Value::Object(object) = &mut values else { return Ok(values) };
    match object.get("approved") {
        Some(Value::Bool(word)) if *word != approved => {
            let message = format!("is {word}, and the decision is {}", decision.as_str());
            let violation = SchemaViolation { pointer: "/approved".into(), keyword: "const".into(), message };
            let detail = format!("/approved: {}", violation.message);
            return Err(wrong_values(detail, &[violation]));
        }
        None if schema.is_some_and(asks_for_approved) => {
            object.insert("approved".into(), approved.into());
        }
        _ => {}
    }
    Ok(values)
}

/// Returns true if a form has a field `approved`. An unreadable schema is refused later.
fn asks_for_approved(schema: &Json) -> bool {
    schema.to_value().is_ok_and(|schema| schema.pointer("/properties/approved").is_some())
}

/// Validates values on a thread of its own: it may take long, and recurse deeply.
async fn check(
    checks: &Arc<Semaphore>,
    schema: Json,
    values: Value,
) -> Result<Vec<SchemaViolation>, UnusableSchema> {
    if schema.text().len() > limits::ANSWER_BYTES {
        return Err(UnusableSchema::TooLarge { what: "bytes", limit: limits::ANSWER_BYTES });
    }
    let found = with_permit(checks, move || {
        let document = schema.to_value().map_err(|error| UnusableSchema::Invalid(error.to_string()));
        document.and_then(AnswerSchema::compile).and_then(|schema| schema.check(&values))
    });
    // It timed out, or its thread panicked.
    found.await.unwrap_or(Err(UnusableSchema::TooCostly))
}

/// Runs work on a thread of its own, limited by a semaphore; none after a timeout.
///
/// The permit is held until the work has ended, even after a timeout.
async fn with_permit<T: Send + 'static>(
    checks: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let permit = checks.clone().acquire_owned().await.ok();
    let (reply, done) = oneshot::channel();
    let work = move || {
        let result = work();
        drop(permit);
        // The request may have been dropped.
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
    async fn a_permit_is_released_when_its_work_has_ended() {
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
    async fn work_that_panics_releases_its_permit() {
        let checks = Arc::new(Semaphore::new(1));
        assert_eq!(with_permit(&checks, || panic!("broken")).await, None::<()>);
        assert_eq!(with_permit(&checks, || 7).await, Some(7));
    }
}
