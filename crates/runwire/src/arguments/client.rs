//! What can be said to the commands that talk to a server.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use runwire_model::dialect::Dialect;

use super::{EXIT_CODES, InputFraming, Source, id, readable, writable};
use crate::client::BaseUrl;

const PUSH_EXAMPLES: &str = "\
Examples:
  Write a captured run, and end it with the file:
    runwire push r1 --end run.ndjson

  Make an agent's output visible while it is written:
    ./agent | runwire push r1 --dialect loom --end

  Write a stream that holds several runs:
    runwire push --to-thread t1 export.ndjson

  Write so that a repetition changes nothing:
    runwire push r1 --producer worker-7 --epoch 1 --seq 0 run.ndjson

The input may stay open: each frame is stored and visible as it comes, and while
it is silent the run's lease is kept. What the server refuses stops the writing;
the frames before it stay written.";

const TAIL_EXAMPLES: &str = "\
Examples:
  Follow a run to its end, one canonical event a line:
    runwire tail r1

  See the answer as it is written:
    runwire tail r1 -o text

  Read it as an AG-UI front end would, as server-sent events:
    runwire tail r1 --dialect ag-ui -o sse

  Print what is there and stop:
    runwire tail r1 --no-follow

  Go on after a cursor that `-o sse` has shown as `id`:
    runwire tail r1 --after 12-0

Where the connection breaks, or the server is restarted, reading goes on after
the last frame that was printed: none is missing and none comes twice.";

const RUNS_EXAMPLES: &str = "\
Examples:
  What is running now:
    runwire runs --status running

  The last three runs of a conversation, for a program:
    runwire runs --thread t1 --limit 3 --json | jq -r '.runs[].run_id'";

const SHOW_EXAMPLES: &str = "\
Examples:
  runwire show r1
  runwire show r1 --json | jq .message.mainContent";

/// Where the server is.
#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// The server; RUNWIRE_TOKEN is sent as its bearer token, if it is set
    #[arg(
        long,
        value_name = "URL",
        env = "RUNWIRE_URL",
        hide_env_values = true,
        default_value = "http://127.0.0.1:7420"
    )]
    pub(crate) url: BaseUrl,
}

#[derive(Debug, Args)]
#[command(after_help = PUSH_EXAMPLES, after_long_help = format!("{PUSH_EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(override_usage = "runwire push [OPTIONS] <RUN> [FILE]\n       \
                            runwire push [OPTIONS] --to-thread <THREAD> [FILE]")]
pub(crate) struct PushArguments {
    /// The run to write to; it is created if there is none
    #[arg(required_unless_present = "to_thread")]
    run: Option<String>,

    /// The stream to write; standard input without it, or with `-`
    file: Option<PathBuf>,

    /// Write to a thread instead: the frames say which run each belongs to
    #[arg(long, value_name = "THREAD", value_parser = id, conflicts_with = "thread")]
    pub(crate) to_thread: Option<String>,

    /// The dialect of the stream; `auto` lets the server find out from the first frames
    #[arg(long, value_name = "DIALECT", default_value = super::AUTO, value_parser = readable())]
    pub(crate) dialect: Source,

    /// How frames are cut in the input
    #[arg(long, default_value = "auto")]
    pub(crate) framing: InputFraming,

    /// End the run where the input ends; with --to-thread, all that are open
    #[arg(long)]
    pub(crate) end: bool,

    /// The thread of a run that this creates
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) thread: Option<String>,

    /// Who writes, so that nothing is written twice
    #[arg(long, value_name = "ID", value_parser = id, requires = "seq")]
    pub(crate) producer: Option<String>,

    /// The producer's incarnation: one more after each of its restarts [default: 0]
    #[arg(long, value_name = "N", requires = "producer")]
    pub(crate) epoch: Option<u64>,

    /// The index of the input's first frame in all that the producer sends to the run
    #[arg(long, value_name = "N", requires = "producer")]
    pub(crate) seq: Option<u64>,

    /// Print the server's answer as it is
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// Where a stream goes to, and where it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The run; nothing where the stream goes to a thread.
    pub(crate) run: Option<String>,
    pub(crate) file: Option<PathBuf>,
}

