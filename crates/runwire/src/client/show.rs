//! `runwire show`: how a run stands, and what it said.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::block_on;
use super::connection::Client;
use super::runs::{duration, moment, span, started, text};
use crate::Verdict;
use crate::arguments::ShowArguments;
use crate::failure::Failure;
use crate::table::tame;

/// Prints a run and its message.
pub(crate) fn run(arguments: &ShowArguments) -> Result<Verdict, Failure> {
    block_on(show(arguments))
}

async fn show(arguments: &ShowArguments) -> Result<Verdict, Failure> {
    let client = Client::new(&arguments.server.url)?;
    let place = client.target().segment("runs").segment(&arguments.run);
    let run = client.get_json(&place).await?;
    let message = client.get_json(&place.segment("message")).await?;
    let shown = if arguments.json {
        format!("{:#}\n", json!({"run": run, "message": message}))
    } else {
        format!("{}{}", facts(&run), said(&message))
    };
    io::stdout().lock().write_all(shown.as_bytes()).map_err(Failure::Write)?;
    Ok(Verdict::Fine)
}

/// Lists what is known of a run, a line each.
fn facts(run: &Value) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name:<9} {}", plain(&value));
        }
    };
    let number = |pointer: &str| run.pointer(pointer).and_then(Value::as_u64);
    line("run", text(run, "run_id").map(str::to_owned));
    line("thread", text(run, "thread_id").map(str::to_owned));
    line("agent", text(run, "agent").map(str::to_owned));
    line("status", text(run, "status").map(str::to_owned));
    line("started", started(run));
    line("ended", text(run, "ended_at").map(moment));
    line("duration", duration(run));
    line("cursor", text(run, "cursor").map(str::to_owned));
    let counts = run.get("counts").and_then(Value::as_object).map(|counts| {
        let shown = counts.iter().filter_map(|(name, count)| Some((name, count.as_u64()?)));
        shown.map(|(name, count)| counted(name, count)).collect::<Vec<_>>().join(", ")
    });
    line("counts", counts.filter(|counts| !counts.is_empty()));
    let tokens = number("/usage/total_tokens").map(|total| match number("/usage/prompt_tokens") {
        Some(prompt) => format!("{total} ({prompt} in the prompt)"),
        None => total.to_string(),
    });
    line("tokens", tokens);
    let error = run.get("error").filter(|error| error.is_object()).map(|error| {
        let message = text(error, "message").unwrap_or("unknown");
        text(error, "code").map_or_else(|| message.to_owned(), |code| format!("{message} [{code}]"))
    });
    line("error", error);
    out
}

/// Says how many there are of what a count names in the plural.
fn counted(name: &str, count: u64) -> String {
    let name = name.replace('_', " ");
    let one = name.strip_suffix('s').filter(|_| count == 1).unwrap_or(&name);
    format!("{count} {one}")
}

/// Tells the folded message: questions and calls, then the text.
fn said(message: &Value) -> String {
    let mut out = String::new();
    for call in list(message, "toolCalls") {
        let name = text(call, "toolName").unwrap_or("?");
        let arguments = call.get("arguments").map(short).unwrap_or_default();
        let status = text(call, "status").unwrap_or("?");
        let took = call.get("durationMs").and_then(Value::as_u64).map(span);
        let took = took.map(|took| format!(", {took}")).unwrap_or_default();
        let _ = writeln!(out, "\ncall {}({arguments}): {}{took}", plain(name), plain(status));
        for (label, member) in [("result", "result"), ("error", "error")] {
            if let Some(value) = call.get(member).filter(|value| !value.is_null()) {
                let _ = writeln!(out, "  {label}: {}", short(value));
            }
        }
    }
    for question in list(message, "interactions") {
        let kind = text(question, "kind").unwrap_or("question");
        let id = text(question, "interaction_id").or(text(question, "interactionId")).unwrap_or("?");
        let status = text(question, "status").or(text(question, "decision")).unwrap_or("open");
        let title = text(question, "title").map(|title| format!(" “{}”", plain(title))).unwrap_or_default();
        let _ = writeln!(out, "\n{} {}{title}: {}", plain(kind), plain(id), plain(status));
    }
    if let Some(content) = text(message, "mainContent").filter(|content| !content.is_empty()) {
        let _ = writeln!(out, "\n{}", plain(content).trim_end());
    }
    out
}

fn list<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Shows a value on one line of bounded length.
fn short(value: &Value) -> String {
    const MOST: usize = 200;
    let whole = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line: String = whole.chars().take(MOST).map(tame).collect();
    if line.len() < whole.len() { format!("{line}…") } else { line }
}

/// Keeps line ends and tabs of a text, and nothing else that acts on a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if matches!(letter, '\n' | '\t') { letter } else { tame(letter) }).collect()
}
