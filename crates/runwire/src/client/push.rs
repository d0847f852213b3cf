//! `runwire push`: a stream becomes a run while it is read.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use runwire_client::{Error, Problem, UploadReceipt};
use runwire_model::framing::Framing;
use tokio::sync::mpsc;

use super::beats::Beats;
use super::notes::Notes;
use super::writer::{BEAT_TIME, Place, Producer, Writer};
use super::{block_on, connect, resend};
use crate::Verdict;
use crate::arguments::PushArguments;
use crate::failure::{Failure, plain};
use crate::input::{PIECE, Source};
use crate::screen::{self, Screen};
use crate::table::tame;

/// Pieces of the input that may wait to be sent.
const WAITING_PIECES: usize = 4;

/// Sends a stream to a run, a thread or the threads that it names as it comes, and says what became of it.
pub(crate) fn run(arguments: &PushArguments) -> Result<Verdict, Failure> {
    let usage = "runwire push [OPTIONS] <RUN> [FILE], runwire push [OPTIONS] --to-thread <THREAD> [FILE], \
                 or runwire push [OPTIONS] --all [FILE]";
    let places = arguments.places().map_err(|wrong| Failure::Usage { message: wrong, hint: usage })?;
    let source = Source::open(places.file.as_deref())?;
    block_on(push(arguments, places.run.as_deref(), source))
}

async fn push(arguments: &PushArguments, run: Option<&str>, source: Source) -> Result<Verdict, Failure> {
    let client = connect(&arguments.server)?;
    let place = match run {
        Some(run) => Place::run(&client, run),
        None if arguments.all => Place::all(&client),
        None => Place::thread(&client, arguments.to_thread.as_deref().unwrap_or_default()),
    };
    let screen = Arc::new(Screen::of_sending(source.size));
    let mut input = Reading::start(source, screen.clone());
    let first = input.first(arguments.framing.named()).await?;
    let sent = match &arguments.producer {
        Some(producer) => {
            let producer =
                Producer { id: producer.clone(), epoch: arguments.epoch, next: arguments.seq.unwrap_or(0) };
            let writer = Writer {
                place,
                dialect: arguments.dialect.named(),
                thread: arguments.thread.clone(),
                producer,
                parallel: arguments.parallel,
                patience: arguments.patience,
                was_there: false,
                notes: Notes::on_screen(screen.clone()),
            };
            resend::push(writer, first, input, arguments.end).await
        }
        None => send_once(arguments, &place, first, input).await,
    };
    screen.finish();
    match sent {
        Ok(written) => {
            print(&written, arguments.json)?;
            Ok(Verdict::Fine)
        }
        Err(Unsent::Refused { problem, line, accepted, duplicates }) => {
            let said = in_input(&problem, line);
            screen::say_problem(&said, problem.hint());
            screen::say_plainly(format_args!("{} before it", counts(accepted, duplicates)));
            Ok(Verdict::HasProblems)
        }
        Err(Unsent::NoFrame { problem, hint, accepted }) => {
            screen::say_problem(&problem, hint);
            screen::say_plainly(format_args!("{} before it", counts(accepted, 0)));
            Ok(Verdict::HasProblems)
        }
        Err(Unsent::Failed(failure)) => Err(failure),
    }
}

/// Why a stream is not wholly written.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The server does not take a frame; what it has counted stays written.
    Refused { problem: Box<Problem>, line: Option<u64>, accepted: u64, duplicates: u64 },
    /// There is something in the input that is no frame.
    NoFrame { problem: String, hint: Option<&'static str>, accepted: u64 },
    /// The input cannot be read, or the server not be reached.
    Failed(Failure),
}

