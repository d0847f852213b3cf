//! `runwire push`: a stream becomes a run while it is read.

use std::io::{self, Write};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::channel::{Channel, Sender};
use runwire_model::framing::Framing;
use serde_json::Value;
use tokio::sync::mpsc;

use super::block_on;
use super::connection::Client;
use crate::Verdict;
use crate::arguments::PushArguments;
use crate::failure::Failure;
use crate::input::{PIECE, Source};
use crate::screen;

/// Time of silence after which a sign of life is sent, so that the run's lease lasts.
const BEAT_TIME: Duration = Duration::from_secs(3);

/// Pieces of the input that may wait to be sent.
const WAITING_PIECES: usize = 4;

/// Sends a stream to a run or a thread as it comes, and says what became of it.
pub(crate) fn run(arguments: &PushArguments) -> Result<Verdict, Failure> {
    let usage = "runwire push [OPTIONS] <RUN> [FILE], or runwire push [OPTIONS] --to-thread <THREAD> [FILE]";
    let places = arguments.places().map_err(|wrong| Failure::Usage { message: wrong, hint: usage })?;
    let source = Source::open(places.file.as_deref())?;
    block_on(push(arguments, places.run.as_deref(), source))
}

async fn push(arguments: &PushArguments, run: Option<&str>, source: Source) -> Result<Verdict, Failure> {
    let client = Client::new(&arguments.server.url)?;
    let target = match (run, &arguments.to_thread) {
        (Some(run), _) => client.target().segment("runs").segment(run),
        (None, thread) => client.target().segment("threads").segment(thread.as_deref().unwrap_or_default()),
    };
    let target = target
        .segment("events")
        .parameter_if("dialect", arguments.dialect.named().map(runwire_model::dialect::Dialect::name))
        .parameter_if("thread", arguments.thread.as_deref())
        .parameter_if("end", arguments.end.then_some("true"));
    let mut input = Reading::start(source);
    let first = input.first(arguments.framing.named()).await?;
    let headers = headers(arguments, first.framing)?;
    let (sender, body) = Channel::new(1);
    let sending = tokio::spawn(send(first, input, sender, BEAT_TIME));
    let answer = client.send(Method::POST, &target, headers, body).await;
    let answer = match answer {
        Ok(response) => client.json(response).await,
        Err(failure) => Err(failure),
    };
    if sending.is_finished()
        && let Ok(Err(unreadable)) = sending.await
    {
        return Err(unreadable);
    }
    match answer {
        Ok(answer) => {
            print(&answer, arguments.json)?;
            Ok(Verdict::Fine)
        }
        Err(Failure::Refused(refusal)) => {
            screen::say_problem(&refusal, refusal.hint());
            if let Some((accepted, duplicates)) = refusal.written() {
                screen::say_plainly(format_args!("{} before it", counts(accepted, duplicates)));
            }
            Ok(Verdict::HasProblems)
        }
        Err(Failure::Broken { url, reason }) => Err(Failure::BrokenWrite { url, reason }),
        Err(failure) => Err(failure),
    }
}

fn headers(arguments: &PushArguments, framing: Framing) -> Result<HeaderMap, Failure> {
    let media = match framing {
        Framing::Ndjson => "application/x-ndjson",
        Framing::Sse => "text/event-stream",
        Framing::Json => "application/json",
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    if let Some(producer) = &arguments.producer {
        let producer = HeaderValue::from_str(producer).map_err(|_| Failure::Usage {
            message: "--producer cannot be sent in a header".to_owned(),
            hint: "use letters, digits and dashes",
        })?;
        headers.insert(HeaderName::from_static("producer-id"), producer);
    }
    let numbers = [("producer-epoch", arguments.epoch), ("producer-seq", arguments.seq)];
    for (name, number) in numbers.into_iter().filter_map(|(name, number)| Some((name, number?))) {
        headers.insert(HeaderName::from_static(name), HeaderValue::from(number));
    }
    Ok(headers)
}

fn print(answer: &Value, as_json: bool) -> Result<(), Failure> {
    let number = |name| answer.get(name).and_then(Value::as_u64).unwrap_or(0);
    let line = if as_json {
        answer.to_string()
    } else {
        format!("{}, last seq {}", counts(number("accepted"), number("duplicates")), number("last_seq"))
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
struct Reading {
    pieces: mpsc::Receiver<Result<Bytes, Failure>>,
}

/// The beginning of the input, which tells how its frames are cut.
struct First {
    bytes: Vec<u8>,
    framing: Framing,
}

impl Reading {
    fn start(mut source: Source) -> Self {
        let (sender, pieces) = mpsc::channel(WAITING_PIECES);
        std::thread::spawn(move || {
            let mut piece = vec![0; PIECE];
            loop {
                let read = source.read(&mut piece);
                let read = match read {
                    Ok(0) => return,
                    Ok(count) => Ok(Bytes::copy_from_slice(&piece[..count])),
                    Err(failure) => Err(failure),
                };
                let is_last = read.is_err();
                if sender.blocking_send(read).is_err() || is_last {
                    return;
                }
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
    mut body: Sender<Bytes, io::Error>,
    beat_time: Duration,
) -> Result<(), Failure> {
    let beat: &'static [u8] = match first.framing {
        Framing::Ndjson => b"\n",
        Framing::Sse => b":\n",
        // White space is no sign of life inside a string, and whether this is one is not known here.
        Framing::Json => b"",
    };
    let mut at_line_start = first.bytes.last().is_none_or(|byte| *byte == b'\n');
    if !first.bytes.is_empty() && body.send_data(first.bytes.into()).await.is_err() {
        return Ok(());
    }
    loop {
        let piece = match tokio::time::timeout(beat_time, input.pieces.recv()).await {
            Ok(Some(Ok(piece))) => {
                at_line_start = piece.last() == Some(&b'\n');
                piece
            }
            Ok(Some(Err(failure))) => {
                // The body must not look complete: `--end` would end the run.
                body.abort(io::Error::other("the input cannot be read"));
                return Err(failure);
            }
            Ok(None) => return Ok(()),
            Err(_) if at_line_start && !beat.is_empty() => Bytes::from_static(beat),
            Err(_) => continue,
        };
        // Whoever answers before the end of the body wants no more of it.
        if body.send_data(piece).await.is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    /// What is sent of a piece, and next if nothing follows it for a while.
    async fn silent_after(framing: Framing, piece: &'static str) -> (Bytes, Option<Bytes>) {
        let (pipe, pieces) = mpsc::channel(1);
        let (sender, mut body) = Channel::new(1);
        let first = First { bytes: Vec::new(), framing };
        let sending = tokio::spawn(send(first, Reading { pieces }, sender, Duration::from_millis(5)));
        pipe.send(Ok(Bytes::from_static(piece.as_bytes()))).await.unwrap();
        let sent = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let next = tokio::time::timeout(Duration::from_millis(200), body.frame()).await;
        drop((pipe, body));
        sending.await.unwrap().unwrap();
        (sent, next.ok().map(|frame| frame.unwrap().unwrap().into_data().unwrap()))
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
