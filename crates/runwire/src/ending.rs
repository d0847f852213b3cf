//! Recognises frames that end a run, to tell a repeated end from news.

use runwire_model::dialect::{Dialect, Ending};
use runwire_model::json::Object;
use runwire_model::run::Status;

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
