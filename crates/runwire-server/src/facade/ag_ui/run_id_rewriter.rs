//! Rewrites the run id in AG-UI frames to the id of the client's request.
//!
//! The client gives every request a run id of its own, so a run that continues after an interaction has several of
//! them. The request's input is not sent back: the client would take its own message, under another id, for a second
//! one.

use bytes::Bytes;
use runwire_model::framing::{Framing, write_frame};
use runwire_model::json::{Object, ObjectWriter};

use crate::feed::Segment;
use crate::read::FrameRewriter;

const STARTED: &[u8] = br#"{"type":"RUN_STARTED""#;
const FINISHED: &[u8] = br#"{"type":"RUN_FINISHED""#;
/// The extension field of `metadata`, which holds the run's input at a start.
const EXTENSION_FIELD: &str = "runwire";

/// Creates the rewriter for a client's run id.
pub(super) fn rewrite_run_id(client_run_id: String) -> FrameRewriter {
    Box::new(move |segment, from, to| write_frames(segment, from, to, &client_run_id))
}

fn write_frames(segment: &Segment, from: usize, to: usize, client_run_id: &str) -> Bytes {
    let mut out = Vec::new();
    for frame in segment.frames(from).take(to - from) {
        let id = frame.cursor.map(|cursor| cursor.to_string());
        let rewritten = rewrite_frame(frame.data, client_run_id);
        let data = rewritten.as_deref().unwrap_or(frame.data);
        write_frame(Framing::Sse, &mut out, id.as_deref(), frame.name, data);
    }
    out.into()
}

/// Rewrites the start or end frame of a run; none for other frames.
fn rewrite_frame(data: &[u8], client_run_id: &str) -> Option<Vec<u8>> {
    let is_named = [STARTED, FINISHED].iter().any(|start| data.starts_with(start));
    let frame = Object::of_stored(std::str::from_utf8(data).ok().filter(|_| is_named)?)?;
    let is_start = data.starts_with(STARTED);
    let mut out = Vec::with_capacity(data.len());
    let mut object = ObjectWriter::begin(&mut out);
    for (name, value) in frame.fields() {
        match name {
            "runId" => object.str("runId", client_run_id),
            "input" => {}
            "metadata" => {
                match Object::of(value).filter(|metadata| metadata.has(EXTENSION_FIELD) && is_start) {
                    Some(metadata) => write_other_metadata(&mut object, &metadata),
                    None => object.raw(name, value.get()),
                }
            }
            _ => object.raw(name, value.get()),
        }
    }
    object.end();
    Some(out)
}

/// Writes the fields of other systems in a start's metadata.
fn write_other_metadata(object: &mut ObjectWriter<'_>, metadata: &Object<'_>) {
    let mut others = metadata.fields().filter(|(name, _)| *name != EXTENSION_FIELD).peekable();
    if others.peek().is_none() {
        return;
    }
    let mut rest = object.object("metadata");
    others.for_each(|(name, value)| rest.raw(name, value.get()));
    rest.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_start_and_the_end_of_a_run_are_renamed() {
        let rewritten =
            |frame: &str| rewrite_frame(frame.as_bytes(), "mine").map(|out| String::from_utf8(out).unwrap());
        let start = r#"{"type":"RUN_STARTED","threadId":"t","runId":"ours","input":{"messages":[]}}"#;
        assert_eq!(rewritten(start).unwrap(), r#"{"type":"RUN_STARTED","threadId":"t","runId":"mine"}"#);
        let start =
            r#"{"type":"RUN_STARTED","runId":"ours","metadata":{"runwire":[{"type":"run.started"}]}}"#;
        assert_eq!(rewritten(start).unwrap(), r#"{"type":"RUN_STARTED","runId":"mine"}"#);
        let start = r#"{"type":"RUN_STARTED","runId":"ours","metadata":{"a":1.50,"runwire":[]}}"#;
        assert_eq!(
            rewritten(start).unwrap(),
            r#"{"type":"RUN_STARTED","runId":"mine","metadata":{"a":1.50}}"#
        );
        let end = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"ours","result":1.50}"#;
        assert_eq!(
            rewritten(end).unwrap(),
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"mine","result":1.50}"#
        );
        assert_eq!(rewritten(r#"{"type":"CUSTOM","name":"x","value":{"runId":"ours"}}"#), None);
    }
}
