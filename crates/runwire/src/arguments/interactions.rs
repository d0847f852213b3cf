//! Arguments of the commands for interactions: `inbox`, `answer`.

use clap::Args;

use super::client::ServerArguments;
use super::{EXIT_CODES, id};

const INBOX_EXAMPLES: &str = "\
Examples:
  What waits for a person:
    runwire inbox

  Keep looking, and show each new question as it is asked:
    runwire inbox --watch

  Questions of one agent, for a program:
    runwire inbox --agent weather --json | jq -r '.interactions[].run_id'";

const ANSWER_EXAMPLES: &str = "\
Examples:
  Be asked the questions of a form, one by one:
    runwire answer r1

  Fill in a form at once; numbers, booleans and lists are read as the form has them:
    runwire answer r1 trip city=北京 days=3 tags=sea,sun

  Fill it in from JSON, or from a file:
    runwire answer r1 trip --values '{\"city\":\"北京\"}'
    runwire answer r1 trip --values @trip.json

  Decide:
    runwire answer r1 pay --approve
    runwire answer r1 pay --reject --reason \"too much\"

  Withdraw a question, and let the agent go on without an answer:
    runwire answer r1 trip --cancel

A question has one answer: the first that fits. A later one is refused, with the
answer that was accepted. One that does not fit changes nothing.";

#[derive(Debug, Args)]
#[command(after_help = INBOX_EXAMPLES, after_long_help = format!("{INBOX_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct InboxArguments {
    /// Only questions of this run
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) run: Option<String>,

    /// Only questions of this agent
    #[arg(long, value_name = "NAME", value_parser = id)]
    pub(crate) agent: Option<String>,

    /// Only questions of this thread
    #[arg(long, value_name = "ID", value_parser = id)]
    pub(crate) thread: Option<String>,

    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,

    /// Go on looking, and show what is asked from now on
    #[arg(long)]
    pub(crate) watch: bool,

    /// Print the server's answer as it is; with --watch, one question a line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = ANSWER_EXAMPLES, after_long_help = format!("{ANSWER_EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(override_usage = "runwire answer [OPTIONS] <RUN> [ID] [FIELD=VALUE]...")]
pub(crate) struct AnswerArguments {
    /// The run that asks
    #[arg(value_parser = id)]
    pub(crate) run: String,

    /// The question, where several are open; then the fields of a form, each as NAME=VALUE
    #[arg(value_name = "ID | FIELD=VALUE")]
    pub(crate) words: Vec<String>,

    /// Allow what is asked
    #[arg(long, group = "decided")]
    pub(crate) approve: bool,

    /// Forbid what is asked
    #[arg(long, group = "decided")]
    pub(crate) reject: bool,

    /// Withdraw the question
    #[arg(long, group = "decided", conflicts_with = "values")]
    pub(crate) cancel: bool,

    /// What is filled in, as JSON; `@FILE` reads it from a file, `@-` from standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) values: Option<String>,

    /// Why; readers of the run see it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Print the server's answer as it is
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}
