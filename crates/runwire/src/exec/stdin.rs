//! What people send back, read from the run and written to the program's standard input.

use futures_util::StreamExt;
use runwire_client::EventStream;
use runwire_model::Body;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;

use crate::client::notes::Notes;
use crate::failure::plain;

/// Hands answers and requests to cancel to the program; of a cancel, the reason goes to whoever sends signals.
pub(super) async fn hand_on(
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
            // A run that waits for a person, or for its first event, is cancelled at once.
            Body::RunCancelled(cancelled) => Some(cancelled.reason.clone()),
            // The server took the program for dead: nothing that it does can be written any more.
            Body::RunFailed(failed) if failed.error.code.as_deref() == Some("producer_lost") => {
                Some(Some(failed.error.message.clone()))
            }
            _ => continue,
        };
        if let Some(reason) = cancel {
            // Where nobody waits any more, the program has ended.
            let _ = cancels.send(reason).await;
        }
        if let Some(open) = &mut stdin {
            let line = [received.frame(), &b"\n"[..]].concat();
            // A program that has closed its input wants no answers.
            if open.write_all(&line).await.is_err() || open.flush().await.is_err() {
                stdin = None;
            }
        }
    }
}
