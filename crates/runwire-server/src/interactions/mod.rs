//! Interactions: validates the answers to a run's questions to people, and passes them to the log.
//!
//! An answer is validated here (`check`, [`schema`]); the log decides which of several answers wins. An open interaction
//! never changes, so there is no race between the two.

mod check;
mod cost;
mod pattern;
pub mod schema;

use runwire_log::{Answer, Answered, Interaction, LogError, RunKey};
use runwire_model::ErrorCode;

pub(crate) use check::{decisions, unreadable};
pub use schema::{AnswerSchema, SchemaViolation, UnusableSchema};

use crate::problem::Problem;
use crate::{AppState, limits};

/// Validates an answer and writes it to the log.
pub(crate) async fn answer(
    state: &AppState,
    run: &RunKey,
    answer: Answer,
) -> Result<(Interaction, Answered), Problem> {
    let mut interaction = check(state, run, &answer).await?;
    let answered = state.log.answer(run, answer).await?;
    interaction.answer = Some(answered.answer.clone());
    Ok((interaction, answered))
}

/// Answers several interactions of a run in one record; if one answer is invalid, none is written.
pub(crate) async fn answer_all(
    state: &AppState,
    run: &RunKey,
    answers: Vec<Answer>,
) -> Result<Vec<Answered>, Problem> {
    for answer in &answers {
        check(state, run, answer).await?;
    }
    Ok(state.log.answer_all(run, answers).await?)
}

/// Validates an answer and returns its interaction.
async fn check(state: &AppState, run: &RunKey, answer: &Answer) -> Result<Interaction, Problem> {
    check_size(answer)?;
    let interaction = find(state, run, &answer.interaction_id).await?;
    // A settled interaction is not validated: the log returns the answer that won.
    if interaction.answer.is_none() {
        check::fits(&state.checks, &interaction.question, answer).await?;
    }
    Ok(interaction)
}

/// Returns the interaction of an answer; `run_closed` takes precedence over `interaction_unknown`.
async fn find(state: &AppState, run: &RunKey, interaction: &str) -> Result<Interaction, Problem> {
    match state.log.interaction(run, interaction).await {
        Err(unknown @ (LogError::InteractionUnknown { .. } | LogError::RunTrimmed { .. })) => {
            let info = state.log.run(run).await?;
            match info.status.is_closed() {
                true => {
                    Err(LogError::RunClosed { run: info.run_id, status: info.status, answer: None }.into())
                }
                false => Err(unknown.into()),
            }
        }
        found => Ok(found?),
    }
}

fn check_size(answer: &Answer) -> Result<(), Problem> {
    let reason = answer.reason.as_deref().map_or(0, str::len);
    let values = answer.values.as_ref().map_or(0, |values| values.text().len());
    let sizes = [("reason", reason, limits::REASON_BYTES), ("values", values, limits::ANSWER_BYTES)];
    for (name, bytes, limit) in sizes {
        if bytes > limit {
            let detail = format!("`{name}` has {bytes} bytes, and {limit} are allowed");
            return Err(Problem::new(ErrorCode::TooLarge, detail).with("field", name));
        }
    }
    Ok(())
}
