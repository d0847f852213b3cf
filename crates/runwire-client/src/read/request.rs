//! The parameters of a stream, as an SSE request or a WebSocket subscription.

use http::HeaderMap;
use http::header::{ACCEPT, HeaderValue};
use runwire_model::dialect::{Dialect, Slots};
use serde_json::{Map, Value};

use super::cursor::Cursor;
use crate::http::{Endpoint, Http};

/// The transport of a stream. The frames are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Transport {
    /// Server-sent events: one request a stream.
    #[default]
    Sse,
    /// A WebSocket, for proxies that buffer long responses.
    WebSocket,
}

/// The resource that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resource {
    Run(String),
    Thread(String),
}

impl Resource {
    /// Returns its endpoint.
    pub(crate) fn endpoint(&self, http: &Http) -> Endpoint {
        let (kind, id) = match self {
            Self::Run(id) => ("runs", id),
            Self::Thread(id) => ("threads", id),
        };
        http.endpoint().segment("v1").segment(kind).segment(id)
    }
}

/// The parameters of a stream.
#[derive(Debug, Clone)]
pub(super) struct ReadRequest {
    pub(super) resource: Resource,
    pub(super) dialect: Dialect,
    /// Cursor of the last delivered item, or where to start.
    pub(super) after: Option<Cursor>,
    /// Whether to start at the end if there is no cursor yet.
    pub(super) from_end: bool,
    pub(super) follow: bool,
    /// Frames left until the caller's limit.
    pub(super) limit: Option<u64>,
    pub(super) compact: bool,
    pub(super) attach: bool,
    pub(super) full: bool,
    pub(super) slots: Slots,
    pub(super) raw: bool,
    pub(super) transport: Transport,
}

impl ReadRequest {
    pub(super) fn new(resource: Resource, dialect: Dialect) -> Self {
        Self {
            resource,
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

    /// Returns true if the stream starts with a snapshot: a reader with a cursor has the past already.
    fn wants_snapshot(&self) -> bool {
        self.attach && self.after_parameter().is_none()
    }

    /// Returns the `after` parameter.
    fn after_parameter(&self) -> Option<String> {
        self.after.map(|after| after.to_string()).or_else(|| self.from_end.then(|| "end".to_owned()))
    }

    /// Returns the `slots` parameter, unless it is the default.
    fn slots(&self) -> Option<&'static str> {
        Some(self.slots.name()).filter(|_| self.slots != Slots::All)
    }

    /// Returns the endpoint of the frames with all parameters.
    pub(super) fn endpoint(&self, http: &Http) -> Endpoint {
        self.resource
            .endpoint(http)
            .segment("events")
            .parameter("dialect", self.dialect.name())
            .parameter_if("after", self.after_parameter())
            .parameter_if("follow", (!self.follow).then_some("false"))
            .parameter_if("limit", self.limit)
            .flag("compact", self.compact)
            .parameter_if("attach", self.wants_snapshot().then_some("snapshot"))
            .parameter_if("fidelity", self.full.then_some("full"))
            .parameter_if("slots", self.slots())
            .flag("raw", self.raw)
    }

    /// Returns the headers of an SSE request.
    pub(super) fn headers() -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))])
    }

    /// Returns the subscribe message of a WebSocket.
    pub(super) fn subscribe_message(&self) -> String {
        let (kind, id) = match &self.resource {
            Resource::Run(id) => ("run", id),
            Resource::Thread(id) => ("thread", id),
        };
        let mut message = Map::new();
        let mut add = |name: &str, value: Value| message.insert(name.to_owned(), value);
        add("op", "subscribe".into());
        add("id", 1.into());
        add(kind, id.as_str().into());
        add("dialect", self.dialect.name().into());
        if let Some(start) = self.after_parameter() {
            add("after", start.into());
        }
        if let Some(slots) = self.slots() {
            add("slots", slots.into());
        }
        for (name, holds) in [("compact", self.compact), ("raw", self.raw)] {
            if holds {
                add(name, true.into());
            }
        }
        for (name, word, holds) in
            [("attach", "snapshot", self.wants_snapshot()), ("fidelity", "full", self.full)]
        {
            if holds {
                add(name, word.into());
            }
        }
        Value::Object(message).to_string()
    }
}
