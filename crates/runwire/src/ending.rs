//! Recognises frames that end a run, to tell a repeated end from news.

use runwire_model::dialect::Dialect;
use runwire_model::json::Object;
use runwire_model::run::Status;

/// How a frame ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndKind {
    /// It ends, whatever the outcome.
    Over,
    /// It failed.
    Failed,
}

/// Returns true if a frame after the end repeats the end, as real producers do: EasyFlow's `done` after its error,
/// AG-UI's `RUN_FINISHED` after `RUN_ERROR`.
///
/// An error after a completed run is not a repetition.
pub(crate) fn repeats_the_end(
    dialect: Dialect,
    name: Option<&str>,
    data: &[u8],
    how_it_ended: Status,
) -> bool {
    let Ok(frame) = Object::parse(data) else { return false };
    match ending(dialect, name, &frame) {
        Some(EndKind::Over) => true,
        Some(EndKind::Failed) => how_it_ended == Status::Failed,
        None => false,
    }
}

fn ending(dialect: Dialect, name: Option<&str>, frame: &Object<'_>) -> Option<EndKind> {
    let kind = frame.get_str("type").map(|kind| kind.to_lowercase());
    let kind = kind.as_deref();
    match (dialect, kind) {
        (Dialect::StreamingEngine, Some("session_end" | "done")) => Some(EndKind::Over),
        (Dialect::Agio, kind) => match kind.or(name) {
            Some("run_completed" | "run_cancelled") => Some(EndKind::Over),
            Some("run_failed") => Some(EndKind::Failed),
            _ => None,
        },
        (Dialect::AgUi | Dialect::SocialApp, Some("run_finished")) => Some(EndKind::Over),
        (Dialect::AgUi | Dialect::SocialApp, Some("run_error")) => Some(EndKind::Failed),
        (Dialect::Runwire, Some("run.completed" | "run.cancelled")) => Some(EndKind::Over),
        (Dialect::Runwire, Some("run.failed")) => Some(EndKind::Failed),
        (Dialect::EasyflowChat, kind) => {
            let system = frame.get_str("domain").is_some_and(|domain| domain.eq_ignore_ascii_case("system"));
            match (system, kind, name) {
                (true, Some("done"), _) | (true, None, _) | (_, None, Some("done")) => Some(EndKind::Over),
                (true, Some("error"), _) | (_, _, Some("error")) => Some(EndKind::Failed),
                _ => None,
            }
        }
        // A second reply of Loom is another answer.
        _ => None,
    }
}

/// Returns whether a frame is the habit of ending an SSE stream with `[DONE]`, which no document here has.
pub(crate) fn is_done_marker(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(dialect: Dialect, data: &str, ended: Status) -> bool {
        repeats_the_end(dialect, None, data.as_bytes(), ended)
    }

    #[test]
    fn a_repeated_end_is_recognised() {
        let finished = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
        let error = r#"{"type":"RUN_ERROR","message":"no"}"#;
        assert!(again(Dialect::AgUi, finished, Status::Failed));
        assert!(again(Dialect::AgUi, error, Status::Failed));
        assert!(!again(Dialect::AgUi, error, Status::Completed));
        assert!(again(Dialect::EasyflowChat, r#"{"domain":"SYSTEM","type":"DONE"}"#, Status::Failed));
        assert!(!again(Dialect::EasyflowChat, r#"{"domain":"llm","type":"message"}"#, Status::Failed));
        assert!(!again(Dialect::Loom, r#"{"reply":"another"}"#, Status::Completed));
    }
}
