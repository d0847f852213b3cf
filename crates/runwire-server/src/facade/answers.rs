//! Converts the answers of façade clients: values, with `approved` among them.

use runwire_log::Answer;
use runwire_model::event::{Decision, InteractionKind};
use runwire_model::{ErrorCode, Json};
use serde_json::Value;

use crate::interactions::unreadable;
use crate::problem::Problem;

/// Creates an answer from values; `approved` decides an approval.
pub(super) fn answer_of(kind: InteractionKind, id: &str, values: Option<Json>) -> Result<Answer, Problem> {
    let (decision, values) = match kind {
        InteractionKind::Form => (Decision::Submitted, values),
        InteractionKind::Approval => {
            let parsed =
                values.as_ref().map(Json::to_value).transpose().map_err(|error| unreadable(&error))?;
            let parsed = parsed.unwrap_or_default();
            let approved = parsed.get("approved").and_then(Value::as_bool).or(parsed.as_bool());
            let Some(approved) = approved else {
                let detail = format!("`{id}` is an approval: `approved` must be `true` or `false`");
                return Err(Problem::new(ErrorCode::InvalidAnswer, detail).with("field", "approved"));
            };
            let decision = if approved { Decision::Approved } else { Decision::Rejected };
            // Values with nothing but the decision are dropped.
            (decision, values.filter(|_| parsed.as_object().is_some_and(|fields| fields.len() > 1)))
        }
    };
    Ok(Answer { interaction_id: id.to_owned(), decision, values, reason: None, by: None })
}

/// Creates the answer of a person who declines to answer.
pub(super) fn withdrawal_of(id: &str) -> Answer {
    let decision = Decision::Cancelled;
    Answer { interaction_id: id.to_owned(), decision, values: None, reason: None, by: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boolean_approved_decides_an_approval() {
        let answer = |text: &str| answer_of(InteractionKind::Approval, "a", Json::parse(text).ok());
        let decided = |text: &str| answer(text).map(|answer| (answer.decision, answer.values.is_some()));
        assert_eq!(decided(r#"{"approved":true}"#).unwrap(), (Decision::Approved, false));
        assert_eq!(decided(r#"{"approved":false,"note":"no"}"#).unwrap(), (Decision::Rejected, true));
        assert_eq!(decided("true").unwrap(), (Decision::Approved, false));
        for wrong in ["{}", r#"{"approved":"yes"}"#, "null"] {
            assert_eq!(decided(wrong).unwrap_err().code(), ErrorCode::InvalidAnswer, "{wrong}");
        }
        let beyond = decided(r#"{"approved":true,"sum":1e999}"#).unwrap_err().into_members();
        assert_eq!(beyond["errors"][0]["pointer"], "/sum");
    }
}
