//! The temporary folder of an engine, and its owner.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use tempfile::TempDir;

use crate::error::EngineError;

/// The user that engines run as if this process is root.
const UNPRIVILEGED: &str = "nobody";

/// A user that is not root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// Returns the user that engines run as; `None` if this process is not root.
    pub(crate) fn for_engines() -> Result<Option<Self>, EngineError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = fs::read_to_string("/etc/passwd").map_err(EngineError::system("read /etc/passwd"))?;
        let user = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let named = fields.next()? == UNPRIVILEGED;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            named.then_some(Self { uid, gid })
        });
        user.map(Some).ok_or_else(|| EngineError::Failed {
            what: format!("there is no user `{UNPRIVILEGED}` to run an engine as"),
            log: String::new(),
        })
    }
}

/// Creates a folder that only the engine and root can enter.
///
/// Its name is short: it holds a socket, whose path must have less than 108 bytes.
pub(crate) fn make(owner: Option<User>) -> Result<TempDir, EngineError> {
    let folder =
        tempfile::Builder::new().prefix("rw-").tempdir().map_err(EngineError::system("make a folder"))?;
    set_owner(folder.path(), owner)?;
    Ok(folder)
}

/// Sets the owner of a file or folder to the engine's user.
pub(crate) fn set_owner(path: &Path, owner: Option<User>) -> Result<(), EngineError> {
    let Some(User { uid, gid }) = owner else { return Ok(()) };
    chown(path, Some(uid), Some(gid)).map_err(EngineError::system(format!("give away {}", path.display())))
}

/// Writes a file that only the engine and root can read.
pub(crate) fn write(path: &Path, text: &str, owner: Option<User>) -> Result<(), EngineError> {
    let failed = || EngineError::system(format!("write {}", path.display()));
    fs::write(path, text).map_err(failed())?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed())?;
    set_owner(path, owner)
}

/// Copies a folder and everything in it, for the engine to own.
pub(crate) fn copy(from: &Path, to: &Path, owner: Option<User>) -> Result<(), EngineError> {
    let failed = || EngineError::system(format!("copy {}", from.display()));
    fs::create_dir(to).map_err(failed())?;
    fs::set_permissions(to, Permissions::from_mode(0o700)).map_err(failed())?;
    set_owner(to, owner)?;
    for entry in fs::read_dir(from).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(failed())?.is_dir() {
            copy(&entry.path(), &target, owner)?;
        } else {
            fs::copy(entry.path(), &target).map_err(failed())?;
            set_owner(&target, owner)?;
        }
    }
    Ok(())
}
