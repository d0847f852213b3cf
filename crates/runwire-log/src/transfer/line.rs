//! Encodes and decodes transfer items as lines of JSON.
//!
//! Each line is an object whose `type` is `thread`, `run`, `record`, `state` or `end`. Times are milliseconds since
//! the epoch. A record's line holds its frame as a string, and its events in the `runwire` dialect, each with who
//! added it:
//!
//! ```text
//! {"type":"record","seq":1,"at":1763174673123,"run_id":"r1","dialect":"loom","frame":"{…}","events":[{"by":"producer","event":{…}}]}
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use runwire_model::dialect::Dialect;
use runwire_model::event::Event;
use runwire_model::json::{Object, ObjectWriter, check_nested};
use runwire_model::record::{Entry, EventOrigin, Record};
use runwire_model::{Timestamp, limits};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{TransferItem, TransferRun, TransferState, TransferThread};
use crate::record::StoredRecord;

/// Maximum nesting of a line: that of a frame, inside its event, inside the record.
const DEPTH: usize = limits::JSON_DEPTH + 16;

/// Why a line cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadLine(String);

fn bad(reason: impl ToString) -> BadLine {
    BadLine(reason.to_string())
}

/// Encodes an item as a line, with its line break.
pub fn write(out: &mut Vec<u8>, item: &TransferItem) {
    let mut object = ObjectWriter::begin(out);
    match item {
        TransferItem::Thread(facts) => members(&mut object, "thread", &**facts),
        TransferItem::Run(facts) => members(&mut object, "run", &**facts),
        TransferItem::Record(stored) => record(&mut object, stored),
        TransferItem::State(state) => members(&mut object, "state", &**state),
        TransferItem::End { head } => {
            object.str("type", "end");
            object.u64("head", *head);
        }
    }
    object.end();
    out.push(b'\n');
}

fn members(object: &mut ObjectWriter<'_>, kind: &str, value: &impl Serialize) {
    object.str("type", kind);
    // Names and numbers always serialise.
    let text = serde_json::to_string(value).unwrap_or_default();
    for (name, value) in Object::of_stored(&text).iter().flat_map(Object::fields) {
        object.raw(name, value.get());
    }
}

fn record(object: &mut ObjectWriter<'_>, stored: &StoredRecord) {
    let record = &stored.record;
    object.str("type", "record");
    object.u64("seq", record.seq);
    object.u64("at", record.at.0);
    object.str("run_id", &stored.run);
    if let Some(time) = record.source_time {
        object.u64("time", time.0);
    }
    object.opt_str("dialect", record.dialect.map(Dialect::name));
    object.opt_str("name", stored.name.as_deref());
    // A frame is UTF-8, or it would not have been accepted.
    let frame = stored.frame.as_ref().map(|frame| String::from_utf8_lossy(frame));
    object.opt_str("frame", frame.as_deref());
    object.array("events", &record.entries, |out, entry| {
        let mut object = ObjectWriter::begin(out);
        object.str("by", origin_name(entry.origin));
        let mut event = object.object("event");
        entry.event.write(&mut event);
        event.end();
        object.end();
    });
}

fn origin_name(origin: EventOrigin) -> &'static str {
    match origin {
        EventOrigin::Producer => "producer",
        EventOrigin::Decoder => "decoder",
        EventOrigin::Guard => "guard",
        EventOrigin::Server => "server",
    }
}

/// Decodes a line.
pub fn read(line: &[u8]) -> Result<TransferItem, BadLine> {
    let text = check_nested(line, DEPTH).map_err(bad)?;
    // Nearly all lines are records, and need not be parsed twice.
    let kind: Kind<'_> = match text.starts_with(r#"{"type":"record","#) {
        true => Kind { kind: "record".into() },
        false => serde_json::from_str(text).map_err(bad)?,
    };
    match &*kind.kind {
        "record" => read_record(text).map(|stored| TransferItem::Record(Arc::new(stored))),
        "thread" => typed::<TransferThread>(text).map(|facts| TransferItem::Thread(Box::new(facts))),
        "run" => typed::<TransferRun>(text).map(|facts| TransferItem::Run(Box::new(facts))),
        "state" => typed::<TransferState>(text).map(|state| TransferItem::State(Box::new(state))),
        "end" => typed::<End>(text).map(|end| TransferItem::End { head: end.head }),
        other => Err(bad(format!("there is no line of type `{}`", shown(other)))),
    }
}

