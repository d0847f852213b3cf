//! `runwire show --events`: the events of a run, one per line.

use std::io::{self, Write};

use futures_util::TryStreamExt;
use runwire_client::{Body, ReceivedEvent, RunHandle};
use runwire_model::Timestamp;
use serde_json::Value;

use super::runs::span;
use super::show::short;
use crate::Verdict;
use crate::failure::Failure;
use crate::table::sanitize;
use runwire_view::measure::fit;
use runwire_view::terminal_columns_and_rows;

/// Width without a terminal.
const COLUMNS: usize = 160;

/// Prints the stored events of a run.
pub(super) async fn print(run: &RunHandle, json: bool) -> Result<Verdict, Failure> {
    let mut events = run.events().follow(false);
    let columns = match terminal_columns_and_rows().0 {
        0 => COLUMNS,
        columns => columns,
    };
    let mut began = None;
    let mut stdout = io::stdout().lock();
    while let Some(event) = events.try_next().await? {
        let line = match json {
            true => String::from_utf8_lossy(event.frame()).into_owned(),
            false => fit(&line_of(&event, *began.get_or_insert(event.at)), columns).into_owned(),
        };
        writeln!(stdout, "{line}").map_err(Failure::Write)?;
    }
    Ok(Verdict::Fine)
}

fn line_of(event: &ReceivedEvent, began: Timestamp) -> String {
    let after = span(event.at.0.saturating_sub(began.0));
    let cursor = event.cursor.map_or_else(|| event.seq.to_string(), |cursor| cursor.to_string());
    let said: String =
        gist(event).chars().map(|letter| if letter == '\n' { '⏎' } else { sanitize(letter) }).collect();
    format!("{after:>8}  {cursor:<8}  {:<22}  {said}", event.type_name()).trim_end().to_owned()
}

/// Returns the most relevant part of an event.
fn gist(event: &ReceivedEvent) -> String {
    match &event.body {
        Body::TextDelta(delta) => delta.content.clone(),
        Body::ThinkingDelta(delta) => delta.content.clone(),
        Body::ToolCalled(called) => format!("{}({})", called.name, called.arguments.text()),
        Body::ToolArgsDelta(delta) => delta.delta.clone(),
        _ => {
            let Ok(Value::Object(mut members)) = serde_json::from_slice(event.frame()) else {
                return String::new();
            };
            for known in ["seq", "at", "thread_id", "run_id", "type"] {
                members.shift_remove(known);
            }
            let member = |(name, value): (&String, &Value)| format!("{name}={}", short(value));
            members.iter().map(member).collect::<Vec<_>>().join(" ")
        }
    }
}
