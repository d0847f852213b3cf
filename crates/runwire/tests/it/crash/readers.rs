//! Readers that come back wherever they were cut off, and remember every frame they saw.

use std::io;
use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::http::{Exchange, Piece, get};
use super::random::Random;
use super::socket::Socket;
use super::world::World;

/// A frame as a reader got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) cursor: String,
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// Resumes with `Last-Event-ID`.
    Sse,
    /// Resumes with `after=` and the cursor of its last line.
    Ndjson,
    /// Resumes with `after` and the cursor of its last frame.
    WebSocket,
}

/// What is read, and how.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) scope: Scope,
    /// A dialect, or `raw`.
    pub(crate) dialect: &'static str,
    pub(crate) over: Over,
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
pub(crate) struct Seen {
    pub(crate) reading: Reading,
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
pub(crate) enum Cut {
    /// By the server, which has nothing more for now or ever.
    Ended,
    /// By the reader.
    Left,
}

impl Reading {
    /// Reads to the end, however often the connection breaks, and leaves now and then by itself.
    pub(crate) fn follow(self, world: &World, mut random: Random, first: String) -> Seen {
        // Whoever stays for long is cut off by the server's end; the others leave between any two frames. Where there are
        // several nodes, and few of them end, most leave.
        let leaves = if world.is_one_server() { 1 } else { 3 };
        let most = || if random.below(4) < leaves { random.below(40 * leaves) + 1 } else { usize::MAX };
        self.follow_by(world, first, most)
    }

    /// Reads to the end, a connection for every frame: each with another node, if there are several.
    pub(crate) fn hop(self, world: &World, first: String) -> Seen {
        self.follow_by(world, first, || 1)
    }

    fn follow_by(self, world: &World, first: String, mut most: impl FnMut() -> usize) -> Seen {
        let _watch = world.watch();
        let mut seen = Seen { reading: self, last: first.clone(), first, frames: Vec::new(), connections: 0 };
        let mut since = Instant::now();
        loop {
            world.check();
            match seen.connect(world, most()) {
                Ok(None) => return seen,
                Ok(Some(Cut::Ended))
                    if world.readers_finish() && matches!(seen.reading.scope, Scope::Thread(_)) =>
                {
                    return seen;
                }
                Ok(Some(_)) => since = Instant::now(),
                Err(_) => world.pause(since),
            }
        }
    }

    /// Reads everything that there is after a cursor.
    pub(crate) fn replay(&self, world: &World, after: &str) -> Vec<Frame> {
        let reading =
            Self { over: if self.over == Over::Sse { Over::Sse } else { Over::Ndjson }, ..self.clone() };
        let mut seen = Seen {
            reading,
            first: after.to_owned(),
            last: after.to_owned(),
            frames: Vec::new(),
            connections: 0,
        };
        seen.stream(world, usize::MAX, false).unwrap();
        seen.frames
    }
}

impl Seen {
    /// Reads as much as one connection gives; nothing more comes of a run that has ended.
    fn connect(&mut self, world: &World, most: usize) -> io::Result<Option<Cut>> {
        let most = self.frames.len().saturating_add(most);
        // A thread never ends, so its readers ask for what there is once nothing more comes.
        let follow = !(world.readers_finish() && matches!(self.reading.scope, Scope::Thread(_)));
        if self.reading.over == Over::WebSocket && follow {
            return self.subscribe(world, most);
        }
        self.stream(world, most, follow)
    }

    fn stream(&mut self, world: &World, most: usize, follow: bool) -> io::Result<Option<Cut>> {
        let Reading { scope, dialect, over } = &self.reading;
        let mut path = match *dialect {
            "raw" => format!("{}/events?raw=true", scope.path()),
            dialect => format!("{}/events?dialect={dialect}", scope.path()),
        };
        path.push_str(if follow { "" } else { "&follow=false" });
        let mut fields = Vec::new();
        if *over == Over::Sse {
            fields.push(("accept", "text/event-stream".to_owned()));
            fields.push(("last-event-id", self.last.clone()));
        } else {
            fields.push(("accept", "application/x-ndjson".to_owned()));
            path.push_str(&format!("&cursors=true&after={}", self.last));
        }
        let mut exchange = Exchange::begin(world.server(), "GET", &path, &fields, None)?;
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
                Piece::Bytes(more) => bytes.extend_from_slice(&more),
                Piece::Quiet => {
                    world.check();
                    if follow && world.readers_finish() && matches!(self.reading.scope, Scope::Thread(_)) {
                        return Ok(Some(Cut::Left));
                    }
                    continue;
                }
                Piece::End => return Ok(Some(Cut::Ended)),
            }
            if self.take(&mut bytes, most) {
                return Ok(Some(Cut::Left));
            }
        }
    }

    /// Takes the whole frames out of what has come, and tells whether these are enough.
    fn take(&mut self, bytes: &mut Vec<u8>, most: usize) -> bool {
        let (end, length) = match self.reading.over {
            Over::Sse => (&b"\n\n"[..], 2),
            Over::Ndjson | Over::WebSocket => (&b"\n"[..], 1),
        };
        let mut from = 0;
        while let Some(at) = bytes[from..].windows(length).position(|window| window == end) {
            let block = std::str::from_utf8(&bytes[from..from + at]).unwrap();
            from += at + length;
            match self.reading.over {
                Over::Sse => self.take_event(block),
                Over::Ndjson | Over::WebSocket if block.is_empty() => {}
                Over::Ndjson | Over::WebSocket => self.take_wrapped(block),
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

    fn subscribe(&mut self, world: &World, most: usize) -> io::Result<Option<Cut>> {
        let Reading { scope, dialect, .. } = &self.reading;
        let (kind, id) = match scope {
            Scope::Run(run) => ("run", run),
            Scope::Thread(thread) => ("thread", thread),
        };
        let after = &self.last;
        let mut socket = Socket::connect(world.server())?;
        socket.say(&format!(
            r#"{{"op":"subscribe","id":"s","{kind}":"{id}","dialect":"{dialect}","after":"{after}"}}"#
        ))?;
        let mut connected = false;
        loop {
            let Some(text) = socket.hear()? else {
                world.check();
                if world.readers_finish() && matches!(self.reading.scope, Scope::Thread(_)) {
                    return Ok(Some(Cut::Left));
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
                return Ok(Some(Cut::Left));
            }
        }
    }

    /// Compares what the reader saw with what there is now.
    pub(crate) fn check(&self, world: &World) {
        let now = self.reading.replay(world, &self.first);
        let what = format!("{:?} from {}, {} connections", self.reading, self.first, self.connections);
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

/// Waits until a run or thread exists, and tells its last place.
pub(crate) fn present(world: &World, scope: &Scope) -> String {
    let since = Instant::now();
    loop {
        match get(world.server(), &scope.path()) {
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
        world.pause(since);
    }
}
