//! Handles `resume`: the answers to all open interactions of a thread's run.

use runwire_log::{Answer, LogError, RunInfo, RunKey, ThreadKey};
use runwire_model::ErrorCode;

use super::input::{ResumeEntry, ResumeStatus};
use crate::AppState;
use crate::facade::answers::{answer_of, withdrawal_of};
use crate::facade::start_run::{StartAt, newest_run};
use crate::feed::FeedCursor;
use crate::interactions;
use crate::problem::Problem;

/// Answers the open interactions, and returns where the client continues reading.
///
/// The answers are written together or not at all. A retry is idempotent; a different answer fails with the one that
/// won.
pub(super) async fn resume(
    state: &AppState,
    thread: &ThreadKey,
    entries: &[ResumeEntry],
) -> Result<(RunKey, StartAt), Problem> {
    let run = interrupted_run(state, thread, entries).await?;
    let key = RunKey { tenant: thread.tenant.clone(), id: run.run_id.as_str().into() };
    check_covered(&run, entries)?;
    let mut answers = Vec::new();
    for entry in entries {
        let id = &*entry.interrupt_id;
        let Some(interaction) = run.summary.interaction(id) else {
            let (run, interaction) = (run.run_id, id.to_owned());
            return Err(LogError::InteractionUnknown { run, interaction }.into());
        };
        let payload = entry.payload.clone().filter(|payload| !payload.is_null());
        let answer = match entry.status {
            ResumeStatus::Resolved => answer_of(interaction.kind, id, payload)?,
            ResumeStatus::Cancelled => withdrawal_of(id),
        };
        if interaction.is_open() {
            answers.push(answer);
        } else {
            check_settled(state, &run, &key, &answer).await?;
        }
    }
    let answered = match answers.is_empty() {
        true => None,
        false => interactions::answer_all(state, &key, answers).await?.pop(),
    };
    // The client has read up to its interactions. If anything but the answers was written since, it gets a snapshot.
    let has_read_all = newest_interaction_seq(&run, entries) == Some(run.last_seq)
        && answered.is_some_and(|answered| answered.run.last_seq == run.last_seq + 1);
    Ok((
        key,
        if has_read_all { StartAt::Cursor(Some(FeedCursor::after(run.last_seq))) } else { StartAt::Snapshot },
    ))
}

/// Refuses a list that answers an interaction twice, or omits one that the client knows.
///
/// The client knows all interactions that were open when its newest one was requested. Later ones follow in the
/// response.
fn check_covered(run: &RunInfo, entries: &[ResumeEntry]) -> Result<(), Problem> {
    let invalid = |detail: String| Problem::new(ErrorCode::InvalidAnswer, detail).with("field", "resume");
    let count = |id: &str| entries.iter().filter(|entry| entry.interrupt_id == id).count();
    if let Some(twice) = entries.iter().find(|entry| count(&entry.interrupt_id) > 1) {
        return Err(invalid(format!("`resume` answers `{}` more than once", twice.interrupt_id)));
    }
    let newest = newest_interaction_seq(run, entries);
    let open = run.summary.interactions.iter().filter(|interaction| interaction.is_open());
    let missing: Vec<_> = open
        .filter(|interaction| newest.is_none() || interaction.asked_seq <= newest)
        .map(|interaction| &*interaction.interaction_id)
        .filter(|id| count(id) == 0)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let detail = format!("`resume` must answer every question of the list; missing: {}", missing.join(", "));
    Err(invalid(detail).with("missing", missing))
}

/// Returns the record that requested the newest of the answered interactions.
fn newest_interaction_seq(run: &RunInfo, entries: &[ResumeEntry]) -> Option<u64> {
    let interactions = entries.iter().filter_map(|entry| run.summary.interaction(&entry.interrupt_id));
    interactions.filter_map(|interaction| interaction.asked_seq).max()
}

/// Refuses an answer to an interaction that was settled with another one.
async fn check_settled(
    state: &AppState,
    run: &RunInfo,
    key: &RunKey,
    answer: &Answer,
) -> Result<(), Problem> {
    let winner = state.log.interaction(key, &answer.interaction_id).await?.answer;
    let Some(winner) = winner.filter(|winner| !answer.equals(winner)) else { return Ok(()) };
    let (winner, status) = (Box::new(winner), run.status);
    Err(match status.is_closed() {
        true => LogError::RunClosed { run: run.run_id.clone(), status, answer: Some(winner) },
        false => LogError::InteractionClosed { interaction: answer.interaction_id.clone(), answer: winner },
    }
    .into())
}

/// Returns the run of the interactions: an open one, else the newest, whose interactions are settled.
async fn interrupted_run(
    state: &AppState,
    thread: &ThreadKey,
    entries: &[ResumeEntry],
) -> Result<RunInfo, Problem> {
    for id in state.log.thread(thread).await?.open_runs.into_iter().rev() {
        let run = state.log.run(&RunKey { tenant: thread.tenant.clone(), id: id.into() }).await?;
        if entries.iter().any(|entry| run.summary.interaction(&entry.interrupt_id).is_some()) {
            return Ok(run);
        }
    }
    newest_run(state, thread).await
}
