//! Writers that go on wherever they were cut off, and remember what they sent and what was acknowledged.

use std::io;
use std::time::Instant;

use super::frames::{RUN, Tongue};
use super::http::{Answer, Exchange, Written, get, post};
use super::random::Random;
use super::socket::{Socket, op};
use super::world::World;

/// What a writer has sent, and how much of it the server says it has.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) writer: String,
    pub(crate) sent: Vec<String>,
    pub(crate) acknowledged: usize,
    /// Where retries are new frames: first and last number of each try, and whether it was acknowledged.
    pub(crate) tries: Option<Vec<Try>>,
    /// How often the server was gone in the middle of something.
    pub(crate) cuts: usize,
}

/// One body of a writer that cannot find out what was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Try {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) acknowledged: bool,
}

impl Ledger {
    /// Returns whether enough is written; everyone says something.
    fn is_finished(&self, world: &World) -> bool {
        world.check();
        world.writers_finish() && self.sent.len() >= LEAST
    }
}

/// Frames that a writer sends at least.
const LEAST: usize = 12;

/// Someone who writes to a run.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) name: String,
    pub(crate) run: String,
    pub(crate) tongue: Tongue,
    /// Bytes that each frame is made longer by.
    pub(crate) weight: usize,
}

impl Writer {
    pub(crate) fn new(name: impl Into<String>, run: impl Into<String>, tongue: Tongue) -> Self {
        Self { name: name.into(), run: run.into(), tongue, weight: 0 }
    }

    pub(crate) fn weighing(self, weight: usize) -> Self {
        Self { weight, ..self }
    }

    /// Says who it is, and asks how far it came whenever the server was gone; or repeats what it sent last.
    pub(crate) fn stamped(self, world: &World, mut random: Random) -> Ledger {
        let _watch = world.watch();
        let mut ledger = self.ledger();
        let mut epoch = 1;
        while !ledger.is_finished(world) {
            let from = ledger.acknowledged;
            let count = self.send_more(&mut ledger, &mut random);
            let since = Instant::now();
            let mut first_try = true;
            while ledger.acknowledged < from + count {
                let at = ledger.acknowledged;
                match self.post(world, Some((epoch, at)), &ledger.sent[at..]) {
                    Ok(written) => {
                        assert_eq!(written.all(), ledger.sent.len() - at, "{self:?}");
                        assert!(!first_try || written.duplicates == 0, "{self:?}: {written:?}");
                        ledger.acknowledged = ledger.sent.len();
                    }
                    Err(_) => {
                        ledger.cuts += 1;
                        world.pause(since);
                        if random.one_in(2) {
                            self.ask(world, &mut ledger);
                            epoch += 1;
                        }
                    }
                }
                first_try = false;
            }
            std::thread::sleep(random.millis(6));
        }
        ledger
    }

    /// Keeps a body open and writes frame by frame, cut anywhere; the answer comes with the end of the body.
    pub(crate) fn open_body(self, world: &World, mut random: Random) -> Ledger {
        let _watch = world.watch();
        let mut ledger = self.ledger();
        let mut epoch = 0;
        let mut since = Instant::now();
        loop {
            self.ask(world, &mut ledger);
            if ledger.is_finished(world) && ledger.acknowledged == ledger.sent.len() {
                return ledger;
            }
            epoch += 1;
            match self.body(world, epoch, &mut ledger, &mut random) {
                Ok(()) => since = Instant::now(),
                Err(_) => {
                    ledger.cuts += 1;
                    world.pause(since);
                }
            }
        }
    }

