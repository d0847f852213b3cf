//! `runwire import`: sends the lines of an export to a server, thread by thread, and verifies the result.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream::unfold;
use runwire_client::{Client, Error, Imported, Problem};
use runwire_log::TransferItem;
use runwire_log::transfer::line;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};

use super::digest::ExpectedRuns;
use super::progress::Progress;
use super::reader::{ExportLine, ExportReader, ReadAhead};
use super::verify::{Difference, verify};
use super::{LineKind, TransferCounts};
use crate::Verdict;
use crate::arguments::ImportArguments;
use crate::client::interrupt::{Interrupt, SIGNAL_EXIT_BASE};
use crate::client::{block_on, connect};
use crate::failure::Failure;
use crate::input::InputSource;
use crate::screen;

/// Threads sent concurrently: small ones share the server's commits.
const MAX_CONCURRENT_THREADS: usize = 8;
/// Capacity of a thread's channel.
const QUEUED_CHUNKS: usize = 8;
/// Bytes of lines in one chunk.
const CHUNK_BYTES: usize = 64 * 1024;

/// Imports a file, or only checks it.
pub(crate) fn run(arguments: &ImportArguments) -> Result<Verdict, Failure> {
    let source = InputSource::open(arguments.file.as_deref())?;
    let progress = Progress::of_bytes(source.size);
    let name = source.name.clone();
    let mut reader = ExportReader::new(source);
    if arguments.check {
        return check(&mut reader, &progress);
    }
    let client = connect(&arguments.server)?;
    let mut interrupt = Interrupt::listen().map_err(Failure::Start)?;
    block_on(async {
        let mut importer = Importer::new(client, name, &progress, !arguments.no_verify);
        let imported = tokio::select! {
            imported = importer.import(reader) => imported,
            signal = interrupt.signal() => {
                progress.finish();
                let done = importer.done;
                screen::say_note(format_args!("stopped after {done}; repeating the import goes on from there"));
                return Ok(Verdict::Exit(SIGNAL_EXIT_BASE + signal));
            }
        };
        progress.finish();
        Ok(importer.summarize(imported?))
    })
}

/// Checks a file without a server.
fn check(reader: &mut ExportReader, progress: &Progress) -> Result<Verdict, Failure> {
    let (mut last, mut ended) = (0, None);
    while let Some(next) = reader.next()? {
        progress.set(reader.bytes_read());
        let piece = line::read(&next.bytes).map_err(|bad| reader.bad_line(&bad.to_string()))?;
        match piece {
            TransferItem::Thread(facts) => last = facts.oldest.saturating_sub(1),
            TransferItem::Record(stored) => {
                progress.count_record();
                if stored.record.seq != last + 1 {
                    let message = format!("record {} was expected next, not {}", last + 1, stored.record.seq);
                    return Err(reader.bad_line(&message));
                }
                last = stored.record.seq;
            }
            TransferItem::End { head } => ended = Some(head).filter(|head| *head != last),
            _ => {}
        }
        if let Some(head) = ended {
            return Err(
                reader.bad_line(&format!("the thread ends with record {head}, and the last one is {last}"))
            );
        }
    }
    progress.finish();
    screen::say_plainly(format_args!("{}: {} and nothing is missing", reader.name(), reader.counts()));
    Ok(Verdict::Fine)
}

/// The result of a thread's import.
struct Outcome {
    /// Its first line in the file.
    line: u64,
    sent: Result<Imported, Error>,
    /// Differences found by the verification.
    differences: Result<Vec<Difference>, Error>,
    runs: u64,
}

struct Importer<'p> {
    client: Client,
    /// The file's name.
    file: String,
    progress: &'p Progress,
    verify: bool,
    in_flight: JoinSet<Outcome>,
    done: TransferCounts,
    skipped: u64,
    differences: Vec<Difference>,
}

/// The upload of one thread.
struct ThreadUpload {
    pieces: mpsc::Sender<Bytes>,
    /// Sends the expected streams to the verification, when the thread is read.
    expected: oneshot::Sender<ExpectedRuns>,
    thread: String,
    /// Its first line in the file.
    line: u64,
    runs: ExpectedRuns,
    gathered: Vec<u8>,
}

#[derive(Deserialize)]
struct ThreadId {
    thread_id: String,
}

impl<'p> Importer<'p> {
    fn new(client: Client, file: String, progress: &'p Progress, verify: bool) -> Self {
        let (in_flight, done) = (JoinSet::new(), TransferCounts::default());
        Self { client, file, progress, verify, in_flight, done, skipped: 0, differences: Vec::new() }
    }

