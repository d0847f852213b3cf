//! Frames after the end of a run that only say the end again.

use runwire_model::dialect::{Dialect, Ending};
use runwire_model::json::Object;
use runwire_model::run::Status;

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
    match dialect.ending(name, &frame) {
        Some(Ending::Over) => true,
        Some(Ending::Failed) => how_it_ended == Status::Failed,
        None => false,
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