fn typed<T: DeserializeOwned>(text: &str) -> Result<T, BadLine> {
    serde_json::from_str(text).map_err(bad)
}

fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(64)]
}

#[derive(Deserialize)]
struct Kind<'l> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'l, str>,
}

#[derive(Deserialize)]
struct End {
    head: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordLine<'l> {
    #[serde(rename = "type")]
    _kind: IgnoredAny,
    seq: u64,
    at: u64,
    run_id: String,
    time: Option<u64>,
    dialect: Option<Dialect>,
    name: Option<String>,
    #[serde(borrow)]
    frame: Option<Cow<'l, str>>,
    #[serde(borrow)]
    events: Vec<EventLine<'l>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventLine<'l> {
    #[serde(rename = "by")]
    origin: EventOrigin,
    #[serde(borrow)]
    event: &'l RawValue,
}

fn read_record(text: &str) -> Result<StoredRecord, BadLine> {
    let line: RecordLine<'_> = serde_json::from_str(text).map_err(bad)?;
    let frame = match line.frame {
        None => None,
        Some(frame) => {
            Object::parse(frame.as_bytes()).map_err(|fault| bad(format!("`frame`: {fault}")))?;
            Some(Bytes::from(frame.into_owned()))
        }
    };
    if frame.is_some() != line.dialect.is_some() {
        return Err(bad("a record has a frame and its dialect, or neither"));
    }
    let mut entries = Vec::with_capacity(line.events.len());
    for (index, EventLine { origin, event }) in line.events.into_iter().enumerate() {
        let event = Event::from_stored(event.get());
        let event = event.ok_or_else(|| bad(format!("event {index} of the record cannot be read")))?;
        entries.push(Entry { event, origin });
    }
    let record = Record {
        seq: line.seq,
        at: Timestamp(line.at),
        source_time: line.time.map(Timestamp),
        dialect: line.dialect,
        entries,
    };
    Ok(StoredRecord { run: line.run_id.into(), record, name: line.name.map(Into::into), frame })
}

#[cfg(test)]
mod tests {
    use runwire_model::event::TextDelta;

    use super::*;

    fn round(item: TransferItem) {
        let mut line = Vec::new();
        write(&mut line, &item);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(read(line.trim_ascii_end()).unwrap(), item, "{}", String::from_utf8_lossy(&line));
    }

    #[test]
    fn an_item_is_the_same_after_decoding() {
        let delta = TextDelta { message_id: "m\n".repeat(300), content: "你好\u{1}".into(), format: None };
        let entries = vec![Entry { event: Event::new(delta), origin: EventOrigin::Decoder }];
        let record = Record {
            seq: 7,
            at: Timestamp(9),
            source_time: Some(Timestamp(8)),
            dialect: Some(Dialect::Agio),
            entries,
        };
        let frame = Some(Bytes::from_static(b"{ \"raw\" :\r\n \"\\u0041\xe4\xbd\xa0\" }"));
        let stored = StoredRecord { run: "r\u{1}".into(), record, name: Some("n".into()), frame };
        round(TransferItem::Record(Arc::new(stored.clone())));
        let mut act = stored;
        (act.frame, act.name, act.record.dialect, act.record.entries) = (None, None, None, Vec::new());
        round(TransferItem::Record(Arc::new(act)));
        round(TransferItem::End { head: 3 });
        round(TransferItem::State(Box::default()));
    }

    #[test]
    fn an_invalid_line_is_refused_with_the_reason() {
        let reason = |line: &str| read(line.as_bytes()).unwrap_err().to_string();
        assert!(reason("{").contains("EOF"));
        assert!(reason("{}").contains("missing field `type`"));
        assert!(reason(r#"{"type":"x"}"#).contains("no line of type `x`"));
        let record =
            |rest: &str| reason(&format!(r#"{{"type":"record","seq":1,"at":1,"run_id":"r",{rest}}}"#));
        assert!(record(r#""events":[],"frame":"{}""#).contains("neither"));
        assert!(record(r#""events":[],"frame":"[]","dialect":"loom""#).contains("`frame`"));
        assert!(record(r#""events":[{"by":"producer","event":{"type":"nothing"}}]"#).contains("event 0"));
        assert!(record(r#""events":[{"by":"someone","event":{}}]"#).contains("someone"));
        assert!(record(r#""events":[],"extra":1"#).contains("extra"));
        let deep =
            format!(r#""events":[{{"by":"producer","event":{}{}}}]"#, "[".repeat(200), "]".repeat(200));
        assert!(record(&deep).contains("nested"));
    }
}
