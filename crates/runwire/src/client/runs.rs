//! `runwire runs`: a list for a person, newest first.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use runwire_model::Timestamp;
use serde_json::Value;

use super::block_on;
use super::connection::Client;
use crate::Verdict;
use crate::arguments::RunsArguments;
use crate::failure::Failure;
use crate::screen;
use crate::table::Table;

/// Prints the newest runs.
pub(crate) fn run(arguments: &RunsArguments) -> Result<Verdict, Failure> {
    block_on(list(arguments))
}

async fn list(arguments: &RunsArguments) -> Result<Verdict, Failure> {
    let client = Client::new(&arguments.server.url)?;
    let target = client
        .target()
        .segment("runs")
        .parameter_if("status", arguments.status.as_deref())
        .parameter_if("agent", arguments.agent.as_deref())
        .parameter_if("thread", arguments.thread.as_deref())
        .parameter("limit", &arguments.limit.to_string());
    let answer = client.get_json(&target).await?;
    let mut stdout = io::stdout().lock();
    if arguments.json {
        writeln!(stdout, "{answer:#}").map_err(Failure::Write)?;
        return Ok(Verdict::Fine);
    }
    let Some(runs) = answer.get("runs").and_then(Value::as_array) else {
        return Err(client.strange("the list has no `runs`".to_owned()));
    };
    if runs.is_empty() {
        screen::say_note("there are no such runs");
        return Ok(Verdict::Fine);
    }
    write!(stdout, "{}", table(runs)).map_err(Failure::Write)?;
    Ok(Verdict::Fine)
}

fn table(runs: &[Value]) -> Table {
    let mut table = Table::new(["run", "status", "agent", "events", "started", "duration"]);
    for run in runs {
        let events = run.pointer("/counts/events").and_then(Value::as_u64);
        table.row([
            text(run, "run_id").unwrap_or_default().to_owned(),
            text(run, "status").unwrap_or_default().to_owned(),
            text(run, "agent").unwrap_or("-").to_owned(),
            events.map_or_else(|| "-".to_owned(), |events| events.to_string()),
            started(run).unwrap_or_else(|| "-".to_owned()),
            duration(run).unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table
}

/// Gives a member that is a string.
pub(super) fn text<'v>(value: &'v Value, member: &str) -> Option<&'v str> {
    value.get(member).and_then(Value::as_str)
}

/// Tells when a run started, to the second.
pub(super) fn started(run: &Value) -> Option<String> {
    text(run, "started_at").map(moment)
}

/// Shows a time to the second.
pub(super) fn moment(time: &str) -> String {
    let seconds = time.split('.').next().unwrap_or(time).trim_end_matches('Z');
    format!("{} UTC", seconds.replace('T', " "))
}

/// Tells how long a run took, or has been open.
pub(super) fn duration(run: &Value) -> Option<String> {
    let time = |member| text(run, member).and_then(Timestamp::parse).map(|time| time.0);
    let started = time("started_at")?;
    let ended = time("ended_at").unwrap_or_else(now);
    Some(span(ended.saturating_sub(started)))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Shows milliseconds in the two units that matter.
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
        assert_eq!(moment("2026-11-15T02:44:33.123Z"), "2026-11-15 02:44:33 UTC");
    }
}
