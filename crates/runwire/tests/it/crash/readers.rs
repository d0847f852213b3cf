//! Readers that resume after every break, and record every frame.

use std::io;
use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::context::TestContext;
use super::http::{BodyPiece, Exchange, get};
use super::random::Random;
use super::socket::Socket;

/// A frame as a reader got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) cursor: String,
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReaderTransport {
    /// Resumes with `Last-Event-ID`.
    Sse,
    /// Resumes with `after=` and the cursor of its last line.
    Ndjson,
    /// Resumes with `after` and the cursor of its last frame.
    WebSocket,
}

/// What is read, and how.
#[derive(Debug, Clone)]
pub(crate) struct ReaderPlan {
    pub(crate) scope: Scope,
    /// A dialect, or `raw`.
    pub(crate) dialect: &'static str,
    pub(crate) over: ReaderTransport,
}

#[derive(Debug, Clone)]
pub(crate) enum Scope {
    Run(String),
    Thread(String),
}

impl Scope {
    pub(crate) fn path(&self) -> String {
        match self {
            Self::Run(run) => format!("/v1/runs/{run}"),
            Self::Thread(thread) => format!("/v1/threads/{thread}"),
        }
    }
}

/// What a reader saw.
#[derive(Debug)]
pub(crate) struct ReaderLog {
    pub(crate) plan: ReaderPlan,
    /// Where it began.
    pub(crate) first: String,
    pub(crate) frames: Vec<Frame>,
    /// The times that it was connected.
    pub(crate) connections: usize,
    /// The last place that it was told, with a frame or without.
    last: String,
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// By the server, which has nothing more for now or ever.
    Ended,
    /// By the reader.
    RemainingBody,
}

impl ReaderPlan {
    /// Reads to the end, however often the connection breaks, and leaves now and then by itself.
    pub(crate) fn follow(self, context: &TestContext, mut random: Random, first: String) -> ReaderLog {
        // Whoever stays for long is cut off by the server's end; the others leave between any two frames. Where there are
        // several nodes, and few of them end, most leave.
        let leaves = if context.is_one_server() { 1 } else { 3 };
        let most = || if random.below(4) < leaves { random.below(40 * leaves) + 1 } else { usize::MAX };
        self.follow_by(context, first, most)
    }

    /// Reads to the end, a connection for every frame: each with another node, if there are several.
    pub(crate) fn reconnect_every_frame(self, context: &TestContext, first: String) -> ReaderLog {
        self.follow_by(context, first, || 1)
    }

    fn follow_by(self, context: &TestContext, first: String, mut most: impl FnMut() -> usize) -> ReaderLog {
        let _watch = context.watch();
        let mut seen =
            ReaderLog { plan: self, last: first.clone(), first, frames: Vec::new(), connections: 0 };
        let mut since = Instant::now();
        loop {
            context.check();
            match seen.connect(context, most()) {
                Ok(None) => return seen,
                Ok(Some(ConnectionEnd::Ended))
                    if context.are_readers_finishing() && matches!(seen.plan.scope, Scope::Thread(_)) =>
                {
                    return seen;
                }
                Ok(Some(_)) => since = Instant::now(),
                Err(_) => context.pause(since),
            }
        }
    }

    /// Reads everything that there is after a cursor.
    pub(crate) fn replay(&self, context: &TestContext, after: &str) -> Vec<Frame> {
        let plan = Self {
            over: if self.over == ReaderTransport::Sse {
                ReaderTransport::Sse
            } else {
                ReaderTransport::Ndjson
            },
            ..self.clone()
        };
        let mut seen = ReaderLog {
            plan,
            first: after.to_owned(),
            last: after.to_owned(),
            frames: Vec::new(),
            connections: 0,
        };
        seen.stream(context, usize::MAX, false).unwrap();
        seen.frames
    }
}

impl ReaderLog {
    /// Reads as much as one connection gives; nothing more comes of a run that has ended.
    fn connect(&mut self, context: &TestContext, most: usize) -> io::Result<Option<ConnectionEnd>> {
        let most = self.frames.len().saturating_add(most);
        // A thread never ends, so its readers ask for what there is once nothing more comes.
        let follow = !(context.are_readers_finishing() && matches!(self.plan.scope, Scope::Thread(_)));
        if self.plan.over == ReaderTransport::WebSocket && follow {
            return self.subscribe(context, most);
        }
        self.stream(context, most, follow)
    }

    fn stream(
        &mut self,
        context: &TestContext,
        most: usize,
        follow: bool,
    ) -> io::Result<Option<ConnectionEnd>> {
        let ReaderPlan { scope, dialect, over } = &self.plan;
        let mut path = match *dialect {
            "raw" => format!("{}/events?raw=true", scope.path()),
            dialect => format!("{}/events?dialect={dialect}", scope.path()),
        };
        path.push_str(if follow { "" } else { "&follow=false" });
        let mut fields = Vec::new();
        if *over == ReaderTransport::Sse {
            fields.push(("accept", "text/event-stream".to_owned()));
            fields.push(("last-event-id", self.last.clone()));
        } else {
            fields.push(("accept", "application/x-ndjson".to_owned()));
            path.push_str(&format!("&cursors=true&after={}", self.last));
        }
        let mut exchange = Exchange::begin(context.server(), "GET", &path, &fields, None)?;
        match exchange.status()? {
            200 => {}
            204 => return Ok(None),
            // The run or thread is not there yet, or the server is stopping.
            404 if self.frames.is_empty() => return Err(io::ErrorKind::NotFound.into()),
            503 => return Err(io::ErrorKind::NotConnected.into()),
            status => panic!("{path} after {}: {status} {:?}", self.last, exchange.piece()),
        }
        self.connections += 1;
        let mut bytes = Vec::new();
        loop {
            match exchange.piece()? {
                BodyPiece::Bytes(more) => bytes.extend_from_slice(&more),
                BodyPiece::Quiet => {
                    context.check();
                    if follow
                        && context.are_readers_finishing()
                        && matches!(self.plan.scope, Scope::Thread(_))
                    {
                        return Ok(Some(ConnectionEnd::RemainingBody));
                    }
                    continue;
                }
                BodyPiece::End => return Ok(Some(ConnectionEnd::Ended)),
            }
            if self.take(&mut bytes, most) {
                return Ok(Some(ConnectionEnd::RemainingBody));
            }
        }
    }

