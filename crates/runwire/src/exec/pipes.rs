//! A program's output, read no faster than it can be written.

use std::time::Duration;

use runwire_model::framing::{Framing, Unframer};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, watch};

use super::sorter::{Said, Sorter};
use crate::client::notes::Notes;
use crate::input::PIECE;

/// How long something that the program has left behind may be silent before its output counts as ended.
const LINGER: Duration = Duration::from_secs(1);

/// Hands on what a program writes, to the end of its output.
///
/// Where nobody takes it, the pipe fills and the program waits: that is what a slow server does to it.
pub(super) async fn read(
    mut stdout: impl AsyncRead + Unpin,
    mut sorter: Sorter,
    said: mpsc::Sender<Vec<Said>>,
    mut has_ended: watch::Receiver<bool>,
) {
    let mut piece = vec![0; PIECE];
    loop {
        let count = tokio::select! {
            biased;
            // An output that cannot be read has ended.
            count = stdout.read(&mut piece) => count.unwrap_or(0),
            () = silent_after(&mut has_ended) => 0,
        };
        let sorted = if count == 0 { sorter.finish() } else { sorter.push(&piece[..count]) };
        if (!sorted.is_empty() && said.send(sorted).await.is_err()) || count == 0 {
            return;
        }
    }
}

/// Draws what a program writes to its standard error.
pub(super) async fn draw(mut stderr: impl AsyncRead + Unpin, notes: Notes) {
    let mut lines = Unframer::new(Framing::Ndjson);
    let mut piece = vec![0; PIECE];
    loop {
        let count = stderr.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            lines.finish();
        }
        lines.push(&piece[..count]);
        while let Some(line) = lines.next() {
            // A line of more than a million bytes is for nobody's eyes.
            let Ok(line) = line else { continue };
            notes.hand_on(String::from_utf8_lossy(line.data).into_owned()).await;
        }
        if count == 0 {
            return;
        }
    }
}

/// Waits for the program's end, and a little longer.
async fn silent_after(has_ended: &mut watch::Receiver<bool>) {
    if has_ended.wait_for(|ended| *ended).await.is_ok() {
        tokio::time::sleep(LINGER).await;
    }
}
