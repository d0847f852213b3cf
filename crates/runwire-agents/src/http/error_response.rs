//! Turns an agent's error response into an error with a readable message.

use runwire_model::RunFailureCode;
use runwire_model::event::ErrorInfo;
use serde_json::{Value, json};

use crate::limits;
use crate::outcome::with_details;

/// Creates the error of a failed response: its status and the readable text of its body.
pub(super) fn of_status(status: http::StatusCode, media: Option<&str>, body: &[u8]) -> ErrorInfo {
    let says = readable_text(media, body);
    let said = if says.is_empty() { String::new() } else { format!(": {says}") };
    let message = format!("the agent answered {}{said}", named(status));
    let details = json!({"status": status.as_u16(), "content_type": media, "body": says});
    let error = with_details(RunFailureCode::AgentRefused.error(message), &details);
    ErrorInfo { retryable: Some(is_temporary(status)), ..error }
}

/// Creates the error of a redirect. Redirects are not followed, because the input may hold secrets.
pub(super) fn of_redirect(status: http::StatusCode, location: Option<&str>) -> ErrorInfo {
    let to = location.unwrap_or("nowhere");
    let message = format!("the agent answered {} to {to}: put that address into its `url`", named(status));
    let details = json!({"status": status.as_u16(), "location": location});
    with_details(RunFailureCode::AgentRefused.error(message), &details)
}

/// Creates the error of a successful response that is not a stream of frames.
pub(super) fn of_media(media: &str, body: &[u8]) -> ErrorInfo {
    let says = readable_text(Some(media), body);
    let said = if says.is_empty() { String::new() } else { format!(": {says}") };
    let message = format!("the agent answered with {media}, which is no stream of events{said}");
    let details = json!({"content_type": media, "body": says});
    with_details(RunFailureCode::AgentNotAStream.error(message), &details)
}

/// Creates the error of a `text/event-stream` response without events; none if the body is empty.
pub(super) fn of_no_events(body: &[u8]) -> Option<ErrorInfo> {
    let text = String::from_utf8_lossy(body);
    let is_beside = |line: &str| [":", "event:", "id:", "retry:"].iter().any(|field| line.starts_with(field));
    let rest: Vec<_> = text.lines().filter(|line| !is_beside(line)).collect();
    let says = readable_text(None, rest.join("\n").as_bytes());
    if says.is_empty() {
        return None;
    }
    let message = format!(
        "the agent answered with text/event-stream that has no whole event (`data: …` and a blank line): {says}"
    );
    let details = json!({"content_type": "text/event-stream", "body": says});
    Some(with_details(RunFailureCode::AgentNotAStream.error(message), &details))
}

/// Returns true for media types that cannot hold frames.
pub(super) fn is_binary(media: &str) -> bool {
    let families = ["image/", "audio/", "video/", "font/"];
    let files = ["application/pdf", "application/zip", "application/gzip"];
    families.into_iter().any(|family| media.starts_with(family)) || files.contains(&media)
}

/// Returns true for status codes that are worth a retry.
pub(super) fn is_temporary(status: http::StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

fn named(status: http::StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Extracts the readable text of a body.
fn readable_text(media: Option<&str>, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let is_html = media.is_some_and(|media| media.contains("html")) || text.trim_start().starts_with('<');
    let says = match serde_json::from_slice::<Value>(body) {
        Ok(value) => in_json(&value).unwrap_or_else(|| text.into_owned()),
        Err(_) if is_html => in_html(&text),
        Err(_) => text.into_owned(),
    };
    one_line(&says)
}

/// Shortens a text to one line.
fn one_line(says: &str) -> String {
    let says: String = says.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let says = says.split_whitespace().collect::<Vec<_>>().join(" ");
    match says.char_indices().nth(limits::AGENT_ERROR_CHARACTERS) {
        Some((at, _)) => format!("{}…", &says[..at]),
        None => says,
    }
}

/// Returns the error message in JSON that is not a frame.
pub(crate) fn error_text_in(data: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(data).ok()?;
    in_json(&value).map(|says| one_line(&says))
}

/// Returns the error message from the fields that common frameworks use.
fn in_json(value: &Value) -> Option<String> {
    let places = ["/error/message", "/message", "/detail", "/error", "/title", "/detail/0/msg"];
    places.into_iter().find_map(|place| value.pointer(place)?.as_str()).map(str::to_owned)
}

/// Removes tags, styles and scripts.
fn in_html(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        words.push_str(&rest[..open]);
        words.push(' ');
        rest = &rest[open..];
        let name = rest[1..].to_ascii_lowercase();
        let end = ["style", "script"].into_iter().find(|tag| name.starts_with(tag)).and_then(|tag| {
            let close = format!("</{tag}");
            rest.to_ascii_lowercase().find(&close)
        });
        if let Some(end) = end.filter(|end| *end > 0) {
            rest = &rest[end..];
        }
        rest = rest.find('>').map_or("", |close| &rest[close + 1..]);
    }
    words.push_str(rest);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_error_page_is_extracted_without_its_tags() {
        let page = "<!doctype html><html><head><title>502 Bad Gateway</title><style>b{}</style></head>\n\
                    <body><h1>Bad Gateway</h1><script>x('<b>')</script></body></html>";
        let error = of_status(http::StatusCode::BAD_GATEWAY, Some("text/html"), page.as_bytes());
        assert_eq!(error.message, "the agent answered 502 Bad Gateway: 502 Bad Gateway Bad Gateway");
        assert_eq!((error.code.as_deref(), error.retryable), (Some("agent_refused"), Some(true)));
    }

    #[test]
    fn the_message_of_a_json_error_is_found() {
        for body in [
            r#"{"error":{"message":"no key"}}"#,
            r#"{"detail":"no key"}"#,
            r#"{"detail":[{"msg":"no key"}]}"#,
            r#"{"error":"no key"}"#,
        ] {
            assert_eq!(readable_text(Some("application/json"), body.as_bytes()), "no key", "{body}");
        }
        assert_eq!(readable_text(None, b"{\"a\":1}"), "{\"a\":1}");
    }

    #[test]
    fn any_body_becomes_a_short_text() {
        for body in
            [&b"\xff\xfe\x00<"[..], b"<", b"<style", b"<script></script", b"", "a\u{1b}[31m".as_bytes()]
        {
            let says = readable_text(Some("text/html"), body);
            assert!(!says.contains(char::is_control));
        }
        assert_eq!(
            readable_text(None, "漢".repeat(5000).as_bytes()).chars().count(),
            limits::AGENT_ERROR_CHARACTERS + 1
        );
    }
}
