//! Frames that say how a run ends.

use runwire_model::dialect::Dialect;
use runwire_model::json::Object;
use runwire_model::run::Status;

/// How a frame says that a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It is over, however it went.
    Over,
    /// It failed.
    Failed,
}

/// Tells whether a frame after the end only says the end again, as real producers do: EasyFlow's `done` after
/// its error, AG-UI's `RUN_FINISHED` after `RUN_ERROR`.
///
/// An error after a run that ended well says something new.
pub(crate) fn says_the_end_again(
    dialect: Dialect,
    name: Option<&str>,
    data: &[u8],
    how_it_ended: Status,
) -> bool {
    let Ok(frame) = Object::parse(data) else { return false };
    match ending(dialect, name, &frame) {
        Some(Ending::Over) => true,
        Some(Ending::Failed) => how_it_ended == Status::Failed,
        None => false,
    }
}

fn ending(dialect: Dialect, name: Option<&str>, frame: &Object<'_>) -> Option<Ending> {
    let kind = frame.get_str("type").map(|kind| kind.to_lowercase());
    let kind = kind.as_deref();
    match (dialect, kind) {
        (Dialect::StreamingEngine, Some("session_end" | "done")) => Some(Ending::Over),
        (Dialect::Agio, kind) => match kind.or(name) {
            Some("run_completed" | "run_cancelled") => Some(Ending::Over),
            Some("run_failed") => Some(Ending::Failed),
            _ => None,
        },
        (Dialect::AgUi | Dialect::SocialApp, Some("run_finished")) => Some(Ending::Over),
        (Dialect::AgUi | Dialect::SocialApp, Some("run_error")) => Some(Ending::Failed),
        (Dialect::Runwire, Some("run.completed" | "run.cancelled")) => Some(Ending::Over),
        (Dialect::Runwire, Some("run.failed")) => Some(Ending::Failed),
        (Dialect::EasyflowChat, kind) => {
            let system = frame.get_str("domain").is_some_and(|domain| domain.eq_ignore_ascii_case("system"));
            match (system, kind, name) {
                (true, Some("done"), _) | (true, None, _) | (_, None, Some("done")) => Some(Ending::Over),
                (true, Some("error"), _) | (_, _, Some("error")) => Some(Ending::Failed),
                _ => None,
            }
        }
        // A second reply of Loom's is another answer.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(dialect: Dialect, data: &str, ended: Status) -> bool {
        says_the_end_again(dialect, None, data.as_bytes(), ended)
    }

    #[test]
    fn the_end_said_twice_is_told_from_news() {
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
