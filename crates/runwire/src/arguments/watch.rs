//! Arguments of the commands that watch or control a run: `tail`, `replay`, `run`, `cancel`, `retry`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use runwire_client::Cursor;
use runwire_model::Json;
use runwire_model::dialect::Dialect;

use super::client::ServerArguments;
use super::{EXIT_CODES, SlotsName, id, writable};

const TAIL_EXAMPLES: &str = "\
Examples:
  Watch a run to its end:
    runwire tail r1

  See the answer alone, as it is written:
    runwire tail r1 -o text

  One canonical event a line, for a program:
    runwire tail r1 -o ndjson | jq -r .type

  Read it as an AG-UI front end would, as server-sent events:
    runwire tail r1 --dialect ag-ui -o sse

  Print what is there and stop:
    runwire tail r1 --no-follow

  See only what happens from now on, in all runs of a conversation:
    runwire tail t1 --thread --new

  Go on after a cursor that `-o sse` has shown as `id`, or Ctrl-C has named:
    runwire tail r1 --after 12-0

  Wait for a run in a script:
    runwire tail r1 -o text --exit-status > answer.txt && publish answer.txt

Where the connection breaks, or the server is restarted, reading goes on after
the last frame that was printed: none is missing and none comes twice. Leaving is
not stopping: after Ctrl-C the run goes on.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  Watch a run again as it happened, pauses of more than 2 s shortened to that:
    runwire replay r1

  Ten times as fast, without long pauses:
    runwire replay r1 --speed 10 --max-pause 0.5

  Feed a front end with a run at its own pace:
    runwire replay r1 --dialect ag-ui -o sse --max-pause 60

  All at once:
    runwire replay r1 --speed max";

const RUN_EXAMPLES: &str = "\
Examples:
  Start an agent and watch it:
    runwire run weather \"How is the weather in Beijing?\"

  In a conversation, with more than a message:
    runwire run weather --thread t1 --input '{\"city\":\"北京\"}'

  Start it and go on; the run's id is on standard output:
    id=$(runwire run weather \"And in Shanghai?\" --detach)

Leaving is not stopping: after Ctrl-C the run goes on. `runwire tail RUN` comes
back to it, `runwire cancel RUN` stops it. A run that nobody works on fails when
its lease is over.";

const CANCEL_EXAMPLES: &str = "\
Examples:
  runwire cancel r1
  runwire cancel r1 --reason \"no longer needed\"

A run that works is asked to stop, and has 30 s to end in its own words. One that
waits for a person, or for its agent, is cancelled at once. One that has ended
stays as it is.";

const RETRY_EXAMPLES: &str = "\
Examples:
  Do it again, and watch:
    runwire tail \"$(runwire retry r1)\"

The new run has the agent, the input and the thread of the old one, which must
have ended and have been started by the server. Its id is printed.";

/// How a run is shown.
#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// How the run is printed [default: pretty; with --dialect, ndjson or text]
    #[arg(short, long, value_name = "FORM")]
    pub(crate) output: Option<OutputFormat>,

    /// The dialect to read in, for a program [default: runwire; text for `-o text`]
    #[arg(long, value_name = "DIALECT", value_parser = writable())]
    pub(crate) dialect: Option<Dialect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// As a person reads it; on a terminal with colours, and lines that change in place
    Pretty,
    /// As a person reads it, without colours and changing lines
    Plain,
    /// One frame a line
    Ndjson,
    /// Server-sent events with their cursors
    Sse,
    /// The answer's text alone
    Text,
}