    async fn import(&mut self, reader: ExportReader) -> Result<TransferCounts, Failure> {
        let mut sending: Option<ThreadUpload> = None;
        let mut read = reader.read_ahead(self.verify);
        loop {
            match read.recv().await {
                Some(ReadAhead::Lines(lines, bytes)) => {
                    for line in lines {
                        self.send(&mut sending, line).await?;
                    }
                    self.progress.set(bytes);
                }
                Some(ReadAhead::End(Ok(counts))) => {
                    self.join_all().await?;
                    return Ok(counts);
                }
                Some(ReadAhead::End(Err(wrong))) => {
                    // Finish the earlier threads, so that a repeated import has less to do.
                    let truncated = sending.take().map(|open| open.line);
                    self.join_all_except(truncated).await?;
                    return Err(wrong);
                }
                None => return Err(Failure::Start(std::io::Error::other("the file's reader has ended"))),
            }
        }
    }

    /// Sends a line of the open thread, or opens the next thread.
    async fn send(&mut self, sending: &mut Option<ThreadUpload>, line: ExportLine) -> Result<(), Failure> {
        if line.kind == LineKind::Thread {
            *sending = Some(self.begin(&line).await?);
        }
        let Some(open) = sending else { return Ok(()) };
        if line.kind == LineKind::Record {
            self.progress.count_record();
        }
        if let Some(stored) = &line.stored {
            open.runs.add(&open.thread, stored);
        }
        let ends = line.kind == LineKind::End;
        let is_taken = open.put(&line, ends).await;
        if let Some(ThreadUpload { expected, runs, pieces, .. }) = sending.take_if(|_| ends || !is_taken) {
            drop(pieces);
            // The receiver is dropped if the thread was refused.
            let _ = expected.send(runs);
        }
        if !is_taken {
            // The server has refused the thread before its end.
            return self.join_all().await;
        }
        while let Some(outcome) = self.in_flight.try_join_next() {
            self.record_outcome(outcome)?;
        }
        Ok(())
    }

    /// Starts the upload of a thread, once fewer than the maximum are in flight.
    async fn begin(&mut self, line: &ExportLine) -> Result<ThreadUpload, Failure> {
        while self.in_flight.len() >= MAX_CONCURRENT_THREADS {
            if let Some(outcome) = self.in_flight.join_next().await {
                self.record_outcome(outcome)?;
            }
        }
        let named: Result<ThreadId, _> = serde_json::from_slice(&line.bytes);
        let thread = named.map_err(|error| self.bad_line(line.number, error))?.thread_id;
        let (pieces, receiver) = mpsc::channel(QUEUED_CHUNKS);
        let (expected, runs) = oneshot::channel();
        let (client, id, number, verifies) = (self.client.clone(), thread.clone(), line.number, self.verify);
        self.in_flight.spawn(async move {
            let body = unfold(receiver, |mut receiver| async move {
                receiver.recv().await.map(|piece| (Ok::<Bytes, Infallible>(piece), receiver))
            });
            let sent = client.thread(id).import(body).await;
            let runs: ExpectedRuns =
                if sent.is_ok() { runs.await.unwrap_or_default() } else { ExpectedRuns::default() };
            let differences = match &sent {
                Ok(_) if verifies => verify(&client, &runs).await,
                _ => Ok(Vec::new()),
            };
            Outcome { line: number, sent, differences, runs: runs.0.len() as u64 }
        });
        let runs = ExpectedRuns::default();
        Ok(ThreadUpload { pieces, expected, thread, line: number, runs, gathered: Vec::new() })
    }

    /// Waits for all uploads in flight.
    async fn join_all(&mut self) -> Result<(), Failure> {
        self.join_all_except(None).await
    }

    /// Waits for all uploads in flight; ignores the result of a truncated thread.
    async fn join_all_except(&mut self, truncated: Option<u64>) -> Result<(), Failure> {
        while let Some(outcome) = self.in_flight.join_next().await {
            if !matches!(&outcome, Ok(outcome) if Some(outcome.line) == truncated) {
                self.record_outcome(outcome)?;
            }
        }
        Ok(())
    }

    fn record_outcome(&mut self, outcome: Result<Outcome, JoinError>) -> Result<(), Failure> {
        let Outcome { line, sent, differences, runs } =
            outcome.map_err(|error| Failure::Start(std::io::Error::other(error)))?;
        let Imported { imported, skipped, .. } = sent.map_err(|error| {
            // The server counts lines from the thread's first one.
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

    fn bad_line(&self, line: u64, message: impl ToString) -> Failure {
        Failure::BadFile { name: self.file.clone(), line, message: message.to_string() }
    }

    fn summarize(&self, read: TransferCounts) -> Verdict {
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

impl ThreadUpload {
    /// Buffers a line, and sends full chunks; false if the upload has ended.
    async fn put(&mut self, line: &ExportLine, ends: bool) -> bool {
        self.gathered.extend_from_slice(&line.bytes);
        self.gathered.push(b'\n');
        if !ends && self.gathered.len() < CHUNK_BYTES {
            return true;
        }
        let piece = Bytes::from(std::mem::take(&mut self.gathered));
        self.pieces.send(piece).await.is_ok()
    }
}