    fn body(&self, world: &World, epoch: u64, ledger: &mut Ledger, random: &mut Random) -> io::Result<()> {
        let from = ledger.acknowledged;
        let mut fields = vec![("content-type", "application/x-ndjson".to_owned())];
        fields.extend(self.stamp(epoch, from));
        let mut exchange = Exchange::begin(world.server(), "POST", &self.path(), &fields, None)?;
        let mut at = from;
        let frames = random.below(60) + 1;
        while at < ledger.sent.len() || (at < from + frames && !ledger.is_finished(world)) {
            if at == ledger.sent.len() {
                ledger.sent.push(self.frame(at));
            }
            let line = format!("{}\n", ledger.sent[at]);
            let (head, tail) = line.as_bytes().split_at(random.below(line.len()));
            for part in [head, tail].into_iter().filter(|part| !part.is_empty()) {
                exchange.send(part)?;
            }
            at += 1;
            std::thread::sleep(random.millis(4));
        }
        exchange.send(b"")?;
        let written = taken(&exchange.answer()?)?;
        assert_eq!(written.all(), at - from, "{self:?}");
        // What a node had begun when it was killed may be there just after another one was asked.
        assert!(!world.is_one_server() || written.duplicates == 0, "{self:?}: {written:?}");
        ledger.acknowledged = at;
        Ok(())
    }

    /// Says nothing about itself: what was not acknowledged is sent anew, under new numbers.
    pub(crate) fn anonymous(self, world: &World, mut random: Random) -> Ledger {
        let _watch = world.watch();
        let mut ledger = self.ledger();
        let mut tries = Vec::new();
        let mut since = Instant::now();
        while !ledger.is_finished(world) {
            let from = ledger.sent.len();
            self.send_more(&mut ledger, &mut random);
            let to = ledger.sent.len();
            let posted = self.post(world, None, &ledger.sent[from..to]);
            tries.push(Try { from, to, acknowledged: posted.is_ok() });
            match posted {
                Ok(written) => {
                    assert_eq!(written, Written { accepted: to - from, duplicates: 0 }, "{self:?}");
                    since = Instant::now();
                }
                Err(_) => {
                    ledger.cuts += 1;
                    world.pause(since);
                }
            }
            std::thread::sleep(random.millis(6));
        }
        Ledger { tries: Some(tries), ..ledger }
    }

    /// Writes a stream of several runs to a thread; repeats what was not acknowledged.
    pub(crate) fn several_runs(self, world: &World, mut random: Random) -> Ledger {
        let _watch = world.watch();
        let mut ledger = self.ledger();
        let mut since = Instant::now();
        let path = format!("/v1/threads/{}/events?dialect=ag-ui", self.run);
        loop {
            let whole_runs = ledger.sent.len().is_multiple_of(RUN);
            if ledger.acknowledged == ledger.sent.len() {
                if ledger.is_finished(world) && whole_runs {
                    return ledger;
                }
                let left = RUN - ledger.sent.len() % RUN;
                for _ in 0..=random.below(if world.writers_finish() { left } else { 2 * RUN }) {
                    ledger.sent.push(Tongue::frame_of_thread(&self.name, ledger.sent.len()));
                }
            }
            let at = ledger.acknowledged;
            let body = lines(&ledger.sent[at..]);
            match post(world.server(), &path, &self.stamp(0, at), &body).and_then(|answer| taken(&answer)) {
                Ok(written) => {
                    assert_eq!(written.all(), ledger.sent.len() - at, "{self:?}");
                    ledger.acknowledged = ledger.sent.len();
                    since = Instant::now();
                }
                Err(_) => {
                    ledger.cuts += 1;
                    world.pause(since);
                }
            }
            std::thread::sleep(random.millis(6));
        }
    }

    /// Writes over a WebSocket, and repeats what was not acknowledged over the next one.
    pub(crate) fn over_socket(self, world: &World, mut random: Random) -> Ledger {
        let _watch = world.watch();
        let mut ledger = self.ledger();
        let mut since = Instant::now();
        let mut socket = None;
        loop {
            if ledger.acknowledged == ledger.sent.len() {
                if ledger.is_finished(world) {
                    return ledger;
                }
                self.send_more(&mut ledger, &mut random);
            }
            match self.say(world, &mut socket, &ledger) {
                Ok(written) => {
                    assert_eq!(written.all(), ledger.sent.len() - ledger.acknowledged, "{self:?}");
                    ledger.acknowledged = ledger.sent.len();
                    since = Instant::now();
                }
                Err(_) => {
                    socket = None;
                    ledger.cuts += 1;
                    world.pause(since);
                }
            }
            std::thread::sleep(random.millis(6));
        }
    }

