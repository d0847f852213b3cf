//! `runwire import`: the lines of a file, into a server.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream::unfold;
use runwire_client::{Client, Error, Imported, Problem};
use runwire_log::TransferItem;
use runwire_log::transfer::line;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};

use super::progress::Progress;
use super::reader::{Line, Read, Reader};
use super::sum::Runs;
use super::verify::{Difference, verify};
use super::{Counts, Kind};
use crate::Verdict;
use crate::arguments::ImportArguments;
use crate::client::interrupt::{BY_SIGNAL, Interrupt};
use crate::client::{block_on, connect};
use crate::failure::Failure;
use crate::input::Source;
use crate::screen;

/// Threads that are sent at once: small ones share the server's commits.
const AT_ONCE: usize = 8;
/// Pieces of a thread that wait to be sent.
const PIECES: usize = 8;
/// Bytes of lines that are sent together.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads a file, and sends it.
pub(crate) fn run(arguments: &ImportArguments) -> Result<Verdict, Failure> {
    let source = Source::open(arguments.file.as_deref())?;
    let progress = Progress::of_bytes(source.size);
    let name = source.name.clone();
    let mut reader = Reader::new(source);
    if arguments.check {
        return check(&mut reader, &progress);
    }
    let client = connect(&arguments.server)?;
    let mut interrupt = Interrupt::listen().map_err(Failure::Start)?;
    block_on(async {
        let mut importing = Importing::new(client, name, &progress, !arguments.no_verify);
        let imported = tokio::select! {
            imported = importing.import(reader) => imported,
            signal = interrupt.come() => {
                progress.finish();
                let done = importing.done;
                screen::say_note(format_args!("stopped after {done}; repeating the import goes on from there"));
                return Ok(Verdict::Exit(BY_SIGNAL + signal));
            }
        };
        progress.finish();
        Ok(importing.conclude(imported?))
    })
}

/// Looks at a file alone.
fn check(reader: &mut Reader, progress: &Progress) -> Result<Verdict, Failure> {
    let (mut last, mut ended) = (0, None);
    while let Some(next) = reader.next()? {
        progress.set(reader.bytes_read());
        let piece = line::read(&next.bytes).map_err(|bad| reader.wrong(&bad.to_string()))?;
        match piece {
            TransferItem::Thread(facts) => last = facts.oldest.saturating_sub(1),
            TransferItem::Record(stored) => {
                progress.count_record();
                if stored.record.seq != last + 1 {
                    let message = format!("record {} was expected next, not {}", last + 1, stored.record.seq);
                    return Err(reader.wrong(&message));
                }
                last = stored.record.seq;
            }
            TransferItem::End { head } => ended = Some(head).filter(|head| *head != last),
            _ => {}
        }
        if let Some(head) = ended {
            return Err(
                reader.wrong(&format!("the thread ends with record {head}, and the last one is {last}"))
            );
        }
    }
    progress.finish();
    screen::say_plainly(format_args!("{}: {} and nothing is missing", reader.name(), reader.counts()));
    Ok(Verdict::Fine)
}

/// What became of a thread.
struct Outcome {
    /// The line that it begins on.
    line: u64,
    sent: Result<Imported, Error>,
    /// What is not as it should be; nothing where nobody looked.
    differences: Result<Vec<Difference>, Error>,
    runs: u64,
}

struct Importing<'p> {
    client: Client,
    /// What the file is called.
    file: String,
    progress: &'p Progress,
    verify: bool,
    under_way: JoinSet<Outcome>,
    done: Counts,
    skipped: u64,
    differences: Vec<Difference>,
}

/// A thread that is being sent.
struct Sending {
    pieces: mpsc::Sender<Bytes>,
    /// Takes what its streams must be, when all of it is read.
    expected: oneshot::Sender<Runs>,
    thread: String,
    /// The line that it begins on.
    line: u64,
    runs: Runs,
    gathered: Vec<u8>,
}

#[derive(Deserialize)]
struct ThreadId {
    thread_id: String,
}

impl<'p> Importing<'p> {
    fn new(client: Client, file: String, progress: &'p Progress, verify: bool) -> Self {
        let (under_way, done) = (JoinSet::new(), Counts::default());
        Self { client, file, progress, verify, under_way, done, skipped: 0, differences: Vec::new() }
    }

    async fn import(&mut self, reader: Reader) -> Result<Counts, Failure> {
        let mut sending: Option<Sending> = None;
        let mut read = reader.read_ahead(self.verify);
        loop {
            match read.recv().await {
                Some(Read::Lines(lines, bytes)) => {
                    for line in lines {
                        self.send(&mut sending, line).await?;
                    }
                    self.progress.set(bytes);
                }
                Some(Read::End(Ok(counts))) => {
                    self.settle().await?;
                    return Ok(counts);
                }
                Some(Read::End(Err(wrong))) => {
                    // What came before is taken in, so that repeating it has less to do.
                    let cut_off = sending.take().map(|open| open.line);
                    self.settle_but(cut_off).await?;
                    return Err(wrong);
                }
                None => return Err(Failure::Start(std::io::Error::other("the file's reader has ended"))),
            }
        }
    }

