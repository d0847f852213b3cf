//! Finds the programs of the engines.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::error::EngineError;

/// Finds `redis-server`.
pub(crate) fn redis() -> Result<PathBuf, EngineError> {
    on_path("redis-server").ok_or(EngineError::Missing { program: "redis-server", package: "redis-server" })
}

/// Finds the folder of PostgreSQL's programs: on the PATH, else the newest installed version.
pub(crate) fn postgres() -> Result<PathBuf, EngineError> {
    let linked = on_path("initdb").and_then(|program| fs::canonicalize(program).ok());
    let named = linked.as_deref().and_then(Path::parent).map(Path::to_owned);
    named
        .into_iter()
        .chain(installed())
        .find(|folder| ["initdb", "postgres", "psql"].iter().all(|program| folder.join(program).is_file()))
        .ok_or(EngineError::Missing { program: "postgres", package: "postgresql" })
}

/// Returns the folders of Debian's PostgreSQL versions, newest first.
fn installed() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut folders: Vec<_> =
        versions.filter_map(|entry| Some((version(&entry.path())?, entry.path()))).collect();
    folders.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    folders.into_iter().map(|(_, folder)| folder.join("bin")).collect()
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}
