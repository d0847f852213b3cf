//! Template of a PostgreSQL data folder, created once and copied for every server.
//!
//! `initdb` takes a second, a copy some milliseconds. Tests may be separate processes, so the template is kept in the folder
//! for temporary files.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::error::EngineError;
use crate::folder::{self, User};

/// The superuser of every server, without a password.
pub(crate) const SUPERUSER: &str = "runwire";

/// Creates a data folder from the template.
pub(crate) fn make(programs: &Path, data: &Path, owner: Option<User>) -> Result<(), EngineError> {
    let template = place(programs)?;
    if !is_ours(&template) {
        let made = folder::make(owner)?;
        initialise(programs, &made.path().join("data"), owner)?;
        // The rename is atomic; a concurrent process that comes second keeps the first template.
        let _ = fs::rename(made.path().join("data"), &template);
    }
    folder::copy(&template, data, owner)
}

fn place(programs: &Path) -> Result<PathBuf, EngineError> {
    let output = Command::new(programs.join("postgres")).arg("--version").output();
    let output = output.map_err(EngineError::system("ask for the version of postgres"))?;
    let version: String =
        String::from_utf8_lossy(&output.stdout).chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let uid = rustix::process::geteuid().as_raw();
    Ok(env::temp_dir().join(format!("runwire-postgres-{version}-of-{uid}")))
}

/// Returns true if the template exists and is ours, as anybody can write to the folder for temporary files.
fn is_ours(template: &Path) -> bool {
    let owners = [Some(rustix::process::geteuid().as_raw()), engine_uid()];
    fs::symlink_metadata(template).is_ok_and(|found| found.is_dir() && owners.contains(&Some(found.uid())))
}

fn engine_uid() -> Option<u32> {
    User::for_engines().ok().flatten().map(|user| user.uid)
}

fn initialise(programs: &Path, data: &Path, owner: Option<User>) -> Result<(), EngineError> {
    let mut command = Command::new(programs.join("initdb"));
    command.arg("--pgdata").arg(data).args(["--username", SUPERUSER, "--auth", "trust"]);
    // A fixed collation, and as little to copy as possible.
    command.args([
        "--encoding",
        "UTF8",
        "--no-locale",
        "--no-sync",
        "--no-instructions",
        "--wal-segsize",
        "1",
    ]);
    command.current_dir("/");
    if let Some(User { uid, gid }) = owner {
        command.uid(uid).gid(gid);
    }
    let output = command.output().map_err(EngineError::system("start initdb"))?;
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(EngineError::Failed { what: format!("initdb ended with {}", output.status), log })
}
