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
/// Answers that do not fit change nothing: all are looked at before the first is given. A request that is repeated
/// finds its answers given, which is no obstacle; whoever says something else is told what won.
pub(super) async fn resume(
    wire: &Wire,
    thread: &ThreadKey,
    entries: &[ResumeEntry],
) -> Result<(RunKey, From), Problem> {
    let run = asking_run(wire, thread, entries).await?;
    let key = RunKey { tenant: thread.tenant.clone(), id: run.run_id.as_str().into() };
    let open: Vec<_> = run.summary.interactions.iter().filter(|asked| asked.is_open()).collect();
    let is_covered = |id: &str| entries.iter().any(|entry| entry.interrupt_id == id);
    let missing: Vec<_> =
        open.iter().map(|asked| &*asked.interaction_id).filter(|id| !is_covered(id)).collect();
    if !missing.is_empty() {
        let detail = format!("`resume` must answer everything that is open; missing: {}", missing.join(", "));
        return Err(Problem::new("invalid_answer", detail).with("field", "resume").with("missing", missing));
    }
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
    for answer in &answers {
        interactions::check(wire, &key, answer).await?;
    }
    for answer in answers {
        interactions::answer(wire, &key, answer).await?;
    }
    // The client has read up to the last question. If more was written since, it has missed that.
    let last_question = open.iter().filter_map(|asked| asked.asked_seq).max();
    let is_told = last_question == Some(run.last_seq);
    Ok((key, if is_told { From::Cursor(Some(Cursor::after(run.last_seq))) } else { From::Present }))
}

/// Refuses an answer to a question that has another one.
async fn check_settled(wire: &Wire, run: &RunInfo, key: &RunKey, answer: &Answer) -> Result<(), Problem> {
    let won = wire.log.interaction(key, &answer.interaction_id).await?.answer;
    let Some(won) = won.filter(|won| !answer.is(won)) else { return Ok(()) };
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
