//! The command line: commands, arguments and their help (clap).

mod client;
mod exec;
mod interactions;
mod server;
mod shell;
mod transfer;
mod watch;

use std::path::PathBuf;

pub(crate) use client::{PushArguments, RunsArguments, ServerArguments, ShowArguments, url_flag};
pub(crate) use exec::ExecArguments;
pub(crate) use interactions::{AnswerArguments, InboxArguments};
pub(crate) use server::{CheckConfigArguments, DevArguments, MigrateArguments, ServeArguments};
pub(crate) use shell::{CompletionsArguments, ManArguments};
pub(crate) use transfer::{ExportArguments, ImportArguments};
pub(crate) use watch::{
    CancelArguments, OutputArguments, OutputFormat, ReplayArguments, RetryArguments, RunArguments, Speed,
    TailArguments,
};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use runwire_model::dialect::{Dialect, Fidelity, Slots};
use runwire_model::framing::Framing;
use runwire_model::limits;

/// The wire between AI agents and the people who watch them.
#[derive(Debug, Parser)]
#[command(name = "runwire", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Translate a stream of agent events from one dialect to another
    Convert(ConvertArguments),
    /// Report everything in a stream that breaks its dialect's document
    Validate(ValidateArguments),
    /// Start a server on this machine, to try things out
    Dev(DevArguments),
    /// Start a server
    Serve(ServeArguments),
    /// Make the tables of a new store
    Migrate(MigrateArguments),
    /// Show what the server would go by, or what is wrong with its configuration
    CheckConfig(CheckConfigArguments),
    /// Write a stream of events to a run, as they come
    Push(PushArguments),
    /// Watch a run, and follow it to its end
    Tail(TailArguments),
    /// Play a run back at its own pace, or another
    Replay(ReplayArguments),
    /// Start an agent, and watch its run
    Run(RunArguments),
    /// Run a program whose output is a run
    Exec(ExecArguments),
    /// List the questions that wait for a person
    Inbox(InboxArguments),
    /// Answer a form or an approval
    Answer(AnswerArguments),
    /// Ask a run to stop
    Cancel(CancelArguments),
    /// Start the agent of a run again, on the same input
    Retry(RetryArguments),
    /// List runs, newest first
    Runs(RunsArguments),
    /// Show a run: how it stands, and what it said
    Show(ShowArguments),
    /// Write runs, threads or everything to a file, to move them or to keep them
    Export(ExportArguments),
    /// Take in what was exported, from this server or another
    Import(ImportArguments),
    /// Print what a shell needs to complete commands and options
    Completions(CompletionsArguments),
    /// Write the manual, one page a command
    Man(ManArguments),
}

const EXIT_CODES: &str = "\
Exit codes:
  0  all is well (also when the reader of the output went away)
  1  the stream or the configuration has problems, or the server refused; what is wrong is on
     standard error (validate: on standard output)
  2  the command line was not understood
  3  reading or writing failed, or the server cannot be reached
 70  the server's store failed; starting it again recovers everything that was acknowledged";

const CONVERT_EXAMPLES: &str = "\
Examples:
  Show a Loom run as AG-UI events:
    runwire convert --from loom --to ag-ui run.ndjson

  Watch an agent's SSE stream as plain text, while it is written:
    curl -N https://agent.example/stream | runwire convert --to text

  Serve an Agio log to an EasyFlow client, names and ids of SSE included:
    runwire convert --from agio --to easyflow-chat --framing sse events.ndjson

  Go there and back without losing anything:
    runwire convert --to loom --fidelity full run.ndjson | runwire convert --to runwire

What cannot be read stops the conversion: what came before it stays written, the
open run is ended with a failure, and the line is named on standard error. With
--keep-going the bad frame is handed on as `foreign` instead.";

const VALIDATE_EXAMPLES: &str = "\
Examples:
  Check a captured stream, whatever it speaks:
    runwire validate capture.ndjson

  Check what an agent writes against AG-UI's rules, as it comes:
    curl -N https://agent.example/ag-ui | runwire validate --dialect ag-ui

  Count the problems of each kind:
    runwire validate --json capture.ndjson | jq -r .code | sort | uniq -c

Problems are on standard output, one a line, with the section of the dialect's
document that is broken; the summary is on standard error. Notes (an unknown
type, a legacy event) are no problems and do not change the exit code.";

