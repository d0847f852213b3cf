//! Metrics of the server: counters, and `GET /metrics` in the Prometheus text format.
//!
//! | from | what |
//! |---|---|
//! | counters here | requests, readers: one relaxed addition per request or stream, none per event |
//! | `Log::figures` | records written, open runs, size of the store: counted per commit, or at a scrape |
//! | agents, webhooks | their state at a scrape |
//!
//! The counters belong to a server, not to the process: a process may run several. No label holds a name that clients
//! choose (a thread, a run), so the number of series is bounded.

pub(crate) mod show;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use http::StatusCode;

use crate::feed::StreamFormat;
pub(crate) use text::PrometheusText;

/// The class of a request: that of its route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteClass {
    /// Writing frames.
    Write,
    /// Reading events.
    Read,
    /// Opening a WebSocket.
    Socket,
    /// Threads, runs, and whatever else `/v1` has.
    Resource,
    /// A façade.
    Facade,
    /// Health, metrics, the OpenAPI document.
    Server,
    /// Requests without a route: the console, and what nothing answers.
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
}

/// How frames reach a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReaderTransport {
    /// Server-sent events.
    Sse,
    /// One frame per line.
    Ndjson,
    /// Text without frames.
    Text,
    /// WebSocket messages.
    WebSocket,
}

impl ReaderTransport {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Sse, "sse"), (Self::Ndjson, "ndjson"), (Self::Text, "text"), (Self::WebSocket, "websocket")];
}

impl From<StreamFormat> for ReaderTransport {
    fn from(format: StreamFormat) -> Self {
        match format {
            StreamFormat::Sse => Self::Sse,
            StreamFormat::Ndjson | StreamFormat::NdjsonWithCursors => Self::Ndjson,
            StreamFormat::Plain => Self::Text,
        }
    }
}

/// What a connection in a socket loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopRole {
    /// Sends small writes.
    Writer,
    /// Reads a stream at its end.
    Reader,
}

impl LoopRole {
    const ALL: [(Self, &'static str); 2] = [(Self::Writer, "writer"), (Self::Reader, "reader")];
}

/// Number of status codes that are counted: 100 to 599.
const STATUSES: usize = 500;

/// The counters of a server.
pub(crate) struct Metrics {
    started: Instant,
    started_at: SystemTime,
    /// One row per class, one counter per status; zeros are not shown.
    requests: [Box<[AtomicU64]>; RouteClass::ALL.len()],
    readers: [AtomicU64; ReaderTransport::ALL.len()],
    loop_connections: [AtomicU64; LoopRole::ALL.len()],
    loop_requests: [AtomicU64; LoopRole::ALL.len()],
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            started_at: SystemTime::now(),
            requests: std::array::from_fn(|_| (0..STATUSES).map(|_| AtomicU64::new(0)).collect()),
            readers: std::array::from_fn(|_| AtomicU64::new(0)),
            loop_connections: std::array::from_fn(|_| AtomicU64::new(0)),
            loop_requests: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Metrics {
    /// Counts an answered request.
    pub(crate) fn count_request(&self, class: RouteClass, status: StatusCode) {
        let at = usize::from(status.as_u16()).saturating_sub(100);
        if let Some(count) = self.requests[class as usize].get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a connection that a socket loop has taken over.
    pub(crate) fn add_loop_connection(&self, role: LoopRole) {
        self.loop_connections[role as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that has left its socket loop.
    pub(crate) fn remove_loop_connection(&self, role: LoopRole) {
        self.loop_connections[role as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts an append that a socket loop has answered, or a stream that it has taken over.
    pub(crate) fn count_loop_request(&self, role: LoopRole) {
        self.loop_requests[role as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an open reader until the returned guard is dropped.
    pub(crate) fn reader(self: &Arc<Self>, transport: ReaderTransport) -> OpenReader {
        self.readers[transport as usize].fetch_add(1, Ordering::Relaxed);
        OpenReader { metrics: self.clone(), transport }
    }
}

/// Guard of a counted reader.
pub(crate) struct OpenReader {
    metrics: Arc<Metrics>,
    transport: ReaderTransport,
}

impl Drop for OpenReader {
    fn drop(&mut self) {
        self.metrics.readers[self.transport as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_and_framing_has_its_place() {
        assert!(RouteClass::ALL.iter().enumerate().all(|(at, (class, _))| *class as usize == at));
        assert!(
            ReaderTransport::ALL.iter().enumerate().all(|(at, (transport, _))| *transport as usize == at)
        );
    }

    #[test]
    fn unusual_statuses_do_not_panic() {
        let metrics = Metrics::default();
        for status in [100, 599, 600, 999] {
            metrics.count_request(RouteClass::Other, StatusCode::from_u16(status).unwrap());
        }
    }
}
