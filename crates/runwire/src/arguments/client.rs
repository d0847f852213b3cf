//! Arguments of the client commands `push`, `runs` and `show`, and the server's URL.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use runwire_client::BaseUrl;

use super::watch::seconds;
use super::{DialectChoice, EXIT_CODES, InputFraming, id, readable};
use crate::failure::Failure;
use runwire_view::answer::quoted;

const PUSH_EXAMPLES: &str = "\
Examples:
  Write a captured run, and end it with the file:
    runwire push r1 --end run.ndjson

  Make an agent's output visible while it is written:
    ./agent | runwire push r1 --dialect loom --end

  Write a stream that holds several runs:
    runwire push --to-thread t1 export.ndjson

  Write a stream of several sessions, each to the thread that its frames name:
    runwire push --all sessions.loom.ndjson

  Write every frame once, over restarts of the server and of the command:
    ./agent | runwire push r1 --producer worker-7 --end

The input may stay open: each frame is stored and visible as it comes, and while
it is silent the run's lease is kept. What the server refuses stops the writing;
the frames before it stay written.";

const RUNS_EXAMPLES: &str = "\
Examples:
  What is running now:
    runwire runs --status running

  The last three runs of a conversation, for a program:
    runwire runs --thread t1 --limit 3 --json | jq -r '.runs[].run_id'

  What has failed in the last two hours:
    runwire runs --status failed --since 2h --all";

const SHOW_EXAMPLES: &str = "\
Examples:
  How a run stands, and what it said:
    runwire show r1

  Its events, a line each:
    runwire show r1 --events

  For a program:
    runwire show r1 --json | jq .message.mainContent";

/// Where the server is.
#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// The server, else the one that RUNWIRE_URL names; RUNWIRE_TOKEN is sent as its bearer token, if it is set
    /// [default: http://127.0.0.1:7420]
    // clap's `env` would show the variable in the usage of every error.
    #[arg(long, value_name = "URL")]
    url: Option<BaseUrl>,
}

impl ServerArguments {
    /// Returns the URL of the flag, else of `RUNWIRE_URL`, else the default.
    pub(crate) fn url(&self) -> Result<BaseUrl, Failure> {
        if let Some(url) = &self.url {
            return Ok(url.clone());
        }
        let named = std::env::var_os("RUNWIRE_URL").filter(|url| !url.is_empty());
        let url = named.map_or_else(|| BaseUrl::DEFAULT.into(), |url| url.to_string_lossy().into_owned());
        url.parse().map_err(|fault| Failure::Usage {
            message: format!("RUNWIRE_URL names no server: {fault}"),
            hint: "set it anew or unset it; --url names a server for one command",
        })
    }
}

/// Returns the flag that another command needs to reach a server: ` --url URL`, or nothing for the default.
pub(crate) fn url_flag(url: &str) -> String {
    let url = url.trim_end_matches('/');
    match (ServerArguments { url: None }).url() {
        Ok(usual) if usual.to_string().trim_end_matches('/') == url => String::new(),
        _ => format!(" --url {}", quoted(url)),
    }
}

#[derive(Debug, Args)]
#[command(after_help = PUSH_EXAMPLES, after_long_help = format!("{PUSH_EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(override_usage = "runwire push [OPTIONS] <RUN> [FILE]\n       \
                            runwire push [OPTIONS] --to-thread <THREAD> [FILE]\n       \
                            runwire push [OPTIONS] --all [FILE]")]
pub(crate) struct PushArguments {
    /// The run to write to; it is created if there is none
    #[arg(required_unless_present_any = ["to_thread", "all"])]
    run: Option<String>,

    /// The stream to write; standard input without it, or with `-`
    file: Option<PathBuf>,

    /// Write to a thread instead: the frames say which run each belongs to
    #[arg(long, value_name = "THREAD", value_parser = id, conflicts_with = "thread", group = "of_frames")]
    pub(crate) to_thread: Option<String>,

    /// Write to the threads and runs that the frames name: a stream of several sessions
    #[arg(long, conflicts_with_all = ["to_thread", "thread", "end"], group = "of_frames")]
    pub(crate) all: bool,

    /// Let the threads that --to-thread or --all creates have several runs at once
    #[arg(long, requires = "of_frames")]
    pub(crate) parallel: bool,

    /// The dialect of the stream; `auto` lets the server find out from the first frames
    #[arg(long, value_name = "DIALECT", default_value = super::AUTO, value_parser = readable())]
    pub(crate) dialect: DialectChoice,

