//! `runwire export`: writes the records of threads and runs as NDJSON.

use std::io::{self, IsTerminal};
use std::path::Path;

use futures_util::TryStreamExt;
use runwire_client::{Client, ThreadExport};
use runwire_model::ErrorCode;
use serde_json::json;

use super::destination::Destination;
use super::progress::Progress;
use super::{Header, LineKind, TransferCounts, VERSION};
use crate::Verdict;
use crate::arguments::ExportArguments;
use crate::client::interrupt::{Interrupt, SIGNAL_EXIT_BASE};
use crate::client::{block_on, connect};
use crate::failure::Failure;
use crate::screen;

/// Writes an export.
pub(crate) fn run(arguments: &ExportArguments) -> Result<Verdict, Failure> {
    if arguments.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::Usage {
            message: "an export is a file for programs, and standard output is a terminal".to_owned(),
            hint: "name a file with -o FILE, or say -o - to see it here",
        });
    }
    let mut interrupt = Interrupt::listen().map_err(Failure::Start)?;
    block_on(async {
        tokio::select! {
            exported = export(arguments) => exported,
            signal = interrupt.signal() => {
                screen::say_note("stopped; nothing is kept of the export");
                Ok(Verdict::Exit(SIGNAL_EXIT_BASE + signal))
            }
        }
    })
}

/// A thread or a run to export.
struct Part {
    thread: String,
    /// One run of the thread; `None` for the whole thread.
    run: Option<String>,
}

async fn export(arguments: &ExportArguments) -> Result<Verdict, Failure> {
    let client = connect(&arguments.server)?;
    let parts = parts(&client, arguments).await?;
    let mut out = Destination::open(arguments.output.as_deref())?;
    let progress = Progress::of_threads(parts.len() as u64);
    let what = match arguments.all {
        true => json!("all"),
        false => json!({"runs": arguments.runs, "threads": arguments.thread}),
    };
    let header = Header { version: VERSION, at: now(), what };
    out.line(json_of(&header)?.as_bytes())?;
    let mut counts = TransferCounts::default();
    for (at, part) in parts.iter().enumerate() {
        let thread = client.thread(&part.thread);
        let lines = match &part.run {
            Some(run) => thread.records_of(run),
            None => thread.records(),
        };
        match copy(lines, &mut out, &mut counts, &progress).await {
            // The thread was deleted after it was listed.
            Err(Failure::Server(error))
                if arguments.all
                    && matches!(error.code(), Some(ErrorCode::ThreadDeleted | ErrorCode::ThreadUnknown)) => {}
            copied => copied?,
        }
        progress.set(at as u64 + 1);
    }
    out.line(json_of(&counts)?.as_bytes())?;
    out.finish()?;
    progress.finish();
    if let Some(path) = arguments.output.as_deref().filter(|path| *path != Path::new("-")) {
        screen::say_plainly(format_args!("exported {counts} to {}", path.display()));
    }
    Ok(Verdict::Fine)
}

async fn copy(
    mut lines: ThreadExport,
    out: &mut Destination,
    counts: &mut TransferCounts,
    progress: &Progress,
) -> Result<(), Failure> {
    while let Some(line) = lines.next_line().await? {
        match LineKind::of(&line) {
            LineKind::Thread => counts.threads += 1,
            LineKind::Run => counts.runs += 1,
            LineKind::Record => {
                counts.records += 1;
                progress.count_record();
            }
            _ => {}
        }
        out.line(&line)?;
    }
    Ok(())
}

/// Lists what to export, oldest threads first, so that an import keeps the order of lists.
async fn parts(client: &Client, arguments: &ExportArguments) -> Result<Vec<Part>, Failure> {
    if arguments.all {
        let threads = client.all_threads().map_ok(|thread| Part { thread: thread.thread_id, run: None });
        let mut parts: Vec<Part> = threads.try_collect().await?;
        parts.reverse();
        return Ok(parts);
    }
    let mut parts: Vec<Part> = Vec::new();
    for thread in &arguments.thread {
        if parts.iter().all(|part| part.thread != *thread) {
            // Fail before anything is written if the thread does not exist.
            client.thread(thread).info().await?;
            parts.push(Part { thread: thread.clone(), run: None });
        }
    }
    for run in &arguments.runs {
        let thread = client.run(run).info().await?.thread_id;
        match parts.iter_mut().find(|part| part.thread == thread) {
            None => parts.push(Part { thread, run: Some(run.clone()) }),
            Some(part) if part.run.as_deref().is_some_and(|known| known != run) => {
                screen::say_note(format_args!(
                    "`{run}` is of the same thread as another run; the thread is exported whole"
                ));
                part.run = None;
            }
            Some(_) => {}
        }
    }
    Ok(parts)
}

fn json_of(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::Write(error.into()))
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
