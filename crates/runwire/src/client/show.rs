//! `runwire show`: prints a run's info and its message.

use std::fmt::Write as _;
use std::io::{self, Write};

use runwire_client::{RunInfo, Warning, Warnings};
use serde_json::{Value, json};

use super::runs::{duration, moment, span};
use super::timeline;
use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::ShowArguments;
use crate::failure::Failure;
use crate::table::sanitize;

/// Prints a run and its message.
pub(crate) fn run(arguments: &ShowArguments) -> Result<Verdict, Failure> {
    block_on(show(arguments))
}

async fn show(arguments: &ShowArguments) -> Result<Verdict, Failure> {
    let handle = connect(&arguments.server)?.run(&arguments.run);
    if arguments.events {
        return timeline::print(&handle, arguments.json).await;
    }
    let run = handle.info().await?;
    let message = handle.message().await?;
    let shown = if arguments.json {
        format!("{:#}\n", json!({"run": run, "message": message}))
    } else {
        format!("{}{}{}", facts(&run), warnings(&run.warnings), said(&message))
    };
    io::stdout().lock().write_all(shown.as_bytes()).map_err(Failure::Write)?;
    Ok(Verdict::Fine)
}

/// Formats a run's info, one line per field.
fn facts(run: &RunInfo) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name:<9} {}", plain(&value));
        }
    };
    line("run", Some(run.run_id.clone()));
    line("thread", Some(run.thread_id.clone()));
    line("agent", run.agent.clone());
    line("status", Some(run.status.to_string()));
    line("started", run.started_at.map(moment));
    line("ended", run.ended_at.map(moment));
    line("duration", duration(run));
    line("cursor", run.cursor.map(|cursor| cursor.to_string()));
    let counts = &run.counts;
    let counts = [
        ("records", counts.records),
        ("events", counts.events),
        ("messages", counts.messages),
        ("tool calls", counts.tool_calls),
        ("steps", counts.steps),
    ];
    line("counts", Some(counts.map(|(name, count)| counted(name, count)).join(", ")));
    let tokens = run.usage.as_ref();
    line(
        "tokens",
        tokens.map(|usage| format!("{} ({} in the prompt)", usage.total_tokens, usage.prompt_tokens)),
    );
    let error = run.error.as_ref().map(|error| match &error.code {
        Some(code) => format!("{} [{code}]", error.message),
        None => error.message.clone(),
    });
    line("error", error);
    out
}

/// Formats the run's warnings.
fn warnings(warnings: &Warnings) -> String {
    if warnings.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let _ = writeln!(out, "{:<9} {}", "warnings", warnings.count);
    for Warning { seq, times, dialect, code, field, section, message, hint, .. } in &warnings.first {
        let field = field.as_ref().map(|field| format!("field `{field}`: ")).unwrap_or_default();
        let section = section.as_ref().map(|section| format!(" {section}")).unwrap_or_default();
        let often = if *times > 1 { format!(", {times} times") } else { String::new() };
        let warning = format!("seq {seq}{often}: {field}{message} ({dialect}{section}) [{code}]");
        let _ = writeln!(out, "  {}", line_of(&warning));
        if let Some(hint) = hint {
            let _ = writeln!(out, "    hint: {}", line_of(hint));
        }
    }
    out
}

/// Sanitizes a text for one line.
fn line_of(text: &str) -> String {
    text.chars().map(sanitize).collect()
}

/// Formats a count with its noun.
fn counted(name: &str, count: u64) -> String {
    let one = name.strip_suffix('s').filter(|_| count == 1).unwrap_or(name);
    format!("{count} {one}")
}

/// Formats the folded message: tool calls, interactions, text.
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

/// Returns a string member.
fn text<'v>(value: &'v Value, member: &str) -> Option<&'v str> {
    value.get(member).and_then(Value::as_str)
}

fn list<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Formats a value on one line of bounded length.
pub(super) fn short(value: &Value) -> String {
    const MOST: usize = 200;
    let whole = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line: String = whole.chars().take(MOST).map(sanitize).collect();
    if line.len() < whole.len() { format!("{line}…") } else { line }
}

/// Sanitizes a text, keeping line ends and tabs.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if matches!(letter, '\n' | '\t') { letter } else { sanitize(letter) }).collect()
}
