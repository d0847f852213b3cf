//! Writers that resume after every break, and record what they sent and what was acknowledged.

use std::io;
use std::time::Instant;

use super::context::TestContext;
use super::frames::{RUN, WriterDialect};
use super::http::{Answer, Exchange, KeptConnection, WriteCounts, get, post};
use super::random::Random;
use super::socket::{Socket, op};

/// What a writer has sent, and how much of it the server says it has.
#[derive(Debug)]
pub(crate) struct WriteLog {
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

impl WriteLog {
    /// Returns true if the writer should finish; each writes a minimum.
    fn is_finished(&self, context: &TestContext) -> bool {
        context.check();
        context.are_writers_finishing() && self.sent.len() >= LEAST
    }
}

/// Frames that a writer sends at least.
const LEAST: usize = 12;

/// Someone who writes to a run.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) name: String,
    pub(crate) run: String,
    pub(crate) dialect: WriterDialect,
    /// Bytes that each frame is made longer by.
    pub(crate) weight: usize,
}

impl Writer {
    pub(crate) fn new(name: impl Into<String>, run: impl Into<String>, dialect: WriterDialect) -> Self {
        Self { name: name.into(), run: run.into(), dialect, weight: 0 }
    }

    pub(crate) fn weighing(self, weight: usize) -> Self {
        Self { weight, ..self }
    }

    /// Says who it is, and asks how far it came whenever the server was gone; or repeats what it sent last.
    pub(crate) fn stamped(self, context: &TestContext, mut random: Random) -> WriteLog {
        let _watch = context.watch();
        let mut log = self.log();
        let mut connection = KeptConnection::default();
        let mut epoch = 1;
        while !log.is_finished(context) {
            let from = log.acknowledged;
            let count = self.send_more(&mut log, &mut random);
            let since = Instant::now();
            let mut first_try = true;
            while log.acknowledged < from + count {
                let at = log.acknowledged;
                match self.post(context, &mut connection, Some((epoch, at)), &log.sent[at..]) {
                    Ok(written) => {
                        assert_eq!(written.all(), log.sent.len() - at, "{self:?}");
                        assert!(!first_try || written.duplicates == 0, "{self:?}: {written:?}");
                        log.acknowledged = log.sent.len();
                    }
                    Err(_) => {
                        log.cuts += 1;
                        context.pause(since);
                        if random.one_in(2) {
                            self.ask(context, &mut log);
                            epoch += 1;
                        }
                    }
                }
                first_try = false;
            }
            std::thread::sleep(random.millis(6));
        }
        log
    }

    /// Keeps a body open and writes frame by frame, cut anywhere; the answer comes with the end of the body.
    pub(crate) fn open_body(self, context: &TestContext, mut random: Random) -> WriteLog {
        let _watch = context.watch();
        let mut log = self.log();
        let mut epoch = 0;
        let mut since = Instant::now();
        loop {
            self.ask(context, &mut log);
            if log.is_finished(context) && log.acknowledged == log.sent.len() {
                return log;
            }
            epoch += 1;
            match self.body(context, epoch, &mut log, &mut random) {
                Ok(()) => since = Instant::now(),
                Err(_) => {
                    log.cuts += 1;
                    context.pause(since);
                }
            }
        }
    }

