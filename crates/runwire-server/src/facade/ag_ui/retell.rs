//! The frames that name their run, told under the id of the client's own request.
//!
//! The client calls every request another run, and a run that goes on after a question is one of ours with several
//! of its. What it sent is not sent back: it would take its own message, under another id, for a second one.

use bytes::Bytes;
use runwire_model::framing::{Framing, write_frame};
use runwire_model::json::{Object, ObjectWriter};

use crate::feed::Segment;
use crate::read::FrameRewriter;

const STARTED: &[u8] = br#"{"type":"RUN_STARTED""#;
const FINISHED: &[u8] = br#"{"type":"RUN_FINISHED""#;
/// The part of `metadata` that says what AG-UI's own fields cannot: at a start, what the run was given.
const OURS: &str = "runwire";

/// Tells a run under another id.
pub(super) fn as_run(shown: String) -> FrameRewriter {
    Box::new(move |segment, from, to| write(segment, from, to, &shown))
}

fn write(segment: &Segment, from: usize, to: usize, shown: &str) -> Bytes {
    let mut out = Vec::new();
    for frame in segment.frames(from).take(to - from) {
        let id = frame.cursor.map(|cursor| cursor.to_string());
        let renamed = renamed(frame.data, shown);
        let data = renamed.as_deref().unwrap_or(frame.data);
        write_frame(Framing::Sse, &mut out, id.as_deref(), frame.name, data);
    }
    out.into()
}

/// Writes the start or the end of a run anew; other frames stay as they are.
fn renamed(data: &[u8], shown: &str) -> Option<Vec<u8>> {
    let is_named = [STARTED, FINISHED].iter().any(|start| data.starts_with(start));
    let frame = Object::of_stored(std::str::from_utf8(data).ok().filter(|_| is_named)?)?;
    let is_start = data.starts_with(STARTED);
    let mut out = Vec::with_capacity(data.len());
    let mut object = ObjectWriter::begin(&mut out);
    for (name, value) in frame.fields() {
        match name {
            "runId" => object.str("runId", shown),
            "input" => {}
            "metadata" => match Object::of(value).filter(|metadata| metadata.has(OURS) && is_start) {
                Some(metadata) => write_rest(&mut object, &metadata),
                None => object.raw(name, value.get()),
            },
            _ => object.raw(name, value.get()),
        }
    }
    object.end();
    Some(out)
}

/// Writes what others have put into a start's metadata.
fn write_rest(object: &mut ObjectWriter<'_>, metadata: &Object<'_>) {
    let mut others = metadata.fields().filter(|(name, _)| *name != OURS).peekable();
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
        let told = |frame: &str| renamed(frame.as_bytes(), "mine").map(|out| String::from_utf8(out).unwrap());
        let start = r#"{"type":"RUN_STARTED","threadId":"t","runId":"ours","input":{"messages":[]}}"#;
        assert_eq!(told(start).unwrap(), r#"{"type":"RUN_STARTED","threadId":"t","runId":"mine"}"#);
        let start =
            r#"{"type":"RUN_STARTED","runId":"ours","metadata":{"runwire":[{"type":"run.started"}]}}"#;
        assert_eq!(told(start).unwrap(), r#"{"type":"RUN_STARTED","runId":"mine"}"#);
        let start = r#"{"type":"RUN_STARTED","runId":"ours","metadata":{"a":1.50,"runwire":[]}}"#;
        assert_eq!(told(start).unwrap(), r#"{"type":"RUN_STARTED","runId":"mine","metadata":{"a":1.50}}"#);
        let end = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"ours","result":1.50}"#;
        assert_eq!(
            told(end).unwrap(),
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"mine","result":1.50}"#
        );
        assert_eq!(told(r#"{"type":"CUSTOM","name":"x","value":{"runId":"ours"}}"#), None);
    }
}