    /// Sends a line of the thread that is open, or of the one that it begins.
    async fn send(&mut self, sending: &mut Option<Sending>, line: Line) -> Result<(), Failure> {
        if line.kind == Kind::Thread {
            *sending = Some(self.begin(&line).await?);
        }
        let Some(open) = sending else { return Ok(()) };
        if line.kind == Kind::Record {
            self.progress.count_record();
        }
        if let Some(stored) = &line.stored {
            open.runs.add(&open.thread, stored);
        }
        let ends = line.kind == Kind::End;
        let is_taken = open.put(&line, ends).await;
        if let Some(Sending { expected, runs, pieces, .. }) = sending.take_if(|_| ends || !is_taken) {
            drop(pieces);
            // Where nobody waits for it, the thread was refused.
            let _ = expected.send(runs);
        }
        if !is_taken {
            // The server has said no before it had heard all.
            return self.settle().await;
        }
        while let Some(outcome) = self.under_way.try_join_next() {
            self.note(outcome)?;
        }
        Ok(())
    }

    /// Begins to send a thread, once there is room for it.
    async fn begin(&mut self, line: &Line) -> Result<Sending, Failure> {
        while self.under_way.len() >= AT_ONCE {
            if let Some(outcome) = self.under_way.join_next().await {
                self.note(outcome)?;
            }
        }
        let named: Result<ThreadId, _> = serde_json::from_slice(&line.bytes);
        let thread = named.map_err(|error| self.wrong(line.number, error))?.thread_id;
        let (pieces, receiver) = mpsc::channel(PIECES);
        let (expected, runs) = oneshot::channel();
        let (client, id, number, verifies) = (self.client.clone(), thread.clone(), line.number, self.verify);
        self.under_way.spawn(async move {
            let body = unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|piece| (Ok::<Bytes, Infallible>(piece), receiver))
            });
            let sent = client.thread(id).import(body).await;
            let runs: Runs = if sent.is_ok() { runs.await.unwrap_or_default() } else { Runs::default() };
            let differences = match &sent {
                Ok(_) if verifies => verify(&client, &runs).await,
                _ => Ok(Vec::new()),
            };
            Outcome { line: number, sent, differences, runs: runs.0.len() as u64 }
        });
        let runs = Runs::default();
        Ok(Sending { pieces, expected, thread, line: number, runs, gathered: Vec::new() })
    }

    /// Waits for all that is under way.
    async fn settle(&mut self) -> Result<(), Failure> {
        self.settle_but(None).await
    }

    /// Waits for all that is under way; what the server says of the thread that is cut off says nothing new.
    async fn settle_but(&mut self, cut_off: Option<u64>) -> Result<(), Failure> {
        while let Some(outcome) = self.under_way.join_next().await {
            if !matches!(&outcome, Ok(outcome) if Some(outcome.line) == cut_off) {
                self.note(outcome)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, outcome: Result<Outcome, JoinError>) -> Result<(), Failure> {
        let Outcome { line, sent, differences, runs } =
            outcome.map_err(|error| Failure::Start(std::io::Error::other(error)))?;
        let Imported { imported, skipped, .. } = sent.map_err(|error| {
            // The server counts from the thread's own first line.
            let within = error.problem().and_then(Problem::line);
            let place = within.map(|within| format!("{}, line {}", self.file, line + within - 1));
            Failure::Import { place, error }
        })?;
        self.done.threads += 1;
        self.done.runs += runs;
        self.done.records += imported + skipped;
        self.skipped += skipped;
        self.differences.extend(differences?);
        Ok(())
    }

    fn wrong(&self, line: u64, message: impl ToString) -> Failure {
        Failure::BadFile { name: self.file.clone(), line, message: message.to_string() }
    }

    fn conclude(&self, read: Counts) -> Verdict {
        let known = match self.skipped {
            0 => String::new(),
            skipped => format!("; {skipped} of the records were there already"),
        };
        screen::say_plainly(format_args!("imported {read}{known}"));
        for difference in &self.differences {
            screen::say_problem(difference, None);
        }
        match (self.verify, self.differences.is_empty()) {
            (true, true) => screen::say_plainly("every stream is what the file says"),
            (true, false) => return Verdict::HasProblems,
            (false, _) => {}
        }
        Verdict::Fine
    }
}

impl Sending {
    /// Sends a line, when enough has gathered; false where nobody takes it any more.
    async fn put(&mut self, line: &Line, ends: bool) -> bool {
        self.gathered.extend_from_slice(&line.bytes);
        self.gathered.push(b'\n');
        if !ends && self.gathered.len() < PIECE_BYTES {
            return true;
        }
        let piece = Bytes::from(std::mem::take(&mut self.gathered));
        self.pieces.send(piece).await.is_ok()
    }
}