impl PushArguments {
    /// Tells the run from the file: with `--to-thread` there is no run, and what stands in its place is the file.
    pub(crate) fn places(&self) -> Result<Places, String> {
        match (&self.to_thread, &self.run, &self.file) {
            (Some(_), _, Some(_)) => Err("with --to-thread there is no RUN, only a FILE".to_owned()),
            (Some(_), file, None) => Ok(Places { run: None, file: file.as_ref().map(PathBuf::from) }),
            (None, run, file) => {
                let run = id(run.as_deref().unwrap_or_default()).map_err(|wrong| format!("RUN: {wrong}"))?;
                Ok(Places { run: Some(run), file: file.clone() })
            }
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = TAIL_EXAMPLES, after_long_help = format!("{TAIL_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct TailArguments {
    /// The run to read; with --thread, the thread
    #[arg(value_parser = id)]
    pub(crate) run: String,

    /// How frames are printed: one a line, as server-sent events with cursors, or the answer's text alone
    /// [default: ndjson; text for `--dialect text`]
    #[arg(short, long)]
    pub(crate) output: Option<TailForm>,

    /// The dialect to read in [default: runwire; text for `-o text`]
    #[arg(long, value_name = "DIALECT", value_parser = writable())]
    pub(crate) dialect: Option<Dialect>,

    /// Begin after this cursor instead of at the start
    #[arg(long, value_name = "CURSOR", value_parser = cursor)]
    pub(crate) after: Option<String>,

    /// Stop at what is there now
    #[arg(long)]
    pub(crate) no_follow: bool,

    /// Merge pieces of text that lie behind into fewer frames
    #[arg(long)]
    pub(crate) compact: bool,

    /// Begin with the present state in one go instead of all that led to it (runwire, ag-ui, easyflow-chat,
    /// streaming-engine)
    #[arg(long, conflicts_with_all = ["after", "thread"])]
    pub(crate) attach: bool,

    /// Read all runs of a thread
    #[arg(long)]
    pub(crate) thread: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// How `tail` prints frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TailForm {
    Ndjson,
    Sse,
    Text,
}

#[derive(Debug, Args)]
#[command(after_help = RUNS_EXAMPLES, after_long_help = format!("{RUNS_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct RunsArguments {
    /// Only runs that stand like this
    #[arg(long, value_parser = status())]
    pub(crate) status: Option<String>,

    /// Only runs of this agent
    #[arg(long, value_name = "NAME", value_parser = id)]
    pub(crate) agent: Option<String>,

    /// Only runs of this thread
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) thread: Option<String>,

    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,

    /// Print the server's answer as it is
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES, after_long_help = format!("{SHOW_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ShowArguments {
    /// The run
    #[arg(value_parser = id)]
    pub(crate) run: String,

    /// Print one JSON object: the run, and its message
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

fn status() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(["pending", "running", "suspended", "completed", "failed", "cancelled"])
}

/// Checks a cursor's form; whether it is a place in the run is the server's to say.
fn cursor(text: &str) -> Result<String, String> {
    let (seq, k) = text.split_once('-').unwrap_or((text, "0"));
    let is_number = |part: &str| part.parse::<u64>().is_ok();
    if is_number(seq) && is_number(k) {
        Ok(text.to_owned())
    } else {
        Err("a cursor is `seq-k` or `seq`, such as `12-0`; `0` is the start".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Arguments, Command};
    use super::*;

    fn places(arguments: &[&str]) -> Result<Places, String> {
        let all = ["runwire", "push"].iter().chain(arguments);
        match Arguments::try_parse_from(all).map(|arguments| arguments.command) {
            Ok(Command::Push(push)) => push.places(),
            _ => Err("clap".to_owned()),
        }
    }

    #[test]
    fn a_run_and_a_file_are_told_apart() {
        let run = |run: &str, file: Option<&str>| {
            Ok(Places { run: Some(run.to_owned()), file: file.map(PathBuf::from) })
        };
        assert_eq!(places(&["r1"]), run("r1", None));
        assert_eq!(places(&["r1", "a.ndjson"]), run("r1", Some("a.ndjson")));
        assert_eq!(places(&["r1", "-"]), run("r1", Some("-")));
        let file = Places { run: None, file: Some(PathBuf::from("a.ndjson")) };
        assert_eq!(places(&["--to-thread", "t1", "a.ndjson"]), Ok(file));
        assert!(places(&[]).is_err() && places(&["", "a"]).is_err());
        assert!(places(&["--to-thread", "t1", "r1", "a.ndjson"]).is_err());
    }

    #[test]
    fn cursors_are_checked_where_they_are_typed() {
        assert!(cursor("12-0").is_ok() && cursor("12").is_ok() && cursor("0").is_ok());
        assert!(cursor("").is_err() && cursor("12-").is_err() && cursor("last").is_err());
    }
}