#[derive(Debug, Args)]
#[command(after_help = TAIL_EXAMPLES, after_long_help = format!("{TAIL_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct TailArguments {
    /// The run to read; with --thread, the thread
    #[arg(value_parser = id)]
    pub(crate) run: String,

    #[command(flatten)]
    pub(crate) output: OutputArguments,

    /// Begin after this cursor instead of at the start
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<Cursor>,

    /// Begin with what happens from now on
    #[arg(long, conflicts_with = "after")]
    pub(crate) new: bool,

    /// Stop at what is there now
    #[arg(long)]
    pub(crate) no_follow: bool,

    /// Merge pieces of text that lie behind into fewer frames
    #[arg(long)]
    pub(crate) compact: bool,

    /// Which extension slots of the dialect are shown: all, only questions, answers, suspension and a person's words,
    /// or none
    #[arg(long, value_name = "SLOTS", requires = "dialect")]
    pub(crate) slots: Option<SlotsName>,

    #[arg(long, help = attach_help(), conflicts_with_all = ["after", "new", "thread"])]
    pub(crate) attach: bool,

    /// Read all runs of a thread
    #[arg(long)]
    pub(crate) thread: bool,

    /// Exit with 1 unless the run has completed
    #[arg(long, conflicts_with = "thread")]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES, after_long_help = format!("{REPLAY_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ReplayArguments {
    /// The run to play; of one that is open, what is there
    #[arg(value_parser = id)]
    pub(crate) run: String,

    /// How many times as fast as it happened, or `max`
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed)]
    pub(crate) speed: Speed,

    /// The longest pause, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) max_pause: Duration,

    /// Begin after this cursor instead of at the start
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<Cursor>,

    #[command(flatten)]
    pub(crate) output: OutputArguments,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// How fast a run is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speed {
    Times(f64),
    Max,
}

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES, after_long_help = format!("{RUN_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct RunArguments {
    /// The agent
    #[arg(value_parser = id)]
    pub(crate) agent: String,

    /// What to say to it
    pub(crate) message: Option<String>,

    /// What else it is given, as JSON
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub(crate) input: Option<Json>,

    /// The conversation; without it the run gets one of its own
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) thread: Option<String>,

    /// The run's id; the server makes one up without it
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) run: Option<String>,

    /// Print the run's id and leave
    #[arg(short, long, conflicts_with_all = ["output", "dialect", "exit_status"])]
    pub(crate) detach: bool,

    /// Exit with 1 unless the run has completed
    #[arg(long)]
    pub(crate) exit_status: bool,

    #[command(flatten)]
    pub(crate) output: OutputArguments,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = CANCEL_EXAMPLES, after_long_help = format!("{CANCEL_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct CancelArguments {
    /// The run to stop
    #[arg(value_parser = id)]
    pub(crate) run: String,

    /// Why; readers of the run see it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Print the server's answer as it is
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = RETRY_EXAMPLES, after_long_help = format!("{RETRY_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct RetryArguments {
    /// The run to do again
    #[arg(value_parser = id)]
    pub(crate) run: String,

    /// Print the new run as the server tells it
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

fn speed(text: &str) -> Result<Speed, String> {
    match text.parse::<f64>() {
        _ if text == "max" => Ok(Speed::Max),
        Ok(times) if times.is_finite() && times > 0.0 => Ok(Speed::Times(times)),
        _ => Err("a number above 0, or `max`".to_owned()),
    }
}

/// Parses seconds, with or without the unit `s`.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    const MAX_SECONDS: f64 = 86_400.0;
    match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        Ok(seconds) if (0.0..=MAX_SECONDS).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("seconds, from 0 to {MAX_SECONDS}")),
    }
}

fn json(text: &str) -> Result<Json, String> {
    Json::parse(text).map_err(|error| format!("this is not JSON: {error}"))
}

/// Describes `--attach`, with the dialects that offer it.
fn attach_help() -> String {
    let dialects = Dialect::ALL.into_iter().filter(|dialect| dialect.offers_attach());
    let names: Vec<&str> = dialects.map(Dialect::name).collect();
    format!("Begin with the present state in one go instead of all that led to it ({})", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_number_above_zero_or_the_fastest() {
        assert_eq!(speed("0.5"), Ok(Speed::Times(0.5)));
        assert_eq!(speed("max"), Ok(Speed::Max));
        for odd in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert!(speed(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn seconds_are_said_with_or_without_their_unit() {
        assert_eq!(seconds("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for odd in ["-1", "NaN", "1e9", "2m", ""] {
            assert!(seconds(odd).is_err(), "{odd}");
        }
    }
}
