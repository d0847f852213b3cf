//! Canonical events as they are received, with cursor, time, thread and run.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use runwire_model::event::{Body, Event, Foreign};
use runwire_model::json::Object;
use runwire_model::{Json, Timestamp};

use super::cursor::Cursor;
use super::frame::ReceivedFrame;
use super::run_stream::{FrameDecoder, sealed};

/// A canonical event with its record's metadata.
///
/// It dereferences to its [`Event`]: `received.body` is the event's body. An event of a type that this
/// version does not know is a [`Foreign`] one with the whole frame, so nothing is lost by reading on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReceivedEvent {
    /// The cursor after this event.
    pub cursor: Option<Cursor>,
    /// The record that holds it.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// The thread.
    pub thread_id: Arc<str>,
    /// The run.
    pub run_id: Arc<str>,
    /// The event.
    pub event: Event,
    frame: Bytes,
}

impl ReceivedEvent {
    /// Returns the event's JSON as received.
    pub fn frame(&self) -> &Bytes {
        &self.frame
    }

    /// Returns the type on the wire, even if this version does not know it.
    pub fn type_name(&self) -> String {
        match &self.event.body {
            Body::Foreign(foreign) if foreign.dialect == "runwire" => {
                let frame = Object::of_json(&foreign.frame);
                frame.and_then(|frame| frame.get_str("type").map(Into::into)).unwrap_or_default()
            }
            body => body.type_name().to_owned(),
        }
    }
}

impl Deref for ReceivedEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

/// Canonical events.
#[derive(Debug, Clone, Default)]
pub struct CanonicalEvents {
    /// Thread of the last event, shared by the next ones.
    thread_id: Arc<str>,
    run_id: Arc<str>,
}

impl sealed::Sealed for CanonicalEvents {}

impl FrameDecoder for CanonicalEvents {
    type Item = ReceivedEvent;

    fn read(&mut self, frame: ReceivedFrame) -> Result<ReceivedEvent, String> {
        let text = str::from_utf8(&frame.data).map_err(|error| format!("an event is no text: {error}"))?;
        let mut object = Object::of_stored(text).ok_or_else(|| "an event is no JSON object".to_owned())?;
        let seq = object.take_opt("seq").map_err(|error| error.to_string())?.unwrap_or_default();
        let at = object.take_opt_str("at").map_err(|error| error.to_string())?;
        for (member, kept) in [("thread_id", &mut self.thread_id), ("run_id", &mut self.run_id)] {
            if let Some(id) = object.take_opt_str(member).map_err(|error| error.to_string())?
                && *id != **kept
            {
                *kept = id.into();
            }
        }
        let type_name = object.take_opt_str("type").map_err(|error| error.to_string())?.unwrap_or_default();
        // An event of a newer server is kept as a foreign one.
        let event = match Event::read(&type_name, object) {
            Ok(Some(event)) => event,
            Ok(None) | Err(_) => unknown(text, &frame)?,
        };
        Ok(ReceivedEvent {
            cursor: frame.cursor,
            seq,
            at: at.and_then(|at| Timestamp::parse(&at)).unwrap_or_default(),
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            event,
            frame: frame.data,
        })
    }

    fn ends(received: &ReceivedEvent) -> bool {
        received.event.body.is_terminal()
    }
}

fn unknown(text: &str, frame: &ReceivedFrame) -> Result<Event, String> {
    let kept = Json::parse(text).map_err(|error| format!("an event is no JSON: {error}"))?;
    let name = frame.name().map(Into::into);
    Ok(Event::new(Foreign { dialect: "runwire".to_owned(), frame: kept, name }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &'static str) -> Result<ReceivedEvent, String> {
        CanonicalEvents::default().read(ReceivedFrame::new(None, None, Bytes::from_static(json.as_bytes())))
    }

    #[test]
    fn an_event_has_its_records_seq_time_thread_and_run() {
        let json = r#"{"seq":7,"at":"2026-11-15T02:44:33.123Z","thread_id":"t","run_id":"r","type":"text.delta","message_id":"m","content":"Hel","mood":"good"}"#;
        let received = read(json).unwrap();
        assert_eq!((received.seq, &*received.thread_id, &*received.run_id), (7, "t", "r"));
        assert_eq!(received.at.to_string(), "2026-11-15T02:44:33.123Z");
        assert!(matches!(&received.body, Body::TextDelta(delta) if delta.content == "Hel"));
        assert_eq!(received.extra.get("mood").map(Json::text), Some("\"good\""));
        assert_eq!(received.frame(), json);
    }

    #[test]
    fn unknown_events_are_kept_as_foreign() {
        for json in [
            r#"{"seq":1,"thread_id":"t","run_id":"r","type":"mood.changed","to":"😀"}"#,
            r#"{"seq":1,"thread_id":"t","run_id":"r","type":"tool.finished","call_id":"c","status":"maybe"}"#,
        ] {
            let received = read(json).unwrap();
            assert!(matches!(&received.body, Body::Foreign(foreign) if foreign.frame.text() == json));
            assert!(json.contains(&received.type_name()));
        }
        assert!(read("[]").is_err());
    }
}