    /// Takes the complete frames out of the buffer; returns true if the limit is reached.
    fn take(&mut self, bytes: &mut Vec<u8>, most: usize) -> bool {
        let (end, length) = match self.plan.over {
            ReaderTransport::Sse => (&b"\n\n"[..], 2),
            ReaderTransport::Ndjson | ReaderTransport::WebSocket => (&b"\n"[..], 1),
        };
        let mut from = 0;
        while let Some(at) = bytes[from..].windows(length).position(|window| window == end) {
            let block = std::str::from_utf8(&bytes[from..from + at]).unwrap();
            from += at + length;
            match self.plan.over {
                ReaderTransport::Sse => self.take_event(block),
                ReaderTransport::Ndjson | ReaderTransport::WebSocket if block.is_empty() => {}
                ReaderTransport::Ndjson | ReaderTransport::WebSocket => self.take_wrapped(block),
            }
            if self.frames.len() >= most {
                return true;
            }
        }
        bytes.drain(..from);
        false
    }

    fn take_event(&mut self, block: &str) {
        let (mut name, mut data) = (None, None::<String>);
        for line in block.lines() {
            let Some((field, value)) = line.split_once(':') else { panic!("no field: {line}") };
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" | "retry" => {}
                "id" => self.last = value.to_owned(),
                "event" => name = Some(value.to_owned()),
                "data" => match &mut data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => data = Some(value.to_owned()),
                },
                field => panic!("no field of an event: {field}"),
            }
        }
        if let Some(data) = data {
            self.frames.push(Frame { cursor: self.last.clone(), name, data });
        }
    }

    /// Takes `{cursor, frame}`, whatever else stands beside them.
    fn take_wrapped(&mut self, text: &str) {
        #[derive(Deserialize)]
        struct Wrapped {
            cursor: String,
            frame: Box<RawValue>,
        }
        let Wrapped { cursor, frame } =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        self.last.clone_from(&cursor);
        self.frames.push(Frame { cursor, name: None, data: frame.get().to_owned() });
    }

    fn subscribe(&mut self, context: &TestContext, most: usize) -> io::Result<Option<ConnectionEnd>> {
        let ReaderPlan { scope, dialect, .. } = &self.plan;
        let (kind, id) = match scope {
            Scope::Run(run) => ("run", run),
            Scope::Thread(thread) => ("thread", thread),
        };
        let after = &self.last;
        let mut socket = Socket::connect(context.server())?;
        socket.send(&format!(
            r#"{{"op":"subscribe","id":"s","{kind}":"{id}","dialect":"{dialect}","after":"{after}"}}"#
        ))?;
        let mut connected = false;
        loop {
            let Some(text) = socket.receive()? else {
                context.check();
                if context.are_readers_finishing() && matches!(self.plan.scope, Scope::Thread(_)) {
                    return Ok(Some(ConnectionEnd::RemainingBody));
                }
                continue;
            };
            match super::socket::op(&text).as_str() {
                "frame" => self.take_wrapped(&text),
                "caught_up" => {}
                "end" => return Ok(None),
                _ if text.contains("_unknown") && self.frames.is_empty() => {
                    return Err(io::ErrorKind::NotFound.into());
                }
                _ if text.contains("store_unavailable") => return Err(io::ErrorKind::NotConnected.into()),
                op => panic!("{op} after {}: {text}", self.last),
            }
            self.connections += usize::from(!std::mem::replace(&mut connected, true));
            if self.frames.len() >= most {
                return Ok(Some(ConnectionEnd::RemainingBody));
            }
        }
    }

    /// Compares what the reader saw with what there is now.
    pub(crate) fn check(&self, context: &TestContext) {
        let now = self.plan.replay(context, &self.first);
        let what = format!("{:?} from {}, {} connections", self.plan, self.first, self.connections);
        for (at, (seen, is)) in self.frames.iter().zip(&now).enumerate() {
            assert_eq!(seen, is, "{what}: frame {at} is not what it was");
        }
        assert_eq!(
            self.frames.len(),
            now.len(),
            "{what}: the last frames differ: {:?} {:?}",
            self.frames.last(),
            now.last()
        );
    }
}

/// Waits until a run or thread exists, and returns its cursor.
pub(crate) fn wait_for_cursor(context: &TestContext, scope: &Scope) -> String {
    let since = Instant::now();
    loop {
        match get(context.server(), &scope.path()) {
            Ok(answer) if answer.status == 200 => {
                let info = answer.json();
                return match scope {
                    Scope::Run(_) => info["cursor"].as_str().unwrap().to_owned(),
                    Scope::Thread(_) => info["head"].to_string(),
                };
            }
            Ok(answer) => assert!(matches!(answer.status, 404 | 503), "{answer:?}"),
            Err(_) => {}
        }
        context.pause(since);
    }
}