#[derive(Debug, Args)]
#[command(after_help = CONVERT_EXAMPLES, after_long_help = format!("{CONVERT_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ConvertArguments {
    /// The stream to read; standard input without it, or with `-`
    pub(crate) file: Option<PathBuf>,

    /// The dialect to read; `auto` finds out from the first frames
    #[arg(long, value_name = "DIALECT", default_value = AUTO, value_parser = readable())]
    pub(crate) from: DialectChoice,

    /// The dialect to write; `text` is the answer's text alone
    #[arg(long, value_name = "DIALECT", value_parser = writable())]
    pub(crate) to: Dialect,

    /// How frames are written: one a line, or as server-sent events with `id: seq-k` [default: ndjson; bare
    /// text for `--to text`]
    #[arg(long)]
    pub(crate) framing: Option<OutputFraming>,

    /// How much is carried over: what the dialect can say, or everything, with the rest in its extension slots
    #[arg(long, default_value = "native")]
    pub(crate) fidelity: FidelityName,

    /// Which extension slots are written: all, only questions, answers, suspension and a person's words, or none
    #[arg(long, value_name = "SLOTS", default_value = "all")]
    pub(crate) slots: SlotsName,

    /// How frames are cut in the input
    #[arg(long, value_name = "FRAMING", default_value = "auto")]
    pub(crate) input_framing: InputFraming,

    /// The thread's id, whatever the source says
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) thread: Option<String>,

    /// The first run's id, whatever the source says
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) run: Option<String>,

    /// The input is a log's own account: answers and cancel requests in it are taken as they stand, not as a
    /// producer's claim
    #[arg(long)]
    pub(crate) trusted: bool,

    /// Hand on what cannot be read as `foreign`, and go on with the rest
    #[arg(long)]
    pub(crate) keep_going: bool,
}

#[derive(Debug, Args)]
#[command(after_help = VALIDATE_EXAMPLES, after_long_help = format!("{VALIDATE_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ValidateArguments {
    /// The stream to check; standard input without it, or with `-`
    pub(crate) file: Option<PathBuf>,

    /// The dialect it should speak; `auto` finds out from the first frames
    #[arg(long, value_name = "DIALECT", default_value = AUTO, value_parser = readable())]
    pub(crate) dialect: DialectChoice,

    /// Write one JSON object a problem: line, field, code, section, message, hint, dialect, severity
    #[arg(long)]
    pub(crate) json: bool,

    /// How frames are cut in the input
    #[arg(long, value_name = "FRAMING", default_value = "auto")]
    pub(crate) input_framing: InputFraming,
}

const AUTO: &str = "auto";

/// The dialect of the input: given, or detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DialectChoice {
    Auto,
    Named(Dialect),
}

impl DialectChoice {
    pub(crate) fn named(self) -> Option<Dialect> {
        match self {
            Self::Auto => None,
            Self::Named(dialect) => Some(dialect),
        }
    }
}

fn readable() -> impl TypedValueParser<Value = DialectChoice> {
    let names = std::iter::once(AUTO).chain(Dialect::READABLE.map(Dialect::name));
    PossibleValuesParser::new(names)
        .map(|name| Dialect::from_name(&name).map_or(DialectChoice::Auto, DialectChoice::Named))
}

fn writable() -> impl TypedValueParser<Value = Dialect> {
    let unknown = "the parser lets only the names of dialects through";
    PossibleValuesParser::new(Dialect::ALL.map(Dialect::name))
        .map(|name| Dialect::from_name(&name).expect(unknown))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFraming {
    Ndjson,
    Sse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFraming {
    Auto,
    Ndjson,
    Sse,
    Json,
}

impl InputFraming {
    pub(crate) fn named(self) -> Option<Framing> {
        match self {
            Self::Auto => None,
            Self::Ndjson => Some(Framing::Ndjson),
            Self::Sse => Some(Framing::Sse),
            Self::Json => Some(Framing::Json),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FidelityName {
    Native,
    Full,
}

impl From<FidelityName> for Fidelity {
    fn from(name: FidelityName) -> Self {
        match name {
            FidelityName::Native => Self::Native,
            FidelityName::Full => Self::Full,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SlotsName {
    All,
    Asks,
    None,
}

impl From<SlotsName> for Slots {
    fn from(name: SlotsName) -> Self {
        match name {
            SlotsName::All => Self::All,
            SlotsName::Asks => Self::Asks,
            SlotsName::None => Self::None,
        }
    }
}

fn id(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("an id cannot be empty".to_owned())
    } else if text.len() > limits::ID_BYTES {
        Err(format!("an id has at most {} bytes, and this has {}", limits::ID_BYTES, text.len()))
    } else if text.chars().any(char::is_control) {
        Err("an id cannot hold control characters".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn clap_accepts_the_definition() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn ids_are_validated() {
        assert!(id("thread-1").is_ok());
        assert!(id("").is_err());
        assert!(id("a\nb").is_err());
        assert!(id(&"x".repeat(limits::ID_BYTES + 1)).is_err());
    }
}
