//! Metrics: what `GET /metrics` tells, in the text format of Prometheus.
//!
//! | from | what |
//! |---|---|
//! | counters here | requests, readers: one relaxed addition for each request or stream, none for an event |
//! | `Log::figures` | what was written, what is open, the size of the store: counted for each commit, or when asked |
//! | agents, webhooks | what they know of themselves, when asked |
//!
//! The counters belong to a server, not to the process: there may be several in one. No label has a name that
//! clients choose (a thread, a run), so their number is bounded.

mod show;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use http::{Method, StatusCode};

use crate::feed::StreamFormat;
pub(crate) use show::show;
pub(crate) use text::Text;

/// What a request is about, as far as its address tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteClass {
    /// Frames are written.
    Write,
    /// Events are read.
    Read,
    /// A WebSocket is opened.
    Socket,
    /// Anything else under `/v1`.
    Resource,
    /// What stands in for another system.
    Facade,
    /// Health, metrics, the OpenAPI document.
    Server,
    /// Whatever else is asked for.
    Other,
}

impl RouteClass {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Write, "write"),
        (Self::Read, "read"),
        (Self::Socket, "socket"),
        (Self::Resource, "resource"),
        (Self::Facade, "facade"),
        (Self::Server, "server"),
        (Self::Other, "other"),
    ];

    /// Tells the class of a request.
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let is_for_frames = path.starts_with("/v1/") && path.ends_with("/events");
        match path {
            "/v1/ws" | "/loom" => Self::Socket,
            "/healthz" | "/readyz" | "/metrics" | "/openapi.json" => Self::Server,
            _ if is_for_frames && method == Method::POST => Self::Write,
            _ if is_for_frames => Self::Read,
            _ if path.starts_with("/v1/") => Self::Resource,
            _ if ["/api/", "/agent/", "/ag-ui/"].iter().any(|facade| path.starts_with(facade)) => {
                Self::Facade
            }
            _ => Self::Other,
        }
    }
}

/// How the frames of a reader are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Sse,
    /// One frame a line.
    Ndjson,
    /// Text without frames.
    Text,
    /// Messages of a WebSocket.
    WebSocket,
}

impl Framing {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Sse, "sse"), (Self::Ndjson, "ndjson"), (Self::Text, "text"), (Self::WebSocket, "websocket")];
}

impl From<StreamFormat> for Framing {
    fn from(format: StreamFormat) -> Self {
        match format {
            StreamFormat::Sse => Self::Sse,
            StreamFormat::Ndjson | StreamFormat::NdjsonWithCursors => Self::Ndjson,
            StreamFormat::Plain => Self::Text,
        }
    }
}

/// Statuses that are told apart: 100 to 599.
const STATUSES: usize = 500;

/// What a server counts.
pub(crate) struct Metrics {
    began: Instant,
    began_at: SystemTime,
    /// A row for each class; most of it stays zero and is not told.
    requests: [Box<[AtomicU64]>; RouteClass::ALL.len()],
    readers: [AtomicU64; Framing::ALL.len()],
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            began_at: SystemTime::now(),
            requests: std::array::from_fn(|_| (0..STATUSES).map(|_| AtomicU64::new(0)).collect()),
            readers: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Metrics {
    /// Counts a request that was answered.
    pub(crate) fn answered(&self, class: RouteClass, status: StatusCode) {
        let at = usize::from(status.as_u16()).saturating_sub(100);
        if let Some(count) = self.requests[class as usize].get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a reader for as long as what is given back lives.
    pub(crate) fn reader(self: &Arc<Self>, framing: Framing) -> OpenReader {
        self.readers[framing as usize].fetch_add(1, Ordering::Relaxed);
        OpenReader { metrics: self.clone(), framing }
    }
}

/// A reader that is counted.
pub(crate) struct OpenReader {
    metrics: Arc<Metrics>,
    framing: Framing,
}

impl Drop for OpenReader {
    fn drop(&mut self) {
        self.metrics.readers[self.framing as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_a_request_is_told_by_its_address() {
        for (method, path, class) in [
            (Method::POST, "/v1/runs/r/events", RouteClass::Write),
            (Method::GET, "/v1/threads/t/events", RouteClass::Read),
            (Method::GET, "/v1/ws", RouteClass::Socket),
            (Method::GET, "/v1/runs", RouteClass::Resource),
            (Method::POST, "/ag-ui/a", RouteClass::Facade),
            (Method::GET, "/metrics", RouteClass::Server),
            (Method::GET, "/", RouteClass::Other),
        ] {
            assert_eq!(RouteClass::of(&method, path), class, "{method} {path}");
        }
    }

    #[test]
    fn every_class_and_framing_has_its_place() {
        assert!(RouteClass::ALL.iter().enumerate().all(|(at, (class, _))| *class as usize == at));
        assert!(Framing::ALL.iter().enumerate().all(|(at, (framing, _))| *framing as usize == at));
    }

    #[test]
    fn no_status_is_too_odd_to_be_counted() {
        let metrics = Metrics::default();
        for status in [100, 599, 600, 999] {
            metrics.answered(RouteClass::Other, StatusCode::from_u16(status).unwrap());
        }
    }
}
