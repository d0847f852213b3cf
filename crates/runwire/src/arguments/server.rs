//! Arguments of the server commands: `dev`, `serve`, `migrate`, `check-config`.

use std::path::PathBuf;

use clap::Args;

use super::EXIT_CODES;
use crate::config::{CONFIG_VARIABLE, Flags, StoreUrl};

const DEV_EXAMPLES: &str = "\
Examples:
  Start a server on http://127.0.0.1:7420 that keeps its events in runwire.db:
    runwire dev

  Write a run to it, and read it in another dialect:
    runwire push r1 --end docs/examples/hello.loom.ndjson
    runwire tail r1 --dialect ag-ui

It is the server of `runwire serve`, on this machine alone, with a few lines to
try. Control-C stops it; what was written stays in the store.";

const SERVE_EXAMPLES: &str = "\
Examples:
  Serve on the usual address, with the events in runwire.db:
    runwire serve

  Keep them elsewhere, for thirty days or up to ten gibibytes:
    runwire serve --store sqlite:/var/lib/runwire/runwire.db \\
      --retention-age 30d --retention-bytes 10GiB

  Share a store with other nodes; passwords are best kept in variables:
    RUNWIRE_STORE=postgres://runwire:secret@db.example/runwire \\
      runwire serve --tail redis://redis.example:6379

  Serve behind a proxy that checks who comes:
    runwire serve --listen 10.0.0.5:7420 --insecure --log-format json

Once connections are accepted, one line stands on standard output:
  runwire listening on http://127.0.0.1:7420
The log goes to standard error. SIGINT and SIGTERM stop the server after what is
under way is finished; a second signal ends it at once.

Settings come from flags, from variables (RUNWIRE_LISTEN, RUNWIRE_LOG_LEVEL, …),
from runwire.toml, and from defaults, in this order. `runwire check-config` shows
which one counts.";

const MIGRATE_EXAMPLES: &str = "\
Examples:
  Make the tables of a new store in Postgres:
    runwire migrate --store postgres://runwire@db.example/runwire

  Make those of the store that the configuration names, before its nodes start:
    runwire migrate --config /etc/runwire/runwire.toml

`runwire serve` makes them by itself, also where several nodes start at once. This
command is for those who want to do it beforehand, or as another user. It can be
repeated. A store that another version has written is left as it is.";

const CHECK_CONFIG_EXAMPLES: &str = "\
Examples:
  Show each setting, its value and where it comes from:
    runwire check-config

  Check a file before it is put in place:
    runwire check-config --config runwire.toml.new

  See what a flag would change:
    runwire check-config --listen 127.0.0.1:8000";

#[derive(Debug, Args)]
#[command(after_help = DEV_EXAMPLES, after_long_help = format!("{DEV_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct DevArguments {
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES, after_long_help = format!("{SERVE_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) flags: Flags,

    /// Listen on an address that others can reach, although there are no tokens yet: anyone who reaches
    /// it may read and write everything
    #[arg(long)]
    pub(crate) insecure: bool,
}

#[derive(Debug, Args)]
#[command(after_help = MIGRATE_EXAMPLES, after_long_help = format!("{MIGRATE_EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct MigrateArguments {
    /// The configuration file [default: runwire.toml in this directory, if there is one]
    #[arg(long, value_name = "FILE", env = CONFIG_VARIABLE, hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    /// The store: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE [default: sqlite:runwire.db]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
}

#[derive(Debug, Args)]
#[command(
    after_help = CHECK_CONFIG_EXAMPLES,
    after_long_help = format!("{CHECK_CONFIG_EXAMPLES}\n\n{EXIT_CODES}")
)]
pub(crate) struct CheckConfigArguments {
    #[command(flatten)]
    pub(crate) flags: Flags,

    /// Write one JSON object: valid, settings, problems, notes
    #[arg(long)]
    pub(crate) json: bool,
}