    fn say(&self, world: &World, socket: &mut Option<Socket>, ledger: &Ledger) -> io::Result<Written> {
        let socket = match socket {
            Some(socket) => socket,
            None => socket.insert(Socket::connect(world.server())?),
        };
        let (at, dialect) = (ledger.acknowledged, self.tongue.name());
        let frames = ledger.sent[at..].join(",");
        let (run, name) = (&self.run, &self.name);
        socket.say(&format!(
            r#"{{"op":"write","id":1,"run":"{run}","dialect":"{dialect}","producer":"{name}","seq":{at},"frames":[{frames}]}}"#
        ))?;
        loop {
            world.check();
            let Some(text) = socket.hear()? else { continue };
            match op(&text).as_str() {
                "ack" => return Ok(Answer { status: 200, body: text }.written()),
                "error" if text.contains("unavailable") => return Err(io::ErrorKind::NotConnected.into()),
                _ => panic!("{self:?}: {text}"),
            }
        }
    }

    fn ledger(&self) -> Ledger {
        Ledger { writer: self.name.clone(), sent: Vec::new(), acknowledged: 0, tries: None, cuts: 0 }
    }

    fn frame(&self, number: usize) -> String {
        let mut frame = self.tongue.frame(&self.name, number);
        if self.weight > 0 {
            let end = frame.pop();
            frame.push_str(&format!(r#","padding":"{}""#, "x".repeat(self.weight)));
            frame.extend(end);
        }
        frame
    }

    /// Makes the next few frames.
    fn send_more(&self, ledger: &mut Ledger, random: &mut Random) -> usize {
        let count = random.below(8) + 1;
        for _ in 0..count {
            ledger.sent.push(self.frame(ledger.sent.len()));
        }
        count
    }

    fn post(&self, world: &World, stamp: Option<(u64, usize)>, frames: &[String]) -> io::Result<Written> {
        let stamp = stamp.map(|(epoch, at)| self.stamp(epoch, at));
        let fields = stamp.as_ref().map_or(&[][..], |stamp| &stamp[..]);
        taken(&post(world.server(), &self.path(), fields, &lines(frames))?)
    }

    /// Learns how far it came; whatever was acknowledged must be there.
    fn ask(&self, world: &World, ledger: &mut Ledger) {
        let since = Instant::now();
        let path = format!("/v1/runs/{}/producers/{}", self.run, self.name);
        let next = loop {
            match get(world.server(), &path) {
                Ok(answer) if answer.status == 404 => break 0,
                Ok(answer) if answer.status == 200 => break answer.json()["next"].as_u64().unwrap(),
                Ok(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
                Err(_) => {}
            }
            world.pause(since);
        };
        let next = usize::try_from(next).unwrap();
        let possible = ledger.acknowledged..=ledger.sent.len();
        assert!(possible.contains(&next), "{self:?}: the server is at {next}, and {possible:?} is possible");
        ledger.acknowledged = next;
    }

    fn path(&self) -> String {
        format!("/v1/runs/{}/events?dialect={}", self.run, self.tongue.name())
    }

    fn stamp(&self, epoch: u64, at: usize) -> [(&'static str, String); 3] {
        [
            ("producer-id", self.name.clone()),
            ("producer-epoch", epoch.to_string()),
            ("producer-seq", at.to_string()),
        ]
    }
}

/// Takes an answer for what it is: an acknowledgement, or a server that cannot say.
fn taken(answer: &Answer) -> io::Result<Written> {
    match answer.status {
        200 => Ok(answer.written()),
        503 => Err(io::ErrorKind::NotConnected.into()),
        _ => panic!("{answer:?}"),
    }
}

fn lines(frames: &[String]) -> String {
    frames.iter().map(|frame| format!("{frame}\n")).collect()
}
