//! Reads the program's standard output and standard error, with backpressure.

use std::time::Duration;

use runwire_model::framing::{Framing, Unframer};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, watch};

use super::output_parser::{OutputItem, OutputParser};
use crate::client::notes::Notes;
use crate::input::CHUNK_BYTES;

/// How long output is read after the program's exit, as its children may still hold the pipe.
const LINGER: Duration = Duration::from_secs(1);

/// Reads and parses standard output to its end.
///
/// While the receiver is slow, the pipe fills and the program blocks.
pub(super) async fn read_stdout(
    mut stdout: impl AsyncRead + Unpin,
    mut parser: OutputParser,
    items: mpsc::Sender<Vec<OutputItem>>,
    mut has_ended: watch::Receiver<bool>,
) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = tokio::select! {
            biased;
            // A read error counts as the end.
            count = stdout.read(&mut chunk) => count.unwrap_or(0),
            () = linger_after_exit(&mut has_ended) => 0,
        };
        let parsed = if count == 0 { parser.finish() } else { parser.push(&chunk[..count]) };
        if (!parsed.is_empty() && items.send(parsed).await.is_err()) || count == 0 {
            return;
        }
    }
}

/// Forwards lines of standard error to the view.
pub(super) async fn draw_stderr(mut stderr: impl AsyncRead + Unpin, notes: Notes) {
    let mut lines = Unframer::new(Framing::Ndjson);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = stderr.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            lines.finish();
        }
        lines.push(&chunk[..count]);
        while let Some(line) = lines.next() {
            // A line beyond the frame limit is not shown.
            let Ok(line) = line else { continue };
            notes.forward(String::from_utf8_lossy(line.data).into_owned()).await;
        }
        if count == 0 {
            return;
        }
    }
}

/// Waits for the program's exit and the linger time.
async fn linger_after_exit(has_ended: &mut watch::Receiver<bool>) {
    if has_ended.wait_for(|exited| *exited).await.is_ok() {
        tokio::time::sleep(LINGER).await;
    }
}
