//! What a reader asks for.

use http::HeaderMap;
use http::header::{ACCEPT, HeaderValue};
use runwire_model::dialect::{Dialect, Slots};
use serde_json::{Map, Value};

use super::cursor::Cursor;
use crate::http::{Http, Target};

/// How frames come over the wire; what comes is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Transport {
    /// Server-sent events: one request a stream.
    #[default]
    Sse,
    /// A WebSocket, for networks that gather long answers before they pass them on.
    WebSocket,
}

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Run(String),
    Thread(String),
}

impl Place {
    /// Tells the address.
    pub(crate) fn target(&self, http: &Http) -> Target {
        let (kind, id) = match self {
            Self::Run(id) => ("runs", id),
            Self::Thread(id) => ("threads", id),
        };
        http.target().segment("v1").segment(kind).segment(id)
    }
}

/// What a reader asks for.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) place: Place,
    pub(super) dialect: Dialect,
    /// The last place that was handed out, or where to begin.
    pub(super) after: Option<Cursor>,
    /// Whether to begin at the end while no place is known.
    pub(super) from_end: bool,
    pub(super) follow: bool,
    /// Frames that are still wanted.
    pub(super) limit: Option<u64>,
    pub(super) compact: bool,
    pub(super) attach: bool,
    pub(super) full: bool,
    pub(super) slots: Slots,
    pub(super) raw: bool,
    pub(super) transport: Transport,
}

impl Ask {
    pub(super) fn new(place: Place, dialect: Dialect) -> Self {
        Self {
            place,
            dialect,
            after: None,
            from_end: false,
            follow: true,
            limit: None,
            compact: false,
            attach: false,
            full: false,
            slots: Slots::All,
            raw: false,
            transport: Transport::default(),
        }
    }

    /// Whoever has a cursor has the past: a snapshot would tell it again.
    fn attaches(&self) -> bool {
        self.attach && self.start().is_none()
    }

    /// Tells where to begin, as the server is told.
    fn start(&self) -> Option<String> {
        self.after.map(|after| after.to_string()).or_else(|| self.from_end.then(|| "end".to_owned()))
    }

    /// Returns what is asked for of the extension frames, unless it is all of them.
    fn slots(&self) -> Option<&'static str> {
        Some(self.slots.name()).filter(|_| self.slots != Slots::All)
    }

    /// Tells the address of the frames.
    pub(super) fn target(&self, http: &Http) -> Target {
        self.place
            .target(http)
            .segment("events")
            .parameter("dialect", self.dialect.name())
            .parameter_if("after", self.start())
            .parameter_if("follow", (!self.follow).then_some("false"))
            .parameter_if("limit", self.limit)
            .flag("compact", self.compact)
            .parameter_if("attach", self.attaches().then_some("snapshot"))
            .parameter_if("fidelity", self.full.then_some("full"))
            .parameter_if("slots", self.slots())
            .flag("raw", self.raw)
    }

    /// Lists what the head of a request for a stream says.
    pub(super) fn headers() -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))])
    }

    /// Writes the message that subscribes on a WebSocket.
    pub(super) fn subscription(&self) -> String {
        let (kind, id) = match &self.place {
            Place::Run(id) => ("run", id),
            Place::Thread(id) => ("thread", id),
        };
        let mut message = Map::new();
        let mut say = |name: &str, value: Value| message.insert(name.to_owned(), value);
        say("op", "subscribe".into());
        say("id", 1.into());
        say(kind, id.as_str().into());
        say("dialect", self.dialect.name().into());
        if let Some(start) = self.start() {
            say("after", start.into());
        }
        if let Some(slots) = self.slots() {
            say("slots", slots.into());
        }
        for (name, holds) in [("compact", self.compact), ("raw", self.raw)] {
            if holds {
                say(name, true.into());
            }
        }
        for (name, word, holds) in [("attach", "snapshot", self.attaches()), ("fidelity", "full", self.full)]
        {
            if holds {
                say(name, word.into());
            }
        }
        Value::Object(message).to_string()
    }
}
