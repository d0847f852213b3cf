//! Builds the measured program.

use std::path::PathBuf;
use std::process::Command;

use crate::Failure;

/// Builds `runwire` from the current sources.
pub(crate) fn build_runwire() -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--profile", "dist", "--quiet", "--package", "runwire"])
        .status()?;
    let program = std::env::current_exe()?.with_file_name("runwire");
    if built.success() { Ok(program) } else { Err("`runwire` could not be built".into()) }
}
