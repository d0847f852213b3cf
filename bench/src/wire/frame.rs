//! The frames that are written: pieces of text in the Loom dialect.

use runwire_model::dialect::Dialect;

/// The dialect that is written.
pub(crate) const DIALECT: Dialect = Dialect::Loom;
/// Another dialect, which readers ask for, so that frames are translated.
pub(crate) const READ_DIALECT: Dialect = Dialect::AgUi;
/// The content type of what is written.
pub(crate) const CONTENT_TYPE: &str = "application/x-ndjson";
/// Typical length of a frame with its envelope and line break.
const TYPICAL_BYTES: usize = 256;

/// The path that a run's events are written to.
pub(crate) fn write_path(run: &str) -> String {
    format!("/v1/runs/{run}/events?dialect={DIALECT}")
}

/// The path that a run's events are read from.
pub(crate) fn read_path(run: &str) -> String {
    format!("/v1/runs/{run}/events?dialect={READ_DIALECT}")
}

/// Returns a frame of typical length as a line.
pub(crate) fn typical(run: &str) -> Vec<u8> {
    of_typical_length(&|text| with_text(run, text))
}

/// Returns a frame as a line. The text must not need escaping.
///
/// It can be sent any number of times: it has no `event_id`, which would have to grow.
pub(crate) fn with_text(run: &str, text: &str) -> Vec<u8> {
    line(run, "", text)
}

/// Returns a frame of typical length as a line; a second one of the kind breaks the document.
pub(crate) fn numbered(run: &str) -> Vec<u8> {
    of_typical_length(&|text| line(run, "\"event_id\":1,", text))
}

fn of_typical_length(frame: &dyn Fn(&str) -> Vec<u8>) -> Vec<u8> {
    frame(&words(TYPICAL_BYTES.saturating_sub(frame("").len())))
}

fn line(run: &str, number: &str, text: &str) -> Vec<u8> {
    format!(
        "{{\"session_id\":\"{run}\",\"node_id\":\"run-0\",{number}\"type\":\"message_chunk\",\
         \"content\":\"{text}\",\"id\":\"agent\"}}\n"
    )
    .into_bytes()
}

/// Returns a text of this length.
pub(crate) fn words(bytes: usize) -> String {
    "light rain in the morning, then sun; ".chars().cycle().take(bytes).collect()
}