    fn body(
        &self,
        context: &TestContext,
        epoch: u64,
        log: &mut WriteLog,
        random: &mut Random,
    ) -> io::Result<()> {
        let from = log.acknowledged;
        let mut fields = vec![("content-type", "application/x-ndjson".to_owned())];
        fields.extend(self.stamp(epoch, from));
        let mut exchange = Exchange::begin(context.server(), "POST", &self.path(), &fields, None)?;
        let mut at = from;
        let frames = random.below(60) + 1;
        while at < log.sent.len() || (at < from + frames && !log.is_finished(context)) {
            if at == log.sent.len() {
                log.sent.push(self.frame(at));
            }
            let line = format!("{}\n", log.sent[at]);
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
        assert!(!context.is_one_server() || written.duplicates == 0, "{self:?}: {written:?}");
        log.acknowledged = at;
        Ok(())
    }

    /// Says nothing about itself: what was not acknowledged is sent anew, under new numbers.
    pub(crate) fn anonymous(self, context: &TestContext, mut random: Random) -> WriteLog {
        let _watch = context.watch();
        let mut log = self.log();
        let mut tries = Vec::new();
        let mut connection = KeptConnection::default();
        let mut since = Instant::now();
        while !log.is_finished(context) {
            let from = log.sent.len();
            self.send_more(&mut log, &mut random);
            let to = log.sent.len();
            let posted = self.post(context, &mut connection, None, &log.sent[from..to]);
            tries.push(Try { from, to, acknowledged: posted.is_ok() });
            match posted {
                Ok(written) => {
                    assert_eq!(written, WriteCounts { accepted: to - from, duplicates: 0 }, "{self:?}");
                    since = Instant::now();
                }
                Err(_) => {
                    log.cuts += 1;
                    context.pause(since);
                }
            }
            std::thread::sleep(random.millis(6));
        }
        WriteLog { tries: Some(tries), ..log }
    }

    /// Writes a stream of several runs to a thread; repeats what was not acknowledged.
    pub(crate) fn several_runs(self, context: &TestContext, mut random: Random) -> WriteLog {
        let _watch = context.watch();
        let mut log = self.log();
        let mut since = Instant::now();
        let path = format!("/v1/threads/{}/events?dialect=ag-ui", self.run);
        loop {
            let whole_runs = log.sent.len().is_multiple_of(RUN);
            if log.acknowledged == log.sent.len() {
                if log.is_finished(context) && whole_runs {
                    return log;
                }
                let left = RUN - log.sent.len() % RUN;
                for _ in 0..=random.below(if context.are_writers_finishing() { left } else { 2 * RUN }) {
                    log.sent.push(WriterDialect::frame_of_thread(&self.name, log.sent.len()));
                }
            }
            let at = log.acknowledged;
            let body = lines(&log.sent[at..]);
            match post(context.server(), &path, &self.stamp(0, at), &body).and_then(|answer| taken(&answer)) {
                Ok(written) => {
                    assert_eq!(written.all(), log.sent.len() - at, "{self:?}");
                    log.acknowledged = log.sent.len();
                    since = Instant::now();
                }
                Err(_) => {
                    log.cuts += 1;
                    context.pause(since);
                }
            }
            std::thread::sleep(random.millis(6));
        }
    }

    /// Writes over a WebSocket, and repeats what was not acknowledged over the next one.
    pub(crate) fn over_socket(self, context: &TestContext, mut random: Random) -> WriteLog {
        let _watch = context.watch();
        let mut log = self.log();
        let mut since = Instant::now();
        let mut socket = None;
        loop {
            if log.acknowledged == log.sent.len() {
                if log.is_finished(context) {
                    return log;
                }
                self.send_more(&mut log, &mut random);
            }
            match self.send(context, &mut socket, &log) {
                Ok(written) => {
                    assert_eq!(written.all(), log.sent.len() - log.acknowledged, "{self:?}");
                    log.acknowledged = log.sent.len();
                    since = Instant::now();
                }
                Err(_) => {
                    socket = None;
                    log.cuts += 1;
                    context.pause(since);
                }
            }
            std::thread::sleep(random.millis(6));
        }
    }

    fn send(
        &self,
        context: &TestContext,
        socket: &mut Option<Socket>,
        log: &WriteLog,
    ) -> io::Result<WriteCounts> {
        let socket = match socket {
            Some(socket) => socket,
            None => socket.insert(Socket::connect(context.server())?),
        };
        let (at, dialect) = (log.acknowledged, self.dialect.name());
        let frames = log.sent[at..].join(",");
        let (run, name) = (&self.run, &self.name);
        socket.send(&format!(
            r#"{{"op":"write","id":1,"run":"{run}","dialect":"{dialect}","producer":"{name}","seq":{at},"frames":[{frames}]}}"#
        ))?;
        loop {
            context.check();
            let Some(text) = socket.receive()? else { continue };
            match op(&text).as_str() {
                "ack" => return Ok(Answer { status: 200, body: text }.written()),
                "error" if text.contains("unavailable") => return Err(io::ErrorKind::NotConnected.into()),
                _ => panic!("{self:?}: {text}"),
            }
        }
    }

    fn log(&self) -> WriteLog {
        WriteLog { writer: self.name.clone(), sent: Vec::new(), acknowledged: 0, tries: None, cuts: 0 }
    }

    fn frame(&self, number: usize) -> String {
        let mut frame = self.dialect.frame(&self.name, number);
        if self.weight > 0 {
            let end = frame.pop();
            frame.push_str(&format!(r#","padding":"{}""#, "x".repeat(self.weight)));
            frame.extend(end);
        }
        frame
    }

    /// Makes the next few frames.
    fn send_more(&self, log: &mut WriteLog, random: &mut Random) -> usize {
        let count = random.below(8) + 1;
        for _ in 0..count {
            log.sent.push(self.frame(log.sent.len()));
        }
        count
    }

    fn post(
        &self,
        context: &TestContext,
        connection: &mut KeptConnection,
        stamp: Option<(u64, usize)>,
        frames: &[String],
    ) -> io::Result<WriteCounts> {
        let stamp = stamp.map(|(epoch, at)| self.stamp(epoch, at));
        let fields = stamp.as_ref().map_or(&[][..], |stamp| &stamp[..]);
        taken(&connection.post(context.server(), &self.path(), fields, &lines(frames))?)
    }

    /// Learns how far it came; whatever was acknowledged must be there.
    fn ask(&self, context: &TestContext, log: &mut WriteLog) {
        let since = Instant::now();
        let path = format!("/v1/runs/{}/producers/{}", self.run, self.name);
        let next = loop {
            match get(context.server(), &path) {
                Ok(answer) if answer.status == 404 => break 0,
                Ok(answer) if answer.status == 200 => break answer.json()["next"].as_u64().unwrap(),
                Ok(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
                Err(_) => {}
            }
            context.pause(since);
        };
        let next = usize::try_from(next).unwrap();
        let possible = log.acknowledged..=log.sent.len();
        assert!(possible.contains(&next), "{self:?}: the server is at {next}, and {possible:?} is possible");
        log.acknowledged = next;
    }

    fn path(&self) -> String {
        format!("/v1/runs/{}/events?dialect={}", self.run, self.dialect.name())
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
fn taken(answer: &Answer) -> io::Result<WriteCounts> {
    match answer.status {
        200 => Ok(answer.written()),
        503 => Err(io::ErrorKind::NotConnected.into()),
        _ => panic!("{answer:?}"),
    }
}

fn lines(frames: &[String]) -> String {
    frames.iter().map(|frame| format!("{frame}\n")).collect()
}
