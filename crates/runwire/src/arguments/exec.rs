//! Arguments of `exec`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::client::ServerArguments;
use super::watch::seconds;
use super::{AUTO, DialectChoice, OutputFraming, id, readable};

const EXAMPLES: &str = "\
Examples:
  Make a program's output a run, one frame a line, and watch it:
    runwire exec -- ./agent --question \"How is the weather?\"

  A run with a name, in a conversation, of a program that speaks AG-UI:
    runwire exec --run r1 --thread t1 --dialect ag-ui -- node agent.js

  A program that prints text and knows nothing of frames:
    runwire exec --text -- ./build.sh

  In a script: show nothing but the run's id, and go by the program's exit code:
    runwire exec -q -- ./agent > run-id

Answers to the program's questions, and requests to cancel, arrive on its standard
input, one canonical event a line. Cancel is told there first, then by SIGTERM, then
by SIGKILL. Signals are passed on; a second Ctrl-C kills.";

const EXIT_CODES: &str = "\
Exit codes:
  The program's own; 128 and its number where a signal ended it. And:
  125  the run could not be created or written; what is wrong is on standard error
  126  the program cannot be run
  127  the program was not found";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ExecArguments {
    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// The dialect of its frames; `auto` finds out from the first ones
    #[arg(long, value_name = "DIALECT", default_value = AUTO, value_parser = readable())]
    pub(crate) dialect: DialectChoice,

    /// How its frames are cut [default: server-sent events if the first line is of one, else one frame a line]
    #[arg(long)]
    pub(crate) framing: Option<OutputFraming>,

    /// The run; it is created if there is none, and the server makes an id up without it
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) run: Option<String>,

    /// The thread of a run that this creates
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) thread: Option<String>,

    /// The name of the agent, for the lists of runs
    #[arg(long, value_name = "NAME", value_parser = id)]
    pub(crate) agent: Option<String>,

    /// Take lines that are no frame as the answer's text; without it they become `foreign` events
    #[arg(long)]
    pub(crate) text: bool,

    /// Give the program no standard input, if it would wait for its end
    #[arg(long)]
    pub(crate) no_stdin: bool,

    /// The time between SIGTERM and SIGKILL when the run is cancelled, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) grace: Duration,

    /// Show nothing but the run's id
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}
