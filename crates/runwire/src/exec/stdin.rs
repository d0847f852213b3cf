//! Forwards answers and cancel requests from the run's events to the program's standard input.

use futures_util::StreamExt;
use runwire_client::EventStream;
use runwire_model::{Body, RunFailureCode};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;

use crate::client::notes::Notes;
use crate::failure::plain;

/// Writes answers and cancel requests to the program's standard input; sends the reason of a cancel to `cancels`.
pub(super) async fn forward(
    mut events: EventStream,
    mut stdin: Option<ChildStdin>,
    cancels: mpsc::Sender<Option<String>>,
    notes: Notes,
) {
    while let Some(received) = events.next().await {
        let received = match received {
            Ok(received) => received,
            Err(error) => {
                let lost = "answers and requests to cancel do not reach the program";
                return notes.say(&format!("{}; {lost}", plain(&error)));
            }
        };
        let cancel = match &received.body {
            Body::InteractionResolved(_) => None,
            Body::RunCancelRequested(asked) => Some(asked.reason.clone()),
            // A suspended or pending run is cancelled without a request.
            Body::RunCancelled(cancelled) => Some(cancelled.reason.clone()),
            // The lease expired: the run takes no more frames.
            Body::RunFailed(failed) if RunFailureCode::ProducerLost.is_of(&failed.error) => {
                Some(Some(failed.error.message.clone()))
            }
            _ => continue,
        };
        if let Some(reason) = cancel {
            // The receiver is dropped once the program has ended.
            let _ = cancels.send(reason).await;
        }
        if let Some(open) = &mut stdin {
            let line = [received.frame(), &b"\n"[..]].concat();
            // The program has closed its input.
            if open.write_all(&line).await.is_err() || open.flush().await.is_err() {
                stdin = None;
            }
        }
    }
}