impl From<Failure> for Unsent {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Sends the input in one request, as it comes. Nothing is tried again: nobody could tell what was written.
async fn send_once(
    arguments: &PushArguments,
    place: &Place,
    first: First,
    input: Reading,
) -> Result<UploadReceipt, Unsent> {
    let mut upload = place.upload().framing(first.framing).end(arguments.end).parallel(arguments.parallel);
    if let Some(dialect) = arguments.dialect.named() {
        upload = upload.dialect(dialect);
    }
    if let Some(thread) = &arguments.thread {
        upload = upload.thread(thread);
    }
    let (sender, mut pieces) = mpsc::channel(1);
    let beats = Arc::new(Mutex::new(Beats::new(first.framing)));
    let sending = tokio::spawn(send(first, input, sender, BEAT_TIME, beats.clone()));
    let body = stream::poll_fn(move |context| pieces.poll_recv(context));
    let answer = upload.send(body).await;
    if sending.is_finished()
        && let Ok(Err(unreadable)) = sending.await
    {
        return Err(unreadable.into());
    }
    match answer {
        Ok(written) => Ok(written),
        Err(Error::Refused(problem)) if problem.accepted().is_some() => {
            let beats = beats.lock().unwrap_or_else(PoisonError::into_inner);
            let line = problem.line().map(|line| beats.in_input(line));
            let (accepted, duplicates) = (problem.accepted(), problem.duplicates());
            let (accepted, duplicates) = (accepted.unwrap_or(0), duplicates.unwrap_or(0));
            Err(Unsent::Refused { problem, line, accepted, duplicates })
        }
        Err(error @ Error::Broken { .. }) => Err(Failure::BrokenWrite(plain(&error)).into()),
        Err(error) => Err(Failure::from(error).into()),
    }
}

/// Says what the server says of a frame, with the line that it has in the whole input.
fn in_input(problem: &Problem, line: Option<u64>) -> String {
    let said: String = problem.to_string().chars().map(tame).collect();
    let sent = problem.line().map(|line| format!("line {line}: ")).unwrap_or_default();
    let said = said.strip_prefix(&sent).unwrap_or(&said);
    line.map_or_else(|| said.to_owned(), |line| format!("line {line}: {said}"))
}

fn print(written: &UploadReceipt, as_json: bool) -> Result<(), Failure> {
    let line = if as_json {
        serde_json::to_string(written).map_err(|error| Failure::Write(error.into()))?
    } else {
        let counts = counts(written.accepted, written.duplicates);
        match written.threads.len() {
            0 => format!("{counts}, last seq {}", written.last_seq),
            1 => format!("{counts}, in 1 thread"),
            threads => format!("{counts}, in {threads} threads"),
        }
    };
    writeln!(io::stdout().lock(), "{line}").map_err(Failure::Write)
}

fn counts(accepted: u64, duplicates: u64) -> String {
    let frames = if accepted == 1 { "frame" } else { "frames" };
    match duplicates {
        0 => format!("{accepted} {frames} accepted"),
        _ => format!("{accepted} {frames} accepted, {duplicates} were written already"),
    }
}

/// The input, read by a thread of its own: a pipe may be silent for as long as it likes.
pub(super) struct Reading {
    pub(super) pieces: mpsc::Receiver<Result<Bytes, Failure>>,
}

/// The beginning of the input, which tells how its frames are cut.
pub(super) struct First {
    pub(super) bytes: Vec<u8>,
    pub(super) framing: Framing,
}

impl Reading {
    fn start(mut source: Source, screen: Arc<Screen>) -> Self {
        let (sender, pieces) = mpsc::channel(WAITING_PIECES);
        std::thread::spawn(move || {
            let mut piece = vec![0; PIECE];
            let mut taken = 0;
            loop {
                let read = source.read(&mut piece);
                let read = match read {
                    Ok(0) => return,
                    Ok(count) => Ok(Bytes::copy_from_slice(&piece[..count])),
                    Err(failure) => Err(failure),
                };
                let is_last = read.is_err();
                taken += read.as_ref().map_or(0, |piece| piece.len() as u64);
                if sender.blocking_send(read).is_err() || is_last {
                    return;
                }
                // Pieces are taken as they are sent, but for the few that wait.
                screen.advance(taken);
            }
        });
        Self { pieces }
    }

