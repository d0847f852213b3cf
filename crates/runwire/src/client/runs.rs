//! `runwire runs`: lists runs, newest first.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::{Stream, TryStreamExt};
use runwire_client::{Error, RunFilter, RunInfo};
use runwire_model::Timestamp;

use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::RunsArguments;
use crate::failure::Failure;
use crate::screen;
use crate::table::Table;
use runwire_view::terminal_columns_and_rows;

/// Prints the newest runs.
pub(crate) fn run(arguments: &RunsArguments) -> Result<Verdict, Failure> {
    block_on(list(arguments))
}

async fn list(arguments: &RunsArguments) -> Result<Verdict, Failure> {
    let filter = RunFilter {
        status: arguments.status.as_deref().map(Into::into),
        agent: arguments.agent.clone(),
        thread: arguments.thread.clone(),
        before: None,
        limit: Some(if arguments.all { PAGE } else { arguments.limit.min(PAGE) }),
    };
    let oldest = arguments.since.map_or(0, |since| now().saturating_sub(millis(since)));
    let client = connect(&arguments.server)?;
    let runs = client.all_runs(filter).try_filter(|run| {
        let is_new_enough = run.created_at.is_some_and(|at| at.0 >= oldest) || oldest == 0;
        std::future::ready(is_new_enough)
    });
    let limit = if arguments.all { usize::MAX } else { arguments.limit as usize };
    if arguments.json { as_json(runs, limit).await } else { as_table(runs, limit).await }
}

/// Prints one object; `next` is the `before` of the next runs.
async fn as_json(
    mut runs: impl Stream<Item = Result<RunInfo, Error>> + Unpin,
    limit: usize,
) -> Result<Verdict, Failure> {
    let mut stdout = io::stdout().lock();
    let mut write = |text: &str| stdout.write_all(text.as_bytes()).map_err(Failure::Write);
    write("{\"runs\":[")?;
    let (mut count, mut last) = (0, None);
    while count < limit
        && let Some(run) = runs.try_next().await?
    {
        let text = serde_json::to_string(&run).map_err(|error| Failure::Write(error.into()))?;
        write(if count > 0 { ",\n" } else { "\n" })?;
        write(&text)?;
        (count, last) = (count + 1, Some(run.run_id));
    }
    let next = if count == limit && runs.try_next().await?.is_some() { last } else { None };
    write(&format!("\n],\"next\":{}}}\n", serde_json::json!(next)))?;
    Ok(Verdict::Fine)
}

async fn as_table(
    mut runs: impl Stream<Item = Result<RunInfo, Error>> + Unpin,
    limit: usize,
) -> Result<Verdict, Failure> {
    let mut shown = 0;
    loop {
        // A long list is printed as several tables.
        let mut some = Vec::new();
        while some.len() < LINED_UP.min(limit - shown)
            && let Some(run) = runs.try_next().await?
        {
            some.push(run);
        }
        if some.is_empty() {
            break;
        }
        shown += some.len();
        let table = table(&some).fitted(terminal_columns_and_rows().0).to_string();
        io::stdout().lock().write_all(table.as_bytes()).map_err(Failure::Write)?;
    }
    if shown == 0 {
        screen::say_note("there are no such runs");
    }
    Ok(Verdict::Fine)
}

/// Runs of one request.
const PAGE: u32 = 200;
/// Rows of one table.
const LINED_UP: usize = 1000;

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn table(runs: &[RunInfo]) -> Table {
    let mut table = Table::new(["run", "status", "agent", "events", "started", "duration"]);
    for run in runs {
        table.row([
            run.run_id.clone(),
            run.status.to_string(),
            run.agent.clone().unwrap_or_else(|| "-".to_owned()),
            run.counts.events.to_string(),
            run.started_at.map_or_else(|| "-".to_owned(), moment),
            duration(run).unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

/// Formats a time to the second.
pub(super) fn moment(time: Timestamp) -> String {
    let time = time.to_string();
    let seconds = time.split('.').next().unwrap_or(&time).trim_end_matches('Z');
    format!("{} UTC", seconds.replace('T', " "))
}

/// Returns the duration of a run so far.
pub(super) fn duration(run: &RunInfo) -> Option<String> {
    let ended = run.ended_at.map_or_else(now, |time| time.0);
    Some(span(ended.saturating_sub(run.started_at?.0)))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Formats milliseconds in the two largest units.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{seconds}.{}s", millis % 1000 / 100),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_people_say_them() {
        assert_eq!(span(7), "7ms");
        assert_eq!(span(1250), "1.2s");
        assert_eq!(span(61_000), "1m 1s");
        assert_eq!(span(7_320_000), "2h 2m");
        assert_eq!(span(90_000_000), "1d 1h");
        assert_eq!(moment(Timestamp::parse("2026-11-15T02:44:33.123Z").unwrap()), "2026-11-15 02:44:33 UTC");
    }
}
