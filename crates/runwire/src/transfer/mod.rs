//! `runwire export` and `runwire import`: runs that move from one store to another, as lines of JSON.

mod destination;
mod export;
mod import;
mod progress;
mod reader;
mod sum;
mod verify;

pub(crate) use export::run as export;
pub(crate) use import::run as import;

use serde::{Deserialize, Serialize};

/// The version of the file that is written, and the newest that can be read.
const VERSION: u32 = 1;

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename = "runwire.export")]
struct Header {
    version: u32,
    /// When it was written, in milliseconds since the epoch.
    #[serde(default)]
    at: u64,
    /// What was asked for.
    #[serde(default)]
    what: serde_json::Value,
}

/// The last line of a file: what must stand before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "runwire.export.end")]
struct Counts {
    threads: u64,
    runs: u64,
    records: u64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = |count: u64, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
        let Self { threads, runs, records } = *self;
        let [threads, runs] = [counted(threads, "thread"), counted(runs, "run")];
        write!(formatter, "{threads}, {runs}, {}", counted(records, "record"))
    }
}

/// What a line is, told by how it begins: every line that is written here begins with its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Header,
    Thread,
    Run,
    Record,
    State,
    End,
    Trailer,
    Other,
}

impl Kind {
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
