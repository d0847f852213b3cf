//! Hints for error codes.

use runwire_model::ErrorCode;

/// Returns the hint for an error code of a frame.
pub(crate) fn for_code(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::FrameTooLong => "send large results as several frames, or a link to them",
        ErrorCode::TooDeep => "flatten the value, or send it as a string",
        ErrorCode::NotUtf8 => "write UTF-8; a character may not be cut between two frames",
        ErrorCode::LoneSurrogate => "cut texts between characters, not between the two halves of one",
        ErrorCode::NotJson => {
            "one JSON object a line, or one in the `data:` of an SSE event; logs belong on stderr"
        }
        ErrorCode::NotAnObject => "wrap the value in the dialect's envelope",
        ErrorCode::BadField => "`runwire validate` tells the section of the document",
        ErrorCode::DialectAmbiguous => "name the dialect",
        ErrorCode::RunClosed => "whatever belongs to a run comes before its terminal event",
        ErrorCode::TooLarge | ErrorCode::TooManyOpen | ErrorCode::TooManyRuns => {
            "split the work into several runs"
        }
        ErrorCode::NeedsRun => {
            "write a dialect whose frames name their run, such as runwire, or convert one session at a time"
        }
        _ => return None,
    })
}
