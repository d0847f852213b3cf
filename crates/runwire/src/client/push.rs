//! `runwire push`: uploads a stream of frames to a run or a thread as it is read.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use runwire_client::{Error, Problem, Producer, Upload, UploadReceipt};
use runwire_model::framing::Framing;
use tokio::sync::mpsc;

use super::batch::UploadBatch;
use super::line_map::LineMap;
use super::notes::Notes;
use super::writer::{BatchWriter, HEARTBEAT_INTERVAL, WriteTarget};
use super::{block_on, connect, push_producer};
use crate::Verdict;
use crate::arguments::PushArguments;
use crate::failure::{Failure, plain};
use crate::input::{CHUNK_BYTES, InputSource};
use crate::screen::{self, Screen};
use crate::table::sanitize;

/// Capacity of the channel between the input and the upload.
const QUEUED_CHUNKS: usize = 4;

/// Uploads a stream to a run, a thread or the threads that its frames name, and prints the result.
pub(crate) fn run(arguments: &PushArguments) -> Result<Verdict, Failure> {
    let usage = "runwire push [OPTIONS] <RUN> [FILE], runwire push [OPTIONS] --to-thread <THREAD> [FILE], \
                 or runwire push [OPTIONS] --all [FILE]";
    let target_and_file =
        arguments.target().map_err(|wrong| Failure::Usage { message: wrong, hint: usage })?;
    let source = InputSource::open(target_and_file.file.as_deref())?;
    block_on(push(arguments, target_and_file.run.as_deref(), source))
}

async fn push(arguments: &PushArguments, run: Option<&str>, source: InputSource) -> Result<Verdict, Failure> {
    let client = connect(&arguments.server)?;
    let target = match run {
        Some(run) => WriteTarget::run(&client, run),
        None if arguments.all => WriteTarget::all(&client),
        None => WriteTarget::thread(&client, arguments.to_thread.as_deref().unwrap_or_default()),
    };
    let screen = Arc::new(Screen::of_sending(source.size));
    let mut input = InputChunks::start(source, screen.clone());
    let first = input.first(arguments.framing.named()).await?;
    let sent = match &arguments.producer {
        Some(producer) => {
            let (epoch, next) = (arguments.epoch.unwrap_or(0), arguments.seq.unwrap_or(0));
            let writer = upload(arguments, &target)
                .framing(UploadBatch::framing_for(first.framing))
                .into_producer(Producer::new(producer.as_str(), epoch, next))
                .give_up_after(arguments.give_up_after)
                .fail_unless_reached();
            let writer = BatchWriter::new(target, writer, Notes::on_screen(screen.clone()));
            push_producer::push(writer, first, input, arguments.end).await
        }
        None => send_once(arguments, &target, first, input).await,
    };
    screen.finish();
    match sent {
        Ok(written) => {
            print(&written, arguments.json)?;
            Ok(Verdict::Fine)
        }
        Err(PushError::Refused { problem, line, accepted, duplicates }) => {
            let said = in_input(&problem, line);
            screen::say_problem(&said, problem.hint());
            screen::say_plainly(format_args!("{} before it", counts(accepted, duplicates)));
            Ok(Verdict::HasProblems)
        }
        Err(PushError::NoFrame { problem, hint, accepted }) => {
            screen::say_problem(&problem, hint);
            screen::say_plainly(format_args!("{} before it", counts(accepted, 0)));
            Ok(Verdict::HasProblems)
        }
        Err(PushError::Failed(failure)) => Err(failure),
    }
}

/// Why a stream was not written completely.
#[derive(Debug)]
pub(super) enum PushError {
    /// The server refused a frame; those before it are written.
    Refused { problem: Box<Problem>, line: Option<u64>, accepted: u64, duplicates: u64 },
    /// The input has something that is not a frame.
    NoFrame { problem: String, hint: Option<&'static str>, accepted: u64 },
    /// The input cannot be read, or the server cannot be reached.
    Failed(Failure),
}

impl From<Failure> for PushError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Creates the upload that the arguments describe.
fn upload(arguments: &PushArguments, target: &WriteTarget) -> Upload {
    let mut upload = target.upload().parallel(arguments.parallel);
    if let Some(dialect) = arguments.dialect.named() {
        upload = upload.dialect(dialect);
    }
    if let Some(thread) = &arguments.thread {
        upload = upload.thread(thread);
    }
    upload
}

/// Sends the input in one streamed request. Nothing is retried, as without a producer the outcome is unknown.
async fn send_once(
    arguments: &PushArguments,
    target: &WriteTarget,
    first: FirstBytes,
    input: InputChunks,
) -> Result<UploadReceipt, PushError> {
    let upload = upload(arguments, target).framing(first.framing).end(arguments.end);
    let (sender, mut pieces) = mpsc::channel(1);
    let line_map = Arc::new(Mutex::new(LineMap::new(first.framing)));
    let sending = tokio::spawn(send(first, input, sender, HEARTBEAT_INTERVAL, line_map.clone()));
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
            let line_map = line_map.lock().unwrap_or_else(PoisonError::into_inner);
            let line = problem.line().map(|line| line_map.input_line(line));
            let (accepted, duplicates) = (problem.accepted(), problem.duplicates());
            let (accepted, duplicates) = (accepted.unwrap_or(0), duplicates.unwrap_or(0));
            Err(PushError::Refused { problem, line, accepted, duplicates })
        }
        Err(error @ Error::Broken { .. }) => Err(Failure::BrokenWrite(plain(&error)).into()),
        Err(error) => Err(Failure::from(error).into()),
    }
}

