//! The lines that show how to answer an interaction: by command and over HTTP.
//!
//! They are for copying, so they are never wrapped, and untrusted ids are quoted for the shell.

use runwire_model::event::{InteractionKind, InteractionRequested};
use runwire_model::percent_encoded;
use serde_json::{Map, Value, json};

use super::line::PaintedLine;
use super::style::{Paint, ServerHint};

/// Returns the lines for an interaction with these form fields.
pub(super) fn lines(
    run: &str,
    requested: &InteractionRequested,
    fields: &[(String, Value)],
    server: Option<&ServerHint>,
) -> Vec<PaintedLine> {
    let command = format!("runwire answer {} {}", quoted(run), quoted(&requested.interaction_id));
    let flag = server.map_or("", |server| &server.flag);
    let typed =
        |text: String| PaintedLine::of(Paint::Plain, "  ").and(Paint::Accent, &format!("{text}{flag}"));
    let values: Map<String, Value> = fields.iter().cloned().collect();
    let (mut lines, body) = match requested.kind {
        InteractionKind::Approval => {
            let approve = typed(format!("{command} --approve"));
            let reject = typed(format!("{command} --reject"));
            (vec![approve, reject], json!({"decision": "approved"}))
        }
        InteractionKind::Form => {
            let filled: String =
                fields.iter().map(|(name, value)| format!(" {}", filled(name, value))).collect();
            (vec![typed(format!("{command}{filled}"))], json!({"decision": "submitted", "values": values}))
        }
    };
    let path = format!(
        "/v1/runs/{}/interactions/{}",
        percent_encoded(run),
        percent_encoded(&requested.interaction_id)
    );
    lines.push(PaintedLine::of(Paint::Plain, "  ").and(
        Paint::Dim,
        &match server {
            Some(server) => {
                let url = quoted(&format!("{}{path}", server.url.trim_end_matches('/')));
                format!("curl {url} --json {}", quoted(&body.to_string()))
            }
            None => format!("POST {path} {body}"),
        },
    ));
    lines
}

/// Formats a field as an argument: `name=value`.
fn filled(name: &str, value: &Value) -> String {
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    quoted(&format!("{name}={value}"))
}

/// Quotes a word for a shell if needed.
pub fn quoted(word: &str) -> String {
    let harmless = |letter: char| letter.is_alphanumeric() || "_-.:/@=…,+%".contains(letter);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(harmless) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[PaintedLine]) -> String {
        let mut out = String::new();
        for line in lines {
            line.write(false, &mut out);
            out.push('\n');
        }
        out
    }

    #[test]
    fn untrusted_ids_are_quoted() {
        let requested = InteractionRequested {
            interaction_id: "x'; rm -rf ~ #".into(),
            kind: InteractionKind::Approval,
            ..Default::default()
        };
        let server = ServerHint { url: "http://127.0.0.1:7420/".into(), flag: String::new() };
        assert_eq!(
            shown(&lines("r/1", &requested, &[], Some(&server))),
            "  runwire answer r/1 'x'\\''; rm -rf ~ #' --approve\n  \
               runwire answer r/1 'x'\\''; rm -rf ~ #' --reject\n  \
               curl 'http://127.0.0.1:7420/v1/runs/r%2F1/interactions/x%27%3B%20rm%20-rf%20~%20%23' --json '{\"decision\":\"approved\"}'\n"
        );
    }

    #[test]
    fn the_command_names_a_server_that_is_not_the_default() {
        let requested = InteractionRequested { interaction_id: "f1".into(), ..Default::default() };
        let server = ServerHint { url: "http://far:1".into(), flag: " --url http://far:1".into() };
        let shown = shown(&lines("r1", &requested, &[("days".to_owned(), json!(3))], Some(&server)));
        assert_eq!(shown.lines().next(), Some("  runwire answer r1 f1 days=3 --url http://far:1"));
    }

    #[test]
    fn a_form_is_answered_by_its_fields() {
        let requested = InteractionRequested { interaction_id: "f1".into(), ..Default::default() };
        let fields = [("from".to_owned(), json!("…")), ("days".to_owned(), json!(3))];
        assert_eq!(
            shown(&lines("r1", &requested, &fields, None)),
            "  runwire answer r1 f1 from=… days=3\n  \
               POST /v1/runs/r1/interactions/f1 {\"decision\":\"submitted\",\"values\":{\"from\":\"…\",\"days\":3}}\n"
        );
    }
}
