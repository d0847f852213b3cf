//! `runwire migrate`: creates the tables of a store.

use std::io::{self, Write};

use runwire_log::Migrated;

use crate::Verdict;
use crate::arguments::MigrateArguments;
use crate::config::{self, Flags};
use crate::failure::Failure;
use crate::{check_config, serve};

/// Creates the tables, and prints the former and the new version.
pub(crate) fn run(arguments: &MigrateArguments) -> Result<Verdict, Failure> {
    let (config, store) = (arguments.config.clone(), arguments.store.clone());
    let configuration = config::read(&Flags { config, store, ..Flags::default() }, Vec::new())?;
    if !configuration.problems.is_empty() {
        return Ok(check_config::report(&configuration.problems));
    }
    let Migrated { from, to } = serve::migrate(&configuration.settings)?;
    let done = match from {
        _ if from == to => format!("version {to}, nothing to do"),
        _ => format!("from version {from} to version {to}"),
    };
    writeln!(io::stdout().lock(), "{}: {done}", configuration.settings.store).map_err(Failure::Write)?;
    Ok(Verdict::Fine)
}