    /// Reads until the framing can be told; a named one needs no reading.
    async fn first(&mut self, named: Option<Framing>) -> Result<First, Failure> {
        let mut bytes = Vec::new();
        if let Some(framing) = named {
            return Ok(First { bytes, framing });
        }
        loop {
            // So much white space that the framing still hides is nobody's stream.
            let found = Framing::detect(&bytes).or((bytes.len() > PIECE).then_some(Framing::Ndjson));
            if let Some(framing) = found {
                return Ok(First { bytes, framing });
            }
            match self.pieces.recv().await.transpose()? {
                Some(piece) => bytes.extend_from_slice(&piece),
                None => return Ok(First { bytes, framing: Framing::Ndjson }),
            }
        }
    }
}

/// Hands the input to the body of the request, with a sign of life where it is silent between two lines.
async fn send(
    first: First,
    mut input: Reading,
    body: mpsc::Sender<Result<Bytes, io::Error>>,
    beat_time: Duration,
    beats: Arc<Mutex<Beats>>,
) -> Result<(), Failure> {
    let beats = || beats.lock().unwrap_or_else(PoisonError::into_inner);
    let beat: &'static [u8] = match first.framing {
        Framing::Ndjson => b"\n",
        Framing::Sse => b":\n",
        // White space is no sign of life inside a string, and whether this is one is not known here.
        Framing::Json => b"",
    };
    let mut at_line_start = first.bytes.last().is_none_or(|byte| *byte == b'\n');
    beats().sent(&first.bytes);
    if !first.bytes.is_empty() && body.send(Ok(first.bytes.into())).await.is_err() {
        return Ok(());
    }
    loop {
        let piece = match tokio::time::timeout(beat_time, input.pieces.recv()).await {
            Ok(Some(Ok(piece))) => {
                at_line_start = piece.last() == Some(&b'\n');
                beats().sent(&piece);
                piece
            }
            Ok(Some(Err(failure))) => {
                // The body must not look complete: `--end` would end the run.
                let _ = body.send(Err(io::Error::other("the input cannot be read"))).await;
                return Err(failure);
            }
            Ok(None) => return Ok(()),
            Err(_) if at_line_start && !beat.is_empty() => {
                beats().beat();
                Bytes::from_static(beat)
            }
            Err(_) => continue,
        };
        // Whoever answers before the end of the body wants no more of it.
        if body.send(Ok(piece)).await.is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent of a piece, and next if nothing follows it for a while.
    async fn silent_after(framing: Framing, piece: &'static str) -> (Bytes, Option<Bytes>) {
        let (pipe, pieces) = mpsc::channel(1);
        let (sender, mut body) = mpsc::channel(1);
        let first = First { bytes: Vec::new(), framing };
        let beats = Arc::new(Mutex::new(Beats::new(framing)));
        let sending = tokio::spawn(send(first, Reading { pieces }, sender, Duration::from_millis(5), beats));
        pipe.send(Ok(Bytes::from_static(piece.as_bytes()))).await.unwrap();
        let sent = body.recv().await.unwrap().unwrap();
        let next = tokio::time::timeout(Duration::from_millis(200), body.recv()).await;
        drop((pipe, body));
        sending.await.unwrap().unwrap();
        (sent, next.ok().map(|piece| piece.unwrap().unwrap()))
    }

    #[tokio::test]
    async fn a_silent_pipe_keeps_the_lease_where_that_cannot_hurt_a_frame() {
        let whole = |text: &'static str, beat: Option<&'static str>| (text.into(), beat.map(Bytes::from));
        assert_eq!(silent_after(Framing::Ndjson, "{}\n").await, whole("{}\n", Some("\n")));
        assert_eq!(silent_after(Framing::Ndjson, "{\"a\":").await, whole("{\"a\":", None));
        assert_eq!(silent_after(Framing::Sse, "data: {}\n").await, whole("data: {}\n", Some(":\n")));
        assert_eq!(silent_after(Framing::Json, "[{}\n").await, whole("[{}\n", None));
    }
}