/// Formats a problem with the line of the input.
fn in_input(problem: &Problem, line: Option<u64>) -> String {
    let said: String = problem.to_string().chars().map(sanitize).collect();
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

/// The input in chunks, read by a separate thread, as a pipe may block.
pub(super) struct InputChunks {
    pub(super) pieces: mpsc::Receiver<Result<Bytes, Failure>>,
}

/// The first bytes of the input, and the framing detected from them.
pub(super) struct FirstBytes {
    pub(super) bytes: Vec<u8>,
    pub(super) framing: Framing,
}

impl InputChunks {
    fn start(mut source: InputSource, screen: Arc<Screen>) -> Self {
        let (sender, pieces) = mpsc::channel(QUEUED_CHUNKS);
        std::thread::spawn(move || {
            let mut piece = vec![0; CHUNK_BYTES];
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
                // Chunks in the channel count as sent.
                screen.advance(taken);
            }
        });
        Self { pieces }
    }

    /// Reads until the framing is detected, unless it is given.
    async fn first(&mut self, named: Option<Framing>) -> Result<FirstBytes, Failure> {
        let mut bytes = Vec::new();
        if let Some(framing) = named {
            return Ok(FirstBytes { bytes, framing });
        }
        loop {
            // No framing was detected in a whole chunk: assume NDJSON.
            let found = Framing::detect(&bytes).or((bytes.len() > CHUNK_BYTES).then_some(Framing::Ndjson));
            if let Some(framing) = found {
                return Ok(FirstBytes { bytes, framing });
            }
            match self.pieces.recv().await.transpose()? {
                Some(piece) => bytes.extend_from_slice(&piece),
                None => return Ok(FirstBytes { bytes, framing: Framing::Ndjson }),
            }
        }
    }
}

/// Sends the input to the request's body, with a keep-alive line while the input is idle between two lines.
async fn send(
    first: FirstBytes,
    mut input: InputChunks,
    body: mpsc::Sender<Result<Bytes, io::Error>>,
    keep_alive_interval: Duration,
    line_map: Arc<Mutex<LineMap>>,
) -> Result<(), Failure> {
    let line_map = || line_map.lock().unwrap_or_else(PoisonError::into_inner);
    let keep_alive: &'static [u8] = match first.framing {
        Framing::Ndjson => b"\n",
        Framing::Sse => b":\n",
        // White space may be inside a string, so JSON has no keep-alive.
        Framing::Json => b"",
    };
    let mut at_line_start = first.bytes.last().is_none_or(|byte| *byte == b'\n');
    line_map().input(&first.bytes);
    if !first.bytes.is_empty() && body.send(Ok(first.bytes.into())).await.is_err() {
        return Ok(());
    }
    loop {
        let piece = match tokio::time::timeout(keep_alive_interval, input.pieces.recv()).await {
            Ok(Some(Ok(piece))) => {
                at_line_start = piece.last() == Some(&b'\n');
                line_map().input(&piece);
                piece
            }
            Ok(Some(Err(failure))) => {
                // Abort the body: if it looked complete, `--end` would end the run.
                let _ = body.send(Err(io::Error::other("the input cannot be read"))).await;
                return Err(failure);
            }
            Ok(None) => return Ok(()),
            Err(_) if at_line_start && !keep_alive.is_empty() => {
                line_map().keep_alive();
                Bytes::from_static(keep_alive)
            }
            Err(_) => continue,
        };
        // The server has responded before the end of the body.
        if body.send(Ok(piece)).await.is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is sent of a chunk, and what is sent next while the input is idle.
    async fn silent_after(framing: Framing, piece: &'static str) -> (Bytes, Option<Bytes>) {
        let (pipe, pieces) = mpsc::channel(1);
        let (sender, mut body) = mpsc::channel(1);
        let first = FirstBytes { bytes: Vec::new(), framing };
        let line_map = Arc::new(Mutex::new(LineMap::new(framing)));
        let sending =
            tokio::spawn(send(first, InputChunks { pieces }, sender, Duration::from_millis(5), line_map));
        pipe.send(Ok(Bytes::from_static(piece.as_bytes()))).await.unwrap();
        let sent = body.recv().await.unwrap().unwrap();
        let next = tokio::time::timeout(Duration::from_millis(200), body.recv()).await;
        drop((pipe, body));
        sending.await.unwrap().unwrap();
        (sent, next.ok().map(|piece| piece.unwrap().unwrap()))
    }

    #[tokio::test]
    async fn a_silent_pipe_keeps_the_lease_where_that_cannot_hurt_a_frame() {
        let whole =
            |text: &'static str, keep_alive: Option<&'static str>| (text.into(), keep_alive.map(Bytes::from));
        assert_eq!(silent_after(Framing::Ndjson, "{}\n").await, whole("{}\n", Some("\n")));
        assert_eq!(silent_after(Framing::Ndjson, "{\"a\":").await, whole("{\"a\":", None));
        assert_eq!(silent_after(Framing::Sse, "data: {}\n").await, whole("data: {}\n", Some(":\n")));
        assert_eq!(silent_after(Framing::Json, "[{}\n").await, whole("[{}\n", None));
    }
}
