//! Hints for error codes.

/// Returns the hint for an error code of a frame.
pub(crate) fn for_code(code: &str) -> Option<&'static str> {
    Some(match code {
        "frame_too_long" => "send large results as several frames, or a link to them",
        "too_deep" => "flatten the value, or send it as a string",
        "not_utf8" => "write UTF-8; a character may not be cut between two frames",
        "lone_surrogate" => "cut texts between characters, not between the two halves of one",
        "not_json" => "one JSON object a line, or one in the `data:` of an SSE event; logs belong on stderr",
        "not_an_object" => "wrap the value in the dialect's envelope",
        "bad_field" => "`runwire validate` tells the section of the document",
        "dialect_ambiguous" => "name the dialect",
        "run_closed" => "whatever belongs to a run comes before its terminal event",
        "too_large" | "too_many_open" | "too_many_runs" => "split the work into several runs",
        "needs_run" => {
            "write a dialect whose frames name their run, such as runwire, or convert one session at a time"
        }
        _ => return None,
    })
}
