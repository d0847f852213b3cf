//! `runwire export` and `runwire import`: move runs between stores as a file of NDJSON.

mod destination;
mod digest;
mod export;
mod import;
mod progress;
mod reader;
mod verify;

pub(crate) use export::run as export;
pub(crate) use import::run as import;

use serde::{Deserialize, Serialize};

/// The version of the file format.
const VERSION: u32 = 1;

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename = "runwire.export")]
struct Header {
    version: u32,
    /// When it was written, in milliseconds since the epoch.
    #[serde(default)]
    at: u64,
    /// The requested runs and threads.
    #[serde(default)]
    what: serde_json::Value,
}

/// The last line of a file: the counts of what precedes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "runwire.export.end")]
struct TransferCounts {
    threads: u64,
    runs: u64,
    records: u64,
}

impl std::fmt::Display for TransferCounts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = |count: u64, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
        let Self { threads, runs, records } = *self;
        let [threads, runs] = [counted(threads, "thread"), counted(runs, "run")];
        write!(formatter, "{threads}, {runs}, {}", counted(records, "record"))
    }
}

/// The type of a line, told by its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Header,
    Thread,
    Run,
    Record,
    State,
    End,
    Trailer,
    Other,
}

impl LineKind {
    fn of(line: &[u8]) -> Self {
        let kinds = [
            (&br#"{"type":"record","#[..], Self::Record),
            (br#"{"type":"run","#, Self::Run),
            (br#"{"type":"thread","#, Self::Thread),
            (br#"{"type":"state","#, Self::State),
            (br#"{"type":"end","#, Self::End),
            (br#"{"type":"runwire.export","#, Self::Header),
            (br#"{"type":"runwire.export.end","#, Self::Trailer),
        ];
        kinds.iter().find(|(prefix, _)| line.starts_with(prefix)).map_or(Self::Other, |(_, kind)| *kind)
    }
}