    /// How frames are cut in the input
    #[arg(long, default_value = "auto")]
    pub(crate) framing: InputFraming,

    /// End the run where the input ends; with --to-thread, all that are open
    #[arg(long)]
    pub(crate) end: bool,

    /// The thread of a run that this creates
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) thread: Option<String>,

    /// Who writes: a name that makes it safe to try again, so that a server that is away or restarted costs no
    /// frame, and none is written twice
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) producer: Option<String>,

    /// The producer's incarnation: one more after each of its restarts [default: 0]
    #[arg(long, value_name = "N", requires = "producer")]
    pub(crate) epoch: Option<u64>,

    /// The index of the input's first frame in all that the producer sends to the run [default: 0]
    #[arg(long, value_name = "N", requires = "producer")]
    pub(crate) seq: Option<u64>,

    /// Give up if the server is away for this many seconds [default: try again without end]
    #[arg(long, value_name = "SECONDS", requires = "producer", value_parser = seconds)]
    pub(crate) give_up_after: Option<Duration>,

    /// Print the server's answer as it is
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// The target and the file of `push`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PushTarget {
    /// The run; `None` with `--to-thread` or `--all`.
    pub(crate) run: Option<String>,
    pub(crate) file: Option<PathBuf>,
}

impl PushArguments {
    /// Separates the run from the file: with `--to-thread` or `--all` the first positional argument is the file.
    pub(crate) fn target(&self) -> Result<PushTarget, String> {
        let other = self.to_thread.as_ref().map(|_| "--to-thread").or(self.all.then_some("--all"));
        match (other, &self.run, &self.file) {
            (Some(other), _, Some(_)) => Err(format!("with {other} there is no RUN, only a FILE")),
            (Some(_), file, None) => Ok(PushTarget { run: None, file: file.as_ref().map(PathBuf::from) }),
            (None, run, file) => {
                let run = id(run.as_deref().unwrap_or_default()).map_err(|wrong| format!("RUN: {wrong}"))?;
                Ok(PushTarget { run: Some(run), file: file.clone() })
            }
        }
    }
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

    /// Only runs that were created within this time: `90s`, `30m`, `2h`, `7d`
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) since: Option<Duration>,

    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,

    /// All of them, however many there are
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,

    /// Print one JSON object: the runs as the server tells them, and where the next ones begin
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

    /// List the run's events, a line each: when, where, what
    #[arg(long)]
    pub(crate) events: bool,

    /// Print one JSON object: the run, and its message; with `--events` one object a line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// Parses a time span: a number and a unit.
fn span(text: &str) -> Result<Duration, String> {
    let unit = text.chars().last().unwrap_or_default();
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err("a time is a number and a unit: 90s, 30m, 2h or 7d".to_owned()),
    };
    let number: u64 =
        text[..text.len() - 1].parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(|| "that is too long".to_owned())
}

fn status() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(["pending", "running", "suspended", "completed", "failed", "cancelled"])
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Arguments, Command};
    use super::*;

    fn target(arguments: &[&str]) -> Result<PushTarget, String> {
        let all = ["runwire", "push"].iter().chain(arguments);
        match Arguments::try_parse_from(all).map(|arguments| arguments.command) {
            Ok(Command::Push(push)) => push.target(),
            _ => Err("clap".to_owned()),
        }
    }

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        assert_eq!(span("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(span("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(span("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "h", "2", "2 h", "-1h", "2小", "99999999999999999999d", "999999999999999999d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_run_and_a_file_are_told_apart() {
        let run = |run: &str, file: Option<&str>| {
            Ok(PushTarget { run: Some(run.to_owned()), file: file.map(PathBuf::from) })
        };
        assert_eq!(target(&["r1"]), run("r1", None));
        assert_eq!(target(&["r1", "a.ndjson"]), run("r1", Some("a.ndjson")));
        assert_eq!(target(&["r1", "-"]), run("r1", Some("-")));
        let file = PushTarget { run: None, file: Some(PathBuf::from("a.ndjson")) };
        assert_eq!(target(&["--to-thread", "t1", "a.ndjson"]).as_ref(), Ok(&file));
        assert_eq!(target(&["--all", "a.ndjson"]), Ok(file));
        assert!(target(&["--all", "r1", "a.ndjson"]).is_err());
        assert!(target(&[]).is_err() && target(&["", "a"]).is_err());
        assert!(target(&["--to-thread", "t1", "r1", "a.ndjson"]).is_err());
    }
}
