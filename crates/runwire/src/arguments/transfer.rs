//! Arguments of `export` and `import`.

use std::path::PathBuf;

use clap::Args;

use super::client::ServerArguments;
use super::{EXIT_CODES, id};

const EXPORT_EXAMPLES: &str = "\
Examples:
  Everything that a server has:
    runwire export --all -o backup.ndjson

  Two conversations:
    runwire export --thread t1 --thread t2 -o two.ndjson

  One run, to another server:
    runwire export r1 | runwire import --url http://127.0.0.1:7421

A file gets its name when it is whole and on disk: until then it is FILE.part, and
it is removed when the export fails. A run is exported with the messages and the
state of its thread before it, which its streams need.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  Everything in a file:
    runwire import backup.ndjson

  See whether a file is whole and sound, without a server:
    runwire import --check backup.ndjson

  From a compressed file:
    zcat backup.ndjson.gz | runwire import

Records keep their numbers, times and bytes, so every stream and every cursor is
the same as where they came from; each run is read back to see that. What is
there already is passed over: an import that was stopped is completed by
repeating it. What is there and differs is refused, and never overwritten.";

#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES, after_long_help = format!("{EXPORT_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ExportArguments {
    /// The runs to export
    #[arg(value_name = "RUN", value_parser = id, required_unless_present_any = ["thread", "all"])]
    pub(crate) runs: Vec<String>,

    /// A thread to export, with all its runs; may be given several times
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) thread: Vec<String>,

    /// Export every thread
    #[arg(long, conflicts_with_all = ["runs", "thread"])]
    pub(crate) all: bool,

    /// The file to write; standard output without it, or with `-`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES, after_long_help = format!("{IMPORT_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ImportArguments {
    /// The file to read; standard input without it, or with `-`
    pub(crate) file: Option<PathBuf>,

    /// Only look at the file: nothing is sent
    #[arg(long)]
    pub(crate) check: bool,

    /// Do not read the runs back
    #[arg(long, conflicts_with = "check")]
    pub(crate) no_verify: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}
