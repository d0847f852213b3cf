//! The frames that are written: pieces of text in Loom's dialect.

/// The dialect that is written.
pub(crate) const DIALECT: &str = "loom";
/// The content type of what is written.
pub(crate) const CONTENT_TYPE: &str = "application/x-ndjson";
/// How long a frame is that a model streams with all its envelope, line break and all.
const USUAL_BYTES: usize = 256;

/// The path that a run's events are written to.
pub(crate) fn write_path(run: &str) -> String {
    format!("/v1/runs/{run}/events?dialect={DIALECT}")
}

/// Makes one piece of text of the usual length as a line.
pub(crate) fn usual(run: &str) -> Vec<u8> {
    let bare = with_text(run, "");
    with_text(run, &words(USUAL_BYTES.saturating_sub(bare.len())))
}

/// Makes one piece of text as a line. The text is plain: nothing in it needs an escape.
pub(crate) fn with_text(run: &str, text: &str) -> Vec<u8> {
    format!(
        "{{\"session_id\":\"{run}\",\"node_id\":\"run-0\",\"event_id\":1,\"type\":\"message_chunk\",\
         \"content\":\"{text}\",\"id\":\"agent\"}}\n"
    )
    .into_bytes()
}

/// Makes a plain text of this length.
pub(crate) fn words(bytes: usize) -> String {
    "light rain in the morning, then sun; ".chars().cycle().take(bytes).collect()
}
