//! `resume`: the answers to everything that a thread's run waits for.

use runwire_log::{Answer, LogError, RunInfo, RunKey, ThreadKey};

use super::input::{ResumeEntry, ResumeStatus};
use crate::Wire;
use crate::facade::answers::{answer_of, withdrawal_of};
use crate::facade::start::{From, newest_run};
use crate::feed::Cursor;
use crate::interactions;
use crate::problem::Problem;

/// Answers what is open, and tells where the client goes on reading.
///
/// The answers are given together, or none of them is. A request that is repeated finds its answers given, which is
/// no obstacle; whoever says something else is told what won.
pub(super) async fn resume(
    wire: &Wire,
    thread: &ThreadKey,
    entries: &[ResumeEntry],
) -> Result<(RunKey, From), Problem> {
    let run = asking_run(wire, thread, entries).await?;
    let key = RunKey { tenant: thread.tenant.clone(), id: run.run_id.as_str().into() };
    check_covered(&run, entries)?;
    let mut answers = Vec::new();
    for entry in entries {
        let id = &*entry.interrupt_id;
        let Some(asked) = run.summary.interaction(id) else {
            let (run, interaction) = (run.run_id, id.to_owned());
            return Err(LogError::InteractionUnknown { run, interaction }.into());
        };
        let payload = entry.payload.clone().filter(|payload| !payload.is_null());
        let answer = match entry.status {
            ResumeStatus::Resolved => answer_of(asked.kind, id, payload)?,
            ResumeStatus::Cancelled => withdrawal_of(id),
        };
        if asked.is_open() {
            answers.push(answer);
        } else {
            check_settled(wire, &run, &key, &answer).await?;
        }
    }
    let answered = match answers.is_empty() {
        true => None,
        false => interactions::answer_all(wire, &key, answers).await?.pop(),
    };
    // The client has read up to its questions. If more was written than these and the answers, it has missed that.
    let is_told = newest_asked(&run, entries) == Some(run.last_seq)
        && answered.is_some_and(|answered| answered.run.last_seq == run.last_seq + 1);
    Ok((key, if is_told { From::Cursor(Some(Cursor::after(run.last_seq))) } else { From::Present }))
}

/// Refuses a list that answers a question twice, or leaves out one that the client knows.
///
/// The client was told all that was open when the newest of its questions was asked. What was asked later it may
/// not know of: it is asked for that in the response.
fn check_covered(run: &RunInfo, entries: &[ResumeEntry]) -> Result<(), Problem> {
    let invalid = |detail: String| Problem::new("invalid_answer", detail).with("field", "resume");
    let count = |id: &str| entries.iter().filter(|entry| entry.interrupt_id == id).count();
    if let Some(twice) = entries.iter().find(|entry| count(&entry.interrupt_id) > 1) {
        return Err(invalid(format!("`resume` answers `{}` more than once", twice.interrupt_id)));
    }
    let newest = newest_asked(run, entries);
    let open = run.summary.interactions.iter().filter(|asked| asked.is_open());
    let missing: Vec<_> = open
        .filter(|asked| newest.is_none() || asked.asked_seq <= newest)
        .map(|asked| &*asked.interaction_id)
        .filter(|id| count(id) == 0)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let detail = format!("`resume` must answer every question of the list; missing: {}", missing.join(", "));
    Err(invalid(detail).with("missing", missing))
}

/// Finds the record that asked the newest of the questions.
fn newest_asked(run: &RunInfo, entries: &[ResumeEntry]) -> Option<u64> {
    let asked = entries.iter().filter_map(|entry| run.summary.interaction(&entry.interrupt_id));
    asked.filter_map(|asked| asked.asked_seq).max()
}

/// Refuses an answer to a question that has another one.
async fn check_settled(wire: &Wire, run: &RunInfo, key: &RunKey, answer: &Answer) -> Result<(), Problem> {
    let won = wire.log.interaction(key, &answer.interaction_id).await?.answer;
    let Some(won) = won.filter(|won| !answer.equals(won)) else { return Ok(()) };
    let (won, status) = (Box::new(won), run.status);
    Err(match status.is_closed() {
        true => LogError::RunClosed { run: run.run_id.clone(), status, answer: Some(won) },
        false => LogError::InteractionClosed { interaction: answer.interaction_id.clone(), answer: won },
    }
    .into())
}

/// Finds the run that asked: one that is open, else the newest, whose questions have been settled.
async fn asking_run(wire: &Wire, thread: &ThreadKey, entries: &[ResumeEntry]) -> Result<RunInfo, Problem> {
    for id in wire.log.thread(thread).await?.open_runs.into_iter().rev() {
        let run = wire.log.run(&RunKey { tenant: thread.tenant.clone(), id: id.into() }).await?;
        if entries.iter().any(|entry| run.summary.interaction(&entry.interrupt_id).is_some()) {
            return Ok(run);
        }
    }
    newest_run(wire, thread).await
}
