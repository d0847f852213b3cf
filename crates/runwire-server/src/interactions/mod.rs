//! Questions to people, and their answers.
//!
//! Whether an answer fits its question is found out here (`check`, [`schema`]); which of several answers wins, the
//! log decides. A question never changes once it is asked, so nothing can come between the two.

mod check;
mod meter;
mod pattern;
pub mod schema;

use runwire_log::{Answer, Answered, Interaction, LogError, RunKey};

pub(crate) use check::{decisions, unreadable};
pub use schema::{Schema, Unusable, Wrong};

use crate::problem::Problem;
use crate::{AppState, limits};

/// Answers a question, whichever door the answer came through.
pub(crate) async fn answer(
    state: &AppState,
    run: &RunKey,
    answer: Answer,
) -> Result<(Interaction, Answered), Problem> {
    let mut asked = check(state, run, &answer).await?;
    let answered = state.log.answer(run, answer).await?;
    asked.answer = Some(answered.answer.clone());
    Ok((asked, answered))
}

/// Answers several questions of a run in one record; where one answer does not fit, none is given.
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

/// Finds the question of an answer, and refuses the answer if it does not fit.
async fn check(state: &AppState, run: &RunKey, answer: &Answer) -> Result<Interaction, Problem> {
    check_size(answer)?;
    let asked = find(state, run, &answer.interaction_id).await?;
    // One that is settled takes no answer, but tells the one that it has.
    if asked.answer.is_none() {
        check::fits(&state.checks, &asked.question, answer).await?;
    }
    Ok(asked)
}

/// Finds the question that is answered. That a run has ended comes before what it asked.
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
    for (name, bytes, most) in sizes {
        if bytes > most {
            let detail = format!("`{name}` has {bytes} bytes, and {most} are allowed");
            return Err(Problem::new("too_large", detail).with("field", name));
        }
    }
    Ok(())
}
